//! Further runs started by this process, which end with it.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::SigSet;
use nix::unistd::getppid;

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
