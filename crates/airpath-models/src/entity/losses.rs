// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames that are lost, and the packets of which they carried parts.

use airpath_core::Cause;

use super::Sdus;
use super::stream::Pieces;
use crate::channel::ChannelOutcome;
use crate::stage::StageCx;

/// Cause of the loss of a frame of which nothing can be used; none if it arrives, perhaps with flipped bits. The
/// beginning of a frame is of use to an entity that has no frames of its own alone, and that one looks at it first.
pub fn cause_of_loss(outcome: &ChannelOutcome) -> Option<Cause> {
    match outcome {
        ChannelOutcome::BlackedOut => Some(Cause::Blackout),
        ChannelOutcome::Lost | ChannelOutcome::Truncated { .. } => Some(Cause::ChannelError),
        ChannelOutcome::Ok | ChannelOutcome::Delayed { .. } | ChannelOutcome::Flipped(_) => None,
    }
}

/// Drops the packets of a frame that is lost, where nobody repeats it.
pub fn lose_parts(pieces: &Pieces, cause: Cause, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
    for piece in pieces {
        sdus.lose(piece.sdu, cause, stage);
    }
    release_ended(pieces, cause, sdus, stage);
}

/// Removes the packets whose last part has come, or would have; those that are still inside are dropped for `cause`.
pub fn release_ended(pieces: &Pieces, cause: Cause, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
    for piece in pieces.iter().filter(|piece| piece.last) {
        sdus.release(piece.sdu, cause, stage);
    }
}
