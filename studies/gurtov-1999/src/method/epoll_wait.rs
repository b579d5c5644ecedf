// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `epoll_wait` on an empty set. Its timeout has whole milliseconds.

use std::io;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollTimeout};

use super::{Method, Sleep, Waiting, milliseconds, over, refused};

struct EpollWait(Epoll);

impl Sleep for EpollWait {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let timeout = EpollTimeout::try_from(milliseconds(span_ns)).map_err(io::Error::other)?;
        over(self.0.wait(&mut [EpollEvent::empty()], timeout))
    }
}

pub const METHOD: Method = Method {
    name: "epoll_wait",
    what: "epoll_wait() with a timeout in milliseconds, rounded up",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| match Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC) {
        Ok(epoll) => Ok(Box::new(EpollWait(epoll))),
        Err(errno) => Err(refused("epoll_create1", errno)),
    },
};
