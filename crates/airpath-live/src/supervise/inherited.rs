// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Settings that the engine process changes for its own use, and gives back to the commands it starts.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::SigSet;
use nix::unistd::Pid;

use crate::open_files;
use crate::scheduling::{self, RealTimeLimits};

/// The state that the run began with.
#[derive(Debug, Clone, Copy)]
pub struct Inherited {
    mask: SigSet,
    timer_slack_ns: Option<u64>,
    processors: Option<CpuSet>,
    real_time_limits: Option<RealTimeLimits>,
    open_files: Option<open_files::Limits>,
    first_own_descriptor: RawFd,
}

impl Inherited {
    pub(super) fn remember(mask: SigSet) -> Self {
        // SAFETY: no arguments beside the option.
        let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        Self {
            mask,
            timer_slack_ns: u64::try_from(slack).ok(),
            processors: sched_getaffinity(Pid::from_raw(0)).ok(),
            real_time_limits: scheduling::real_time_limits(),
            open_files: open_files::limits(),
            first_own_descriptor: first_own_descriptor(),
        }
    }

    /// Descriptors from this number on are the engine's own: what the user handed to programs lies before.
    pub(crate) fn first_own_descriptor(&self) -> RawFd {
        self.first_own_descriptor
    }

    /// Restores it in the calling thread. Only makes system calls, so that it
    /// may run between `fork` and `execve`.
    pub(crate) fn restore(&self) -> io::Result<()> {
        if let Some(slack_ns) = self.timer_slack_ns {
            // SAFETY: prctl with integer arguments; cannot matter if it fails.
            let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong) };
        }
        if let Some(processors) = &self.processors {
            // A processor may have gone meanwhile: then the kernel's choice.
            let _ = nix::sched::sched_setaffinity(Pid::from_raw(0), processors);
        }
        if let Some(limits) = self.real_time_limits {
            // What was allowed at the beginning still is.
            let _ = scheduling::set_real_time_limits(limits);
        }
        if let Some(limits) = self.open_files {
            let _ = open_files::set_limits(limits);
        }
        // SAFETY: both pointers are valid; null asks for no old mask.
        let done = unsafe { libc::sigprocmask(libc::SIG_SETMASK, self.mask.as_ref(), std::ptr::null_mut()) };
        Errno::result(done).map(drop).map_err(io::Error::from)
    }
}

/// The number behind the last descriptor that programs inherit; the largest where that is not known.
fn first_own_descriptor() -> RawFd {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return RawFd::MAX };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    let is_inherited = |number: &RawFd| {
        // SAFETY: fcntl fails for a number that is no descriptor any more.
        let descriptor = unsafe { BorrowedFd::borrow_raw(*number) };
        fcntl(descriptor, FcntlArg::F_GETFD).is_ok_and(|flags| flags & FdFlag::FD_CLOEXEC.bits() == 0)
    };
    numbers.filter(is_inherited).max().map_or(0, |last| last + 1)
}
