// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Context of a hop's stage besides its own state: place, time, and the way out.

use airpath_core::counters::Site;
use airpath_core::{Cause, Cx, Event, EventKind, LinkRecord, Origin, Pdu, Stage, Time};

/// The length of a queue after an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLength {
    /// Packets held.
    pub packets: u32,
    /// Bytes held.
    pub bytes: u64,
}

impl std::ops::Add for QueueLength {
    type Output = QueueLength;
    fn add(self, other: QueueLength) -> QueueLength {
        QueueLength { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl std::ops::Sub for QueueLength {
    type Output = QueueLength;
    fn sub(self, part: QueueLength) -> QueueLength {
        QueueLength { packets: self.packets - part.packets, bytes: self.bytes - part.bytes }
    }
}

/// The context of one stage during one step.
pub struct StageCx<'a, 'b> {
    /// Place of the stage.
    pub site: Site,
    /// Present time.
    pub at: Time,
    /// Length of sibling sub-queues: events tell the length of the whole queue.
    pub beside: QueueLength,
    /// The way out.
    pub cx: &'a mut Cx<'b>,
}

impl<'a, 'b> StageCx<'a, 'b> {
    /// The context of a stage whose queue, if it has one, is whole.
    #[inline(always)]
    pub fn new(site: Site, at: Time, cx: &'a mut Cx<'b>) -> StageCx<'a, 'b> {
        StageCx { site, at, beside: QueueLength::default(), cx }
    }

    /// The same place and time for another stage of the hop.
    pub fn of(&mut self, stage: Stage) -> StageCx<'_, 'b> {
        StageCx::new(Site { stage, ..self.site }, self.at, self.cx)
    }

    /// Records an event about `pdu` that concerns `bits`.
    #[inline(always)]
    pub fn record(&mut self, kind: EventKind, cause: Cause, pdu: &Pdu, bits: u64, queue: QueueLength) {
        let queue = queue + self.beside;
        self.cx.record(Event {
            at: self.at,
            pdu: pdu.id,
            bits,
            queue_bytes: queue.bytes,
            queue_packets: queue.packets,
            flow: pdu.flow,
            hop: self.site.hop,
            state: self.site.state,
            direction: self.site.direction,
            stage: self.site.stage,
            kind,
            cause,
            origin: pdu.origin,
        });
    }

    /// Records an event about a frame of `bits` that carries no packet.
    pub fn record_control(&mut self, kind: EventKind, bits: u64) {
        let frame = Pdu { origin: Origin::Control, ..Pdu::default() };
        self.record(kind, Cause::None, &frame, bits, QueueLength::default());
    }

    /// Records what a link entity did, at the place and time of the stage.
    pub fn link(&mut self, record: impl FnOnce() -> LinkRecord) {
        let (at, hop) = (self.at, self.site.hop);
        self.cx.link(|| LinkRecord { at, hop, ..record() });
    }

    /// Records the drop of `pdu`.
    pub fn dropped(&mut self, cause: Cause, pdu: &Pdu, queue: QueueLength) {
        self.record(EventKind::Dropped, cause, pdu, pdu.bits().get(), queue);
    }
}
