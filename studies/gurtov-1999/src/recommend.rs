// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Recommendations from a measurement to users who need exact time on this machine, in words.

use airpath_live::wake_latency::HOLD;
use airpath_log::show;

use crate::host;
use crate::method::{self, Waiting};
use crate::report::{Measured, Series, TimingReport};
use crate::technique::Technique;

/// The usual bound on lateness of live runs, in ns.
const BOUND_NS: i64 = 1_000_000;
/// Below this a difference between medians is none worth a setting, in ns.
const WORTH_NS: i64 = 2_000;
/// A line that is slower by more than this needs slack.
const BIAS: f64 = 0.001;

type One<'a> = (&'a Series, &'a Measured);

/// A paragraph for each thing worth knowing.
pub fn recommendation(report: &TimingReport) -> Vec<String> {
    let measured: Vec<One<'_>> =
        report.series.iter().filter_map(|series| series.measured.as_ref().map(|measured| (series, measured))).collect();
    if measured.is_empty() {
        return vec!["Nothing was measured, so that nothing can be recommended.".into()];
    }
    [
        busy_machine(report),
        most_exact(&measured),
        most_exact_asleep(&measured),
        timer_slack(report, &measured),
        slack(&measured),
        live_loop(report, &measured),
        unavailable(report),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Others kept the processors busy before anything was measured, so that the figures are theirs, too.
fn busy_machine(report: &TimingReport) -> Option<String> {
    let load = report.host["load_average"].as_f64()?;
    let processors = report.host["processors"].as_u64()?;
    (load >= processors as f64).then(|| {
        format!(
            "Other programs were busy: the load average was {load:.1} on {} before the first series. Measure again \
             when the machine is idle, unless that is how it will be used.",
            show::counted(processors, "processor")
        )
    })
}

/// Greatest error of 99 in 100 sleeps, in either direction, in ns.
fn off_ns(measured: &Measured) -> i64 {
    measured.error_ns.p99.max(-measured.error_ns.min)
}

fn is_plain(series: &Series) -> bool {
    series.technique == Technique::Plain.name()
}

fn waiting(series: &Series) -> Option<Waiting> {
    method::find(&series.method).map(|method| method.waiting)
}

fn span(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", show::span(nanos.unsigned_abs()))
}

fn named(series: &Series) -> String {
    let mut settings = Vec::new();
    if !is_plain(series) {
        settings.push(series.technique.clone());
    }
    if let Some(slack_ns) = series.timer_slack_ns {
        settings.push(format!("timer slack {slack_ns} ns"));
    }
    if series.memory_locked {
        settings.push("memory locked".into());
    }
    if settings.is_empty() { series.method.clone() } else { format!("{} ({})", series.method, settings.join(", ")) }
}

fn performance((series, measured): One<'_>) -> String {
    let share = measured.processor_ns_per_sleep * f64::from(measured.requests) / measured.elapsed_ns.max(1) as f64;
    format!(
        "{}: 99 in 100 sleeps at most {} off, {} at the median, for {} of processor time a sleep ({:.3} % of a \
         processor at this pattern); it needs {}",
        named(series),
        span(off_ns(measured)),
        span(measured.error_ns.p50),
        span(measured.processor_ns_per_sleep as i64),
        share * 100.0,
        method::find(&series.method).map_or("nothing", |method| method.needs),
    )
}

/// Of single sleeps, whose errors nothing makes up for, the most exact.
fn best<'a>(measured: &[One<'a>], choose: impl Fn(&Series) -> bool) -> Option<One<'a>> {
    measured.iter().copied().filter(|(series, _)| is_plain(series) && choose(series)).min_by_key(|(_, m)| off_ns(m))
}

fn most_exact(measured: &[One<'_>]) -> Option<String> {
    best(measured, |_| true).map(|one| format!("Keeps time best in single sleeps: {}.", performance(one)))
}

fn most_exact_asleep(measured: &[One<'_>]) -> Option<String> {
    let asleep = best(measured, |series| waiting(series) == Some(Waiting::Asleep))?;
    let same = best(measured, |_| true).is_some_and(|(series, _)| std::ptr::eq(series, asleep.0));
    (!same).then(|| format!("Best of those that only sleep: {}.", performance(asleep)))
}

/// The pair of measurements of the same way that differ most by `difference`.
fn pair<'a>(
    measured: &[One<'a>],
    matches: impl Fn(&Series, &Series) -> bool,
    difference: impl Fn(&Measured, &Measured) -> i64,
) -> Option<(One<'a>, One<'a>)> {
    let pairs = measured.iter().flat_map(|one| measured.iter().map(move |other| (*one, *other)));
    pairs
        .filter(|(one, other)| one.0.method == other.0.method && one.0.memory_locked == other.0.memory_locked)
        .filter(|(one, other)| matches(one.0, other.0))
        .max_by_key(|(one, other)| difference(one.1, other.1))
}

fn timer_slack(report: &TimingReport, measured: &[One<'_>]) -> Option<String> {
    let matches = |one: &Series, other: &Series| {
        is_plain(one) && is_plain(other) && one.timer_slack_ns.is_none() && other.timer_slack_ns.is_some()
    };
    let gain_ns = |one: &Measured, other: &Measured| one.error_ns.p50 - other.error_ns.p50;
    let ((one, before), (other, after)) = pair(measured, matches, gain_ns)?;
    if report.asked.policy != "other" {
        return Some("The timer slack does not matter here: the kernel grants none to real-time threads.".into());
    }
    let slack_ns = other.timer_slack_ns?;
    // One way may have been luckier than another: what counts is what most ways gain.
    let with_default = measured.iter().filter(|(series, _)| series.timer_slack_ns.is_none());
    let mut gains_ns: Vec<i64> = with_default
        .flat_map(|default| measured.iter().map(move |fine| (default, fine)))
        .filter(|(default, fine)| default.0.method == fine.0.method && default.0.memory_locked == fine.0.memory_locked)
        .filter(|(default, fine)| matches(default.0, fine.0))
        .map(|(default, fine)| gain_ns(default.1, fine.1))
        .collect();
    gains_ns.sort_unstable();
    let usual_ns = gains_ns[gains_ns.len() / 2];
    Some(if usual_ns >= WORTH_NS {
        format!(
            "Set the timer slack: {slack_ns} ns instead of the system's default (prctl(PR_SET_TIMERSLACK), for which \
             no right is needed) takes {} off the median error, most off that of {}, from {} to {}.",
            span(usual_ns),
            one.method,
            span(before.error_ns.p50),
            span(after.error_ns.p50),
        )
    } else {
        "The timer slack made no difference: other delays are greater here.".into()
    })
}

/// Time that all requests together took beyond their sum, as a share of it.
fn bias(measured: &Measured) -> f64 {
    let requested_ns = measured.requested_total_ns;
    if requested_ns == 0 { 0.0 } else { measured.drift_ns as f64 / requested_ns as f64 }
}

fn slack(measured: &[One<'_>]) -> Option<String> {
    // Sleeps of nothing have no time for errors to be made up in, nor to be a share of.
    if measured.iter().all(|(_, measured)| measured.requested_total_ns == 0) {
        return None;
    }
    let mut biased: Vec<One<'_>> =
        measured.iter().copied().filter(|(series, m)| is_plain(series) && bias(m) > BIAS).collect();
    biased.sort_by(|one, other| bias(other.1).total_cmp(&bias(one.1)));
    let effect = pair(
        measured,
        |one, other| {
            is_plain(one) && other.technique == Technique::Slack.name() && one.timer_slack_ns == other.timer_slack_ns
        },
        |one, other| one.drift_ns - other.drift_ns,
    );
    let effect = effect.map_or_else(String::new, |(one, other)| {
        format!(
            " With slack, {} ended {} requests {} off instead of {}.",
            named(one.0),
            show::count(other.1.requests.into()),
            span(other.1.drift_ns),
            span(one.1.drift_ns)
        )
    });
    let Some((worst, measured)) = biased.first() else {
        return Some(format!("Sleeps that follow one another drift by less than 0.1 % even without slack.{effect}"));
    };
    let others = biased.len() - 1;
    let others = if others == 0 {
        String::new()
    } else {
        format!(", and {} by more than 0.1 %", show::counted(others as u64, "other way"))
    };
    Some(format!(
        "Carry errors to the next sleep (slack) where sleeps follow one another: without it, {} takes {:.2} % too \
         long{others}.{effect}",
        named(worst),
        bias(measured) * 100.0,
    ))
}

fn live_loop(report: &TimingReport, measured: &[One<'_>]) -> Option<String> {
    let real_time = match host::real_time_scheduling() {
        Ok(()) => "real-time scheduling, which is allowed here",
        Err(_) => "real-time scheduling, which is refused here (run as root, or with CAP_SYS_NICE)",
    };
    let held = report.asked.wake_latency == HOLD;
    let wake_latency = if held {
        "as here"
    } else {
        "which was left alone here (--wake-latency hold measures with it, and may be a good deal earlier where \
         nothing else keeps processors awake)"
    };
    let uses = format!(
        "The live loop sleeps until instants with a timer slack of 1 ns, wakes early to watch the clock as early_spin \
         does, asks for {real_time}, and holds the wake latency where it may, {wake_latency}."
    );
    let early = measured
        .iter()
        .filter(|(series, _)| series.method == "early_spin" && is_plain(series))
        .min_by_key(|(series, _)| series.timer_slack_ns.unwrap_or(u64::MAX));
    let Some((series, early)) = early else { return Some(uses) };
    let latest_ns = early.error_ns.max;
    let meaning = if latest_ns <= BOUND_NS {
        "within the usual bound of 1 ms: expect trusted runs under these conditions".to_string()
    } else if early.error_ns.p99 <= BOUND_NS {
        let unused = [(report.asked.policy == "other", "--policy fifo"), (!held, "--wake-latency hold")];
        let unused: Vec<&str> = unused.into_iter().filter(|(unused, _)| *unused).map(|(_, option)| option).collect();
        let hint = match unused.as_slice() {
            [] => String::new(),
            [one] => format!("; see whether {one} helps"),
            several => format!("; see whether {} help", several.join(" and ")),
        };
        format!(
            "beyond the usual bound of 1 ms, as 1 in 100 at most was: expect suspect runs under these conditions{hint}"
        )
    } else {
        "and more than 1 in 100 beyond the usual bound of 1 ms: runs under these conditions are invalid".to_string()
    };
    Some(format!(
        "{uses} Measured as {}, the latest of {} sleeps was {} late, {meaning}.",
        named(series),
        show::count(early.requests.into()),
        span(latest_ns)
    ))
}

fn unavailable(report: &TimingReport) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for series in &report.series {
        if let Some(reason) = &series.unavailable {
            let memory = if series.memory_locked { " with memory locked" } else { "" };
            let text = format!("{}{memory} ({reason})", series.method);
            if !told.contains(&text) {
                told.push(text);
            }
        }
    }
    (!told.is_empty()).then(|| format!("Not available here: {}.", told.join("; ")))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use airpath_live::wake_latency::LEAVE;

    use crate::report::{Asked, Estimates, FORMAT_VERSION, Quantiles};

    fn measured(p50: i64, p99: i64, processor_ns: f64) -> Measured {
        let none =
            Estimates { mean: 0.0, mean_interval: Some([0.0; 2]), variance: 0.0, variance_interval: Some([0.0; 2]) };
        Measured {
            requests: 1_000,
            absolute_error_ms: Estimates { mean: p50 as f64 / 1e6, ..none },
            relative_error: none,
            error_ns: Quantiles { min: 0, p50, p99, p999: p99, max: p99 },
            drift_ns: p50 * 1_000,
            requested_total_ns: 10_000_000_000,
            elapsed_ns: 10_000_000_000,
            processor_ns_per_sleep: processor_ns,
            voluntary_switches_per_sleep: 1.0,
            involuntary_switches_per_sleep: 0.0,
            expected_oversleep_ns: None,
        }
    }

    fn series(method: &str, technique: &str, timer_slack_ns: Option<u64>, measured: Option<Measured>) -> Series {
        let unavailable = measured.is_none().then(|| "there is no such device".into());
        let (method, technique) = (method.into(), technique.into());
        Series { method, technique, timer_slack_ns, memory_locked: false, unavailable, measured }
    }

    pub(crate) fn report() -> TimingReport {
        let mut slack = measured(100, 60_000, 9_000.0);
        slack.drift_ns = 70_000;
        slack.error_ns.min = -60_000;
        TimingReport {
            format_version: FORMAT_VERSION,
            airpath_version: "0.1.0".into(),
            began_unix_s: 0,
            host: serde_json::json!({"kernel": "6.1", "ticks_per_second": 250, "high_resolution_timers": true}),
            asked: Asked {
                requests: 1_000,
                distribution: "uniform:0ms..20ms".into(),
                seed: 1,
                load: "none".into(),
                policy: "other".into(),
                wake_latency: LEAVE.into(),
                jobs: 1,
                margin_ns: None,
            },
            series: vec![
                series("select", "plain", None, Some(measured(58_000, 90_000, 9_000.0))),
                series("select", "plain", Some(1), Some(measured(7_000, 30_000, 9_000.0))),
                series("select", "slack", None, Some(slack)),
                series("rtc", "plain", None, None),
                series("busy", "plain", None, Some(measured(40, 5_000, 9_900_000.0))),
                series("early_spin", "plain", Some(1), Some(measured(50, 900, 40_000.0))),
            ],
            line_rates: Vec::new(),
            recommendation: Vec::new(),
            interrupted: false,
        }
    }

    #[test]
    fn the_recommendation_follows_from_the_measurements() {
        let text = recommendation(&report());
        assert!(
            text[0].starts_with("Keeps time best in single sleeps: early_spin (timer slack 1 ns): 99 in 100"),
            "{text:#?}"
        );
        assert!(
            text[0].contains("at most 900 ns off, 50 ns at the median, for 40.0 us of processor time"),
            "{text:#?}"
        );
        assert!(text[0].contains("(0.400 % of a processor"), "{text:#?}");
        assert!(text[1].starts_with("Best of those that only sleep: select (timer slack 1 ns)"), "{text:#?}");
        assert!(
            text[2].contains("takes 51.0 us off the median error, most off that of select, from 58.0 us to 7.00 us"),
            "{text:#?}"
        );
        assert!(text[3].contains("without it, select takes 0.58 % too long."), "{text:#?}");
        assert!(
            text[3].contains("With slack, select ended 1,000 requests 70.0 us off instead of 58.0 ms"),
            "{text:#?}"
        );
        assert!(text[4].contains("the latest of 1,000 sleeps was 900 ns late, within the usual bound"), "{text:#?}");
        assert_eq!(text[5], "Not available here: rtc (there is no such device).");
    }

    #[test]
    fn what_the_live_loop_does_besides_is_told_from_what_was_measured() {
        let left = recommendation(&report())[4].clone();
        assert!(left.contains("left alone here (--wake-latency hold measures with it"), "{left}");
        let mut held = report();
        held.asked.wake_latency = HOLD.into();
        let text = recommendation(&held)[4].clone();
        assert!(text.contains("where it may, as here."), "{text}");
        held.series[5].measured.as_mut().unwrap().error_ns.max = 4_000_000;
        assert!(recommendation(&held)[4].ends_with("see whether --policy fifo helps."), "{held:#?}");
        held.asked.policy = "fifo".into();
        assert!(recommendation(&held)[4].contains("suspect runs under these conditions."), "{held:#?}");
    }

    #[test]
    fn sleeps_of_nothing_say_nothing_of_slack() {
        let mut nothing = report();
        for measured in nothing.series.iter_mut().filter_map(|series| series.measured.as_mut()) {
            measured.requested_total_ns = 0;
        }
        assert!(!recommendation(&nothing).join("\n").contains("slack, "), "{nothing:#?}");
    }

    #[test]
    fn a_machine_that_is_late_is_not_praised() {
        let mut late = report();
        late.host = serde_json::json!({"load_average": 8.25, "processors": 2});
        let text = recommendation(&late);
        assert!(text[0].contains("load average was 8.2 on 2 processors before"), "{text:#?}");
        late.host = serde_json::json!({"load_average": 0.05, "processors": 2});
        assert!(recommendation(&late)[0].starts_with("Keeps time best"));
        late.series[5].measured.as_mut().unwrap().error_ns.max = 4_000_000;
        let text = recommendation(&late).join("\n");
        assert!(text.contains("4.00 ms late, beyond the usual bound") && text.contains("--policy fifo"), "{text}");
        late.series[5].measured.as_mut().unwrap().error_ns.p99 = 2_000_000;
        assert!(recommendation(&late).join("\n").contains("are invalid"));
        late.asked.policy = "fifo".into();
        assert!(recommendation(&late).join("\n").contains("grants none to real-time threads"));
        late.series.clear();
        assert!(recommendation(&late)[0].starts_with("Nothing was measured"));
    }
}
