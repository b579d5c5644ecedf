// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving half: reassembly, selective acknowledgements (RFC 2018) with reports of duplicates (RFC 2883).
//!
//! `acknowledge.rs` decides when an acknowledgement goes out, `buffer.rs` how large the window is.

mod acknowledge;
mod buffer;

use airpath_core::Time;

use crate::sequence::Position;
use acknowledge::Acknowledger;
use buffer::Buffer;

pub use buffer::BufferSize;

/// The most blocks that are remembered by their recency.
const RECENT_BLOCKS: usize = 4;

/// Data of a segment that arrives, in positions of the other end's stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub begin: Position,
    /// Bytes of data.
    pub bytes: u64,
    pub fin: bool,
    pub push: bool,
    pub header_bytes: u64,
    /// The own clock in the echo, as an age in microseconds, if the echo is a new one.
    pub echo_age_us: Option<u64>,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The next position in order.
    pub next: Position,
    /// Arrivals beyond it: disjoint ranges in order.
    held: Vec<(Position, Position)>,
    /// Ranges of it by the time of the last change, latest first.
    recent: Vec<(Position, Position)>,
    duplicate: Option<(Position, Position)>,
    fin: Option<Position>,
    /// Position up to which the application has read.
    read: Position,
    pub acknowledger: Acknowledger,
    pub buffer: Buffer,
}

impl Receiver {
    pub(crate) fn new(size: BufferSize, segment_bytes: u64) -> Receiver {
        Receiver {
            next: 1,
            held: Vec::new(),
            recent: Vec::with_capacity(RECENT_BLOCKS + 1),
            duplicate: None,
            fin: None,
            read: 1,
            acknowledger: Acknowledger::new(),
            buffer: Buffer::new(size, segment_bytes),
        }
    }

    /// The connection is open.
    pub(crate) fn open(&mut self, now: Time, segment_bytes: u64) {
        self.buffer.open(now, segment_bytes, self.read);
        self.acknowledger.open(segment_bytes.min(536).min(self.buffer.window / 2).max(88));
    }

    /// Bytes that the application can read.
    pub(crate) fn readable(&self) -> u64 {
        let end = if self.is_finished() { self.next - 1 } else { self.next };
        end - self.read
    }

    /// True if all has arrived up to FIN.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The application reads all there is; the number of bytes.
    pub(crate) fn read(&mut self, now: Time) -> u64 {
        let bytes = self.readable();
        if bytes == 0 {
            return 0;
        }
        self.read += bytes;
        self.buffer.adjust(now, self.read, self.next - u64::from(self.is_finished()));
        let window_now = self.buffer.remaining(self.next);
        let window_then = self.buffer.select(self.held_bytes(), 0, self.acknowledger.segment_bytes);
        let opens = window_now * 2 <= self.buffer.clamp && window_then > 0 && window_then >= 2 * window_now;
        let unacknowledged = self.next - self.buffer.acknowledged;
        self.acknowledger.after_read(unacknowledged, opens && !self.is_finished());
        bytes
    }

    fn held_bytes(&self) -> u64 {
        self.held.iter().map(|(begin, end)| end - begin).sum()
    }

    /// The window to advertise now.
    pub(crate) fn window(&mut self) -> u64 {
        let unread = self.readable();
        let segment = self.acknowledger.segment_bytes;
        let window = self.buffer.advertise(self.next, self.held_bytes(), unread, segment);
        if self.buffer.is_short {
            self.acknowledger.slow();
        }
        window
    }

    /// Takes data; what it calls for is told by the acknowledger.
    pub(crate) fn receive(&mut self, now: Time, arrival: &Arrival) {
        if arrival.bytes == 0 && !arrival.fin {
            return;
        }
        let begin = arrival.begin;
        let end = begin + arrival.bytes + u64::from(arrival.fin);
        if end <= self.next {
            self.duplicate = Some((begin, end));
            self.acknowledger.duplicate(self.buffer.window);
            return;
        }
        if begin >= self.next + self.buffer.remaining(self.next) && !(begin == self.next && arrival.bytes == 0) {
            self.acknowledger.duplicate(self.buffer.window);
            return;
        }
        if arrival.fin {
            self.fin = Some(end - 1);
        }
        if begin > self.next {
            self.hold(now, begin, end, arrival);
            return;
        }
        if begin < self.next {
            self.duplicate = Some((begin, self.next));
        }
        let was_holding = !self.held.is_empty();
        self.next = end;
        let filled = self.held.partition_point(|(begin, _)| *begin <= end);
        if let Some((_, last)) = self.held[..filled].last() {
            self.next = self.next.max(*last);
        }
        self.held.drain(..filled);
        let next = self.next;
        self.recent.retain(|(begin, _)| *begin > next);
        if arrival.bytes > 0 {
            self.acknowledger.in_order(now, arrival, self.buffer.window);
            self.buffer.measure(now, arrival, self.next, self.acknowledger.segment_bytes);
            if self.buffer.grow(arrival.bytes, self.held_bytes() + arrival.bytes) {
                self.acknowledger.hurry();
            }
        }
        if arrival.fin || self.is_finished() {
            self.acknowledger.finished();
        }
        if was_holding && self.held.is_empty() {
            self.acknowledger.hole_filled();
        }
    }

    fn hold(&mut self, now: Time, begin: Position, end: Position, arrival: &Arrival) {
        let place = self.held.partition_point(|(_, held_end)| *held_end < begin);
        let mut merged = (begin, end);
        let mut after = place;
        let mut known = false;
        while let Some((held_begin, held_end)) = self.held.get(after).copied().filter(|(held, _)| *held <= end) {
            known |= held_begin <= begin && held_end >= end;
            merged = (merged.0.min(held_begin), merged.1.max(held_end));
            after += 1;
        }
        if known {
            self.duplicate = Some((begin, end));
        }
        self.held.splice(place..after, [merged]);
        let many = self.recent.iter().position(|(recent, _)| merged.0 <= *recent && *recent <= merged.1);
        self.recent.retain(|(recent, _)| !(merged.0 <= *recent && *recent <= merged.1));
        self.recent.insert(0, merged);
        self.recent.truncate(RECENT_BLOCKS);
        // Blocks that would soon no longer fit are told at once.
        let flush = many.unwrap_or(self.recent.len() - 1) >= 2;
        self.acknowledger.out_of_order(flush);
        if arrival.bytes >= 128 {
            let held = self.held_bytes();
            self.buffer.grow(arrival.bytes, held);
        }
        let _ = now;
    }

    /// Decides whether an acknowledgement goes out now.
    pub(crate) fn check(&mut self, now: Time, smoothed_times_8: u64) {
        let readable = self.readable();
        let opens = readable == 0
            || self.buffer.select(self.held_bytes(), readable, self.acknowledger.segment_bytes) >= self.buffer.window;
        let pending = self.next - self.buffer.acknowledged;
        let round_trip = (self.buffer.round_trip_times_8, smoothed_times_8);
        self.acknowledger.check(now, self.next, pending, opens, !self.held.is_empty(), round_trip);
    }

    /// The blocks to be told, at most `most`, with a duplicate first.
    pub(crate) fn blocks(&mut self, most: usize, mut tell: impl FnMut(Position, Position)) {
        let duplicate = self.duplicate.take();
        duplicate.into_iter().chain(self.recent.iter().copied()).take(most).for_each(|(begin, end)| tell(begin, end));
    }

    /// Number of blocks to be told.
    pub(crate) fn block_count(&self) -> usize {
        self.recent.len() + usize::from(self.duplicate.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> Receiver {
        let mut receiver = Receiver::new(BufferSize::Fixed(100_000), 1_000);
        receiver.open(Time::ZERO, 1_000);
        receiver.window();
        receiver
    }

    fn arrive(receiver: &mut Receiver, begin: u64, bytes: u64) {
        let arrival = Arrival { begin, bytes, fin: false, push: false, header_bytes: 32, echo_age_us: None };
        receiver.receive(Time::from_nanos(1), &arrival);
    }

    fn blocks(receiver: &mut Receiver) -> Vec<(u64, u64)> {
        let mut blocks = Vec::new();
        receiver.blocks(3, |begin, end| blocks.push((begin, end)));
        blocks
    }

    #[test]
    fn blocks_are_told_with_the_latest_first() {
        let mut receiver = receiver();
        arrive(&mut receiver, 1, 1_000);
        arrive(&mut receiver, 2_001, 1_000);
        arrive(&mut receiver, 4_001, 1_000);
        arrive(&mut receiver, 6_001, 1_000);
        assert_eq!(blocks(&mut receiver), [(6_001, 7_001), (4_001, 5_001), (2_001, 3_001)]);
        // Two blocks become one, which is the latest.
        arrive(&mut receiver, 3_001, 1_000);
        assert_eq!(blocks(&mut receiver), [(2_001, 5_001), (6_001, 7_001)]);
        // A duplicate is told once, first.
        arrive(&mut receiver, 4_001, 1_000);
        assert_eq!(blocks(&mut receiver), [(4_001, 5_001), (2_001, 5_001), (6_001, 7_001)]);
        assert_eq!(blocks(&mut receiver), [(2_001, 5_001), (6_001, 7_001)]);
        arrive(&mut receiver, 1_001, 1_000);
        assert_eq!((receiver.next, receiver.readable()), (5_001, 5_000));
        assert_eq!(blocks(&mut receiver), [(6_001, 7_001)]);
        arrive(&mut receiver, 5_001, 1_000);
        assert_eq!((receiver.next, receiver.read(Time::from_nanos(2)), receiver.readable()), (7_001, 7_000, 0));
        arrive(&mut receiver, 1, 1_000);
        assert_eq!(blocks(&mut receiver), [(1, 1_001)]);
    }

    #[test]
    fn fin_ends_the_stream_and_is_no_data() {
        let mut receiver = receiver();
        let fin = Arrival { begin: 1_001, bytes: 500, fin: true, push: true, header_bytes: 32, echo_age_us: None };
        receiver.receive(Time::from_nanos(1), &fin);
        assert!(!receiver.is_finished() && receiver.readable() == 0);
        arrive(&mut receiver, 1, 1_000);
        assert!(receiver.is_finished());
        assert_eq!((receiver.next, receiver.read(Time::from_nanos(2)), receiver.readable()), (1_502, 1_500, 0));
    }

    #[test]
    fn what_is_beyond_the_window_is_dropped() {
        let mut receiver = receiver();
        arrive(&mut receiver, 200_001, 1_000);
        assert!(blocks(&mut receiver).is_empty());
    }
}
