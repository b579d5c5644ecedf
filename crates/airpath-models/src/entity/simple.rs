// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The simple link entity: framing, buffers and allocation delay, without recovery.
//!
//! Source: Kojo et al. 2001, section 4.3 (link send buffer, link receive buffer, fragmentation,
//! allocation delay, error modes). Each packet becomes `ceil((length x compression + overhead) /
//! frame payload)` frames. The send buffer counts a packet until its last frame has been
//! transmitted. A packet that meets a link with an empty send buffer waits for the allocation delay
//! before its first frame. The receiving end holds frames of incomplete packets and, where errors
//! delay, frames that wait for their time or their turn; a frame that finds no room there is dropped,
//! and its packet with it. A packet larger than the whole send buffer is taken when that is empty.

use std::collections::{BTreeMap, VecDeque};

use airpath_core::{Bits, BufferLimit, Cause, DrawKey, EventKind, Pdu, Ratio, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smallvec::smallvec;

use super::losses::cause_of_loss;
use super::{
    Arrival, EntityBeginning, EntityParameters, Foresight, Fragmentation, LastFrame, LinkEntity, OwnFrames, Sdu,
    SduKey, Sdus,
};
use crate::air::{Backlog, Frame, Grant, Piece};
use crate::channel::ChannelOutcome;
use crate::random::Sampler;
use crate::registry::{Configured, Reconfigured};
use crate::stage::{QueueLength, StageCx};

/// Framing, buffers and allocation delay, without recovery. All its parameters are those of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimpleConfig {}

impl Configured<EntityBeginning<'_>> for SimpleConfig {
    type Model = Simple;

    fn build(&self, beginning: EntityBeginning<'_>) -> Simple {
        Simple::new(&beginning.sends, &beginning.receives, beginning.allocation)
    }

    fn examples() -> Vec<SimpleConfig> {
        vec![SimpleConfig {}]
    }
}

impl Reconfigured<EntityBeginning<'_>> for SimpleConfig {
    fn configure(&self, _entity: &mut Simple, _at: Time) {}
}

impl OwnFrames for SimpleConfig {
    const OWN_FRAMES: bool = false;
}

/// Division of packets into frames.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    overhead: Bits,
    compression: Ratio,
    fragmentation: Option<Fragmentation>,
}

impl Framing {
    fn of(link: &EntityParameters<'_>) -> Framing {
        Framing { overhead: link.overhead, compression: link.compression, fragmentation: link.fragmentation }
    }

    /// The packet's bits on the link before fragmentation.
    #[inline]
    pub(crate) fn link_bits(&self, bits: Bits) -> u64 {
        (self.compression.of(bits) + self.overhead).get()
    }

    /// Bits on the air of all frames of a packet of `link_bits`.
    fn on_air(&self, link_bits: u64) -> Bits {
        let Some(Fragmentation { frame_payload, frame_header, last_frame }) = self.fragmentation else {
            return Bits::new(link_bits);
        };
        let frames = u64::from(self.frames(link_bits));
        let payload = if last_frame == LastFrame::Padded { frames * frame_payload.get() } else { link_bits };
        Bits::new(payload + frames * frame_header.get())
    }

    fn frames(&self, link_bits: u64) -> u32 {
        match self.fragmentation {
            None => 1,
            Some(fragmentation) => link_bits.div_ceil(fragmentation.frame_payload.get()).max(1) as u32,
        }
    }

    /// Bits on the air of frame `index` of a packet of `link_bits`, and the link bits before and
    /// after it.
    fn frame(&self, link_bits: u64, index: u32) -> (Bits, u64, u64) {
        match self.fragmentation {
            None => (Bits::new(link_bits), 0, link_bits),
            Some(Fragmentation { frame_payload, frame_header, last_frame }) => {
                let from = u64::from(index) * frame_payload.get();
                let to = (from + frame_payload.get()).min(link_bits);
                let payload = if last_frame == LastFrame::Padded { frame_payload.get() } else { to - from };
                (Bits::new(payload) + frame_header, from, to)
            }
        }
    }
}

/// A packet in the send buffer.
#[derive(Clone, Copy, Debug)]
struct Sending {
    sdu: SduKey,
    pdu: u64,
    packet_bits: u64,
    header_bits: u32,
    link_bits: u64,
    framing: Framing,
    frames: u32,
    started: u32,
    sent: u32,
}

impl Sending {
    /// The part of the packet that lies in link bits `from` to `to`. The overhead comes first; a
    /// compressed bit stands for its proportional place in the packet.
    fn packet_range(&self, from: u64, to: u64) -> (u32, u32) {
        let overhead = self.framing.overhead.get();
        let body = self.link_bits - overhead;
        let place = |link_bit: u64| -> u64 {
            let bit = link_bit.saturating_sub(overhead);
            if body == self.packet_bits {
                bit
            } else {
                (u128::from(bit) * u128::from(self.packet_bits) / u128::from(body.max(1))) as u64
            }
        };
        let (from, to) = (place(from), place(to));
        (from as u32, (to - from) as u32)
    }
}

/// A frame at the receiving end that waits for its time or its turn.
#[derive(Clone, Debug)]
struct Waiting {
    frame: Frame,
    outcome: ChannelOutcome,
}

/// Flips bits of a packet, those that are still there.
fn flip(sdu: &mut Sdu, positions: &[u32], stage: &mut StageCx<'_, '_>) {
    let cut = sdu.pdu.damage.as_ref().and_then(|damage| damage.truncated_to);
    let left = cut.map_or(u32::MAX, |bytes| bytes * 8);
    let there = &positions[..positions.partition_point(|position| *position < left)];
    if !there.is_empty() {
        let count = there.len() as u64;
        stage.record(EventKind::Damaged, Cause::None, &sdu.pdu, count, QueueLength::default());
        sdu.pdu.flip(there);
    }
}

/// A simple link entity.
#[derive(Clone, Debug)]
pub struct Simple {
    // Sending.
    framing: Framing,
    send_buffer: BufferLimit,
    allocation_delay: Sampler<Span>,
    /// Number of allocations.
    allocations: u64,
    buffer: VecDeque<Sending>,
    /// Number of packets at the front of the buffer with all their frames on the air or behind them.
    started: usize,
    buffered_frames: u64,
    buffered_bytes: u64,
    ready_at: Time,
    next_number: u64,
    // Receiving.
    receive_buffer: BufferLimit,
    held_packets: u64,
    held_frames: u64,
    held_bits: u64,
    in_order: VecDeque<(Time, Waiting)>,
    out_of_order: BTreeMap<(Time, u64), Waiting>,
    /// Due time of the first of those that wait; `Time::NEVER` if none is.
    next_waiting: Time,
}

impl Simple {
    /// An idle entity that sends as `sends` says and receives as `receives` says; its allocation delays
    /// are draws of `key`.
    pub fn new(sends: &EntityParameters<'_>, receives: &EntityParameters<'_>, key: DrawKey) -> Simple {
        Simple {
            framing: Framing::of(sends),
            send_buffer: sends.send_buffer,
            allocation_delay: Sampler::new(sends.allocation_delay, key),
            allocations: 0,
            buffer: VecDeque::new(),
            started: 0,
            buffered_frames: 0,
            buffered_bytes: 0,
            ready_at: Time::NEVER,
            next_number: 0,
            receive_buffer: receives.receive_buffer,
            held_packets: 0,
            held_frames: 0,
            held_bits: 0,
            in_order: VecDeque::new(),
            out_of_order: BTreeMap::new(),
            next_waiting: Time::NEVER,
        }
    }

    /// Wait of the packet that meets an empty link at `at`.
    fn allocate(&mut self, at: Time) -> Span {
        let delay = self.allocation_delay.draw_at(self.allocations, at);
        self.allocations += 1;
        delay
    }

    /// True if the receive buffer takes one more frame of `sdu` with `bits` of payload.
    fn receive_room(&self, sdu: &Sdu, bits: u64) -> bool {
        match self.receive_buffer {
            BufferLimit::Unlimited => true,
            BufferLimit::Packets(limit) => sdu.buffered > 0 || self.held_packets < u64::from(limit),
            BufferLimit::Frames(limit) => self.held_frames < u64::from(limit),
            BufferLimit::Bytes(limit) => self.held_bits + bits <= limit.saturating_mul(8),
        }
    }

    fn hold(&mut self, sdu: &mut Sdu, bits: u64) {
        self.held_packets += u64::from(sdu.buffered == 0);
        self.held_frames += 1;
        self.held_bits += bits;
        sdu.buffered += 1;
        sdu.buffered_bits += bits;
    }

    fn release(&mut self, sdu: &mut Sdu) {
        self.held_packets -= u64::from(sdu.buffered > 0);
        self.held_frames -= u64::from(sdu.buffered);
        self.held_bits -= sdu.buffered_bits;
        sdu.buffered = 0;
        sdu.buffered_bits = 0;
    }

    /// A frame that has arrived in every sense: its packet is complete, or waits for more.
    fn take(
        &mut self,
        waited: bool,
        frame: &Frame,
        outcome: &ChannelOutcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    ) {
        for piece in &frame.pieces {
            let sdu = &mut sdus[piece.sdu];
            sdu.accounted += 1;
            let mut lost = None;
            match outcome {
                // Behind a cut nothing is missed.
                ChannelOutcome::Lost if sdu.cut => {}
                ChannelOutcome::Lost | ChannelOutcome::BlackedOut => lost = cause_of_loss(outcome),
                ChannelOutcome::Flipped(positions) if sdu.is_inside() => flip(sdu, positions, stage),
                ChannelOutcome::Truncated { bytes, flips } if sdu.is_inside() => {
                    flip(sdu, flips, stage);
                    if sdu.pdu.truncate(*bytes) {
                        sdu.cut = true;
                        let left = u64::from(*bytes) * 8;
                        stage.record(EventKind::Truncated, Cause::None, &sdu.pdu, left, QueueLength::default());
                    }
                }
                _ => {}
            }
            let complete = sdu.accounted == sdu.parts;
            if lost.is_none() && sdu.is_inside() && !complete && !waited {
                if self.receive_room(sdu, u64::from(piece.bits)) {
                    self.hold(sdu, u64::from(piece.bits));
                } else {
                    lost = Some(Cause::ReceiveBuffer);
                }
            }
            if complete || lost.is_some() || sdu.is_lost() {
                self.release(sdu);
            }
            if let Some(cause) = lost {
                sdus.lose(piece.sdu, cause, stage);
            }
            if complete {
                // Not `extend`, which reserves room first.
                if let Some(pdu) = sdus.finish(piece.sdu) {
                    up.push(pdu);
                }
            }
        }
    }

    fn note_waiting(&mut self) {
        let in_order = self.in_order.front().map_or(Time::NEVER, |(due, _)| *due);
        let out_of_order = self.out_of_order.first_key_value().map_or(Time::NEVER, |((due, _), _)| *due);
        self.next_waiting = in_order.min(out_of_order);
    }

    /// Puts a frame aside until `due`; without room for it, it is taken at once as lost.
    fn wait(
        &mut self,
        due: Time,
        keep_order: bool,
        frame: Frame,
        outcome: ChannelOutcome,
        sdus: &mut Sdus,
    ) -> Option<(Frame, Cause)> {
        for piece in &frame.pieces {
            let sdu = &mut sdus[piece.sdu];
            if sdu.is_lost() {
                continue;
            }
            if !self.receive_room(sdu, u64::from(piece.bits)) {
                return Some((frame, Cause::ReceiveBuffer));
            }
            self.hold(sdu, u64::from(piece.bits));
        }
        if keep_order {
            self.in_order.push_back((due, Waiting { frame, outcome }));
        } else {
            self.out_of_order.insert((due, frame.number), Waiting { frame, outcome });
        }
        self.note_waiting();
        None
    }
}

impl LinkEntity for Simple {
    fn has_room(&self, next: &Pdu) -> bool {
        if self.buffer.is_empty() {
            return true;
        }
        match self.send_buffer {
            BufferLimit::Unlimited => true,
            BufferLimit::Packets(limit) => self.buffer.len() < limit as usize,
            BufferLimit::Frames(limit) => {
                let frames = self.framing.frames(self.framing.link_bits(next.bits()));
                self.buffered_frames + u64::from(frames) <= u64::from(limit)
            }
            BufferLimit::Bytes(limit) => self.buffered_bytes + u64::from(next.len) <= limit,
        }
    }

    fn waiting(&self) -> QueueLength {
        let waiting = self.buffer.iter().skip(self.started).filter(|sending| sending.started == 0);
        let add = |sum: QueueLength, sending: &Sending| QueueLength {
            packets: sum.packets + 1,
            bytes: sum.bytes + sending.packet_bits / 8,
        };
        waiting.fold(QueueLength::default(), add)
    }

    fn bits_on_air(&self, bytes: u32) -> Bits {
        self.framing.on_air(self.framing.link_bits(Bits::from_bytes(u64::from(bytes))))
    }

    fn accept(&mut self, pdu: Pdu, arrival: Arrival, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        let link_bits = self.framing.link_bits(pdu.bits());
        let frames = self.framing.frames(link_bits);
        if self.buffer.is_empty() {
            self.ready_at = stage.at;
            let delay = if arrival == Arrival::MeetsEmptyLink { self.allocate(stage.at) } else { Span::ZERO };
            if delay > Span::ZERO {
                self.ready_at += delay;
                stage.record(EventKind::AllocationStarted, Cause::None, &pdu, link_bits, QueueLength::default());
            }
        }
        self.buffered_frames += u64::from(frames);
        self.buffered_bytes += u64::from(pdu.len);
        let (id, packet_bits) = (pdu.id, pdu.bits().get());
        let header_bits = u32::from(pdu.header_len) * 8;
        let sdu = sdus.insert(pdu, frames);
        self.buffer.push_back(Sending {
            sdu,
            pdu: id,
            packet_bits,
            header_bits,
            link_bits,
            framing: self.framing,
            frames,
            started: 0,
            sent: 0,
        });
    }

    #[inline]
    fn backlog(&self, _at: Time, sdus: &Sdus) -> Backlog {
        let mut waiting = self.buffer.iter().skip(self.started);
        let Some(first) = waiting.next() else { return Backlog { bits: 0, since: Time::NEVER } };
        let left = |sending: &Sending| {
            let (_, from, _) = sending.framing.frame(sending.link_bits, sending.started);
            sending.framing.on_air(sending.link_bits - from).get()
        };
        let bits = left(first) + waiting.map(left).sum::<u64>();
        Backlog { bits, since: sdus.get(first.sdu).map_or(Time::NEVER, |sdu| sdu.pdu.arrived) }
    }

    fn ready_at(&self) -> Time {
        // Only packets whose frames are all on the air have nothing to send.
        if self.started < self.buffer.len() { self.ready_at } else { Time::NEVER }
    }

    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame> {
        if grant.start < self.ready_at {
            return None;
        }
        let sending = self.buffer.get_mut(self.started)?;
        let (bits, from, to) = sending.framing.frame(sending.link_bits, sending.started);
        if grant.bits.is_some_and(|most| bits > most) {
            return None;
        }
        sending.started += 1;
        self.started += usize::from(sending.started == sending.frames);
        let (first_bit, packet_bits) = sending.packet_range(from, to);
        let piece = Piece {
            sdu: sending.sdu,
            pdu: sending.pdu,
            first_bit,
            bits: packet_bits,
            last: sending.started == sending.frames,
            packet_bits: sending.packet_bits as u32,
            header_bits: sending.header_bits,
            link_bits: (to - from) as u32,
        };
        let number = self.next_number;
        self.next_number += 1;
        stage.record(EventKind::FrameStarted, Cause::None, &sdus[sending.sdu].pdu, bits.get(), QueueLength::default());
        Some(Frame { number, bits, pieces: smallvec![piece], words: None })
    }

    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        for piece in &frame.pieces {
            stage.record(
                EventKind::FrameSent,
                Cause::None,
                &sdus[piece.sdu].pdu,
                frame.bits.get(),
                QueueLength::default(),
            );
            let under_way = |sending: &&mut Sending| sending.sdu == piece.sdu && sending.sent < sending.frames;
            // With one grant at a time it is the first.
            let first = self.buffer.front_mut().filter(under_way).is_some();
            let sending = if first { self.buffer.front_mut() } else { self.buffer.iter_mut().find(under_way) };
            if let Some(sending) = sending {
                sending.sent += 1;
            }
        }
        // With several grants at once a later packet may end first; room is made in order.
        while let Some(first) = self.buffer.front().filter(|first| first.sent == first.frames) {
            self.buffered_frames -= u64::from(first.frames);
            self.buffered_bytes -= first.packet_bits / 8;
            self.started -= 1;
            self.buffer.pop_front();
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
        if let Some(piece) = frame.pieces.first() {
            let kind = match outcome {
                ChannelOutcome::Lost | ChannelOutcome::BlackedOut => Some(EventKind::FrameLost),
                ChannelOutcome::Delayed { .. } => Some(EventKind::FrameDelayed),
                ChannelOutcome::Ok | ChannelOutcome::Flipped(_) | ChannelOutcome::Truncated { .. } => None,
            };
            if let Some(kind) = kind {
                stage.of(airpath_core::Stage::Channel).record(
                    kind,
                    Cause::None,
                    &sdus[piece.sdu].pdu,
                    frame.bits.get(),
                    QueueLength::default(),
                );
            }
        }
        let behind = self.in_order.back().map(|(due, _)| *due);
        let (due, keep_order) = match outcome {
            ChannelOutcome::Lost | ChannelOutcome::BlackedOut => (stage.at, false),
            ChannelOutcome::Delayed { by, keep_order: true } => ((stage.at + by).max(behind.unwrap_or(stage.at)), true),
            ChannelOutcome::Delayed { by, keep_order: false } => (stage.at + by, false),
            ChannelOutcome::Ok | ChannelOutcome::Flipped(_) | ChannelOutcome::Truncated { .. } => {
                (behind.unwrap_or(stage.at).max(stage.at), true)
            }
        };
        if due == stage.at && (behind.is_none() || !keep_order) {
            return self.take(false, &frame, &outcome, sdus, stage, up);
        }
        if let Some((frame, cause)) = self.wait(due, keep_order, frame, outcome, sdus) {
            for piece in &frame.pieces {
                sdus.lose(piece.sdu, cause, stage);
            }
            self.take(false, &frame, &ChannelOutcome::Ok, sdus, stage, up);
        }
    }

    fn foresee<'a>(&self, frame: &Frame, outcome: &ChannelOutcome, sdus: &'a Sdus) -> Foresight<'a> {
        let [piece] = frame.pieces.as_slice() else { return Foresight::Unknown };
        // A packet of one frame is complete at once, whatever the receive buffer holds.
        match (sdus.get(piece.sdu).filter(|sdu| sdu.parts == 1 && sdu.is_inside()), outcome) {
            (Some(sdu), ChannelOutcome::Ok) if self.in_order.is_empty() => Foresight::Packet(&sdu.pdu),
            (Some(_), ChannelOutcome::Lost) => Foresight::Nothing,
            _ => Foresight::Unknown,
        }
    }

    fn whole_packets(&self) -> Option<Framing> {
        let sends_at_once = self.framing.fragmentation.is_none()
            && self.send_buffer == BufferLimit::Packets(1)
            && self.allocation_delay.constant() == Some(Span::ZERO);
        let is_idle = self.buffer.is_empty() && self.next_waiting == Time::NEVER;
        (sends_at_once && is_idle).then_some(self.framing)
    }

    fn note_allocations(&mut self, allocations: u64) {
        self.allocations += allocations;
    }

    #[inline]
    fn next_deadline(&self) -> Time {
        self.next_waiting
    }

    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>) {
        while self.next_waiting <= stage.at {
            let in_order = self.in_order.front().map_or(Time::NEVER, |(due, _)| *due);
            let waiting = if in_order <= stage.at {
                self.in_order.pop_front().map(|(_, waiting)| waiting)
            } else {
                self.out_of_order.pop_first().map(|(_, waiting)| waiting)
            };
            let Some(Waiting { frame, outcome }) = waiting else { return };
            self.note_waiting();
            self.take(true, &frame, &outcome, sdus, stage, up);
        }
    }

    fn abandon(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        // Frames start in order, so those of which none has are the last.
        let first = self.buffer.partition_point(|sending| sending.started > 0);
        for sending in self.buffer.drain(first..) {
            self.buffered_frames -= u64::from(sending.frames);
            self.buffered_bytes -= sending.packet_bits / 8;
            sdus.release(sending.sdu, Cause::Blackout, stage);
        }
    }

    fn configure(&mut self, _at: Time, sends: &EntityParameters<'_>, receives: &EntityParameters<'_>) {
        self.framing = Framing::of(sends);
        self.send_buffer = sends.send_buffer;
        self.allocation_delay.configure(sends.allocation_delay);
        self.receive_buffer = receives.receive_buffer;
    }
}
