// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `nanosleep` of the C library.
#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;

use super::{Method, Sleep, Waiting, over, time_spec};

struct Nanosleep;

impl Sleep for Nanosleep {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let span = time_spec(span_ns);
        // SAFETY: the timespec lives over the call; what is left is not asked for.
        over(Errno::result(unsafe { libc::nanosleep(span.as_ref(), std::ptr::null_mut()) }))
    }
}

pub const METHOD: Method = Method {
    name: "nanosleep",
    what: "nanosleep()",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| Ok(Box::new(Nanosleep)),
};
