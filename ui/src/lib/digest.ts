// Short digests of texts: whether two are the same, without keeping both.

/** Length and FNV-1a hash of a text. */
export function digest(text: string): string {
  let hash = 0x811c9dc5;
  for (let place = 0; place < text.length; place++) hash = Math.imul(hash ^ text.charCodeAt(place), 0x01000193);
  return `${text.length}:${(hash >>> 0).toString(16)}`;
}
