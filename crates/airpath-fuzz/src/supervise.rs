// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Starts workers, watches them, and tells what they found.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::cli::Arguments;
use crate::findings::{Finding, Findings};
use crate::targets::Target;
use crate::{mutate, through, worker};

/// Interval of looks at the progress of a worker.
const LOOK: Duration = Duration::from_millis(50);
/// Number of crashes of one worker from which something is wrong with more than an input.
const CRASHES: usize = 200;
/// The file of a worker's folder that holds the number of its input.
const PROGRESS: &str = "progress";

/// Runs every campaign asked for; whether nothing was found.
///
/// # Errors
/// When a campaign cannot be run.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let seed = arguments.seed.unwrap_or(now % 1_000_000_007);
    let arguments = Arguments { seed: Some(seed), ..arguments.clone() };
    let (mut tried, mut failures) = (0, 0);
    let mut add = |outcome: (u64, usize)| {
        tried += outcome.0;
        failures += outcome.1;
    };
    if arguments.through.is_some() {
        for command in arguments.commands() {
            add(through::campaign(&arguments, command, seed)?);
        }
    } else {
        for target in arguments.targets() {
            add(campaign(&arguments, target, seed)?);
        }
    }
    println!("tried {tried}, failures {failures} (seed {seed})");
    Ok(failures == 0)
}

/// Runs the inputs of one target; how many were tried, and how many broke something.
fn campaign(arguments: &Arguments, target: Target, seed: u64) -> Result<(u64, usize), String> {
    let begun = Instant::now();
    let corpus = worker::corpus_of(arguments, target)?;
    let findings = Mutex::new(Findings::default());
    let name = format!("{}-{seed}", target.name());
    let found = |finding: &Finding| {
        let (input, _) = mutate::input(&corpus, seed, finding.number);
        let mut findings = findings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        findings.add(finding, &input, &name, &arguments.findings);
    };
    let tried = std::thread::scope(|scope| {
        let found = &found;
        let watched: Vec<_> = (0..arguments.jobs())
            .map(|number| scope.spawn(move || watch(arguments, target, number, seed, found)))
            .collect();
        watched
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a watch broke".into())))
            .sum::<Result<u64, String>>()
    })?;
    let findings = findings.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    findings.tell();
    tell(target.name(), tried, findings.count(), seed, begun.elapsed(), corpus.len());
    Ok((tried, findings.count()))
}

/// The line of one campaign.
pub fn tell(name: &str, tried: u64, failures: usize, seed: u64, took: Duration, seeds: usize) {
    let seconds = took.as_secs_f64();
    let rate = tried as f64 / seconds.max(1e-9);
    println!("{name}: tried {tried}, failures {failures} (seed {seed}, {seeds} seeds, {seconds:.1} s, {rate:.0}/s)");
}

/// Runs worker `number` of a campaign to its end, and again behind each input that ended it.
fn watch(
    arguments: &Arguments,
    target: Target,
    number: usize,
    seed: u64,
    found: &(dyn Fn(&Finding) + Sync),
) -> Result<u64, String> {
    let begun = Instant::now();
    // A worker that is killed removes nothing: its temporary files go with this folder.
    let scratch = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let progress = scratch.path().join(PROGRESS);
    let jobs = arguments.jobs() as u64;
    let (mut tried, mut first, mut crashes) = (0, arguments.first, 0);
    loop {
        let left = arguments.seconds.map(|seconds| seconds - begun.elapsed().as_secs_f64());
        if first >= arguments.end() || left.is_some_and(|left| left <= 0.0) {
            return Ok(tried);
        }
        std::fs::write(&progress, u64::MAX.to_le_bytes()).map_err(|error| error.to_string())?;
        let mut child = start(arguments, target, number, seed, first, left, scratch.path())?;
        let lines = child.stdout.take().map(BufReader::new);
        let reader = std::thread::spawn(move || {
            lines.into_iter().flat_map(|lines| lines.lines().map_while(Result::ok)).collect::<Vec<String>>()
        });
        let (status, too_long) = wait(&mut child, &progress, arguments.limit())?;
        let mut whole = false;
        for line in reader.join().unwrap_or_default() {
            match line.split_once(' ') {
                Some(("failed", rest)) => {
                    let (number, what) = rest.split_once(' ').unwrap_or((rest, ""));
                    found(&Finding { number: number.parse().unwrap_or_default(), what: what.into() });
                }
                Some(("tried", count)) => {
                    tried += count.parse::<u64>().unwrap_or_default();
                    whole = true;
                }
                _ => println!("  {line}"),
            }
        }
        if whole {
            return Ok(tried);
        }
        let at = at_work(&progress);
        if at == u64::MAX {
            return Err(format!("a worker of {} did not begin: {status}", target.name()));
        }
        let what = match too_long {
            true => format!("took longer than {} s", arguments.limit().as_secs_f64()),
            false => format!("the worker died: {status} (out of memory, or a stack overflow)"),
        };
        found(&Finding { number: at, what });
        tried += (at - first) / jobs + 1;
        first = at - number as u64 + jobs;
        crashes += 1;
        if crashes >= CRASHES {
            println!("  worker {number} of {} stops after {crashes} crashes", target.name());
            return Ok(tried);
        }
    }
}

fn start(
    arguments: &Arguments,
    target: Target,
    number: usize,
    seed: u64,
    first: u64,
    left: Option<f64>,
    scratch: &Path,
) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["--target", target.name(), "--worker", &number.to_string(), "--first", &first.to_string()]);
    command.args(["--seed", &seed.to_string(), "--jobs", &arguments.jobs().to_string()]);
    command.args(["--memory", &arguments.memory.to_string()]);
    command.arg("--corpus").arg(&arguments.corpus).arg("--progress").arg(scratch.join(PROGRESS));
    command.env("TMPDIR", scratch);
    if arguments.inputs.is_some() || arguments.seconds.is_none() {
        command.args(["--inputs", &(arguments.end() - first).to_string()]);
    }
    if let Some(left) = left {
        command.args(["--seconds", &left.to_string()]);
    }
    // Messages of readers are no news here, and panics come by standard output.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().map_err(|error| format!("cannot start a worker: {error}"))
}

/// Waits until `child` ends, or stops it when it has been at one input for longer than `limit`.
fn wait(child: &mut Child, progress: &Path, limit: Duration) -> Result<(std::process::ExitStatus, bool), String> {
    let mut last = (u64::MAX, Instant::now());
    let mut too_long = false;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok((status, too_long)),
            Ok(None) => {}
            Err(error) => return Err(format!("cannot wait for a worker: {error}")),
        }
        let at = at_work(progress);
        if at != last.0 {
            last = (at, Instant::now());
        } else if at != u64::MAX && last.1.elapsed() > limit {
            too_long = true;
            let _ = child.kill();
        }
        std::thread::sleep(LOOK);
    }
}

/// The input that the worker has noted last.
fn at_work(progress: &Path) -> u64 {
    let bytes = std::fs::read(progress).unwrap_or_default();
    bytes.first_chunk::<8>().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
}
