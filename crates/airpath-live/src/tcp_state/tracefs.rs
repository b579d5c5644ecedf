// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The kernel's file system of tracepoints, without mounting it anywhere:
//! what is mounted could be left behind, a descriptor cannot.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// The root of a mount of `tracefs` that has no place in the tree.
pub(super) fn open() -> io::Result<OwnedFd> {
    let context = descriptor(|| {
        // SAFETY: the name is a C string that lives over the call.
        unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), libc::FSOPEN_CLOEXEC) }
    })?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&context);
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: the descriptor is open; the command takes neither key nor value.
    let created = unsafe { libc::syscall(libc::SYS_fsconfig, number, libc::FSCONFIG_CMD_CREATE, nothing, nothing, 0) };
    if created != 0 {
        return Err(io::Error::last_os_error());
    }
    descriptor(|| {
        // SAFETY: the descriptor is open; the other arguments are integers.
        unsafe { libc::syscall(libc::SYS_fsmount, number, libc::FSMOUNT_CLOEXEC, 0) }
    })
}

fn descriptor(call: impl FnOnce() -> libc::c_long) -> io::Result<OwnedFd> {
    match call() {
        number if number >= 0 => {
            // SAFETY: the kernel has just opened it, and nobody else has it.
            Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The text of the file at `path` below `root`.
pub(super) fn read(root: &OwnedFd, path: &str) -> io::Result<String> {
    let descriptor = openat(root, path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    File::from(descriptor).read_to_string(&mut text)?;
    Ok(text)
}
