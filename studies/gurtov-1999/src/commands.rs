// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The two commands: a measurement, and the list of sleep methods.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use airpath_core::Span;
use airpath_live::wake_latency::HOLD;
use airpath_log::show::{count, counted};
use serde_json::json;

use crate::cli::{Action, Cli, MeasureArgs, MethodsArgs};
use crate::error::{Result, TimingError, unknown};
use crate::measure::{Measurement, Progress, Request};
use crate::method::{METHODS, Method, MethodOptions, USUAL};
use crate::output::{say, say_over, show};
use crate::pattern::Pattern;
use crate::technique::Technique;
use crate::{conditions, files, interrupts, line_rate, render, stress};

const REQUESTS: u32 = 1_000;
const QUICK_REQUESTS: u32 = 100;
const LENGTHS: Pattern = Pattern::Uniform(0, 100_000_000);
const QUICK_LENGTHS: Pattern = Pattern::Uniform(0, 20_000_000);
/// Shortest expected time of a measurement that is announced, in ns.
const SHORT_NS: u64 = 2_000_000_000;

/// Measures, or lists the sleep methods; the exit status.
///
/// # Errors
/// When something cannot be measured as it was asked for.
pub fn run(cli: &Cli) -> Result<i32> {
    match &cli.action {
        None => measure(&cli.measure),
        Some(Action::Methods(args)) => Ok(methods(args)),
    }
}

/// Members of `known` that `words` name: all of them, or those named, each once.
fn chosen<T: Copy>(words: &[String], what: &str, known: &[(&str, T)]) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for word in words.iter().map(|word| word.trim()) {
        let indices = match known.iter().position(|(name, _)| *name == word) {
            Some(index) => index..index + 1,
            None if word == "all" => 0..known.len(),
            None => {
                return Err(unknown(word, what, known.iter().map(|(name, _)| *name).chain(["all"])));
            }
        };
        found.extend(indices.filter(|index| !found.contains(index)).collect::<Vec<_>>());
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|index| known[index].1).collect())
}

fn request(args: &MeasureArgs) -> Result<Request> {
    let known: Vec<(&str, &'static Method)> = METHODS.iter().map(|method| (method.name, method)).collect();
    let usual: Vec<String> = USUAL.iter().map(|name| (*name).to_string()).collect();
    let methods = chosen(if args.methods.is_empty() { &usual } else { &args.methods }, "sleep methods", &known)?;
    let named: Vec<_> = Technique::ALL.iter().map(|(technique, name)| (*name, *technique)).collect();
    let techniques = chosen(&args.techniques, "techniques", &named)?;
    let one_of = |option: &str, value: &str, first: &str, second: &str| match value {
        "both" => Ok(vec![false, true]),
        _ if value == first => Ok(vec![false]),
        _ if value == second => Ok(vec![true]),
        _ => Err(TimingError::usage(format!("--{option} must be {first}, {second} or both, not `{value}`"))),
    };
    let slacks = one_of("timer-slack", &args.timer_slack.replace(' ', ""), "default", "1ns")?;
    let pattern = match &args.distribution {
        Some(text) => text.parse().map_err(TimingError::Usage)?,
        None if args.quick => QUICK_LENGTHS,
        None => LENGTHS,
    };
    if args.margin.is_some() && !methods.iter().any(|method| method.name == "early_spin") {
        return Err(TimingError::usage("--margin needs early_spin among --methods"));
    }
    if args.margin.is_some_and(|margin| margin > Span::from_millis(100)) {
        return Err(TimingError::usage("--margin is limited to 100 ms: more would be continuous busy-waiting"));
    }
    let rates = args.line_rates.as_deref().map(line_rate::parse_rates).transpose()?;
    Ok(Request {
        methods,
        options: MethodOptions { margin_ns: args.margin.map(Span::nanos) },
        techniques,
        timer_slacks_ns: slacks.into_iter().map(|fine| fine.then_some(1)).collect(),
        memory_locked: one_of("memory", &args.memory, "unlocked", "locked")?,
        requests: args.requests.unwrap_or(if args.quick { QUICK_REQUESTS } else { REQUESTS }),
        pattern,
        line_rates: rates.unwrap_or_default(),
        effort: if args.quick { line_rate::QUICK } else { line_rate::USUAL },
        stress: stress::find(&args.load)?,
        policy: conditions::policy(&args.policy)?,
        hold_wake_latency: args.wake_latency == HOLD,
        jobs: args.jobs,
        seed: args.seed,
    })
}

fn measure(args: &MeasureArgs) -> Result<i32> {
    let request = request(args)?;
    request.check()?;
    let made = args.out.as_deref().is_some_and(|out| !out.exists());
    if let Some(out) = &args.out {
        files::take(out)?;
    }
    let taken = args.out.clone();
    let give_back = move || {
        if let Some(out) = &taken {
            files::give_back(out, made);
        }
    };
    let (measurement, signal) = measure_until_interrupted(&request, give_back.clone()).inspect_err(|_| give_back())?;
    let written = args.out.as_deref().map_or(Ok(()), |out| files::write(out, &measurement));
    if written.is_err() {
        give_back();
    }
    // Also where it could not be written: it took minutes, and is shown at least.
    print(args, &measurement)?;
    written?;
    if let Some(out) = args.out.as_deref().map(Path::display) {
        say(format_args!("airpath: wrote {out}"));
    }
    if signal != 0 {
        say(format_args!("airpath: aborted; these are the measurements up to then"));
        return Ok(128 + signal);
    }
    if measurement.report.series.iter().all(|series| series.measured.is_none()) {
        return Err(TimingError::refused(
            "none of the requested methods is available here; `airpath timing methods` gives the reasons",
        ));
    }
    Ok(0)
}

/// Measures; returns also the signal that broke it off, or 0. A second signal calls `give_back` and ends the
/// process.
fn measure_until_interrupted(request: &Request, give_back: impl Fn() + Send + 'static) -> Result<(Measurement, i32)> {
    let stop = Arc::new(AtomicBool::new(false));
    let signal = Arc::new(AtomicI32::new(0));
    let (stops, told) = (stop.clone(), signal.clone());
    interrupts::on_each(move |signal| {
        told.store(signal as i32, Ordering::Relaxed);
        if stops.swap(true, Ordering::Relaxed) {
            // Asked twice: nothing is waited for. The kernel ends loads with this process.
            give_back();
            std::process::exit(128 + signal as i32);
        }
        say(format_args!("airpath: stopping after the current sleep; press Ctrl-C again to stop immediately"));
    })?;
    let (series, expected_ns) = request.expected();
    let announce = expected_ns >= SHORT_NS;
    if announce {
        say(format_args!(
            "airpath: {} of {} ({}), about {}{}; Ctrl-C stops early and prints the measurements so far",
            format_args!("{} series", count(series as u64)),
            counted(request.requests.into(), "request"),
            request.pattern,
            duration(expected_ns),
            if expected_ns > 120_000_000_000 {
                " (--quick takes fewer samples, --jobs measures several series in parallel)"
            } else {
                ""
            },
        ));
    }
    let on_terminal = std::io::stderr().is_terminal();
    let mut tell = |progress: &Progress| {
        if !announce {
            return;
        }
        let line = format!(
            "[{}/{}] {}; about {} left",
            progress.number,
            progress.of,
            progress.what,
            duration(progress.left_ns)
        );
        if on_terminal {
            // One line that is written anew, and only between series: printing would disturb them.
            say_over(&line);
        } else {
            say(format_args!("airpath: {line}"));
        }
    };
    let measured = request.measure(&stop, &mut tell);
    if announce && on_terminal {
        say_over("");
    }
    Ok((measured?, signal.load(Ordering::Relaxed)))
}

/// A length of time to a second or a minute.
fn duration(nanos: u64) -> String {
    match nanos.div_ceil(1_000_000_000) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3_600.0),
    }
}

fn print(args: &MeasureArgs, measurement: &Measurement) -> Result<()> {
    let report = &measurement.report;
    if args.json {
        let text = serde_json::to_string_pretty(report);
        show(format_args!("{}\n", text.expect("a report is JSON")));
        return Ok(());
    }
    let asked = &report.asked;
    show(format_args!(
        "{} of {} each; load {}, policy {}, wake latency {}, seed {}{}\n\n{}",
        counted(asked.requests.into(), "request"),
        asked.distribution,
        asked.load,
        asked.policy,
        if asked.wake_latency == HOLD { "held" } else { "left" },
        asked.seed,
        if report.interrupted { "; broken off" } else { "" },
        render::series(report)
    ));
    show(format_args!(
        "\nTable 1 of Gurtov 1999 (Linux 2.0.36, Pentium II) and the same here\n{}",
        render::table_one(report)
    ));
    if !report.line_rates.is_empty() {
        show(format_args!(
            "\nLine rates, packets of {} bytes\n{}",
            line_rate::PACKET_BYTES,
            render::line_rates(report)
        ));
    }
    show(format_args!("\nOn this machine\n"));
    for paragraph in &report.recommendation {
        show(format_args!("- {paragraph}\n"));
    }
    Ok(())
}

/// Lists the sleep methods.
fn methods(args: &MethodsArgs) -> i32 {
    for method in METHODS {
        let unavailable = (method.open)(&MethodOptions::default()).err();
        if args.json {
            let line = json!({
                "name": method.name,
                "what": method.what,
                "needs": method.needs,
                "at_least": method.at_least,
                "usual": USUAL.contains(&method.name),
                "unavailable": unavailable,
            });
            show(format_args!("{line}\n"));
            continue;
        }
        show(format_args!("{:<25} {}; needs {}\n", method.name, method.what, method.needs));
        if let Some(reason) = unavailable {
            show(format_args!("{:<25} not available here: {reason}\n", ""));
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_in_the_order_of_what_is_known() {
        let known = [("a", 1), ("b", 2), ("c", 3)];
        let choose = |words: &[&str]| chosen(&words.iter().map(|w| (*w).into()).collect::<Vec<_>>(), "letters", &known);
        assert_eq!(choose(&["c", "a", "c"]).unwrap(), [1, 3]);
        assert_eq!(choose(&["b", "all"]).unwrap(), [1, 2, 3]);
        let error = choose(&["al"]).unwrap_err();
        assert!(error.to_string().contains("not one of the letters (a, b, c, all); did you mean `a"), "{error}");
        assert_eq!(error.status(), 2);
    }

    #[test]
    fn durations_are_coarse() {
        assert_eq!([0, 1, 60_000_000_000, 1_200_000_000_000].map(duration), ["0 s", "1 s", "60 s", "20 min"]);
        assert_eq!(duration(9_000_000_000_000), "2.5 h");
    }
}
