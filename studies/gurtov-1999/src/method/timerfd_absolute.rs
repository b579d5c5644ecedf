// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A timer descriptor set for an instant and waited for with `epoll_wait`, as the live loop does.

use std::io;
use std::os::fd::AsFd;

use airpath_live::clock::{DeadlineTimer, monotonic_ns};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::{Method, Sleep, Unavailable, Waiting, over, refused};

struct Absolute {
    timer: DeadlineTimer,
    epoll: Epoll,
}

impl Sleep for Absolute {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        self.timer.set(Some(monotonic_ns().saturating_add(span_ns)))?;
        over(self.epoll.wait(&mut [EpollEvent::empty()], EpollTimeout::NONE))?;
        self.timer.acknowledge()
    }
}

fn open() -> Result<Box<dyn Sleep>, Unavailable> {
    let timer = DeadlineTimer::new().map_err(|error| refused("timerfd_create", error))?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|errno| refused("epoll_create1", errno))?;
    epoll.add(timer.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, 0)).map_err(|errno| refused("epoll_ctl", errno))?;
    Ok(Box::new(Absolute { timer, epoll }))
}

pub const METHOD: Method = Method {
    name: "timerfd_absolute",
    what: "a timer descriptor set for an instant, in epoll_wait(), as the live loop sleeps",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| open(),
};
