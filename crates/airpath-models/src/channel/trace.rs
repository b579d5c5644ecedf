// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors replayed from a trace.
//!
//! Source: Eckhardt and Steenkiste 2002, section 4; Singh 2000, section 5.1. The trace's records are
//! taken one after the other, for each packet, frame or bit, from where the process begins; a change of
//! its parameters goes on where the trace is, and another file begins at its first record. Positions in
//! a record that the packet or frame does not have are ignored, and a cut behind its end is none. Per millisecond or
//! block, a record is that of every frame that belongs to it.

use airpath_core::{DrawKey, Time};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use super::trace_file::{ErrorTrace, Record};
use crate::file::{FileRef, VisitFile};
use crate::registry::{Configured, Reconfigured};

/// A trace of errors, per packet, frame, bit, millisecond or block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceConfig {
    /// The file with the trace.
    pub file: FileRef<ErrorTrace>,
    /// True: the trace begins anew at its end; false: nothing is hit after it.
    #[serde(default = "yes")]
    pub repeat: bool,
}

fn yes() -> bool {
    true
}

impl Configured for TraceConfig {
    type Model = Trace;

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn build(&self, _key: DrawKey) -> Trace {
        Trace::new(self)
    }

    fn examples() -> Vec<TraceConfig> {
        use crate::file::FileFormat;
        let of = |name: &str, text: &str, repeat: bool| {
            let trace = ErrorTrace::parse(text.as_bytes()).expect("an example is valid");
            TraceConfig { file: FileRef::with_data(name, trace), repeat }
        };
        vec![of("blocks.trace", "0010 1100 0001", true), of("once.trace", "ok 3\nhit 5\nat 300 hit", false)]
    }
}

impl Reconfigured for TraceConfig {
    fn configure(&self, model: &mut Trace, _at: Time) {
        model.configure(self);
    }
}

/// A trace with every kind of record, which only packets and frames can suffer.
pub(super) fn example_with_outcomes() -> TraceConfig {
    use crate::file::FileFormat;
    let text = "ok 2\nlost\ntruncated 30\nflipped 0 7-9 4000\nhit\ntruncated 100 flipped 5 900\ntruncated 0\nok";
    let trace = ErrorTrace::parse(text.as_bytes()).expect("an example is valid");
    TraceConfig { file: FileRef::with_data("walk.trace", trace), repeat: true }
}

/// The process that replays a trace.
#[derive(Clone, Debug)]
pub struct Trace {
    trace: Arc<ErrorTrace>,
    repeat: bool,
    /// The number of the next record, and of the run in which it lies.
    position: u64,
    run: usize,
    /// The run in which the record lies that was taken last.
    last_run: usize,
}

impl Trace {
    pub(super) fn new(config: &TraceConfig) -> Trace {
        Trace { trace: config.file.data().clone(), repeat: config.repeat, position: 0, run: 0, last_run: 0 }
    }

    pub(super) fn configure(&mut self, config: &TraceConfig) {
        let trace = config.file.data();
        if !Arc::ptr_eq(trace, &self.trace) {
            *self = Trace::new(config);
        }
        self.repeat = config.repeat;
    }

    /// The number of the run in which the next record lies, and how many records it still has.
    fn next_run(&mut self) -> (usize, u64) {
        if self.repeat && self.position >= self.trace.units() {
            // After a change of `repeat` more than one round may have passed.
            self.position %= self.trace.units().max(1);
            self.run = self.trace.run_at(self.position);
        }
        while self.trace.end(self.run).is_some_and(|end| end <= self.position) {
            self.run += 1;
        }
        let left = self.trace.end(self.run).map_or(u64::MAX, |end| end - self.position);
        (self.run, left)
    }
}

impl ErrorProcess for Trace {
    fn hits(&mut self, step: u64) -> bool {
        !matches!(self.record(step), Record::Ok)
    }

    fn record(&mut self, _: u64) -> Record<'_> {
        let (run, _) = self.next_run();
        self.position = self.position.saturating_add(1);
        self.last_run = run;
        self.trace.record(run)
    }

    /// The record of an interval is that of every frame in it.
    fn frame_record(&mut self, _frame: u64) -> Option<Record<'_>> {
        Some(self.trace.record(self.last_run)).filter(|record| !matches!(record, Record::Ok | Record::Hit))
    }

    fn hit_bits(&mut self, _: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let mut passed = 0;
        let mut done = false;
        while passed < bits {
            let (run, left) = self.next_run();
            let here = left.min(bits - passed);
            if !done && self.trace.record(run) != Record::Ok {
                let hit = if only_first { 1 } else { here };
                positions.extend((passed..passed + hit).map(|position| position as u32));
                done = only_first;
            }
            passed += here;
            self.last_run = run;
            self.position = self.position.saturating_add(here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::as_units::assert_bits_are_as_units;
    use crate::file::FileFormat;

    fn process(text: &str, repeat: bool) -> Trace {
        let trace = ErrorTrace::parse(text.as_bytes()).unwrap();
        Trace::new(&TraceConfig { file: FileRef::with_data("t", trace), repeat })
    }

    #[test]
    fn a_trace_repeats_or_ends() {
        let hits = |repeat| {
            let mut process = process("01 1", repeat);
            (0..8).map(|step| u8::from(process.hits(step))).collect::<Vec<_>>()
        };
        assert_eq!(hits(true), [0, 1, 1, 0, 1, 1, 0, 1]);
        assert_eq!(hits(false), [0, 1, 1, 0, 0, 0, 0, 0]);
    }

    /// Bits are as units, however they are cut into transmissions.
    #[test]
    fn bits_are_as_units() {
        for repeat in [false, true] {
            let text = "0110 1\nok 70\nhit 30\n01";
            assert_bits_are_as_units(|| process(text, repeat), &[1, 3, 64, 1_000], &format!("repeat {repeat}"));
        }
    }

    #[test]
    fn a_change_goes_on_where_the_trace_is_and_another_file_begins_anew() {
        let trace = ErrorTrace::parse(b"0111").unwrap();
        let config = TraceConfig { file: FileRef::with_data("t", trace), repeat: false };
        let mut process = Trace::new(&config);
        assert_eq!([0, 1].map(|step| process.hits(step)), [false, true]);
        process.configure(&TraceConfig { repeat: true, ..config.clone() });
        assert_eq!([2, 3, 4].map(|step| process.hits(step)), [true, true, false]);
        // Ended long ago, a trace that is to repeat goes on where it would be.
        let mut process = Trace::new(&config);
        assert_eq!((0..10).filter(|step| process.hits(*step)).count(), 3);
        process.configure(&TraceConfig { repeat: true, ..config });
        assert_eq!([10, 11, 12].map(|step| process.hits(step)), [true, true, false]);
        let other = ErrorTrace::parse(b"10").unwrap();
        process.configure(&TraceConfig { file: FileRef::with_data("u", other), repeat: true });
        assert_eq!([13, 14].map(|step| process.hits(step)), [true, false]);
    }
}
