// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Everything that the verdict looks at.

use airpath_core::Span;

use super::WallClock;
use super::machine::MachineFacts;
use crate::histogram::{Distribution, Late, Timings};
use crate::verdict::ends::EndResults;

/// Lateness of packets at their reading, as far as it is known.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Reads {
    /// Nothing can be late: no real clock is involved.
    #[default]
    Exact,
    /// The kernel stamps packets.
    Stamped {
        /// Packets that were offered later than their bounds after their stamps.
        late: Late,
        /// From the stamp to the reading.
        delay: Distribution,
    },
    /// No stamps; the time for which the loop cannot have read bounds how late a packet can have been.
    Gaps {
        /// Packets that were read after nobody had looked for longer than their bounds.
        late: Late,
    },
}

impl Reads {
    /// Packets that were late, or may have been.
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
    /// Duration of the run.
    pub duration_ns: u64,
    /// The bound on lateness of a packet that takes as long as the usual one of this run.
    pub usual_bound_ns: u64,
    /// Reason that the workload never started, if it did not.
    pub never_started: Option<String>,
    /// Reason for an early end of the engine, if it ended early.
    pub broken_off: Option<String>,
    /// Real departures after due times.
    pub lateness: Distribution,
    /// Packets that left later than their bounds.
    pub late_emissions: Late,
    /// Longest time within which packets due one after the other were to leave together.
    pub quantum_ns: u64,
    /// Lateness of packets at their reading.
    pub reads: Reads,
    /// Number of packets offered to the link.
    pub offered: u64,
    /// Number of packets lost outside the model: in a TUN queue or a socket buffer.
    pub outside_drops: u64,
    /// Time at which the engine lost its real-time priority because it had not slept for too long, in ns of the
    /// run.
    pub demoted_ns: Option<u64>,
    /// Lag of the link behind its clock at the end of the run.
    pub unfinished_ns: u64,
    /// Packets that had been read by then and never entered the link.
    pub unoffered: u64,
    /// Time for which packets bore no stamps while the kernel did not tell how long the loop waited.
    pub unwatched_reads_ns: u64,
    /// Steps of the wall clock.
    pub wall_clock: WallClock,
    /// Reasons for an incomplete log; empty for a complete one.
    pub log_incomplete: Vec<String>,
    /// Disturbances at the ends, apart from the link.
    pub ends: EndResults,
    /// Activity of the machine, on which the advice is based.
    pub machine: MachineFacts,
}

impl Measurements {
    /// Measurements from a run's timings; the rest is as in a run without blemish.
    pub fn of(timings: &Timings, duration: Span) -> Measurements {
        let delay = timings.read_delay();
        Measurements {
            duration_ns: duration.nanos(),
            usual_bound_ns: timings.usual_bound().nanos(),
            lateness: timings.lateness(),
            late_emissions: timings.late_emissions(),
            quantum_ns: timings.quantum().nanos(),
            reads: if delay.count > 0 { Reads::Stamped { late: timings.late_reads(), delay } } else { Reads::Exact },
            ..Measurements::default()
        }
    }

    /// Increments since `start`, an earlier look at the same run. The greatest values are of the whole run:
    /// when each of them was is not kept.
    #[must_use]
    pub fn since(&self, start: &Measurements) -> Measurements {
        let fewer =
            |now: Distribution, then: Distribution| Distribution { count: now.count.saturating_sub(then.count), ..now };
        let reads = match (self.reads, start.reads) {
            (Reads::Stamped { late, delay }, Reads::Stamped { late: before, delay: then }) => {
                Reads::Stamped { late: late.since(before), delay: fewer(delay, then) }
            }
            (Reads::Gaps { late }, Reads::Gaps { late: before }) => Reads::Gaps { late: late.since(before) },
            (now, _) => now,
        };
        let refused_writes = self.ends.refused_writes.saturating_sub(start.ends.refused_writes);
        Measurements {
            duration_ns: self.duration_ns.saturating_sub(start.duration_ns),
            lateness: fewer(self.lateness, start.lateness),
            late_emissions: self.late_emissions.since(start.late_emissions),
            reads,
            offered: self.offered.saturating_sub(start.offered),
            outside_drops: self.outside_drops.saturating_sub(start.outside_drops),
            unfinished_ns: self.unfinished_ns.saturating_sub(start.unfinished_ns),
            unoffered: self.unoffered.saturating_sub(start.unoffered),
            unwatched_reads_ns: self.unwatched_reads_ns.saturating_sub(start.unwatched_reads_ns),
            wall_clock: self.wall_clock.since(&start.wall_clock),
            ends: EndResults { refused_writes, ..self.ends.clone() },
            ..self.clone()
        }
    }
}
