// Names of curves: KIND/PLACE, and in a cell KIND/PLACE@USER.

/** Kinds that are no user's: of the machine, and of sockets, which have names of their own. */
const OF_NOBODY = ["lateness", "cwnd", "rtt"];

function split(name: string): [string, string] {
  const at = name.indexOf("@");
  return at < 0 ? [name, ""] : [name.slice(0, at), name.slice(at + 1)];
}

/** Name without the user. */
export function placeOf(name: string): string {
  return split(name)[0];
}

/** The users that have curves. */
export function usersOf(names: readonly string[]): string[] {
  return [...new Set(names.map((name) => split(name)[1]))].filter(Boolean).sort();
}

/** The curves of one kind: those of a user, or, without one, those that are nobody's alone. */
export function namesFor(names: readonly string[], kind: string, user: string): string[] {
  const kinds = kind === "throughput" ? ["throughput", "offered"] : [kind];
  const owner = OF_NOBODY.includes(kind) ? "" : user;
  return names.filter((name) => kinds.includes(name.split("/")[0]!) && split(name)[1] === owner);
}

/** What a curve is called beside others of its kind. */
export function labelOf(name: string): string {
  const place = placeOf(name);
  return place.split("/").slice(place.startsWith("offered") ? 0 : 1).join(" ") || place;
}
