// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A path: one or more hops in a row, and states that switch the parameters of all of them at one
//! instant. Which state comes when is decided in [`crate::states`].
//!
//! Source: Kojo et al. 2001, sections 4.2 (pipelining) and 5.1 (state changes).
//!
//! At one instant all service of all hops comes first (hops in order, the client's end first), then
//! state changes, then the arrival of packets that one hop hands to the next, one after the other,
//! each followed by what it causes; then, likewise, the packets of background loads in the order in which
//! these are written; arrivals at the ports come last of all.

use std::collections::VecDeque;

use airpath_core::{
    Cause, Command, CommandError, Cx, Direction, Event, EventKind, Framing, Item, Machine, Origin, Pdu, PortId, Seed,
    Span, StateInForce, Time,
};

use crate::config::{HopConfig, PathConfig, Setting};
use crate::entity::{EntityModel, LinkEntity};
use crate::hop::Hop;
use crate::load::Loads;
use crate::medium::{Medium, MediumModel};
use crate::states::Schedule;

/// Maximum lag of a driver behind a background load that emits nothing: undone work has to be done at once when
/// a packet comes.
const KEEP_UP: Span = Span::from_millis(1);

/// A path of hops with any link entities and media; the defaults are those that a scenario builds.
pub struct Path<E: LinkEntity = EntityModel, M: Medium = MediumModel> {
    hops: Vec<Hop<E, M>>,
    /// Components of a change: the names of the states and the parameters of their hops, by number.
    states: Vec<(String, Vec<HopConfig>)>,
    schedule: Schedule,
    /// Packets on the boundary between two hops: when, into which hop, in which direction.
    transfers: VecDeque<(Time, usize, Direction, Pdu)>,
    loads: Loads,
    /// The framing for which escapes are to be counted, uplink first. No state changes it.
    framings: [Option<Framing>; 2],
    /// Number of packets of endpoints inside, as of the last call; kept only beside background loads.
    users_inside: u64,
}

/// Next event, in the order of precedence at one instant.
#[derive(Clone, Copy)]
enum Next {
    Service,
    State,
    Transfer,
    Load,
}

impl Path {
    /// The path that `config` describes, at the beginning of a run with `seed`.
    pub fn new(config: &PathConfig, seed: Seed) -> Path {
        let hops = config.hops.iter().enumerate().map(|(index, hop)| Hop::new(index as u16, hop, seed)).collect();
        Path::with_hops(hops, config, seed)
    }
}

impl<E: LinkEntity, M: Medium> Path<E, M> {
    /// A path of ready hops, with the states of `config`.
    ///
    /// # Panics
    /// Without any hop, or when a state does not describe all of them.
    pub fn with_hops(hops: Vec<Hop<E, M>>, config: &PathConfig, seed: Seed) -> Path<E, M> {
        assert!(!hops.is_empty(), "a path has at least one hop");
        let beginning = (Event::INITIAL_STATE.to_string(), config.hops.clone());
        let others = config.states.iter().map(|state| (state.name.clone(), state.hops.clone()));
        let states: Vec<_> = std::iter::once(beginning).chain(others).collect();
        assert!(states.iter().all(|(_, all)| all.len() == hops.len()), "a state describes all hops");
        let further = config.states.iter().map(|state| (state.name.as_str(), state.at, &state.stay));
        let schedule = Schedule::new(&config.initial, further, seed);
        let names: Vec<&str> = config.hops.iter().map(|hop| hop.name.as_str()).collect();
        Path {
            hops,
            states,
            schedule,
            transfers: VecDeque::new(),
            loads: Loads::new(&config.background, &names, seed),
            framings: Direction::ALL.map(|direction| config.framing(direction)),
            users_inside: 0,
        }
    }

    /// The hops, the client's end first.
    pub fn hops(&self) -> &[Hop<E, M>] {
        &self.hops
    }

    #[inline]
    fn next(&self) -> (Time, Next) {
        let service = self.hops.iter().map(Hop::next_deadline).min().unwrap_or(Time::NEVER);
        let transfer = self.transfers.front().map_or(Time::NEVER, |(at, ..)| *at);
        // At equal times the earlier line wins.
        let mut next = (service, Next::Service);
        if self.schedule.due() < next.0 {
            next = (self.schedule.due(), Next::State);
        }
        if transfer < next.0 {
            next = (transfer, Next::Transfer);
        }
        if self.loads.next() < next.0 {
            next = (self.loads.next(), Next::Load);
        }
        next
    }

    fn serve(&mut self, at: Time, cx: &mut Cx<'_>) {
        let last = self.hops.len() - 1;
        let state = self.schedule.state();
        for (index, hop) in self.hops.iter_mut().enumerate() {
            if hop.next_deadline() > at {
                continue;
            }
            let (transfers, loads) = (&mut self.transfers, &self.loads);
            hop.step(at, cx, |direction, pdu, cx| {
                let of_hop = |kind, pdu: &Pdu| Event {
                    hop: index as u16,
                    ..Event::of_path(at, direction, kind, Cause::None, pdu, state)
                };
                if pdu.origin == Origin::Background && loads.ends_at(pdu.id, index) {
                    return cx.record(of_hop(EventKind::Consumed, &pdu));
                }
                let next = match direction {
                    Direction::Uplink if index < last => index + 1,
                    Direction::Downlink if index > 0 => index - 1,
                    _ => return leave(at, direction, pdu, state, cx),
                };
                cx.record(of_hop(EventKind::Passed, &pdu));
                transfers.push_back((at, next, direction, pdu));
            });
        }
    }

    /// The next packet of a background load enters its hop.
    fn generate(&mut self, at: Time, cx: &mut Cx<'_>) {
        let Some((hop, direction, pdu)) = self.loads.take() else { return };
        let state = self.schedule.state();
        let mut event = Event::of_path(at, direction, EventKind::Generated, Cause::None, &pdu, state);
        event.hop = hop as u16;
        cx.record(event);
        self.hops[hop].offer(at, direction, pdu, cx);
    }

    /// Counts what is inside: while nothing of endpoints is, nothing is emitted.
    fn count_users(&mut self, cx: &Cx<'_>) {
        if !self.loads.is_empty() {
            self.users_inside = cx.users_inside();
        }
    }

    /// Runs every event due at or before `to`, in order.
    fn run_until(&mut self, to: Time, cx: &mut Cx<'_>) {
        loop {
            let (at, next) = self.next();
            if at > to || at == Time::NEVER {
                return;
            }
            self.run(at, next, cx);
        }
    }

    /// The same up to the end of the instant at which `events` are used up; through which instant.
    fn run_some(&mut self, to: Time, events: &mut u32, cx: &mut Cx<'_>) -> Time {
        let mut reached = None;
        loop {
            let (at, next) = self.next();
            if at > to || at == Time::NEVER {
                return to;
            }
            if let Some(reached) = reached
                && *events == 0
                && at > reached
            {
                return reached;
            }
            self.run(at, next, cx);
            *events = events.saturating_sub(1);
            reached = Some(at);
        }
    }

    /// Runs the event `next`, which is due at `at`.
    #[inline(always)]
    fn run(&mut self, at: Time, next: Next, cx: &mut Cx<'_>) {
        match next {
            Next::Service => self.serve(at, cx),
            Next::State => {
                let state = self.schedule.take();
                self.enter(at, state, cx);
            }
            Next::Transfer => {
                if let Some((at, hop, direction, pdu)) = self.transfers.pop_front() {
                    self.hops[hop].offer(at, direction, pdu, cx);
                }
            }
            Next::Load => self.generate(at, cx),
        }
    }

    /// Puts state number `state` in force.
    fn enter(&mut self, at: Time, state: u16, cx: &mut Cx<'_>) {
        self.schedule.enter(at, state);
        let Path { hops, states, .. } = self;
        configure(at, hops, &states[usize::from(state)].1, state, EventKind::StateChanged, cx);
    }

    /// Puts `configs` in force without another state.
    fn configure(&mut self, at: Time, configs: &[HopConfig], kind: EventKind, cx: &mut Cx<'_>) {
        configure(at, &mut self.hops, configs, self.schedule.state(), kind, cx);
    }

    /// Parameters in force once `setting` is.
    fn in_force<'a>(&self, setting: &'a Setting) -> Result<&'a [HopConfig], CommandError> {
        if let Some((entries, hops)) = &setting.since
            && *entries == self.schedule.entries()
        {
            return Ok(hops);
        }
        match setting.in_force.get(usize::from(self.schedule.state())) {
            Some(Ok(hops)) => Ok(hops),
            Some(Err(why)) => Err(CommandError::Mismatch(why.clone())),
            None => Err(CommandError::Mismatch("it does not tell of the state in force".into())),
        }
    }

    fn set(&mut self, at: Time, setting: &Setting, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        let fits = |configs: &[HopConfig]| configs.len() == self.hops.len();
        let all = std::iter::once(&setting.beginning).chain(&setting.states);
        if setting.states.len() + 1 != self.states.len() || !all.clone().all(|configs| fits(configs)) {
            return Err(CommandError::Mismatch("the setting describes another path".into()));
        }
        // The state in force is known once everything before has been run.
        self.advance(at, cx);
        let now = self.in_force(setting)?;
        self.configure(at, now, EventKind::ParameterSet, cx);
        for ((_, state), configs) in self.states.iter_mut().zip(all) {
            state.clone_from(configs);
        }
        self.count_users(cx);
        Ok(())
    }
}

fn configure<E: LinkEntity, M: Medium>(
    at: Time,
    hops: &mut [Hop<E, M>],
    configs: &[HopConfig],
    state: u16,
    kind: EventKind,
    cx: &mut Cx<'_>,
) {
    cx.record(Event::of_path(at, Direction::Uplink, kind, Cause::None, &Pdu::default(), state));
    for (hop, config) in hops.iter_mut().zip(configs) {
        hop.configure(at, config, state, cx);
    }
}

/// A packet reaches the end of the path.
fn leave(at: Time, direction: Direction, pdu: Pdu, state: u16, cx: &mut Cx<'_>) {
    cx.record(Event::of_path(at, direction, EventKind::Delivered, Cause::None, &pdu, state));
    let port = match direction {
        Direction::Uplink => PortId::SERVER,
        Direction::Downlink => PortId::CLIENT,
    };
    cx.emit(at, port, Item::Pdu(pdu));
}

impl<E: LinkEntity, M: Medium> Machine for Path<E, M> {
    fn offer(&mut self, at: Time, port: PortId, item: Item, cx: &mut Cx<'_>) {
        // Endpoints take what they are given: credits concern machines that feed other machines.
        let Item::Pdu(mut pdu) = item else { return self.advance(at, cx) };
        self.run_until(at, cx);
        let (direction, hop) = match port {
            PortId::CLIENT => (Direction::Uplink, 0),
            _ => (Direction::Downlink, self.hops.len() - 1),
        };
        pdu.arrived = at;
        cx.record(Event::of_path(at, direction, EventKind::Offered, Cause::None, &pdu, self.schedule.state()));
        self.hops[hop].offer(at, direction, pdu, cx);
        self.count_users(cx);
    }

    fn control(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        match command {
            Command::EnterState(name) => {
                let Some(index) = self.states.iter().position(|(known, _)| **known == **name) else {
                    let known: Vec<&str> = self.states.iter().map(|(name, _)| name.as_str()).collect();
                    return Err(CommandError::UnknownState { name: name.to_string(), known: known.join(", ") });
                };
                self.advance(at, cx);
                self.enter(at, index as u16, cx);
            }
            Command::Configure(value) => {
                if let Some(setting) = value.downcast_ref::<Setting>() {
                    return self.set(at, setting, cx);
                }
                let Some(hops) = value.downcast_ref::<Vec<HopConfig>>() else {
                    return Err(CommandError::Mismatch("a path takes the parameters of its hops".into()));
                };
                if hops.len() != self.hops.len() {
                    let message = format!("it has {} hops, the command describes {}", self.hops.len(), hops.len());
                    return Err(CommandError::Mismatch(message));
                }
                self.advance(at, cx);
                self.configure(at, hops, EventKind::StateChanged, cx);
            }
        }
        self.count_users(cx);
        Ok(())
    }

    fn advance(&mut self, to: Time, cx: &mut Cx<'_>) {
        self.run_until(to, cx);
        self.count_users(cx);
    }

    fn advance_some(&mut self, to: Time, events: &mut u32, cx: &mut Cx<'_>) -> Time {
        let reached = self.run_some(to, events, cx);
        self.count_users(cx);
        reached
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next().0.finite()
    }

    fn next_emission(&self) -> Option<Time> {
        let departure = self.hops.iter().map(Hop::next_departure).min().unwrap_or(Time::NEVER);
        // A state may shorten delays, and a transfer may reach a hop without any.
        let transfer = self.transfers.front().map_or(Time::NEVER, |(at, ..)| *at);
        if self.loads.is_empty() {
            return departure.min(self.schedule.due()).min(transfer).finite();
        }
        if self.users_inside == 0 {
            return (self.loads.next() + KEEP_UP).finite();
        }
        // A virtual packet is emitted nowhere. All that it can do is to let something go that waits for
        // others, at the end of its hop and so after the propagation delay.
        let least = self.hops.iter().map(Hop::least_transit).min().unwrap_or(Span::ZERO);
        let load = self.loads.next() + least.min(KEEP_UP);
        departure.min(self.schedule.due()).min(transfer).min(load).finite()
    }

    fn least_transit(&self) -> Span {
        self.hops.iter().fold(Span::ZERO, |sum, hop| sum + hop.least_transit())
    }

    fn least_transit_of(&self, at: Time, port: PortId, bytes: u32) -> Span {
        // Whoever comes to a hop earlier does not leave it later, so that bounds of hops make one of the path.
        let pass = |direction| move |at: Time, hop: &Hop<E, M>| at + hop.least_transit_of(at, direction, bytes);
        let left = match port {
            PortId::CLIENT => self.hops.iter().fold(at, pass(Direction::Uplink)),
            _ => self.hops.iter().rev().fold(at, pass(Direction::Downlink)),
        };
        left.since(at)
    }

    fn state_in_force(&self) -> StateInForce {
        StateInForce { number: self.schedule.state(), entries: self.schedule.entries() }
    }

    fn held(&self) -> u64 {
        if self.loads.is_empty() {
            return self.hops.iter().map(Hop::held).sum::<u64>() + self.transfers.len() as u64;
        }
        self.users_inside
    }

    fn wants_escapes(&self, port: PortId) -> Option<Framing> {
        self.framings.get(usize::from(port.0)).copied().flatten()
    }

    fn never_idle(&self) -> bool {
        !self.loads.is_empty() || self.hops.iter().any(Hop::never_idle)
    }
}
