// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Two processes that live and die together. The foreground process (the one
//! the user started) forks the *engine process* as PID 1 of a fresh PID
//! namespace and waits for it: it forwards signals and mirrors the exit status.
//!
//! * If the foreground process dies in any way, the kernel kills the engine
//!   process (parent-death signal), and with it everything in its PID
//!   namespace.
//! * If the engine process dies in any way, everything in its PID namespace
//!   dies with it, and the foreground process says so.
//!
//! The namespaces of a run are held by file descriptors and processes only,
//! so nothing outlives them.
#![allow(unsafe_code)]

mod bound;
mod engine;
mod foreground;
mod inherited;

use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, pthread_sigmask, signal};
use nix::unistd::{ForkResult, fork, pipe2};

pub use bound::{adopt_descriptor, bind_to_this_process, start_with_signals, yield_to_others};
pub use engine::{EngineProcess, EngineSignal};
pub use inherited::Inherited;

use crate::error::{Attempting, LiveError, Result};
use crate::refusal::explain_refusal;

/// Signals that ask a run to end, and end a process that does nothing about them.
pub const ENDING: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Exit status of the foreground process when the engine process failed
/// (rather than the user's command).
pub const ENGINE_FAILED_STATUS: i32 = 125;

/// Time for threads that have done their work to be gone.
const LAST_OF_THREADS: Duration = Duration::from_secs(1);

/// Signals that reach the command through both processes.
const FORWARDED: [Signal; 9] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

fn handled_signals() -> SigSet {
    let mut set = SigSet::empty();
    for signal in FORWARDED {
        set.add(signal);
    }
    set.add(Signal::SIGCHLD);
    set
}

/// Forks the engine process, runs `main` in it, and returns in the foreground
/// process with the exit status to leave with: what `main` returned, or
/// [`ENGINE_FAILED_STATUS`] after a message on standard error when the engine
/// process was killed or panicked.
///
/// Call it while the process has one thread only, after
/// [`privilege::acquire`](crate::privilege::acquire). Afterwards the
/// foreground process can start no thread (its future children belong to a
/// PID namespace that is gone).
///
/// # Errors
/// When the PID namespace or the process cannot be made.
pub fn run<F>(main: F) -> Result<i32>
where
    F: FnOnce(EngineProcess) -> i32,
{
    refuse_threads()?;
    // An inherited "ignore" would make the kernel reap the engine unseen.
    // SAFETY: the default action runs no code of ours.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }
        .attempting(|| "restore the default action of SIGCHLD".into())?;
    let mut original_mask = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&handled_signals()), Some(&mut original_mask))
        .attempting(|| "block signals".into())?;
    let outcome = fork_and_wait(main, original_mask);
    let restored = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&original_mask), None)
        .attempting(|| "restore the signal mask".into());
    let status = outcome?;
    restored?;
    Ok(status)
}

fn fork_and_wait<F>(main: F, original_mask: SigSet) -> Result<i32>
where
    F: FnOnce(EngineProcess) -> i32,
{
    let (alive_reader, alive_writer) = pipe2(OFlag::O_CLOEXEC).attempting(|| "make a pipe".into())?;
    unshare(CloneFlags::CLONE_NEWPID).map_err(|errno| explain_refusal("a process namespace", errno))?;
    let terminal = foreground::Terminal::remember();
    // SAFETY: the process has one thread (checked above), so the child may
    // use the allocator and everything else.
    match unsafe { fork() }.attempting(|| "fork the engine process".into())? {
        ForkResult::Child => {
            drop(alive_writer);
            let status = engine_main(main, &alive_reader, original_mask);
            let _ = std::io::stdout().flush();
            std::process::exit(status)
        }
        ForkResult::Parent { child } => {
            drop(alive_reader);
            let status = foreground::wait_for(child)?;
            terminal.restore();
            drop(alive_writer);
            Ok(status)
        }
    }
}

fn engine_main<F>(main: F, alive: &OwnedFd, original_mask: SigSet) -> i32
where
    F: FnOnce(EngineProcess) -> i32,
{
    let entered =
        engine::die_with_parent(alive.as_fd()).and_then(|()| EngineProcess::enter(&handled_signals(), original_mask));
    match entered {
        Ok(process) => catch_unwind(AssertUnwindSafe(|| main(process))).unwrap_or_else(|_| {
            tell(format_args!("the engine process panicked; this is a bug in Airpath"));
            ENGINE_FAILED_STATUS
        }),
        Err(error) => {
            tell(format_args!("{error}"));
            ENGINE_FAILED_STATUS
        }
    }
}

fn refuse_threads() -> Result<()> {
    let begun = Instant::now();
    let threads = loop {
        let threads = fs::read_dir("/proc/self/task")
            .map(Iterator::count)
            .attempting(|| "count this process's threads in /proc/self/task".into())?;
        // A thread that was joined may still be on its way out.
        if threads == 1 {
            return Ok(());
        } else if begun.elapsed() > LAST_OF_THREADS {
            break threads;
        }
        thread::sleep(Duration::from_millis(1));
    };
    Err(LiveError::Request(format!(
        "the engine process must be forked while there is one thread, but there are {threads}"
    )))
}

/// A message to the user; where nobody can be told, nothing is lost but the message.
fn tell(message: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "airpath: {message}");
}
