//! What the loop measures about itself and about the link, without allocating per packet.

use airpath_core::{Span, Time};
use airpath_log::Timings;

/// What was measured at one link.
#[derive(Clone, Debug)]
pub struct LinkMeasurements {
    /// One-way delays, lateness and read delays.
    pub timings: Timings,
    /// The longest time between two looks at the ports while the loop was not waiting for them: an
    /// upper bound on the read delay where the kernel gives no stamps.
    pub longest_gap: Span,
    /// How many such gaps were longer than the bound on lateness.
    pub late_gaps: u64,
    /// For how long altogether the loop was behind by more than the bound.
    pub overload: Span,
    /// Packets that the kernel refused at the far end although the link delivered them.
    pub refused: u64,
    /// Packets dropped because the far end's device stayed full.
    pub not_taken: u64,
}

impl LinkMeasurements {
    /// Nothing measured yet; what is later than `bound` is late.
    pub fn new(bound: Span) -> LinkMeasurements {
        LinkMeasurements {
            timings: Timings::new(bound),
            longest_gap: Span::ZERO,
            late_gaps: 0,
            overload: Span::ZERO,
            refused: 0,
            not_taken: 0,
        }
    }

    /// The loop was away from the ports from `from` until `until`.
    pub fn away(&mut self, from: Time, until: Time) {
        let gap = until.since(from);
        self.longest_gap = self.longest_gap.max(gap);
        if gap > self.timings.bound() {
            self.late_gaps += 1;
            self.overload = self.overload + (gap - self.timings.bound());
        }
    }
}
