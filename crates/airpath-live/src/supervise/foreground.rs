// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The foreground process: forwards signals, waits, mirrors the exit status.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpgrp, getpid, tcgetpgrp, tcsetpgrp};

use super::{ENGINE_FAILED_STATUS, handled_signals, tell};
use crate::error::{Attempting, Result};

/// Waits until the engine process ends and returns the exit status to leave
/// with.
pub(super) fn wait_for(child: Pid) -> Result<i32> {
    let set = handled_signals();
    loop {
        let info = match wait_for_signal(&set) {
            Err(Errno::EINTR) => continue,
            other => other.attempting(|| "wait for signals".into())?,
        };
        if info.si_signo == libc::SIGCHLD {
            let status =
                waitpid(child, Some(WaitPidFlag::WNOHANG)).attempting(|| "wait for the engine process".into())?;
            if let Some(status) = exit_status(status) {
                return Ok(status);
            }
            continue;
        }
        handle(&info, child);
    }
}

fn wait_for_signal(set: &SigSet) -> std::result::Result<libc::siginfo_t, Errno> {
    // SAFETY: an all-zero siginfo_t is valid, and the kernel fills it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers live over the call.
    let signal = unsafe { libc::sigwaitinfo(set.as_ref(), &mut info) };
    Errno::result(signal).map(|_| info)
}

/// A signal made by the terminal (`SI_KERNEL`) has reached the whole
/// foreground process group, the command included: forwarding it would
/// deliver it twice. One sent to this process alone is handed on, and so is the hang-up of a terminal:
/// the kernel tells it to the session's leader only, which this process may be.
fn handle(info: &libc::siginfo_t, child: Pid) {
    let from_terminal = info.si_code == libc::SI_KERNEL && info.si_signo != libc::SIGHUP;
    if !from_terminal {
        forward(child, info.si_signo);
    }
    if info.si_signo == libc::SIGTSTP {
        // The signal was taken from the queue, so stop for it here. The
        // engine goes on: an emulated link does not stop with its users.
        let _ = kill(getpid(), Signal::SIGSTOP);
    }
}

/// Queued with a value (`SI_QUEUE`), by which the engine process knows it from
/// signals of other origin.
fn forward(child: Pid, signal: i32) {
    let value = libc::sigval { sival_ptr: std::ptr::null_mut() };
    // SAFETY: sigqueue with plain values; failing means that the child is
    // gone, which SIGCHLD tells.
    let _ = unsafe { libc::sigqueue(child.as_raw(), signal, value) };
}

fn exit_status(status: WaitStatus) -> Option<i32> {
    match status {
        WaitStatus::Exited(_, status) => Some(status),
        WaitStatus::Signaled(_, signal, _) => {
            tell(format_args!(
                "the engine process was killed by {signal}; the run ended early, and all its processes were killed"
            ));
            Some(ENGINE_FAILED_STATUS)
        }
        _ => None,
    }
}

/// Terminal of this process, so that it can take it back: a shell run as the command makes itself the
/// foreground process group, and cannot name ours (it lies outside its PID namespace) when it leaves.
pub(super) struct Terminal {
    owned: bool,
}

impl Terminal {
    pub(super) fn remember() -> Self {
        Self { owned: tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp()) }
    }

    pub(super) fn restore(&self) {
        if !self.owned || tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp()) {
            return;
        }
        // A background process that sets the group is stopped by SIGTTOU,
        // unless it blocks it.
        let mut ttou = SigSet::empty();
        ttou.add(Signal::SIGTTOU);
        let mut before = SigSet::empty();
        if pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&ttou), Some(&mut before)).is_ok() {
            let _ = tcsetpgrp(std::io::stdin(), getpgrp());
            let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
        }
    }
}
