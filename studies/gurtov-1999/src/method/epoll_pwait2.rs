// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `epoll_pwait2` on an empty set: `epoll_wait` with a timeout in nanoseconds.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags};

use super::{Method, Sleep, Waiting, over, refused};

struct EpollPwait2(Epoll);

impl EpollPwait2 {
    fn wait(&self, span_ns: u64) -> nix::Result<libc::c_long> {
        // The kernel's own 64-bit layout, whatever the C library's.
        let timeout = [(span_ns / 1_000_000_000) as i64, (span_ns % 1_000_000_000) as i64];
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: timeout and event live over the call, which may write one event; no signal mask is given.
        Errno::result(unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.0.as_raw_fd(),
                &raw mut event,
                1,
                timeout.as_ptr(),
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        })
    }
}

impl Sleep for EpollPwait2 {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        over(self.wait(span_ns))
    }
}

pub const METHOD: Method = Method {
    name: "epoll_pwait2",
    what: "epoll_pwait2() with a timeout in nanoseconds",
    needs: "Linux 5.11",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|errno| refused("epoll_create1", errno))?;
        let sleeper = EpollPwait2(epoll);
        match sleeper.wait(0) {
            Ok(_) => Ok(Box::new(sleeper)),
            Err(errno) => Err(refused("the kernel has no epoll_pwait2, which came with Linux 5.11", errno)),
        }
    },
};
