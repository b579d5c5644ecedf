// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Effects of wall-clock steps on a run.

use serde::{Deserialize, Serialize};

/// A step of the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClockStep {
    /// Time of its detection, in the run's time.
    pub at_ns: u64,
    /// Size of the step; backwards below zero.
    pub by_ns: i64,
}

/// The wall clock during a live run. The kernel stamps packets by it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WallClock {
    /// Number of steps.
    pub count: u64,
    /// The size of the largest step.
    pub largest_ns: u64,
    /// The first steps.
    pub steps: Vec<ClockStep>,
    /// Packets stamped before a step and read after it, whose clock could be told: they are as right as others.
    pub astride: u64,
    /// Packets whose stamps fit no clock, or two: they entered when they were read.
    pub unplaced: u64,
    /// Packets read before a step was noticed that may have come after it: they may have entered early or late.
    pub doubtful: u64,
}

impl WallClock {
    /// Increments since `start`, an earlier look at the same run; the largest step is of the whole run.
    #[must_use]
    pub fn since(&self, start: &WallClock) -> WallClock {
        WallClock {
            count: self.count.saturating_sub(start.count),
            largest_ns: self.largest_ns,
            steps: self.steps.iter().skip(start.steps.len()).copied().collect(),
            astride: self.astride.saturating_sub(start.astride),
            unplaced: self.unplaced.saturating_sub(start.unplaced),
            doubtful: self.doubtful.saturating_sub(start.doubtful),
        }
    }

    /// Packets that may have entered at a wrong time.
    pub const fn concerned(&self) -> u64 {
        self.unplaced + self.doubtful
    }

    /// True if there is nothing to report.
    pub const fn is_quiet(&self) -> bool {
        self.count == 0 && self.concerned() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_part_of_a_run_only_its_own_steps_count() {
        let step = |at_ns| ClockStep { at_ns, by_ns: 7 };
        let clock = |count, steps: &[u64]| WallClock {
            count,
            largest_ns: 7,
            steps: steps.iter().map(|at_ns| step(*at_ns)).collect(),
            doubtful: 10 * count,
            ..WallClock::default()
        };
        let since = clock(3, &[1, 2, 3]).since(&clock(2, &[1, 2]));
        assert_eq!((since.count, since.doubtful, since.steps), (1, 10, vec![step(3)]));
        assert!(clock(2, &[1, 2]).since(&clock(2, &[1, 2])).is_quiet());
    }
}
