// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Verdict on a run: every way in which the emulator itself can distort a result is measured, and judged here.

pub mod advice;
mod code;
pub mod ends;
mod machine;
mod measurements;
mod rules;
mod share;
mod wall_clock;

use std::cmp::Reverse;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use code::Code;
pub use machine::{CalibrationFacts, MachineFacts, RealTime};
pub use measurements::{Measurements, Reads};
pub use wall_clock::{ClockStep, WallClock};

/// Trustworthiness of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// The emulator kept all its promises.
    #[default]
    Trusted,
    /// It broke one now and then: check whether that matters before using the results.
    Suspect,
    /// It broke one so often that the results say more about the machine than about the link.
    Invalid,
}

impl Grade {
    /// Every grade, the best first.
    pub const ALL: [Grade; 3] = [Grade::Trusted, Grade::Suspect, Grade::Invalid];

    /// The meaning for a run, in a sentence.
    pub const fn description(self) -> &'static str {
        match self {
            Grade::Trusted => "every packet left as the model gave it, within the bound",
            Grade::Suspect => "some packets did not leave as the model gave it",
            Grade::Invalid => "too many packets did not leave as the model gave it, or the workload never ran",
        }
    }

    /// The word used in the summary and the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            Grade::Trusted => "trusted",
            Grade::Suspect => "suspect",
            Grade::Invalid => "invalid",
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// Severity.
    pub grade: Grade,
    /// A fixed word for programs, such as "late_emissions".
    pub code: String,
    /// Description: the problem, with its numbers.
    pub what: String,
    /// Advice for the user; called `mend` in `run.json` and journals.
    #[serde(rename = "mend")]
    pub hint: String,
}

impl Reason {
    fn new(grade: Grade, code: Code, what: String, hint: &str) -> Reason {
        Reason { grade, code: code.name().into(), what, hint: hint.into() }
    }
}

/// The judgement on a run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// The gravest of the reasons.
    pub grade: Grade,
    /// All of them, the gravest first; none for a trusted run.
    pub reasons: Vec<Reason>,
}

impl Verdict {
    /// Makes it that of a run which was broken off, because of `why`, after it was judged.
    pub fn break_off(&mut self, why: &str) {
        self.grade = Grade::Invalid;
        self.reasons.insert(0, rules::broken_off(why));
    }
}

/// Judges a run by every rule of [`rules::RULES`]. Anything late, lost or missing makes it suspect; when it
/// concerns more than one in a hundred, or when there was no workload, the run is invalid.
pub fn judge(measured: &Measurements) -> Verdict {
    let mut reasons: Vec<_> = rules::RULES.iter().flat_map(|rule| rule(measured)).collect();
    reasons.sort_by_key(|reason| Reverse(reason.grade));
    Verdict { grade: reasons.first().map_or(Grade::Trusted, |reason| reason.grade), reasons }
}

/// The steps of the wall clock in words; none if there were none.
pub fn describe_wall_clock(clock: &WallClock) -> Option<String> {
    (clock.count > 0).then(|| rules::describe_wall_clock(clock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::LatenessBound;
    use crate::histogram::{Distribution, Excess, Late, Timings};
    use crate::verdict::ends::EndResults;
    use airpath_core::Span;

    fn clean() -> Measurements {
        Measurements {
            duration_ns: 10_000_000_000,
            lateness: Distribution { count: 10_000, max_ns: 900_000, ..Distribution::default() },
            reads: Reads::Stamped {
                late: late(0, 0),
                delay: Distribution { count: 10_000, ..Distribution::default() },
            },
            offered: 10_000,
            ..Measurements::default()
        }
    }

    /// Lateness of `packets` beyond a bound of 1 ms, the worst by `late_ns` in all.
    fn late(packets: u64, late_ns: u64) -> Late {
        Late { packets, worst: Excess { late_ns, bound_ns: 1_000_000 } }
    }

    fn only(measured: &Measurements) -> Reason {
        let verdict = judge(measured);
        assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
        assert_eq!(verdict.grade, verdict.reasons[0].grade);
        verdict.reasons[0].clone()
    }

    #[test]
    fn a_clean_run_is_trusted() {
        assert_eq!(judge(&clean()), Verdict::default());
        assert_eq!(judge(&Measurements::default()).grade, Grade::Trusted);
        let gaps = Measurements { reads: Reads::Gaps { late: late(0, 0) }, ..clean() };
        assert_eq!(judge(&gaps).grade, Grade::Trusted);
    }

    #[test]
    fn timings_become_measurements() {
        let mut timings = Timings::new(LatenessBound::USUAL);
        let at = airpath_core::Time::from_nanos;
        assert_eq!(Measurements::of(&timings, Span::from_secs(1)).reads, Reads::Exact);
        timings.emitted(airpath_core::Direction::Uplink, at(0), at(1), at(2_000_002), || Span::ZERO);
        timings.read(at(0), at(9), at(0), || Span::ZERO);
        let measured = Measurements::of(&timings, Span::from_secs(1));
        assert_eq!(judge(&measured).reasons[0].code, "late_emissions");
        assert!(matches!(measured.reads, Reads::Stamped { late, delay } if late.packets == 0 && delay.max_ns == 9));
    }

    #[test]
    fn late_emissions_are_suspect_up_to_one_in_a_hundred() {
        let lateness = Distribution { count: 10_000, max_ns: 4_200_000, ..Distribution::default() };
        let left = |packets| Measurements { late_emissions: late(packets, 4_200_000), lateness, ..clean() };
        let reason = only(&left(3));
        assert_eq!((reason.grade, reason.code.as_str()), (Grade::Suspect, "late_emissions"));
        let what = "3 of 10,000 packets (0.030 %) left too late, the worst by 4.20 ms where 1.00 ms is allowed";
        assert_eq!(reason.what, what);
        assert_eq!(only(&left(100)).grade, Grade::Suspect);
        assert_eq!(only(&left(101)).grade, Grade::Invalid);
        let short = |packets| Measurements { lateness: Distribution { count: 20, ..lateness }, ..left(packets) };
        assert_eq!(only(&short(4)).grade, Grade::Suspect);
        assert_eq!(only(&short(5)).grade, Grade::Invalid);
    }

    #[test]
    fn departures_that_were_late_by_choice_are_told_as_such() {
        let lateness = Distribution { count: 10_000, max_ns: 1_200_000, ..Distribution::default() };
        let measured =
            |quantum_ns| Measurements { late_emissions: late(3, 1_200_000), lateness, quantum_ns, ..clean() };
        assert!(!only(&measured(20_000)).hint.contains("--economy"));
        let hint = only(&measured(750_000)).hint;
        assert!(hint.starts_with("packets waited up to 750 us for others by choice: use --economy off; "), "{hint}");
        assert_eq!(judge(&Measurements { quantum_ns: 750_000, ..clean() }).grade, Grade::Trusted);
    }

    #[test]
    fn late_reads_count_with_and_without_stamps() {
        let delay = Distribution { count: 10_000, max_ns: 5_000_000, ..Distribution::default() };
        let stamped = only(&Measurements { reads: Reads::Stamped { late: late(2, 5_000_000), delay }, ..clean() });
        assert_eq!((stamped.grade, stamped.code.as_str()), (Grade::Suspect, "late_reads"));
        assert!(stamped.what.contains("2 of 10,000 packets (0.020 %) entered") && stamped.what.contains("5.00 ms"));
        let gaps = |packets| only(&Measurements { reads: Reads::Gaps { late: late(packets, 7_000_000) }, ..clean() });
        assert!(gaps(1).what.contains("may have entered the link too late"), "{}", gaps(1).what);
        assert_eq!(gaps(200).grade, Grade::Invalid);
    }

    #[test]
    fn the_same_advice_fits_the_cause_of_both() {
        let machine = MachineFacts { jobs: Some(4), processors: 2, ..MachineFacts::default() };
        let delay = Distribution { count: 10_000, ..Distribution::default() };
        let reads = Reads::Stamped { late: late(2, 5_000_000), delay };
        let verdict = judge(&Measurements { late_emissions: late(3, 4_000_000), reads, machine, ..clean() });
        let hints: Vec<_> = verdict.reasons.iter().map(|reason| reason.hint.as_str()).collect();
        assert_eq!(hints, ["4 runs in parallel on 2 processors: use fewer --jobs"; 2]);
    }

    #[test]
    fn losses_outside_and_holes_in_the_log_are_told() {
        let reason = only(&Measurements { outside_drops: 5, ..clean() });
        assert!(reason.grade == Grade::Suspect && reason.what.starts_with("5 of 10,005 packets"), "{}", reason.what);
        assert_eq!(only(&Measurements { outside_drops: 500, ..clean() }).grade, Grade::Invalid);
        let reason = only(&Measurements { log_incomplete: vec!["7 events were lost".into()], ..clean() });
        assert_eq!((reason.grade, reason.what.as_str()), (Grade::Suspect, "log incomplete: 7 events were lost"));
    }

    #[test]
    fn a_step_of_the_clock_matters_where_packets_may_have_entered_at_a_wrong_time() {
        let clock = |doubtful, unplaced| WallClock {
            count: 1,
            largest_ns: 10_000_000_000,
            steps: vec![ClockStep { at_ns: 1_150_000_000, by_ns: -10_000_000_000 }],
            astride: 3,
            doubtful,
            unplaced,
        };
        let measured = |wall_clock| Measurements { wall_clock, ..clean() };
        assert_eq!(judge(&measured(clock(0, 0))).grade, Grade::Trusted);
        let told = describe_wall_clock(&clock(0, 0)).unwrap();
        assert_eq!(told, "the wall clock was stepped once, by -10.0 s 1.15 s into the run");
        assert_eq!(describe_wall_clock(&WallClock::default()), None);
        let reason = only(&measured(clock(7, 2)));
        assert_eq!((reason.grade, reason.code.as_str()), (Grade::Suspect, "clock_step"));
        assert_eq!(
            reason.what,
            format!(
                "{told}: 7 of 10,000 packets may have entered early or late, and 2 of 10,000 packets entered when they \
                 were read, not when they arrived"
            )
        );
        assert_eq!(only(&measured(clock(0, 5_000))).grade, Grade::Suspect);
        assert_eq!(only(&measured(clock(101, 0))).grade, Grade::Invalid);
        let contradicted = WallClock { unplaced: 1, ..WallClock::default() };
        assert!(only(&measured(contradicted)).what.starts_with("kernel timestamps contradict the wall clock: 1 of"));
    }

    #[test]
    fn a_link_that_was_left_behind_makes_a_run_invalid() {
        let reason = only(&Measurements { unfinished_ns: 9_900_000_000, unoffered: 4, ..clean() });
        assert_eq!((reason.grade, reason.code.as_str()), (Grade::Invalid, "unfinished"));
        assert!(reason.what.ends_with(
            "after 10.0 s, the link had only reached 100 ms, and 4 packets arrived but never \
                entered it"
        ));
    }

    #[test]
    fn reads_that_nobody_watched_are_suspect() {
        let reason = only(&Measurements { unwatched_reads_ns: 10_000_000_000, ..clean() });
        assert_eq!((reason.grade, reason.code.as_str()), (Grade::Suspect, "unwatched_reads"));
        assert!(reason.what.starts_with("arrival times were unknown for 10.0 s"), "{}", reason.what);
    }

    #[test]
    fn refused_writes_unread_counters_dead_servers_and_empty_runs_are_told() {
        let of = |ends: EndResults| only(&Measurements { ends, ..clean() });
        let refused = |writes| of(EndResults { refused_writes: writes, ..EndResults::default() });
        assert_eq!((refused(2).grade, refused(101).grade), (Grade::Suspect, Grade::Invalid));
        assert!(refused(2).what.starts_with("2 of 10,000 packets (0.020 %) were lost behind"), "{:?}", refused(2));
        let unread = of(EndResults { unreadable: vec!["the drops (EIO)".into()], ..EndResults::default() });
        assert_eq!((unread.grade, unread.what.as_str()), (Grade::Suspect, "could not be read: the drops (EIO)"));
        let dead = of(EndResults { server_failed: Some("killed by SIGKILL".into()), ..EndResults::default() });
        assert_eq!((dead.grade, dead.code.as_str()), (Grade::Suspect, "server_failed"));
        let killed = of(EndResults { client_killed: Some("SIGKILL".into()), ..EndResults::default() });
        assert_eq!((killed.grade, killed.code.as_str()), (Grade::Suspect, "client_killed"));
        let empty = of(EndResults { no_packets: true, ..EndResults::default() });
        assert_eq!(
            (empty.grade, empty.what.as_str()),
            (
                Grade::Suspect,
                "no packet entered the link: nothing was \
            tested"
            )
        );
        let ends = EndResults { no_packets: true, ..EndResults::default() };
        let never = Measurements { never_started: Some("gone".into()), ends, ..clean() };
        assert_eq!(only(&never).code, "never_started");
    }

    #[test]
    fn a_part_of_a_run_is_judged_by_what_happened_in_it() {
        let lateness = Distribution { count: 9_000, max_ns: 4_200_000, ..Distribution::default() };
        let nine_s = 9_000_000_000;
        let early = Measurements {
            late_emissions: late(3, 4_200_000),
            lateness,
            outside_drops: 2,
            duration_ns: nine_s,
            ..clean()
        };
        let now = Measurements { late_emissions: late(3, 4_200_000), outside_drops: 2, ..clean() };
        assert_eq!(judge(&now).grade, Grade::Suspect);
        let part = now.since(&early);
        assert_eq!((part.duration_ns, part.lateness.count), (1_000_000_000, 1_000));
        assert_eq!(judge(&part).grade, Grade::Trusted);
        let late = Measurements { late_emissions: late(23, 4_200_000), ..now }.since(&early);
        assert_eq!(only(&late).grade, Grade::Invalid);
    }

    #[test]
    fn a_lost_priority_is_told_where_something_was_late() {
        let demoted = Measurements { demoted_ns: Some(2_500_000_000), ..clean() };
        assert_eq!(judge(&demoted).grade, Grade::Trusted);
        let verdict = judge(&Measurements { late_emissions: late(3, 4_200_000), ..demoted });
        let codes: Vec<_> = verdict.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(codes, ["late_emissions", "demoted"]);
        assert!(verdict.reasons[1].what.contains("2.50 s into the run"), "{verdict:?}");
    }

    #[test]
    fn a_run_that_is_broken_off_after_its_judgement_is_invalid_like_one_before() {
        let mut after = judge(&clean());
        after.break_off("the disk went away");
        assert_eq!(after.grade, Grade::Invalid);
        assert_eq!(after, judge(&Measurements { broken_off: Some("the disk went away".into()), ..clean() }));
    }

    #[test]
    fn the_gravest_reason_comes_first_and_decides() {
        let verdict = judge(&Measurements {
            never_started: Some("iperf3: command not found".into()),
            outside_drops: 1,
            log_incomplete: vec!["x".into()],
            ..clean()
        });
        assert_eq!(verdict.grade, Grade::Invalid);
        let codes: Vec<_> = verdict.reasons.iter().map(|reason| reason.code.as_str()).collect();
        assert_eq!(codes, ["never_started", "outside_drops", "log_incomplete"]);
    }
}
