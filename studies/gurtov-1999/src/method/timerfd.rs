// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A timer descriptor set for a length of time, and read.

use std::io;

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::{Method, Sleep, Waiting, over, refused, time_spec};

struct Relative(TimerFd);

impl Sleep for Relative {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        // Nought would disarm the timer.
        self.0.set(Expiration::OneShot(time_spec(span_ns.max(1))), TimerSetTimeFlags::empty())?;
        over(self.0.wait())
    }
}

pub const METHOD: Method = Method {
    name: "timerfd",
    what: "a timer descriptor set for a length of time, and read",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| match TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC) {
        Ok(timer) => Ok(Box::new(Relative(timer))),
        Err(errno) => Err(refused("timerfd_create", errno)),
    },
};
