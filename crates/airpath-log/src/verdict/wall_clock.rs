//! What steps of the wall clock did to a run.

use serde::{Deserialize, Serialize};

/// A step of the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ClockStep {
    /// When it was noticed, in the run's time.
    pub at_ns: u64,
    /// By how much; backwards below zero.
    pub by_ns: i64,
}

/// The wall clock during a live run. The kernel stamps packets by it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WallClock {
    /// How often it was stepped.
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
    /// Packets that may have entered at a wrong time.
    pub const fn concerned(&self) -> u64 {
        self.unplaced + self.doubtful
    }

    /// Whether there is anything to tell.
    pub const fn is_quiet(&self) -> bool {
        self.count == 0 && self.concerned() == 0
    }
}
