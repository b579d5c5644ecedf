// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Events about the frames of entities whose frames may carry several packets, or outlive them.

use airpath_core::{Cause, End, EventKind, LinkEvent, LinkFrame, LinkRecord, LinkVariables, Pdu, PduId};

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

/// Records the beginning of the transmission of `frame`, which has been sent `repeated` times before; its event in the
/// link log.
pub fn record_start(frame: &Frame, repeated: u16, sdus: &Sdus, stage: &mut StageCx<'_, '_>) -> LinkEvent {
    record_frame(EventKind::FrameStarted, frame, sdus, stage);
    if repeated == 0 {
        return LinkEvent::Sent;
    }
    record_frame(EventKind::FrameRepeated, frame, sdus, stage);
    LinkEvent::Repeated
}

/// Writes a frame of an entity whose frames are all alike to the link log; `outstanding` frames are not acknowledged.
pub fn log_block(end: End, event: LinkEvent, pdu: PduId, variables: (usize, Option<u16>), stage: &mut StageCx<'_, '_>) {
    stage.link(|| block_record(end, event, pdu, variables));
}

/// A record of a frame of an entity whose frames are all alike.
pub fn block_record(
    end: End,
    event: LinkEvent,
    pdu: PduId,
    (outstanding, attempts): (usize, Option<u16>),
) -> LinkRecord {
    let outstanding = Some(outstanding.min(usize::from(u16::MAX)) as u16);
    let variables = LinkVariables { outstanding, attempts, ..LinkVariables::default() };
    LinkRecord { frame: LinkFrame::Block, pdu, variables, ..LinkRecord::new(end.sends(), event) }
}
