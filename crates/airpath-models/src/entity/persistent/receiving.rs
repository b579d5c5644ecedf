// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving end: packets in the order in which they were sent.

use std::collections::BTreeMap;

use airpath_core::{Cause, Pdu};

use super::header::{Header, REQUEST};
use crate::air::Piece;
use crate::entity::Sdus;
use crate::stage::StageCx;

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Number of the next packet to hand up.
    expected: u64,
    /// Packets that wait for earlier ones; none for one that is lost.
    held: BTreeMap<u64, Option<Piece>>,
}

impl Receiver {
    /// Takes a whole frame; packets that are next go to `up`.
    pub fn take(&mut self, header: Header, piece: Option<Piece>, sdus: &mut Sdus, up: &mut Vec<Pdu>) {
        while self.expected < header.start {
            self.hand_up_next(sdus, up);
            self.expected += 1;
        }
        if header.number != REQUEST && header.number >= self.expected {
            self.held.insert(header.number, piece);
        }
        self.hand_up(sdus, up);
    }

    /// Takes the loss of the last try of a packet.
    pub fn lose(
        &mut self,
        header: Header,
        piece: Option<Piece>,
        cause: Cause,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        if let Some(piece) = piece {
            sdus.release(piece.sdu, cause, stage);
        }
        if header.number >= self.expected {
            self.held.insert(header.number, None);
        }
        self.hand_up(sdus, up);
    }

    /// Hands up all packets that are next.
    fn hand_up(&mut self, sdus: &mut Sdus, up: &mut Vec<Pdu>) {
        while self.held.contains_key(&self.expected) {
            self.hand_up_next(sdus, up);
            self.expected += 1;
        }
    }

    fn hand_up_next(&mut self, sdus: &mut Sdus, up: &mut Vec<Pdu>) {
        if let Some(Some(piece)) = self.held.remove(&self.expected) {
            up.extend(sdus.finish(piece.sdu));
        }
    }
}
