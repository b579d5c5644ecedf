// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Signals that end a command while it sets a run up: the programs that it has started for that end with it.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use airpath_live::supervise::{ENDING, start_with_signals};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::locks::lock;
use crate::error::{Failure, Result};

/// Holds back the signals that would end this process, until it is dropped; then they do. The first of them ends all
/// programs of [`Interrupts::spawn`], so that whoever waits for one of these waits no longer.
pub struct Interrupts {
    programs: Arc<Mutex<Programs>>,
    over: Arc<EventFd>,
    watcher: Option<JoinHandle<()>>,
    /// Signals that were held back before.
    before: SigSet,
}

/// The programs that end with this process.
#[derive(Default)]
struct Programs {
    /// Their process groups.
    groups: Vec<Pid>,
    /// True once a signal has come.
    is_interrupted: bool,
}

/// Registration of a program, which ends when this is dropped.
pub struct Registered {
    programs: Arc<Mutex<Programs>>,
    group: Pid,
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.programs).groups.retain(|group| *group != self.group);
    }
}

impl Interrupts {
    /// Begins to hold signals back, in this thread and in those that it starts.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begin() -> Result<Interrupts> {
        Self::try_to_begin().map_err(|error| Failure::new(format!("cannot wait for signals: {error}")))
    }

    fn try_to_begin() -> io::Result<Interrupts> {
        let signals = ending();
        let waiting = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?;
        let over = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
        let programs = Arc::new(Mutex::new(Programs::default()));
        let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let mut begun = Interrupts { programs: programs.clone(), over: over.clone(), watcher: None, before };
        let watch = move || watch(&waiting, &over, &programs);
        begun.watcher = Some(thread::Builder::new().name("airpath-signals".into()).spawn(watch)?);
        Ok(begun)
    }

    /// Starts `command`, which makes a process group of its own; no signal is held back from it.
    ///
    /// # Errors
    /// The system's, and `Interrupted` once a signal has come.
    pub fn spawn(&self, command: &mut Command) -> io::Result<(Child, Registered)> {
        let mut programs = lock(&self.programs);
        if programs.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        start_with_signals(command, self.before);
        let child = command.spawn()?;
        let group = Pid::from_raw(child.id() as i32);
        programs.groups.push(group);
        Ok((child, Registered { programs: self.programs.clone(), group }))
    }

    /// An error once a signal has come, so that no further step is taken.
    ///
    /// # Errors
    /// Once a signal has come.
    pub fn check(&self) -> Result<()> {
        if lock(&self.programs).is_interrupted {
            return Err(Failure::new("a signal ended the command before the run began"));
        }
        Ok(())
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        let _ = self.over.write(1);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        // A signal that came ends the process here.
        let _ = self.before.thread_set_mask();
    }
}

/// The signals that would end this process: not those that it was started to ignore, as by `nohup`.
fn ending() -> SigSet {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ENDING.into_iter().filter(|signal| ignored >> (*signal as i32 - 1) & 1 == 0).collect()
}

/// Waits for the first signal, which stays pending, and ends all programs on it; or for the end of the wait.
fn watch(signals: &SignalFd, over: &EventFd, programs: &Mutex<Programs>) {
    let mut ends = [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(over.as_fd(), PollFlags::POLLIN)];
    while poll(&mut ends, PollTimeout::NONE) == Err(Errno::EINTR) {}
    if ends[0].any() == Some(true) {
        let mut programs = lock(programs);
        programs.is_interrupted = true;
        for group in &programs.groups {
            let _ = killpg(*group, Signal::SIGKILL);
        }
    }
}
