// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Replay of a cellular link from its behaviour under light and under heavy load.
//!
//! Source: Sentosa et al. 2025 (CellReplay, NSDI), section on replay, and the behaviour of its
//! published emulator. A *light* trace has, for times of the recording, a base delay and the
//! opportunities of a short train of packets after an idle time; a *heavy* trace is one of mm-link.
//! A packet that finds the link idle begins a train at the light trace's present line: it is delayed by
//! the base delay, interpolated to the next line. Those that follow use the train's opportunities, of
//! which each carries a packet of 1500 bytes or several smaller ones, never a part of one: they leave
//! a base delay after their opportunity. What finds none left goes, the base delay or the train's
//! length later, through a queue that is served by the heavy trace; and so does what would otherwise
//! overtake. A train begins anew when no packet has been on its way for `timer`.
//!
//! Limits: packets leave the hop's queue as they come (the send buffer has to be unlimited), so that
//! the queue before the heavy trace has no limit; loss, and offsets for packet sizes, are not part of
//! it. An opportunity carries 1500 bytes here, and 1504 with the header of TUN there. The light trace counts from the beginning of the run, as all else,
//! where the emulator begins it with the first packet. Times within it are whole milliseconds, as there.

use std::collections::VecDeque;

use airpath_core::{Bits, Direction, DrawKey, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mahimahi::{MahimahiTrace, OPPORTUNITY_BITS, Opportunities};
use super::{InFlight, Transmit, next_frame};
use crate::file::{AnyFile, FileFormat, FileRef, VisitFile};
use crate::medium::Air;
use crate::registry::Configured;

const MILLISECOND_NS: u64 = 1_000_000;

/// Light and heavy load: `{ type = "cellreplay", light = "up-delay-light-pdo", heavy = "up-pdo" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellReplayConfig {
    /// The trace of base delays and trains under light load.
    pub light: FileRef<LightTrace>,
    /// The trace of opportunities under heavy load, in the format of mm-link.
    pub heavy: FileRef<MahimahiTrace>,
    /// Idle time after which the next packet begins a train.
    #[serde(default)]
    pub timer: Span,
}

/// One recorded train.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Train {
    at_ms: u64,
    base_delay_ms: u64,
    /// Opportunities in milliseconds after the first packet of the train.
    opportunities: Vec<u64>,
}

/// Base delays and trains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LightTrace {
    trains: Vec<Train>,
    /// No packet takes less than this.
    least_base_delay_ms: u64,
}

impl FileFormat for LightTrace {
    const WHAT: &'static str = "trace of CellReplay under light load";

    fn parse(bytes: &[u8]) -> Result<LightTrace, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text in UTF-8")?;
        let mut trains: Vec<Train> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |problem: String| format!("line {}: {problem}", index + 1);
            let number = |word: &str| {
                let number = word.parse::<u64>().ok().filter(|number| *number <= 1_000_000_000_000);
                number.ok_or_else(|| wrong(format!("`{word}` is no time in whole milliseconds")))
            };
            let numbers = line.split_whitespace().map(number).collect::<Result<Vec<u64>, String>>()?;
            let [at_ms, base_delay_ms, opportunities @ ..] = numbers.as_slice() else {
                return Err(wrong("a line has a time, a base delay, and opportunities, in milliseconds".into()));
            };
            if opportunities.is_sorted() && trains.last().is_none_or(|last| last.at_ms < *at_ms) {
                let opportunities = opportunities.to_vec();
                trains.push(Train { at_ms: *at_ms, base_delay_ms: *base_delay_ms, opportunities });
            } else {
                return Err(wrong("times go up from line to line, and opportunities within a line".into()));
            }
        }
        match trains.len() {
            0..3 => Err("it has less than three lines".into()),
            _ => {
                let least_base_delay_ms = trains.iter().map(|train| train.base_delay_ms).min().unwrap_or(0);
                Ok(LightTrace { trains, least_base_delay_ms })
            }
        }
    }
}

impl LightTrace {
    /// The train in force at `at_ms`, and the base delay then, interpolated to the next line and
    /// rounded down. The last line only ends the trace, which begins anew then.
    fn train(&self, at_ms: u64) -> (usize, u64) {
        let (first, last) = (self.trains[0].at_ms, self.trains[self.trains.len() - 1].at_ms);
        let within = first + at_ms % (last - first);
        let index = self.trains.partition_point(|train| train.at_ms <= within) - 1;
        let (one, next) = (&self.trains[index], &self.trains[index + 1]);
        let (gone, length) = ((within - one.at_ms) as i128, (next.at_ms - one.at_ms) as i128);
        let (from, to) = (one.base_delay_ms as i128, next.base_delay_ms as i128);
        (index, ((from * length + (to - from) * gone) / length) as u64)
    }
}

impl Configured for CellReplayConfig {
    type Model = CellReplay;

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("light", &mut self.light);
        visit("heavy", &mut self.heavy);
    }

    fn build(&self, _key: DrawKey) -> CellReplay {
        CellReplay::new(self)
    }

    fn examples() -> Vec<CellReplayConfig> {
        let light =
            LightTrace::parse(b"0 10 0 2 2 7\n40 16 0 5\n90 12 0 1 1 1\n130 10 0\n").expect("an example is valid");
        let heavy = MahimahiTrace::parse(b"3\n4\n4\n9\n15\n").expect("an example is valid");
        vec![CellReplayConfig {
            light: FileRef::with_data("example.light", light),
            heavy: FileRef::with_data("example.heavy", heavy),
            timer: Span::from_millis(20),
        }]
    }
}

impl std::fmt::Display for CellReplayConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "as in {}", self.heavy.name())
    }
}

/// The train that packets now use.
#[derive(Clone, Copy, Debug)]
struct Running {
    index: usize,
    base_delay_ns: u64,
    began: Time,
    /// The next opportunity, and what is left of it.
    next: usize,
    bits_left: u64,
}

/// A packet that waits for its delay.
#[derive(Clone, Debug)]
struct Delayed {
    due: Time,
    by_heavy: bool,
    frame: InFlight,
}

/// A transmitter that replays a cellular link.
#[derive(Clone, Debug)]
pub struct CellReplay {
    config: CellReplayConfig,
    running: Option<Running>,
    delayed: VecDeque<Delayed>,
    /// Departure of the last packet from the train.
    last_due: Time,
    /// Packets that wait for opportunities of the heavy trace.
    queue: VecDeque<InFlight>,
    heavy: Opportunities,
    requested: Time,
}

impl CellReplay {
    /// An idle transmitter.
    pub fn new(config: &CellReplayConfig) -> CellReplay {
        CellReplay {
            config: config.clone(),
            running: None,
            delayed: VecDeque::new(),
            last_due: Time::ZERO,
            queue: VecDeque::new(),
            heavy: Opportunities::of_trace(&config.heavy),
            requested: Time::NEVER,
        }
    }

    /// Time at which a packet of `bits` that comes at `at` has its delay behind it, and true if the heavy trace
    /// follows.
    fn delay(&mut self, at: Time, bits: u64) -> (Time, bool) {
        let light = self.config.light.data();
        // In whole milliseconds, as there: what comes within one belongs together.
        let floor = |time: Time| time.nanos() / MILLISECOND_NS;
        let begins_anew = self.running.is_none_or(|running| {
            floor(at + Span::from_nanos(running.base_delay_ns)) > floor(self.last_due + self.config.timer)
        });
        let (due, by_heavy) = if begins_anew {
            let (index, base_delay_ms) = light.train(at.nanos() / MILLISECOND_NS);
            let base_delay_ns = base_delay_ms * MILLISECOND_NS;
            let bits_left = OPPORTUNITY_BITS.saturating_sub(bits);
            self.running = Some(Running { index, base_delay_ns, began: at, next: 0, bits_left });
            (at + Span::from_nanos(base_delay_ns), false)
        } else {
            let Some(running) = &mut self.running else { return (at, true) };
            let opportunities = &light.trains[running.index].opportunities;
            let since = at.since(running.began).nanos();
            let after = |index: usize| opportunities.get(index).map(|ms| ms * MILLISECOND_NS);
            while after(running.next).is_some_and(|then| then < since) {
                running.next += 1;
                running.bits_left = OPPORTUNITY_BITS;
            }
            if running.bits_left < bits {
                running.next += 1;
                running.bits_left = OPPORTUNITY_BITS;
            }
            running.bits_left = running.bits_left.saturating_sub(bits);
            let base = Span::from_nanos(running.base_delay_ns);
            match after(running.next) {
                Some(then) => (running.began + Span::from_nanos(then) + base, false),
                None => {
                    let end = opportunities.last().map_or(0, |ms| ms * MILLISECOND_NS);
                    ((at + base).max(at + Span::from_nanos(end)), true)
                }
            }
        };
        // In order, whatever the train says.
        let by_heavy = by_heavy || due < self.last_due;
        self.last_due = self.last_due.max(due);
        (self.last_due, by_heavy)
    }
}

impl Transmit for CellReplay {
    fn request(&mut self, at: Time) {
        self.requested = self.requested.min(at);
    }

    fn next_deadline(&self) -> Time {
        let delayed = self.delayed.front().map_or(Time::NEVER, |first| first.due);
        self.requested.min(delayed).min(self.heavy.next_deadline())
    }

    fn step<A: Air>(&mut self, at: Time, direction: Direction, air: &mut A) {
        if self.heavy.next_deadline() <= at {
            self.heavy.serve(at, &mut self.queue, |InFlight { grant, frame, .. }| air.sent(at, &grant, frame));
        }
        while let Some(first) = self.delayed.pop_front_if(|first| first.due <= at) {
            if first.by_heavy || !self.queue.is_empty() {
                self.queue.push_back(first.frame);
                self.heavy.request(at);
            } else {
                air.sent(at, &first.frame.grant, first.frame.frame);
            }
        }
        if self.requested <= at {
            let mut none = VecDeque::new();
            while let Some(frame) = next_frame(&mut none, at, direction, air) {
                let (due, by_heavy) = self.delay(at, frame.bits_left);
                self.delayed.push_back(Delayed { due, by_heavy, frame });
            }
            self.requested = Time::NEVER;
        }
    }

    fn least_time(&self, _at: Time, _bits: Bits) -> Span {
        // A train goes on with the base delay of its beginning, whatever the trace says by then.
        Span::from_nanos(self.config.light.data().least_base_delay_ms * MILLISECOND_NS)
    }

    fn hand_over(&mut self, _at: Time) -> VecDeque<InFlight> {
        let mut frames = std::mem::take(&mut self.queue);
        frames.extend(self.delayed.drain(..).map(|delayed| delayed.frame));
        frames
    }

    fn take_over(&mut self, at: Time, frames: VecDeque<InFlight>) {
        for frame in frames {
            let (due, by_heavy) = self.delay(at, frame.bits_left);
            self.delayed.push_back(Delayed { due, by_heavy, frame });
        }
    }
}
