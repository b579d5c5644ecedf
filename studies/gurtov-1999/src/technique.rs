// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Techniques against the errors of a sleep method.
//!
//! Source: Gurtov 1999, 3.7.1 (sleep with slack) and 3.7.2 (pre-compensation), with whole
//! nanoseconds.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::method::Sleep;

/// Technique of compensating errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Technique {
    /// Nothing.
    Plain,
    /// Each sleep makes up for the errors of those before it.
    Slack,
    /// Each sleep is shortened by how much longer it is expected to take.
    PreCompensation,
    /// Both.
    SlackAndPreCompensation,
}

impl Technique {
    /// All with their names.
    pub const ALL: [(Technique, &'static str); 4] = [
        (Technique::Plain, "plain"),
        (Technique::Slack, "slack"),
        (Technique::PreCompensation, "pre_compensation"),
        (Technique::SlackAndPreCompensation, "slack_and_pre_compensation"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Technique::ALL[self as usize].1
    }

    /// The technique called `name`.
    pub fn find(name: &str) -> Option<Technique> {
        Technique::ALL.into_iter().find(|(_, known)| *known == name).map(|(technique, _)| technique)
    }

    /// True if errors are carried from one sleep to the next.
    pub fn has_slack(self) -> bool {
        matches!(self, Technique::Slack | Technique::SlackAndPreCompensation)
    }

    /// True if sleeps are shortened by the expected oversleep.
    pub fn pre_compensates(self) -> bool {
        matches!(self, Technique::PreCompensation | Technique::SlackAndPreCompensation)
    }
}

/// The state of a technique over one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compensation {
    technique: Technique,
    /// Sum of the oversleeps so far that is not made up for, in ns.
    slack_ns: i64,
    /// Expected oversleep of a sleep, in ns; counts only with pre-compensation.
    expected_oversleep_ns: i64,
}

impl Compensation {
    /// The beginning of a series.
    pub fn new(technique: Technique, expected_oversleep_ns: i64) -> Compensation {
        let expected_oversleep_ns = if technique.pre_compensates() { expected_oversleep_ns } else { 0 };
        Compensation { technique, slack_ns: 0, expected_oversleep_ns }
    }

    /// Returns the length to request of the sleep method, in ns; none if there is nothing left to sleep.
    pub fn ask(&self, requested_ns: u64) -> Option<u64> {
        let left_ns = requested_ns as i64 - self.slack_ns;
        match self.technique {
            Technique::Plain => Some(requested_ns),
            _ => u64::try_from(left_ns - self.expected_oversleep_ns).ok().filter(|ask_ns| *ask_ns > 0),
        }
    }

    /// Learns how long the sleep was; 0 where there was none.
    pub fn slept(&mut self, requested_ns: u64, actual_ns: u64) {
        if self.technique.has_slack() {
            self.slack_ns += actual_ns as i64 - requested_ns as i64;
        }
    }
}

/// Number of sleeps that teach the expected oversleep before a series.
pub const TRIALS: usize = 16;
/// No trial is longer, in ns.
pub const LONGEST_TRIAL_NS: u64 = 20_000_000;

/// The median oversleep over sleeps of `lengths_ns`: one that was preempted teaches nothing.
///
/// # Errors
/// Those of the sleep method.
pub fn learn_oversleep_ns(sleeper: &mut dyn Sleep, clock: &dyn Fn() -> u64, lengths_ns: &[u64]) -> io::Result<i64> {
    let mut oversleeps_ns = Vec::with_capacity(lengths_ns.len());
    for length_ns in lengths_ns {
        let length_ns = (*length_ns).min(LONGEST_TRIAL_NS);
        let before_ns = clock();
        sleeper.sleep(length_ns)?;
        oversleeps_ns.push((clock() - before_ns) as i64 - length_ns as i64);
    }
    oversleeps_ns.sort_unstable();
    Ok(oversleeps_ns.get(oversleeps_ns.len().saturating_sub(1) / 2).copied().unwrap_or(0))
}

/// Sleeps for each of `requested_ns` and writes how long that really was into `actual_ns`, which is as
/// long; after each calls `rest` with that. Ends early when `stop` is set. Returns how many were slept.
///
/// # Errors
/// Those of the sleep method.
pub fn sleep_series(
    sleeper: &mut dyn Sleep,
    clock: &dyn Fn() -> u64,
    compensation: &mut Compensation,
    requested_ns: &[u64],
    actual_ns: &mut [u64],
    rest: &mut dyn FnMut(u64),
    stop: &AtomicBool,
) -> io::Result<usize> {
    for (index, (requested_ns, actual_ns)) in requested_ns.iter().zip(actual_ns).enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Ok(index);
        }
        *actual_ns = match compensation.ask(*requested_ns) {
            Some(ask_ns) => {
                let before_ns = clock();
                sleeper.sleep(ask_ns)?;
                clock() - before_ns
            }
            None => 0,
        };
        compensation.slept(*requested_ns, *actual_ns);
        rest(*actual_ns);
    }
    Ok(requested_ns.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    /// Sleeps a known time too long, on a clock of its own.
    struct Oversleeper {
        now_ns: Rc<Cell<u64>>,
        by_ns: Box<dyn FnMut(u64) -> u64>,
    }

    impl Sleep for Oversleeper {
        fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
            self.now_ns.set(self.now_ns.get() + span_ns + (self.by_ns)(span_ns));
            Ok(())
        }
    }

    fn sleep_with(
        technique: Technique,
        expected_ns: i64,
        by_ns: impl FnMut(u64) -> u64 + 'static,
        requested_ns: &[u64],
    ) -> Vec<u64> {
        let now_ns = Rc::new(Cell::new(1_000));
        let mut sleeper = Oversleeper { now_ns: now_ns.clone(), by_ns: Box::new(by_ns) };
        let mut actual_ns = vec![0; requested_ns.len()];
        let slept = sleep_series(
            &mut sleeper,
            &|| now_ns.get(),
            &mut Compensation::new(technique, expected_ns),
            requested_ns,
            &mut actual_ns,
            &mut |_| {},
            &AtomicBool::new(false),
        );
        assert_eq!(slept.unwrap(), requested_ns.len());
        actual_ns
    }

    #[test]
    fn plain_sleeps_are_as_long_as_they_are() {
        assert_eq!(sleep_with(Technique::Plain, 9, |_| 10, &[100, 0, 50]), [110, 10, 60]);
    }

    #[test]
    fn slack_makes_up_for_errors_as_the_algorithm_says() {
        // By hand: 100 takes 110, slack 10; 100 is asked as 90 and takes 100, slack 10; 10 is all
        // slack: not slept, slack 0; 5 is asked as 5 and takes 15, slack 10; 4: not slept, slack 6;
        // 20 is asked as 14 and takes 24, slack 10.
        let requested = [100, 100, 10, 5, 4, 20];
        let actual = sleep_with(Technique::Slack, 7, |_| 10, &requested);
        assert_eq!(actual, [110, 100, 0, 15, 0, 24]);
        assert_eq!(actual.iter().sum::<u64>() - requested.iter().sum::<u64>(), 10);
    }

    #[test]
    fn the_drift_of_slack_is_the_last_error_however_long_the_series() {
        let requested: Vec<u64> = (0..1_000).map(|index| 1_000 + index % 7).collect();
        for oversleep_ns in [1, 100, 999] {
            let actual = sleep_with(Technique::Slack, 0, move |_| oversleep_ns, &requested);
            assert_eq!(actual.iter().sum::<u64>() - requested.iter().sum::<u64>(), oversleep_ns);
        }
        // A timer that knows only whole ticks of 250, as that of the paper knew 10 ms: what is asked
        // for is rounded up, so that nothing drifts by more than a tick.
        let actual = sleep_with(Technique::Slack, 0, |ask_ns| ask_ns.next_multiple_of(250) - ask_ns, &requested);
        let drift = actual.iter().sum::<u64>() - requested.iter().sum::<u64>();
        assert!(drift < 250, "{drift}");
        assert!(actual.iter().zip(&requested).any(|(actual, requested)| actual < requested));
    }

    #[test]
    fn pre_compensation_takes_the_expected_off() {
        // Exactly expected: no error at all, but for what is shorter than that: it is not slept.
        assert_eq!(sleep_with(Technique::PreCompensation, 10, |_| 10, &[100, 50, 10, 9]), [100, 50, 0, 0]);
        // Expected too little: the rest stays in every sleep.
        assert_eq!(sleep_with(Technique::PreCompensation, 8, |_| 10, &[100, 100]), [102, 102]);
    }

    #[test]
    fn both_together_leave_neither_bias_nor_drift() {
        // 100 takes 102, slack 2; the next is asked as 90 and takes 100; then 10 is 8 less 8: not
        // slept, slack −8; 100 is asked as 100 and takes 110, slack 2.
        let requested = [100, 100, 10, 100];
        let actual = sleep_with(Technique::SlackAndPreCompensation, 8, |_| 10, &requested);
        assert_eq!(actual, [102, 100, 0, 110]);
    }

    #[test]
    fn the_expected_oversleep_is_the_median() {
        let now_ns = Rc::new(Cell::new(0));
        let mut oversleeps = [5, 7, 1_000_000, 6].into_iter();
        let mut sleeper = Oversleeper { now_ns: now_ns.clone(), by_ns: Box::new(move |_| oversleeps.next().unwrap()) };
        let learnt = learn_oversleep_ns(&mut sleeper, &|| now_ns.get(), &[10, 20, 30, u64::MAX]).unwrap();
        assert_eq!(learnt, 6);
        assert_eq!(now_ns.get(), 60 + LONGEST_TRIAL_NS + 1_000_018);
    }

    #[test]
    fn a_stopped_series_says_how_far_it_came() {
        let stop = AtomicBool::new(false);
        let now_ns = Rc::new(Cell::new(0));
        let mut sleeper = Oversleeper { now_ns: now_ns.clone(), by_ns: Box::new(|_| 0) };
        let mut actual_ns = [0; 5];
        let slept = sleep_series(
            &mut sleeper,
            &|| now_ns.get(),
            &mut Compensation::new(Technique::Plain, 0),
            &[1, 2, 3, 4, 5],
            &mut actual_ns,
            &mut |slept_ns| stop.store(slept_ns == 3, Ordering::Relaxed),
            &stop,
        );
        assert_eq!((slept.unwrap(), actual_ns), (3, [1, 2, 3, 0, 0]));
    }

    #[test]
    fn names_find_their_technique() {
        for (technique, name) in Technique::ALL {
            assert_eq!((technique.name(), Technique::find(name)), (name, Some(technique)));
        }
    }
}
