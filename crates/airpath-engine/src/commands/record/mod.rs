// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath record`: measures the path to `airpath recv`, and writes a scenario that replays it.

mod phases;
mod text;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use airpath_core::Span;
use airpath_record::client::Recorder;
use airpath_record::folder::{self, Folder, NoFolder, SCENARIO};
use airpath_record::recording::{Clocks, FORMAT_VERSION, Recording};
use airpath_scenario::Scenario;

use crate::cli::record::{RecordArgs, Target};
use crate::error::{Failure, Result};
use crate::link::read;
use crate::load::failure;
use crate::signals;
use crate::terminal::{finish, say};
use phases::Phases;

/// Duration of a comparison of the clocks, and the interval of its exchanges.
const CLOCKS: Duration = Duration::from_secs(2);
const CLOCKS_EVERY: Duration = Duration::from_millis(100);

/// Records, or estimates a recording again.
///
/// # Errors
/// When options make no sense, nobody answers, or nothing can be written.
pub fn run(args: &RecordArgs) -> Result<i32> {
    match (&args.from, &args.to, &args.out) {
        (Some(from), ..) => again(args, from),
        (None, Some(to), Some(out)) => record(args, to, out),
        _ => Err(Failure::usage("name the host with --to and the directory with --out")),
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}

fn again(args: &RecordArgs, from: &Path) -> Result<i32> {
    let (folder, recording, packets) = folder::read(from).map_err(Failure::usage)?;
    if recording.parts.is_empty() {
        let named = from.display();
        return Err(Failure::program(format!(
            "{named}: the recording broke off in its first phase: record the path again"
        )));
    }
    let analysis = folder.conclude(&recording, &packets).map_err(Failure::unwritable)?;
    check(&from.join(SCENARIO))?;
    text::print(args.json, &recording, &analysis, from);
    Ok(0)
}

/// Interruption by the user: the first signal ends the load, the second one the process.
#[derive(Debug, Default)]
struct Interruption {
    stop: AtomicBool,
    signal: AtomicI32,
}

impl Interruption {
    fn watch() -> Result<Arc<Interruption>> {
        let interruption = Arc::new(Interruption::default());
        let told = Arc::clone(&interruption);
        signals::on_each(move |signal| {
            if told.stop.swap(true, Ordering::Relaxed) {
                say!("airpath: interrupted by {signal}; what was recorded before is kept");
                std::process::exit(finish(128 + signal as i32));
            }
            told.signal.store(signal as i32, Ordering::Relaxed);
            say!("airpath: {signal}: the recording ends early, and is evaluated; once more ends it at once");
        })?;
        Ok(interruption)
    }

    fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }
}

fn record(args: &RecordArgs, to: &Target, out: &Path) -> Result<i32> {
    let phases = Phases::of(args)?;
    let interruption = Interruption::watch()?;
    let error = args.simulated_error.unwrap_or_default();
    let unfit = |refused| match refused {
        NoFolder::NotEmpty(message) => Failure::usage(message),
        NoFolder::Unwritable(message) => Failure::unwritable(message),
    };
    Folder::check(out).map_err(unfit)?;
    let mut recorder = Recorder::connect(&to.host, to.port, error).map_err(|error| failure(&error))?;
    // Nothing is made before somebody answers.
    let folder = Folder::create(out).map_err(unfit)?;
    say!("airpath: recording the path to {} into {}; about {} s", recorder.peer(), out.display(), phases.seconds());
    let mut recording = Recording {
        format_version: FORMAT_VERSION,
        airpath_version: env!("CARGO_PKG_VERSION").into(),
        host: to.host.clone(),
        peer: recorder.peer().to_string(),
        began_unix_ns: recorder.now_ns(),
        clocks: Clocks { same: args.synchronised, estimates: Vec::new() },
        parts: Vec::new(),
        warnings: Vec::new(),
    };
    folder.recording(&recording).map_err(Failure::unwritable)?;
    compare(&recorder, &mut recording, args);
    let (packets, outcome) = phases.run(&mut recorder, &mut recording, &folder, &interruption);
    if outcome.is_ok() && interruption.signal().is_none() {
        compare(&recorder, &mut recording, args);
    }
    if recording.parts.is_empty() {
        outcome?;
        return Ok(interruption.signal().map_or(1, |signal| 128 + signal));
    }
    folder.recording(&recording).map_err(Failure::unwritable)?;
    let analysis = folder.conclude(&recording, &packets).map_err(Failure::unwritable)?;
    check(&out.join(SCENARIO))?;
    text::print(args.json, &recording, &analysis, out);
    outcome?;
    Ok(interruption.signal().map_or(0, |signal| 128 + signal))
}

/// Compares the clocks, unless they are one.
fn compare(recorder: &Recorder, recording: &mut Recording, args: &RecordArgs) {
    if recording.clocks.same {
        return;
    }
    match recorder.compare_clocks(CLOCKS, CLOCKS_EVERY) {
        // Ends with the same boot of the same kernel have one clock; a simulated error makes it two.
        Ok(estimate)
            if !estimate.local.identity.is_empty()
                && estimate.local.identity == estimate.remote.identity
                && args.simulated_error.is_none() =>
        {
            recording.clocks.same = true;
        }
        Ok(estimate) => {
            recording.warnings.extend(estimate.warnings.iter().cloned());
            recording.clocks.estimates.push(estimate);
        }
        Err(error) => {
            let warning = format!("the clocks could not be compared: {error}");
            say!("airpath: {warning}");
            recording.warnings.push(warning);
        }
    }
}

/// Reads the scenario as `airpath exec` will.
fn check(path: &Path) -> Result<()> {
    let checked = Scenario::from_toml(&read(path)?, &path.display().to_string()).and_then(|scenario| scenario.paths());
    checked.map(drop).map_err(|report| {
        Failure::new(format!("the scenario that was written is not valid, which is a bug in Airpath:\n{report}"))
    })
}
