// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The time of an acknowledgement (RFC 5681, section 4.2), as Linux chooses it.
//!
//! Every second full segment is acknowledged at once, and so is everything at the beginning and after something
//! unusual (quick acknowledgements). Otherwise it waits: 40 ms at least, longer where segments arrive more slowly, up
//! to 200 ms. After three duplicate acknowledgements further ones wait for a twentieth of the round-trip time, at most
//! a millisecond.

use airpath_core::{Span, Time};

use super::Arrival;
use crate::clock::{fires, milliseconds, ticks_of};
use crate::sequence::Position;

const LEAST_DELAY_MS: u64 = 40;
const GREATEST_DELAY_MS: u64 = 200;
/// The greatest delay where the sender is not known to wait.
const GREATEST_USUAL_DELAY_MS: u64 = 500;
/// The least retransmission timeout without a tick, which no delay exceeds.
const DELAY_LIMIT_MS: u64 = 199;
const MOST_QUICK: u64 = 16;
/// Duplicate acknowledgements that are never held back.
const PROMPT_DUPLICATES: u32 = 3;
/// Duplicate acknowledgements that one stands for at most.
const MOST_COMPRESSED: u32 = 44;
const COMPRESSION_NS: u64 = 1_000_000;
/// Time by which the timer may be late.
const COMPRESSION_SLACK_NS: u64 = 100_000;

/// State of acknowledgements.
#[derive(Debug)]
pub(crate) struct Acknowledger {
    /// An acknowledgement is to go out now.
    pub due_now: bool,
    /// The receiver's guess of a full segment.
    pub segment_bytes: u64,
    last_short_bytes: u64,
    scheduled: bool,
    at_once: bool,
    pushed: bool,
    pushed_twice: bool,
    quick: u64,
    /// The two ends answer to each other.
    interactive: bool,
    delay_ms: u64,
    last_arrival_ms: u64,
    timeout_ms: u64,
    /// Expiry in ticks, and the time at which the timer fires.
    timer: Option<(u64, Time)>,
    compressed: u32,
    compressed_due: Option<Time>,
    duplicates: u32,
    duplicates_at: Position,
}

impl Acknowledger {
    pub(super) fn new() -> Acknowledger {
        Acknowledger {
            due_now: false,
            segment_bytes: 536,
            last_short_bytes: 0,
            scheduled: false,
            at_once: false,
            pushed: false,
            pushed_twice: false,
            quick: 0,
            interactive: false,
            delay_ms: 0,
            last_arrival_ms: 0,
            timeout_ms: 1_000,
            timer: None,
            compressed: 0,
            compressed_due: None,
            duplicates: 0,
            duplicates_at: 0,
        }
    }

    pub(super) fn open(&mut self, segment_bytes: u64) {
        self.segment_bytes = segment_bytes;
    }

    /// Tells the retransmission timeout of the sending half, which bounds delays.
    pub(crate) fn set_timeout(&mut self, timeout_ms: u64) {
        self.timeout_ms = timeout_ms;
    }

    /// The buffer is short: no quick acknowledgements.
    pub(super) fn slow(&mut self) {
        self.quick = 0;
    }

    /// The window grows, which the sender is to know.
    pub(super) fn hurry(&mut self) {
        self.quick |= 1;
    }

    fn quicken(&mut self, most: u64, window: u64) {
        let quick = (window / (2 * self.segment_bytes)).max(if window < 2 * self.segment_bytes { 2 } else { 0 });
        self.quick = self.quick.max(quick.min(most));
    }

    /// A mark of congestion, or its end: the sender is to know soon.
    pub(crate) fn congestion(&mut self, window: u64) {
        self.quicken(2, window);
        self.interactive = false;
        self.delay_ms = LEAST_DELAY_MS;
    }

    /// The sender has lowered its window, maybe to a single segment.
    pub(crate) fn sender_reduced(&mut self) {
        self.at_once = true;
    }

    /// Something came that is known or unwanted.
    pub(super) fn duplicate(&mut self, window: u64) {
        self.quicken(MOST_QUICK, window);
        self.interactive = false;
        self.delay_ms = LEAST_DELAY_MS;
        self.scheduled = true;
    }

    pub(super) fn finished(&mut self) {
        self.scheduled = true;
        self.interactive = true;
    }

    pub(super) fn hole_filled(&mut self) {
        self.at_once = true;
    }

    pub(super) fn out_of_order(&mut self, flush: bool) {
        self.scheduled = true;
        if flush && self.compressed > 0 {
            self.due_now = true;
        }
    }

    /// Data came in order.
    pub(super) fn in_order(&mut self, now: Time, arrival: &Arrival, window: u64) {
        self.scheduled = true;
        self.measure_segment(arrival);
        let now_ms = milliseconds(now);
        if self.delay_ms == 0 {
            self.quicken(MOST_QUICK, window);
            self.delay_ms = LEAST_DELAY_MS;
        } else {
            let gap = now_ms - self.last_arrival_ms;
            if gap <= LEAST_DELAY_MS / 2 {
                self.delay_ms = self.delay_ms / 2 + LEAST_DELAY_MS / 2;
            } else if gap < self.delay_ms {
                self.delay_ms = (self.delay_ms / 2 + gap).min(self.timeout_ms).min(GREATEST_DELAY_MS);
            } else if gap > self.timeout_ms {
                self.quicken(MOST_QUICK, window);
            }
        }
        self.last_arrival_ms = now_ms;
    }

    fn measure_segment(&mut self, arrival: &Arrival) {
        let last_short = std::mem::take(&mut self.last_short_bytes);
        if arrival.bytes >= self.segment_bytes {
            self.segment_bytes = arrival.bytes;
            self.pushed |= arrival.push;
            return;
        }
        let with_header = arrival.bytes + arrival.header_bytes;
        if with_header >= 556 || (with_header >= 108 && !arrival.push && !arrival.fin) {
            self.last_short_bytes = arrival.bytes;
            if arrival.bytes == last_short {
                self.segment_bytes = arrival.bytes;
                return;
            }
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    /// Decides after a segment: `pending` bytes are not acknowledged, and an acknowledgement `opens` the window.
    pub(super) fn check(
        &mut self,
        now: Time,
        next: Position,
        pending: u64,
        opens: bool,
        holds: bool,
        round_trip_times_8: (u64, u64),
    ) {
        if !self.scheduled {
            return;
        }
        let is_quick = self.quick > 0 && !self.interactive;
        if (pending > self.segment_bytes && opens) || is_quick || self.at_once {
            self.due_now = true;
            return;
        }
        if !holds {
            self.delay(now, round_trip_times_8.1);
            return;
        }
        if self.compressed >= MOST_COMPRESSED {
            self.due_now = true;
            return;
        }
        if self.duplicates_at != next {
            self.duplicates_at = next;
            self.duplicates = 0;
        }
        if self.duplicates < PROMPT_DUPLICATES {
            self.duplicates += 1;
            self.due_now = true;
            return;
        }
        self.compressed += 1;
        if self.compressed_due.is_none() {
            let (mut round_trip, smoothed) = round_trip_times_8;
            if smoothed > 0 && smoothed < round_trip {
                round_trip = smoothed;
            }
            let delay = (round_trip * 125 / 20).min(COMPRESSION_NS);
            self.compressed_due = Some(now + Span::from_nanos(delay + COMPRESSION_SLACK_NS));
        }
    }

    fn delay(&mut self, now: Time, smoothed_times_8: u64) {
        let mut delay = self.delay_ms;
        if delay > LEAST_DELAY_MS {
            let mut most = if self.interactive || self.pushed { GREATEST_DELAY_MS } else { GREATEST_USUAL_DELAY_MS };
            if smoothed_times_8 > 0 {
                most = most.min(ticks_of(smoothed_times_8 >> 3).max(LEAST_DELAY_MS));
            }
            delay = delay.min(most);
        }
        delay = delay.min(DELAY_LIMIT_MS);
        let now_ms = milliseconds(now);
        let mut expires = now_ms + delay;
        if let Some((earlier, _)) = self.timer {
            if earlier <= now_ms + delay / 4 {
                self.due_now = true;
                return;
            }
            expires = expires.min(earlier);
        }
        if self.timer.is_none_or(|(earlier, _)| earlier != expires) {
            self.timer = Some((expires, fires(now, expires - now_ms)));
        }
    }

    /// Decides after the application has read.
    pub(super) fn after_read(&mut self, pending: u64, opens: bool) {
        let pushed = self.pushed_twice || (self.pushed && !self.interactive);
        if opens || (self.scheduled && (pending > self.segment_bytes || pushed)) {
            self.due_now = true;
        }
    }

    /// Time at which an acknowledgement that waits goes out.
    pub(crate) fn due(&self) -> Option<Time> {
        let delayed = self.timer.map(|(_, at)| at);
        match (delayed, self.compressed_due) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Runs what is due at or before `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        if self.compressed_due.is_some_and(|due| due <= now) {
            self.compressed_due = None;
            self.due_now |= self.compressed > 0;
        }
        if self.timer.is_some_and(|(_, at)| at <= now) {
            self.timer = None;
            if self.scheduled {
                if self.interactive {
                    self.interactive = false;
                    self.delay_ms = LEAST_DELAY_MS;
                } else {
                    self.delay_ms = (self.delay_ms * 2).min(self.timeout_ms).min(GREATEST_DELAY_MS);
                }
                self.due_now = true;
            }
        }
    }

    /// An acknowledgement goes out, alone or with data.
    pub(crate) fn sent(&mut self) {
        if self.quick > 0 {
            self.quick -= u64::from(self.scheduled);
            if self.quick == 0 {
                self.delay_ms = LEAST_DELAY_MS;
            }
        }
        self.due_now = false;
        self.scheduled = false;
        self.at_once = false;
        self.pushed = false;
        self.pushed_twice = false;
        self.timer = None;
        self.compressed = 0;
        self.compressed_due = None;
    }

    /// Data goes out: the ends are interactive if it answers what came lately.
    pub(crate) fn data_sent(&mut self, now: Time) {
        if milliseconds(now) - self.last_arrival_ms < self.delay_ms {
            self.interactive = true;
        }
    }
}
