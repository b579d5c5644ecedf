// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors by time: the process takes one step for each millisecond, and whatever is transmitted is hit
//! if its transmission ends in a millisecond that is.
//!
//! Source: the time-driven patterns of KauNet (Garcia, Hurtig and Brunstrom 2008). Milliseconds count
//! from where the process begins. What becomes of each does not depend on what is transmitted.

use airpath_core::{Span, Time};

use super::ErrorProcess;

const MILLISECOND: Span = Span::from_millis(1);

/// Position of a process that takes a step each millisecond.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Time,
    /// Number of milliseconds that the process has taken.
    taken: u64,
    /// True if the last of them is hit.
    hit: bool,
}

impl Clock {
    /// A clock whose first millisecond begins at `start`.
    pub fn starting(start: Time) -> Clock {
        Clock { start, taken: 0, hit: false }
    }

    /// Lets `process` take all milliseconds that have begun by `at`, counting them in `step`; whether
    /// the last of them is hit.
    pub fn is_hit(
        &mut self,
        at: Time,
        step: &mut u64,
        process: &mut impl ErrorProcess,
        scratch: &mut Vec<u32>,
    ) -> bool {
        let begun = at.since(self.start).nanos() / MILLISECOND.nanos() + 1;
        let ahead = begun.saturating_sub(self.taken);
        if ahead == 0 {
            return self.hit;
        }
        if ahead > 1 {
            // A link may have been idle for hours.
            process.hit_bits(*step, ahead - 1, true, scratch);
            *step += ahead - 1;
            scratch.clear();
        }
        process.hit_bits(*step, 1, true, scratch);
        *step += 1;
        self.taken = begun;
        self.hit = !scratch.is_empty();
        scratch.clear();
        self.hit
    }

    /// Lets `process` take the milliseconds that have begun before `at`.
    pub fn catch_up(&mut self, at: Time, step: &mut u64, process: &mut impl ErrorProcess, scratch: &mut Vec<u32>) {
        if at > self.start {
            self.is_hit(Time::from_nanos(at.nanos() - 1), step, process, scratch);
        }
    }
}
