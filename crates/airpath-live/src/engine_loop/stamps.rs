// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Arrival times of packets, from the kernel's stamps. Stamps are of the wall clock, which may be stepped; the
//! loop lives by CLOCK_MONOTONIC. The difference of the two changes by steps alone: what slews the wall clock
//! slews both.
//!
//! A step is told by the kernel at once ([`StepNotifier`]), found by reading the difference again now and
//! then, and looked for where a stamp cannot be right. A packet that was stamped before a step and is
//! read after it lies in the old clock: which clock a stamp is of follows from when its port was last
//! empty, from the present, and from when the step was.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use airpath_core::Span;
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::clock::{self, ClockOffset};

/// Interval of routine readings of the difference between the clocks.
const READ_AGAIN_EVERY_NS: u64 = Span::from_secs(1).nanos();
/// A packet may bear a stamp that is so much older than the last moment at which its port was empty: the
/// kernel stamps it first and hands it over later.
const HANDED_OVER_WITHIN_NS: u64 = Span::from_millis(100).nanos();
/// A stamp may lie so far ahead: clocks of processors differ.
const AHEAD_NS: u64 = Span::from_millis(1).nanos();
/// The kernel tells of a step so much later at most.
const TOLD_WITHIN_NS: u64 = Span::from_millis(10).nanos();
/// Tolerance of a reading that the kernel has not announced as a step: an interruption between two looks at
/// clocks, and what 500 ppm are in the time between two readings.
const UNTOLD_NS: u64 = Span::from_micros(520).nanos();
/// Number of steps that are kept one by one.
const KEPT: usize = 16;

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// Time of its detection, by CLOCK_MONOTONIC in ns.
    pub noticed_ns: u64,
    /// Size of the step, in ns; backwards below zero.
    pub by_ns: i64,
}

/// Observations of the wall clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockReport {
    /// The first steps.
    pub steps: Vec<ClockStep>,
    /// Number of steps.
    pub count: u64,
    /// The size of the largest, in ns.
    pub largest_ns: u64,
    /// Packets that were stamped before a step and read after it, and could be told.
    pub astride: u64,
    /// Packets whose stamps fit no clock, or two: they count as having come when they were read.
    pub unplaced: u64,
    /// Packets that were read after the last moment at which the clock was known to be right, and before a
    /// step was noticed, which was small enough to be hidden in how long they may have waited: they may have
    /// entered earlier or later than they came.
    pub doubtful: u64,
}

/// The clocks on either side of the last step, which was between two instants of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
struct Before {
    offset: ClockOffset,
    from_ns: u64,
    until_ns: u64,
}

/// Conversion of stamps to times.
pub struct Stamps {
    read: Box<dyn FnMut() -> ClockOffset + Send>,
    /// CLOCK_MONOTONIC in ns; none where time is as told.
    present_ns: Option<fn() -> u64>,
    offset: ClockOffset,
    read_at_ns: u64,
    /// Time at which the kernel last told of no step.
    quiet_at_ns: u64,
    before: Option<Before>,
    /// Stamps placed since the last reading, and since the kernel last told of no step.
    since_reading: Placed,
    since_quiet: Placed,
    /// Time of the last check that an impossible stamp caused.
    suspected_at_ns: u64,
    report: ClockReport,
}

impl Stamps {
    /// Stamps of this host's wall clock.
    pub fn of_this_host() -> Stamps {
        let stamps = Stamps::new(clock::monotonic_ns(), ClockOffset::measure);
        Stamps { present_ns: Some(clock::monotonic_ns), ..stamps }
    }

    /// Stamps of a clock that `read` compares with the monotonic one.
    pub fn new(now_ns: u64, mut read: impl FnMut() -> ClockOffset + Send + 'static) -> Stamps {
        Stamps {
            offset: read(),
            read: Box::new(read),
            present_ns: None,
            read_at_ns: now_ns,
            quiet_at_ns: now_ns,
            before: None,
            since_reading: Placed::default(),
            since_quiet: Placed::default(),
            suspected_at_ns: now_ns,
            report: ClockReport::default(),
        }
    }

    /// To be called after each waiting, at `now_ns`: whether the kernel `told` of a step.
    #[inline]
    pub fn waited(&mut self, now_ns: u64, told: bool) {
        if told || now_ns.saturating_sub(self.read_at_ns) > READ_AGAIN_EVERY_NS {
            self.look(now_ns, told);
        }
        self.quiet_at_ns = now_ns;
        self.since_quiet = Placed::default();
    }

    /// Arrival of the packet that the kernel stamped with `realtime_ns`, by CLOCK_MONOTONIC in ns. It is read
    /// at `now_ns` from a port that was last empty at `empty_ns`. None if the stamp does not tell.
    #[inline]
    pub fn place(&mut self, realtime_ns: u64, empty_ns: u64, now_ns: u64) -> Option<u64> {
        let at_ns = self.offset.to_monotonic_ns(realtime_ns);
        if self.before.is_none() && is_possible(at_ns, empty_ns, now_ns) {
            self.note(empty_ns, now_ns);
            return Some(at_ns);
        }
        self.weigh(realtime_ns, empty_ns, now_ns)
    }

    /// The run begins: what came before concerns nobody.
    pub fn begin(&mut self) {
        self.report = ClockReport::default();
        self.since_reading = Placed::default();
        self.since_quiet = Placed::default();
    }

    /// Observations since the run began.
    pub fn report(&self) -> &ClockReport {
        &self.report
    }

    /// Places a stamp where it could be of either clock.
    #[cold]
    fn weigh(&mut self, realtime_ns: u64, empty_ns: u64, now_ns: u64) -> Option<u64> {
        // A loop that loses its processor between waking and reading reads what came after it woke.
        let now_ns = self.present_ns.map_or(now_ns, |present_ns| present_ns().max(now_ns));
        let mut placed = self.either(realtime_ns, empty_ns, now_ns);
        if placed == Weighed::Neither && self.suspected_at_ns != now_ns {
            self.suspected_at_ns = now_ns;
            self.look(now_ns, false);
            placed = self.either(realtime_ns, empty_ns, now_ns);
        }
        match placed {
            Weighed::New(at_ns) => {
                self.note(empty_ns, now_ns);
                Some(at_ns)
            }
            Weighed::Old(at_ns) => {
                self.report.astride += 1;
                Some(at_ns)
            }
            Weighed::Both | Weighed::Neither => {
                self.report.unplaced += 1;
                None
            }
        }
    }

    fn either(&self, realtime_ns: u64, empty_ns: u64, now_ns: u64) -> Weighed {
        let new_ns = self.offset.to_monotonic_ns(realtime_ns);
        let is_new = is_possible(new_ns, empty_ns, now_ns);
        let Some(before) = self.before else {
            return if is_new { Weighed::New(new_ns) } else { Weighed::Neither };
        };
        let old_ns = before.offset.to_monotonic_ns(realtime_ns);
        let is_new = is_new && new_ns + TOLD_WITHIN_NS >= before.from_ns;
        let is_old = is_possible(old_ns, empty_ns, now_ns) && old_ns <= before.until_ns;
        match (is_new, is_old) {
            (true, false) => Weighed::New(new_ns),
            (false, true) => Weighed::Old(old_ns),
            (false, false) => Weighed::Neither,
            // As a rule a port is not empty while a packet is on its way into it.
            (true, true) => match (new_ns >= empty_ns, old_ns >= empty_ns) {
                (true, false) => Weighed::New(new_ns),
                (false, true) => Weighed::Old(old_ns),
                _ => Weighed::Both,
            },
        }
    }

    /// Reads the difference anew.
    fn look(&mut self, now_ns: u64, told: bool) {
        let new = (self.read)();
        let by_ns = new.ahead_ns.saturating_sub(self.offset.ahead_ns);
        let known_to_ns = new.uncertainty_ns.saturating_add(self.offset.uncertainty_ns);
        let tolerated_ns = known_to_ns.saturating_add(if told { 0 } else { UNTOLD_NS });
        if by_ns.unsigned_abs() > tolerated_ns {
            let from_ns = if told { self.quiet_at_ns } else { self.read_at_ns };
            self.before = Some(Before { offset: self.offset, from_ns, until_ns: now_ns });
            let placed = if told { self.since_quiet } else { self.since_reading };
            self.report.doubtful += placed.doubtful(by_ns);
            self.report.count += 1;
            self.report.largest_ns = self.report.largest_ns.max(by_ns.unsigned_abs());
            if self.report.steps.len() < KEPT {
                self.report.steps.push(ClockStep { noticed_ns: now_ns, by_ns });
            }
        }
        self.offset = new;
        self.read_at_ns = now_ns;
        self.since_reading = Placed::default();
    }

    #[inline]
    fn note(&mut self, empty_ns: u64, now_ns: u64) {
        let open_ns = now_ns.saturating_sub(empty_ns);
        for placed in [&mut self.since_reading, &mut self.since_quiet] {
            placed.count += 1;
            placed.longest_open_ns = placed.longest_open_ns.max(open_ns);
        }
    }
}

/// Packets that were placed by one difference between the clocks.
#[derive(Clone, Copy, Debug, Default)]
struct Placed {
    count: u64,
    /// The longest time within which one of them can have come.
    longest_open_ns: u64,
}

impl Placed {
    /// Number of them that may lie in the clock after a step of `by_ns`. By the clock before it, a large step
    /// would have put them where they cannot have come.
    fn doubtful(&self, by_ns: i64) -> u64 {
        let hidden_ns = HANDED_OVER_WITHIN_NS + AHEAD_NS + self.longest_open_ns;
        if by_ns.unsigned_abs() > hidden_ns { 0 } else { self.count }
    }
}

/// Clock of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighed {
    New(u64),
    Old(u64),
    Both,
    Neither,
}

/// True if a packet that is read at `now_ns` from a port that was last empty at `empty_ns` can have come at
/// `at_ns`.
#[inline]
fn is_possible(at_ns: u64, empty_ns: u64, now_ns: u64) -> bool {
    at_ns <= now_ns + AHEAD_NS && at_ns + HANDED_OVER_WITHIN_NS >= empty_ns
}

/// A descriptor that becomes readable when the wall clock is set, and when the machine wakes from sleep.
#[derive(Debug)]
pub struct StepNotifier(TimerFd);

impl StepNotifier {
    /// One that has heard of nothing yet.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new() -> io::Result<StepNotifier> {
        let timer = TimerFd::new(ClockId::CLOCK_REALTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        // Never reached; steps are told only while it is set.
        let never = Expiration::OneShot(TimeSpec::new(i64::MAX / 1_000_000_000, 0));
        timer.set(never, TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET)?;
        Ok(StepNotifier(timer))
    }

    /// True if the clock was set since the last call.
    pub fn is_set(&self) -> bool {
        let mut count = [0; 8];
        nix::unistd::read(&self.0, &mut count) == Err(Errno::ECANCELED)
    }
}

impl AsFd for StepNotifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;
    const START_AHEAD: i64 = 1_700_000_000_000_000_000;

    /// A wall clock that can be stepped, and the stamps of it.
    struct Wall {
        ahead: Arc<AtomicI64>,
        stamps: Stamps,
    }

    impl Wall {
        fn new() -> Wall {
            let ahead = Arc::new(AtomicI64::new(START_AHEAD));
            let read = ahead.clone();
            let measure = move || ClockOffset { ahead_ns: read.load(Ordering::Relaxed), uncertainty_ns: 100 };
            Wall { ahead, stamps: Stamps::new(100 * SECOND, measure) }
        }

        fn step(&self, by_ns: i64) {
            self.ahead.fetch_add(by_ns, Ordering::Relaxed);
        }

        /// The stamp of a packet that comes at `at_ns`.
        fn stamp(&self, at_ns: u64) -> u64 {
            at_ns.checked_add_signed(self.ahead.load(Ordering::Relaxed)).unwrap()
        }
    }

    #[test]
    fn without_a_step_every_stamp_is_what_it_says() {
        let mut wall = Wall::new();
        for tick in 0..50 {
            let now = 100 * SECOND + tick * 100 * MS;
            wall.stamps.waited(now, false);
            let stamp = wall.stamp(now - 30_000);
            assert_eq!(wall.stamps.place(stamp, now - 90 * MS, now), Some(now - 30_000));
        }
        assert_eq!(*wall.stamps.report(), ClockReport::default());
    }

    #[test]
    fn slewing_is_no_step_and_is_followed() {
        let mut wall = Wall::new();
        for second in 1..20 {
            wall.step(500_000);
            let now = 100 * SECOND + second * (SECOND + MS);
            wall.stamps.waited(now, false);
            // Known to within what a second brings.
            let stamp = wall.stamp(now);
            assert!(wall.stamps.place(stamp, now, now).unwrap().abs_diff(now) <= 1_000_000);
        }
        assert_eq!(wall.stamps.report().count, 0);
    }

    /// Steps of many sizes, both ways: packets on either side that are read together after it lie where they
    /// came.
    #[test]
    fn packets_on_either_side_of_a_step_that_is_told_lie_where_they_came() {
        for by_ns in [-10 * SECOND as i64, -500_000_000, -3_000_000, 3_000_000, 500_000_000, 10 * SECOND as i64] {
            let mut wall = Wall::new();
            let start = 100 * SECOND;
            wall.stamps.waited(start + 20 * MS, false);
            let came = start + 20 * MS + 400_000;
            let old = wall.stamp(came);
            wall.step(by_ns);
            let new = wall.stamp(came + 200_000);
            let now = came + 300_000;
            wall.stamps.waited(now, true);
            assert_eq!(wall.stamps.place(old, start + 20 * MS, now), Some(came), "{by_ns}");
            assert_eq!(wall.stamps.place(new, start + 20 * MS, now), Some(came + 200_000), "{by_ns}");
            let report = wall.stamps.report();
            assert_eq!((report.count, report.largest_ns), (1, by_ns.unsigned_abs()));
            assert_eq!(report.steps, [ClockStep { noticed_ns: now, by_ns }]);
            assert_eq!((report.astride, report.unplaced, report.doubtful), (1, 0, 0), "{by_ns}");
            // And so do those that come long after it.
            let later = now + 5 * SECOND;
            wall.stamps.waited(later, false);
            let stamp = wall.stamp(later - 50_000);
            assert_eq!(wall.stamps.place(stamp, later - MS, later), Some(later - 50_000));
            assert_eq!(wall.stamps.report().count, 1);
        }
    }

    #[test]
    fn a_step_that_nobody_told_of_is_found_by_the_stamp_that_cannot_be() {
        for by_ns in [-10 * SECOND as i64, -500_000_000, 500_000_000] {
            let mut wall = Wall::new();
            let now = 100 * SECOND + 300 * MS;
            wall.stamps.waited(now, false);
            let fine = wall.stamp(now - 20_000);
            assert_eq!(wall.stamps.place(fine, now - MS, now), Some(now - 20_000));
            wall.step(by_ns);
            let later = now + 100 * MS;
            wall.stamps.waited(later, false);
            let stamp = wall.stamp(later - 20_000);
            assert_eq!(wall.stamps.place(stamp, later - MS, later), Some(later - 20_000), "{by_ns}");
            let report = wall.stamps.report();
            // Had the packet before come after the step, it would have been found by it.
            assert_eq!((report.count, report.doubtful, report.unplaced), (1, 0, 0), "{by_ns}");
        }
    }

    #[test]
    fn what_came_between_waking_and_reading_came_then() {
        let mut wall = Wall::new();
        let woke = 100 * SECOND + 300 * MS;
        wall.stamps.waited(woke, false);
        wall.stamps.present_ns = Some(|| 100 * SECOND + 305 * MS);
        let stamp = wall.stamp(woke + 4 * MS);
        assert_eq!(wall.stamps.place(stamp, woke - MS, woke), Some(woke + 4 * MS));
        // Nothing comes later than it is read.
        let stamp = wall.stamp(woke + 40 * MS);
        assert_eq!(wall.stamps.place(stamp, woke - MS, woke), None);
        assert_eq!((wall.stamps.report().count, wall.stamps.report().unplaced), (0, 1));
    }

    #[test]
    fn a_step_too_small_to_be_impossible_is_found_within_a_second() {
        let mut wall = Wall::new();
        wall.step(-3_000_000);
        for tick in 1..=11 {
            let now = 100 * SECOND + tick * 100 * MS;
            wall.stamps.waited(now, false);
            let stamp = wall.stamp(now - 20_000);
            let error = wall.stamps.place(stamp, now - MS, now).unwrap().abs_diff(now - 20_000);
            assert_eq!(error, if tick < 11 { 3_000_000 } else { 0 }, "{tick}");
        }
        let report = wall.stamps.report();
        assert_eq!((report.count, report.doubtful, report.unplaced), (1, 10, 0));
    }

    #[test]
    fn what_came_before_the_run_is_no_matter_of_its() {
        let mut wall = Wall::new();
        let now = 100 * SECOND + 5 * MS;
        let stamp = wall.stamp(now);
        // From a port that nobody has seen empty yet.
        assert_eq!(wall.stamps.place(stamp, 0, now), Some(now));
        wall.stamps.begin();
        wall.step(-10 * SECOND as i64);
        wall.stamps.waited(now + 2 * SECOND, false);
        assert_eq!((wall.stamps.report().count, wall.stamps.report().doubtful), (1, 0));
    }

    #[test]
    fn a_stamp_that_fits_no_clock_is_not_believed_and_costs_one_look_a_turn() {
        let looks = Arc::new(AtomicI64::new(0));
        let counted = looks.clone();
        let measure = move || {
            counted.fetch_add(1, Ordering::Relaxed);
            ClockOffset { ahead_ns: START_AHEAD, uncertainty_ns: 100 }
        };
        let mut stamps = Stamps::new(100 * SECOND, measure);
        let now = 100 * SECOND + 200 * MS;
        for _ in 0..64 {
            let stamp = (90 * SECOND).checked_add_signed(START_AHEAD).unwrap();
            assert_eq!(stamps.place(stamp, now - MS, now), None);
        }
        assert_eq!((stamps.report().unplaced, stamps.report().count), (64, 0));
        assert_eq!(looks.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_waited_long_in_a_port_that_was_not_empty_is_believed() {
        let mut wall = Wall::new();
        let now = 103 * SECOND;
        wall.stamps.waited(now, false);
        let stamp = wall.stamp(101 * SECOND);
        assert_eq!(wall.stamps.place(stamp, 100 * SECOND, now), Some(101 * SECOND));
        assert_eq!(*wall.stamps.report(), ClockReport::default());
    }

    #[test]
    fn a_clock_that_nobody_sets_notifies_nobody() {
        let notifier = StepNotifier::new().unwrap();
        assert!(!notifier.is_set());
    }
}
