// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Advice on a late machine, by the known causes.

use super::machine::{CalibrationFacts, MachineFacts, RealTime};
use crate::show;

/// Advice for an ordinary user on getting real-time priority.
pub const GET_REAL_TIME: &str = "run as root, or set rtprio to 10 in /etc/security/limits.conf";

/// Share of processor time, in millionths, from which the host is said to have taken it away: a run is suspect from a
/// single late packet on, and a host takes a processor for milliseconds at a time.
const MUCH_STOLEN_PPM: u64 = 1_000;
/// Share of a run from which programs are said to have waited for a processor.
const MUCH_WAITING_PPM: u64 = 200_000;
/// Share of a run from which the loop is said to have had too much to do.
const MUCH_WORK_PPM: u64 = 500_000;
/// A calibration is old after a month,
const OLD_S: u64 = 30 * 24 * 3_600;
/// and poor if 99 in 100 packets were only within so many times what was wanted.
const POOR_TIMES: u64 = 5;
/// Number of causes that are told: the first to fix.
const MOST_CAUSES: usize = 2;

const WHOLE_PPM: u64 = 1_000_000;

/// Advice on keeping the engine in time.
pub(super) fn in_time(machine: &MachineFacts) -> String {
    let mut causes: Vec<String> = [stolen(machine), jobs(machine), work(machine), priority(machine), waiting(machine)]
        .into_iter()
        .flatten()
        .take(MOST_CAUSES)
        .collect();
    if causes.is_empty() {
        causes.push("no cause was found: run again, and if the problem persists, use a less loaded machine".into());
    }
    causes.extend(calibration(machine));
    causes.join("; ")
}

fn percent(ppm: u64) -> String {
    show::percent(ppm, WHOLE_PPM)
}

fn stolen(machine: &MachineFacts) -> Option<String> {
    let stolen_ppm = machine.stolen_ppm.filter(|ppm| *ppm >= MUCH_STOLEN_PPM)?;
    Some(format!(
        "the hypervisor took {} of this virtual machine's CPU time (steal): run while the host is less busy, or on \
         dedicated CPUs",
        percent(stolen_ppm)
    ))
}

fn jobs(machine: &MachineFacts) -> Option<String> {
    let jobs = machine.jobs.filter(|jobs| *jobs > 1)?;
    Some(format!(
        "{jobs} runs in parallel on {}: use fewer --jobs",
        show::counted(u64::from(machine.processors), "processor")
    ))
}

fn work(machine: &MachineFacts) -> Option<String> {
    (machine.loop_ppm >= MUCH_WORK_PPM).then(|| {
        format!(
            "the engine was busy for {} of the time, too much at this rate: use a lower rate or fewer flows",
            percent(machine.loop_ppm)
        )
    })
}

fn priority(machine: &MachineFacts) -> Option<String> {
    match machine.real_time {
        RealTime::Refused => Some(format!(
            "this user may not use real-time priority, so any program can delay the engine: {GET_REAL_TIME}"
        )),
        RealTime::NotAsked => Some(
            "the engine ran without real-time priority (by option or calibration), so any program could delay it: \
             use --policy fifo, or calibrate again"
                .into(),
        ),
        RealTime::Got | RealTime::Unknown => None,
    }
}

fn waiting(machine: &MachineFacts) -> Option<String> {
    let waiting_ppm = machine.waiting_ppm.filter(|ppm| *ppm >= MUCH_WAITING_PPM)?;
    Some(format!(
        "programs waited for a CPU for {} of the time: stop other programs, or reduce the load of the commands",
        percent(waiting_ppm)
    ))
}

/// Note on the calibration.
fn calibration(machine: &MachineFacts) -> Option<String> {
    const MEND: &str = "run `airpath timing calibrate` while the machine is quiet";
    if !machine.live {
        return None;
    }
    let Some(facts) = machine.calibration else { return Some(format!("this machine is not calibrated: {MEND}")) };
    let CalibrationFacts { age_s, p99_ns, bound_ns, disturbed } = facts;
    let age = age(age_s);
    if disturbed || p99_ns > bound_ns.saturating_mul(POOR_TIMES) {
        let poor = format!("the calibration, {age} old, reached {} for 99 % of packets", show::span(p99_ns));
        return Some(format!("{poor}: {MEND}"));
    }
    if age_s >= OLD_S {
        return Some(format!("the calibration is {age} old: {MEND}"));
    }
    Some(format!("(calibrated {age} ago)"))
}

/// An age for people.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => show::counted(seconds, "second"),
        120..7_200 => show::counted(seconds / 60, "minute"),
        7_200..172_800 => show::counted(seconds / 3_600, "hour"),
        _ => show::counted(seconds / 86_400, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATED: CalibrationFacts =
        CalibrationFacts { age_s: 3 * 86_400, p99_ns: 22_000, bound_ns: 20_000, disturbed: false };

    fn machine() -> MachineFacts {
        MachineFacts {
            processors: 2,
            stolen_ppm: Some(0),
            waiting_ppm: Some(30_000),
            loop_ppm: 20_000,
            real_time: RealTime::Got,
            live: true,
            calibration: Some(CALIBRATED),
            ..MachineFacts::default()
        }
    }

    #[test]
    fn the_advice_fits_the_cause() {
        for (machine, told) in [
            (MachineFacts { stolen_ppm: Some(1_300), ..machine() }, "took 0.1 % of this virtual machine's CPU time"),
            (MachineFacts { jobs: Some(4), ..machine() }, "4 runs in parallel on 2 processors: use fewer --jobs"),
            (MachineFacts { loop_ppm: 930_000, ..machine() }, "busy for 93 % of the time"),
            (
                MachineFacts { real_time: RealTime::Refused, ..machine() },
                "set rtprio to 10 in /etc/security/limits.conf",
            ),
            (MachineFacts { real_time: RealTime::NotAsked, ..machine() }, "use --policy fifo"),
            (MachineFacts { waiting_ppm: Some(340_000), ..machine() }, "waited for a CPU for 34 % of the time"),
        ] {
            let advice = in_time(&machine);
            assert!(advice.contains(told) && advice.ends_with("(calibrated 3 days ago)"), "{advice}");
            assert!(!advice.contains("no cause"), "{advice}");
        }
        assert!(in_time(&machine()).starts_with("no cause was found"), "{}", in_time(&machine()));
        assert!(!in_time(&MachineFacts { jobs: Some(1), ..machine() }).contains("--jobs"));
    }

    #[test]
    fn the_gravest_causes_are_told_and_not_all() {
        let all = MachineFacts {
            stolen_ppm: Some(200_000),
            waiting_ppm: Some(900_000),
            loop_ppm: 900_000,
            real_time: RealTime::Refused,
            jobs: Some(8),
            ..machine()
        };
        let advice = in_time(&all);
        assert!(advice.contains("20 %") && advice.contains("--jobs") && !advice.contains("rtprio"), "{advice}");
    }

    #[test]
    fn the_age_of_a_calibration_is_told_and_a_bad_one_is_to_be_replaced() {
        let with = |facts| in_time(&MachineFacts { calibration: facts, ..machine() });
        let old = CalibrationFacts { age_s: 45 * 86_400, ..CALIBRATED };
        assert!(with(Some(old)).contains("the calibration is 45 days old: run `airpath timing calibrate`"));
        let poor = CalibrationFacts { age_s: 100, p99_ns: 6_700_000, ..CALIBRATED };
        let told = "the calibration, 100 seconds old, reached 6.70 ms for 99 % of packets";
        assert!(with(Some(poor)).contains(told), "{}", with(Some(poor)));
        assert!(with(Some(CalibrationFacts { disturbed: true, ..CALIBRATED })).contains("while the machine is quiet"));
        assert!(with(None).contains("not calibrated"));
        // Nothing of it concerns a clock that is not real.
        assert!(!in_time(&MachineFacts::default()).contains("calibrat"));
        assert_eq!([age(1), age(180), age(7_200), age(172_800)], ["1 second", "3 minutes", "2 hours", "2 days"]);
    }
}
