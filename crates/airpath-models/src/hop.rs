// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One hop: queueing, link entities, medium, channel and propagation, joined for both directions.
//!
//! Source: Kojo et al. 2001, section 4.3 and Figure 3, in a shape in which the two entities of a hop
//! can also talk to each other over the link (acknowledgements, retransmissions).
//!
//! At one instant the stages run in this order, uplink before downlink within each, until nothing is
//! due: packets that were held back or copied, releases by the receiving entities, arrivals after propagation, the medium, packets whose
//! time in the queue has run out.
//!
//! A blackout is the hop's own matter: media and entities know nothing of it. A medium that asks for a
//! frame while it lasts gets none, and opportunities pass unused.

use std::collections::VecDeque;

use airpath_core::counters::Site;
use airpath_core::{Cause, Cx, Direction, DrawKey, DrawScope, End, EventKind, Origin, Pdu, Seed, Span, Stage, Time};

use crate::air::{Air, Frame, Grant};
use crate::blackout::{Blackout, BlackoutConfig, InFlight};
use crate::channel::{Channel, ChannelOutcome, Transmission};
use crate::config::HopConfig;
use crate::entity::{Arrival, EntityBeginning, EntityModel, ErrorPositions, LinkEntity, SduKey, Sdus};
use crate::impairment::Impairment;
use crate::medium::{Medium, MediumBeginning, MediumModel};
use crate::queueing::{InputQueue, Queueing};
use crate::random::Sampler;
use crate::stage::{QueueLength, StageCx};

/// Time for which frames without packets may be left to be caught up with.
const CATCH_UP: Span = Span::from_secs(1);

/// A hop of any link entity and medium; the defaults are those that a scenario builds.
pub struct Hop<E: LinkEntity = EntityModel, M: Medium = MediumModel> {
    medium: M,
    link: Link<E>,
    /// Next due time, as of the last call that changed anything.
    due: Time,
}

/// All of a hop but its medium.
struct Link<E> {
    index: u16,
    state: u16,
    /// The client's end and the server's.
    ends: [E; 2],
    lanes: [Lane; 2],
    sdus: Sdus,
    /// Packets that leave the hop in the present step.
    out: Vec<(Direction, Pdu)>,
    up: Vec<Pdu>,
}

/// State of one direction of a hop.
struct Lane {
    queue: InputQueue,
    channel: Channel,
    propagation: Sampler<Span>,
    /// The packet for which the delay was last drawn, that delay, and how many were drawn.
    delayed: (Option<SduKey>, Span, u64),
    in_flight: VecDeque<(Time, Frame, ChannelOutcome)>,
    /// Arrival of the first of those; `Time::NEVER` if there is none.
    arrives: Time,
    impairment: Impairment,
    blackout: Blackout,
    /// Frames that a blackout has caught under transmission, to be sent again.
    again: VecDeque<Frame>,
    /// Number of frames under transmission.
    on_air: u32,
    /// Number of those that a blackout has caught: until all of them have come back to be sent again, no other
    /// frame begins, or it would overtake them.
    caught: u32,
}

impl<E: LinkEntity> Link<E> {
    fn stage<'a, 'b>(
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
    fn pump(&mut self, at: Time, direction: Direction, arrival: Arrival, cx: &mut Cx<'_>) -> bool {
        self.lanes[direction as usize].queue.length().packets > 0 && self.pump_queued(at, direction, arrival, cx)
    }

    #[inline(never)]
    fn pump_queued(&mut self, at: Time, direction: Direction, mut arrival: Arrival, cx: &mut Cx<'_>) -> bool {
        let mut moved = false;
        let lane = &mut self.lanes[direction as usize];
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

    /// Begins, changes or ends a blackout.
    #[cold]
    fn black_out(&mut self, at: Time, direction: Direction, config: BlackoutConfig, cx: &mut Cx<'_>) {
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

    /// Hands what the receiving entity has completed to the way out.
    #[inline]
    fn collect(&mut self, at: Time, direction: Direction, cx: &mut Cx<'_>) {
        if self.up.is_empty() {
            return;
        }
        if !self.lanes[direction as usize].impairment.is_idle() {
            return self.collect_impaired(at, direction, cx);
        }
        self.out.extend(self.up.drain(..).map(|pdu| (direction, pdu)));
    }

    #[inline(never)]
    fn collect_impaired(&mut self, at: Time, direction: Direction, cx: &mut Cx<'_>) {
        let mut stage = Self::stage(self.index, self.state, at, direction, Stage::Receive, cx);
        let impairment = &mut self.lanes[direction as usize].impairment;
        for pdu in self.up.drain(..) {
            impairment.take(pdu, &mut stage, |pdu| self.out.push((direction, pdu)));
        }
    }
}

const fn sender(direction: Direction) -> usize {
    direction as usize
}

const fn receiver(direction: Direction) -> usize {
    1 - direction as usize
}

/// The medium's view of the link during a step.
struct OnAir<'a, 'b, 'c, E> {
    link: &'a mut Link<E>,
    cx: &'b mut Cx<'c>,
}

impl<E: LinkEntity> Air for OnAir<'_, '_, '_, E> {
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

    fn sent(&mut self, at: Time, grant: &Grant, frame: Frame) {
        let direction = grant.direction;
        let link = &mut *self.link;
        let lane = &mut link.lanes[direction as usize];
        lane.on_air -= 1;
        lane.caught = lane.caught.saturating_sub(1);
        match lane.blackout.fate(grant.start) {
            InFlight::Pass => {}
            InFlight::Store => return lane.again.push_back(frame),
            InFlight::Drop => return link.lose(at, direction, frame, self.cx),
        }
        let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Medium, self.cx);
        link.ends[sender(direction)].sent(&frame, &mut link.sdus, &mut stage);
        let lane = &mut link.lanes[direction as usize];
        let positions = link.ends[sender(direction)].error_positions();
        let outcome = lane.outcome(lane.channel.judged_at(grant.start, at), &frame, positions);
        let arrives = at + lane.delay(at, &frame);
        // Order is kept when a change of parameters shortens the delay.
        let arrives = lane.in_flight.back().map_or(arrives, |(last, ..)| arrives.max(*last));
        lane.in_flight.push_back((arrives, frame, outcome));
        lane.note_arrival();
    }
}

impl<E: LinkEntity> OnAir<'_, '_, '_, E> {
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
    /// Notes when the first frame in flight arrives, if a blackout does not keep it.
    #[inline]
    fn note_arrival(&mut self) {
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

    /// Outcome of `frame`, which the channel judges by the time `at`.
    #[inline]
    fn outcome(&mut self, at: Time, frame: &Frame, positions: ErrorPositions) -> ChannelOutcome {
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

impl Hop {
    /// The hop that `config` describes, at the beginning; `index` is its place in the path.
    pub fn new(index: u16, config: &HopConfig, seed: Seed) -> Hop {
        let (uplink, downlink) = (&config.uplink, &config.downlink);
        let key = |role, direction| DrawKey::new(seed, &DrawScope { hop: &config.name, direction, role, instance: 0 });
        let ends = Direction::ALL.map(|direction| {
            let [sends, receives] = match direction {
                Direction::Uplink => [uplink, downlink],
                Direction::Downlink => [downlink, uplink],
            };
            let end = match direction {
                Direction::Uplink => End::Client,
                Direction::Downlink => End::Server,
            };
            let beginning = EntityBeginning {
                end,
                sends: sends.of_entity(),
                receives: receives.of_entity(),
                allocation: key("allocation", direction),
                key: key("entity", direction),
            };
            EntityModel::new(&sends.entity, beginning)
        });
        let beginning = MediumBeginning {
            links: [uplink.of_medium(), downlink.of_medium()],
            rates: Direction::ALL.map(|direction| key("rate", direction)),
            key: key("medium", Direction::Uplink),
        };
        let medium = MediumModel::new(&uplink.medium, beginning);
        Hop::with_parts(index, config, seed, ends, medium)
    }
}

impl<E: LinkEntity, M: Medium> Hop<E, M> {
    /// A hop with link entities (the client's end and the server's) and a medium of any kind.
    pub fn with_parts(index: u16, config: &HopConfig, seed: Seed, ends: [E; 2], medium: M) -> Hop<E, M> {
        let lane = |direction: Direction| {
            let link = config.link(direction);
            let key = |role| DrawKey::new(seed, &DrawScope { hop: &config.name, direction, role, instance: 0 });
            Lane {
                queue: InputQueue::new(&link.queue, key("queue"), direction),
                channel: Channel::new(&link.errors, key("channel"), key("channel flips")),
                propagation: Sampler::new(&link.propagation, key("propagation")),
                delayed: (None, Span::ZERO, 0),
                in_flight: VecDeque::new(),
                arrives: Time::NEVER,
                impairment: Impairment::new(
                    link.reorder.as_ref(),
                    link.duplicate.as_ref(),
                    [key("reorder"), key("duplicate")],
                ),
                blackout: Blackout::new(link.blackout),
                again: VecDeque::new(),
                on_air: 0,
                caught: 0,
            }
        };
        let link = Link {
            index,
            state: 0,
            ends,
            lanes: Direction::ALL.map(lane),
            sdus: Sdus::new(),
            out: Vec::new(),
            up: Vec::new(),
        };
        let mut hop = Hop { medium, link, due: Time::NEVER };
        // An entity may have something to say before the first packet.
        for direction in Direction::ALL {
            hop.ask(Time::ZERO, direction);
        }
        hop.note_due();
        hop
    }

    /// Takes a packet into the hop's queue.
    pub fn offer(&mut self, at: Time, direction: Direction, pdu: Pdu, cx: &mut Cx<'_>) {
        let link = &mut self.link;
        let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Queue, cx);
        let lane = &mut link.lanes[direction as usize];
        if lane.blackout.drops_arriving() {
            return stage.dropped(Cause::Blackout, &pdu, lane.queue.length());
        }
        lane.queue.enqueue(pdu, &mut stage);
        link.pump(at, direction, Arrival::MeetsEmptyLink, cx);
        self.ask(at, direction);
        self.note_due();
    }

    /// Tells the medium when the sending entity of `direction` has something to send.
    fn ask(&mut self, at: Time, direction: Direction) {
        let lane = &self.link.lanes[direction as usize];
        if lane.blackout.is_on() {
            return;
        }
        if !lane.again.is_empty() {
            return self.medium.request(at, 0, direction);
        }
        let ready = self.link.ends[sender(direction)].ready_at();
        if ready != Time::NEVER {
            self.medium.request(at.max(ready), 0, direction);
        }
    }

    /// Resumes `direction` after an event that may have made room in its send buffer, or given its entity
    /// something to say.
    fn resume(&mut self, at: Time, direction: Direction, cx: &mut Cx<'_>) {
        self.link.pump(at, direction, Arrival::FollowsOthers, cx);
        self.ask(at, direction);
    }

    /// Time of the next internal event; `Time::NEVER` if there is none.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.due
    }

    /// Asks every part for its deadline: once after a change, not at every look.
    #[inline]
    fn note_due(&mut self) {
        let mut next = self.medium.next_deadline();
        for (lane, end) in self.link.lanes.iter().zip(&self.link.ends) {
            next = next.min(lane.arrives).min(lane.queue.next_deadline()).min(end.next_deadline());
            next = next.min(lane.impairment.next_deadline());
        }
        self.due = next;
    }

    /// An instant before which no packet leaves the hop unless one is offered or parameters change;
    /// `Time::NEVER` if none will.
    pub fn next_departure(&self) -> Time {
        let mut next = Time::NEVER;
        let mut transmission = self.medium.next_deadline();
        let is_empty = self.never_idle()
            && self.link.sdus.is_empty()
            && self.link.lanes.iter().all(|lane| lane.queue.length().packets == 0);
        if is_empty {
            // The frames that entities exchange carry nothing that leaves. What an hour of silence leaves to be
            // caught up with would still keep a packet waiting, so it is done now and then.
            transmission += CATCH_UP;
        }
        for (direction, lane) in Direction::ALL.into_iter().zip(&self.link.lanes) {
            // What the medium sends next arrives no sooner than the propagation delay later; an entity
            // may release or repeat something whenever it has a deadline of its own.
            let released = self.link.ends[receiver(direction)].next_deadline();
            let arrives = if is_empty { Time::NEVER } else { lane.arrives };
            next = next.min(transmission + lane.propagation.least()).min(released).min(arrives);
            next = next.min(lane.impairment.next_deadline());
        }
        next
    }

    /// True if the hop is never idle: one of its entities sends also while there are no packets.
    pub fn never_idle(&self) -> bool {
        self.link.ends.iter().any(LinkEntity::never_idle)
    }

    /// No packet passes the hop faster, in either direction, while its parameters stay as they are.
    pub fn least_transit(&self) -> Span {
        let [uplink, downlink] = &self.link.lanes;
        uplink.propagation.least().min(downlink.propagation.least())
    }

    /// A packet of `bytes` that comes at `at` takes at least this in `direction`, while the parameters stay
    /// as they are: all its frames one after the other, and the least delay of propagation. The allocation
    /// delay is none of it, since a packet that follows others does not wait for it; nor is a blackout,
    /// whose end nobody knows.
    pub fn least_transit_of(&self, at: Time, direction: Direction, bytes: u32) -> Span {
        let bits = self.link.ends[sender(direction)].bits_on_air(bytes);
        let propagation = self.link.lanes[direction as usize].propagation.least();
        self.medium.least_time(at, direction, bits) + propagation
    }

    /// Runs one round of the stages that are due at `at`; the packets that leave the hop are handed
    /// to `leave`.
    pub fn step(&mut self, at: Time, cx: &mut Cx<'_>, mut leave: impl FnMut(Direction, Pdu, &mut Cx<'_>)) {
        for direction in Direction::ALL {
            let impairment = &mut self.link.lanes[direction as usize].impairment;
            if impairment.next_deadline() <= at {
                impairment.release(at, |pdu| self.link.out.push((direction, pdu)));
            }
        }
        for direction in Direction::ALL {
            if self.link.ends[receiver(direction)].next_deadline() <= at {
                let link = &mut self.link;
                let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Receive, cx);
                link.ends[receiver(direction)].advance(&mut link.sdus, &mut stage, &mut link.up);
                link.collect(at, direction, cx);
                self.resume(at, direction.opposite(), cx);
            }
        }
        for direction in Direction::ALL {
            while self.link.lanes[direction as usize].arrives <= at {
                let link = &mut self.link;
                let lane = &mut link.lanes[direction as usize];
                let Some((_, frame, outcome)) = lane.in_flight.pop_front() else { break };
                lane.note_arrival();
                let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Receive, cx);
                link.ends[receiver(direction)].receive(frame, outcome, &mut link.sdus, &mut stage, &mut link.up);
                link.collect(at, direction, cx);
                self.resume(at, direction.opposite(), cx);
            }
        }
        if self.medium.next_deadline() <= at {
            let caught = [0, 1].map(|lane| self.link.lanes[lane].again.len());
            self.medium.step(at, &mut OnAir { link: &mut self.link, cx });
            for direction in Direction::ALL {
                let moved = self.link.pump(at, direction, Arrival::FollowsOthers, cx);
                // What was ready has just had its chance; the medium asks again of itself.
                let again = self.link.lanes[direction as usize].again.len() > caught[direction as usize];
                if moved || again || self.link.ends[sender(direction)].ready_at() > at {
                    self.ask(at, direction);
                }
            }
        }
        for direction in Direction::ALL {
            let link = &mut self.link;
            let lane = &mut link.lanes[direction as usize];
            if lane.queue.next_deadline() <= at {
                let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Queue, cx);
                lane.queue.advance(&mut stage);
                // The packet that is now first may be small enough for the send buffer.
                self.resume(at, direction, cx);
            }
        }
        if !self.link.out.is_empty() {
            for (direction, pdu) in self.link.out.drain(..) {
                leave(direction, pdu, cx);
            }
        }
        self.note_due();
    }

    /// Puts the parameters of `config` in force at `at` as state number `state`.
    pub fn configure(&mut self, at: Time, config: &HopConfig, state: u16, cx: &mut Cx<'_>) {
        self.link.state = state;
        self.medium.configure(at, [config.uplink.of_medium(), config.downlink.of_medium()]);
        let (uplink, downlink) = (config.uplink.of_entity(), config.downlink.of_entity());
        self.link.ends[0].configure(at, &uplink, &downlink);
        self.link.ends[1].configure(at, &downlink, &uplink);
        for direction in Direction::ALL {
            let link = &mut self.link;
            let lane = &mut link.lanes[direction as usize];
            lane.queue.configure(&config.link(direction).queue, at);
            lane.channel.configure(&config.link(direction).errors, at);
            if lane.propagation.configure(&config.link(direction).propagation) {
                // No draw of the former distribution is left, which `next_departure` would not know.
                lane.delayed.0 = None;
            }
            let parameters = config.link(direction);
            lane.impairment.configure(parameters.reorder.as_ref(), parameters.duplicate.as_ref());
            let blackout = config.link(direction).blackout;
            if lane.blackout.is_on() || blackout.parts().is_some() {
                link.black_out(at, direction, blackout, cx);
            }
            // A larger send buffer may take more of the queue at once.
            self.resume(at, direction, cx);
        }
        self.note_due();
    }

    /// Number of packets inside, of any origin.
    pub fn held(&self) -> u64 {
        let queued: u64 = self.link.lanes.iter().map(|lane| u64::from(lane.queue.length().packets)).sum();
        let held_back: u64 = self.link.lanes.iter().map(|lane| lane.impairment.packets().count() as u64).sum();
        queued + held_back + self.under_way(|_| true)
    }

    /// Number of packets of `origin` inside. Queues tell packets apart only as they give them away: this copies
    /// them, and is not for every packet.
    pub fn held_of(&self, origin: Origin) -> u64 {
        let of_origin = |pdu: &Pdu| pdu.origin == origin;
        let in_lane = |lane: &Lane| {
            let held_back = lane.impairment.packets().filter(|pdu| of_origin(pdu)).count();
            if lane.queue.length().packets == 0 {
                return held_back as u64;
            }
            let queued = lane.queue.clone().hand_over().iter().filter(|(_, pdu)| of_origin(pdu)).count();
            (held_back + queued) as u64
        };
        self.link.lanes.iter().map(in_lane).sum::<u64>() + self.under_way(of_origin)
    }

    /// Number of packets between send buffer and way out that pass `filter`.
    fn under_way(&self, filter: impl Fn(&Pdu) -> bool) -> u64 {
        self.link.sdus.inside().filter(|pdu| filter(pdu)).count() as u64
    }
}
