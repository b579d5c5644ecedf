// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Unacknowledged mode: segments of packets, put together again within a window and a time.
//!
//! Source: 3GPP TS 38.322, clause 5.2.2, with its variables TX_Next, RX_Next_Reassembly, RX_Timer_Trigger and
//! RX_Next_Highest. A packet that is sent as a whole has no sequence number and passes at once. Numbers count on
//! beyond the modulus here, and begin at it, so that what is below the window needs no negative number.

use airpath_core::{Span, Time};

use super::block::{Builder, DataHeader};
use super::format::{Format, from_base};
use super::partial::{Added, Partials, Segment};
use crate::entity::SduKey;
use crate::entity::stream::StreamSender;

/// The sending end.
#[derive(Clone, Debug)]
pub struct UmSender {
    format: Format,
    /// TX_Next.
    next: u64,
}

impl UmSender {
    /// An end that has sent nothing.
    pub fn new(format: Format) -> UmSender {
        UmSender { format, next: 0 }
    }

    /// Fills `block` from `stream`, whose next packet has the number `packets`.
    pub fn fill(&mut self, stream: &mut StreamSender, packets: &mut u64, block: &mut Builder) {
        while let Some((_, taken)) = stream.next()
            && let Some(rest) = stream.next_rest()
        {
            let (offset, rest) = (taken / 8, rest / 8);
            let is_whole = offset == 0 && block.room() >= rest + self.format.header_octets(true, 0);
            let header_octets = self.format.header_octets(is_whole, offset);
            let octets = block.room().saturating_sub(header_octets).min(rest);
            if octets == 0 {
                break;
            }
            let Some(piece) = stream.cut_piece(octets * 8) else { break };
            let sn = (!is_whole).then(|| self.next % self.format.modulus());
            block.data(DataHeader { sn, offset, poll: false, flow: 0, count: *packets }, header_octets, piece);
            if piece.last {
                *packets += 1;
                self.next += u64::from(!is_whole);
            }
        }
    }

    /// TX_Next.
    pub fn variable(&self) -> u64 {
        self.next % self.format.modulus()
    }
}

/// Fate of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UmTaken {
    /// Its packet is complete.
    Complete,
    /// It waits for others.
    Kept,
    /// It is discarded: its packet has been given up.
    Discarded,
    /// It has the number of another packet, which is discarded.
    Confused(SduKey),
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct UmReceiver {
    format: Format,
    t_reassembly: Span,
    /// RX_Next_Reassembly: the first packet that is still considered for reassembly.
    reassembly: u64,
    /// RX_Next_Highest: the packet behind the highest of which a segment has come.
    highest: u64,
    /// RX_Timer_Trigger: the packet behind the one that started t-Reassembly.
    trigger: u64,
    expires: Time,
    partials: Partials,
}

impl UmReceiver {
    /// An end at which nothing has come.
    pub fn new(format: Format, t_reassembly: Span) -> UmReceiver {
        let first = format.modulus();
        UmReceiver {
            format,
            t_reassembly,
            reassembly: first,
            highest: first,
            trigger: first,
            expires: Time::NEVER,
            partials: Partials::default(),
        }
    }

    /// Takes a segment with the number `sn` at `at`. Packets that are given up go to `discarded`.
    pub fn take(&mut self, at: Time, sn: u64, segment: &Segment, discarded: &mut Vec<SduKey>) -> UmTaken {
        let lowest = self.lowest();
        let sn = from_base(lowest, sn, self.format.modulus());
        if sn < self.reassembly {
            return UmTaken::Discarded;
        }
        let taken = match self.partials.add(sn, segment) {
            Added::Complete => {
                if sn == self.reassembly {
                    self.reassembly = self.partials.first_incomplete(sn);
                }
                UmTaken::Complete
            }
            // No segment is sent twice: the number was that of another packet.
            Added::Known => return UmTaken::Discarded,
            Added::Kept => UmTaken::Kept,
            Added::Confused(other) => UmTaken::Confused(other),
        };
        if sn >= self.highest {
            self.highest = sn + 1;
            let lowest = self.lowest();
            if self.reassembly < lowest {
                self.reassembly = self.partials.first_incomplete(lowest);
            }
            self.partials.forget(lowest, discarded);
        }
        let is_outside = self.trigger < self.lowest() && self.trigger != self.highest;
        let is_without_gap = self.highest == self.reassembly + 1 && !self.partials.has_gap(self.reassembly);
        if self.trigger <= self.reassembly || is_outside || is_without_gap {
            self.expires = Time::NEVER;
        }
        self.start(at);
        taken
    }

    /// The lower end of the reassembly window.
    fn lowest(&self) -> u64 {
        self.highest - self.format.window()
    }

    /// Starts t-Reassembly if it does not run and something is missing.
    fn start(&mut self, at: Time) {
        let is_missing = self.highest > self.reassembly + 1
            || self.highest == self.reassembly + 1 && self.partials.has_gap(self.reassembly);
        if self.expires == Time::NEVER && is_missing {
            self.expires = at + self.t_reassembly;
            self.trigger = self.highest;
        }
    }

    /// Time at which t-Reassembly expires; `Time::NEVER` if it does not run.
    pub fn expires(&self) -> Time {
        self.expires
    }

    /// Gives up at `at` what t-Reassembly has waited for, if it has expired; those packets go to `discarded`.
    pub fn expire(&mut self, at: Time, discarded: &mut Vec<SduKey>) {
        if self.expires > at {
            return;
        }
        self.expires = Time::NEVER;
        self.reassembly = self.partials.first_incomplete(self.trigger);
        self.partials.forget(self.reassembly, discarded);
        self.start(at);
    }

    /// RX_Next_Reassembly.
    pub fn variable(&self) -> u64 {
        self.reassembly % self.format.modulus()
    }
}
