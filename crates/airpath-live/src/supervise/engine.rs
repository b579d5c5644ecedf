// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The engine process: PID 1 of its namespace.

use std::os::fd::{AsFd, BorrowedFd};

use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use super::Inherited;
use crate::error::{Attempting, LiveError, Result};
use crate::refusal::explain_refusal;

/// State of the engine process as PID 1: its signal descriptor, and the settings that it must give back to the
/// commands it starts.
#[derive(Debug)]
pub struct EngineProcess {
    signals: SignalFd,
    inherited: Inherited,
    notes: Vec<String>,
}

/// A signal that reached the engine process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineSignal {
    /// Some child ended: call [`Commands::reap`](crate::command::Commands::reap).
    ChildEnded,
    /// The foreground process was sent this signal: hand it to the command.
    Forward(Signal),
    /// The terminal, or somebody outside the run such as `timeout`, sent this signal to everybody in the foreground
    /// process group, the command included: do not hand it on.
    Group(Signal),
}

/// Asks the kernel to kill this process when its parent ends. `alive` is the
/// read end of a pipe whose write end only the parent holds: had the parent
/// ended before the request, the pipe tells. (Its pid cannot: from within a
/// new PID namespace the parent's pid always reads 0.)
pub(super) fn die_with_parent(alive: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: prctl with integer arguments.
    let done = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    if done != 0 {
        return Err(LiveError::system("set the parent-death signal", std::io::Error::last_os_error()));
    }
    let mut ends = [PollFd::new(alive, PollFlags::empty())];
    let hung_up = poll(&mut ends, PollTimeout::ZERO).attempting(|| "poll the foreground process".into())? > 0;
    if hung_up {
        return Err(LiveError::Request("the foreground process ended before the run began".into()));
    }
    Ok(())
}

impl EngineProcess {
    pub(super) fn enter(handled: &SigSet, original_mask: SigSet) -> Result<Self> {
        unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| explain_refusal("a mount namespace", errno))?;
        // Mounts of the host still come in, ours never go out.
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
            .attempting(|| "keep this run's mounts from the host".into())?;
        let mut notes = Vec::new();
        // Where parts of /proc are masked (containers), the kernel refuses a
        // fresh one to ordinary users; the old one still serves /proc/self.
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        if let Err(errno) = mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>) {
            notes.push(format!(
                "/proc inside the run lists the host's processes: a private one was refused \
                 ({errno})"
            ));
        }
        let signals = SignalFd::with_flags(handled, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .attempting(|| "make a signal descriptor".into())?;
        Ok(Self { signals, inherited: Inherited::remember(original_mask), notes })
    }

    /// Readable when [`read_signal`](Self::read_signal) has something to say.
    pub fn signal_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }

    /// The next signal, or none now. Never blocks.
    ///
    /// # Errors
    /// The kernel's, when the descriptor cannot be read.
    pub fn read_signal(&self) -> Result<Option<EngineSignal>> {
        loop {
            let info = self.signals.read_signal().attempting(|| "read the signal descriptor".into())?;
            let Some(info) = info else { return Ok(None) };
            let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else {
                continue;
            };
            if signal == Signal::SIGCHLD {
                return Ok(Some(EngineSignal::ChildEnded));
            }
            match info.ssi_code {
                // From the foreground process: it lies outside this PID
                // namespace, so its pid reads 0.
                libc::SI_QUEUE if info.ssi_pid == 0 => {
                    return Ok(Some(EngineSignal::Forward(signal)));
                }
                libc::SI_KERNEL => return Ok(Some(EngineSignal::Group(signal))),
                // From outside. What the foreground process hands on of it is lost while this one is pending.
                libc::SI_USER if info.ssi_pid == 0 => return Ok(Some(EngineSignal::Group(signal))),
                // Sent by a command to PID 1 or to its group: not for us.
                _ => {}
            }
        }
    }

    /// Inherited settings with which the user's command must start.
    pub fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// Notes on unavailable parts, for the record of the run.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}
