// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The naïve simulation of one direction of one hop.

use airpath_core::{BufferLimit, Cause, LinkRate, Probability, QueueLimit, Span};
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, Per};
use airpath_models::queueing::QueueConfig;
use airpath_models::{LastFrame, LinkConfig};

/// A packet in the reference.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub id: u64,
    pub len: u64,
}

/// A packet in the send buffer: the bits on the air and the payload bits of each of its frames.
struct Sending {
    packet: Packet,
    frames: Vec<(u64, u64)>,
    started: usize,
}

/// A frame on its way or at the receiver.
#[derive(Clone, Copy, Debug)]
struct Flying {
    time: u64,
    number: u64,
    packet: Packet,
    payload: u64,
    last: bool,
    hit: bool,
    keep_order: bool,
}

#[derive(Default)]
pub struct Reference {
    now: u64,
    queue: Vec<(u64, Packet)>,
    limited_since: u64,
    buffer: Vec<Sending>,
    ready: u64,
    on_air: Option<(u64, Flying)>,
    /// The busy period: where it began, in whole nanoseconds and parts of one, its rate and bits.
    busy_since: u64,
    busy_parts: u128,
    busy_rate: u128,
    busy_bits: u128,
    last_end: u64,
    flying: Vec<Flying>,
    /// Frames that wait for their turn; a frame of a lost packet still keeps its turn.
    waiting: Vec<Flying>,
    /// Frames of incomplete packets that wait for nothing else.
    parts: Vec<(u64, u64)>,
    /// Packet, frames arrived, whether lost.
    known: Vec<(u64, usize, bool)>,
    frames_of: Vec<(u64, usize)>,
    numbers: u64,
    units: u64,
    pub delivered: Vec<(u64, Packet)>,
    pub dropped: Vec<(u64, u64, Cause)>,
}

fn limit_of(queue: &QueueConfig) -> (QueueLimit, bool) {
    match queue {
        QueueConfig::TailDrop(config) => (config.limit, false),
        QueueConfig::HeadDrop(config) => (config.limit, true),
        other => unreachable!("the reference does not know {other:?}"),
    }
}

fn nanos(span: Span) -> u64 {
    span.nanos()
}

impl Reference {
    fn drop(&mut self, id: u64, cause: Cause) {
        self.dropped.push((self.now, id, cause));
    }

    fn queued_bytes(&self) -> u64 {
        self.queue.iter().map(|(_, packet)| packet.len).sum()
    }

    fn arrive(&mut self, packet: Packet, link: &LinkConfig) {
        let (limit, head_drop) = limit_of(&link.queue);
        loop {
            let many = limit.packets.is_some_and(|most| self.queue.len() + 1 > most as usize);
            let large = limit.bytes.is_some_and(|most| self.queued_bytes() + packet.len > most);
            let cause = match (many, large) {
                (true, _) => Cause::QueuePackets,
                (_, true) => Cause::QueueBytes,
                _ => break,
            };
            let hopeless = limit.bytes.is_some_and(|most| packet.len > most);
            if !head_drop {
                return self.drop(packet.id, cause);
            } else if hopeless {
                return self.drop(packet.id, Cause::QueueBytes);
            }
            let (_, oldest) = self.queue.remove(0);
            self.drop(oldest.id, cause);
        }
        let empty = self.buffer.is_empty();
        self.queue.push((self.now, packet));
        self.fill(link);
        if empty {
            self.ready += nanos(link.allocation_delay.least());
        }
    }

    fn frames(packet: Packet, link: &LinkConfig) -> Vec<(u64, u64)> {
        let bits = packet.len * 8;
        // The ratio in exact millionths; all examples are.
        let ratio = (link.compression.get() * 1e6).round() as u64;
        let body = (bits * ratio).div_ceil(1_000_000);
        let overhead = link.overhead.get();
        let total = body + overhead;
        let packet_bits_before = |bit: u64| {
            if bit <= overhead { 0 } else { (u128::from(bit - overhead) * u128::from(bits) / u128::from(body)) as u64 }
        };
        let Some(fragmentation) = link.fragmentation else { return vec![(total, bits)] };
        let payload = fragmentation.frame_payload.get();
        let mut frames = Vec::new();
        let mut from = 0;
        while from < total || frames.is_empty() {
            let to = total.min(from + payload);
            let padded = if fragmentation.last_frame == LastFrame::Padded { payload } else { to - from };
            frames.push((padded + fragmentation.frame_header.get(), packet_bits_before(to) - packet_bits_before(from)));
            from += payload;
        }
        frames
    }

    /// Fills the send buffer from the queue.
    fn fill(&mut self, link: &LinkConfig) {
        while let Some((_, next)) = self.queue.first().copied() {
            let frames = Self::frames(next, link);
            let room = match link.send_buffer {
                BufferLimit::Unlimited => true,
                BufferLimit::Packets(most) => self.buffer.len() < most as usize,
                BufferLimit::Frames(most) => {
                    self.buffer.iter().map(|sending| sending.frames.len()).sum::<usize>() + frames.len()
                        <= most as usize
                }
                BufferLimit::Bytes(most) => {
                    self.buffer.iter().map(|sending| sending.packet.len).sum::<u64>() + next.len <= most
                }
            };
            if !room && !self.buffer.is_empty() {
                break;
            }
            if self.buffer.is_empty() {
                self.ready = self.now;
            }
            self.queue.remove(0);
            self.frames_of.push((next.id, frames.len()));
            self.buffer.push(Sending { packet: next, frames, started: 0 });
        }
    }

    /// The end of a transmission of `bits` that starts now.
    fn end_of(&mut self, bits: u64, link: &LinkConfig) -> u64 {
        let gap = self.last_end != self.now;
        let Some(LinkRate::Fixed(rate)) = link.rate.constant() else {
            if gap {
                self.busy_rate = 0;
            }
            return self.now;
        };
        let rate = u128::from(rate.bits_per_second());
        if gap || self.busy_rate == 0 {
            (self.busy_since, self.busy_parts, self.busy_rate, self.busy_bits) = (self.now, 0, rate, 0);
        } else if rate != self.busy_rate {
            let left = (self.busy_bits * 1_000_000_000 + self.busy_parts) % self.busy_rate;
            self.busy_parts = left * rate / self.busy_rate;
            (self.busy_since, self.busy_rate, self.busy_bits) = (self.now, rate, 0);
        }
        self.busy_bits += u128::from(bits);
        self.busy_since + ((self.busy_bits * 1_000_000_000 + self.busy_parts) / rate) as u64
    }

    fn hit(&mut self, last: bool, link: &LinkConfig) -> bool {
        if matches!(link.errors.process, ErrorProcessConfig::None(_)) || (link.errors.per == Per::Packet && !last) {
            return false;
        }
        self.units += 1;
        match link.errors.process {
            ErrorProcessConfig::GilbertElliott(_) => self.units.is_multiple_of(2),
            ErrorProcessConfig::Bernoulli(config) => config.probability == Probability::ONE,
            ErrorProcessConfig::None(_) => false,
            ref other => unreachable!("{other:?} is not without chance"),
        }
    }

    fn transmit(&mut self, link: &LinkConfig) {
        if let Some((end, mut frame)) = self.on_air.filter(|(end, _)| *end <= self.now) {
            self.on_air = None;
            self.last_end = end;
            if frame.last {
                self.buffer.remove(0);
            }
            frame.hit = self.hit(frame.last, link);
            frame.keep_order = link.errors.effect.keep_order;
            let latest = self.flying.last().map_or(0, |before| before.time);
            frame.time = latest.max(self.now + nanos(link.propagation.least()));
            self.flying.push(frame);
        }
        self.fill(link);
        if self.on_air.is_none() && self.ready <= self.now {
            let next = self.buffer.iter_mut().find(|sending| sending.started < sending.frames.len());
            if let Some(sending) = next {
                let (bits, payload) = sending.frames[sending.started];
                sending.started += 1;
                let (packet, last) = (sending.packet, sending.started == sending.frames.len());
                self.numbers += 1;
                let number = self.numbers;
                let frame = Flying { time: 0, number, packet, payload, last, hit: false, keep_order: true };
                self.on_air = Some((self.end_of(bits, link), frame));
            }
        }
    }

    fn is_lost(&self, id: u64) -> bool {
        self.known.iter().any(|(known, _, lost)| *known == id && *lost)
    }

    fn lose(&mut self, id: u64, cause: Cause) {
        if !self.is_lost(id) {
            self.drop(id, cause);
            self.known.push((id, 0, true));
        }
        self.parts.retain(|(packet, _)| *packet != id);
    }

    /// True if the receive buffer has room for one more frame.
    fn receiver_has_room(&self, packet: Packet, payload: u64, link: &LinkConfig) -> bool {
        let live = |id: u64| !self.is_lost(id);
        let waiting = self.waiting.iter().map(|frame| (frame.packet.id, frame.payload)).filter(|(id, _)| live(*id));
        let held: Vec<(u64, u64)> = self.parts.iter().copied().chain(waiting).collect();
        match link.receive_buffer {
            BufferLimit::Unlimited => true,
            BufferLimit::Packets(most) => {
                let mut ids: Vec<u64> = held.iter().map(|(id, _)| *id).collect();
                ids.sort_unstable();
                ids.dedup();
                ids.contains(&packet.id) || ids.len() < most as usize
            }
            BufferLimit::Frames(most) => held.len() < most as usize,
            BufferLimit::Bytes(most) => held.iter().map(|(_, bits)| bits).sum::<u64>() + payload <= most * 8,
        }
    }

    /// A frame that waits no longer, or that never has.
    fn take(&mut self, frame: Flying, lost: bool, waited: bool, link: &LinkConfig) {
        let id = frame.packet.id;
        let total = self.frames_of.iter().find(|(packet, _)| *packet == id).unwrap().1;
        if lost {
            self.lose(id, Cause::ChannelError);
        }
        self.known.push((id, 1, false));
        let arrived: usize = self.known.iter().filter(|(packet, ..)| *packet == id).map(|(_, frames, _)| frames).sum();
        if self.is_lost(id) {
            return;
        }
        if arrived == total {
            self.parts.retain(|(packet, _)| *packet != id);
            self.delivered.push((self.now, frame.packet));
        } else if waited || self.receiver_has_room(frame.packet, frame.payload, link) {
            self.parts.push((id, frame.payload));
        } else {
            self.lose(id, Cause::ReceiveBuffer);
        }
    }

    fn receive(&mut self, frame: Flying, effect: Effect, delay: u64, link: &LinkConfig) {
        let hit = |wanted| frame.hit && effect == wanted;
        if hit(Effect::Drop) {
            return self.take(frame, true, false, link);
        }
        let delayed = hit(Effect::Delay);
        let in_turn = !delayed || frame.keep_order;
        let mut due = self.now + if delayed { delay } else { 0 };
        let before = self.waiting.iter().filter(|other| other.keep_order).map(|other| other.time).max();
        if in_turn {
            due = due.max(before.unwrap_or(0));
        }
        if due == self.now && (before.is_none() || !in_turn) {
            return self.take(frame, false, false, link);
        }
        let frame = Flying { time: due, keep_order: in_turn, ..frame };
        if !self.is_lost(frame.packet.id) && !self.receiver_has_room(frame.packet, frame.payload, link) {
            self.lose(frame.packet.id, Cause::ReceiveBuffer);
            return self.take(frame, false, false, link);
        }
        self.waiting.push(frame);
    }

    fn next_due(&self, link: &LinkConfig) -> Option<u64> {
        let age = limit_of(&link.queue).0.age.map(nanos);
        let too_old = self.queue.first().and_then(|(since, _)| age.map(|age| (since + age).max(self.limited_since)));
        let start = self.on_air.is_none().then_some(()).and_then(|()| {
            let unstarted = self.buffer.iter().any(|sending| sending.started < sending.frames.len());
            unstarted.then_some(self.ready.max(self.now))
        });
        let end = self.on_air.map(|(end, _)| end);
        let frames = self.flying.iter().chain(&self.waiting).map(|frame| frame.time);
        frames.chain(too_old).chain(start).chain(end).min()
    }

    /// One round of what is due now, in the documented order.
    fn round(&mut self, link: &LinkConfig) {
        loop {
            let due = self.waiting.iter().enumerate().filter(|(_, frame)| frame.time <= self.now);
            // Those in turn first, in the order in which they came, then the others by number.
            let Some((index, frame)) = due.min_by_key(|(index, frame)| {
                let rank = if frame.keep_order { *index as u64 } else { frame.number };
                (!frame.keep_order, rank)
            }) else {
                break;
            };
            let frame = *frame;
            self.waiting.remove(index);
            // Where it had room while it waited it has it still.
            self.take(frame, false, true, link);
        }
        while self.flying.first().is_some_and(|frame| frame.time <= self.now) {
            let frame = self.flying.remove(0);
            let EffectConfig { effect, delay, .. } = &link.errors.effect;
            self.receive(frame, *effect, delay.as_ref().map_or(0, |delay| nanos(delay.least())), link);
        }
        let starts = self.on_air.is_none() && self.buffer.iter().any(|sending| sending.started < sending.frames.len());
        if self.on_air.is_some_and(|(end, _)| end <= self.now) || (starts && self.ready <= self.now) {
            self.transmit(link);
        }
        if let Some(age) = limit_of(&link.queue).0.age.map(nanos) {
            while self.queue.first().is_some_and(|(since, _)| (since + age).max(self.limited_since) <= self.now) {
                let (_, packet) = self.queue.remove(0);
                self.drop(packet.id, Cause::QueueAge);
            }
            self.fill(link);
        }
    }

    fn serve(&mut self, until: u64, link: &LinkConfig) {
        while let Some(due) = self.next_due(link).filter(|due| *due <= until) {
            self.now = due;
            self.round(link);
        }
    }
}

/// Runs one direction of one hop.
pub fn simulate(link: &LinkConfig, changes: &[(u64, LinkConfig)], arrivals: &[(u64, Packet)]) -> Reference {
    enum Input<'a> {
        Change(&'a LinkConfig),
        Arrival(Packet),
    }
    let mut inputs: Vec<(u64, Input)> = changes.iter().map(|(at, link)| (*at, Input::Change(link))).collect();
    inputs.extend(arrivals.iter().map(|(at, packet)| (*at, Input::Arrival(*packet))));
    // Stable: changes come before the arrivals of the same instant.
    inputs.sort_by_key(|(at, _)| *at);
    let mut link = link;
    let mut reference = Reference::default();
    for (at, input) in inputs {
        reference.serve(at, link);
        reference.now = at;
        match input {
            Input::Change(to) => {
                link = to;
                reference.limited_since = at;
                reference.fill(link);
            }
            Input::Arrival(packet) => reference.arrive(packet, link),
        }
    }
    reference.serve(u64::MAX, link);
    reference
}
