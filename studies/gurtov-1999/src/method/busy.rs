// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Watching the clock all the time (Gurtov 1999, 3.7.3).

use std::hint;
use std::io;

use airpath_live::clock::monotonic_ns;

use super::{Method, Sleep, Waiting};

struct Busy;

impl Sleep for Busy {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let until_ns = monotonic_ns().saturating_add(span_ns);
        while monotonic_ns() < until_ns {
            hint::spin_loop();
        }
        Ok(())
    }
}

pub const METHOD: Method = Method {
    name: "busy",
    what: "watching the clock all the time",
    needs: "a processor of its own",
    at_least: true,
    waiting: Waiting::Awake,
    open: |_| Ok(Box::new(Busy)),
};
