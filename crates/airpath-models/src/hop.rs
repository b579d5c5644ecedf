//! One hop: queueing, link entities, medium, channel and propagation, joined for both directions.
//!
//! Source: Kojo et al. 2001, section 4.3 and Figure 3, in a shape in which the two entities of a hop
//! can also talk to each other over the link (acknowledgements, retransmissions).
//!
//! At one instant the stages run in this order, uplink before downlink within each, until nothing is
//! due: releases by the receiving entities, arrivals after propagation, the medium, packets whose
//! time in the queue has run out.

use std::collections::VecDeque;

use airpath_core::counters::Site;
use airpath_core::{Cx, Direction, DrawKey, DrawScope, Origin, Pdu, PduId, Seed, Span, Stage, Time};

use crate::channel::{Channel, Outcome, Transmission};
use crate::config::HopConfig;
use crate::entity::{Arrival, Frame, LinkEntity, Sdus, Simple};
use crate::medium::{Air, Continuous, Grant, Medium};
use crate::queueing::{InputQueue, Queueing};
use crate::random::Sampler;
use crate::stage::StageCx;

/// A hop of any link entity and medium; the defaults are those that a scenario builds.
pub struct Hop<E: LinkEntity = Simple, M: Medium = Continuous> {
    medium: M,
    link: Link<E>,
    /// When something is next due, as of the last call that changed anything.
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

/// What a hop has for one direction only.
struct Lane {
    queue: InputQueue,
    channel: Channel,
    propagation: Sampler<Span>,
    /// The packet for which the delay was last drawn, that delay, and how many were drawn.
    delayed: (PduId, Span, u64),
    in_flight: VecDeque<(Time, Frame, Outcome)>,
    /// When the first of those arrives; `Time::NEVER` if there is none.
    arrives: Time,
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

    /// Hands what the receiving entity has completed to the way out.
    #[inline]
    fn collect(&mut self, direction: Direction) {
        if self.up.is_empty() {
            return;
        }
        self.out.extend(self.up.drain(..).map(|pdu| (direction, pdu)));
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
        self.link.pump(grant.start, direction, Arrival::FollowsOthers, self.cx);
        let link = &mut *self.link;
        let mut stage = Link::<E>::stage(link.index, link.state, grant.start, direction, Stage::Medium, self.cx);
        link.ends[sender(direction)].next_frame(grant, &mut link.sdus, &mut stage)
    }

    fn sent(&mut self, at: Time, grant: &Grant, frame: Frame) {
        let direction = grant.direction;
        let link = &mut *self.link;
        let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Medium, self.cx);
        link.ends[sender(direction)].sent(&frame, &mut link.sdus, &mut stage);
        let lane = &mut link.lanes[direction as usize];
        let outcome = lane.outcome(&frame);
        let arrives = at + lane.delay(&frame);
        // Order is kept when a change of parameters shortens the delay.
        let arrives = lane.in_flight.back().map_or(arrives, |(last, ..)| arrives.max(*last));
        lane.arrives = lane.arrives.min(arrives);
        lane.in_flight.push_back((arrives, frame, outcome));
    }
}

impl Lane {
    /// The propagation delay of `frame`: one draw for all frames of a packet.
    fn delay(&mut self, frame: &Frame) -> Span {
        if let Some(delay) = self.propagation.constant() {
            return delay;
        }
        let pdu = frame.pieces.first().map(|piece| piece.pdu);
        let (last, delay, draws) = &mut self.delayed;
        if pdu != Some(*last) {
            *delay = self.propagation.draw(*draws);
            *draws += 1;
            *last = pdu.unwrap_or(PduId::MAX);
        }
        *delay
    }

    fn outcome(&mut self, frame: &Frame) -> Outcome {
        let on_air = frame.bits.get();
        let Some(piece) = frame.pieces.first() else {
            let control = Transmission { bits: on_air, first_bit: 0, packet_bits: 0, header_bits: 0 };
            return self.channel.outcome(&control, None);
        };
        let part = Transmission {
            bits: on_air,
            first_bit: piece.first_bit,
            packet_bits: piece.bits,
            header_bits: piece.header_bits,
        };
        let whole = Transmission { first_bit: 0, packet_bits: piece.packet_bits, ..part };
        self.channel.outcome(&part, piece.last.then_some(&whole))
    }
}

impl Hop {
    /// The hop that `config` describes, at the beginning; `index` is its place in the path.
    pub fn new(index: u16, config: &HopConfig, seed: Seed) -> Hop {
        let (uplink, downlink) = (&config.uplink, &config.downlink);
        let ends = [Simple::new(uplink, downlink), Simple::new(downlink, uplink)];
        Hop::with_parts(index, config, seed, ends, Continuous::new([uplink, downlink]))
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
                delayed: (PduId::MAX, Span::ZERO, 0),
                in_flight: VecDeque::new(),
                arrives: Time::NEVER,
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
        hop.note_due();
        hop
    }

    /// Takes a packet into the hop's queue.
    pub fn offer(&mut self, at: Time, direction: Direction, pdu: Pdu, cx: &mut Cx<'_>) {
        let link = &mut self.link;
        let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Queue, cx);
        link.lanes[direction as usize].queue.enqueue(pdu, &mut stage);
        link.pump(at, direction, Arrival::MeetsEmptyLink, cx);
        self.ask(at, direction);
        self.note_due();
    }

    /// Tells the medium when the sending entity of `direction` has something to send.
    fn ask(&mut self, at: Time, direction: Direction) {
        let ready = self.link.ends[sender(direction)].ready_at();
        if ready != Time::NEVER {
            self.medium.request(at.max(ready), 0, direction);
        }
    }

    /// What has happened may have made room in the send buffer of `direction`, or given its entity
    /// something to say.
    fn resume(&mut self, at: Time, direction: Direction, cx: &mut Cx<'_>) {
        self.link.pump(at, direction, Arrival::FollowsOthers, cx);
        self.ask(at, direction);
    }

    /// When something is next due; `Time::NEVER` if nothing is.
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
        }
        self.due = next;
    }

    /// An instant before which no packet leaves the hop unless one is offered or parameters change;
    /// `Time::NEVER` if none will.
    pub fn next_departure(&self) -> Time {
        let mut next = Time::NEVER;
        let transmission = self.medium.next_deadline();
        for (direction, lane) in Direction::ALL.into_iter().zip(&self.link.lanes) {
            // What the medium sends next arrives no sooner than the propagation delay later; an entity
            // may release or repeat something whenever it has a deadline of its own.
            let released = self.link.ends[receiver(direction)].next_deadline();
            next = next.min(transmission + lane.propagation.least()).min(released).min(lane.arrives);
        }
        next
    }

    /// No packet passes the hop faster, in either direction, while its parameters stay as they are.
    pub fn least_transit(&self) -> Span {
        let [uplink, downlink] = &self.link.lanes;
        uplink.propagation.least().min(downlink.propagation.least())
    }

    /// Runs one round of the stages that are due at `at`; the packets that leave the hop are handed
    /// to `leave`.
    pub fn step(&mut self, at: Time, cx: &mut Cx<'_>, mut leave: impl FnMut(Direction, Pdu, &mut Cx<'_>)) {
        for direction in Direction::ALL {
            if self.link.ends[receiver(direction)].next_deadline() <= at {
                let link = &mut self.link;
                let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Receive, cx);
                link.ends[receiver(direction)].advance(&mut link.sdus, &mut stage, &mut link.up);
                link.collect(direction);
                self.resume(at, direction.opposite(), cx);
            }
        }
        for direction in Direction::ALL {
            while self.link.lanes[direction as usize].arrives <= at {
                let link = &mut self.link;
                let lane = &mut link.lanes[direction as usize];
                let Some((_, frame, outcome)) = lane.in_flight.pop_front() else { break };
                lane.arrives = lane.in_flight.front().map_or(Time::NEVER, |(arrives, ..)| *arrives);
                let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Receive, cx);
                link.ends[receiver(direction)].receive(frame, outcome, &mut link.sdus, &mut stage, &mut link.up);
                link.collect(direction);
                self.resume(at, direction.opposite(), cx);
            }
        }
        if self.medium.next_deadline() <= at {
            self.medium.step(at, &mut OnAir { link: &mut self.link, cx });
            for direction in Direction::ALL {
                let moved = self.link.pump(at, direction, Arrival::FollowsOthers, cx);
                // What was ready has just had its chance; the medium asks again of itself.
                if moved || self.link.ends[sender(direction)].ready_at() > at {
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
        let links = [&config.uplink, &config.downlink];
        self.medium.configure(links);
        self.link.ends[0].configure(links[0], links[1]);
        self.link.ends[1].configure(links[1], links[0]);
        for direction in Direction::ALL {
            let link = &mut self.link;
            let lane = &mut link.lanes[direction as usize];
            lane.queue.configure(&config.link(direction).queue, at);
            lane.channel.configure(&config.link(direction).errors);
            lane.propagation.configure(&config.link(direction).propagation);
            // A larger send buffer may take more of the queue at once.
            self.resume(at, direction, cx);
        }
        self.note_due();
    }

    /// How many packets of endpoints are inside.
    pub fn held(&self) -> u64 {
        let queued: u64 = self.link.lanes.iter().map(|lane| u64::from(lane.queue.length().packets)).sum();
        let under_way = self
            .link
            .sdus
            .iter()
            .filter(|(_, sdu)| !sdu.lost && !sdu.handed_up && sdu.pdu.origin == Origin::User)
            .count();
        queued + under_way as u64
    }
}

impl HopConfig {
    /// The parameters of one direction.
    pub fn link(&self, direction: Direction) -> &crate::config::LinkConfig {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }
}
