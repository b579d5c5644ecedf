// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Watching the clock, and letting whoever wants the processor have it between two looks: what
//! Gurtov 1999, 3.7.3, does through an event dispatcher.

use std::io;

use airpath_live::clock::monotonic_ns;
use nix::sched::sched_yield;

use super::{Method, Sleep, Waiting};

struct BusyYield;

impl Sleep for BusyYield {
    fn sleep(&mut self, span_ns: u64) -> io::Result<()> {
        let until_ns = monotonic_ns().saturating_add(span_ns);
        while monotonic_ns() < until_ns {
            sched_yield()?;
        }
        Ok(())
    }
}

pub const METHOD: Method = Method {
    name: "busy_yield",
    what: "watching the clock, with sched_yield() between two looks",
    needs: "a processor that is mostly idle",
    at_least: true,
    waiting: Waiting::Awake,
    open: |_| Ok(Box::new(BusyYield)),
};
