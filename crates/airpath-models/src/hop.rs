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

mod departures;
mod fast_path;

use airpath_core::{Bits, Cause, Cx, Direction, DrawKey, DrawScope, End, Origin, Pdu, Seed, Stage, Time};

use self::fast_path::FastPath;
use crate::config::HopConfig;
use crate::entity::{Arrival, EntityBeginning, EntityModel, LinkEntity};
use crate::flow_control::{Gate, Window};
use crate::link::{Link, OnAir, receiver, sender};
use crate::medium::{Medium, MediumBeginning, MediumModel, UserMedium};
use crate::queueing::Queueing;
use crate::stage::QueueLength;

/// A hop of any link entity and medium; the defaults are those that a scenario builds.
pub struct Hop<E: LinkEntity = EntityModel, M: Medium = MediumModel> {
    medium: M,
    link: Link<E>,
    /// The fast path, while packets take it.
    fast: Option<Box<FastPath>>,
    /// True if the parameters may allow the fast path as soon as the hop is empty.
    may_be_fast: bool,
    /// True if no packet is to take it any more: the next hop has or had a window, or a test wants it so.
    is_general: bool,
    /// Next due time, as of the last call that changed anything.
    due: Time,
    /// The same of the stages before the medium.
    receives: Time,
    /// The same of those of them that may let a packet out.
    releases: Time,
}

impl Hop<EntityModel, UserMedium> {
    /// The hop of a user of a cell, or one of its bearers, on shared media where it names them; `place` is that of its
    /// events, and `station` the name of the hop with all its bearers.
    pub(crate) fn of_user(place: u16, config: &HopConfig, station: &str, seed: Seed) -> Hop<EntityModel, UserMedium> {
        let shared = Direction::ALL.map(|direction| config.link(direction).medium.name().is_some());
        let medium = UserMedium::new(own_medium(config, seed), shared);
        Hop::of_link(Link::new(place, config, station, seed, entities(config, seed)), medium)
    }

    /// The medium.
    pub(crate) fn medium_mut(&mut self) -> &mut UserMedium {
        &mut self.medium
    }

    /// The link.
    pub(crate) fn link_mut(&mut self) -> &mut Link<EntityModel> {
        &mut self.link
    }
}

impl Hop {
    /// The hop that `config` describes, at the beginning; `index` is its place in the path.
    pub fn new(index: u16, config: &HopConfig, seed: Seed) -> Hop {
        Hop::with_parts(index, config, seed, entities(config, seed), own_medium(config, seed))
    }
}

fn key(config: &HopConfig, seed: Seed, role: &str, direction: Direction) -> DrawKey {
    DrawKey::new(seed, &DrawScope { hop: &config.name, direction, role, instance: 0 })
}

/// The link entities of a hop: the client's end and the server's.
fn entities(config: &HopConfig, seed: Seed) -> [EntityModel; 2] {
    End::ALL.map(|end| {
        let (sends, receives) = (config.link(end.sends()), config.link(end.sends().opposite()));
        let beginning = EntityBeginning {
            end,
            sends: sends.of_entity(),
            receives: receives.of_entity(),
            allocation: key(config, seed, "allocation", end.sends()),
            key: key(config, seed, "entity", end.sends()),
        };
        EntityModel::new(&sends.entity, beginning)
    })
}

/// The medium of a hop alone.
fn own_medium(config: &HopConfig, seed: Seed) -> MediumModel {
    let beginning = MediumBeginning {
        links: [config.uplink.of_medium(), config.downlink.of_medium()],
        rates: Direction::ALL.map(|direction| key(config, seed, "rate", direction)),
        key: key(config, seed, "medium", Direction::Uplink),
    };
    MediumModel::new(config.own_medium(), beginning)
}

impl<E: LinkEntity, M: Medium> Hop<E, M> {
    /// A hop with link entities (the client's end and the server's) and a medium of any kind.
    pub fn with_parts(index: u16, config: &HopConfig, seed: Seed, ends: [E; 2], medium: M) -> Hop<E, M> {
        Hop::of_link(Link::new(index, config, &config.name, seed, ends), medium)
    }

    fn of_link(link: Link<E>, medium: M) -> Hop<E, M> {
        let (due, receives, releases) = (Time::NEVER, Time::NEVER, Time::NEVER);
        let mut hop = Hop { medium, link, fast: None, may_be_fast: true, is_general: false, due, receives, releases };
        // An entity may have something to say before the first packet.
        for direction in Direction::ALL {
            hop.ask(Time::ZERO, direction);
        }
        hop.note_due();
        hop
    }

    /// Lets no packet take the fast path from now on.
    pub(crate) fn take_general_way(&mut self) {
        self.settle();
        self.is_general = true;
    }

    /// True if packets take the fast path.
    pub fn is_fast(&self) -> bool {
        self.fast.is_some()
    }

    /// Gives packets the fast path at `at`, if the hop is empty and the parameters allow it.
    #[inline(never)]
    fn take_fast_path(&mut self, at: Time) {
        if self.is_general {
            self.may_be_fast = false;
        } else if self.link.is_empty() && self.due == Time::NEVER {
            self.may_be_fast = false;
            self.fast = FastPath::of(at, &self.link, &self.medium).map(Box::new);
        }
    }

    /// Puts the packets on the fast path back into the parts of the hop.
    fn settle(&mut self) {
        if let Some(fast) = self.fast.take() {
            fast.settle(&mut self.link, &mut self.medium);
            self.note_due();
        }
    }

    /// Takes a packet into the hop's queue.
    pub fn offer(&mut self, at: Time, direction: Direction, pdu: Pdu, cx: &mut Cx<'_>) {
        if self.may_be_fast {
            self.take_fast_path(at);
        }
        if let Some(fast) = &mut self.fast {
            fast.offer(at, direction, pdu, (self.link.index, self.link.state), cx);
            self.due = fast.next_deadline();
            return;
        }
        let link = &mut self.link;
        let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Queue, cx);
        let lane = &mut link.lanes[direction as usize];
        if lane.blackout.drops_arriving() {
            return stage.dropped(Cause::Blackout, &pdu, lane.queue.length());
        }
        if let Some(common) = self.medium.common_queue(direction) {
            let own = lane.queue.length() + link.ends[sender(direction)].waiting();
            if let Some(cause) = common.overflow(own, pdu.len) {
                return stage.dropped(cause, &pdu, lane.queue.length());
            }
        }
        lane.queue.enqueue(pdu, &mut stage);
        link.pump(at, direction, Arrival::MeetsEmptyLink, cx);
        self.ask(at, direction);
        self.note_due();
    }

    /// Tells the medium when the sending entity of `direction` has something to send.
    #[inline]
    fn ask(&mut self, at: Time, direction: Direction) {
        self.ask_from(at, direction, self.link.ends[sender(direction)].ready_at());
    }

    /// The same where that is ready at `ready`.
    // Most of the time there is nothing to send.
    #[inline(always)]
    fn ask_from(&mut self, at: Time, direction: Direction, ready: Time) {
        let lane = &self.link.lanes[direction as usize];
        if (ready == Time::NEVER && lane.again.is_empty()) || lane.blackout.is_on() {
            return;
        }
        let from = if lane.again.is_empty() { at.max(ready) } else { at };
        self.medium.request(from, 0, direction);
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
        let (mut releases, mut ages) = (Time::NEVER, Time::NEVER);
        for (lane, end) in self.link.lanes.iter().zip(&self.link.ends) {
            releases = releases.min(lane.arrives).min(end.next_deadline()).min(lane.impairment.next_deadline());
            ages = ages.min(lane.queue.next_deadline());
        }
        self.releases = releases;
        self.receives = releases.min(self.link.hears_at());
        self.due = self.receives.min(ages).min(self.medium.next_deadline());
    }

    /// True if the hop is never idle: one of its entities sends also while there are no packets.
    pub fn never_idle(&self) -> bool {
        self.link.ends.iter().any(LinkEntity::never_idle)
    }

    /// Minimum number of bits of a packet of `bytes` on the air in `direction`.
    pub(crate) fn bits_on_air(&self, direction: Direction, bytes: u32) -> Bits {
        self.link.ends[sender(direction)].bits_on_air(bytes)
    }

    /// Runs one round of the stages that are due at `at`; packets that leave the hop are to be let out.
    pub fn step(&mut self, at: Time, cx: &mut Cx<'_>) {
        if let Some(fast) = &mut self.fast {
            let Link { index, state, lanes, .. } = &mut self.link;
            fast.step(at, (*index, *state), lanes, cx);
            self.due = fast.next_deadline();
            return;
        }
        if self.receives <= at {
            self.receive(at, cx);
        }
        self.step_own_medium(at, cx);
        self.age(at, cx);
    }

    /// The stage of the hop's own medium, if that is due.
    pub(crate) fn step_own_medium(&mut self, at: Time, cx: &mut Cx<'_>) {
        if self.medium.next_deadline() <= at {
            self.medium.step(at, &mut OnAir { link: &mut self.link, cx });
            self.follow_medium(at, cx);
        }
    }

    /// Packets that wait in `direction` for the medium: in the queue, or in the send buffer and not begun.
    pub(crate) fn waiting(&self, direction: Direction) -> QueueLength {
        match &self.fast {
            Some(fast) => fast.waiting(direction),
            None => self.link.lanes[direction as usize].queue.length() + self.link.ends[sender(direction)].waiting(),
        }
    }

    /// Length of the input queue of `direction`.
    pub(crate) fn queue_length(&self, direction: Direction) -> QueueLength {
        match &self.fast {
            Some(fast) => fast.queue_length(direction),
            None => self.link.lanes[direction as usize].queue.length(),
        }
    }

    /// Puts the window of the next hop in force for what leaves the queue of `direction` from now on.
    pub(crate) fn set_window(&mut self, direction: Direction, window: Option<Window>) {
        if window.is_some() {
            self.take_general_way();
        }
        let gate = &mut self.link.lanes[direction as usize].gate;
        match (gate.as_mut(), window) {
            (Some(gate), Some(window)) => gate.window = window,
            (_, window) => *gate = window.map(|window| Box::new(Gate::new(window))),
        }
    }

    /// Notes at `at` how many packets are `beyond` the hop and within the window of the next one, and lets the queue of
    /// `direction` go on if that stopped it and does so no more.
    pub(crate) fn follow_window(&mut self, at: Time, direction: Direction, beyond: QueueLength, cx: &mut Cx<'_>) {
        let Some(gate) = &mut self.link.lanes[direction as usize].gate else { return };
        gate.beyond = beyond;
        if gate.is_shut {
            self.go_on(at, direction, cx);
        }
    }

    /// Takes the window of the next hop away at `at`, and lets the queue of `direction` go on if that stopped it.
    pub(crate) fn drop_window(&mut self, at: Time, direction: Direction, cx: &mut Cx<'_>) {
        let gate = self.link.lanes[direction as usize].gate.take();
        if gate.is_some_and(|gate| gate.is_shut) {
            self.go_on(at, direction, cx);
        }
    }

    fn go_on(&mut self, at: Time, direction: Direction, cx: &mut Cx<'_>) {
        if self.link.pump(at, direction, Arrival::FollowsOthers, cx) {
            self.ask(at, direction);
        }
        self.note_due();
    }

    /// True if a packet waits before a window, or may come to do so while another one waits for the send buffer.
    pub(crate) fn waits_before_window(&self) -> bool {
        self.link.lanes.iter().any(|lane| lane.gate.is_some() && lane.queue.length().packets > 0)
    }

    /// True if no packet is on its way over the hop.
    pub(crate) fn is_empty(&self) -> bool {
        self.link.is_empty() && self.fast.as_ref().is_none_or(|fast| fast.held() == 0)
    }

    /// The stages of a step before the medium: what was held back, timers of entities, arrivals.
    pub(crate) fn receive(&mut self, at: Time, cx: &mut Cx<'_>) {
        for direction in Direction::ALL {
            let impairment = &mut self.link.lanes[direction as usize].impairment;
            if impairment.next_deadline() <= at {
                impairment.release(at, |pdu| self.link.out.push(direction, pdu));
            }
        }
        while self.link.hears_at() <= at {
            let link = &mut self.link;
            let Some((_, direction, word)) = link.feedback.pop_front() else { break };
            let mut stage = Link::<E>::stage(link.index, link.state, at, direction, Stage::Entity, cx);
            link.ends[sender(direction)].hear(word, &mut link.sdus, &mut stage);
            self.resume(at, direction, cx);
        }
        for direction in Direction::ALL {
            if self.link.ends[receiver(direction)].next_deadline() <= at {
                self.link.collect(at, direction, cx, |end, sdus, stage, up| end.advance(sdus, stage, up));
                self.resume(at, direction.opposite(), cx);
            }
        }
        for direction in Direction::ALL {
            while self.link.lanes[direction as usize].arrives <= at {
                let link = &mut self.link;
                let lane = &mut link.lanes[direction as usize];
                let Some((_, frame, outcome)) = lane.in_flight.pop_front() else { break };
                lane.note_arrival();
                link.collect(at, direction, cx, |end, sdus, stage, up| end.receive(frame, outcome, sdus, stage, up));
                link.note_feedback(at, direction);
                self.resume(at, direction.opposite(), cx);
            }
        }
    }

    /// To be called after a step of the medium that asked the hop for a frame or sent one.
    pub(crate) fn follow_medium(&mut self, at: Time, cx: &mut Cx<'_>) {
        for direction in Direction::ALL {
            let moved = self.link.pump(at, direction, Arrival::FollowsOthers, cx);
            // What was ready has just had its chance; the medium asks again of itself.
            let again = std::mem::take(&mut self.link.lanes[direction as usize].caught_more);
            let ready = self.link.ends[sender(direction)].ready_at();
            if moved || again || ready > at {
                self.ask_from(at, direction, ready);
            }
        }
    }

    /// The stage of a step after the medium: packets whose time in the queue has run out.
    pub(crate) fn age(&mut self, at: Time, cx: &mut Cx<'_>) {
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
        self.note_due();
    }

    /// True if packets leave the hop in this step.
    #[inline]
    pub(crate) fn lets_out(&self) -> bool {
        match &self.fast {
            Some(fast) => fast.lets_out(),
            None => !self.link.out.is_empty(),
        }
    }

    /// The end of a step: hands the packets that leave the hop to `leave`.
    pub(crate) fn let_out(&mut self, mut leave: impl FnMut(Direction, Pdu)) {
        if let Some(fast) = &mut self.fast {
            return fast.let_out(leave);
        }
        let Link { out, lanes, .. } = &mut self.link;
        out.take(|direction, pdu| {
            if let Some(gate) = &mut lanes[direction as usize].gate {
                gate.beyond = gate.beyond + QueueLength { packets: 1, bytes: pdu.len.into() };
            }
            leave(direction, pdu);
        });
    }

    /// Puts the parameters of `config` in force at `at` as state number `state`.
    pub fn configure(&mut self, at: Time, config: &HopConfig, state: u16, cx: &mut Cx<'_>) {
        self.settle();
        self.may_be_fast = true;
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
        self.fast.as_ref().map_or_else(|| self.link.held(), |fast| fast.held())
    }

    /// Number of packets of `origin` inside. Queues tell packets apart only as they give them away: this copies
    /// them, and is not for every packet.
    pub fn held_of(&self, origin: Origin) -> u64 {
        self.fast.as_ref().map_or_else(|| self.link.held_of(origin), |fast| fast.held_of(origin))
    }
}
