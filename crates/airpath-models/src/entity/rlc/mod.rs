// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RLC of GPRS and EGPRS: blocks of packet data that are numbered, acknowledged by bitmaps, and repeated, within
//! temporary block flows.
//!
//! Source: 3GPP TS 44.060 and TS 45.003. `sending` and `receiving` are the protocol of a flow, `access` sets flows up,
//! `exchange` joins them, `segments` is what packets look like in blocks, `schemes` is what errors do. The kinds of
//! entity (`gprs`, `egprs`) give the parameters, of which `config` has those in common.
//!
//! Each direction has flows of its own. Acknowledgements and messages that set up and release flows take a radio block
//! of the direction in which they go, and suffer its errors; those on common channels take the allocation delay.

pub mod access;
pub mod acknowledgement;
pub mod config;
mod exchange;
pub mod flow;
pub mod message;
pub mod receiving;
pub mod schemes;
pub mod segments;
pub mod sending;
pub mod stream;
pub mod window;

use std::collections::VecDeque;

use airpath_core::counters::Site;
use airpath_core::{
    Bits, Cause, Direction, End, EventKind, LinkEvent, LinkFrame, LinkRecord, LinkVariables, Pdu, Stage, Time,
};
use smallvec::SmallVec;

use self::access::{Access, AccessOptions};
use self::config::{FlowConfig, Mode, System};
use self::flow::{SenderOptions, Signal};
use self::message::{Arriving, Header, Message, is_control};
use self::receiving::{Heard, Receiver, ReceiverOptions};
use self::schemes::Schemes;
use self::segments::Indicators;
use self::sending::Sender;
use self::stream::{Chunk, Packets};
use super::losses::{cause_of_loss, lose_parts, release_ended};
use super::recording::record_frame;
use super::stream::{Pieces, Shape, StreamReceiver, StreamSender, first_pdu};
use super::{Arrival, EntityBeginning, EntityParameters, ErrorPositions, LinkEntity, SduKey, Sdus};
use crate::air::{Backlog, Frame, Grant};
use crate::channel::ChannelOutcome;
use crate::stage::{QueueLength, StageCx};

/// Parameters of one end.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// Those of the set-up of flows.
    pub access: AccessOptions,
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

impl Parameters {
    /// Parameters of the end of `beginning`, which sends as `ours` says and receives what `theirs` says: flows, system
    /// and window.
    pub fn new(
        ours: (&FlowConfig, System, u16),
        theirs: (&FlowConfig, System, u16),
        beginning: &EntityBeginning<'_>,
    ) -> Parameters {
        let end = beginning.end;
        let sends = ours.0.sends(end, ours.1, ours.2, beginning.sends.timeslots);
        Parameters {
            access: AccessOptions::new(ours.0, end == End::Server, sends.acknowledged),
            sends,
            receives: theirs.0.receives(end, theirs.1, theirs.2),
            acknowledges: theirs.0.mode == Mode::Acknowledged,
            scheme: 0,
            repetition: 0,
            indicators: Indicators::Gprs,
        }
    }
}

/// One end of a link with RLC.
#[derive(Clone, Debug)]
pub struct Rlc {
    end: End,
    /// Beginning of the last frame.
    last_sent: Time,
    schemes: &'static Schemes,
    acknowledges: bool,
    sender: Sender<Chunk>,
    access: Access,
    packets: Packets,
    receiver: Receiver<Chunk>,
    assembly: StreamReceiver,
    /// The packet of the newest part that the present flow has brought in sequence.
    newest: Option<SduKey>,
    /// Answers of the mobile in reserved blocks: when, and to what.
    answers: VecDeque<(Time, Option<u32>)>,
    next_number: u64,
    signals: Vec<Signal<Chunk>>,
    in_sequence: Vec<Chunk>,
}

impl Rlc {
    /// The end of `beginning`.
    pub fn new(parameters: Parameters, beginning: &EntityBeginning<'_>) -> Rlc {
        let Parameters { access, sends, receives, acknowledges, scheme, repetition, indicators } = parameters;
        let delay = beginning.sends.allocation_delay;
        let buffer = StreamSender::new(Shape::plain(&beginning.sends), beginning.sends.send_buffer);
        Rlc {
            last_sent: Time::ZERO,
            end: beginning.end,
            schemes: sends.schemes,
            acknowledges,
            sender: Sender::new(sends, scheme, repetition),
            access: Access::new(access, delay, beginning.allocation, beginning.key),
            packets: Packets::new(buffer, indicators),
            receiver: Receiver::new(receives),
            assembly: StreamReceiver::new(Shape::plain(&beginning.receives)),
            newest: None,
            answers: VecDeque::new(),
            next_number: 0,
            signals: Vec::new(),
            in_sequence: Vec::new(),
        }
    }

    /// Changes the coding schemes of what is sent from now on.
    pub fn command(&mut self, scheme: usize, repetition: usize) {
        (self.sender.scheme, self.sender.repetition) = (scheme, repetition);
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
                    self.access.released(stage.at);
                    self.begin_anew(stage.at);
                }
                Signal::Reset => {
                    self.log_reset(stage);
                    self.packets.buffer.drop_begun(Cause::LinkReset, sdus, stage);
                    self.begin_anew(stage.at);
                }
                Signal::Contended => {
                    self.log_reset(stage);
                    self.request(stage.at);
                }
            }
        }
        self.signals = signals;
    }

    fn log_reset(&self, stage: &mut StageCx<'_, '_>) {
        self.log(LinkEvent::Reset, LinkFrame::None, None, 0, stage);
        stage.record_control(EventKind::LinkReset, 0);
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
            let poll_final = (frame == LinkFrame::RlcData || poll).then_some(poll);
            LinkRecord { frame, pdu, variables, n_s, n_r, poll_final, ..LinkRecord::new(self.end.sends(), event) }
        });
    }

    fn log_message(&self, event: LinkEvent, message: &Message, pdu: airpath_core::PduId, stage: &mut StageCx<'_, '_>) {
        match message {
            Message::Data(header, _) => {
                self.log(event, LinkFrame::RlcData, Some((Some(header.bsn), None, header.poll)), pdu, stage);
            }
            Message::Acknowledgement(told, _) => {
                self.log(event, LinkFrame::AckNack, Some((None, Some(told.v_q), told.is_final)), pdu, stage);
            }
            Message::Control(control) => self.log(event, control.frame(), None, pdu, stage),
        }
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
        match self.receiver.header(at, &header) {
            Heard::New => {
                self.assembly.restart();
                self.newest = None;
            }
            Heard::Known => {}
            Heard::Left => return true,
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
                    self.begin_packets(&chunk.pieces, sdus);
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
        if self.sender.needs_flow(stage.at) && self.access.is_idle() {
            self.request(stage.at);
        }
    }

    fn ready_at(&self) -> Time {
        let answer = self.answers.front().map_or(Time::NEVER, |(at, _)| *at);
        let access = self.access.ready_at(self.receiver.polls_until());
        self.sender.ready_at(&self.packets).min(self.receiver.acknowledgement_at()).min(answer).min(access)
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        if grant.bits.is_some_and(|most| most.get() < u64::from(self.schemes.block_bits)) {
            return None;
        }
        self.last_sent = grant.start;
        let at = grant.start;
        if let Some(frame) = self.control(grant.direction, at, sdus, stage) {
            return Some(frame);
        }
        let is_late = self.sender.waits_until().is_some_and(|until| until <= at);
        if is_late && self.access.expired(at) {
            self.log(LinkEvent::Disconnected, LinkFrame::None, None, 0, stage);
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
            Message::Acknowledgement(..) | Message::Control(_) => &self.schemes.control,
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
            Message::Acknowledgement(told, requests) => {
                self.take_acknowledgement(stage.at, &told, requests);
                self.log_message(LinkEvent::Received, &Message::Acknowledgement(told, requests), pdu, stage);
                self.heed(stage.site.direction.opposite(), sdus, stage);
            }
            Message::Control(control) => {
                self.hear_control(stage.at, control);
                self.log_message(LinkEvent::Received, &message, pdu, stage);
            }
        }
    }

    fn error_positions(&self) -> ErrorPositions {
        ErrorPositions::OfFrame
    }

    fn backlog(&self, at: Time, sdus: &Sdus) -> Backlog {
        // A frame without a packet waits since the last one was sent.
        let since = self.packets.buffer.oldest(sdus).map_or(self.last_sent, |oldest| oldest.min(self.last_sent));
        Backlog { bits: u64::from(self.ready_at() <= at), since }
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
        self.access.configure(sends.allocation_delay);
        self.sender.options.timeslots = sends.timeslots;
    }
}
