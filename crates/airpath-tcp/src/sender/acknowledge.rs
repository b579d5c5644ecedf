// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Acknowledgements, taken: positions, selective acknowledgements, round-trip times, marks.

use airpath_core::Time;

use super::news::{News, Next};
use super::{CongestionState, MOST_REORDERING, Sender, USUAL_REORDERING};
use crate::clock::microseconds;
use crate::congestion::Sample;
use crate::scoreboard::Sent;
use crate::sequence::Position;

/// An acknowledgement, in positions of the sender's stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement<'a> {
    pub position: Position,
    /// Position of the segment in the other stream.
    pub from: Position,
    pub window: u64,
    pub sack: &'a [(Position, Position)],
    pub echo: Option<u32>,
    pub has_data: bool,
    pub congestion_echo: bool,
}

/// Times of sending of what an acknowledgement delivers, for round-trip times.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    first: Option<Time>,
    last: Option<Time>,
    first_sacked: Option<Time>,
    last_sacked: Option<Time>,
    /// Time of sending and deliveries before it, of what was sent last.
    latest: Option<(Time, u64)>,
}

impl Times {
    fn note(&mut self, sent: &Sent) {
        self.latest = self.latest.max(Some((sent.at, sent.delivered_before)));
    }
}

impl Sender {
    /// Takes an acknowledgement, and sends what it lets be sent again.
    pub(crate) fn acknowledge(&mut self, now: Time, ack: &Acknowledgement<'_>) {
        let prior = self.unacknowledged;
        if ack.position > self.next || ack.position + self.greatest_receive_window.max(1) < prior {
            return;
        }
        if ack.echo.is_some() {
            self.latest_echo = ack.echo;
        }
        let mut news = News { has_data: ack.has_data, ..News::default() };
        let mut times = Times::default();
        let delivered = self.counts.delivered;
        let losses = self.board.losses();
        if ack.position < prior {
            // An old acknowledgement may still bring news of what arrived out of order.
            if !ack.sack.is_empty() {
                self.selective(now, ack, prior, &mut news, &mut times);
                let next = self.alert(now, prior, 0, &mut news);
                self.recover(now, next);
            }
            return;
        }
        news.advanced = ack.position > prior;
        if news.advanced {
            self.consecutive_timeouts = 0;
        }
        let highest = self.board.highest_sacked(prior);
        self.update_window(now, ack, &mut news);
        self.unacknowledged = ack.position;
        if !ack.sack.is_empty() {
            self.selective(now, ack, prior, &mut news, &mut times);
        }
        news.congestion_echo = self.ecn && ack.congestion_echo;
        self.persist_backoff = 0;
        if self.board.is_empty() {
            if news.duplicate_reported {
                self.alert(now, prior, 0, &mut news);
            }
            self.check_persist(now);
            self.end_probe(now, ack.position, &news);
            return;
        }
        self.clean(now, prior, highest, &mut news, &mut times);
        self.rack_adapt(times.latest.map(|(_, before)| before));
        self.end_probe(now, ack.position, &news);
        let dubious = !news.is_no_duplicate()
            || news.sacked
            || news.congestion_echo
            || news.duplicate_reported
            || self.state != CongestionState::Open;
        let mut what = Next::Nothing;
        if dubious {
            let duplicate = !news.advanced && !news.is_no_duplicate() && !news.duplicate_reported;
            what = self.alert(now, prior, u64::from(duplicate), &mut news);
        }
        if news.sets_timer {
            self.set_timer(now);
        }
        self.control(now, self.counts.delivered - delivered, self.board.losses() - losses, &news);
        self.recover(now, what);
    }

    fn update_window(&mut self, now: Time, ack: &Acknowledgement<'_>, news: &mut News) {
        let is_news = ack.position > self.unacknowledged
            || ack.from > self.window_update_from
            || (ack.from == self.window_update_from && ack.window > self.receive_window);
        if is_news {
            news.window_update = true;
            self.window_update_from = ack.from;
            if self.receive_window != ack.window {
                self.receive_window = ack.window;
                self.greatest_receive_window = self.greatest_receive_window.max(ack.window);
                if self.next < self.end() {
                    self.restart_after_idle(now);
                }
            }
        }
    }

    /// Takes the blocks of SACK (RFC 2018), the first of which may report a duplicate (RFC 2883).
    fn selective(&mut self, now: Time, ack: &Acknowledgement<'_>, prior: Position, news: &mut News, times: &mut Times) {
        let (first, others) = (ack.sack[0], &ack.sack[1..]);
        let reports =
            first.0 < ack.position || others.first().is_some_and(|next| first.0 >= next.0 && first.1 <= next.1);
        let duplicate = reports && self.duplicate(first, prior, news);
        if self.board.is_empty() {
            return;
        }
        let mut lowest = self.next;
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        for (place, (begin, end)) in ack.sack.iter().copied().enumerate() {
            let valid = begin < end && end <= self.next && end > prior && begin > self.unacknowledged;
            if valid && !(place == 0 && duplicate) {
                blocks[count] = (begin, end);
                count += 1;
            }
        }
        if duplicate && first.1 > self.unacknowledged {
            self.duplicate_above(first, &mut lowest);
        }
        blocks[..count].sort_unstable();
        for (begin, end) in blocks[..count].iter().copied() {
            // What the last acknowledgement said is not looked at again.
            let mut from = begin;
            for (known_begin, known_end) in self.recent_sacks {
                if known_end <= from || known_begin >= end {
                    continue;
                }
                if known_begin > from {
                    self.sack_range(now, from, known_begin, &mut lowest, news, times);
                }
                from = from.max(known_end);
            }
            if from < end {
                self.sack_range(now, from, end, &mut lowest, news, times);
            }
        }
        self.recent_sacks = [(0, 0); 4];
        self.recent_sacks[4 - count..].copy_from_slice(&blocks[..count]);
        if self.state != CongestionState::Loss || self.undo_from.is_some() {
            self.check_reordering(lowest);
        }
    }

    fn sack_range(
        &mut self,
        now: Time,
        begin: Position,
        end: Position,
        lowest: &mut Position,
        news: &mut News,
        times: &mut Times,
    ) {
        // What a known block touches may begin within a segment, never a segment within it: blocks are whole segments.
        let mut board = std::mem::take(&mut self.board);
        let (high, unacknowledged) = (self.high, self.unacknowledged);
        board.within(begin, end, |board, at| {
            let highest = board.highest_sacked(unacknowledged);
            let Some(before) = board.sack(at) else { return };
            self.rack_delivered(now, before.at, before.end, before.ever_retransmitted);
            times.note(&before);
            news.sacked = true;
            self.counts.delivered += 1;
            if !before.ever_retransmitted {
                if before.begin < highest {
                    *lowest = (*lowest).min(before.begin);
                }
                news.original_delivered |= before.end <= high;
                times.first_sacked.get_or_insert(before.at);
                times.last_sacked = Some(before.at);
            }
        });
        self.board = board;
    }

    /// Takes the report of a duplicate; false if it is not believed.
    fn duplicate(&mut self, block: (Position, Position), prior: Position, news: &mut News) -> bool {
        let (begin, end) = block;
        if begin >= end || end - begin > self.greatest_receive_window.max(1) {
            return false;
        }
        let full = self.full_bytes();
        let segments = (end - begin).div_ceil(full).max(1);
        if segments == 1 && self.probe_end == Some(end) {
            news.duplicate_of_probe = true;
        }
        self.duplicates_reported += segments;
        if self.duplicates_reported > self.counts.retransmissions {
            return false;
        }
        if self.reordering_seen && !news.duplicate_of_probe {
            self.rack.duplicate_seen = true;
        }
        news.duplicate_reported = true;
        self.counts.delivered += segments;
        if self.undo_from.is_some_and(|from| end > from) && end <= prior {
            self.undo_retransmissions = self.undo_retransmissions.map(|left| left.saturating_sub(segments));
        }
        true
    }

    /// Takes the report of a duplicate of what is not acknowledged yet.
    fn duplicate_above(&mut self, block: (Position, Position), lowest: &mut Position) {
        let from = self.undo_from;
        let mut left = self.undo_retransmissions;
        self.board.within(block.0, block.1, |board, at| {
            let Some(sent) = board.get(at).copied() else { return };
            if sent.ever_retransmitted {
                if from.is_some_and(|from| sent.end > from) {
                    left = left.map(|left| left.saturating_sub(1));
                }
                if sent.sacked {
                    *lowest = (*lowest).min(at);
                }
            }
            board.duplicate(at);
        });
        self.undo_retransmissions = left;
    }

    /// It is reordering if something higher was delivered before something lower that was sent once.
    pub(super) fn check_reordering(&mut self, lowest: Position) {
        let highest = self.board.highest_sacked(self.unacknowledged);
        if lowest >= highest {
            return;
        }
        let full = self.full_bytes();
        if highest - lowest > self.reordering * full {
            self.reordering = (highest - lowest).div_ceil(full).min(MOST_REORDERING);
        }
        self.reordering_seen = true;
    }

    /// Removes what is acknowledged, and measures round-trip times.
    fn clean(&mut self, now: Time, prior: Position, highest: Position, news: &mut News, times: &mut Times) {
        let prior_sacked = self.board.sacked();
        let mut lowest = self.next;
        let mut segments = 0_u64;
        while let Some(sent) = self.board.pop_until(self.unacknowledged) {
            segments += 1;
            news.acknowledged = true;
            if sent.ever_retransmitted {
                news.retransmission_acknowledged = true;
            } else if !sent.sacked {
                times.first.get_or_insert(sent.at);
                times.last = Some(sent.at);
                lowest = lowest.min(sent.begin);
                news.original_delivered |= sent.end <= self.high;
            }
            if !sent.sacked {
                self.counts.delivered += 1;
                let spurious = sent.ever_retransmitted && self.echo_before(self.stamp(sent.at));
                if !spurious {
                    self.rack_delivered(now, sent.at, sent.end, sent.ever_retransmitted);
                }
                times.note(&sent);
            }
        }
        news.reneged = self.board.first().is_some_and(|first| first.sacked);
        let since = |at: Time| microseconds(now) - microseconds(at);
        let mut measured = None;
        let mut latest = None;
        if !news.retransmission_acknowledged
            && let (Some(first), Some(last)) = (times.first, times.last)
        {
            (measured, latest) = (Some(since(first)), Some(since(last)));
            news.maybe_delayed = segments == 1
                && prior_sacked == 0
                && self.unacknowledged - prior < self.full_bytes()
                && times.latest.is_some_and(|(_, before)| before + 1 == self.counts.delivered)
                && !news.sacked
                && !news.congestion_echo
                && !news.duplicate_reported;
        }
        let sacked_round_trip = times.first_sacked.map(since);
        if let Some(last) = times.last_sacked {
            latest = Some(since(last));
        }
        let by_time = self.measure(now, news, measured.or(sacked_round_trip), &mut latest);
        if news.acknowledged {
            news.sets_timer = true;
            if lowest < highest {
                self.check_reordering(lowest);
            }
        } else if by_time
            && let (Some(round_trip), Some(first)) = (sacked_round_trip, self.board.first())
            && round_trip > since(first.at)
        {
            news.sets_timer = true;
        }
        if let Some(round_trip_us) = latest {
            let sample = Sample {
                now,
                round_trip_us,
                acknowledged: self.unacknowledged,
                sent: self.next,
                // It takes two divisions, and only slow start asks for it.
                burst_us: if self.window.in_slow_start() { self.burst_us() } else { 0 },
            };
            self.window.sample(&sample);
        }
    }

    /// Measures by the times of sending, or else by the echo of the timestamp (RFC 7323, section 4.1).
    fn measure(&mut self, now: Time, news: &News, round_trip: Option<u64>, latest: &mut Option<u64>) -> bool {
        let mut round_trip = round_trip;
        if round_trip.is_none()
            && news.acknowledged
            && let Some(echo) = self.latest_echo
        {
            let milliseconds = self.stamp(now).wrapping_sub(echo);
            if milliseconds < u32::MAX / 2_000 {
                round_trip = Some(u64::from(milliseconds.max(1)) * 1_000);
                *latest = round_trip;
            }
        }
        let Some(round_trip) = round_trip else { return false };
        if let Some(last) = *latest
            && !(news.maybe_delayed && self.rtt.minimum_us().is_some_and(|least| last > least))
        {
            self.rtt.measure_minimum(now, last);
        }
        self.rtt.measure(round_trip, self.unacknowledged, self.next);
        true
    }

    /// Raises or lowers the window.
    fn control(&mut self, now: Time, delivered: u64, losses: u64, news: &News) {
        if self.in_reduction() {
            self.reduce(delivered, losses, news.advanced);
        } else {
            let raises =
                if self.reordering > USUAL_REORDERING { news.acknowledged || news.sacked } else { news.acknowledged };
            if raises {
                let limited = self.is_limited_by_window();
                self.window.raise(now, delivered, limited);
                self.window_used_ms = crate::clock::milliseconds(now);
            }
        }
    }
}
