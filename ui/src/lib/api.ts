// Requests to the server. The token stands behind the # of the address that `airpath ui` prints; it
// is taken out of the address at once, and kept for this tab alone.

const KEY = "airpath-token";

export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

let token: string | null = null;

export function takeToken(): void {
  const found = /[#&]token=([A-Za-z0-9_-]+)/.exec(location.hash);
  if (!found?.[1]) return;
  token = found[1];
  history.replaceState(null, "", location.pathname);
}

/** Keeps the token for a reload. The first access to the store takes a while: requests go out before it. */
export function keepToken(): void {
  if (token !== null) sessionStorage.setItem(KEY, token);
}

export function setToken(given: string): void {
  token = given;
  keepToken();
}

export function hasToken(): boolean {
  token ??= sessionStorage.getItem(KEY);
  return token !== null;
}

function headers(): HeadersInit {
  return { Authorization: `Bearer ${hasToken() ? token : ""}` };
}

async function answered(answer: Response): Promise<Response> {
  if (answer.ok) return answer;
  let message = `${answer.status} ${answer.statusText}`;
  try {
    message = ((await answer.json()) as { error?: string }).error ?? message;
  } catch {
    // No JSON: the status has to do.
  }
  if (answer.status === 401) {
    token = null;
    sessionStorage.removeItem(KEY);
  }
  throw new Refused(message, answer.status);
}

const begun = new Map<string, Promise<Response>>();

/** Asks for data that the next `get` of this address takes: the answer comes while scripts still load. */
export function begin(path: string): void {
  const answer = fetch(path, { headers: headers() });
  // Whoever takes the answer is told of its failure.
  answer.catch(() => undefined);
  begun.set(path, answer);
}

/** Answer of a request for data. */
export async function get<T>(path: string, ask: Record<string, string | number> = {}): Promise<T> {
  const query = new URLSearchParams(Object.entries(ask).map(([key, value]) => [key, `${value}`]));
  const address = query.size ? `${path}?${query}` : path;
  const answer = begun.get(address) ?? fetch(address, { headers: headers() });
  begun.delete(address);
  return (await answered(await answer)).json() as Promise<T>;
}

/** Answer of a request that changes something, or carries much. */
export async function send<T>(path: string, body: unknown = {}, method = "POST"): Promise<T> {
  const answer = await fetch(path, { method, headers: headers(), body: JSON.stringify(body) });
  return (await answered(answer)).json() as Promise<T>;
}

/** Content of a page, such as a report. */
export async function page(path: string, ask: [string, string][]): Promise<Blob> {
  const answer = await fetch(`${path}?${new URLSearchParams(ask)}`, { headers: headers() });
  return (await answered(answer)).blob();
}

/** Lines of JSON of an answer that does not end, each as it comes. */
export async function* lines<T>(path: string, signal: AbortSignal): AsyncGenerator<T> {
  const answer = await answered(await fetch(path, { headers: headers(), signal }));
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) if (part) yield JSON.parse(part) as T;
  }
}
