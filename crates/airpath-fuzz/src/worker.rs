// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A process that gives inputs to a target, one after the other.
//!
//! What it says on standard output is for the process that started it: `failed NUMBER MESSAGE` for each
//! input that broke something, `tried COUNT` at the end.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, setrlimit};

use crate::cli::Arguments;
use crate::corpus::Corpus;
use crate::mutate;
use crate::targets::{Context, Target};

/// Message and place of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Gives the inputs of one worker to the only target.
///
/// # Errors
/// When the corpus or the scratch folder cannot be had.
pub fn run(arguments: &Arguments) -> Result<bool, String> {
    let (Some(worker), Some(progress), [target]) = (arguments.worker, &arguments.progress, arguments.target.as_slice())
    else {
        return Err("a worker needs one target and a file for its progress".into());
    };
    let seed = arguments.seed.unwrap_or_default();
    let corpus = corpus_of(arguments, *target)?;
    limit_memory(arguments.memory)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let context = Context { corpus: arguments.corpus.join(target.name()), scratch: scratch.path().into() };
    let progress = File::options().write(true).open(progress).map_err(|error| format!("no progress file: {error}"))?;
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().split_whitespace().map(place).collect::<Vec<_>>().join(" ");
        *PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = text;
    }));
    let deadline = arguments.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    let mut out = std::io::stdout().lock();
    let mut tried = 0u64;
    let mut number = arguments.first + worker as u64;
    while number < arguments.end() && deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let (input, _) = mutate::input(&corpus, seed, number);
        // Who started this process reads it when the process has died, or has not gone on for too long.
        progress.write_all_at(&number.to_le_bytes(), 0).map_err(|error| format!("no progress: {error}"))?;
        if catch_unwind(AssertUnwindSafe(|| target.run(&input, &context))).is_err() {
            let message = PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
            let _ = writeln!(out, "failed {number} {message}");
        }
        tried += 1;
        number += arguments.jobs() as u64;
    }
    let _ = writeln!(out, "tried {tried}");
    Ok(true)
}

/// A word of a message; of a place in another crate, what does not depend on this machine.
fn place(word: &str) -> &str {
    word.rsplit_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/')).map_or(word, |(_, place)| place)
}

/// Gives the file at `path` to the only target, in this process.
///
/// # Errors
/// When there is no file or not one target.
pub fn one(arguments: &Arguments, path: &Path) -> Result<bool, String> {
    let input = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if let Some(engine) = &arguments.through {
        let commands = arguments.commands();
        let scratch = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        let [command] = commands.as_slice() else { return Err("name one command with --command".into()) };
        limit_memory(arguments.memory)?;
        let corpus = arguments.corpus.join(command.target().name());
        let outcome = command.run(engine, &input, &corpus, scratch.path(), arguments.limit())?;
        println!("{}", outcome.as_deref().unwrap_or("nothing is wrong"));
        return Ok(outcome.is_none());
    }
    let [target] = arguments.target.as_slice() else { return Err("name one target with --target".into()) };
    let scratch = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let context = Context { corpus: arguments.corpus.join(target.name()), scratch: scratch.path().into() };
    limit_memory(arguments.memory)?;
    let begun = Instant::now();
    let fine = catch_unwind(AssertUnwindSafe(|| target.run(&input, &context))).is_ok();
    println!("{} in {:.3} s", if fine { "nothing is wrong" } else { "broken" }, begun.elapsed().as_secs_f64());
    Ok(fine && begun.elapsed() <= arguments.limit())
}

/// The seeds of a target.
///
/// # Errors
/// When they cannot be read.
pub fn corpus_of(arguments: &Arguments, target: Target) -> Result<Corpus, String> {
    Corpus::read(&arguments.corpus.join(target.name()), target.seeds())
}

/// Limits the memory of this process and of those that it starts.
///
/// # Errors
/// When the system refuses.
pub fn limit_memory(megabytes: u64) -> Result<(), String> {
    let bytes = megabytes.saturating_mul(1_000_000);
    setrlimit(Resource::RLIMIT_AS, bytes, bytes).map_err(|error| format!("cannot limit the memory: {error}"))?;
    // A crash is told by its input; a core tells nothing more.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| format!("cannot forbid cores: {error}"))
}
