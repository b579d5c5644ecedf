// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving end: packets from fragments, which come in order.

use airpath_core::{Cause, Pdu};
use smallvec::SmallVec;

use super::header::Header;
use crate::air::Piece;
use crate::entity::{SduKey, Sdus};
use crate::stage::StageCx;

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Packets that are not whole, each with the number of one of its fragments: the one of which parts have arrived, and
    /// those of which a blackout has taken a part. The sending end may have given them up, or may believe that the part
    /// has arrived.
    unfinished: SmallVec<[(u64, SduKey); 2]>,
}

impl Receiver {
    /// Takes a fragment that has arrived; a packet that is whole goes to `up`.
    pub fn take(
        &mut self,
        header: Header,
        piece: Piece,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        // Only a blackout takes a part of a packet that the sending end does not send again, or give up.
        self.unfinished.retain(|&mut (number, sdu)| {
            let is_over = number < header.number && sdu != piece.sdu;
            if is_over {
                sdus.release(sdu, Cause::Blackout, stage);
            }
            !is_over
        });
        let Some(sdu) = sdus.get_mut(piece.sdu) else { return };
        sdu.accounted += piece.link_bits;
        if !piece.last {
            return self.note(header, piece);
        }
        let is_whole = sdu.accounted == sdu.parts;
        self.forget(piece);
        if is_whole {
            up.extend(sdus.finish(piece.sdu));
        } else {
            sdus.release(piece.sdu, Cause::Blackout, stage);
        }
    }

    /// Takes the loss of a try of a fragment for `cause`.
    pub fn lose(&mut self, header: Header, piece: Piece, cause: Cause, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        if header.is_last {
            sdus.release(piece.sdu, cause, stage);
            self.forget(piece);
        } else if cause == Cause::Blackout {
            self.note(header, piece);
        }
    }

    fn note(&mut self, header: Header, piece: Piece) {
        if !self.unfinished.iter().any(|(_, sdu)| *sdu == piece.sdu) {
            self.unfinished.push((header.number, piece.sdu));
        }
    }

    fn forget(&mut self, piece: Piece) {
        self.unfinished.retain(|(_, sdu)| *sdu != piece.sdu);
    }
}
