// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A POSIX timer that signals the sleeping thread, and the signal waited for.

use std::io;

use nix::sys::signal::{SigEvent, SigSet, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::gettid;

use super::{Method, Sleep, Unavailable, Waiting, over, refused, time_spec};

const SIGNAL: Signal = Signal::SIGALRM;

struct PosixTimer {
    timer: Timer,
    signals: SigSet,
}

impl Sleep for PosixTimer {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        // Nought would disarm the timer.
        self.timer.set(Expiration::OneShot(time_spec(span_ns.max(1))), TimerSetTimeFlags::empty())?;
        over(self.signals.wait())
    }
}

fn open() -> Result<Box<dyn Sleep>, Unavailable> {
    let mut signals = SigSet::empty();
    signals.add(SIGNAL);
    // Only this thread gets the signal, and only by asking for it.
    signals.thread_block().map_err(|errno| refused("pthread_sigmask", errno))?;
    let notify = SigevNotify::SigevThreadId { signal: SIGNAL, thread_id: gettid().as_raw(), si_value: 0 };
    let timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify))
        .map_err(|errno| refused("the kernel refuses a POSIX timer", errno))?;
    Ok(Box::new(PosixTimer { timer, signals }))
}

pub const METHOD: Method = Method {
    name: "posix_timer",
    what: "timer_create() with a signal to the thread, and sigwait()",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| open(),
};
