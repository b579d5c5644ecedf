// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Several replications of one run, some at a time: each is a process of its own with the next seed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Seek;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use airpath_live::supervise;
use airpath_log::{Clock, place};
use airpath_scenario::Scenario;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::from_options::request;
use super::machine::JOBS_VARIABLE;
use super::replication::{self, Finished, Why, summarise};
use super::{arguments, calibrated, commands, lines, warp};
use crate::cli::ExecArgs;
use crate::error::{Failure, Result};
use crate::seed::fresh_seed;
use crate::status;
use crate::terminal::say;

/// Time that replications have to end before they are killed.
const KILL_AFTER: Duration = Duration::from_secs(5);

/// One replication under way.
struct Running {
    number: u32,
    seed: u64,
    /// Its manifest comes here; a file that has no name, so that none can be left behind.
    manifest: File,
    begun: Instant,
    child: Child,
}

/// Runs `args.replications` replications, `args.jobs` at a time. The exit status is the first one
/// that is not 0.
///
/// # Errors
/// When the options make no sense, the folder cannot be made or a process cannot be started.
pub fn run(args: &ExecArgs, scenario: &Scenario) -> Result<i32> {
    // What every replication would complain about is told once.
    let mut common = request(&args.run, scenario.clone(), args.command.clone())?;
    commands::of_exec(&mut common, args)?;
    lines::of_command(&mut common, &args.lines, args.clock)?;
    if args.clock == Clock::Warp && !airpath_warp::guest::is_guest() {
        warp::check(&common)?;
    }
    if args.clock == Clock::Live {
        calibrated::apply(&mut common, &args.run)?;
    }
    let seed = args.run.seed.unwrap_or_else(fresh_seed);
    replication::check_seeds(seed, args.replications)?;
    if let Some(folder) = &args.run.out {
        airpath_log::folder::create(folder).map_err(Failure::log)?;
    }
    let mut signals = Signals::take()?;
    let mut waiting: VecDeque<u32> = (1..=args.replications).collect();
    let mut running: Vec<Running> = Vec::new();
    let jobs = args.jobs.min(args.replications);
    let mut finished: Vec<Finished> = Vec::new();
    while !waiting.is_empty() || !running.is_empty() {
        while running.len() < args.jobs as usize
            && let Some(number) = waiting.pop_front()
        {
            running.push(start(number, replication::seed(seed, number), args.run.out.as_deref(), jobs)?);
        }
        if let Some((signal, everybody)) = signals.wait(PollTimeout::NONE)? {
            break_off(&mut signals, running, (!everybody).then_some(signal))?;
            let done = format_args!("{} of {} replications", finished.len(), args.replications).to_string();
            say!("airpath: {signal}: aborted after {done}");
            if let Some(folder) = &args.run.out {
                say!("airpath: their records are in {}", folder.display());
            }
            return Ok(status::of_signal(signal as i32));
        }
        for (one, status) in reap(&mut running)? {
            let done = finish(one, status, args);
            finished.push(done);
        }
    }
    if !args.run.quiet {
        summarise(&finished, args.run.out.as_deref());
        if replication::all_the_same(&finished) {
            replication::tell_same(finished.len());
        }
    }
    Ok(replication::status(&finished))
}

/// The signals that this process waits for.
struct Signals(SignalFd);

impl Signals {
    fn take() -> Result<Signals> {
        let mut set: SigSet = supervise::ENDING.into_iter().collect();
        set.add(Signal::SIGCHLD);
        let refused = |errno| Failure::new(format!("cannot wait for signals: {errno}"));
        set.thread_block().map_err(refused)?;
        SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map(Signals).map_err(refused)
    }

    /// Waits until a replication has ended (then there is none) or a signal breaks them off; also
    /// tells whether the terminal sent it to the replications as well.
    fn wait(&mut self, patience: PollTimeout) -> Result<Option<(Signal, bool)>> {
        let refused = |errno| Failure::new(format!("cannot wait for signals: {errno}"));
        let mut ends = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ends, patience) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(refused(errno)),
        }
        while let Some(info) = self.0.read_signal().map_err(refused)? {
            let breaking = supervise::ENDING.into_iter().find(|signal| *signal as u32 == info.ssi_signo);
            if let Some(signal) = breaking {
                return Ok(Some((signal, info.ssi_code == libc::SI_KERNEL)));
            }
        }
        Ok(None)
    }
}

/// Takes those that have ended out of `running`.
fn reap(running: &mut Vec<Running>) -> Result<Vec<(Running, std::process::ExitStatus)>> {
    let mut ended = Vec::new();
    let mut index = 0;
    while index < running.len() {
        match running[index].child.try_wait() {
            Ok(None) => index += 1,
            Ok(Some(status)) => ended.push((running.swap_remove(index), status)),
            Err(error) => return Err(Failure::new(format!("cannot wait for a replication: {error}"))),
        }
    }
    Ok(ended)
}

/// Ends all that still run: with `signal`, unless they have it already, and at last by force.
fn break_off(signals: &mut Signals, mut running: Vec<Running>, signal: Option<Signal>) -> Result<()> {
    if let Some(signal) = signal {
        for one in &running {
            // ESRCH: it has ended.
            let _ = kill(Pid::from_raw(one.child.id() as i32), signal);
        }
    }
    let begun = Instant::now();
    while !running.is_empty() && begun.elapsed() < KILL_AFTER {
        let left = KILL_AFTER.saturating_sub(begun.elapsed());
        // Another signal, an impatient second Ctrl-C, ends them at once.
        if signals.wait(PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO))?.is_some() {
            break;
        }
        reap(&mut running)?;
    }
    for one in &mut running {
        let _ = one.child.kill();
        let _ = one.child.wait();
    }
    Ok(())
}

/// Starts this program again for one replication, with the same options but for seed, folder and
/// report.
fn start(number: u32, seed: u64, folder: Option<&Path>, jobs: u32) -> Result<Running> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        Failure::new(format!("cannot start replication {number}: {what}: {error}"))
    };
    let program = std::env::current_exe().map_err(|error| failed("program not found", &error))?;
    let manifest = memfd_create(c"airpath-manifest", MFdFlags::MFD_CLOEXEC)
        .map_err(|error| failed("no file for its manifest", &error))?;
    let mut command = Command::new(program);
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let dropped = [
        ("--replications", true),
        ("--jobs", true),
        ("--seed", true),
        ("--out", true),
        ("--quiet", false),
        ("-q", false),
        ("--json", false),
    ];
    let words = arguments::without(&words, &dropped);
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    command.args(&words[..end]);
    command.args(["--quiet", "--seed", &seed.to_string()]);
    command.args(["--manifest-descriptor", &manifest.as_raw_fd().to_string()]);
    if let Some(folder) = folder {
        let folder = replication::folder(folder, number);
        command.arg("--out").arg(&folder);
        // The folder of the replication does not exist yet; its outputs lie beside it.
        let output = |kind: &str| {
            let path = folder.with_extension(kind);
            place::create_new(&path)
                .map_err(|error| Failure::unwritable(format!("cannot write {}: {error}", path.display())))
        };
        command.stdout(output("stdout")?).stderr(output("stderr")?);
    }
    command.args(&words[end..]).stdin(Stdio::null()).env(JOBS_VARIABLE, jobs.to_string());
    supervise::bind_to_this_process(&mut command, Some(manifest.as_raw_fd()));
    let child = command.spawn().map_err(|error| failed("no process", &error))?;
    Ok(Running { number, seed, manifest: manifest.into(), begun: Instant::now(), child })
}

fn finish(one: Running, ended: std::process::ExitStatus, args: &ExecArgs) -> Finished {
    use std::os::unix::process::ExitStatusExt;
    let mut file = &one.manifest;
    let manifest: Option<serde_json::Value> =
        file.rewind().ok().and_then(|()| serde_json::from_reader(std::io::BufReader::new(file)).ok());
    let text = |key: &str| manifest.as_ref().and_then(|manifest| manifest.pointer(key)).cloned();
    let done = Finished {
        number: one.number,
        seed: one.seed,
        seconds: text("/results/duration_ns")
            .and_then(|value| value.as_u64())
            .map_or_else(|| one.begun.elapsed().as_secs_f64(), |nanos| nanos as f64 / 1e9),
        // In real time no two are.
        came_to: text("/results"),
        verdict: text("/results/verdict/grade")
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or("no verdict".into()),
        reasons: text("/results/verdict")
            .and_then(|value| serde_json::from_value(value).ok())
            .map_or_else(Vec::new, |verdict| Why::of(&verdict)),
        status: ended.code().unwrap_or_else(|| status::of_signal(ended.signal().unwrap_or(0))),
    };
    if !args.run.quiet {
        done.tell(args.replications);
    }
    done
}
