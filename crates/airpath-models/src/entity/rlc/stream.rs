// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The packets of a flow, cut into the information of RLC blocks.

use super::flow::Source;
use super::segments::Indicators;
use crate::entity::stream::{Pieces, StreamSender};

/// Information of an RLC block: a part of the stream.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Its position in the stream, without length indicators.
    pub position: u64,
    /// Parts of packets.
    pub pieces: Pieces,
}

/// The send buffer as a source of blocks.
#[derive(Clone, Debug)]
pub struct Packets {
    /// The send buffer.
    pub buffer: StreamSender,
    indicators: Indicators,
    /// True if the next block has to begin with a length of 0.
    owes: bool,
    /// Number of packets that are left of a flow that nothing new joins.
    left: Option<usize>,
}

impl Packets {
    /// The packets of `buffer`.
    pub fn new(buffer: StreamSender, indicators: Indicators) -> Packets {
        Packets { buffer, indicators, owes: false, left: None }
    }

    /// Octets of each packet of this flow that have yet to be cut.
    fn rests(&self) -> impl Iterator<Item = u32> {
        self.buffer.rests().map(|bits| bits / 8).take(self.left.unwrap_or(usize::MAX))
    }

    /// Packets of which nothing was cut have gone.
    pub fn others_dropped(&mut self) {
        let begun = usize::from(self.buffer.has_begun());
        self.left = self.left.map(|left| left.min(begun));
    }
}

impl Source for Packets {
    type Payload = Chunk;

    fn is_empty(&self) -> bool {
        self.left == Some(0) || !self.buffer.has_more()
    }

    fn cut(&mut self, octets: u32, ends: bool) -> Option<Chunk> {
        if self.is_empty() {
            return None;
        }
        let plan = self.indicators.plan(octets, self.rests(), self.owes, ends);
        self.owes = plan.owes;
        let position = self.buffer.position();
        let mut pieces = Pieces::new();
        for take in plan.takes {
            let piece = self.buffer.cut_piece(take * 8)?;
            if piece.last {
                self.left = self.left.map(|left| left - 1);
            }
            pieces.push(piece);
        }
        Some(Chunk { position, pieces })
    }

    fn nothing(&self) -> Chunk {
        Chunk { position: self.buffer.position(), pieces: Pieces::new() }
    }

    fn blocks_left(&self, octets: u32, ends: bool, most: u32) -> Option<u32> {
        self.indicators.count(octets, self.rests(), self.owes, ends, most)
    }

    fn close(&mut self) {
        if self.left.is_none() {
            self.left = Some(self.buffer.rests().count());
        }
    }

    fn reopen(&mut self) {
        (self.left, self.owes) = (None, false);
    }
}
