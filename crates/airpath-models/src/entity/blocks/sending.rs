// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sending end: one fragment of a packet at a time, until it is acknowledged.

use airpath_core::{Bits, Cause, Span, Time};
use smallvec::smallvec;

use super::frame::{BLOCK_BYTES, Shape};
use super::header::{Header, Report};
use super::policy::Adaptation;
use crate::air::{Backlog, Frame, Piece};
use crate::entity::Sdus;
use crate::entity::persistence::{drop_expired, has_expired};
use crate::entity::stream::StreamSender;
use crate::stage::StageCx;

/// Limits of the repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// Number of times that a fragment is sent again; without limit if none.
    pub retransmissions: Option<u16>,
    /// Age from which a packet is not sent, or sent again.
    pub expiry: Option<Span>,
}

/// A try that is under way, or whose answer is.
#[derive(Clone, Copy, Debug)]
struct Try {
    /// Bits of the packet's stream in it.
    bits: u32,
    is_last: bool,
}

/// The packet that is being sent.
#[derive(Clone, Copy, Debug)]
struct Current {
    packet: Piece,
    /// Bits of its stream that are acknowledged.
    settled: u32,
    /// Number of times that the present fragment has been sent.
    tries: u16,
    under_way: Option<Try>,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    options: SenderOptions,
    adaptation: Adaptation,
    stream: StreamSender,
    current: Option<Current>,
    /// Number of the present fragment.
    number: u64,
}

/// A frame to send.
#[derive(Debug)]
pub struct Outgoing {
    /// The frame.
    pub frame: Frame,
    /// Its shape.
    pub shape: Shape,
    /// Number of times that its fragment has been sent before.
    pub repeated: u16,
}

impl Sender {
    /// An end without packets, whose send buffer is `stream`.
    pub fn new(options: SenderOptions, adaptation: Adaptation, stream: StreamSender) -> Sender {
        Sender { options, adaptation, stream, current: None, number: 0 }
    }

    /// The send buffer.
    pub fn stream(&self) -> &StreamSender {
        &self.stream
    }

    /// The send buffer.
    pub fn stream_mut(&mut self) -> &mut StreamSender {
        &mut self.stream
    }

    /// The choice of blocks and redundancy.
    pub fn adaptation(&self) -> &Adaptation {
        &self.adaptation
    }

    /// Changes the limits of the repetition.
    pub fn configure(&mut self, options: SenderOptions) {
        self.options = options;
    }

    /// Begins another choice of blocks and redundancy.
    pub fn adapt(&mut self, adaptation: Adaptation) {
        self.adaptation = adaptation;
    }

    /// Number of frames that are sent and not answered.
    pub fn outstanding(&self) -> usize {
        self.current.iter().filter(|current| current.under_way.is_some()).count()
    }

    /// True if there is something to send.
    pub fn has_more(&self) -> bool {
        match &self.current {
            Some(current) => current.under_way.is_none(),
            None => self.stream.has_more(),
        }
    }

    /// Bits that could be sent now, and the arrival of the oldest packet in them.
    pub fn backlog(&self, sdus: &Sdus) -> Backlog {
        if !self.has_more() {
            return Backlog { bits: 0, since: Time::NEVER };
        }
        let rest = self.current.map_or(0, |current| u64::from(current.packet.link_bits - current.settled));
        let oldest = self.current.map(|current| current.packet.sdu).or(self.stream.next().map(|(sdu, _)| sdu));
        let since = oldest.and_then(|sdu| sdus.get(sdu)).map_or(Time::NEVER, |sdu| sdu.pdu.arrived);
        Backlog { bits: rest + self.stream.uncut(), since }
    }

    /// The frame for a grant of `most` bits at `at`: the bytes of the oldest packet that are next.
    pub fn next(
        &mut self,
        most: Option<u64>,
        at: Time,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
    ) -> Option<Outgoing> {
        self.expire(at, sdus, stage);
        if !self.has_more() {
            return None;
        }
        let chosen = self.adaptation.shape();
        let fit = most.map_or(u64::MAX, |most| most / (u64::from(BLOCK_BYTES) * 8));
        let blocks = u64::from(chosen.blocks).min(fit) as u8;
        if blocks == 0 {
            return None;
        }
        let current = match &mut self.current {
            Some(current) => current,
            None => {
                let packet = self.stream.cut_piece(u32::MAX)?;
                self.current.insert(Current { packet, settled: 0, tries: 0, under_way: None })
            }
        };
        let rest = (current.packet.link_bits - current.settled) / 8;
        let shape = Shape { blocks, ..chosen }.least_for(rest);
        let bits = rest.min(shape.payload_bytes()) * 8;
        let piece = self.stream.piece_of(current.packet.sdu, current.settled, current.settled + bits)?;
        let repeated = current.tries;
        current.tries = current.tries.saturating_add(1);
        let is_last = self.options.retransmissions.is_some_and(|limit| current.tries > limit);
        current.under_way = Some(Try { bits, is_last });
        let header = Header { number: self.number, attempt: current.tries, shape, is_last };
        let (bits, words) = (Bits::new(shape.bits()), Some(header.words()));
        let frame = Frame { number: self.number, bits, pieces: smallvec![piece], words };
        Some(Outgoing { frame, shape, repeated })
    }

    /// Drops the packets that have become too old to be sent, or sent again.
    fn expire(&mut self, at: Time, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        let Some(expiry) = self.options.expiry else { return };
        if let Some(Current { packet, under_way: None, .. }) = self.current
            && has_expired(packet.sdu, expiry, at, sdus)
        {
            self.end_packet();
            sdus.release(packet.sdu, Cause::Expired, stage);
        }
        if self.current.is_none() {
            drop_expired(&mut self.stream, expiry, at, sdus, stage);
        }
    }

    /// Ends the present packet, which is delivered or given up.
    fn end_packet(&mut self) {
        self.number += 1;
        if let Some(current) = self.current.take() {
            self.stream.settle_piece(&current.packet);
        }
    }

    /// Takes an answer of the other end. One to an earlier try, or a second one to the same, means nothing.
    pub fn hear(&mut self, report: Report) {
        let Some(current) = &mut self.current else { return };
        let is_present = report.number == self.number as u32 && report.attempt == current.tries;
        let Some(sent) = current.under_way.take_if(|_| is_present) else { return };
        self.adaptation.learn(report.finding);
        if report.finding.is_received {
            current.settled += sent.bits;
            current.tries = 0;
            if current.settled < current.packet.link_bits {
                self.number += 1;
                return;
            }
        } else if !sent.is_last {
            return;
        }
        self.end_packet();
    }
}
