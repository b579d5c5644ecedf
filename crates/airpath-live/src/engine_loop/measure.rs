// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Measurements of the loop about itself and about the link, without allocating per packet.

use airpath_core::{Span, Time};
use airpath_log::{LatenessBound, Timings};

use super::circling::CirclingCounts;

/// Measurements at one link.
#[derive(Clone, Debug)]
pub struct LinkMeasurements {
    /// One-way delays, lateness and read delays.
    pub timings: Timings,
    /// Time for which the ports have not been looked at, while the loop was not waiting for them: an upper
    /// bound on the delay of the packets read next, where the kernel gives no stamps.
    pub unwatched: Span,
    /// The part of that from before the last look, of packets that were left unread then.
    waited: Span,
    /// True if a port had more than the last look took.
    pub left_unread: bool,
    /// Lag of the machine behind its clock at the end of the run.
    pub unfinished: Span,
    /// Packets that had been read by then and never entered the machine.
    pub unoffered: u64,
    /// Packets that the kernel refused at the far end although the link delivered them.
    pub refused: u64,
    /// Packets dropped because the far end's device stayed full.
    pub not_taken: u64,
    /// Signs of frames that circle.
    pub circling: CirclingCounts,
}

impl LinkMeasurements {
    /// Nothing measured yet; what is later than `bound` is late.
    pub fn new(bound: LatenessBound) -> LinkMeasurements {
        LinkMeasurements {
            timings: Timings::new(bound),
            unwatched: Span::ZERO,
            waited: Span::ZERO,
            left_unread: false,
            unfinished: Span::ZERO,
            unoffered: 0,
            refused: 0,
            not_taken: 0,
            circling: CirclingCounts::default(),
        }
    }

    /// The loop was away from the ports from `from` until `until`. Whether that made a packet late shows when
    /// one is read: a loop that is away while nothing comes does no harm.
    pub fn away(&mut self, from: Time, until: Time) {
        self.kept(until.since(from));
    }

    /// Notes that the packets read next may have waited for `at_most`.
    pub fn kept(&mut self, at_most: Span) {
        self.unwatched = self.unwatched.max(self.waited + at_most);
    }

    /// The ports have been looked at, and what was read has been offered.
    pub fn looked(&mut self) {
        self.waited = if std::mem::take(&mut self.left_unread) { self.unwatched } else { Span::ZERO };
        self.unwatched = self.waited;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn what_came_while_nobody_looked_waited_for_as_long_at_most() {
        let mut measured = LinkMeasurements::new(LatenessBound::USUAL);
        measured.away(at(10), at(13));
        measured.kept(Span::from_millis(2));
        measured.away(at(20), at(21));
        assert_eq!(measured.unwatched, Span::from_millis(3));
        // Nothing came: nobody is late for it.
        measured.looked();
        assert_eq!(measured.unwatched, Span::ZERO);
    }

    #[test]
    fn what_is_left_unread_goes_on_waiting() {
        let mut measured = LinkMeasurements::new(LatenessBound::USUAL);
        measured.away(at(0), at(3));
        measured.left_unread = true;
        measured.looked();
        measured.away(at(3), at(5));
        assert_eq!(measured.unwatched, Span::from_millis(5));
        measured.looked();
        measured.away(at(5), at(6));
        assert_eq!(measured.unwatched, Span::from_millis(1));
    }
}
