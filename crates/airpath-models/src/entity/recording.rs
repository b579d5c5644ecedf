// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Events about the frames of entities whose frames may carry several packets, or outlive them.

use airpath_core::{Cause, EventKind, Pdu};

use super::Sdus;
use crate::air::Frame;
use crate::stage::{QueueLength, StageCx};

/// Records an event about `frame`: about the first packet in it, or about a control frame.
pub fn record_frame(kind: EventKind, frame: &Frame, sdus: &Sdus, stage: &mut StageCx<'_, '_>) {
    let bits = frame.bits.get();
    let Some(piece) = frame.pieces.first() else { return stage.record_control(kind, bits) };
    match sdus.get(piece.sdu) {
        Some(sdu) => stage.record(kind, Cause::None, &sdu.pdu, bits, QueueLength::default()),
        None => {
            let gone = Pdu { id: piece.pdu, ..Pdu::default() };
            stage.record(kind, Cause::None, &gone, bits, QueueLength::default());
        }
    }
}
