// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving end: packets put together of frames that arrive in any order.

use std::collections::BTreeMap;

use airpath_core::{Cause, EventKind, Pdu};
use smallvec::SmallVec;

use super::header::Header;
use crate::air::Piece;
use crate::channel::Headers;
use crate::entity::Sdus;
use crate::entity::stream::{Pieces, Shape};
use crate::stage::{QueueLength, StageCx};

/// Parameters of the receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// True if packets are handed up in the order in which they were sent.
    pub in_order: bool,
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
}

impl Receiver {
    /// An end at which nothing has arrived.
    pub fn new(options: ReceiverOptions, shape: Shape) -> Receiver {
        Receiver { options, shape, expected: 0, held: BTreeMap::new() }
    }

    /// Changes the parameters, but for the order.
    pub fn configure(&mut self, options: ReceiverOptions) {
        self.options.headers = options.headers;
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
        let settled = Settled { pieces, offset: header.offset, fate };
        if !self.options.in_order {
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
    fn put_together(&self, frame: &Settled, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) -> u64 {
        let (mut from, mut offset) = (0, frame.offset);
        for piece in &frame.pieces {
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
                if sdu.accounted == sdu.parts
                    && let Some(pdu) = sdus.finish(piece.sdu)
                {
                    up.push(pdu);
                }
            }
            (from, offset) = (to, 0);
        }
        u64::from(from)
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
