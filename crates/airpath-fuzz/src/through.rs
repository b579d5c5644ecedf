// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The same inputs through the commands of the engine, each in a process of its own.

use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::cli::Arguments;
use crate::command::Command;
use crate::findings::{Finding, Findings};
use crate::supervise::tell;
use crate::{mutate, worker};

/// Outcome of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
enum TrialOutcome {
    /// The command did it or said why not.
    Fine,
    /// The scenario asks for more than there is time or memory for, which is no defect.
    Heavy,
    /// The command broke.
    Broken(String),
}

/// The statuses with which the engine ends by itself.
const STATUSES: [i32; 4] = [0, 1, 2, 125];

impl Command {
    /// Gives `input` to the command; what broke, if anything did.
    ///
    /// # Errors
    /// When the engine cannot be started or the scratch folder not be written.
    pub fn run(
        self,
        engine: &Path,
        input: &[u8],
        corpus: &Path,
        scratch: &Path,
        limit: Duration,
    ) -> Result<Option<String>, String> {
        let words = self.prepare(input, corpus, scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        Ok(match self.outcome(engine, &words, scratch, limit)? {
            TrialOutcome::Broken(what) => Some(what),
            TrialOutcome::Fine | TrialOutcome::Heavy => None,
        })
    }

    /// Writes the files of an input; the words of the command.
    fn prepare(self, input: &[u8], corpus: &Path, scratch: &Path) -> std::io::Result<Vec<String>> {
        let odd = input.len() % 2 == 1;
        let words = |words: &[&str]| Ok(words.iter().map(|word| (*word).to_string()).collect());
        match self {
            Command::Check | Command::PrintScenario | Command::Sim => {
                fs::write(scratch.join("scenario.toml"), input)?;
                match self {
                    Command::Check => words(&["check", "scenario.toml"]),
                    Command::PrintScenario => {
                        words(&["exec", "--scenario", "scenario.toml", "--print-scenario", "--", "true"])
                    }
                    _ => words(&[
                        "sim",
                        "--scenario",
                        "scenario.toml",
                        "--duration",
                        "2 s",
                        "--seed",
                        "1",
                        "--quiet",
                        "--workload",
                        "cbr rate=\"64 kbit/s\" size=200 from=client",
                    ]),
                }
            }
            Command::Trace => {
                fs::write(scratch.join("trace"), input)?;
                if odd {
                    words(&["trace", "show", "trace"])
                } else {
                    words(&["trace", "convert", "trace", "-", "--to", "csv"])
                }
            }
            Command::Pcap => {
                fs::write(scratch.join("capture"), input)?;
                words(&[
                    "sim",
                    "--rate",
                    "1 Mbit/s",
                    "--duration",
                    "2 s",
                    "--seed",
                    "1",
                    "--quiet",
                    "--workload",
                    "pcap file=capture",
                ])
            }
            Command::Log | Command::Replay => {
                let run = scratch.join("run");
                fs::create_dir_all(&run)?;
                for entry in fs::read_dir(corpus.join("run"))? {
                    let entry = entry?;
                    fs::copy(entry.path(), run.join(entry.file_name()))?;
                }
                let name = match input {
                    [b'A', ..] | [0xff, ..] => ["events.arrow", "input.arrow", "tcp.arrow"][input.len() % 3],
                    [0x0a, 0x0d, ..] => "client.pcapng",
                    _ => "run.json",
                };
                fs::write(run.join(name), input)?;
                match (self, name) {
                    (Command::Replay, _) => words(&["replay", "run"]),
                    (_, "tcp.arrow") => words(&["log", "run", "--tcp"]),
                    _ if odd => words(&["log", "run", "--tcpdump"]),
                    _ => words(&["log", "run"]),
                }
            }
        }
    }

    fn outcome(self, engine: &Path, words: &[String], scratch: &Path, limit: Duration) -> Result<TrialOutcome, String> {
        let mut command = std::process::Command::new(engine);
        command.args(words).current_dir(scratch).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", engine.display()))?;
        let (said, status) = wait(&mut child, limit).map_err(|error| format!("cannot wait for the engine: {error}"))?;
        let may_be_heavy = matches!(self, Command::Sim);
        let Some(status) = status else {
            let heavy = if may_be_heavy { TrialOutcome::Heavy } else { TrialOutcome::Broken("took too long".into()) };
            return Ok(heavy);
        };
        if may_be_heavy && said.contains("memory allocation of") {
            return Ok(TrialOutcome::Heavy);
        }
        let line = said.lines().find(|line| line.contains("panicked") || line.contains("overflow")).unwrap_or_default();
        if said.contains("panicked at") || !status.code().is_some_and(|code| STATUSES.contains(&code)) {
            let how = status.signal().map_or(format!("status {status}"), |signal| format!("signal {signal}"));
            let after: Vec<&str> = said.lines().skip_while(|other| *other != line).take(2).collect();
            return Ok(TrialOutcome::Broken(format!("{how}: {}", after.join(" "))));
        }
        // `replay` tells the difference on standard output.
        let told = matches!(self, Command::Replay);
        if status.code() != Some(0) && said.trim().is_empty() && !told && !may_be_heavy {
            return Ok(TrialOutcome::Broken(format!("{status} without a word")));
        }
        Ok(TrialOutcome::Fine)
    }
}

/// Messages of `child` on standard error until it ends, and its exit; none when it had to be stopped.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<(String, Option<ExitStatus>)> {
    let end = Instant::now() + limit;
    let mut said = Vec::new();
    if let Some(mut pipe) = child.stderr.take() {
        let mut chunk = [0; 4096];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
            let ready = poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], timeout);
            match ready {
                Ok(0) => {
                    child.kill()?;
                    child.wait()?;
                    return Ok((String::new(), None));
                }
                Err(nix::errno::Errno::EINTR) => continue,
                Err(errno) => return Err(errno.into()),
                Ok(_) => {}
            }
            match pipe.read(&mut chunk)? {
                0 => break,
                // A million lines of complaint are read and forgotten.
                count if said.len() < 1 << 20 => said.extend_from_slice(&chunk[..count]),
                _ => {}
            }
        }
    }
    Ok((String::from_utf8_lossy(&said).into_owned(), Some(child.wait()?)))
}

/// Runs the inputs of one command; how many were tried, and how many broke it.
///
/// # Errors
/// When the corpus cannot be read or the engine not be started.
pub fn campaign(arguments: &Arguments, command: Command, seed: u64) -> Result<(u64, usize), String> {
    let begun = Instant::now();
    let target = command.target();
    let corpus = worker::corpus_of(arguments, target)?;
    let folder = fs::canonicalize(arguments.corpus.join(target.name())).map_err(|error| error.to_string())?;
    let engine = arguments.through.as_deref().unwrap_or(Path::new("airpath-engine"));
    let engine = fs::canonicalize(engine).map_err(|error| format!("no engine {}: {error}", engine.display()))?;
    // Commands inherit the limit; this program needs little itself.
    worker::limit_memory(arguments.memory)?;
    let findings = Mutex::new(Findings::default());
    let name = format!("{}-{seed}", command.name());
    let (next, heavy) = (AtomicU64::new(arguments.first), AtomicU64::new(0));
    let deadline = arguments.seconds.map(|seconds| begun + Duration::from_secs_f64(seconds.clamp(0.0, 1e9)));
    let work = || -> Result<u64, String> {
        let scratch = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        let mut tried = 0;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= arguments.end() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(tried);
            }
            let (input, _) = mutate::input(&corpus, seed, number);
            let words = command.prepare(&input, &folder, scratch.path()).map_err(|error| error.to_string())?;
            match command.outcome(&engine, &words, scratch.path(), arguments.limit())? {
                TrialOutcome::Fine => {}
                TrialOutcome::Heavy => drop(heavy.fetch_add(1, Ordering::Relaxed)),
                TrialOutcome::Broken(what) => {
                    let mut findings = findings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    findings.add(&Finding { number, what }, &input, &name, &arguments.findings);
                }
            }
            tried += 1;
        }
    };
    let tried = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.jobs()).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a worker broke".into())))
            .sum::<Result<u64, String>>()
    })?;
    let findings = findings.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    findings.tell();
    let heavy = heavy.into_inner();
    if heavy > 0 {
        println!("  {heavy} scenarios asked for more time or memory than there was, which is no defect");
    }
    tell(&format!("through {}", command.name()), tried, findings.count(), seed, begun.elapsed(), corpus.len());
    Ok((tried, findings.count()))
}
