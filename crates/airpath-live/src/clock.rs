// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Clocks and timers of the live loop.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the timespec lives over the call. The two clocks used here
    // always exist, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC now, in ns.
pub fn monotonic_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Processor time that the calling thread has used, in ns.
pub fn thread_processor_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CLOCK_REALTIME now, in ns since 1970.
pub fn realtime_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// Offset of CLOCK_REALTIME from CLOCK_MONOTONIC; turns the kernel's receive stamps into monotonic time.
/// Measure it again now and then: the realtime clock may be stepped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Realtime minus monotonic, in ns.
    pub ahead_ns: i64,
    /// The offset is known to within this many ns.
    pub uncertainty_ns: u64,
}

impl ClockOffset {
    /// Reads the clocks in turn a few times and keeps the tightest reading.
    pub fn measure() -> Self {
        Self::measure_within(0)
    }

    /// The same, content with the first reading that is so tight: for those who measure often.
    pub fn measure_within(enough_ns: u64) -> Self {
        let mut best = Self { ahead_ns: 0, uncertainty_ns: u64::MAX };
        for _ in 0..16 {
            let before = monotonic_ns();
            let realtime = realtime_ns();
            let after = monotonic_ns();
            let width = after - before;
            if width < best.uncertainty_ns {
                best = Self { ahead_ns: realtime as i64 - (before + width / 2) as i64, uncertainty_ns: width };
            }
            if width < enough_ns {
                break;
            }
        }
        best
    }

    /// The monotonic time of a stamp of the realtime clock, in ns.
    pub fn to_monotonic_ns(self, realtime_ns: u64) -> u64 {
        realtime_ns.saturating_add_signed(-self.ahead_ns)
    }
}

/// A timer that fires at an absolute time, and can be polled.
#[derive(Debug)]
pub struct DeadlineTimer {
    timer: TimerFd,
    armed_for_ns: Option<u64>,
}

impl DeadlineTimer {
    /// Makes one, not armed.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        Ok(Self { timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?, armed_for_ns: None })
    }

    /// Arms it for a time of CLOCK_MONOTONIC (in the past: it fires at once),
    /// or disarms it. Does nothing when it is armed so already.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set(&mut self, deadline_ns: Option<u64>) -> io::Result<()> {
        if deadline_ns == self.armed_for_ns {
            return Ok(());
        }
        match deadline_ns {
            // Zero would disarm it.
            Some(deadline) => self.timer.set(
                Expiration::OneShot(Duration::from_nanos(deadline.max(1)).into()),
                TimerSetTimeFlags::TFD_TIMER_ABSTIME,
            )?,
            None => self.timer.unset()?,
        }
        self.armed_for_ns = deadline_ns;
        Ok(())
    }

    /// Takes note that it fired: it is not armed any more.
    ///
    /// # Errors
    /// The kernel's.
    pub fn acknowledge(&mut self) -> io::Result<()> {
        self.armed_for_ns = None;
        let mut count = [0; 8];
        match nix::unistd::read(&self.timer, &mut count) {
            Ok(_) | Err(nix::errno::Errno::EAGAIN) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl AsFd for DeadlineTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    fn fires_within(timer: &DeadlineTimer, timeout_ms: u16) -> bool {
        let mut ends = [PollFd::new(timer.as_fd(), PollFlags::POLLIN)];
        poll(&mut ends, PollTimeout::from(timeout_ms)).unwrap() == 1
    }

    #[test]
    fn the_timer_never_fires_early_and_can_be_disarmed() {
        let mut timer = DeadlineTimer::new().unwrap();
        let deadline = monotonic_ns() + 5_000_000;
        timer.set(Some(deadline)).unwrap();
        assert!(fires_within(&timer, 10_000));
        assert!(monotonic_ns() >= deadline);
        timer.acknowledge().unwrap();
        assert!(!fires_within(&timer, 0));
        timer.set(Some(1)).unwrap();
        assert!(fires_within(&timer, 10_000));
        timer.set(None).unwrap();
        assert!(!fires_within(&timer, 0));
    }

    #[test]
    fn stamps_convert_to_monotonic_time() {
        let offset = ClockOffset::measure();
        let before = monotonic_ns();
        let stamp = offset.to_monotonic_ns(realtime_ns());
        let after = monotonic_ns();
        let slack = offset.uncertainty_ns + 1_000_000;
        assert!(stamp + slack >= before && stamp <= after + slack);
    }
}
