// The colours that were chosen. They stand in a cookie, which holds for all ports of this machine: each
// `airpath ui` may have another. Reading it is quick, where the browser's store would hold up the first view.

const NAME = "airpath-theme";

export function storedTheme(): string {
  return new RegExp(`(?:^|; )${NAME}=(dark|light)(?:;|$)`).exec(document.cookie)?.[1] ?? "auto";
}

export function keepTheme(theme: string): void {
  document.cookie = `${NAME}=${theme}; SameSite=Strict; Path=/; Max-Age=${theme === "auto" ? 0 : 31536000}`;
}
