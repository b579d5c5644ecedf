// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving end: packets put together of frames that arrive in any order.

use std::collections::BTreeMap;

use airpath_core::{Cause, EventKind, Pdu, Span, Time};
use smallvec::SmallVec;

use super::header::Header;
use crate::air::Piece;
use crate::channel::Headers;
use crate::entity::reordering::{Reordering, ReorderingOptions};
use crate::entity::stream::{Pieces, Shape};
use crate::entity::{SduKey, Sdus};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// True if packets are handed up in the order in which they were sent.
    pub in_order: bool,
    /// Longest wait for a packet that is missing in the order.
    pub t_reordering: Option<Span>,
    /// Treatment of bit errors in the packets' own headers.
    pub headers: Headers,
}

/// Fate of a frame that is not repeated any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is as it was sent, but for these bits of it, in ascending order.
    Arrived(Vec<u32>),
    /// It is lost.
    Lost(Cause),
}

/// A frame whose fate is known.
#[derive(Clone, Debug)]
struct Settled {
    pieces: Pieces,
    /// Bits of the first packet that earlier frames carry.
    offset: u32,
    /// Number of the first packet.
    packet: u64,
    fate: Fate,
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver {
    options: ReceiverOptions,
    shape: Shape,
    /// Place in the stream up to which everything has been handed up or lost; used where order is kept.
    expected: u64,
    /// Frames that wait for earlier ones, by their place in the stream.
    held: BTreeMap<u64, Settled>,
    /// Order of the packets, where the wait for it is limited.
    reordering: Option<Reordering>,
    /// Scratch: packets to deliver.
    deliver: Vec<SduKey>,
}

impl Receiver {
    /// An end at which nothing has arrived.
    pub fn new(options: ReceiverOptions, shape: Shape) -> Receiver {
        let reordering = options
            .t_reordering
            .map(|wait| Reordering::new(ReorderingOptions { t_reordering: Some(wait), out_of_order: false }));
        Receiver { options, shape, expected: 0, held: BTreeMap::new(), reordering, deliver: Vec::new() }
    }

    /// Changes the parameters, but for the order.
    pub fn configure(&mut self, options: ReceiverOptions) {
        self.options.headers = options.headers;
    }

    /// Time at which the wait for a missing packet ends; `Time::NEVER` if none is limited.
    pub fn expires(&self) -> Time {
        self.reordering.as_ref().map_or(Time::NEVER, Reordering::expires)
    }

    /// Delivers what has waited for long enough at `at`.
    pub fn expire(&mut self, at: Time, sdus: &mut Sdus, up: &mut Vec<Pdu>) {
        if let Some(reordering) = &mut self.reordering {
            reordering.expire(at, &mut self.deliver);
            up.extend(self.deliver.drain(..).filter_map(|sdu| sdus.finish(sdu)));
        }
    }

    /// Takes a frame that is not repeated any more; packets that are complete go to `up`.
    pub fn take(
        &mut self,
        header: Header,
        pieces: Pieces,
        fate: Fate,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        let settled = Settled { pieces, offset: header.offset, packet: header.packet, fate };
        if !self.options.in_order || self.reordering.is_some() {
            self.put_together(&settled, sdus, stage, up);
            return;
        }
        if header.position != self.expected {
            self.held.insert(header.position, settled);
            return;
        }
        self.expected += self.put_together(&settled, sdus, stage, up);
        while let Some(next) = self.held.remove(&self.expected) {
            self.expected += self.put_together(&next, sdus, stage, up);
        }
    }

    /// Puts the parts of packets in a frame to those that are there; the bits of the stream in it.
    fn put_together(
        &mut self,
        frame: &Settled,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) -> u64 {
        let (mut from, mut offset) = (0, frame.offset);
        for (packet, piece) in (frame.packet..).zip(&frame.pieces) {
            let to = from + piece.link_bits;
            match &frame.fate {
                Fate::Lost(cause) => {
                    sdus.lose(piece.sdu, *cause, stage);
                }
                Fate::Arrived(flips) => {
                    let hit = flips.partition_point(|flip| *flip < from)..flips.partition_point(|flip| *flip < to);
                    // The rest of them is in other packets, or in the padding.
                    if !hit.is_empty() {
                        self.damage(piece, flips[hit].iter().map(|flip| flip - from + offset), sdus, stage);
                    }
                }
            }
            if let Some(sdu) = sdus.get_mut(piece.sdu) {
                sdu.accounted += piece.link_bits;
                if sdu.accounted == sdu.parts {
                    self.complete(packet, piece.sdu, sdus, stage, up);
                }
            }
            (from, offset) = (to, 0);
        }
        u64::from(from)
    }

    /// Hands up a packet of which everything has arrived or is lost, or lets it wait for earlier ones.
    fn complete(&mut self, packet: u64, sdu: SduKey, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        let Some(reordering) = &mut self.reordering else { return up.extend(sdus.finish(sdu)) };
        if !sdus[sdu].is_inside() {
            sdus.finish(sdu);
            reordering.gone(stage.at, packet, &mut self.deliver);
        } else if !reordering.take(stage.at, packet, sdu, &mut self.deliver) {
            sdus.release(sdu, Cause::TooLate, stage);
        }
        up.extend(self.deliver.drain(..).filter_map(|sdu| sdus.finish(sdu)));
    }

    /// Flips the packet's bits at `line_bits` of its part of the stream. An error in the link's own octets in front
    /// of the packet costs it, where errors in headers count.
    fn damage(
        &self,
        piece: &Piece,
        line_bits: impl Iterator<Item = u32>,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
    ) {
        let Some(sdu) = sdus.get_mut(piece.sdu).filter(|sdu| sdu.is_inside()) else { return };
        let spared = self.options.headers == Headers::Spared;
        let mut damaged: SmallVec<[u32; 16]> = SmallVec::new();
        for line_bit in line_bits {
            if line_bit < self.shape.front_bits() {
                if !spared {
                    sdus.lose(piece.sdu, Cause::Integrity, stage);
                    return;
                }
                continue;
            }
            let bit = self.shape.packet_bit(piece.packet_bits, sdu.parts, line_bit);
            let is_header = spared && bit < piece.header_bits;
            // Two bits of the line may stand for the same bit of a compressed packet.
            if bit < piece.packet_bits && !is_header && damaged.last() != Some(&bit) {
                damaged.push(bit);
            }
        }
        if !damaged.is_empty() {
            let count = damaged.len() as u64;
            stage.record(EventKind::Damaged, Cause::None, &sdu.pdu, count, QueueLength::default());
            sdu.pdu.flip(&damaged);
        }
    }
}
