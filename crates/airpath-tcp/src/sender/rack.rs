// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses by time: RACK (RFC 8985, section 6).

use airpath_core::Time;

use super::{CongestionState, Sender, Timer};
use crate::clock::{microseconds, ticks_of};
use crate::sequence::Position;

/// Recoveries for which a wider reordering window stays.
const PERSISTENCE: u32 = 16;
/// Least wait of a timer beyond the time that it is to cover.
const TIMER_MARGIN_US: u64 = 2_000;

/// State of RACK.
#[derive(Debug)]
pub(super) struct Rack {
    /// Time of sending and end of the segment sent last of those that were delivered.
    latest: (Time, Position),
    round_trip_us: u64,
    /// Something was delivered since losses were looked for.
    pub advanced: bool,
    /// The reordering window in quarters of the least round-trip time.
    quarters: u64,
    persistence: u32,
    pub duplicate_seen: bool,
    delivered_at_widening: u64,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            latest: (Time::ZERO, 0),
            round_trip_us: 0,
            advanced: false,
            quarters: 1,
            persistence: 0,
            duplicate_seen: false,
            delivered_at_widening: 0,
        }
    }
}

impl Rack {
    pub(super) fn forget_duplicates(&mut self) {
        self.duplicate_seen = false;
    }

    /// A recovery ended without being taken back.
    pub(super) fn recovered(&mut self) {
        self.persistence = self.persistence.saturating_sub(1);
    }

    /// A recovery was vain.
    pub(super) fn was_vain(&mut self) {
        self.persistence = (self.persistence + 1).min(PERSISTENCE);
    }
}

impl Sender {
    /// A segment sent at `sent` was delivered: steps 1 and 2.
    pub(super) fn rack_delivered(&mut self, now: Time, sent: Time, end: Position, retransmitted: bool) {
        let round_trip = microseconds(now) - microseconds(sent);
        if retransmitted && self.rtt.minimum_us().is_some_and(|least| round_trip < least) {
            // This acknowledges the first transmission rather than the second.
            return;
        }
        self.rack.advanced = true;
        self.rack.round_trip_us = round_trip;
        self.rack.latest = self.rack.latest.max((sent, end));
    }

    /// Adapts the reordering window to duplicates: step 4. `delivered_before` is the number of segments that were
    /// delivered when what this acknowledgement delivers was sent.
    pub(super) fn rack_adapt(&mut self, delivered_before: Option<u64>) {
        let Some(before) = delivered_before else { return };
        let rack = &mut self.rack;
        if before < rack.delivered_at_widening {
            rack.duplicate_seen = false;
        }
        if rack.duplicate_seen {
            rack.quarters = (rack.quarters + 1).min(255);
            rack.duplicate_seen = false;
            rack.delivered_at_widening = self.counts.delivered;
            rack.persistence = PERSISTENCE;
        } else if rack.persistence == 0 {
            rack.quarters = 1;
        }
    }

    fn reordering_window_us(&self) -> u64 {
        if !self.reordering_seen && (self.state >= CongestionState::Recovery || self.board.sacked() >= self.reordering)
        {
            return 0;
        }
        let quarter = self.rtt.minimum_us().map_or(u64::from(u32::MAX), |least| least >> 2);
        (quarter * self.rack.quarters).min(self.rtt.smoothed_us().unwrap_or(0))
    }

    /// Time until a segment sent at `sent` is overdue, if it is not.
    pub(super) fn overdue_in_us(&self, now: Time, sent: Time, window_us: u64) -> u64 {
        (self.rack.round_trip_us + window_us).saturating_sub(microseconds(now) - microseconds(sent))
    }

    /// Takes for lost what is overdue: step 5. Returns the wait for the rest, if there is some.
    fn rack_lose(&mut self, now: Time) -> Option<u64> {
        let window_us = self.reordering_window_us();
        let (latest, round_trip) = (self.rack.latest, self.rack.round_trip_us);
        let mut wait = 0;
        self.board.by_time(|board, sent| {
            if latest <= (sent.at, sent.end) {
                return false;
            }
            let passed = microseconds(now) - microseconds(sent.at);
            match (round_trip + window_us).checked_sub(passed).filter(|left| *left > 0) {
                None => board.lose(sent.begin),
                Some(left) => wait = wait.max(left),
            }
            true
        });
        (wait > 0).then_some(wait)
    }

    /// Looks for losses after a delivery; whether a timer waits for the rest.
    pub(super) fn rack_look(&mut self, now: Time) -> bool {
        if !self.rack.advanced || self.board.is_empty() {
            return false;
        }
        self.rack.advanced = false;
        let wait = self.rack_lose(now);
        if let Some(wait) = wait {
            self.arm(Timer::Reordering, now, ticks_of(wait + TIMER_MARGIN_US).min(self.rtt.timeout_ms()));
        }
        wait.is_some()
    }

    /// The reordering window is over.
    pub(super) fn rack_timeout(&mut self, now: Time) {
        let (in_flight, losses) = (self.board.in_flight(), self.board.losses());
        self.rack_lose(now);
        if in_flight != self.board.in_flight() {
            if self.state != CongestionState::Recovery {
                self.enter_recovery(false);
                self.reduce(1, self.board.losses() - losses, false);
            }
            self.retransmit_lost(now);
        }
        if self.timer != Timer::Retransmission {
            self.rearm(now);
        }
    }
}
