//! Everything that the verdict looks at.

use airpath_core::Span;

use super::WallClock;
use super::machine::MachineFacts;
use crate::ends::EndResults;
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
    /// No stamps; the time for which the loop cannot have read bounds how late a packet can have been.
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
    /// The bound on lateness of a packet that takes as long as the usual one of this run.
    pub usual_bound_ns: u64,
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
    /// How far behind its clock the link was left at the end of the run.
    pub unfinished_ns: u64,
    /// Packets that had been read by then and never entered the link.
    pub unoffered: u64,
    /// For how long packets bore no stamps while the kernel did not tell how long the loop waited.
    pub unwatched_reads_ns: u64,
    /// Steps of the wall clock.
    pub wall_clock: WallClock,
    /// Why the log is incomplete; empty for a complete one.
    pub log_incomplete: Vec<String>,
    /// What the ends suffered beside the link.
    pub ends: EndResults,
    /// What the machine did meanwhile: the advice goes by it.
    pub machine: MachineFacts,
}

impl Measurements {
    /// What a run's timings say; the rest is as in a run without blemish.
    pub fn of(timings: &Timings, duration: Span) -> Measurements {
        let delay = timings.read_delay();
        Measurements {
            duration_ns: duration.nanos(),
            usual_bound_ns: timings.usual_bound().nanos(),
            lateness: timings.lateness(),
            late_emissions: timings.late_emissions(),
            reads: if delay.count > 0 { Reads::Stamped { late: timings.late_reads(), delay } } else { Reads::Exact },
            ..Measurements::default()
        }
    }

    /// What was added since `start`, an earlier look at the same run. The greatest values are of the whole
    /// run: when each of them was is not kept.
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
