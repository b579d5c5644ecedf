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
    /// How far behind its clock the machine was left at the end of the run.
    pub unfinished: Span,
    /// Packets that had been read by then and never entered the machine.
    pub unoffered: u64,
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
            unfinished: Span::ZERO,
            unoffered: 0,
            refused: 0,
            not_taken: 0,
        }
    }

    /// The loop was away from the ports from `from` until `until`.
    pub fn away(&mut self, from: Time, until: Time) {
        let gap = until.since(from);
        self.kept(gap, gap);
    }

    /// Packets that have now been read may have waited for `at_most`; for `surely` of that time the loop was
    /// kept from its work.
    pub fn kept(&mut self, at_most: Span, surely: Span) {
        let bound = self.timings.bound();
        self.longest_gap = self.longest_gap.max(at_most);
        self.late_gaps += u64::from(at_most > bound);
        if surely > bound {
            self.overload = self.overload + (surely - bound);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_been_late_is_no_overload() {
        let mut measured = LinkMeasurements::new(Span::from_millis(1));
        let ms = Span::from_millis;
        measured.kept(ms(1), ms(1));
        assert_eq!((measured.late_gaps, measured.longest_gap, measured.overload), (0, ms(1), Span::ZERO));
        measured.kept(ms(90), ms(3));
        assert_eq!((measured.late_gaps, measured.longest_gap, measured.overload), (1, ms(90), ms(2)));
        measured.away(Time::ZERO, Time::ZERO + ms(5));
        assert_eq!((measured.late_gaps, measured.longest_gap, measured.overload), (2, ms(90), ms(6)));
    }
}
