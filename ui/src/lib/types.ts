/** Answers of the server; python/airpath/ui has the same names. */

import type { DriveStatus } from "./course";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Tree = { [key: string]: Json };

export interface Problem {
  line: number | null;
  column: number | null;
  key: string | null;
  message: string;
  suggestion: string | null;
  valid: string[];
}
export interface Checked {
  valid: boolean;
  problems: Problem[];
  tree: Tree | null;
}
export interface Edit {
  path: (string | number)[];
  value?: Json;
}
export interface Profile {
  name: string;
  description: string;
  source: string;
  uplink_rate: string;
  downlink_rate: string;
  uplink_delay: string;
  downlink_delay: string;
}
export type Points = [number[], number[]];
export type Thumbnail = Record<"uplink" | "downlink", Record<"throughput" | "delay", Points>>;
export interface Trace {
  duration_s: number;
  repeats: boolean;
  mean_bps: number;
  rates: Points;
}
export interface Mark {
  t: number;
  kind: string;
  text: string;
  direction: string;
}
export interface Update {
  t?: number;
  curves?: Record<string, Points>;
  marks?: Mark[];
  drops?: Record<string, number>;
  counts?: Record<string, number>;
  live?: {
    t?: number;
    state?: string | null;
    users?: Record<string, string>;
    verdict?: string;
    reasons?: string[];
    gone?: string;
  };
  drive?: DriveStatus;
  ended?: boolean;
  killed?: boolean;
  error?: string;
}
export interface ActiveRun {
  run: number;
  folder: string;
  command: string[];
  seed: number;
  hops: string[];
  states: string[];
  state: string | null;
  t: number;
  users: { name: string; states: string[]; state: string }[];
}
export interface StartedRun {
  name: string;
  folder: string;
  command: string;
  began: number;
  exit_status: number | null;
  running: boolean;
}
export interface PastRun {
  name: string;
  changed: number;
  scenario?: string;
  clock?: string;
  seed?: number;
  duration_s?: number;
  verdict?: string;
  status?: string;
  error?: string;
}
export interface About {
  version: string;
  workspace: string;
  units: Record<string, string>;
  causes: { name: string; text: string; colour: string; shape: string }[];
}
export interface Packet {
  pdu: number;
  time_ns: number;
  direction: string;
  bits: number;
  flow: number;
  fate: string | null;
  cause: string | null;
  left_ns: number | null;
  at: string | null;
}
export interface PacketWay {
  pdu: number;
  way: {
    time_ns: number;
    hop: string;
    direction: string;
    stage: string;
    kind: string;
    cause: string;
    bits: number;
    queue_packets: number;
    queue_bytes: number;
    state: string;
    emitted_ns: number | null;
  }[];
  seen: {
    end: string;
    way: "in" | "out";
    length: number;
    hex: string;
    layers: { layer: string; fields: { name: string; at: number; size: number; text: string }[] }[];
  }[];
  /** What the engine says of the captures, as that one is damaged. */
  said: string[];
}
