// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One series of requests, on a thread of its own.

use std::sync::atomic::AtomicBool;

use airpath_live::clock::{monotonic_ns, thread_processor_ns};
use airpath_live::tuning::Policy;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use crate::conditions::Conditions;
use crate::method::{Method, MethodOptions, Waiting};
use crate::technique::{Compensation, LONGEST_TRIAL_NS, TRIALS, Technique, learn_oversleep_ns, sleep_series};

/// Settings of one series.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The sleep method.
    pub method: &'static Method,
    /// Options of the method.
    pub options: MethodOptions,
    /// Compensation of errors.
    pub technique: Technique,
    /// Settings of its thread.
    pub conditions: Conditions,
}

/// Result of one series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesOutcome {
    /// Actual length of each sleep, in ns; fewer than requested if it was broken off.
    pub actual_ns: Vec<u64>,
    /// Duration of the series, in ns.
    pub elapsed_ns: u64,
    /// Part of it in which the thread rested between sleeps, for the sake of other programs, in ns.
    pub rested_ns: u64,
    /// Processor time of the thread, in ns.
    pub processor_ns: u64,
    /// Number of times that the thread gave the processor away.
    pub voluntary_switches: u64,
    /// Number of times that the processor was taken away.
    pub involuntary_switches: u64,
    /// Oversleep that pre-compensation learnt before, in ns.
    pub expected_oversleep_ns: Option<i64>,
}

/// Of real-time threads that watch the clock, the share of time that others get, as a divisor: more
/// than the twentieth for which the kernel would stop them, so that it does not.
const REST_DIVISOR: u64 = 9;

impl Way {
    /// True if the thread keeps its processor from others.
    pub fn occupies(&self) -> bool {
        self.method.waiting != Waiting::Asleep
    }

    /// True if the thread rests between sleeps: else a real-time one would keep its processor from everything
    /// else.
    fn rests(&self) -> bool {
        self.occupies() && self.conditions.policy != Policy::Other
    }

    /// About how long a series takes whose requests sum to `requested_ns`, in ns.
    pub fn expected_ns(&self, requested_ns: u64, mean_ns: u64) -> u64 {
        let trials_ns =
            if self.technique.pre_compensates() { TRIALS as u64 * mean_ns.min(LONGEST_TRIAL_NS) } else { 0 };
        requested_ns + trials_ns + if self.rests() { requested_ns / REST_DIVISOR } else { 0 }
    }

    /// Sets the calling thread, opens the sleep method and sleeps for each of `requested_ns`, after
    /// having learnt from `trials_ns` if the technique learns. Nothing is allocated or printed between
    /// the first sleep and the last.
    ///
    /// # Errors
    /// Why the sleep method cannot be had or failed, as text.
    pub fn measure(&self, requested_ns: &[u64], trials_ns: &[u64], stop: &AtomicBool) -> Result<SeriesOutcome, String> {
        self.conditions.set().map_err(|error| error.to_string())?;
        let mut sleeper = (self.method.open)(&self.options)?;
        let failed = |error: std::io::Error| format!("{} failed: {error}", self.method.name);
        let expected_oversleep_ns = if self.technique.pre_compensates() {
            Some(learn_oversleep_ns(sleeper.as_mut(), &monotonic_ns, trials_ns).map_err(failed)?)
        } else {
            None
        };
        let mut compensation = Compensation::new(self.technique, expected_oversleep_ns.unwrap_or(0));
        // Written now, so that no page of it is first touched during the series.
        let mut actual_ns = requested_ns.to_vec();
        let (rests, mut rested_ns) = (self.rests(), 0);
        let mut rest = |slept_ns: u64| {
            if rests {
                let before_ns = monotonic_ns();
                let until = super::method::time_spec(before_ns + slept_ns / REST_DIVISOR);
                let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until);
                rested_ns += monotonic_ns() - before_ns;
            }
        };
        let usage = || getrusage(UsageWho::RUSAGE_THREAD).map_err(|errno| format!("getrusage: {errno}"));
        let usage_before = usage()?;
        // Within the other, so that no more processor time is seen than time.
        let before_ns = monotonic_ns();
        let processor_before_ns = thread_processor_ns();
        let slept = sleep_series(
            sleeper.as_mut(),
            &monotonic_ns,
            &mut compensation,
            requested_ns,
            &mut actual_ns,
            &mut rest,
            stop,
        );
        let processor_ns = thread_processor_ns() - processor_before_ns;
        let elapsed_ns = monotonic_ns() - before_ns;
        let usage_after = usage()?;
        actual_ns.truncate(slept.map_err(failed)?);
        let more = |after: libc::c_long, before: libc::c_long| (after - before) as u64;
        Ok(SeriesOutcome {
            actual_ns,
            elapsed_ns,
            rested_ns,
            processor_ns,
            voluntary_switches: more(
                usage_after.voluntary_context_switches(),
                usage_before.voluntary_context_switches(),
            ),
            involuntary_switches: more(
                usage_after.involuntary_context_switches(),
                usage_before.involuntary_context_switches(),
            ),
            expected_oversleep_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{self, METHODS};

    fn way(name: &str, technique: Technique) -> Way {
        let method = method::find(name).unwrap();
        Way { method, options: MethodOptions::default(), technique, conditions: Conditions::default() }
    }

    fn measure(way: Way, requested_ns: &[u64]) -> Result<SeriesOutcome, String> {
        let requested_ns = requested_ns.to_vec();
        let thread = std::thread::spawn(move || way.measure(&requested_ns, &[100_000; 3], &AtomicBool::new(false)));
        thread.join().unwrap()
    }

    #[test]
    fn every_way_is_measured_or_says_why_not() {
        for method in METHODS {
            match measure(way(method.name, Technique::Plain), &[0, 200_000, 100_000]) {
                Ok(outcome) => {
                    assert_eq!(outcome.actual_ns.len(), 3, "{}", method.name);
                    assert!(outcome.elapsed_ns >= outcome.actual_ns.iter().sum());
                    assert!(outcome.processor_ns > 0);
                    let at_least = outcome.actual_ns.iter().zip([0, 200_000, 100_000]).all(|(a, r)| *a >= r);
                    assert!(at_least || !method.at_least, "{}: {:?}", method.name, outcome.actual_ns);
                }
                Err(reason) => println!("{} is not available here: {reason}", method.name),
            }
        }
    }

    #[test]
    fn who_sleeps_gives_the_processor_away() {
        let outcome = measure(way("select", Technique::Slack), &[3_000_000; 5]).unwrap();
        assert!(outcome.voluntary_switches >= 1, "{outcome:?}");
        assert_eq!((outcome.rested_ns, outcome.expected_oversleep_ns), (0, None));
        let learnt = measure(way("select", Technique::PreCompensation), &[3_000_000]).unwrap();
        assert!(learnt.expected_oversleep_ns.unwrap() > 0);
    }

    #[test]
    fn real_time_threads_that_watch_the_clock_rest() {
        let mut way = way("busy", Technique::Plain);
        way.conditions.policy = Policy::Fifo(1);
        match measure(way, &[9_000_000; 2]) {
            Ok(outcome) => assert!(outcome.rested_ns >= 2_000_000, "{outcome:?}"),
            Err(reason) => assert!(reason.contains("SCHED_FIFO") && reason.contains("--policy other"), "{reason}"),
        }
        assert_eq!(way.expected_ns(90, 10), 100);
        way.conditions.policy = Policy::Other;
        assert_eq!(way.expected_ns(90, 10), 90);
    }
}
