// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RLC of GPRS and EGPRS: blocks of packet data that are numbered, acknowledged by bitmaps, and repeated, within
//! temporary block flows.
//!
//! Source: 3GPP TS 44.060 and TS 45.003. `sending` and `receiving` are the protocol, `segments` is what packets look
//! like in blocks, `schemes` is what errors do. The kinds of entity (`gprs`, `egprs`) give the parameters.
//!
//! Each direction has flows of its own. The set-up of a flow takes the link's allocation delay; its messages take no
//! blocks, and are never lost. Acknowledgements take a radio block of the other direction, and suffer its errors.

pub mod acknowledgement;
pub mod message;
pub mod receiving;
pub mod schemes;
pub mod segments;
pub mod sending;
pub mod stream;

use airpath_core::counters::Site;
use airpath_core::{
    Bits, Cause, Direction, End, EventKind, LinkEvent, LinkFrame, LinkRecord, LinkVariables, Pdu, Span, Stage, Time,
};
use smallvec::SmallVec;

use self::message::{Arriving, Header, Message, is_control};
use self::receiving::{Receiver, ReceiverOptions};
use self::schemes::Schemes;
use self::segments::Indicators;
use self::sending::{Sender, SenderOptions, Signal, Source};
use self::stream::{Chunk, Packets};
use super::losses::{cause_of_loss, lose_parts, release_ended};
use super::recording::record_frame;
use super::stream::{Pieces, Shape, StreamReceiver, StreamSender, first_pdu};
use super::{Arrival, EntityBeginning, EntityParameters, ErrorPositions, LinkEntity, RADIO_BLOCK, Sdus};
use crate::air::{Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::problem::Problem;
use crate::random::Sampler;
use crate::stage::{QueueLength, StageCx};

/// Parameters of one end.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Those of the flows that it sends.
    pub sends: SenderOptions,
    /// Those of the flows that it receives.
    pub receives: ReceiverOptions,
    /// True if what it receives is acknowledged.
    pub acknowledges: bool,
    /// Coding scheme of new blocks.
    pub scheme: usize,
    /// Coding scheme that is commanded for repetitions.
    pub repetition: usize,
    /// Format of length indicators.
    pub indicators: Indicators,
}

/// Errors in the parameters that GPRS and EGPRS have in common: the blocks from one acknowledgement to the next, RRBP
/// and BS_CV_MAX, then T3182 and the decoder's efficiency.
pub fn problems((every, rrbp, bs_cv_max): (u16, Span, u8), (t3182, efficiency): (Span, f64)) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |key: &str, message: String| problems.push(Problem::new(key, message));
    if every == 0 {
        problem("acknowledge_every", "is 0; write for example 20".into());
    }
    if ![40, 60, 80, 100].map(Span::from_millis).contains(&rrbp) {
        problem("rrbp", format!("is {rrbp}; it is 40 ms, 60 ms, 80 ms or 100 ms"));
    }
    if bs_cv_max > 15 {
        problem("bs_cv_max", format!("is {bs_cv_max}; it is from 0 to 15"));
    }
    if t3182 < RADIO_BLOCK {
        let message = format!(
            "is {t3182}, less than a radio block of {RADIO_BLOCK}, so that every flow would be given up; write for \
             example \"5 s\""
        );
        problem("t3182", message);
    }
    if efficiency <= 0.0 {
        problem("efficiency", "is 0, so that no block with an error would be decoded; write for example 0.7".into());
    }
    problems
}

/// One end of a link with RLC.
#[derive(Clone, Debug)]
pub struct Rlc {
    end: End,
    schemes: &'static Schemes,
    acknowledges: bool,
    sender: Sender<Chunk>,
    packets: Packets,
    receiver: Receiver<Chunk>,
    assembly: StreamReceiver,
    allocation_delay: Sampler<Span>,
    allocations: u64,
    next_number: u64,
    signals: Vec<Signal<Chunk>>,
    in_sequence: Vec<Chunk>,
}

impl Rlc {
    /// The end of `beginning`.
    pub fn new(parameters: Parameters, beginning: &EntityBeginning<'_>) -> Rlc {
        let Parameters { sends, receives, acknowledges, scheme, repetition, indicators } = parameters;
        let buffer = StreamSender::new(Shape::plain(&beginning.sends), beginning.sends.send_buffer);
        Rlc {
            end: beginning.end,
            schemes: sends.schemes,
            acknowledges,
            sender: Sender::new(sends, scheme, repetition),
            packets: Packets::new(buffer, indicators),
            receiver: Receiver::new(receives),
            assembly: StreamReceiver::new(Shape::plain(&beginning.receives)),
            allocation_delay: Sampler::new(beginning.sends.allocation_delay, beginning.allocation),
            allocations: 0,
            next_number: 0,
            signals: Vec::new(),
            in_sequence: Vec::new(),
        }
    }

    /// Changes the coding schemes of what is sent from now on.
    pub fn command(&mut self, scheme: usize, repetition: usize) {
        (self.sender.scheme, self.sender.repetition) = (scheme, repetition);
    }

    /// Asks for a flow at `at`.
    fn allocate(&mut self, at: Time) {
        let delay = self.allocation_delay.draw_at(self.allocations, at);
        self.allocations += 1;
        self.sender.allocate(at + delay);
    }

    /// Does what the sending end has asked for. `sends` is the direction in which it sends.
    fn heed(&mut self, sends: Direction, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        let stage = &mut StageCx::new(Site { direction: sends, ..stage.site }, stage.at, stage.cx);
        let mut signals = std::mem::take(&mut self.signals);
        for signal in signals.drain(..) {
            match signal {
                Signal::Acknowledged(chunk) => {
                    // What is acknowledged and was not handed up went astray.
                    let leave = |sdu| sdus.release(sdu, Cause::LinkReset, stage);
                    self.packets.buffer.settle(&chunk.pieces, leave);
                }
                Signal::Began => self.log(LinkEvent::Connected, LinkFrame::None, None, 0, stage),
                Signal::Released => {
                    self.log(LinkEvent::Disconnected, LinkFrame::None, None, 0, stage);
                    self.begin_anew(stage.at);
                }
                Signal::Reset => {
                    self.log(LinkEvent::Reset, LinkFrame::None, None, 0, stage);
                    stage.record_control(EventKind::LinkReset, 0);
                    self.packets.buffer.drop_begun(Cause::LinkReset, sdus, stage);
                    self.begin_anew(stage.at);
                }
            }
        }
        self.signals = signals;
    }

    /// The flow is gone: what waits needs another one.
    fn begin_anew(&mut self, at: Time) {
        self.packets.reopen();
        if !self.packets.is_empty() {
            self.allocate(at);
        }
    }

    fn log(
        &self,
        event: LinkEvent,
        frame: LinkFrame,
        numbers: Option<(Option<u16>, Option<u16>, bool)>,
        pdu: airpath_core::PduId,
        stage: &mut StageCx<'_, '_>,
    ) {
        stage.link(|| {
            let (v_s, v_a, outstanding) = self.sender.variables();
            let variables = LinkVariables {
                v_s: Some(v_s),
                v_a: Some(v_a),
                v_r: Some(self.receiver.variables().0),
                outstanding: Some(outstanding),
                attempts: None,
                timer: self.sender.waits_until(),
            };
            let (n_s, n_r, poll) = numbers.unwrap_or_default();
            let poll_final = (frame == LinkFrame::RlcData).then_some(poll);
            LinkRecord { frame, pdu, variables, n_s, n_r, poll_final, ..LinkRecord::new(self.end.sends(), event) }
        });
    }

    fn log_message(&self, event: LinkEvent, message: &Message, pdu: airpath_core::PduId, stage: &mut StageCx<'_, '_>) {
        match message {
            Message::Data(header, _) => {
                self.log(event, LinkFrame::RlcData, Some((Some(header.bsn), None, header.poll)), pdu, stage);
            }
            Message::Acknowledgement(told) => {
                self.log(event, LinkFrame::AckNack, Some((None, Some(told.v_q), false)), pdu, stage);
            }
        }
    }

    /// The acknowledgement that is due, as a frame.
    fn acknowledgement(&mut self, at: Time, stage: &mut StageCx<'_, '_>, sdus: &Sdus) -> Option<Frame> {
        let told = self.receiver.acknowledgement(at)?;
        let frame = self.frame(message::acknowledgement(&told), Pieces::new());
        record_frame(EventKind::FrameStarted, &frame, sdus, stage);
        self.log(LinkEvent::Sent, LinkFrame::AckNack, Some((None, Some(told.v_q), false)), 0, stage);
        Some(frame)
    }

    fn frame(&mut self, words: Box<[u64]>, pieces: Pieces) -> Frame {
        let number = self.next_number;
        self.next_number += 1;
        Frame { number, bits: Bits::new(u64::from(self.schemes.block_bits)), pieces, words: Some(words) }
    }

    /// A radio block of data whose header is understood: `flips` are the flipped bits.
    fn take(
        &mut self,
        header: Header,
        blocks: SmallVec<[Arriving; 2]>,
        flips: &[u32],
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) -> bool {
        let at = stage.at;
        if self.receiver.header(at, header.flow, header.number, header.poll, header.is_stalled) {
            self.assembly.restart();
        }
        let scheme = &self.schemes.table[header.scheme];
        let mut is_whole = true;
        for (place, Arriving { bsn, part, is_last, payload }) in blocks.into_iter().enumerate() {
            let flips = if flips.is_empty() { 0 } else { scheme.flips_of(flips, place as u32) };
            if self.acknowledges {
                let mut in_sequence = std::mem::take(&mut self.in_sequence);
                let code = (scheme.code, flips);
                is_whole &=
                    self.receiver.block(at, (bsn, part, is_last), code, payload, |chunk| in_sequence.push(chunk));
                for chunk in in_sequence.drain(..) {
                    self.assembly.take(chunk.position, &chunk.pieces, &[], sdus, stage, up);
                }
                self.in_sequence = in_sequence;
            } else {
                let efficiency = self.receiver.options.efficiency;
                if flips == 0 || scheme.code.decodes(scheme.code.mutual_information(flips), efficiency) {
                    self.assembly.take(payload.position, &payload.pieces, &[], sdus, stage, up);
                    release_ended(&payload.pieces, Cause::Integrity, sdus, stage);
                } else {
                    is_whole = false;
                    lose_parts(&payload.pieces, Cause::ChannelError, sdus, stage);
                }
            }
        }
        is_whole
    }
}

impl LinkEntity for Rlc {
    fn has_room(&self, next: &Pdu) -> bool {
        self.packets.buffer.has_room(next)
    }

    fn accept(&mut self, pdu: Pdu, _: Arrival, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.packets.buffer.accept(pdu, sdus);
        if self.sender.needs_flow(stage.at) {
            self.allocate(stage.at);
        }
    }

    fn ready_at(&self) -> Time {
        self.sender.ready_at(&self.packets).min(self.receiver.acknowledgement_at())
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        if grant.bits.is_some_and(|most| most.get() < u64::from(self.schemes.block_bits)) {
            return None;
        }
        let at = grant.start;
        if let Some(frame) = self.acknowledgement(at, stage, sdus) {
            return Some(frame);
        }
        let mut outgoing = self.sender.next_frame(at, &mut self.packets, &mut self.signals);
        if !self.signals.is_empty() {
            self.heed(grant.direction, sdus, stage);
            if outgoing.is_none() {
                // A flow that was given up may be followed by another one at once.
                outgoing = self.sender.next_frame(at, &mut self.packets, &mut self.signals);
                self.heed(grant.direction, sdus, stage);
            }
        }
        let outgoing = outgoing?;
        let (words, pieces) = message::data(&outgoing);
        let frame = self.frame(words, pieces);
        record_frame(EventKind::FrameStarted, &frame, sdus, stage);
        if outgoing.repeated {
            record_frame(EventKind::FrameRepeated, &frame, sdus, stage);
        }
        let event = if outgoing.repeated { LinkEvent::Repeated } else { LinkEvent::Sent };
        let bsn = outgoing.blocks.first().map(|block| block.bsn);
        self.log(event, LinkFrame::RlcData, Some((bsn, None, outgoing.poll)), first_pdu(&frame.pieces), stage);
        Some(frame)
    }

    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        record_frame(EventKind::FrameSent, frame, sdus, stage);
        if !self.sender.options.acknowledged {
            self.packets.buffer.settle(&frame.pieces, |_| {});
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
        let Some(message) = message::read(&frame) else { return };
        let pdu = first_pdu(&frame.pieces);
        let direction = usize::from(stage.site.direction == Direction::Downlink);
        let efficiency = self.receiver.options.efficiency;
        let scheme = match &message {
            Message::Data(header, _) => &self.schemes.table[header.scheme],
            Message::Acknowledgement(_) => &self.schemes.control,
        };
        let lost = match &outcome {
            ChannelOutcome::Flipped(flips) => {
                let is_read = scheme.reads_header(flips, direction, efficiency) && {
                    let hit = if is_control(&frame) { scheme.flips_of(flips, 0) } else { 0 };
                    hit == 0 || scheme.code.decodes(scheme.code.mutual_information(hit), efficiency)
                };
                (!is_read).then_some(Cause::ChannelError)
            }
            other => cause_of_loss(other),
        };
        if let Some(cause) = lost {
            self.log_message(LinkEvent::Damaged, &message, pdu, stage);
            record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(Stage::Channel));
            if !self.acknowledges {
                lose_parts(&frame.pieces, cause, sdus, stage);
            }
            return;
        }
        let flips = match outcome {
            ChannelOutcome::Flipped(flips) => flips,
            _ => Vec::new(),
        };
        match message {
            Message::Data(header, blocks) => {
                let is_whole = self.take(header, blocks, &flips, sdus, stage, up);
                let event = if is_whole { LinkEvent::Received } else { LinkEvent::Damaged };
                self.log(event, LinkFrame::RlcData, Some((Some(header.bsn), None, header.poll)), pdu, stage);
                if !is_whole {
                    record_frame(EventKind::FrameLost, &frame, sdus, &mut stage.of(Stage::Channel));
                }
            }
            Message::Acknowledgement(told) => {
                self.sender.acknowledge(stage.at, &told, &self.packets, &mut self.signals);
                self.log(LinkEvent::Received, LinkFrame::AckNack, Some((None, Some(told.v_q), false)), pdu, stage);
                self.heed(stage.site.direction.opposite(), sdus, stage);
            }
        }
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn waiting(&self) -> QueueLength {
        self.packets.buffer.waiting()
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        let scheme = &self.schemes.table[self.sender.scheme];
        let octets = self.packets.buffer.least_line_bits(bytes) / 8;
        let frames = octets.div_ceil(scheme.octets * scheme.blocks);
        Bits::new(u64::from(frames) * u64::from(self.schemes.block_bits))
    }

    fn next_deadline(&self) -> Time {
        Time::NEVER
    }

    fn advance(&mut self, _: &mut Sdus, _: &mut StageCx<'_, '_>, _: &mut Vec<Pdu>) {}

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        self.packets.buffer.drop_others(Cause::Blackout, sdus, stage);
        self.packets.others_dropped();
        self.sender.abandon(stage.at, &mut self.packets);
    }

    fn configure(&mut self, _: Time, sends: &EntityParameters<'_>, _: &EntityParameters<'_>) {
        self.packets.buffer.configure(sends.send_buffer);
        self.allocation_delay.configure(sends.allocation_delay);
    }
}
