//! Whether a run can be trusted: every way in which the emulator itself can distort a result is
//! measured, and judged here.

pub mod advice;
mod machine;
mod measurements;
mod rules;
mod share;

use std::cmp::Reverse;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use machine::{CalibrationFacts, MachineFacts, RealTime};
pub use measurements::{Measurements, Reads};

/// How far a run can be trusted.
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
    /// How grave it is.
    pub grade: Grade,
    /// A fixed word for programs, such as "late_emissions".
    pub code: String,
    /// What happened: how many, how much.
    pub what: String,
    /// How to do better.
    pub mend: String,
}

impl Reason {
    fn new(grade: Grade, code: &str, what: String, mend: &str) -> Reason {
        Reason { grade, code: code.into(), what, mend: mend.into() }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::LatenessBound;
    use crate::histogram::{Distribution, Excess, Late, Timings};
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

    /// So many packets beyond a bound of 1 ms, the worst by so much in all.
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
        let mends: Vec<_> = verdict.reasons.iter().map(|reason| reason.mend.as_str()).collect();
        assert_eq!(mends, ["4 runs went on side by side on 2 processors: use fewer --jobs"; 2]);
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
