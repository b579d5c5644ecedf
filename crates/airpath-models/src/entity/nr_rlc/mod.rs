// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RLC of NR, unacknowledged (UM) or acknowledged (AM), with HARQ below it and PDCP above it.
//!
//! Source: 3GPP TS 38.322 (RLC), TS 38.323, clause 5.2.2 (PDCP), and TS 38.321, clauses 5.4.3 and 6.1.2 (MAC). RLC
//! cuts packets into segments that fit the grants and does not concatenate them; MAC puts several PDUs into a transport
//! block, each behind a subheader. A transport block is a frame here, which the HARQ of [`super::arq`] repeats as a
//! whole. `um` and `am_…` are the protocol, `format` the lengths of headers, `block` what is in a transport block.
//!
//! STATUS PDUs of acknowledged mode go in the transport blocks of the other direction, in front of its packets. A
//! packet that RLC repeats too often ends the flow: its packets under way are lost, and both ends begin anew (in the
//! standard a re-establishment by RRC, TS 38.331, clause 5.3.7).
//!
//! Idealised: the header of PDCP takes its octets, and its count is known as a whole; the first block of the new flow
//! tells the receiving end of a failure, and the failure takes no time; HARQ has as many processes as it needs.
//!
//! In unacknowledged mode a packet is counted as lost when its transport block has been sent for the last time, or
//! when the receiving end gives it up; the receiving end of PDCP learns nothing of it and waits for t-Reordering.

mod am_receiving;
mod am_sending;
mod block;
mod config;
mod format;
mod partial;
mod ranges;
mod receiving;
mod sending;
mod um;

use airpath_core::counters::Site;
use airpath_core::{
    Bits, Cause, End, EventKind, LinkEvent, LinkFrame, LinkRecord, LinkVariables, Pdu, PduId, Span, Stage, Time,
};

pub use self::config::{HarqConfig, NrRlcConfig, PdcpConfig};
pub use self::format::Mode;

use self::block::{Arriving, DataHeader};
use self::config::config_of;
use self::receiving::Receiver;
use self::sending::{Outgoing, Sender};
use super::arq::combining::Combiner;
use super::arq::header::Answer;
use super::losses::cause_of_loss;
use super::recording::{record_frame, record_start};
use super::stream::{Shape, StreamSender, first_pdu};
use super::{Arrival, EntityBeginning, EntityParameters, ErrorPositions, Feedback, LinkEntity, SduKey, Sdus};
use crate::air::{Backlog, Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::quality::Quality;
use crate::stage::{QueueLength, StageCx};

/// Parameters of one end.
#[derive(Clone, Copy, Debug)]
struct Parameters<'a> {
    /// Those of the direction in which it sends.
    sends: &'a NrRlcConfig,
    /// Those of the direction in which it receives.
    receives: &'a NrRlcConfig,
}

/// One end of a link with RLC.
#[derive(Clone, Debug)]
pub struct NrRlc {
    end: End,
    sender: Sender,
    receiver: Receiver,
    feedback_delay: Span,
    combiner: Combiner,
    /// Answer of HARQ to the block that was just received.
    answer: Option<Answer>,
}

/// The parts of `sdu` are accounted for as far as `bits` go: an entry is removed once nothing refers to it.
fn settle(sdus: &mut Sdus, key: SduKey, bits: u32) {
    let Some(sdu) = sdus.get_mut(key) else { return };
    sdu.accounted = sdu.accounted.saturating_add(bits).min(sdu.parts);
    if sdu.accounted == sdu.parts && !sdu.is_inside() {
        sdus.finish(key);
    }
}

/// The packet for the way out. Its entry stays for the sending end if that still refers to it.
fn hand_up(sdus: &mut Sdus, key: SduKey) -> Option<Pdu> {
    let sdu = sdus.get(key)?;
    if sdu.accounted == sdu.parts { sdus.finish(key) } else { sdus.hand_up(key) }
}

/// Drops the packet. Its entry stays for the sending end if that still refers to it.
fn lose(sdus: &mut Sdus, key: SduKey, cause: Cause, stage: &mut StageCx<'_, '_>) {
    sdus.lose(key, cause, stage);
    settle(sdus, key, 0);
}

impl NrRlc {
    fn new(parameters: Parameters<'_>, beginning: &EntityBeginning<'_>) -> NrRlc {
        let Parameters { sends, receives } = parameters;
        let header = Bits::from_bytes(sends.pdcp.header_octets());
        let with_header = EntityParameters { overhead: beginning.sends.overhead + header, ..beginning.sends };
        let stream = StreamSender::new(Shape::plain(&with_header), beginning.sends.send_buffer);
        NrRlc {
            end: beginning.end,
            sender: Sender::new(sends, stream),
            receiver: Receiver::new(receives),
            feedback_delay: receives.harq.feedback_delay,
            combiner: Combiner::new(receives.harq.combining),
            answer: None,
        }
    }

    fn log(
        &self,
        (event, frame): (LinkEvent, LinkFrame),
        header: Option<&DataHeader>,
        (pdu, attempts): (PduId, Option<u16>),
        stage: &mut StageCx<'_, '_>,
    ) {
        stage.link(|| {
            let short = |number: u64| u16::try_from(number).ok();
            let (v_s, v_a) = self.sender.variables();
            let variables = LinkVariables {
                v_s: short(v_s),
                v_a: v_a.and_then(short),
                v_r: short(self.receiver.variable()),
                outstanding: Some(self.sender.outstanding().min(usize::from(u16::MAX)) as u16),
                attempts,
                timer: self.sender.expires().finite(),
            };
            let n_s = header.and_then(|header| header.sn).and_then(short);
            let poll_final = header.map(|header| header.poll);
            LinkRecord { frame, pdu, variables, n_s, poll_final, ..LinkRecord::new(self.end.sends(), event) }
        });
    }

    /// Records what is in a block.
    fn log_block(&self, event: LinkEvent, frame: &Frame, block: &Arriving, stage: &mut StageCx<'_, '_>) {
        if block.status.is_some() {
            self.log((event, LinkFrame::Status), None, (0, None), stage);
        }
        for (header, piece) in block.data.iter().zip(&frame.pieces) {
            self.log((event, LinkFrame::RlcData), Some(header), (piece.pdu, None), stage);
        }
    }

    /// The flow begins anew: packets under way are lost, but for those that wait at the other end for others.
    fn begin_anew(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.sender.begin_anew(|key| {
            if sdus.get(key).is_some_and(|sdu| sdu.is_inside() && sdu.buffered == 0) {
                sdus.release(key, Cause::LinkReset, stage);
            } else {
                settle(sdus, key, u32::MAX);
            }
        });
        self.log((LinkEvent::Reset, LinkFrame::None), None, (0, None), stage);
        stage.record_control(EventKind::LinkReset, 0);
    }

    /// The context of the direction in which the end sends.
    fn sending<'a, 'b>(&self, stage: &'a mut StageCx<'_, 'b>) -> StageCx<'a, 'b> {
        let site = Site { direction: self.end.sends(), ..stage.site };
        StageCx::new(site, stage.at, stage.cx)
    }

    /// The parts of packets in a block that does not come any more.
    fn lose_block(&mut self, frame: &Frame, cause: Cause, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        if self.receiver.mode() == Mode::Um {
            for piece in &frame.pieces {
                sdus.lose(piece.sdu, cause, stage);
                settle(sdus, piece.sdu, piece.link_bits);
            }
        }
    }
}

impl LinkEntity for NrRlc {
    fn has_room(&self, next: &Pdu) -> bool {
        self.sender.stream().has_room(next)
    }

    fn accept(&mut self, pdu: Pdu, _: Arrival, sdus: &mut Sdus, _: &mut StageCx<'_, '_>) {
        self.sender.stream_mut().accept(pdu, sdus);
    }

    fn ready_at(&self) -> Time {
        if self.sender.has_more() { Time::ZERO } else { self.receiver.reports_at() }
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        let most = grant.bits.map(Bits::get);
        let Outgoing { frame, repeated } = self.sender.next(grant.start, most, &mut self.receiver)?;
        let event = record_start(&frame, repeated, sdus, stage);
        if repeated > 0 {
            let what = (first_pdu(&frame.pieces), Some(repeated.saturating_add(1)));
            self.log((event, LinkFrame::Block), None, what, stage);
        } else if let Some(block) = Arriving::read(&frame) {
            self.log_block(event, &frame, &block, stage);
        }
        Some(frame)
    }

    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        record_frame(EventKind::FrameSent, frame, sdus, stage);
        self.sender.sent(frame);
    }

    fn receive(
        &mut self,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        let Some(block) = Arriving::read(&frame) else { return };
        let lost = match &outcome {
            ChannelOutcome::Flipped(_) => Some(Cause::ChannelError),
            other => cause_of_loss(other),
        };
        self.answer = Some(Answer { position: block.place, repeat: lost.is_some() && !block.is_last });
        if let Some(cause) = lost {
            self.log((LinkEvent::Damaged, LinkFrame::Block), None, (first_pdu(&frame.pieces), None), stage);
            record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(Stage::Channel));
            if block.is_last {
                self.combiner.forget(frame.number);
                self.lose_block(&frame, cause, sdus, stage);
            }
            return;
        }
        self.combiner.forget(frame.number);
        for (header, piece) in block.data.iter().zip(&frame.pieces) {
            self.receiver.take(header, piece, sdus, stage, up);
        }
        self.log_block(LinkEvent::Received, &frame, &block, stage);
        if let Some(status) = &block.status
            && self.sender.hear(status, |key| settle(sdus, key, u32::MAX)) == am_sending::Flow::Fails
        {
            let stage = &mut self.sending(stage);
            self.begin_anew(sdus, stage);
        }
    }

    fn backlog(&self, at: Time, sdus: &Sdus) -> Backlog {
        self.sender.backlog(self.receiver.status_bits(at), sdus)
    }

    fn waiting(&self) -> QueueLength {
        self.sender.stream().waiting()
    }

    fn feedback(&mut self) -> Option<Feedback> {
        let answer = self.answer.take()?;
        Some(Feedback { after: self.feedback_delay, word: answer.word() })
    }

    fn hear(&mut self, word: u64, _: &mut Sdus, _: &mut StageCx<'_, '_>) {
        self.sender.hear_harq(Answer::read(word));
    }

    fn hit(&mut self, frame: &Frame, quality: &Quality) -> Option<ChannelOutcome> {
        self.combiner.hit(frame, quality)
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        self.sender.least_bits(bytes)
    }

    fn next_deadline(&self) -> Time {
        self.receiver.next_deadline().min(self.sender.expires())
    }

    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        self.receiver.advance(sdus, stage, up);
        if self.sender.expire(stage.at) == am_sending::Flow::Fails {
            let stage = &mut self.sending(stage);
            self.begin_anew(sdus, stage);
        }
    }

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.sender.stream_mut().drop_others(Cause::Blackout, sdus, stage);
    }

    fn configure(&mut self, _: Time, sends: &EntityParameters<'_>, receives: &EntityParameters<'_>) {
        self.sender.stream_mut().configure(sends.send_buffer);
        if let Some(config) = config_of(sends.kind) {
            self.sender.configure(config.harq.repeats());
        }
        if let Some(config) = config_of(receives.kind) {
            self.combiner.configure(config.harq.combining);
            self.feedback_delay = config.harq.feedback_delay;
        }
    }
}
