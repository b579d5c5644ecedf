// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `clock_nanosleep` on CLOCK_MONOTONIC for a length of time.

use std::io;

use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use super::{Method, Sleep, Waiting, over, time_spec};

struct Relative;

impl Sleep for Relative {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        over(clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty(), &time_spec(span_ns)))
    }
}

pub const METHOD: Method = Method {
    name: "clock_nanosleep",
    what: "clock_nanosleep() for a length of time",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| Ok(Box::new(Relative)),
};
