// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A toy ARQ entity: go-back-N with cumulative acknowledgements in frames of their own, which take
//! time of the other direction and suffer its errors. A window of one makes it stop-and-wait.
//!
//! Limits: a packet is one frame; a frame that errors damage or lose is noticed and ignored, one
//! that they delay is taken as it comes; it never gives up.

use std::collections::VecDeque;

use airpath_core::{Bits, Cause, EventKind, Pdu, PduId, Span, Time};
use airpath_models::air::{Frame, Grant, Piece};
use airpath_models::channel::ChannelOutcome;
use airpath_models::entity::{Arrival, EntityParameters, ErrorPositions, LinkEntity, SduKey, Sdus};
use airpath_models::stage::{QueueLength, StageCx};
use smallvec::{SmallVec, smallvec};

/// The header of a data frame, and the whole of an acknowledgement.
pub const HEADER: u64 = 40;

const DATA: u64 = 0;
const ACKNOWLEDGEMENT: u64 = 1;

#[derive(Clone, Copy)]
struct Outgoing {
    sdu: SduKey,
    pdu: PduId,
    packet_bits: u32,
    header_bits: u32,
}

pub struct GoBackN {
    window: usize,
    timeout: Span,
    /// Packets not acknowledged yet; the first has the sequence number `base`.
    buffer: VecDeque<Outgoing>,
    base: u64,
    next: u64,
    timer: Time,
    frames: u64,
    /// The sequence number that comes next from the other end.
    expected: u64,
    owes_acknowledgement: bool,
    errors: ErrorPositions,
}

impl GoBackN {
    pub fn new(window: usize, timeout: Span) -> GoBackN {
        GoBackN {
            window,
            timeout,
            buffer: VecDeque::new(),
            base: 0,
            next: 0,
            timer: Time::NEVER,
            frames: 0,
            expected: 0,
            owes_acknowledgement: false,
            errors: ErrorPositions::OfPacket,
        }
    }

    /// The same, with a checksum over the whole frame.
    pub fn with_checksum(self) -> GoBackN {
        GoBackN { errors: ErrorPositions::OfFrame, ..self }
    }

    fn unsent(&self) -> Option<Outgoing> {
        self.buffer.get((self.next - self.base) as usize).copied()
    }

    fn record(&self, kind: EventKind, frame: &Frame, stage: &mut StageCx<'_, '_>) {
        match frame.pieces.first() {
            Some(piece) => {
                // The packet itself may be gone: acknowledged while a repetition was on its way.
                let pdu = Pdu { id: piece.pdu, ..Pdu::default() };
                stage.record(kind, Cause::None, &pdu, frame.bits.get(), QueueLength::default());
            }
            None => stage.record_control(kind, frame.bits.get()),
        }
    }
}

impl LinkEntity for GoBackN {
    fn has_room(&self, _: &Pdu) -> bool {
        self.buffer.len() < self.window
    }

    fn accept(&mut self, pdu: Pdu, _: Arrival, sdus: &mut Sdus, _: &mut StageCx<'_, '_>) {
        let (id, packet_bits) = (pdu.id, pdu.bits().get() as u32);
        let header_bits = u32::from(pdu.header_len) * 8;
        let sdu = sdus.insert(pdu, 1);
        self.buffer.push_back(Outgoing { sdu, pdu: id, packet_bits, header_bits });
    }

    fn ready_at(&self) -> Time {
        if self.owes_acknowledgement || self.unsent().is_some() { Time::ZERO } else { Time::NEVER }
    }

    fn next_frame(&mut self, grant: &Grant, _: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        let (bits, pieces, words): (u64, SmallVec<[Piece; 1]>, _) = if self.owes_acknowledgement {
            (HEADER, SmallVec::new(), [ACKNOWLEDGEMENT, self.expected])
        } else {
            let Outgoing { sdu, pdu, packet_bits, header_bits } = self.unsent()?;
            let piece = Piece {
                sdu,
                pdu,
                first_bit: 0,
                bits: packet_bits,
                last: true,
                packet_bits,
                header_bits,
                link_bits: packet_bits,
            };
            (u64::from(packet_bits) + HEADER, smallvec![piece], [DATA, self.next])
        };
        if grant.bits.is_some_and(|most| bits > most.get()) {
            return None;
        }
        if pieces.is_empty() {
            self.owes_acknowledgement = false;
        } else {
            self.next += 1;
        }
        let number = self.frames;
        self.frames += 1;
        let frame = Frame { number, bits: Bits::new(bits), pieces, words: Some(Box::new(words)) };
        self.record(EventKind::FrameStarted, &frame, stage);
        Some(frame)
    }

    fn sent(&mut self, frame: &Frame, _: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.record(EventKind::FrameSent, frame, stage);
        if !frame.pieces.is_empty() && self.timer == Time::NEVER && !self.buffer.is_empty() {
            self.timer = stage.at + self.timeout;
        }
    }

    fn receive(
        &mut self,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        if matches!(
            outcome,
            ChannelOutcome::Lost
                | ChannelOutcome::BlackedOut
                | ChannelOutcome::Flipped(_)
                | ChannelOutcome::Truncated { .. }
        ) {
            return self.record(EventKind::FrameLost, &frame, stage);
        }
        let Some([kind, number]) = frame.words.as_deref() else { panic!("every frame has words") };
        if *kind == DATA {
            if *number == self.expected {
                up.extend(sdus.hand_up(frame.pieces[0].sdu));
                self.expected += 1;
            }
            self.owes_acknowledgement = true;
        } else if *number > self.base {
            while self.base < *number {
                let acknowledged = self.buffer.pop_front().expect("only what was sent is acknowledged");
                sdus.finish(acknowledged.sdu);
                self.base += 1;
            }
            self.next = self.next.max(self.base);
            self.timer = if self.next > self.base { stage.at + self.timeout } else { Time::NEVER };
        }
    }

    fn error_positions(&self) -> ErrorPositions {
        self.errors
    }

    fn next_deadline(&self) -> Time {
        self.timer
    }

    fn advance(&mut self, _: &mut Sdus, stage: &mut StageCx<'_, '_>, _: &mut Vec<Pdu>) {
        if self.timer <= stage.at {
            self.next = self.base;
            self.timer = Time::NEVER;
        }
    }

    fn configure(&mut self, _: Time, _: &EntityParameters<'_>, _: &EntityParameters<'_>) {}
}
