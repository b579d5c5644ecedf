// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receive buffer and the window that it offers.
//!
//! A buffer of a given size offers all of it. Otherwise it grows as that of Linux does (dynamic right-sizing, Fisk and
//! Feng 2001): the window begins with 64 kB, rises by two segments with each one that arrives, and the buffer with
//! twice what the application read in a round trip, and more while that rises. A segment takes more memory than its
//! bytes, so that the window is a part of the buffer.

use airpath_core::Time;

use super::Arrival;
use crate::clock::microseconds;
use crate::sequence::Position;

/// Memory at the beginning and at most (`tcp_rmem`).
const INITIAL_BYTES: u64 = 131_072;
const MOST_BYTES: u64 = 6_291_456;
/// Memory beside the data of a packet.
const PACKET_OVERHEAD_BYTES: u64 = 256;
const HEADROOM_BYTES: u64 = 400;
/// Part of a buffer that is data before anything arrived, in 256ths.
const INITIAL_PART: u64 = 128;

/// Size of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// It grows as that of Linux.
    Automatic,
    /// This many bytes of data.
    Fixed(u64),
}

/// The receive buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    size: BufferSize,
    memory: u64,
    /// Part of the memory that is data, in 256ths.
    part: u64,
    segment_bytes: u64,
    /// The greatest window for the memory.
    pub clamp: u64,
    /// The window as far as arrivals have raised it.
    threshold: u64,
    /// The window told last, and the position up to which it acknowledged.
    pub window: u64,
    pub acknowledged: Position,
    pub scale: u8,
    /// Less than half of the buffer is free.
    pub is_short: bool,
    /// Eight times the round-trip time as the receiver sees it.
    pub round_trip_times_8: u64,
    round_trip_end: Option<(Position, u64)>,
    read_last_round: u64,
    round_begin: (Position, u64),
    has_arrivals: bool,
}

impl Buffer {
    pub(super) fn new(size: BufferSize, segment_bytes: u64) -> Buffer {
        let (window, most) = match size {
            BufferSize::Automatic => (INITIAL_BYTES * INITIAL_PART / 256 / segment_bytes * segment_bytes, MOST_BYTES),
            BufferSize::Fixed(bytes) => (bytes, bytes),
        };
        let scale = (most.max(1).ilog2().saturating_sub(15)).min(14) as u8;
        Buffer {
            size,
            memory: INITIAL_BYTES,
            part: INITIAL_PART,
            segment_bytes,
            clamp: window,
            threshold: window,
            window: window.min(0xffff),
            acknowledged: 1,
            scale,
            is_short: false,
            round_trip_times_8: 0,
            round_trip_end: None,
            read_last_round: 0,
            round_begin: (1, 0),
            has_arrivals: false,
        }
    }

    pub(super) fn open(&mut self, now: Time, segment_bytes: u64, read: Position) {
        self.segment_bytes = segment_bytes;
        if self.size == BufferSize::Automatic {
            let most = self.memory * self.part / 256;
            self.clamp = most.saturating_sub(segment_bytes).max(2 * segment_bytes);
            self.threshold = self.threshold.min(self.clamp);
        }
        self.read_last_round = self.threshold.min(self.window).min(10 * segment_bytes);
        self.round_begin = (read, microseconds(now));
    }

    /// Rest of the window told last.
    pub(super) fn remaining(&self, next: Position) -> u64 {
        (self.acknowledged + self.window).saturating_sub(next)
    }

    fn free(&self, held_bytes: u64, unread_bytes: u64) -> u64 {
        let all = match self.size {
            BufferSize::Automatic => self.memory * self.part / 256,
            BufferSize::Fixed(bytes) => bytes,
        };
        all.saturating_sub(held_bytes + unread_bytes)
    }

    /// The window that would be told now.
    pub(super) fn select(&mut self, held_bytes: u64, unread_bytes: u64, segment_bytes: u64) -> u64 {
        let mut free = self.free(held_bytes, unread_bytes);
        let full = self.free(0, 0);
        let half = self.clamp.min(full) / 2;
        self.is_short = free < half;
        if self.is_short {
            free = free >> self.scale << self.scale;
            if free < full >> 4 || free < segment_bytes.min(full) {
                return 0;
            }
        }
        free = free.min(self.threshold);
        self.rounded_up(free)
    }

    /// `bytes` in whole units of the scale. Done for every segment, so it does not divide.
    fn rounded_up(&self, bytes: u64) -> u64 {
        let whole = bytes >> self.scale;
        let rest = bytes - (whole << self.scale);
        (whole + u64::from(rest > 0)) << self.scale
    }

    /// Tells the window: its right edge never moves to the left.
    pub(super) fn advertise(&mut self, next: Position, held: u64, unread: u64, segment_bytes: u64) -> u64 {
        let remaining = self.rounded_up(self.remaining(next));
        let selected = self.select(held, unread, segment_bytes);
        self.window = selected.max(remaining).min(0xffff << self.scale);
        self.acknowledged = next;
        self.window
    }

    /// Measures the round-trip time as the receiver sees it: by echoes, and before the first of them by windows.
    pub(super) fn measure(&mut self, now: Time, arrival: &Arrival, next: Position, segment_bytes: u64) {
        if self.size != BufferSize::Automatic {
            return;
        }
        if !self.has_arrivals || arrival.bytes > self.segment_bytes {
            self.has_arrivals = true;
            let memory = (arrival.bytes + HEADROOM_BYTES).next_power_of_two() + PACKET_OVERHEAD_BYTES;
            self.part = (arrival.bytes * 256 / memory).max(1);
            self.clamp = self.memory * self.part / 256;
            self.read_last_round = self.read_last_round.min(self.clamp);
        }
        if let Some(age) = arrival.echo_age_us.filter(|age| *age > 0 && arrival.bytes >= segment_bytes) {
            self.take_round_trip(age, false);
        }
        let now = microseconds(now);
        match self.round_trip_end {
            Some((end, _)) if next < end => {}
            begun => {
                if let Some((_, since)) = begun {
                    self.take_round_trip((now - since).max(1), true);
                }
                self.round_trip_end = Some((next + self.window, now));
            }
        }
    }

    fn take_round_trip(&mut self, sample_us: u64, by_window: bool) {
        let old = self.round_trip_times_8;
        if old == 0 || sample_us * 8 < old {
            self.round_trip_times_8 = sample_us * 8;
        } else if !by_window {
            self.round_trip_times_8 = old - (old >> 3) + sample_us;
        }
    }

    /// Raises the window with an arrival; whether it rose.
    pub(super) fn grow(&mut self, bytes: u64, used_bytes: u64) -> bool {
        if self.size != BufferSize::Automatic || bytes < 128 {
            return false;
        }
        let room = self.clamp.min(self.free(used_bytes, 0)).saturating_sub(self.threshold);
        self.threshold += room.min((2 * self.segment_bytes).max(2 * bytes));
        room > 0
    }

    /// Adapts the buffer to what the application has read, once in a round trip.
    pub(super) fn adjust(&mut self, now: Time, read: Position, next: Position) {
        let now = microseconds(now);
        let (begin, since) = self.round_begin;
        if self.round_trip_times_8 == 0 || now - since < self.round_trip_times_8 >> 3 {
            return;
        }
        let copied = (read - begin).saturating_sub(next - read);
        if copied > self.read_last_round {
            if self.size == BufferSize::Automatic {
                let mut window = 2 * copied + 16 * self.segment_bytes;
                window += window * (copied - self.read_last_round) / self.read_last_round.max(1) * 2;
                let memory = (window * 256 / self.part).min(MOST_BYTES);
                if memory > self.memory {
                    self.memory = memory;
                    self.clamp = memory * self.part / 256;
                }
            }
            self.read_last_round = copied;
        }
        self.round_begin = (read, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_begins_and_grows_as_that_of_linux() {
        let mut buffer = Buffer::new(BufferSize::Automatic, 1_460);
        assert_eq!((buffer.window, buffer.scale), (64_240, 7));
        buffer.open(Time::ZERO, 1_448, 1);
        let now = Time::from_nanos(1);
        let arrival = Arrival { begin: 1, bytes: 1_448, fin: false, push: false, header_bytes: 32, echo_age_us: None };
        buffer.measure(now, &arrival, 1_449, 1_448);
        // 1448 of 2304 bytes are data: 160/256 of 128 KiB.
        assert_eq!(buffer.clamp, 81_920);
        // The first five each raise the window by two segments.
        for number in 1..=5 {
            assert!(buffer.grow(1_448, 1_448));
            assert_eq!(buffer.threshold, 64_088 + number * 2_896);
        }
        assert!(buffer.grow(1_448, 1_448));
        assert_eq!(buffer.threshold, 81_920 - 1_448);
        assert!(!buffer.grow(1_448, 1_448));
        assert_eq!(buffer.advertise(1_449, 0, 0, 1_448), 629 * 128);
    }

    #[test]
    fn a_buffer_grows_with_what_is_read_in_a_round_trip() {
        let mut buffer = Buffer::new(BufferSize::Automatic, 1_460);
        buffer.open(Time::ZERO, 1_448, 1);
        let arrival =
            Arrival { begin: 1, bytes: 1_448, fin: false, push: false, header_bytes: 32, echo_age_us: Some(100_000) };
        buffer.measure(Time::from_nanos(1), &arrival, 1_449, 1_448);
        // Within a round trip nothing happens.
        buffer.adjust(Time::from_nanos(99_000_000), 50_001, 50_001);
        assert_eq!(buffer.memory, INITIAL_BYTES);
        // 50 kB: twice that and 16 segments, and twice the rise from 14480 bytes.
        buffer.adjust(Time::from_nanos(100_000_000), 50_001, 50_001);
        let window = 2 * 50_000 + 16 * 1_448;
        let expected = (window + window * (50_000 - 14_480) / 14_480 * 2) * 256 / 160;
        assert_eq!(buffer.memory, expected);
    }

    #[test]
    fn a_given_size_is_the_window() {
        let mut buffer = Buffer::new(BufferSize::Fixed(14_600), 1_460);
        buffer.open(Time::ZERO, 1_448, 1);
        assert_eq!((buffer.scale, buffer.advertise(1, 0, 0, 1_448)), (0, 14_600));
        // It stays while bytes are held or unread, but does not move to the left.
        assert_eq!(buffer.advertise(2_897, 0, 2_896, 1_448), 11_704);
        assert_eq!(buffer.advertise(2_897, 0, 0, 1_448), 14_600);
    }
}
