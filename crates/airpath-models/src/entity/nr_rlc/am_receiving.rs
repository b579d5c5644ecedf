// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Acknowledged mode, the receiving end: segments put together, and STATUS PDUs about what is missing.
//!
//! Source: 3GPP TS 38.322, clauses 5.2.3.2 and 5.3.4, with its variables RX_Next, RX_Next_Status_Trigger,
//! RX_Highest_Status and RX_Next_Highest. A STATUS PDU that does not fit into a grant reports on the first packets
//! and segments.

use std::collections::BTreeSet;

use airpath_core::{Span, Time};

use super::block::{Nack, Status};
use super::format::{Format, from_base};
use super::partial::{Added, Partials, Segment};

/// Fate of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmTaken {
    /// Its packet is complete.
    Complete,
    /// It waits for others, or has come before.
    Kept,
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct AmReceiver {
    format: Format,
    t_reassembly: Span,
    t_status_prohibit: Span,
    flow: u16,
    /// RX_Next: the first packet that is not complete.
    next: u64,
    /// RX_Next_Status_Trigger: the packet behind the one that started t-Reassembly.
    trigger: u64,
    /// RX_Highest_Status: the highest number that ACK_SN can have.
    highest_status: u64,
    /// RX_Next_Highest: the packet behind the highest of which a segment has come.
    highest: u64,
    expires: Time,
    partials: Partials,
    /// Numbers of polls that are answered once RX_Highest_Status is beyond them.
    polls: BTreeSet<u64>,
    /// True if a STATUS PDU is to be sent.
    reports: bool,
    /// Time at which t-StatusProhibit expires.
    prohibited: Time,
}

impl AmReceiver {
    /// An end at which nothing has come.
    pub fn new(format: Format, t_reassembly: Span, t_status_prohibit: Span) -> AmReceiver {
        AmReceiver {
            format,
            t_reassembly,
            t_status_prohibit,
            flow: 0,
            next: 0,
            trigger: 0,
            highest_status: 0,
            highest: 0,
            expires: Time::NEVER,
            partials: Partials::default(),
            polls: BTreeSet::new(),
            reports: false,
            prohibited: Time::ZERO,
        }
    }

    /// Takes a segment of `flow` with the number `sn` at `at`, which `polls` or not.
    pub fn take(&mut self, at: Time, (flow, sn): (u16, u64), polls: bool, segment: &Segment) -> AmTaken {
        if flow != self.flow {
            // The sending end has begun anew; what is older than that comes too late.
            if flow.wrapping_sub(self.flow) > u16::MAX / 2 {
                return AmTaken::Kept;
            }
            *self = AmReceiver { flow, ..AmReceiver::new(self.format, self.t_reassembly, self.t_status_prohibit) };
        }
        let sn = from_base(self.next, sn, self.format.modulus());
        let behind = self.next + self.format.window();
        if sn >= behind {
            self.reports |= polls;
            return AmTaken::Kept;
        }
        let added = self.partials.add(sn, segment);
        if added == Added::Known {
            self.reports |= polls;
            return AmTaken::Kept;
        }
        self.highest = self.highest.max(sn + 1);
        if added == Added::Complete {
            if sn == self.highest_status {
                self.highest_status = self.partials.first_incomplete(sn);
            }
            if sn == self.next {
                self.next = self.partials.first_incomplete(sn);
                self.partials.forget(self.next, &mut Vec::new());
            }
        }
        let is_without_gap = self.trigger == self.next + 1 && !self.partials.has_gap(self.next);
        let is_outside = self.trigger < self.next || self.trigger > self.next + self.format.window();
        if self.trigger == self.next || is_without_gap || is_outside {
            self.expires = Time::NEVER;
        }
        self.start(at, self.next);
        if polls {
            self.polls.insert(sn);
        }
        self.answer_polls();
        if added == Added::Complete { AmTaken::Complete } else { AmTaken::Kept }
    }

    /// Starts t-Reassembly if it does not run and something from `first` on is missing.
    fn start(&mut self, at: Time, first: u64) {
        let is_missing = self.highest > first + 1 || self.highest == first + 1 && self.partials.has_gap(first);
        if self.expires == Time::NEVER && is_missing {
            self.expires = at + self.t_reassembly;
            self.trigger = self.highest;
        }
    }

    fn answer_polls(&mut self) {
        let behind = self.next + self.format.window();
        while let Some(first) = self.polls.first()
            && (*first < self.highest_status || *first >= behind)
        {
            self.polls.pop_first();
            self.reports = true;
        }
    }

    /// Time at which t-Reassembly expires; `Time::NEVER` if it does not run.
    pub fn expires(&self) -> Time {
        self.expires
    }

    /// Reports at `at` what t-Reassembly has waited for, if it has expired.
    pub fn expire(&mut self, at: Time) {
        if self.expires > at {
            return;
        }
        self.expires = Time::NEVER;
        self.highest_status = self.partials.first_incomplete(self.trigger);
        self.start(at, self.highest_status);
        self.reports = true;
        self.answer_polls();
    }

    /// Time from which a STATUS PDU can be sent; `Time::NEVER` if there is none.
    pub fn reports_at(&self) -> Time {
        if self.reports { self.prohibited } else { Time::NEVER }
    }

    /// The STATUS PDU for `at`, if there is one and it fits into `room` octets, and its octets.
    pub fn status(&mut self, at: Time, room: u32) -> Option<(Status, u32)> {
        if self.reports_at() > at || room < Format::STATUS_OCTETS {
            return None;
        }
        self.reports = false;
        self.prohibited = at + self.t_status_prohibit;
        let mut octets = Format::STATUS_OCTETS;
        let mut nacks: Vec<Nack> = Vec::new();
        let mut ack = self.highest_status;
        for sn in self.next..self.highest_status {
            if self.partials.is_complete(sn) {
                continue;
            }
            let number = sn % self.format.modulus();
            let missing = self.partials.missing(sn);
            let added = match (&missing, nacks.last_mut()) {
                // A further packet of a range takes nothing, the second one the field for their number.
                (None, Some(last)) if self.continues(last, number) => {
                    let added = u32::from(last.packets == 1);
                    if octets + added <= room {
                        last.packets += 1;
                    }
                    added
                }
                (None, _) => {
                    let added = self.format.nack_octets(false, false);
                    if octets + added <= room {
                        nacks.push(Nack { sn: number, packets: 1, segment: None });
                    }
                    added
                }
                (Some(segments), _) => {
                    let each = self.format.nack_octets(true, false);
                    let fit = ((room - octets) / each).min(segments.len() as u32);
                    let nack = |segment: &(u32, u32)| Nack { sn: number, packets: 1, segment: Some(*segment) };
                    nacks.extend(segments.iter().take(fit as usize).map(nack));
                    if fit > 0 && (fit as usize) < segments.len() {
                        // The packet is reported in part, and not acknowledged; the next report has the rest.
                        octets += fit * each;
                        ack = sn + 1;
                        break;
                    }
                    each * segments.len() as u32
                }
            };
            if octets + added > room {
                ack = sn;
                break;
            }
            octets += added;
        }
        Some((Status { flow: self.flow, ack_sn: ack % self.format.modulus(), nacks }, octets))
    }

    /// True if the packet `number`, which is missing as a whole, continues the range that is `last`.
    fn continues(&self, last: &Nack, number: u64) -> bool {
        let behind = (last.sn + u64::from(last.packets)) % self.format.modulus();
        last.segment.is_none() && last.packets < u8::MAX && behind == number
    }

    /// Bits of the STATUS PDU that is to be sent, about.
    pub fn status_bits(&self) -> u64 {
        if self.reports { u64::from(Format::STATUS_OCTETS + 2) * 8 } else { 0 }
    }

    /// RX_Next.
    pub fn variable(&self) -> u64 {
        self.next % self.format.modulus()
    }
}
