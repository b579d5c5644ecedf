// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `clock_nanosleep` on CLOCK_MONOTONIC until an instant, so that preemption between reading the
//! clock and the call makes nothing later.

use std::io;

use airpath_live::clock::monotonic_ns;
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use super::{Method, Sleep, Waiting, over, time_spec};

struct Absolute;

impl Sleep for Absolute {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let until = time_spec(monotonic_ns().saturating_add(span_ns));
        over(clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until))
    }
}

pub const METHOD: Method = Method {
    name: "clock_nanosleep_absolute",
    what: "clock_nanosleep() until an instant",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| Ok(Box::new(Absolute)),
};
