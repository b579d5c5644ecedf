// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The scoreboard of RFC 6675: what is sent and not yet acknowledged, segment by segment, and what became of it.

use std::collections::{BTreeSet, VecDeque};

use airpath_core::Time;

use crate::sequence::Position;

/// A segment that was sent and is not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub begin: Position,
    /// The position after its last byte, or after its FIN.
    pub end: Position,
    /// Time at which it was sent last.
    pub at: Time,
    /// Number of segments that were delivered when it was sent last.
    pub delivered_before: u64,
    /// The receiver has it.
    pub sacked: bool,
    /// It is taken for lost.
    pub lost: bool,
    /// It was sent again since it was taken for lost, and that is under way.
    pub retransmitted: bool,
    /// It was sent more than once.
    pub ever_retransmitted: bool,
    pub fin: bool,
}

impl Sent {
    fn waits(&self) -> bool {
        self.lost && !self.retransmitted && !self.sacked
    }
}

/// The scoreboard, with the numbers of segments by their state.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    segments: VecDeque<Sent>,
    /// Segments by the time at which they were sent last, with entries that no longer hold.
    by_time: VecDeque<(Time, Position)>,
    /// Lost segments that wait to be sent again.
    waiting: BTreeSet<Position>,
    sacked: u64,
    lost: u64,
    retransmitted: u64,
    /// Losses so far, those of retransmissions included.
    losses: u64,
    /// The end of the highest segment that the receiver has.
    highest_sacked: Position,
}

impl Scoreboard {
    pub(crate) fn len(&self) -> u64 {
        self.segments.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    pub(crate) fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// Segments that left the network, or are taken for that.
    pub(crate) fn left(&self) -> u64 {
        self.sacked + self.lost
    }

    /// Segments under way: `pipe` of RFC 6675, section 4.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.len() + self.retransmitted).saturating_sub(self.left())
    }

    /// The end of the highest segment that the receiver has, or `acknowledged` if there is none.
    pub(crate) fn highest_sacked(&self, acknowledged: Position) -> Position {
        if self.sacked == 0 { acknowledged } else { self.highest_sacked }
    }

    pub(crate) fn first(&self) -> Option<&Sent> {
        self.segments.front()
    }

    pub(crate) fn last(&self) -> Option<&Sent> {
        self.segments.back()
    }

    /// True if something under way, or the first segment, was sent more than once.
    pub(crate) fn any_retransmission(&self) -> bool {
        self.retransmitted > 0 || self.first().is_some_and(|first| first.ever_retransmitted)
    }

    /// Adds a segment behind the others.
    pub(crate) fn push(&mut self, sent: Sent) {
        self.by_time.push_back((sent.at, sent.begin));
        self.segments.push_back(sent);
    }

    /// Removes and returns the first segment if it ends at or before `acknowledged`.
    pub(crate) fn pop_until(&mut self, acknowledged: Position) -> Option<Sent> {
        let first = *self.segments.front().filter(|first| first.end <= acknowledged)?;
        self.segments.pop_front();
        self.sacked -= u64::from(first.sacked);
        self.lost -= u64::from(first.lost);
        self.retransmitted -= u64::from(first.retransmitted);
        if first.waits() {
            self.waiting.remove(&first.begin);
        }
        Some(first)
    }

    /// The place of the first segment that ends after `position`.
    fn place(&self, position: Position) -> usize {
        self.segments.partition_point(|sent| sent.end <= position)
    }

    /// Visits the segments that lie within a range, in order.
    pub(crate) fn within(&mut self, begin: Position, end: Position, mut visit: impl FnMut(&mut Scoreboard, Position)) {
        let mut place = self.segments.partition_point(|sent| sent.begin < begin);
        while let Some(sent) = self.segments.get(place).filter(|sent| sent.end <= end) {
            let at = sent.begin;
            visit(self, at);
            place += 1;
        }
    }

    /// The segment that begins at `begin`.
    pub(crate) fn get(&self, begin: Position) -> Option<&Sent> {
        self.segments.get(self.place(begin)).filter(|sent| sent.begin == begin)
    }

    fn get_mut(&mut self, begin: Position) -> Option<&mut Sent> {
        let place = self.place(begin);
        self.segments.get_mut(place).filter(|sent| sent.begin == begin)
    }

    /// Notes that the receiver has the segment at `begin`; what it was before, if that is news.
    pub(crate) fn sack(&mut self, begin: Position) -> Option<Sent> {
        let sent = self.get_mut(begin).filter(|sent| !sent.sacked)?;
        let before = *sent;
        sent.sacked = true;
        if before.lost {
            // What is under way of it is the retransmission that has arrived.
            (sent.lost, sent.retransmitted) = (false, false);
        }
        let end = sent.end;
        self.sacked += 1;
        if before.lost {
            self.lost -= 1;
            self.retransmitted -= u64::from(before.retransmitted);
            self.waiting.remove(&begin);
        }
        self.highest_sacked = if self.sacked == 1 { end } else { self.highest_sacked.max(end) };
        Some(before)
    }

    /// Notes that the retransmission of the segment at `begin` arrived although the receiver had it.
    pub(crate) fn duplicate(&mut self, begin: Position) {
        if let Some(sent) = self.get_mut(begin).filter(|sent| sent.retransmitted) {
            sent.retransmitted = false;
            self.retransmitted -= 1;
            if self.get(begin).is_some_and(Sent::waits) {
                self.waiting.insert(begin);
            }
        }
    }

    /// Takes the segment at `begin`, or its retransmission, for lost.
    pub(crate) fn lose(&mut self, begin: Position) {
        let Some(sent) = self.get_mut(begin).filter(|sent| !sent.sacked) else { return };
        if !sent.lost {
            sent.lost = true;
            let waits = sent.waits();
            self.lost += 1;
            self.losses += 1;
            if waits {
                self.waiting.insert(begin);
            }
        } else if sent.retransmitted {
            sent.retransmitted = false;
            self.retransmitted -= 1;
            self.losses += 1;
            self.waiting.insert(begin);
        }
    }

    /// Takes nothing for lost any more.
    pub(crate) fn lose_nothing(&mut self) {
        if self.lost > 0 {
            self.segments.iter_mut().for_each(|sent| sent.lost = false);
            self.lost = 0;
            self.waiting.clear();
        }
    }

    /// Takes for lost what `lost` says, and forgets what the receiver has if it seems to have dropped that.
    pub(crate) fn lose_after_timeout(&mut self, lost: impl Fn(&Sent) -> bool) -> bool {
        let reneged = self.first().is_some_and(|first| first.sacked);
        if reneged {
            self.segments.iter_mut().for_each(|sent| sent.sacked = false);
            self.sacked = 0;
        }
        let first = self.first().map(|first| first.begin);
        let begins: Vec<Position> = self
            .segments
            .iter()
            .filter(|sent| reneged || Some(sent.begin) == first || lost(sent))
            .map(|sent| sent.begin)
            .collect();
        begins.into_iter().for_each(|begin| self.lose(begin));
        reneged
    }

    /// The first lost segment that waits to be sent again.
    pub(crate) fn next_waiting(&self) -> Option<Position> {
        self.waiting.first().copied()
    }

    /// Notes that the segment at `begin` is sent again at `at`; as a `probe` it is under way but once.
    pub(crate) fn resend(&mut self, begin: Position, at: Time, delivered_before: u64, probe: bool) -> Option<Sent> {
        let sent = self.get_mut(begin)?;
        let counts = !probe && !sent.retransmitted;
        sent.at = at;
        sent.delivered_before = delivered_before;
        sent.ever_retransmitted = true;
        sent.retransmitted |= !probe;
        let sent = *sent;
        self.retransmitted += u64::from(counts);
        if !sent.waits() {
            self.waiting.remove(&begin);
        }
        self.by_time.push_back((at, begin));
        Some(sent)
    }

    /// Visits what is under way in the order of sending, until `visit` is false.
    pub(crate) fn by_time(&mut self, mut visit: impl FnMut(&mut Scoreboard, &Sent) -> bool) {
        while let Some((at, begin)) = self.by_time.front()
            && self.holds(*at, *begin).is_none()
        {
            self.by_time.pop_front();
        }
        for entry in 0..self.by_time.len() {
            let (at, begin) = self.by_time[entry];
            let Some(sent) = self.holds(at, begin) else { continue };
            if !visit(self, &sent) {
                break;
            }
        }
    }

    fn holds(&self, at: Time, begin: Position) -> Option<Sent> {
        self.get(begin).filter(|sent| sent.at == at && !sent.sacked && !sent.waits()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for number in 0..count {
            board.push(Sent {
                begin: number * 100,
                end: number * 100 + 100,
                at: Time::from_nanos(number),
                delivered_before: 0,
                sacked: false,
                lost: false,
                retransmitted: false,
                ever_retransmitted: false,
                fin: false,
            });
        }
        board
    }

    #[test]
    fn segments_under_way_are_counted_as_rfc_6675_counts_them() {
        let mut board = board(10);
        assert_eq!((board.in_flight(), board.left()), (10, 0));
        board.within(350, 700, |board, begin| assert!(board.sack(begin).is_some()));
        // 400 to 700: the segment at 300 is not within.
        assert_eq!((board.sacked(), board.in_flight(), board.highest_sacked(0)), (3, 7, 700));
        assert!(board.sack(400).is_none());
        board.lose(0);
        board.lose(300);
        board.lose(400);
        assert_eq!((board.lost(), board.losses(), board.in_flight(), board.next_waiting()), (2, 2, 5, Some(0)));
        board.resend(0, Time::from_nanos(50), 3, false).unwrap();
        assert_eq!((board.retransmitted(), board.in_flight(), board.next_waiting()), (1, 6, Some(300)));
        // The retransmission is lost too.
        board.lose(0);
        assert_eq!((board.retransmitted(), board.losses(), board.next_waiting()), (0, 3, Some(0)));
        board.resend(0, Time::from_nanos(60), 3, false).unwrap();
        assert!(board.sack(0).is_some_and(|before| before.lost && before.retransmitted));
        assert_eq!((board.lost(), board.retransmitted(), board.sacked()), (1, 0, 4));
        while board.pop_until(1_000).is_some() {}
        assert_eq!((board.len(), board.left(), board.in_flight(), board.next_waiting()), (0, 0, 0, None));
    }

    #[test]
    fn the_order_of_sending_has_each_segment_once() {
        let mut board = board(5);
        board.lose(100);
        board.resend(100, Time::from_nanos(9), 0, false);
        board.sack(200);
        board.lose(300);
        let mut order = Vec::new();
        board.by_time(|_, sent| {
            order.push(sent.begin);
            true
        });
        assert_eq!(order, [0, 400, 100]);
        board.lose_nothing();
        assert_eq!((board.lost(), board.in_flight()), (0, 5));
    }
}
