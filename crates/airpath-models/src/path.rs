//! A path: one or more hops in a row, and states that switch the parameters of all of them at one
//! instant.
//!
//! Source: Kojo et al. 2001, sections 4.2 (pipelining) and 5.1 (state changes).
//!
//! At one instant all service of all hops comes first (hops in order, the client's end first), then
//! state changes, then the arrival of packets that one hop hands to the next, one after the other,
//! each followed by what it causes; arrivals at the ports come last of all.

use std::collections::VecDeque;

use airpath_core::{
    Cause, Command, CommandError, Cx, Direction, Event, EventKind, Item, Machine, Pdu, PortId, Seed, Span, Time,
};

use crate::config::{HopConfig, PathConfig, StateConfig};
use crate::entity::{LinkEntity, Simple};
use crate::hop::Hop;
use crate::medium::{Continuous, Medium};

/// A path of hops with any link entities and media; the defaults are those that a scenario builds.
pub struct Path<E: LinkEntity = Simple, M: Medium = Continuous> {
    hops: Vec<Hop<E, M>>,
    states: Vec<StateConfig>,
    /// Indices into `states` that come by themselves, the next one first.
    agenda: VecDeque<usize>,
    /// When the first of those comes; `Time::NEVER` if none does.
    next_state: Time,
    /// Packets on the boundary between two hops: when, into which hop, in which direction.
    transfers: VecDeque<(Time, usize, Direction, Pdu)>,
    state: u16,
}

/// What comes next, in the order of precedence at one instant.
#[derive(Clone, Copy)]
enum Next {
    Service,
    State,
    Transfer,
}

impl Path {
    /// The path that `config` describes, at the beginning of a run with `seed`.
    pub fn new(config: &PathConfig, seed: Seed) -> Path {
        let hops = config.hops.iter().enumerate().map(|(index, hop)| Hop::new(index as u16, hop, seed)).collect();
        Path::with_hops(hops, config.states.clone())
    }
}

impl<E: LinkEntity, M: Medium> Path<E, M> {
    /// A path of ready hops.
    ///
    /// # Panics
    /// Without any hop, or when a state does not describe all of them.
    pub fn with_hops(hops: Vec<Hop<E, M>>, states: Vec<StateConfig>) -> Path<E, M> {
        assert!(!hops.is_empty(), "a path has at least one hop");
        assert!(states.iter().all(|state| state.hops.len() == hops.len()), "a state describes all hops");
        let mut agenda: Vec<usize> = (0..states.len()).filter(|index| states[*index].at.is_some()).collect();
        agenda.sort_by_key(|index| states[*index].at);
        let agenda = agenda.into();
        let mut path = Path { hops, states, agenda, next_state: Time::NEVER, transfers: VecDeque::new(), state: 0 };
        path.note_state();
        path
    }

    /// The hops, the client's end first.
    pub fn hops(&self) -> &[Hop<E, M>] {
        &self.hops
    }

    fn note_state(&mut self) {
        self.next_state = self.agenda.front().and_then(|index| self.states[*index].at).unwrap_or(Time::NEVER);
    }

    #[inline]
    fn next(&self) -> (Time, Next) {
        let service = self.hops.iter().map(Hop::next_deadline).min().unwrap_or(Time::NEVER);
        let transfer = self.transfers.front().map_or(Time::NEVER, |(at, ..)| *at);
        // At equal times the earlier line wins.
        let mut next = (service, Next::Service);
        if self.next_state < next.0 {
            next = (self.next_state, Next::State);
        }
        if transfer < next.0 {
            next = (transfer, Next::Transfer);
        }
        next
    }

    fn serve(&mut self, at: Time, cx: &mut Cx<'_>) {
        let last = self.hops.len() - 1;
        let state = self.state;
        for (index, hop) in self.hops.iter_mut().enumerate() {
            if hop.next_deadline() > at {
                continue;
            }
            let transfers = &mut self.transfers;
            hop.step(at, cx, |direction, pdu, cx| {
                let next = match direction {
                    Direction::Uplink if index < last => index + 1,
                    Direction::Downlink if index > 0 => index - 1,
                    _ => return leave(at, direction, pdu, state, cx),
                };
                let mut event = Event::of_path(at, direction, EventKind::Passed, Cause::None, &pdu, state);
                event.hop = index as u16;
                cx.record(event);
                transfers.push_back((at, next, direction, pdu));
            });
        }
    }

    fn enter(&mut self, at: Time, index: usize, cx: &mut Cx<'_>) {
        self.state = index as u16 + 1;
        let hops = self.states[index].hops.clone();
        self.configure(at, &hops, cx);
    }

    fn configure(&mut self, at: Time, configs: &[HopConfig], cx: &mut Cx<'_>) {
        cx.record(Event::of_path(
            at,
            Direction::Uplink,
            EventKind::StateChanged,
            Cause::None,
            &Pdu::default(),
            self.state,
        ));
        for (hop, config) in self.hops.iter_mut().zip(configs) {
            hop.configure(at, config, self.state, cx);
        }
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
        self.advance(at, cx);
        // Endpoints take what they are given: credits concern machines that feed other machines.
        let Item::Pdu(mut pdu) = item else { return };
        let (direction, hop) = match port {
            PortId::CLIENT => (Direction::Uplink, 0),
            _ => (Direction::Downlink, self.hops.len() - 1),
        };
        pdu.arrived = at;
        cx.record(Event::of_path(at, direction, EventKind::Offered, Cause::None, &pdu, self.state));
        self.hops[hop].offer(at, direction, pdu, cx);
    }

    fn control(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        match command {
            Command::EnterState(name) => {
                let Some(index) = self.states.iter().position(|state| *state.name == **name) else {
                    let known: Vec<&str> = self.states.iter().map(|state| state.name.as_str()).collect();
                    return Err(CommandError::UnknownState { name: name.to_string(), known: known.join(", ") });
                };
                self.advance(at, cx);
                self.enter(at, index, cx);
            }
            Command::Configure(value) => {
                let Some(hops) = value.downcast_ref::<Vec<HopConfig>>() else {
                    return Err(CommandError::Mismatch("a path takes the parameters of its hops".into()));
                };
                if hops.len() != self.hops.len() {
                    let message = format!("it has {} hops, the command describes {}", self.hops.len(), hops.len());
                    return Err(CommandError::Mismatch(message));
                }
                self.advance(at, cx);
                self.configure(at, hops, cx);
            }
        }
        Ok(())
    }

    fn advance(&mut self, to: Time, cx: &mut Cx<'_>) {
        loop {
            let (at, next) = self.next();
            if at > to || at == Time::NEVER {
                return;
            }
            match next {
                Next::Service => self.serve(at, cx),
                Next::State => {
                    if let Some(index) = self.agenda.pop_front() {
                        self.note_state();
                        self.enter(at, index, cx);
                    }
                }
                Next::Transfer => {
                    if let Some((at, hop, direction, pdu)) = self.transfers.pop_front() {
                        self.hops[hop].offer(at, direction, pdu, cx);
                    }
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.next().0.finite()
    }

    fn next_emission(&self) -> Option<Time> {
        let departure = self.hops.iter().map(Hop::next_departure).min().unwrap_or(Time::NEVER);
        // A state may shorten delays, and a transfer may reach a hop without any.
        let transfer = self.transfers.front().map_or(Time::NEVER, |(at, ..)| *at);
        departure.min(self.next_state).min(transfer).finite()
    }

    fn least_transit(&self) -> Span {
        self.hops.iter().fold(Span::ZERO, |sum, hop| sum + hop.least_transit())
    }

    fn held(&self) -> u64 {
        self.hops.iter().map(Hop::held).sum::<u64>() + self.transfers.len() as u64
    }
}
