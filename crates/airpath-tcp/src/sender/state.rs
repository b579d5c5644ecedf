// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The states of congestion, and the ways between them: recovery by SACK (RFC 6675), proportional rate reduction
//! (RFC 6937), F-RTO (RFC 5682), and reductions taken back (RFC 3522, RFC 3708).

use airpath_core::Time;

use super::news::{News, Next};
use super::{CongestionState, Sender};
use crate::clock::milliseconds;
use crate::congestion::NO_THRESHOLD;
use crate::sequence::Position;

impl Sender {
    /// Takes an acknowledgement that is not an ordinary one; `duplicates` is 1 for a duplicate one.
    pub(super) fn alert(&mut self, now: Time, prior: Position, duplicates: u64, news: &mut News) -> Next {
        if news.congestion_echo {
            self.prior_threshold = 0;
        }
        if news.reneged && news.advanced {
            // The receiver seems to have dropped what it had. It gets a little time to say otherwise.
            let wait = (self.rtt.smoothed_us().unwrap_or(0) / 2).div_ceil(1_000).max(10);
            self.arm(super::Timer::Retransmission, now, wait);
            news.sets_timer = false;
            return Next::Nothing;
        }
        if self.state == CongestionState::Open {
            self.first_retransmission = None;
        } else if self.unacknowledged >= self.high {
            match self.state {
                // It ends when something beyond it is acknowledged, so that CWR has arrived.
                CongestionState::Reduction if self.unacknowledged != self.high => {
                    self.end_reduction(now);
                    self.state = CongestionState::Open;
                }
                CongestionState::Recovery => {
                    self.end_recovery(now);
                    self.end_reduction_unless_undone(now);
                }
                _ => {}
            }
        }
        match self.state {
            CongestionState::Recovery => {
                if news.advanced && self.undo_partly(now, prior) {
                    return Next::Nothing;
                }
                if self.undo_by_duplicates(now) {
                    self.keep_open(now, news);
                }
                self.look_for_losses(now, news);
                if self.state != CongestionState::Recovery {
                    if self.board.lost() == 0 {
                        return Next::Nothing;
                    }
                    self.enter_recovery(news.congestion_echo);
                }
                return Next::Lost;
            }
            CongestionState::Loss => {
                let next = self.process_loss(now, duplicates, news);
                self.look_for_losses(now, news);
                if self.state != CongestionState::Open && !news.lost_retransmission {
                    return next;
                }
            }
            _ => {}
        }
        if self.state <= CongestionState::Disorder {
            self.undo_by_duplicates(now);
        }
        self.look_for_losses(now, news);
        if self.board.lost() == 0 {
            self.keep_open(now, news);
            return Next::Nothing;
        }
        self.enter_recovery(news.congestion_echo);
        Next::Lost
    }

    fn look_for_losses(&mut self, now: Time, news: &mut News) {
        let before = self.board.retransmitted();
        if self.rack_look(now) {
            news.sets_timer = false;
        }
        news.lost_retransmission |= before > self.board.retransmitted();
    }

    fn keep_open(&mut self, now: Time, news: &News) {
        if !self.board.any_retransmission() {
            self.first_retransmission = None;
        }
        if news.congestion_echo {
            self.enter_reduction(now);
        }
        if self.state != CongestionState::Reduction {
            self.try_open();
        }
    }

    fn try_open(&mut self) {
        let wrong = self.board.left() > 0 || self.board.any_retransmission();
        let state = if wrong { CongestionState::Disorder } else { CongestionState::Open };
        if self.state != state {
            self.state = state;
            self.high = self.next;
        }
    }

    pub(super) fn enter_recovery(&mut self, congestion_echo: bool) {
        self.counts.recoveries += 1;
        if !self.board.any_retransmission() {
            self.first_retransmission = None;
        }
        self.prior_threshold = 0;
        self.begin_undo();
        if !self.in_reduction() {
            if !congestion_echo {
                self.prior_threshold = self.window.current_threshold(false);
            }
            self.begin_reduction();
        }
        self.state = CongestionState::Recovery;
    }

    /// The window falls without anything to send again (RFC 3168, section 6.1.2).
    fn enter_reduction(&mut self, _now: Time) {
        self.prior_threshold = 0;
        if self.state < CongestionState::Reduction {
            self.undo_from = None;
            self.begin_reduction();
            self.state = CongestionState::Reduction;
        }
    }

    fn begin_undo(&mut self) {
        self.undo_from = Some(self.unacknowledged);
        let probe = u64::from(self.probe_end.is_some() && self.probe_retransmits);
        // Nothing sent again yet is not the same as everything sent again being vain.
        self.undo_retransmissions = Some(self.board.retransmitted() + probe).filter(|count| *count > 0);
    }

    fn begin_reduction(&mut self) {
        self.high = self.next;
        self.probe_end = None;
        self.window.clear_credit();
        self.prior_window = self.window.segments();
        self.reduction_delivered = 0;
        self.reduction_sent = 0;
        self.window.threshold = self.window.threshold_after_loss();
        self.announce_reduction |= self.ecn;
    }

    /// RFC 6937, section 3.1, with the slow start reduction bound where nothing more was lost.
    pub(super) fn reduce(&mut self, delivered: u64, losses: u64, advanced: bool) {
        if delivered == 0 || self.prior_window == 0 || self.window.is_unlimited() {
            return;
        }
        self.reduction_delivered += delivered;
        let in_flight = self.board.in_flight();
        let threshold = self.window.threshold;
        let sent = self.reduction_sent;
        let mut count = if in_flight > threshold {
            (threshold * self.reduction_delivered).div_ceil(self.prior_window).saturating_sub(sent)
        } else {
            let mut count = self.reduction_delivered.saturating_sub(sent).max(delivered);
            count += u64::from(advanced && losses == 0);
            count.min(threshold - in_flight)
        };
        // The fast retransmission goes out whatever the rest says.
        count = count.max(u64::from(sent == 0));
        self.window.set(in_flight + count);
    }

    fn end_reduction(&mut self, now: Time) {
        if self.window.threshold < NO_THRESHOLD {
            self.window.set(self.window.threshold);
            self.window_used_ms = milliseconds(now);
        }
    }

    fn end_reduction_unless_undone(&mut self, now: Time) {
        if self.undo_from.is_some() {
            self.end_reduction(now);
        }
    }

    /// True if nothing that was sent again was needed: duplicates were reported for all of it (RFC 3708), or the echo
    /// is older than the first of it (RFC 3522).
    fn may_undo(&self) -> bool {
        self.undo_from.is_some() && (self.undo_retransmissions == Some(0) || self.was_delayed())
    }

    fn was_delayed(&self) -> bool {
        self.first_retransmission.is_none_or(|stamp| self.echo_before(stamp))
    }

    fn undo(&mut self, now: Time, unmark: bool) {
        self.counts.undone += 1;
        if unmark {
            self.board.lose_nothing();
        }
        if self.prior_threshold > 0 {
            self.window.set(self.window.segments().max(self.prior_window));
            if self.prior_threshold > self.window.threshold {
                self.window.threshold = self.prior_threshold;
                self.announce_reduction = false;
            }
        }
        self.window_used_ms = milliseconds(now);
        self.undo_from = None;
        self.rack.advanced = true;
    }

    fn end_recovery(&mut self, now: Time) {
        if self.may_undo() {
            self.undo(now, false);
        } else {
            self.rack.recovered();
        }
        self.state = CongestionState::Open;
    }

    fn undo_by_duplicates(&mut self, now: Time) -> bool {
        let vain = self.undo_from.is_some() && self.undo_retransmissions == Some(0);
        if vain {
            self.rack.was_vain();
            self.undo(now, false);
        }
        vain
    }

    /// A hole was filled by what had been delayed; whether nothing more is to be lost now.
    fn undo_partly(&mut self, now: Time, prior: Position) -> bool {
        if self.undo_from.is_none() || !self.was_delayed() {
            return false;
        }
        self.check_reordering(prior);
        if self.board.retransmitted() > 0 {
            return true;
        }
        if !self.board.any_retransmission() {
            self.first_retransmission = None;
        }
        self.undo(now, true);
        self.try_open();
        false
    }

    fn undo_loss(&mut self, now: Time, spurious: bool) -> bool {
        if !spurious && !self.may_undo() {
            return false;
        }
        self.undo(now, true);
        self.counts.spurious_timeouts += u64::from(spurious);
        self.consecutive_timeouts = 0;
        self.state = CongestionState::Open;
        true
    }

    /// An acknowledgement after a timeout: RFC 5682, section 3.1.
    fn process_loss(&mut self, now: Time, duplicates: u64, news: &News) -> Next {
        let recovered = self.unacknowledged >= self.high;
        if news.advanced && self.undo_loss(now, false) {
            return Next::Nothing;
        }
        if self.forward_rto {
            // Step 3b: what was sent once is delivered, so not all was lost.
            if news.original_delivered && self.undo_loss(now, true) {
                return Next::Nothing;
            }
            if self.next > self.high {
                if news.sacked || duplicates > 0 {
                    self.forward_rto = false;
                }
            } else if news.advanced && !recovered {
                self.high = self.next;
                // Step 2b.
                if self.next < self.end() && self.window_end() > self.next {
                    return Next::New;
                }
                self.forward_rto = false;
            }
        }
        if recovered {
            self.end_recovery(now);
            return Next::Nothing;
        }
        Next::Lost
    }

    /// Takes what is under way for lost after a timeout.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let new_recovery = self.state < CongestionState::Recovery;
        let mut board = std::mem::take(&mut self.board);
        board.lose_after_timeout(|sent| self.overdue_in_us(now, sent.at, 0) == 0);
        self.board = board;
        if self.state <= CongestionState::Disorder
            || self.unacknowledged >= self.high
            || (self.state == CongestionState::Loss && self.consecutive_timeouts == 0)
        {
            self.prior_threshold = self.window.current_threshold(self.in_reduction());
            self.prior_window = self.window.segments();
            self.window.threshold = self.window.threshold_after_loss();
            self.begin_undo();
        }
        self.window.set(self.board.in_flight() + 1);
        self.window.clear_credit();
        self.window_used_ms = milliseconds(now);
        if self.state <= CongestionState::Disorder && self.board.sacked() >= super::USUAL_REORDERING {
            self.reordering = self.reordering.min(super::USUAL_REORDERING);
        }
        self.state = CongestionState::Loss;
        self.window.timeout(now, self.next);
        self.high = self.next;
        self.probe_end = None;
        self.announce_reduction |= self.ecn;
        self.forward_rto = new_recovery || self.consecutive_timeouts > 0;
    }

    /// The end of an episode of a tail loss probe (RFC 8985, section 7.4).
    pub(super) fn end_probe(&mut self, now: Time, position: Position, news: &News) {
        let Some(end) = self.probe_end.filter(|end| position >= *end) else { return };
        if !self.probe_retransmits || news.duplicate_of_probe {
            self.probe_end = None;
        } else if position > end {
            // The probe filled a hole: there was a loss.
            self.begin_reduction();
            self.state = CongestionState::Reduction;
            self.end_reduction(now);
            self.try_open();
        } else if !news.advanced && !news.is_no_duplicate() && !news.sacked {
            self.probe_end = None;
        }
    }
}
