// The line that puts the user's own program behind a link.

import { TEXT } from "../text";

export function commandLine(file: string | null): string {
  return `airpath exec --scenario ${file ?? "SCENARIO.toml"} --out results/NAME -- YOUR-COMMAND`;
}

/** Copies a text; returns words for the user on whether that was possible. */
export async function copied(text: string): Promise<string> {
  try {
    // Pages that come over plain HTTP from another machine have no clipboard.
    await navigator.clipboard.writeText(text);
    return TEXT.copied;
  } catch {
    return TEXT.notCopied(text);
  }
}
