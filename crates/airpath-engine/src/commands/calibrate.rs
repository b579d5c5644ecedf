// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath timing calibrate`: settings of the live loop for this machine.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use airpath_calibration::{
    CalibratedHost, Calibration, Candidate, FORMAT_VERSION, Found, Lateness, Prober, Rights, Watch, Wish, store,
};
use airpath_core::Span;
use airpath_live::engine_loop::show_share;
use airpath_live::presence::Presence;
use airpath_live::tuning::{Affinity, Tuning};
use airpath_live::{clock, privilege};

use crate::cli::calibrate::CalibrateArgs;
use crate::error::{Failure, Result};
use crate::status;
use crate::terminal::{say, show};

/// Time for which the machine is watched before anything is measured.
const LOOK: Duration = Duration::from_millis(500);
/// Measures, tells, and stores.
///
/// # Errors
/// When the system forbids the link that is measured with, or the calibration cannot be stored.
pub fn run(args: &CalibrateArgs) -> Result<i32> {
    // Where it goes and whose it is are decided before a user namespace is entered.
    let (rights, host) = (Rights::current(), CalibratedHost::detect());
    if args.check {
        return Ok(check(&host, rights));
    }
    if args.forget {
        return forget(&host, rights);
    }
    if args.bound.nanos() == 0 {
        return Err(Failure::usage("--bound 0 s: the bound must be above zero; write for example 20 us"));
    }
    let folder = if args.dry_run { None } else { Some(store::folder().map_err(unusable)?) };
    let wish = Wish {
        bound_ns: args.bound.nanos(),
        budget_ppm: args.budget,
        duration: Duration::from_secs(u64::from(args.seconds)),
    };
    let before = disturbed_before(&host);
    if let Some(what) = before.as_ref().filter(|_| !args.force && !args.dry_run) {
        return Ok(refuse(what, "nothing was measured or stored"));
    }
    let old = folder.as_ref().and_then(|folder| store::find(folder, &host, rights).ok().flatten());
    privilege::acquire(false).map_err(Failure::live)?;
    let _presence = Presence::announce();
    Tuning::usual(airpath_live::engine_loop::SpinPolicy::Off).prepare_process();
    let mut prober = Prober::create().map_err(Failure::live)?;
    if !args.json {
        show!("{}", heading(args));
    }
    let live = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
    if live || args.json {
        say!("airpath: measuring for {} s", args.seconds);
    }
    let (watch, begun) = (Watch::begin(host.processors), Instant::now());
    let found = airpath_calibration::search(&wish, &mut prober, &mut |candidate| {
        if !args.json {
            show!("{}", line(candidate));
        }
    })
    .map_err(Failure::live)?;
    let disturbed = watch.disturbance(begun.elapsed()).or(before);
    drop(prober);
    let made = Calibration {
        format_version: FORMAT_VERSION,
        airpath_version: env!("CARGO_PKG_VERSION").into(),
        measured_unix_s: clock::realtime_ns() / 1_000_000_000,
        host,
        rights,
        bound_ns: wish.bound_ns,
        budget_ppm: wish.budget_ppm,
        policy: found.policy.to_string(),
        processor: match found.affinity {
            Affinity::Any => None,
            Affinity::Processor(processor) => Some(processor),
        },
        margin_ns: found.margin_ns,
        measured: found.measured,
        disturbed,
    };
    let kept =
        old.filter(|_| !args.replace).and_then(|(file, old)| Some((file, airpath_calibration::keeps(&old, &made)?)));
    let refused = made.disturbed.as_ref().filter(|_| !args.force);
    let store = folder.filter(|_| kept.is_none() && refused.is_none());
    let stored = store.map(|folder| store::write(&folder, &made));
    if args.json {
        let json = serde_json::json!({
            "calibration": made,
            "meets": found.meets,
            "reasons": found.reasons,
            "candidates": found.candidates,
            "file": stored.as_ref().and_then(|stored| stored.as_ref().ok()),
            "kept": kept.as_ref().map(|(file, why)| serde_json::json!({ "file": file, "why": why })),
        });
        show!("{json:#}\n");
    } else {
        show!("{}", conclusion(&found, &wish));
    }
    if let (Some(what), false) = (refused, args.dry_run) {
        return Ok(refuse(what, "nothing was stored"));
    }
    if let Some(what) = &made.disturbed {
        say!("airpath: the measurement was disturbed: {what}; the result holds only for such conditions");
    }
    if let (Some((file, why)), false) = (&kept, args.dry_run) {
        say!("airpath: the stored calibration {} is kept: {why}; to replace it, add --replace", file.display());
    }
    match stored {
        None => {}
        Some(Ok(file)) if args.json => drop(file),
        Some(Ok(file)) => show!("stored: {}\n", file.display()),
        Some(Err(error)) => return Err(unusable(error)),
    }
    Ok(0)
}

/// Disturbance of the machine before anything is measured.
fn disturbed_before(host: &CalibratedHost) -> Option<String> {
    let watch = Watch::begin(host.processors);
    std::thread::sleep(LOOK);
    let words = [watch.disturbance(LOOK), airpath_calibration::load_before(host.processors)];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Tells what disturbs, and what came of it; the exit status.
fn refuse(what: &str, outcome: &str) -> i32 {
    say!(
        "airpath: the measurement was disturbed: {what}; {outcome}, because every later run would use it. Calibrate \
         while the machine is idle, or add --force"
    );
    status::UNDONE
}

/// Removes the calibration that is stored; the exit status.
fn forget(host: &CalibratedHost, rights: Rights) -> Result<i32> {
    match store::folder().and_then(|folder| store::forget(&folder, host, rights)).map_err(unusable)? {
        Some(file) => show!("forgotten: {}\n", file.display()),
        None => say!("airpath: no calibration of this machine for this user"),
    }
    Ok(0)
}

/// Checks for a calibration that fits; returns the exit status.
fn check(host: &CalibratedHost, rights: Rights) -> i32 {
    match store::folder().and_then(|folder| store::find(&folder, host, rights)) {
        Ok(Some((file, _))) => {
            show!("{}\n", file.display());
            return 0;
        }
        Ok(None) => say!("airpath: no calibration of this machine for this user; {}", store::MEND),
        Err(error) => say!("airpath: {error}"),
    }
    status::UNDONE
}

fn unusable(error: store::Unusable) -> Failure {
    Failure::unwritable(error.to_string())
}

fn heading(args: &CalibrateArgs) -> String {
    format!(
        "target: 99 % of packets within {}, busy-waiting at most {} of a core; {} s\n\n\
         {:9}  {:7}  {:9}  {:>14}  {:>7} {:>7} {:>7} {:>7}  {:>12} {:>11}\n",
        args.bound,
        show_share(args.budget),
        args.seconds,
        "tried",
        "policy",
        "processor",
        "spin",
        "p50 us",
        "p99",
        "p99.9",
        "max",
        "core % 100/s",
        "watching %"
    )
}

fn line(candidate: &Candidate) -> String {
    let Lateness { p50_ns, p99_ns, p999_ns, max_ns, core_percent, watching_percent, .. } = candidate.measured;
    let [p50, p99, p999, max] = [p50_ns, p99_ns, p999_ns, max_ns].map(|ns| format!("{:.1}", ns as f64 / 1e3));
    let line = format!(
        "{:9}  {:7}  {:9}  {:>14}  {p50:>7} {p99:>7} {p999:>7} {max:>7}  {core_percent:>12.2} {watching_percent:>11.2}  {}",
        candidate.step,
        candidate.policy,
        candidate.processor.map_or("any".to_owned(), |processor| processor.to_string()),
        candidate.spin,
        if candidate.meets { "meets it" } else { "" }
    );
    format!("{}\n", line.trim_end())
}

fn conclusion(found: &Found, wish: &Wish) -> String {
    let reasons: String = found.reasons.iter().map(|reason| format!("  {reason}\n")).collect();
    let measured = &found.measured;
    let p99 = Span::from_nanos(measured.p99_ns / 100 * 100);
    let outcome = if found.meets { "met" } else { "not met" };
    format!(
        "\nselected:\n{reasons}  the margin adapts from there: 99 % of packets within {p99} at {:.2} % of a core for \
         100 packets/s\ntarget {}: {outcome}\n",
        measured.core_percent,
        Span::from_nanos(wish.bound_ns),
    )
}
