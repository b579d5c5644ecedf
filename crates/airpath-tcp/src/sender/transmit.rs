// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sending: lost segments, new data, the checks of the window's use.

use airpath_core::Time;

use super::news::Next;
use super::{CongestionState, Sender, Timer, Transmission};
use crate::clock::{microseconds, milliseconds};
use crate::congestion::INITIAL_WINDOW;
use crate::scoreboard::Sent;
use crate::sequence::Position;

/// The greatest super-packet (GSO) of Linux, without room for headers.
const GREATEST_BURST_BYTES: u64 = 65_216;
/// Least segments of a super-packet, if there are so many.
const LEAST_BURST: u64 = 2;
/// Logarithm of the time whose worth a super-packet has: 1/1024 s.
const BURST_SHIFT: u32 = 10;
/// Logarithm of the round-trip time, in microseconds, at which half of the greatest super-packet is added.
const BURST_RTT_SHIFT: u64 = 9;
/// Fraction of the window that is sent at once rather than held back.
const WINDOW_DIVISOR: u64 = 3;
const DEFER_NS: u64 = 1_000_000;

/// Limits that bound what is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All that the windows let through.
    All,
    /// One super-packet, as a probe even beyond the congestion window.
    Probe,
}

impl Sender {
    /// Sends what an acknowledgement asks for.
    pub(super) fn recover(&mut self, now: Time, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Lost => self.retransmit_lost(now),
            Next::New => {
                self.send(now, Extent::All, false);
                if self.next <= self.high {
                    self.forward_rto = false;
                    self.retransmit_lost(now);
                }
            }
        }
    }

    /// Sends new data as far as the windows go.
    pub(crate) fn send_new(&mut self, now: Time) {
        if self.next < self.end() {
            self.send(now, Extent::All, self.nagle);
            self.check_persist(now);
        }
    }

    /// Sends new data beyond the congestion window; whether there was some that fits.
    pub(super) fn send_probe(&mut self, now: Time) -> bool {
        let before = self.next;
        if self.next < self.end() && self.first_fits() {
            self.send(now, Extent::Probe, false);
        }
        self.next > before
    }

    fn unsent_bytes(&self) -> u64 {
        self.written.saturating_sub(self.next)
    }

    pub(super) fn first_fits(&self) -> bool {
        self.next + self.unsent_bytes().min(self.full_bytes()) <= self.window_end()
    }

    /// Segments that the congestion window has room for, in one super-packet.
    fn quota(&self) -> u64 {
        let window = self.window.segments();
        match window.saturating_sub(self.board.in_flight()) {
            0 => 0,
            room => room.min((window / 2).max(1)),
        }
    }

    /// Bytes a second that Linux would take for its pace, which here bounds super-packets only.
    fn pace(&self) -> u64 {
        let window = self.window.segments().max(self.board.len());
        let percent = if self.window.segments() < self.window.threshold / 2 { 200 } else { 120 };
        let round_trip_times_8 = self.rtt.smoothed_times_8().max(1);
        self.full_bytes().saturating_mul(80_000).saturating_mul(percent).saturating_mul(window) / round_trip_times_8
    }

    /// Segments of the greatest super-packet to be sent.
    fn burst_segments(&self) -> u64 {
        let mut bytes = self.pace() >> BURST_SHIFT;
        let halvings = self.rtt.minimum_us().unwrap_or(u64::from(u32::MAX)) >> BURST_RTT_SHIFT;
        if halvings < 32 {
            bytes += GREATEST_BURST_BYTES >> halvings;
        }
        (bytes.min(GREATEST_BURST_BYTES) / self.full_bytes()).max(LEAST_BURST)
    }

    /// Time of four of the greatest super-packets, at most a millisecond.
    pub(super) fn burst_us(&self) -> u64 {
        match self.pace() {
            0 => 0,
            pace => (GREATEST_BURST_BYTES * 4 * 1_000_000 / pace).min(1_000),
        }
    }

    fn send(&mut self, now: Time, extent: Extent, nagle: bool) {
        let most = self.burst_segments();
        let full = self.full_bytes();
        let mut sent = 0;
        let mut window_limited = false;
        while self.next < self.end() {
            let quota = match self.quota() {
                0 if extent == Extent::Probe => 1,
                0 => break,
                quota => quota.min(most),
            };
            let unsent = self.unsent_bytes();
            if !self.first_fits() {
                break;
            }
            let fin_fits = self.closing && unsent <= quota * full;
            let bytes = if unsent <= full {
                if unsent < full && !self.closing && nagle && self.waits_for_small() {
                    break;
                }
                unsent
            } else {
                if extent == Extent::All && self.defers(now, most, unsent, &mut window_limited) {
                    break;
                }
                self.split(quota * full, unsent, nagle)
            };
            let segments = self.send_burst(now, bytes, fin_fits && bytes == unsent);
            sent += segments;
            if extent == Extent::Probe {
                break;
            }
        }
        window_limited |= self.board.in_flight() >= self.window.segments();
        if sent > 0 || window_limited {
            self.validate_window(now, window_limited);
        }
        if sent > 0 {
            if self.in_reduction() {
                self.reduction_sent += sent;
            }
            if extent != Extent::Probe {
                self.schedule_probe(now, false);
            }
        }
    }

    /// Minshall's variant of Nagle's algorithm: a small segment waits while another one is under way.
    fn waits_for_small(&self) -> bool {
        !self.board.is_empty() && self.small_end > self.unacknowledged && self.small_end <= self.next
    }

    fn split(&self, quota_bytes: u64, unsent: u64, nagle: bool) -> u64 {
        let room = unsent.min(self.window_end() - self.next);
        if quota_bytes <= room {
            return quota_bytes;
        }
        let partial = room % self.full_bytes();
        if partial > 0 && nagle && !(self.closing && room == unsent) && self.waits_for_small() {
            room - partial
        } else {
            room
        }
    }

    /// True if it is better to wait for more room, because the next acknowledgement is near.
    fn defers(&self, now: Time, most: u64, unsent: u64, window_limited: &mut bool) -> bool {
        if self.state >= CongestionState::Recovery
            || self.last_sent.is_none_or(|sent| now.since(sent).nanos() > DEFER_NS)
        {
            return false;
        }
        let full = self.full_bytes();
        let receive_room = self.window_end() - self.next;
        let room = (self.window.segments() - self.board.in_flight()).saturating_mul(full);
        let limit = receive_room.min(room);
        let all = unsent.min(GREATEST_BURST_BYTES / full * full);
        if limit >= most * full || (all < unsent && limit >= all) {
            return false;
        }
        if limit >= self.receive_window.min(self.window.segments().saturating_mul(full)) / WINDOW_DIVISOR {
            return false;
        }
        let Some(first) = self.board.first() else { return false };
        let round_trip_ns = self.rtt.smoothed_times_8() * 125;
        let expected_ns = first.at.nanos() + round_trip_ns;
        if expected_ns > now.nanos() + (round_trip_ns / 2).min(DEFER_NS) {
            return false;
        }
        if room < receive_room {
            if room <= all {
                *window_limited = true;
                return true;
            }
        } else if receive_room <= all {
            return true;
        }
        !self.closing
    }

    /// Sends a super-packet of `bytes` and, if `fin`, the end; the number of its segments.
    fn send_burst(&mut self, now: Time, bytes: u64, fin: bool) -> u64 {
        let full = self.full_bytes();
        let begin = self.next;
        let segments = bytes.div_ceil(full).max(1);
        let nothing_under_way = self.board.in_flight() == 0;
        let were_out = !self.board.is_empty();
        if nothing_under_way {
            self.window.restarts(now, milliseconds(now) - self.last_sent_ms);
        }
        for number in 0..segments {
            let from = begin + number * full;
            let length = (bytes - number * full).min(full);
            let last = number + 1 == segments;
            let ends = fin && last;
            let end = from + length + u64::from(ends);
            self.board.push(Sent {
                begin: from,
                end,
                at: now,
                delivered_before: self.counts.delivered,
                sacked: false,
                lost: false,
                retransmitted: false,
                ever_retransmitted: false,
                fin: ends,
            });
            // The last of a super-packet pushes, as does the last of what was written.
            let push = length > 0 && last && (segments > 1 || from + length == self.written);
            let transmission =
                Transmission { begin: from, bytes: length as u32, fin: ends, push, retransmission: false };
            self.out.push(transmission);
            self.next = end;
        }
        if !bytes.is_multiple_of(full) {
            self.small_end = self.next;
        }
        self.last_sent_ms = milliseconds(now);
        self.last_sent = Some(now);
        if !were_out || self.timer == Timer::Probe {
            self.rearm(now);
        }
        segments
    }

    /// Sends `bytes`, less than a segment, because the window has no more room.
    pub(super) fn send_part(&mut self, now: Time, bytes: u64) {
        let bytes = bytes.min(self.unsent_bytes());
        self.send_burst(now, bytes, false);
    }

    /// Sends lost segments as far as the congestion window goes.
    pub(super) fn retransmit_lost(&mut self, now: Time) {
        let first = self.board.first().map(|first| first.begin);
        let mut rearm = false;
        while let Some(begin) = self.board.next_waiting() {
            if self.board.in_flight() >= self.window.segments() || !self.retransmit(now, begin) {
                break;
            }
            if self.in_reduction() {
                self.reduction_sent += 1;
            }
            rearm |= Some(begin) == first && self.timer != Timer::Reordering;
        }
        if rearm {
            self.arm(Timer::Retransmission, now, self.rtt.timeout_ms());
        }
    }

    /// Sends the segment at `begin` again; false if it lies beyond a window that has shrunk.
    pub(super) fn retransmit(&mut self, now: Time, begin: Position) -> bool {
        if begin >= self.window_end() && begin != self.unacknowledged {
            return false;
        }
        let done = self.resend(now, begin, false);
        if done {
            let stamp = self.stamp(now);
            self.first_retransmission.get_or_insert(stamp);
            self.undo_retransmissions = Some(self.undo_retransmissions.unwrap_or(0) + 1);
        }
        done
    }

    pub(super) fn resend(&mut self, now: Time, begin: Position, probe: bool) -> bool {
        let Some(sent) = self.board.resend(begin, now, self.counts.delivered, probe) else { return false };
        self.counts.retransmissions += 1;
        self.last_sent_ms = milliseconds(now);
        self.last_sent = Some(now);
        self.out.push(Transmission {
            begin,
            bytes: (sent.end - sent.begin - u64::from(sent.fin)) as u32,
            fin: sent.fin,
            push: false,
            retransmission: true,
        });
        true
    }

    /// True if the congestion window was what limited the sender lately.
    pub(super) fn is_limited_by_window(&self) -> bool {
        self.limited_by_window || (self.window.in_slow_start() && self.window.segments() < 2 * self.most_out)
    }

    /// Notes how much of the congestion window is used (RFC 7661), and lowers a window that is not.
    fn validate_window(&mut self, now: Time, limited: bool) {
        let out = self.board.len();
        if self.unacknowledged >= self.usage_end || limited || (!self.limited_by_window && out > self.most_out) {
            self.limited_by_window = limited;
            self.most_out = out;
            self.usage_end = self.next;
        }
        let now_ms = milliseconds(now);
        if self.is_limited_by_window() {
            self.window_used = 0;
            self.window_used_ms = now_ms;
            return;
        }
        self.window_used = self.window_used.max(out);
        if now_ms - self.window_used_ms >= self.rtt.timeout_ms() {
            if self.state == CongestionState::Open {
                let used = self.window_used.max(INITIAL_WINDOW);
                if used < self.window.segments() {
                    self.window.threshold = self.window.current_threshold(false);
                    self.window.set(self.window.segments().midpoint(used));
                }
                self.window_used = 0;
            }
            self.window_used_ms = now_ms;
        }
    }

    /// Halves the window for each timeout that passed without sending (RFC 2861).
    pub(crate) fn restart_after_idle(&mut self, now: Time) {
        let idle_ms = milliseconds(now) - self.last_sent_ms;
        let timeout = self.rtt.timeout_ms();
        if !self.board.is_empty() || self.last_sent.is_none() || idle_ms <= timeout {
            return;
        }
        self.window.threshold = self.window.current_threshold(self.in_reduction());
        let least = self.window.segments().min(INITIAL_WINDOW);
        let mut window = self.window.segments();
        let mut left = idle_ms;
        while left > timeout && window > least {
            left -= timeout;
            window >>= 1;
        }
        self.window.set(window.max(least));
        self.window_used_ms = milliseconds(now);
        self.window_used = 0;
    }

    /// Microseconds until the timeout of the first segment, negative if it has passed.
    pub(super) fn timeout_in_us(&self, now: Time) -> i64 {
        let sent = self.board.first().map_or(now, |first| first.at);
        (microseconds(sent) + self.rtt.timeout_ms() * 1_000) as i64 - microseconds(now) as i64
    }
}
