// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Waiting for a packet, a deadline or a command, whichever comes first.
//!
//! Source: Gurtov 1999, section 3, and Kojo et al. 2001, section 6: wake early and watch the clock
//! for the rest. The wake-up is an absolute timer, so that preemption between reading the clock and
//! arming it makes nothing later; what is still late is measured, never fed back into the model.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockNanosleepFlags, clock_nanosleep};

use super::stamps::StepNotifier;
use crate::{clock, series};

/// Cause of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A port has packets to read; the number it was registered with.
    Port(u32),
    /// The commands' descriptor is readable.
    Command,
}

/// Within this of a deadline nothing but the clock is looked at.
const LAST_LOOK_NS: u64 = 2_000;
const TIMER: u64 = u64::MAX;
const COMMAND: u64 = u64::MAX - 1;
const STEP: u64 = u64::MAX - 2;
/// Number of events of one look: one for each port, within limits.
const LEAST_EVENTS: usize = 64;
const MOST_EVENTS: usize = 2_048;

/// A port of the set.
struct WatchedPort {
    descriptor: RawFd,
    number: u32,
    /// False while the loop leaves it alone.
    watched: bool,
}

/// An epoll set with a timer in it.
pub struct Waiter {
    epoll: Epoll,
    timer: TimerFd,
    /// Setting of the timer (CLOCK_MONOTONIC, ns); `u64::MAX` when it is not set.
    armed_ns: u64,
    /// None where the kernel has no such timer: steps of the clock are then found by reading it.
    step_notifier: Option<StepNotifier>,
    /// True if it has rung and nobody has asked.
    stepped: bool,
    events: Vec<EpollEvent>,
    ports: Vec<WatchedPort>,
    /// Frames are deferred until the next wait.
    defers: bool,
    /// False if the kernel takes no system calls in series.
    takes_series: bool,
}

impl Waiter {
    /// A waiter on `command`, an eventfd that is never cleared by it.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new(command: BorrowedFd<'_>) -> io::Result<Waiter> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        // Edge-triggered: arming it again clears the readiness, and nobody has to read it.
        epoll.add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER))?;
        epoll.add(command, EpollEvent::new(EpollFlags::EPOLLIN, COMMAND))?;
        let step_notifier = StepNotifier::new().ok();
        if let Some(notifier) = &step_notifier {
            epoll.add(notifier.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, STEP))?;
        }
        Ok(Waiter {
            epoll,
            timer,
            armed_ns: u64::MAX,
            step_notifier,
            stepped: false,
            events: vec![EpollEvent::empty(); LEAST_EVENTS],
            ports: Vec::new(),
            defers: false,
            takes_series: false,
        })
    }

    /// From now on every wait and look sends deferred frames first, with the same system call where the kernel is
    /// that of warp.
    pub fn heed_deferred(&mut self) {
        (self.defers, self.takes_series) = (true, true);
    }

    /// Also waits for `port`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add_port(&mut self, port: BorrowedFd<'_>, number: u32) -> io::Result<()> {
        self.ports.push(WatchedPort { descriptor: port.as_raw_fd(), number, watched: true });
        // A port that one look leaves out is read late.
        self.events.resize(self.ports.len().clamp(LEAST_EVENTS, MOST_EVENTS), EpollEvent::empty());
        Ok(self.epoll.add(port, EpollEvent::new(EpollFlags::EPOLLIN, u64::from(number)))?)
    }

    /// Stops or resumes waiting for `port`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch_port(&mut self, port: BorrowedFd<'_>, number: u32, watch: bool) -> io::Result<()> {
        self.note_watched(port, watch);
        let flags = if watch { EpollFlags::EPOLLIN } else { EpollFlags::empty() };
        Ok(self.epoll.modify(port, &mut EpollEvent::new(flags, u64::from(number)))?)
    }

    /// Waits for `port` no more. One whose interface is gone would wake the loop for ever.
    pub fn forget_port(&mut self, port: BorrowedFd<'_>) {
        self.note_watched(port, false);
        // ENOENT: it is forgotten already.
        let _ = self.epoll.delete(port);
    }

    fn note_watched(&mut self, port: BorrowedFd<'_>, watched: bool) {
        let same = |known: &&mut WatchedPort| known.descriptor == port.as_raw_fd();
        self.ports.iter_mut().filter(same).for_each(|known| known.watched = watched);
        series::leave_alone(port, !watched);
    }

    /// Ports that are watched.
    fn watched(&self) -> impl Iterator<Item = &WatchedPort> {
        self.ports.iter().filter(|port| port.watched)
    }

    /// Sleeps until `until_ns` (CLOCK_MONOTONIC; `u64::MAX` for ever) or until something is readable,
    /// and hands each thing that is to `woken`. Returns whether a signal cut the sleep short, as one does that
    /// stops the process.
    ///
    /// # Errors
    /// The kernel's; an interruption by a signal is not one.
    pub fn sleep(&mut self, until_ns: u64, woken: impl FnMut(Wake)) -> io::Result<bool> {
        if self.defers && series::has_received(self.watched().map(|port| port.descriptor)) {
            // Something can be read, and the kernel does not know it.
            return self.poll(woken).map(|()| false);
        }
        let until = (until_ns != self.armed_ns).then_some(until_ns);
        self.armed_ns = until_ns;
        if let Some(result) = self
            .in_series(|waiter| series::sleep(waiter.timer.as_fd(), until, waiter.epoll.0.as_fd(), &mut waiter.events))
        {
            if result.is_err() {
                // A series that ended early may not have come to the timer.
                self.armed_ns = u64::MAX - 1;
            }
            return self.told(result, woken);
        }
        match until {
            Some(u64::MAX) => self.timer.unset()?,
            Some(_) => {
                let at = TimeSpec::from(Duration::from_nanos(until_ns));
                self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            }
            None => {}
        }
        self.wait(EpollTimeout::NONE, woken)
    }

    /// Sleeps until `until_ns` (CLOCK_MONOTONIC) whatever comes: half the system calls of
    /// [`Waiter::sleep`], and no wake-up for a packet.
    pub fn nap(&self, until_ns: u64) {
        let at = TimeSpec::from(Duration::from_nanos(until_ns));
        // Awoken by a signal the loop just looks around earlier.
        let _ = clock_nanosleep(nix::time::ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &at);
    }

    /// Sleeps until `until_ns` whatever comes, then hands what is readable to `woken`: one system call where the
    /// kernel is that of warp, and two elsewhere.
    ///
    /// # Errors
    /// The kernel's; an interruption by a signal is not one.
    pub fn nap_and_poll(&mut self, until_ns: u64, mut woken: impl FnMut(Wake)) -> io::Result<()> {
        let result =
            self.in_series(|waiter| series::nap_and_poll(until_ns, waiter.epoll.0.as_fd(), &mut waiter.events));
        if let Some(result) = result {
            // Awoken by a signal the loop just looks around earlier.
            return if self.told(result, &mut woken)? { self.poll(woken) } else { Ok(()) };
        }
        self.nap(until_ns);
        self.poll(woken)
    }

    /// Result of a series of calls; none where the kernel takes none, and then what was deferred is sent.
    fn in_series(&mut self, make: impl FnOnce(&mut Waiter) -> io::Result<usize>) -> Option<io::Result<usize>> {
        if self.takes_series {
            match make(self) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.takes_series = false,
                result => return Some(result),
            }
        }
        if self.defers {
            series::send_deferred();
        }
        None
    }

    /// Hands what is readable now to `woken`, without sleeping.
    ///
    /// # Errors
    /// The kernel's.
    pub fn poll(&mut self, woken: impl FnMut(Wake)) -> io::Result<()> {
        if self.defers {
            series::send_deferred();
        }
        self.wait(EpollTimeout::ZERO, woken).map(drop)
    }

    /// True if the wall clock was set since the last call, as far as a look or a sleep has told.
    pub fn take_clock_step(&mut self) -> bool {
        std::mem::take(&mut self.stepped)
    }

    /// Watches the clock until `deadline_ns`, and the ports with it until just before: what it sees
    /// there waits for the look that follows, but the way is in the caches then. Returns the time, which is
    /// that of CLOCK_MONOTONIC in ns.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch_clock(&mut self, deadline_ns: u64) -> io::Result<u64> {
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= deadline_ns {
                return Ok(now_ns);
            }
            if deadline_ns - now_ns > LAST_LOOK_NS {
                self.poll(|_| ())?;
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn wait(&mut self, timeout: EpollTimeout, woken: impl FnMut(Wake)) -> io::Result<bool> {
        let result = self.epoll.wait(&mut self.events, timeout);
        self.told(result.map_err(io::Error::from), woken)
    }

    /// Hands the events of a wait to `woken`; returns whether a signal cut it short.
    fn told(&mut self, result: io::Result<usize>, mut woken: impl FnMut(Wake)) -> io::Result<bool> {
        let count = match result {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        for event in &self.events[..count] {
            match event.data() {
                // An expired timer has to be set again even for the same instant.
                TIMER => self.armed_ns = u64::MAX - 1,
                COMMAND => woken(Wake::Command),
                STEP => self.stepped |= self.step_notifier.as_ref().is_some_and(StepNotifier::is_set),
                port => woken(Wake::Port(port as u32)),
            }
        }
        if self.defers {
            let received = self.watched().filter(|port| series::has_received([port.descriptor].into_iter()));
            received.for_each(|port| woken(Wake::Port(port.number)));
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_ns;
    use nix::sys::eventfd::{EfdFlags, EventFd};
    use std::os::unix::net::UnixDatagram;

    fn waiter() -> (Waiter, EventFd, EventFd) {
        let make = || EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).unwrap();
        let (notifier, port) = (make(), make());
        let mut waiter = Waiter::new(notifier.as_fd()).unwrap();
        waiter.add_port(port.as_fd(), 3).unwrap();
        (waiter, notifier, port)
    }

    fn slept(waiter: &mut Waiter, until_ns: u64) -> Vec<Wake> {
        let mut woken = Vec::new();
        waiter.sleep(until_ns, |wake| woken.push(wake)).unwrap();
        woken
    }

    #[test]
    fn a_sleep_ends_when_something_can_be_read_or_at_its_time() {
        let (mut waiter, notifier, port) = waiter();
        port.write(1).unwrap();
        assert_eq!(slept(&mut waiter, u64::MAX), [Wake::Port(3)]);
        port.read().unwrap();
        // The same instant twice, also once it has passed: an expired timer is set again.
        let until_ns = monotonic_ns() + 2_000_000;
        for _ in 0..2 {
            assert_eq!(slept(&mut waiter, until_ns), []);
            assert!(monotonic_ns() >= until_ns);
        }
        notifier.write(1).unwrap();
        assert_eq!(slept(&mut waiter, u64::MAX), [Wake::Command]);
    }

    #[test]
    fn a_nap_lasts_whatever_comes_and_the_look_after_it_finds_it() {
        let (mut waiter, notifier, port) = waiter();
        port.write(1).unwrap();
        notifier.write(1).unwrap();
        let until_ns = monotonic_ns() + 5_000_000;
        waiter.nap(until_ns);
        assert!(monotonic_ns() >= until_ns);
        let mut woken = Vec::new();
        waiter.poll(|wake| woken.push(wake)).unwrap();
        woken.sort_by_key(|wake| *wake == Wake::Command);
        assert_eq!(woken, [Wake::Port(3), Wake::Command]);
    }

    #[test]
    fn a_nap_with_a_look_is_the_same_whether_or_not_the_kernel_takes_both_at_once() {
        let (mut waiter, _notifier, port) = waiter();
        port.write(1).unwrap();
        for _ in 0..2 {
            let until_ns = monotonic_ns() + 2_000_000;
            let mut woken = Vec::new();
            waiter.nap_and_poll(until_ns, |wake| woken.push(wake)).unwrap();
            assert!(monotonic_ns() >= until_ns);
            assert_eq!(woken, [Wake::Port(3)]);
        }
    }

    #[test]
    fn one_look_sees_all_ports() {
        let (mut waiter, _notifier, _port) = waiter();
        let ports: Vec<EventFd> = (0..200)
            .map(|_| EventFd::from_value_and_flags(1, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).unwrap())
            .collect();
        for (number, port) in (10..).zip(&ports) {
            waiter.add_port(port.as_fd(), number).unwrap();
        }
        ports[..2].iter().for_each(|port| waiter.forget_port(port.as_fd()));
        let mut woken = 0;
        waiter.poll(|_| woken += 1).unwrap();
        assert_eq!(woken, 198);
    }

    #[test]
    fn what_a_series_has_received_can_be_read() {
        let (mut waiter, ..) = waiter();
        let (port, its_end) = UnixDatagram::pair().unwrap();
        waiter.add_port(port.as_fd(), 4).unwrap();
        waiter.heed_deferred();
        its_end.send(b"packet").unwrap();
        assert_eq!(series::receive_now(&[port.as_raw_fd()]), 1);
        // The kernel has nothing any more.
        assert_eq!(slept(&mut waiter, u64::MAX), [Wake::Port(4)]);
        let mut woken = Vec::new();
        waiter.nap_and_poll(0, |wake| woken.push(wake)).unwrap();
        assert_eq!(woken, [Wake::Port(4)]);
        // A port that is left alone keeps it.
        waiter.watch_port(port.as_fd(), 4, false).unwrap();
        assert_eq!(slept(&mut waiter, monotonic_ns() + 1_000_000), []);
        assert_eq!(series::receive_now(&[port.as_raw_fd()]), 0);
        waiter.watch_port(port.as_fd(), 4, true).unwrap();
        assert_eq!(slept(&mut waiter, u64::MAX), [Wake::Port(4)]);
        series::take(port.as_fd(), 1, |_, message| assert_eq!(message.bytes, b"packet")).unwrap().unwrap();
        assert_eq!(slept(&mut waiter, monotonic_ns() + 1_000_000), []);
        waiter.forget_port(port.as_fd());
        its_end.send(b"packet").unwrap();
        assert_eq!(series::receive_now(&[port.as_raw_fd()]), 0);
    }

    #[test]
    fn a_port_that_is_not_watched_wakes_nobody() {
        let (mut waiter, _notifier, port) = waiter();
        waiter.watch_port(port.as_fd(), 3, false).unwrap();
        port.write(1).unwrap();
        assert_eq!(slept(&mut waiter, monotonic_ns() + 1_000_000), []);
        waiter.watch_port(port.as_fd(), 3, true).unwrap();
        assert_eq!(slept(&mut waiter, u64::MAX), [Wake::Port(3)]);
    }
}
