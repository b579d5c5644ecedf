// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The link of a hop: queues, entities, channels and propagation of both directions, without the medium.
//!
//! A blackout is the link's own matter: media and entities know nothing of it. A medium that asks for a
//! frame while it lasts gets none, and opportunities pass unused.

use std::collections::VecDeque;

use airpath_core::counters::Site;
use airpath_core::{Cause, Cx, Direction, DrawKey, DrawScope, EventKind, Origin, Pdu, Seed, Span, Stage, Time};

use crate::air::{Air, Backlog, Frame, Grant};
use crate::blackout::{Blackout, BlackoutConfig, InFlight};
use crate::channel::{Channel, ChannelOutcome, Transmission};
use crate::config::HopConfig;
use crate::entity::{Answer, Arrival, ErrorPositions, LinkEntity, SduKey, Sdus};
use crate::flow_control::{Gate, length_of};
use crate::impairment::Impairment;
use crate::quality::Quality;
use crate::queueing::{InputQueue, Queueing};
use crate::random::Sampler;
use crate::stage::{QueueLength, StageCx};

/// All of a hop but its medium.
pub(crate) struct Link<E> {
    pub(crate) index: u16,
    pub(crate) state: u16,
    /// The client's end and the server's.
    pub(crate) ends: [E; 2],
    pub(crate) lanes: [Lane; 2],
    pub(crate) sdus: Sdus,
    /// Messages of receiving entities to sending ones: arrival, direction of the frames they are about, and the word.
    pub(crate) feedback: VecDeque<(Time, Direction, u64)>,
    /// Packets that leave the hop in the present step.
    pub(crate) out: Leaving,
    /// Packets that a receiving entity has completed, on their way to the impairment.
    pub(crate) up: Vec<Pdu>,
}

/// Packets that leave a hop in one step, in order. The entities put theirs in without a word about the direction, which
/// is noted afterwards: a packet is not moved again for it.
#[derive(Default)]
pub(crate) struct Leaving {
    pdus: Vec<Pdu>,
    directions: Vec<Direction>,
}

impl Leaving {
    /// True if there are none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pdus.is_empty()
    }

    /// Adds a packet.
    pub(crate) fn push(&mut self, direction: Direction, pdu: Pdu) {
        self.pdus.push(pdu);
        self.directions.push(direction);
    }

    /// Notes that those without a direction travel in `direction`.
    #[inline]
    fn note(&mut self, direction: Direction) {
        while self.directions.len() < self.pdus.len() {
            self.directions.push(direction);
        }
    }

    /// Packets in `direction`.
    fn in_direction(&self, direction: Direction) -> impl Iterator<Item = &Pdu> {
        let all = self.directions.iter().zip(&self.pdus);
        all.filter(move |(way, _)| **way == direction).map(|(_, pdu)| pdu)
    }

    /// Takes all packets out, in order.
    #[inline]
    pub(crate) fn take(&mut self, mut each: impl FnMut(Direction, Pdu)) {
        // Mostly there is one, for which this costs less than to drain.
        self.pdus.reverse();
        self.directions.reverse();
        while let Some(pdu) = self.pdus.pop() {
            let Some(direction) = self.directions.pop() else { return };
            each(direction, pdu);
        }
    }
}

/// State of one direction of a hop.
pub(crate) struct Lane {
    pub(crate) queue: InputQueue,
    pub(crate) channel: Channel,
    pub(crate) propagation: Sampler<Span>,
    /// The packet for which the delay was last drawn, that delay, and how many were drawn.
    pub(crate) delayed: (Option<SduKey>, Span, u64),
    pub(crate) in_flight: VecDeque<(Time, Frame, ChannelOutcome)>,
    /// Arrival of the first of those; `Time::NEVER` if there is none.
    pub(crate) arrives: Time,
    pub(crate) impairment: Impairment,
    pub(crate) blackout: Blackout,
    /// The window of the next hop, where that has flow control.
    pub(crate) gate: Option<Box<Gate>>,
    /// Frames that a blackout has caught under transmission, to be sent again.
    pub(crate) again: VecDeque<Frame>,
    /// True if one has come to them since the medium's last step.
    pub(crate) caught_more: bool,
    /// Number of frames under transmission.
    on_air: u32,
    /// Number of those that a blackout has caught: until all of them have come back to be sent again, no other
    /// frame begins, or it would overtake them.
    caught: u32,
}

impl<E: LinkEntity> Link<E> {
    /// An idle link with `ends`, the client's and the server's. Its hop is, or is a bearer of, the one called `station`.
    pub(crate) fn new(index: u16, config: &HopConfig, station: &str, seed: Seed, ends: [E; 2]) -> Link<E> {
        Link {
            index,
            state: 0,
            ends,
            lanes: Direction::ALL.map(|direction| Lane::new(direction, config, station, seed)),
            sdus: Sdus::new(),
            feedback: VecDeque::new(),
            out: Leaving::default(),
            up: Vec::new(),
        }
    }

    pub(crate) fn stage<'a, 'b>(
        index: u16,
        state: u16,
        at: Time,
        direction: Direction,
        stage: Stage,
        cx: &'a mut Cx<'b>,
    ) -> StageCx<'a, 'b> {
        StageCx::new(Site { hop: index, direction, state, stage }, at, cx)
    }

    /// Moves packets from the queue into the send buffer while that has room; whether any moved.
    // Most of the time there is nothing to move, and a call would cost more than the look.
    #[inline(always)]
    pub(crate) fn pump(&mut self, at: Time, direction: Direction, arrival: Arrival, cx: &mut Cx<'_>) -> bool {
        self.lanes[direction as usize].queue.length().packets > 0 && self.pump_queued(at, direction, arrival, cx)
    }

    #[inline(never)]
    fn pump_queued(&mut self, at: Time, direction: Direction, mut arrival: Arrival, cx: &mut Cx<'_>) -> bool {
        let mut moved = false;
        let lane = &mut self.lanes[direction as usize];
        self.sdus.take_in(direction);
        if lane.gate.is_some() {
            return self.pump_gated(at, direction, arrival, cx);
        }
        let sender = &mut self.ends[sender(direction)];
        loop {
            let mut stage = Self::stage(self.index, self.state, at, direction, Stage::Queue, cx);
            let Some(pdu) = lane.queue.dequeue(|next| sender.has_room(next), &mut stage) else { break };
            sender.accept(pdu, arrival, &mut self.sdus, &mut stage.of(Stage::Entity));
            arrival = Arrival::FollowsOthers;
            moved = true;
        }
        moved
    }

    /// The same as far as the window of the next hop allows.
    #[cold]
    fn pump_gated(&mut self, at: Time, direction: Direction, mut arrival: Arrival, cx: &mut Cx<'_>) -> bool {
        let mut moved = false;
        loop {
            let past_queue = self.past_queue(direction);
            let lane = &mut self.lanes[direction as usize];
            let Some(gate) = &mut lane.gate else { return moved };
            let on_the_way = past_queue + gate.beyond;
            // A queue that manages its delay may drop as soon as it is asked.
            gate.is_shut = gate.window.is_full(on_the_way);
            if gate.is_shut {
                return moved;
            }
            let sender = &mut self.ends[sender(direction)];
            let mut stage = Self::stage(self.index, self.state, at, direction, Stage::Queue, cx);
            let fits = |next: &Pdu| {
                gate.is_shut = !gate.window.admits(on_the_way, next.len);
                !gate.is_shut && sender.has_room(next)
            };
            let Some(pdu) = lane.queue.dequeue(fits, &mut stage) else { return moved };
            sender.accept(pdu, arrival, &mut self.sdus, &mut stage.of(Stage::Entity));
            arrival = Arrival::FollowsOthers;
            moved = true;
        }
    }

    /// Packets in `direction` that have left the input queue and not the hop.
    fn past_queue(&self, direction: Direction) -> QueueLength {
        let leaving = self.out.in_direction(direction);
        let held_back = self.lanes[direction as usize].impairment.packets();
        length_of(self.sdus.inside_in(direction).chain(held_back).chain(leaving))
    }

    /// Begins, changes or ends a blackout.
    #[cold]
    pub(crate) fn black_out(&mut self, at: Time, direction: Direction, config: BlackoutConfig, cx: &mut Cx<'_>) {
        let lane = &mut self.lanes[direction as usize];
        let change = lane.blackout.configure(config, at);
        if change.stores_in_flight {
            lane.caught = lane.on_air;
        }
        if change.releases {
            for (arrives, ..) in lane.in_flight.iter_mut().take_while(|(arrives, ..)| *arrives < at) {
                *arrives = at;
            }
        }
        if change.drops_in_flight {
            for (arrives, _, outcome) in &mut lane.in_flight {
                *arrives = at;
                if *outcome != ChannelOutcome::Lost {
                    *outcome = ChannelOutcome::BlackedOut;
                }
            }
            // Each goes before those in flight: the last one first keeps their order.
            for frame in std::mem::take(&mut lane.again).into_iter().rev() {
                self.lose(at, direction, frame, cx);
            }
        }
        if change.drops_queued {
            let mut stage = Self::stage(self.index, self.state, at, direction, Stage::Queue, cx);
            self.ends[sender(direction)].abandon(&mut self.sdus, &mut stage.of(Stage::Entity));
            let lane = &mut self.lanes[direction as usize];
            let mut length = lane.queue.length();
            for (_, pdu) in lane.queue.hand_over() {
                length.packets -= 1;
                length.bytes -= u64::from(pdu.len);
                stage.dropped(Cause::Blackout, &pdu, length);
            }
            lane.queue.emptied(at);
        }
        self.lanes[direction as usize].note_arrival();
    }

    /// The transmission of a frame has ended that a blackout took away: the receiving end hears of it
    /// at once, before anything that is in flight.
    #[cold]
    fn lose(&mut self, at: Time, direction: Direction, frame: Frame, cx: &mut Cx<'_>) {
        let mut stage = Self::stage(self.index, self.state, at, direction, Stage::Medium, cx);
        self.ends[sender(direction)].sent(&frame, &mut self.sdus, &mut stage);
        let lane = &mut self.lanes[direction as usize];
        lane.in_flight.push_front((at, frame, ChannelOutcome::BlackedOut));
        lane.note_arrival();
    }

    /// Puts a message of the receiving entity of `direction` on its way, if it has one.
    #[inline]
    pub(crate) fn note_feedback(&mut self, at: Time, direction: Direction) {
        if let Some(feedback) = self.ends[receiver(direction)].feedback() {
            let arrives = at + feedback.after;
            let place = self.feedback.partition_point(|(other, ..)| *other <= arrives);
            self.feedback.insert(place, (arrives, direction, feedback.word));
        }
    }

    /// Arrival of the next message of a receiving entity; `Time::NEVER` if there is none.
    #[inline]
    pub(crate) fn hears_at(&self) -> Time {
        self.feedback.front().map_or(Time::NEVER, |(arrives, ..)| *arrives)
    }

    /// Lets the receiving entity of `direction` do `work`, and hands what it has completed to the way out.
    #[inline]
    pub(crate) fn collect(
        &mut self,
        at: Time,
        direction: Direction,
        cx: &mut Cx<'_>,
        work: impl FnOnce(&mut E, &mut Sdus, &mut StageCx<'_, '_>, &mut Vec<Pdu>),
    ) {
        let is_idle = self.lanes[direction as usize].impairment.is_idle();
        let mut stage = Self::stage(self.index, self.state, at, direction, Stage::Receive, cx);
        let up = if is_idle { &mut self.out.pdus } else { &mut self.up };
        work(&mut self.ends[receiver(direction)], &mut self.sdus, &mut stage, up);
        self.out.note(direction);
        if !self.up.is_empty() {
            self.impair(at, direction, cx);
        }
    }

    #[inline(never)]
    fn impair(&mut self, at: Time, direction: Direction, cx: &mut Cx<'_>) {
        let mut stage = Self::stage(self.index, self.state, at, direction, Stage::Receive, cx);
        let impairment = &mut self.lanes[direction as usize].impairment;
        for pdu in self.up.drain(..) {
            impairment.take(pdu, &mut stage, |pdu| self.out.push(direction, pdu));
        }
    }

    /// Data that waits in `direction` at `at`. What is queued behind an empty send buffer waits for a packet that is on
    /// the air.
    pub(crate) fn backlog(&self, at: Time, direction: Direction) -> Backlog {
        let lane = &self.lanes[direction as usize];
        let again: u64 = lane.again.iter().map(|frame| frame.bits.get()).sum();
        let own = self.ends[sender(direction)].backlog(at, &self.sdus);
        let waiting = own.bits + again;
        // What a window stops could not be sent, whatever the medium grants.
        let is_shut = lane.gate.as_ref().is_some_and(|gate| gate.is_shut);
        let queued = if is_shut { 0 } else { lane.queue.length().bytes * 8 };
        Backlog { bits: if waiting == 0 { 0 } else { waiting + queued }, since: own.since }
    }

    /// Number of packets inside, of any origin.
    pub(crate) fn held(&self) -> u64 {
        let queued: u64 = self.lanes.iter().map(|lane| u64::from(lane.queue.length().packets)).sum();
        let held_back: u64 = self.lanes.iter().map(|lane| lane.impairment.packets().count() as u64).sum();
        queued + held_back + self.under_way(|_| true)
    }

    /// Number of packets of `origin` inside. Queues tell packets apart only as they give them away: this copies
    /// them, and is not for every packet.
    pub(crate) fn held_of(&self, origin: Origin) -> u64 {
        let of_origin = |pdu: &Pdu| pdu.origin == origin;
        let in_lane = |lane: &Lane| {
            let held_back = lane.impairment.packets().filter(|pdu| of_origin(pdu)).count();
            if lane.queue.length().packets == 0 {
                return held_back as u64;
            }
            let queued = lane.queue.clone().hand_over().iter().filter(|(_, pdu)| of_origin(pdu)).count();
            (held_back + queued) as u64
        };
        self.lanes.iter().map(in_lane).sum::<u64>() + self.under_way(of_origin)
    }

    /// Number of packets between send buffer and way out that pass `filter`.
    fn under_way(&self, filter: impl Fn(&Pdu) -> bool) -> u64 {
        self.sdus.inside().filter(|pdu| filter(pdu)).count() as u64
    }

    /// True if no packet waits for transmission or is under way to the other end.
    pub(crate) fn is_empty(&self) -> bool {
        self.sdus.is_empty() && self.lanes.iter().all(|lane| lane.queue.length().packets == 0)
    }
}

pub(crate) const fn sender(direction: Direction) -> usize {
    direction as usize
}

pub(crate) const fn receiver(direction: Direction) -> usize {
    1 - direction as usize
}

/// The medium's view of the link during a step.
pub(crate) struct OnAir<'a, 'b, 'c, E> {
    pub(crate) link: &'a mut Link<E>,
    pub(crate) cx: &'b mut Cx<'c>,
}

impl<E: LinkEntity> Air for OnAir<'_, '_, '_, E> {
    fn backlog(&mut self, at: Time, _bearer: u16, direction: Direction) -> Backlog {
        self.link.pump(at, direction, Arrival::FollowsOthers, self.cx);
        self.link.backlog(at, direction)
    }

    fn next_frame(&mut self, grant: &Grant) -> Option<Frame> {
        let direction = grant.direction;
        let lane = &self.link.lanes[direction as usize];
        if lane.blackout.is_on() || lane.caught > 0 {
            return None;
        }
        let frame = if !lane.again.is_empty() {
            self.frame_again(grant)
        } else {
            self.link.pump(grant.start, direction, Arrival::FollowsOthers, self.cx);
            let link = &mut *self.link;
            let mut stage = Link::<E>::stage(link.index, link.state, grant.start, direction, Stage::Medium, self.cx);
            link.ends[sender(direction)].next_frame(grant, &mut link.sdus, &mut stage)
        };
        self.link.lanes[direction as usize].on_air += u32::from(frame.is_some());
        frame
    }

    #[inline]
    fn sent_at(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        self.end::<false>(at, grant, frame, quality)
    }

    fn sent_acknowledged(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool {
        self.end::<true>(at, grant, frame, quality)
    }
}

impl<E: LinkEntity> OnAir<'_, '_, '_, E> {
    /// Ends the transmission of `frame`. The sending entity hears of the outcome at once if `ACKNOWLEDGED`.
    #[inline(always)]
    fn end<const ACKNOWLEDGED: bool>(
        &mut self,
        at: Time,
        grant: &Grant,
        frame: Frame,
        quality: Option<&Quality>,
    ) -> bool {
        let direction = grant.direction;
        let link = &mut *self.link;
        let lane = &mut link.lanes[direction as usize];
        lane.on_air -= 1;
        // A frame may begin at the instant of a blackout that has ended at once, and is none of those that it caught.
        let is_caught = lane.caught > 0;
        lane.caught = lane.caught.saturating_sub(1);
        match lane.blackout.fate(grant.start) {
            InFlight::Pass => {}
            InFlight::Store if !is_caught => {}
            InFlight::Store => {
                lane.caught_more = true;
                lane.again.push_back(frame);
                return false;
            }
            InFlight::Drop => {
                if ACKNOWLEDGED {
                    link.ends[sender(direction)].acknowledged(&frame, Answer::default());
                }
                link.lose(at, direction, frame, self.cx);
                return false;
            }
        }
        let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Medium, self.cx);
        link.ends[sender(direction)].sent(&frame, &mut link.sdus, &mut stage);
        let lane = &mut link.lanes[direction as usize];
        let positions = link.ends[sender(direction)].error_positions();
        // The errors of the link draw whatever those of the radio channel hit, so that these redraw nothing.
        let own = lane.outcome(lane.channel.judged_at(grant.start, at), &frame, positions, &link.sdus);
        let radio = quality.and_then(|quality| link.ends[receiver(direction)].hit(&frame, quality));
        let outcome = radio.unwrap_or(own);
        let arrives = at + lane.delay(at, &frame);
        // Order is kept when a change of parameters shortens the delay.
        let arrives = lane.in_flight.back().map_or(arrives, |(last, ..)| arrives.max(*last));
        let mut is_received = outcome == ChannelOutcome::Ok;
        if ACKNOWLEDGED {
            let answer = link.ends[receiver(direction)].answer(&frame, &outcome);
            is_received = answer.is_received;
            link.ends[sender(direction)].acknowledged(&frame, answer);
        }
        lane.in_flight.push_back((arrives, frame, outcome));
        lane.note_arrival();
        is_received
    }

    /// The first frame that has to be sent again, if the grant is long enough for it.
    #[cold]
    fn frame_again(&mut self, grant: &Grant) -> Option<Frame> {
        let link = &mut *self.link;
        let lane = &mut link.lanes[grant.direction as usize];
        let frame = lane.again.pop_front_if(|frame| grant.bits.is_none_or(|most| frame.bits <= most))?;
        let mut stage = Link::<E>::stage(link.index, link.state, grant.start, grant.direction, Stage::Medium, self.cx);
        // Where the link repeats of itself, the packet may be gone.
        match frame.pieces.first().and_then(|piece| link.sdus.get(piece.sdu)) {
            Some(sdu) => {
                let length = QueueLength::default();
                stage.record(EventKind::FrameStarted, Cause::None, &sdu.pdu, frame.bits.get(), length);
            }
            None => stage.record_control(EventKind::FrameStarted, frame.bits.get()),
        }
        Some(frame)
    }
}

impl Lane {
    /// An empty lane with the parameters of `config`. What follows from the time alone is drawn for the whole station,
    /// so that equal processes of its bearers are one.
    fn new(direction: Direction, config: &HopConfig, station: &str, seed: Seed) -> Lane {
        let link = config.link(direction);
        let of = |hop, role| DrawKey::new(seed, &DrawScope { hop, direction, role, instance: 0 });
        let key = |role| of(&config.name, role);
        let timed_key = |role, is_timed| of(if is_timed { station } else { &config.name }, role);
        Lane {
            queue: InputQueue::new(&link.queue, key("queue"), direction),
            channel: Channel::new(&link.errors, timed_key("channel", link.errors.is_timed()), key("channel flips")),
            propagation: Sampler::new(&link.propagation, timed_key("propagation", link.propagation.is_timed())),
            delayed: (None, Span::ZERO, 0),
            in_flight: VecDeque::new(),
            arrives: Time::NEVER,
            impairment: Impairment::new(
                link.reorder.as_ref(),
                link.duplicate.as_ref(),
                [key("reorder"), key("duplicate")],
            ),
            blackout: Blackout::new(link.blackout),
            gate: None,
            again: VecDeque::new(),
            caught_more: false,
            on_air: 0,
            caught: 0,
        }
    }

    /// Notes when the first frame in flight arrives, if a blackout does not keep it.
    #[inline]
    pub(crate) fn note_arrival(&mut self) {
        self.arrives = match self.in_flight.front() {
            // What is lost already waits for nothing.
            Some((arrives, _, outcome))
                if !self.blackout.holds_in_flight() || *outcome == ChannelOutcome::BlackedOut =>
            {
                *arrives
            }
            _ => Time::NEVER,
        };
    }

    /// The propagation delay of `frame`, sent at `at`: one draw for all frames of a packet, unless the parameters
    /// change between them.
    fn delay(&mut self, at: Time, frame: &Frame) -> Span {
        if let Some(delay) = self.propagation.constant() {
            return delay;
        }
        let piece = frame.pieces.first();
        let (last, delay, draws) = &mut self.delayed;
        if last.is_none() || piece.map(|piece| piece.sdu) != *last {
            *delay = self.propagation.draw_at(*draws, at);
            *draws += 1;
        }
        // What comes behind its last frame is another packet.
        *last = piece.filter(|piece| !piece.last).map(|piece| piece.sdu);
        *delay
    }

    /// True if a packet that comes from `at` on is only queued, transmitted and propagated, and may be lost.
    pub(crate) fn is_plain(&self, at: Time) -> bool {
        let is_empty = self.in_flight.is_empty() && self.again.is_empty() && self.on_air == 0;
        let passes = self.impairment.is_idle() && self.impairment.next_deadline() == Time::NEVER;
        let works = !self.blackout.is_on() && self.blackout.fate(at) == InFlight::Pass && self.caught == 0;
        is_empty && passes && works && self.gate.is_none() && self.channel.only_loses()
    }

    /// Notes what is in flight and on the air, where both have come from elsewhere.
    pub(crate) fn go_on(&mut self, on_air: bool) {
        self.on_air = u32::from(on_air);
        self.note_arrival();
    }

    /// The propagation delay of a packet that was sent whole at `at`.
    #[inline]
    pub(crate) fn delay_of_packet(&mut self, at: Time) -> Span {
        if let Some(delay) = self.propagation.constant() {
            return delay;
        }
        let (_, _, draws) = &mut self.delayed;
        let delay = self.propagation.draw_at(*draws, at);
        *draws += 1;
        self.delayed = (None, delay, *draws);
        delay
    }

    /// True if a channel that does no more than lose takes away a packet that was sent whole, in `bits` on the air from
    /// `start` to `end`.
    #[inline]
    pub(crate) fn loses(&mut self, start: Time, end: Time, bits: u64, pdu: &Pdu) -> bool {
        if self.channel.is_error_free() {
            return false;
        }
        let packet_bits = pdu.bits().get() as u32;
        let whole = Transmission { bits, first_bit: 0, packet_bits, header_bits: u32::from(pdu.header_len) * 8 };
        let judged_at = self.channel.judged_at(start, end);
        self.channel.outcome(judged_at, &whole, Some(&whole)) == ChannelOutcome::Lost
    }

    /// Outcome of `frame`, which the channel judges by the time `at`.
    #[inline]
    fn outcome(&mut self, at: Time, frame: &Frame, positions: ErrorPositions, sdus: &Sdus) -> ChannelOutcome {
        let pdu = || Some(&sdus.get(frame.pieces.first()?.sdu)?.pdu);
        if self.channel.is_error_free() || self.channel.spares(pdu) {
            return ChannelOutcome::Ok;
        }
        let on_air = frame.bits.get();
        if positions == ErrorPositions::OfFrame {
            let whole = Transmission { bits: on_air, first_bit: 0, packet_bits: on_air as u32, header_bits: 0 };
            return self.channel.outcome(at, &whole, None);
        }
        let Some(piece) = frame.pieces.first() else {
            let control = Transmission { bits: on_air, first_bit: 0, packet_bits: 0, header_bits: 0 };
            return self.channel.outcome(at, &control, None);
        };
        let part = Transmission {
            bits: on_air,
            first_bit: piece.first_bit,
            packet_bits: piece.bits,
            header_bits: piece.header_bits,
        };
        let whole = Transmission { first_bit: 0, packet_bits: piece.packet_bits, ..part };
        self.channel.outcome(at, &part, piece.last.then_some(&whole))
    }
}
