// The scenario that is being built, shared by all views, with its history and its last check.

import { get, Refused, send } from "./api";
import { digest } from "./digest";
import type { About, Checked, Edit, Problem, Tree } from "./types";

const DRAFT = "airpath-draft";
const DRAFT_FILE = "airpath-draft-file";
const START = `name = "my-link"

[[hops]]
name = "radio"

[hops.link]
propagation = "20 ms"

[hops.uplink]
rate = "5 Mbit/s"
queue = { type = "tail_drop", limit = "64 kB" }

[hops.downlink]
rate = "20 Mbit/s"
queue = { type = "tail_drop", limit = "256 kB" }
`;

/** The file of the draft, whether it has the draft, and the digest of what it had, before a reload. */
function draftFile(): { file: string | null; saved: boolean; had: string } {
  try {
    const { file, saved, had } = JSON.parse(sessionStorage.getItem(DRAFT_FILE) ?? "{}") as Record<string, unknown>;
    return { file: typeof file === "string" ? file : null, saved: saved !== false, had: String(had) };
  } catch {
    return { file: null, saved: true, had: "" };
  }
}

const before = draftFile();

class Scenario {
  text = $state(sessionStorage.getItem(DRAFT) ?? START);
  file = $state(before.file);
  saved = $state(before.saved);
  tree = $state<Tree | null>(null);
  problems = $state<Problem[]>([]);
  valid = $state(false);
  checking = $state(false);
  failure = $state("");
  past = $state<string[]>([]);
  future = $state<string[]>([]);
  /** Digest of the file's text when it was read or saved last. */
  private had = before.had;
  private asked = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Takes a text that was typed; the check comes when typing pauses. */
  type(text: string): void {
    this.put(text);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.check(), 250);
  }

  /** Takes another scenario. */
  async open(text: string, file: string | null): Promise<void> {
    this.file = file;
    this.put(text);
    [this.saved, this.had] = [true, digest(text)];
    this.keep();
    await this.check();
  }

  /** Takes note that a file has a text now: the one that is shown, unless that was changed meanwhile. */
  stored(file: string, text: string): void {
    [this.file, this.saved, this.had] = [file, this.text === text, digest(text)];
    this.keep();
  }

  /** Reads the file of a draft that was saved again, as it may have been changed elsewhere. */
  async again(): Promise<void> {
    const [file, shown] = [this.file, this.text];
    if (!file || !this.saved) return;
    const stays = () => this.file === file && this.saved && this.text === shown;
    try {
      const { text } = await get<{ text: string }>("/api/file", { name: file });
      if (text !== shown && stays()) await this.open(text, file);
    } catch (error) {
      // A file that is gone has the draft no more.
      if (error instanceof Refused && error.status === 404 && stays()) {
        this.saved = false;
        this.keep();
      } else this.failure = (error as Error).message;
    }
  }

  /** Says whether the file has what it had when it was read or saved last. */
  async unchanged(): Promise<boolean> {
    try {
      const { text } = await get<{ text: string }>("/api/file", { name: this.file ?? "" });
      return digest(text) === this.had;
    } catch (error) {
      if (error instanceof Refused) return false;
      throw error;
    }
  }

  /** The scenario as requests tell it; files that it names are beside its own. */
  asking(): { toml: string; file: string } {
    return { toml: this.text, file: this.file ?? "" };
  }

  fresh(): Promise<void> {
    return this.open(START, null);
  }

  private put(text: string): void {
    if (text === this.text) return;
    this.past = [...this.past.slice(-99), this.text];
    this.future = [];
    this.show(text);
  }

  private show(text: string): void {
    this.text = text;
    this.saved = false;
    this.keep();
  }

  /** Keeps the draft for a reload. */
  private keep(): void {
    try {
      sessionStorage.setItem(DRAFT, this.text);
      sessionStorage.setItem(DRAFT_FILE, JSON.stringify({ file: this.file, saved: this.saved, had: this.had }));
    } catch {
      // A full store: the draft lives as long as the page.
    }
  }

  async undo(): Promise<void> {
    const last = this.past.at(-1);
    if (last === undefined) return;
    this.past = this.past.slice(0, -1);
    this.future = [...this.future, this.text];
    this.show(last);
    await this.check();
  }

  async redo(): Promise<void> {
    const next = this.future.at(-1);
    if (next === undefined) return;
    this.future = this.future.slice(0, -1);
    this.past = [...this.past, this.text];
    this.show(next);
    await this.check();
  }

  /** Has the text checked; a check of the same text that is under way does for both. */
  check(): Promise<void> {
    if (this.pending?.text === this.text) return this.pending.done;
    const pending = { text: this.text, done: this.ask() };
    this.pending = pending;
    return pending.done.finally(() => {
      if (this.pending === pending) this.pending = null;
    });
  }

  private pending: { text: string; done: Promise<void> } | null = null;

  private async ask(): Promise<void> {
    const number = ++this.asked;
    this.checking = true;
    try {
      const checked = await send<Checked>("/api/scenario/check", this.asking());
      if (number === this.asked) this.took(checked);
    } catch (error) {
      if (number === this.asked) this.failure = String((error as Error).message);
    } finally {
      if (number === this.asked) this.checking = false;
    }
  }

  private took(checked: Checked): void {
    if (checked.tree) this.tree = checked.tree;
    this.problems = checked.problems;
    this.valid = checked.valid;
    this.failure = "";
  }

  private queue: Promise<void> = Promise.resolve();

  /** Changes values; changes that come together are made one after the other. */
  edit(...edits: Edit[]): Promise<void> {
    this.queue = this.queue.then(async () => {
      try {
        const answer = await send<{ toml: string; checked: Checked }>("/api/scenario/edit", {
          ...this.asking(),
          edits,
        });
        this.asked++;
        this.put(answer.toml);
        this.took(answer.checked);
      } catch (error) {
        this.failure = (error as Error).message;
      }
    });
    return this.queue;
  }
}

export const scenario = new Scenario();

class Known {
  about = $state<About | null>(null);

  async load(): Promise<void> {
    this.about = await get<About>("/api/about");
  }
}

export const known = new Known();
