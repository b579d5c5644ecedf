// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Time and sleep. Every sleep has an absolute end: relative ones drift, and the kernel's slack
//! makes those of less than a millisecond several times too long.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// CLOCK_MONOTONIC now, in ns.
pub fn monotonic_ns() -> u64 {
    // The clock always exists.
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or_else(|_| TimeSpec::new(0, 0));
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Sleeps until a time of CLOCK_MONOTONIC; not at all if it has passed.
///
/// # Errors
/// The kernel's, if it refuses the time.
pub fn sleep_until(deadline_ns: u64) -> io::Result<()> {
    let deadline = TimeSpec::new((deadline_ns / 1_000_000_000) as i64, (deadline_ns % 1_000_000_000) as i64);
    loop {
        match clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &deadline) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Asks the kernel not to delay the wake-ups of the calling thread (by default up to 50 µs).
pub fn wake_exactly() {
    // SAFETY: the call takes numbers only. A refusal leaves the default, which is no error.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// A timer that can be waited for together with other descriptors.
pub struct Alarm(TimerFd);

impl Alarm {
    /// Makes one that is not set.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm(TimerFd::new(TimerClock::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?))
    }

    /// Sets it to a time of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set(&self, deadline_ns: u64) -> io::Result<()> {
        // Zero would switch it off.
        let at = Expiration::OneShot(Duration::from_nanos(deadline_ns.max(1)).into());
        Ok(self.0.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits, without a limit, until some of `ends` can be read (or have failed); which of them.
///
/// # Errors
/// The kernel's.
pub fn wait_for<const N: usize>(ends: [BorrowedFd<'_>; N]) -> io::Result<[bool; N]> {
    let mut ends = ends.map(|end| PollFd::new(end, PollFlags::POLLIN));
    loop {
        match poll(&mut ends, PollTimeout::NONE) {
            Ok(_) => return Ok(ends.map(|end| end.any().unwrap_or(true))),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_and_alarms_are_never_early() {
        let deadline = monotonic_ns() + 3_000_000;
        sleep_until(deadline).unwrap();
        assert!(monotonic_ns() >= deadline);
        let alarm = Alarm::new().unwrap();
        let deadline = monotonic_ns() + 3_000_000;
        alarm.set(deadline).unwrap();
        assert_eq!(wait_for([alarm.as_fd()]).unwrap(), [true]);
        assert!(monotonic_ns() >= deadline);
        // A deadline that has passed costs no sleep that could fail.
        sleep_until(1).unwrap();
    }
}
