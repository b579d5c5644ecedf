// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `poll` without descriptors. Its timeout has whole milliseconds.

use std::io;

use nix::poll::{PollTimeout, poll};

use super::{Method, Sleep, Waiting, milliseconds, over};

struct Poll;

impl Sleep for Poll {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let timeout = PollTimeout::try_from(milliseconds(span_ns)).map_err(io::Error::other)?;
        over(poll(&mut [], timeout))
    }
}

pub const METHOD: Method = Method {
    name: "poll",
    what: "poll() with a timeout in milliseconds, rounded up",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| Ok(Box::new(Poll)),
};
