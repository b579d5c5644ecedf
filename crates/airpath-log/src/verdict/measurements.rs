//! Everything that the verdict looks at.

use airpath_core::Span;

use super::machine::MachineFacts;
use crate::histogram::{Distribution, Late, Timings};

/// What is known about how late packets were read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Reads {
    /// Nothing can be late: no real clock is involved.
    #[default]
    Exact,
    /// The kernel stamps packets.
    Stamped {
        /// Those that were offered later than their bounds after their stamps.
        late: Late,
        /// From the stamp to the reading.
        delay: Distribution,
    },
    /// No stamps; the time between two readings, while the loop was not waiting for packets, bounds
    /// how late one can have been.
    Gaps {
        /// Those that were read after nobody had looked for longer than their bounds.
        late: Late,
    },
}

impl Reads {
    /// Those that were late, or may have been.
    pub fn late(&self) -> Late {
        match self {
            Reads::Exact => Late::default(),
            Reads::Stamped { late, .. } | Reads::Gaps { late } => *late,
        }
    }
}

/// Everything the verdict looks at.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measurements {
    /// How long the run took.
    pub duration_ns: u64,
    /// Why the workload never started, if it did not.
    pub never_started: Option<String>,
    /// Why the engine ended early, if it did.
    pub broken_off: Option<String>,
    /// Real departures after due times.
    pub lateness: Distribution,
    /// Packets that left later than their bounds.
    pub late_emissions: Late,
    /// How late packets were read.
    pub reads: Reads,
    /// How many packets were offered to the link.
    pub offered: u64,
    /// How many packets were lost outside the model: in a TUN queue or a socket buffer.
    pub outside_drops: u64,
    /// When the engine lost its real-time priority because it had not slept for too long, in ns of the
    /// run.
    pub demoted_ns: Option<u64>,
    /// Why the log is incomplete; empty for a complete one.
    pub log_incomplete: Vec<String>,
    /// What the machine did meanwhile: the advice goes by it.
    pub machine: MachineFacts,
}

impl Measurements {
    /// What a run's timings say; the rest is as in a run without blemish.
    pub fn of(timings: &Timings, duration: Span) -> Measurements {
        let delay = timings.read_delay();
        Measurements {
            duration_ns: duration.nanos(),
            lateness: timings.lateness(),
            late_emissions: timings.late_emissions(),
            reads: if delay.count > 0 { Reads::Stamped { late: timings.late_reads(), delay } } else { Reads::Exact },
            ..Measurements::default()
        }
    }
}
