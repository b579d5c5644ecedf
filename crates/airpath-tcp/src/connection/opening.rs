// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The opening of a connection (RFC 9293, section 3.5), with its timeouts.

use airpath_core::Time;

use super::{Connection, State};
use crate::clock::{fires, microseconds};
use crate::rtt::GREATEST_TIMEOUT_MS;
use crate::segment::{Flags, Segment};
use crate::sequence::number;

/// Timeouts of a SYN before they double (`tcp_syn_linear_timeouts`).
const LINEAR_TIMEOUTS: u32 = 4;

impl Connection {
    /// The timer of the opening has fired.
    pub(super) fn repeat_opening(&mut self, now: Time) {
        self.opening_timeouts += 1;
        if self.state == State::SynReceived || self.opening_timeouts > LINEAR_TIMEOUTS {
            self.opening_timeout_ms = (self.opening_timeout_ms * 2).min(GREATEST_TIMEOUT_MS);
        }
        self.send_opening(now);
    }

    pub(super) fn send_opening(&mut self, now: Time) {
        self.opening_sent = now;
        self.opening_due = Some(fires(now, self.opening_timeout_ms));
        self.waiting_since.get_or_insert(now);
        let answers = self.state == State::SynReceived;
        let mut flags = if answers { Flags::SYN.with(Flags::ACK) } else { Flags::SYN };
        if self.config.ecn {
            // A SYN that is sent again does without, as an old network might drop it for that.
            if answers {
                flags = flags.with(Flags::ECE);
            } else if self.opening_timeouts == 0 {
                flags = flags.with(Flags::ECE).with(Flags::CWR);
            }
        }
        let segment = Segment {
            sequence: self.config.initial_sequence,
            acknowledgement: if answers { number(self.peer_initial, 1) } else { 0 },
            flags,
            window: self.receiver.buffer.window.min(0xffff) as u16,
            maximum_segment: Some(self.config.maximum_segment_bytes),
            window_scale: Some(self.receiver.buffer.scale),
            sack_permitted: true,
            timestamps: self.timestamps(now),
            ..Segment::default()
        };
        self.out.push(segment);
    }

    fn take_options(&mut self, segment: &Segment) {
        self.peer_initial = segment.sequence;
        self.peer_scale = segment.window_scale.unwrap_or(0);
        self.config.timestamps &= segment.timestamps.is_some();
        if let Some((value, _)) = segment.timestamps {
            self.recent_stamp = value;
        }
    }

    pub(super) fn answer(&mut self, now: Time, segment: &Segment) {
        self.take_options(segment);
        self.config.ecn &= segment.flags.has(Flags::ECE) && segment.flags.has(Flags::CWR);
        self.state = State::SynReceived;
        self.open_sender(now, segment, None);
        self.send_opening(now);
    }

    pub(super) fn opened(&mut self, now: Time, segment: &Segment) {
        let acknowledges =
            segment.flags.has(Flags::ACK) && segment.acknowledgement == number(self.config.initial_sequence, 1);
        if !segment.flags.has(Flags::SYN) || !acknowledges {
            return;
        }
        self.take_options(segment);
        self.config.ecn &= segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR);
        let round_trip = self.opening_round_trip_us(now, segment);
        self.open_sender(now, segment, round_trip);
        self.establish(now);
        self.acknowledge(now);
        self.push(now);
    }

    pub(super) fn confirmed(&mut self, now: Time, segment: &Segment) {
        if segment.flags.has(Flags::SYN) {
            self.send_opening(now);
            return;
        }
        if !segment.flags.has(Flags::ACK) || segment.acknowledgement != number(self.config.initial_sequence, 1) {
            return;
        }
        let round_trip = self.opening_round_trip_us(now, segment);
        let window = u64::from(segment.window) << self.peer_scale;
        self.sender.open(now, window, u32::MAX, round_trip);
        self.establish(now);
        self.take(now, segment);
        self.push(now);
    }

    /// The round-trip time of the opening: by its time unless it was sent again, or else by the echo.
    fn opening_round_trip_us(&self, now: Time, segment: &Segment) -> Option<u64> {
        if self.opening_timeouts == 0 {
            return Some(microseconds(now) - microseconds(self.opening_sent));
        }
        let (_, echo) = segment.timestamps?;
        Some(u64::from(self.sender.stamp(now).wrapping_sub(echo).max(1)) * 1_000)
    }

    fn open_sender(&mut self, now: Time, segment: &Segment, round_trip_us: Option<u64>) {
        let largest = segment.maximum_segment.unwrap_or(536).min(self.config.maximum_segment_bytes);
        let bytes = u32::from(largest).saturating_sub(self.timestamps_bytes()).max(8);
        self.sender.open(now, u64::from(segment.window), bytes, round_trip_us);
    }

    fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.opening_due = None;
        self.waiting_since = None;
        self.sender.ecn = self.config.ecn;
        if self.opening_timeouts > 1 {
            // RFC 5681, section 3.1: a SYN that was lost is a sign of congestion.
            self.sender.window.set(1);
        }
        let bytes =
            u64::from(self.config.maximum_segment_bytes).saturating_sub(u64::from(self.timestamps_bytes())).max(8);
        self.receiver.open(now, bytes);
    }
}
