// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `select` without descriptors: the standard method of Gurtov 1999. Its timeout has whole microseconds.

use std::io;

use nix::sys::select::select;
use nix::sys::time::{TimeVal, TimeValLike};

use super::{Method, Sleep, Waiting, over};

struct Select;

impl Sleep for Select {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let mut timeout = TimeVal::microseconds(span_ns.div_ceil(1_000) as i64);
        over(select(None, None, None, None, &mut timeout))
    }
}

pub const METHOD: Method = Method {
    name: "select",
    what: "select() with a timeout in microseconds",
    needs: "nothing",
    at_least: true,
    waiting: Waiting::Asleep,
    open: |_| Ok(Box::new(Select)),
};
