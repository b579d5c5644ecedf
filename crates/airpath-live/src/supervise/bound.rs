// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Further runs started by this process, which end with it.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl, open};
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;
use nix::unistd::{getppid, write};

/// Makes the kernel kill `command` when the calling thread ends in any way, lets it inherit the
/// descriptor `kept`, and starts it with no signal blocked.
pub fn bind_to_this_process(command: &mut Command, kept: Option<RawFd>) {
    let parent = nix::unistd::getpid();
    let prepare = move || {
        // SAFETY: prctl with integer arguments.
        Errno::result(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // Had the parent ended before the request, nobody would ever be told.
        if getppid() != parent {
            return Err(io::Error::from(Errno::ESRCH));
        }
        if let Some(descriptor) = kept {
            // SAFETY: the caller keeps it open until the command has been started.
            let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
            fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
        }
        Ok(SigSet::empty().thread_set_mask()?)
    };
    // SAFETY: `prepare` makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(prepare) };
}

/// Starts `command` with the signals of `blocked` blocked, whatever the thread has blocked that starts it.
pub fn start_with_signals(command: &mut Command, blocked: SigSet) {
    let prepare = move || Ok(blocked.thread_set_mask()?);
    // SAFETY: `prepare` makes a system call only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(prepare) };
}

/// Readiness of the kernel to end `command` when memory runs out, from −1000 to 1000: before a program that was
/// left at 0, after one that takes most of the memory.
const OUT_OF_MEMORY_SCORE: &CStr = c"500";
/// Niceness of `command`.
const NICE: i32 = 10;

/// Starts `command`, and all that it will start, behind ordinary programs: where there is not enough for all
/// it gets a tenth of what those get, and it ends first when memory runs out. What the kernel refuses is
/// left as it is.
///
/// Neither SCHED_BATCH or SCHED_IDLE nor a session of its own with a weight of its own is asked for: a
/// guest's kernel and program hand over to one another at every system call, and where each handing-over
/// has to wait for its turn, a guest beside compilers got on at a tenth of the pace.
pub fn yield_to_others(command: &mut Command) {
    let prepare = || {
        // SAFETY: integers; 0 is the calling process. Who is further back stays there.
        let _ = unsafe {
            let now = libc::getpriority(libc::PRIO_PROCESS, 0);
            libc::setpriority(libc::PRIO_PROCESS, 0, now.max(NICE))
        };
        write_if_allowed(c"/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
        Ok(())
    };
    // SAFETY: `prepare` makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(prepare) };
}

fn write_if_allowed(path: &CStr, text: &CStr) {
    if let Ok(file) = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()) {
        let _ = write(file, text.to_bytes());
    }
}

/// Takes over a descriptor that was inherited by way of [`bind_to_this_process`]; commands do not
/// inherit it further.
///
/// # Errors
/// When there is no such descriptor.
pub fn adopt_descriptor(number: RawFd) -> io::Result<File> {
    if number <= libc::STDERR_FILENO {
        return Err(io::Error::from(Errno::EBADF));
    }
    // SAFETY: fcntl fails for a number that is no descriptor.
    fcntl(unsafe { BorrowedFd::borrow_raw(number) }, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    // SAFETY: it is open, was handed to this process for this purpose, and is taken once.
    Ok(unsafe { File::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_yields_is_behind_all_others() {
        let line = "nice; cat /proc/self/oom_score_adj";
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        yield_to_others(&mut command);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].parse::<i32>().unwrap() >= NICE, "{text}");
        assert!(lines[1].parse::<i32>().unwrap() >= 500, "{text}");
    }
}
