// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors by time: the process takes one step for each interval, and a frame is hit if it belongs to an
//! interval that is. Per millisecond, it belongs to the one in which its transmission ends; per block,
//! to the one in which its transmission begins, as a radio block of a slotted link does.
//!
//! Source: the time-driven patterns of KauNet (Garcia, Hurtig and Brunstrom 2008); error traces of
//! radio blocks as in Singh 2000. Intervals count from where the process begins. The fate of each does
//! not depend on what is transmitted.

use airpath_core::{Span, Time};

use super::ErrorProcess;

/// Position of a process that takes a step each interval.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Time,
    interval: Span,
    /// Number of intervals that the process has taken.
    taken: u64,
    /// True if the last of them is hit.
    hit: bool,
}

impl Clock {
    /// A clock whose first interval begins at `start`.
    pub fn starting(start: Time, interval: Span) -> Clock {
        Clock { start, interval, taken: 0, hit: false }
    }

    /// Length of an interval.
    pub fn interval(&self) -> Span {
        self.interval
    }

    /// Lets `process` take all intervals that have begun by `at`, counting them in `step`; true if the last of
    /// them is hit.
    pub fn is_hit(
        &mut self,
        at: Time,
        step: &mut u64,
        process: &mut impl ErrorProcess,
        scratch: &mut Vec<u32>,
    ) -> bool {
        let begun = at.since(self.start).nanos() / self.interval.nanos() + 1;
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

    /// Lets `process` take the intervals that have begun before `at`.
    pub fn catch_up(&mut self, at: Time, step: &mut u64, process: &mut impl ErrorProcess, scratch: &mut Vec<u32>) {
        if at > self.start {
            self.is_hit(Time::from_nanos(at.nanos() - 1), step, process, scratch);
        }
    }
}
