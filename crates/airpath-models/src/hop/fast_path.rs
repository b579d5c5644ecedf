// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The fast path of a hop whose packets wait in one queue in order, are sent whole at a constant rate, and arrive or are
//! lost: the plain link of most scenarios.
//!
//! The stages of the general way hand a packet from the queue to the entity, the medium, the channel and the other
//! entity. Here it stays where it is, in a list of its direction, and only its stage changes. What happens, when, in
//! which order and with which draws is the same: it is a law over all registered models that nobody can tell the two
//! ways apart. Before parameters change, the hop takes the general way again ([`FastPath::settle`]), and comes back to
//! the fast path when it is empty.

use std::collections::VecDeque;

use airpath_core::counters::Site;
use airpath_core::{Bits, Cause, Cx, Direction, EventKind, Origin, Outputs, Pdu, QueueLimit, Stage, Time};

use crate::air::Grant;
use crate::channel::ChannelOutcome;
use crate::entity::simple::Framing;
use crate::entity::{Arrival, Foresight, LinkEntity};
use crate::link::{Lane, Link, sender};
use crate::medium::{Medium, Steady};
use crate::queueing::{Queueing, exceeded};
use crate::stage::{QueueLength, StageCx};

/// A packet on the hop.
#[derive(Clone, Debug)]
struct Passing {
    pdu: Pdu,
    /// Time of its arrival in the queue; from its transmission on that of its first bit.
    since: Time,
    /// Arrival of its last bit, once that is sent.
    arrives: Time,
    /// True if the channel has lost it.
    is_lost: bool,
}

/// One direction of a hop.
#[derive(Clone, Debug)]
struct FastLane {
    framing: Framing,
    limit: QueueLimit,
    transmitter: Steady,
    /// Packets in order: those that propagate, the one in the send buffer, those in the queue.
    packets: VecDeque<Passing>,
    propagating: usize,
    /// Number of those that arrive in the present step, and have yet to leave the hop.
    arrived: usize,
    /// True if there is a packet in the send buffer.
    is_sending: bool,
    /// True if that is on the air.
    on_air: bool,
    queued_bytes: u64,
    /// End of the frame on the air, or time at which the next one may begin; `Time::NEVER` if there is none.
    transmits: Time,
    /// Arrival of the first packet that propagates; `Time::NEVER` if none does.
    arrives: Time,
    /// Number of packets that have met an empty link.
    allocations: u64,
}

/// Both directions of a hop.
#[derive(Clone, Debug)]
pub(super) struct FastPath {
    lanes: [FastLane; 2],
}

/// Place of the events of a lane.
fn site(index: u16, state: u16, direction: Direction) -> Site {
    Site { hop: index, direction, state, stage: Stage::Queue }
}

impl FastPath {
    /// The fast path of an empty hop at `at`; none if the parameters of one of its parts ask for the general way.
    pub(crate) fn of<E: LinkEntity, M: Medium>(at: Time, link: &Link<E>, medium: &M) -> Option<FastPath> {
        let lane = |direction: Direction| {
            let lane = &link.lanes[direction as usize];
            if !lane.is_plain(at) || medium.common_queue(direction).is_some() {
                return None;
            }
            let limit = lane.queue.limit_in_order()?;
            let framing = link.ends[sender(direction)].whole_packets()?;
            Some(FastLane::new(framing, limit, medium.steady(direction)?))
        };
        Some(FastPath { lanes: [lane(Direction::Uplink)?, lane(Direction::Downlink)?] })
    }

    /// Next internal timer; `Time::NEVER` if there is none.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Time {
        self.next_arrival().min(self.next_transmission())
    }

    /// Arrival of the next packet; `Time::NEVER` if none propagates.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Time {
        self.lanes[0].arrives.min(self.lanes[1].arrives)
    }

    /// End of the next transmission, or its beginning; `Time::NEVER` if there is none.
    #[inline]
    pub(crate) fn next_transmission(&self) -> Time {
        self.lanes[0].transmits.min(self.lanes[1].transmits)
    }

    /// Takes a packet into the queue of the hop.
    #[inline]
    pub(crate) fn offer(
        &mut self,
        at: Time,
        direction: Direction,
        pdu: Pdu,
        (index, state): (u16, u16),
        cx: &mut Cx<'_>,
    ) {
        let mut stage = StageCx::new(site(index, state, direction), at, cx);
        self.lanes[direction as usize].enqueue(pdu, &mut stage);
    }

    /// Runs one round of what is due at `at`, at whose end packets are to be let out.
    #[inline]
    pub(crate) fn step(&mut self, at: Time, (index, state): (u16, u16), lanes: &mut [Lane; 2], cx: &mut Cx<'_>) {
        for direction in Direction::ALL {
            let fast = &mut self.lanes[direction as usize];
            if fast.arrives <= at {
                fast.receive(&mut StageCx::new(site(index, state, direction), at, cx));
            }
        }
        for direction in Direction::ALL {
            let fast = &mut self.lanes[direction as usize];
            if fast.transmits <= at {
                let mut stage = StageCx::new(site(index, state, direction), at, cx);
                fast.transmit(&mut lanes[direction as usize], &mut stage);
            }
        }
    }

    /// True if packets leave in this step, or losses are to be taken out.
    #[inline]
    pub(crate) fn lets_out(&self) -> bool {
        self.lanes[0].arrived + self.lanes[1].arrived > 0
    }

    /// The end of a step: hands the packets that leave to `leave`.
    #[inline]
    pub(crate) fn let_out(&mut self, mut leave: impl FnMut(Direction, Pdu)) {
        for direction in Direction::ALL {
            self.lanes[direction as usize].let_out(direction, &mut leave);
        }
    }

    /// Packets in the queue of `direction`.
    pub(crate) fn queue_length(&self, direction: Direction) -> QueueLength {
        self.lanes[direction as usize].queue_length()
    }

    /// Packets in `direction` of which no bit has been sent.
    pub(crate) fn waiting(&self, direction: Direction) -> QueueLength {
        let lane = &self.lanes[direction as usize];
        let not_begun = lane.packets.iter().skip(lane.propagating + usize::from(lane.on_air));
        not_begun.fold(QueueLength::default(), |sum, packet| QueueLength {
            packets: sum.packets + 1,
            bytes: sum.bytes + u64::from(packet.pdu.len),
        })
    }

    /// Number of packets inside.
    pub(crate) fn held(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.packets.len() as u64).sum()
    }

    /// Number of packets of `origin` inside.
    pub(crate) fn held_of(&self, origin: Origin) -> u64 {
        let packets = self.lanes.iter().flat_map(|lane| &lane.packets);
        packets.filter(|packet| packet.pdu.origin == origin).count() as u64
    }

    /// Arrivals in `direction`, in order: when, and the packet or the loss that arrives.
    pub(crate) fn propagating(&self, direction: Direction) -> impl Iterator<Item = (Time, Foresight<'_>)> {
        let lane = &self.lanes[direction as usize];
        lane.packets.iter().take(lane.propagating).map(|packet| {
            let brings = if packet.is_lost { Foresight::Nothing } else { Foresight::Packet(&packet.pdu) };
            (packet.arrives, brings)
        })
    }

    /// Gives everything back to the parts of the hop, as if packets had passed them all the time.
    pub(crate) fn settle<E: LinkEntity, M: Medium>(self, link: &mut Link<E>, medium: &mut M) {
        // Nothing is recorded twice.
        let mut outputs = Outputs::default();
        let mut cx = Cx::new(&mut outputs);
        for (direction, fast) in Direction::ALL.into_iter().zip(self.lanes) {
            fast.settle(direction, link, medium, &mut cx);
        }
    }
}

impl FastLane {
    fn new(framing: Framing, limit: QueueLimit, transmitter: Steady) -> FastLane {
        FastLane {
            framing,
            limit,
            transmitter,
            packets: VecDeque::new(),
            propagating: 0,
            arrived: 0,
            is_sending: false,
            on_air: false,
            queued_bytes: 0,
            transmits: Time::NEVER,
            arrives: Time::NEVER,
            allocations: 0,
        }
    }

    #[inline]
    fn queue_length(&self) -> QueueLength {
        let packets = self.packets.len() - self.propagating - usize::from(self.is_sending);
        QueueLength { packets: packets as u32, bytes: self.queued_bytes }
    }

    /// Takes a packet into the queue, or drops it.
    #[inline]
    fn enqueue(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        let before = self.queue_length();
        if let Some(cause) = exceeded(&self.limit, before.packets, before.bytes, pdu.len) {
            return stage.dropped(cause, &pdu, before);
        }
        let bytes = u64::from(pdu.len);
        let after = before + QueueLength { packets: 1, bytes };
        stage.record(EventKind::Enqueued, Cause::None, &pdu, pdu.bits().get(), after);
        if self.is_sending {
            self.queued_bytes = after.bytes;
        } else {
            stage.record(EventKind::Dequeued, Cause::None, &pdu, pdu.bits().get(), before);
            self.is_sending = true;
            self.allocations += 1;
            self.transmits = stage.at;
        }
        self.packets.push_back(Passing { pdu, since: stage.at, arrives: Time::NEVER, is_lost: false });
    }

    /// Ends the transmission on the air, if there is one, and begins the next one.
    #[inline]
    fn transmit(&mut self, lane: &mut Lane, stage: &mut StageCx<'_, '_>) {
        if self.on_air {
            self.end(lane, &mut stage.of(Stage::Medium));
        }
        let length = self.queue_length();
        let Some(packet) = self.packets.get_mut(self.propagating) else {
            self.transmits = Time::NEVER;
            return;
        };
        if !self.is_sending {
            self.is_sending = true;
            self.queued_bytes -= u64::from(packet.pdu.len);
            let left = QueueLength { packets: length.packets - 1, bytes: self.queued_bytes };
            stage.record(EventKind::Dequeued, Cause::None, &packet.pdu, packet.pdu.bits().get(), left);
        }
        let bits = self.framing.link_bits(packet.pdu.bits());
        let length = QueueLength::default();
        stage.of(Stage::Medium).record(EventKind::FrameStarted, Cause::None, &packet.pdu, bits, length);
        packet.since = stage.at;
        self.on_air = true;
        self.transmits = stage.at + self.transmitter.duration(stage.at, Bits::new(bits));
    }

    /// Ends the transmission on the air.
    #[inline]
    fn end(&mut self, lane: &mut Lane, stage: &mut StageCx<'_, '_>) {
        let last = self.propagating.checked_sub(1).map(|index| self.packets[index].arrives);
        let Some(packet) = self.packets.get_mut(self.propagating) else { return };
        let bits = self.framing.link_bits(packet.pdu.bits());
        stage.record(EventKind::FrameSent, Cause::None, &packet.pdu, bits, QueueLength::default());
        packet.is_lost = lane.loses(packet.since, stage.at, bits, &packet.pdu);
        let arrives = stage.at + lane.delay_of_packet(stage.at);
        // Order is kept when a draw is shorter than the one before.
        packet.arrives = last.map_or(arrives, |last| arrives.max(last));
        if self.propagating == self.arrived {
            self.arrives = packet.arrives;
        }
        self.propagating += 1;
        (self.is_sending, self.on_air) = (false, false);
        self.transmitter.note_end(stage.at);
    }

    /// Notes the packets that arrive, which leave the hop at the end of the step.
    #[inline]
    fn receive(&mut self, stage: &mut StageCx<'_, '_>) {
        while self.arrives <= stage.at {
            if let Some(packet) = self.packets.get(self.arrived).filter(|packet| packet.is_lost) {
                self.lose(&packet.pdu, stage);
            }
            self.arrived += 1;
            self.arrives = match self.packets.get(self.arrived) {
                Some(next) if self.arrived < self.propagating => next.arrives,
                _ => Time::NEVER,
            };
        }
    }

    /// Takes out the packets that have arrived, and hands those that are not lost to `leave`.
    #[inline]
    fn let_out(&mut self, direction: Direction, leave: &mut impl FnMut(Direction, Pdu)) {
        for _ in 0..std::mem::take(&mut self.arrived) {
            self.propagating -= 1;
            if let Some(Passing { pdu, is_lost: false, .. }) = self.packets.pop_front() {
                leave(direction, pdu);
            }
        }
    }

    fn lose(&self, pdu: &Pdu, stage: &mut StageCx<'_, '_>) {
        let bits = self.framing.link_bits(pdu.bits());
        stage.of(Stage::Channel).record(EventKind::FrameLost, Cause::None, pdu, bits, QueueLength::default());
        stage.of(Stage::Receive).dropped(Cause::ChannelError, pdu, QueueLength::default());
    }

    fn settle<E: LinkEntity, M: Medium>(
        mut self,
        direction: Direction,
        link: &mut Link<E>,
        medium: &mut M,
        cx: &mut Cx<'_>,
    ) {
        let Link { index, state, ends, lanes, sdus, .. } = link;
        let entity = &mut ends[sender(direction)];
        let lane = &mut lanes[direction as usize];
        sdus.take_in(direction);
        entity.note_allocations(self.allocations);
        let mut on_air = None;
        for place in 0..self.propagating + usize::from(self.is_sending) {
            let Some(Passing { pdu, since, arrives, is_lost }) = self.packets.pop_front() else { break };
            let mut stage = StageCx::new(Site { stage: Stage::Medium, ..site(*index, *state, direction) }, since, cx);
            entity.accept(pdu, Arrival::FollowsOthers, sdus, &mut stage);
            if place == self.propagating && !self.on_air {
                break;
            }
            let grant = Grant { resource: 0, bearer: 0, direction, bits: None, start: since };
            let Some(frame) = entity.next_frame(&grant, sdus, &mut stage) else { break };
            if place == self.propagating {
                on_air = Some((grant, frame));
                break;
            }
            entity.sent(&frame, sdus, &mut stage);
            let outcome = if is_lost { ChannelOutcome::Lost } else { ChannelOutcome::Ok };
            lane.in_flight.push_back((arrives, frame, outcome));
        }
        lane.go_on(on_air.is_some());
        let queued = self.packets.into_iter().map(|packet| (packet.since, packet.pdu)).collect();
        lane.queue.take_over(queued, Time::ZERO);
        medium.go_on(direction, self.transmitter, on_air, self.transmits);
    }
}
