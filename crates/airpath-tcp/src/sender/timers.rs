// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Timers: the retransmission timeout (RFC 6298), the tail loss probe (RFC 8985, section 7), the window probe.

use airpath_core::Time;

use super::{CongestionState, Sender, Timer};
use crate::clock::ticks_of;
use crate::rtt::{GREATEST_TIMEOUT_MS, INITIAL_TIMEOUT_MS, LEAST_TIMEOUT_US};

/// Wait of a probe beyond two round trips where several segments are under way.
const PROBE_MARGIN_US: u64 = 2_000;

impl Sender {
    /// The timer has fired.
    pub(crate) fn timer(&mut self, now: Time) {
        match self.timer {
            Timer::None => {}
            Timer::Reordering => self.rack_timeout(now),
            Timer::Probe => self.probe(now),
            Timer::Retransmission => {
                self.disarm();
                self.timeout(now);
            }
            Timer::Persist => self.probe_window(now),
        }
    }

    /// Sets the timer after progress: to a probe, or else to the timeout.
    pub(super) fn set_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm(now);
        }
    }

    /// Sets the timer to the timeout.
    pub(super) fn rearm(&mut self, now: Time) {
        if self.board.is_empty() {
            self.disarm();
            return;
        }
        let ticks = match self.timer {
            // The time since the segment was sent counts.
            Timer::Reordering | Timer::Probe => ticks_of(self.timeout_in_us(now).max(1) as u64),
            _ => self.rtt.timeout_ms(),
        };
        self.arm(Timer::Retransmission, now, ticks.min(GREATEST_TIMEOUT_MS));
    }

    /// Sets the timer to a probe of the tail; false if there is nothing to probe.
    pub(super) fn schedule_probe(&mut self, now: Time, advancing: bool) -> bool {
        if self.board.is_empty() || !matches!(self.state, CongestionState::Open | CongestionState::Reduction) {
            return false;
        }
        let mut ticks = match self.rtt.smoothed_times_8() {
            0 => INITIAL_TIMEOUT_MS,
            smoothed => {
                let margin = if self.board.len() == 1 { LEAST_TIMEOUT_US } else { PROBE_MARGIN_US };
                ticks_of((smoothed >> 2) + margin)
            }
        };
        let timeout_us = if advancing { (self.rtt.timeout_ms() * 1_000) as i64 } else { self.timeout_in_us(now) };
        if timeout_us > 0 {
            ticks = ticks.min(ticks_of(timeout_us as u64));
        }
        self.arm(Timer::Probe, now, ticks.min(GREATEST_TIMEOUT_MS));
        true
    }

    /// Sends one segment of new data or the last one again, so that its acknowledgement tells of losses.
    fn probe(&mut self, now: Time) {
        if self.probe_end.is_none() {
            self.probe_retransmits = false;
            let mut probed = self.send_probe(now);
            let fits = self.next < self.end() && self.first_fits();
            if !probed
                && !fits
                && let Some(last) = self.board.last()
            {
                let begin = last.begin;
                probed = self.resend(now, begin, true);
                self.probe_retransmits = probed;
            }
            if probed {
                self.counts.probes += 1;
                self.probe_end = Some(self.next);
                self.timer = Timer::None;
            }
        }
        self.rearm(now);
    }

    /// The retransmission timeout.
    fn timeout(&mut self, now: Time) {
        let Some(first) = self.board.first() else { return };
        let begin = first.begin;
        self.counts.timeouts += 1;
        self.enter_loss(now);
        self.consecutive_timeouts += 1;
        self.retransmit(now, begin);
        self.rtt.back_off();
        self.arm(Timer::Retransmission, now, self.rtt.timeout_ms());
    }

    /// Waits for a window that has no room for anything, while nothing is under way.
    pub(super) fn check_persist(&mut self, now: Time) {
        if !self.board.is_empty() || self.next >= self.end() || self.first_fits() {
            if self.timer == Timer::Persist {
                self.disarm();
            }
            return;
        }
        if self.timer != Timer::Persist {
            let ticks = self.rtt.timeout_ms() << self.persist_backoff.min(10);
            self.arm(Timer::Persist, now, ticks.min(GREATEST_TIMEOUT_MS));
        }
    }

    /// Sends what the window has room for, or asks for the window with nothing (RFC 9293, section 3.8.6.1).
    fn probe_window(&mut self, now: Time) {
        self.disarm();
        let room = self.window_end().saturating_sub(self.next).min(self.full_bytes());
        if room > 0 && self.board.is_empty() {
            self.send_part(now, room);
            return;
        }
        self.window_probe = true;
        self.persist_backoff += 1;
        self.check_persist(now);
    }
}
