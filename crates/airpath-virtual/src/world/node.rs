// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One machine of a world with what stands at its ports.

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_core::{
    Command, CommandError, Cx, Emission, Escapes, Framing, HeaderBytes, Item, Machine, Matches, Outputs, PacketFilters,
    Pdu, PduId, PortId, Time,
};

use super::deadlines::Deadlines;
use super::{MachineId, Observer, WorldError};
use crate::{Endpoint, Sent};

/// An item on its way from one machine to another.
pub(super) struct HandOver {
    pub to: usize,
    pub port: PortId,
    pub item: Item,
}

/// An endpoint in its place.
pub(super) struct Attachment {
    pub flow: u32,
    pub port: PortId,
    pub start: Time,
    pub started: bool,
    pub endpoint: Box<dyn Endpoint>,
    pub active: bool,
    /// Since when it is not active any more.
    pub inactive_since: Option<Time>,
}

/// Peer of a port.
#[derive(Default)]
pub(super) struct Port {
    /// The machine and the port to which it is connected.
    pub wire: Option<(usize, PortId)>,
    /// Flows and the places of their endpoints, in order of the flows.
    pub flows: Vec<(u32, usize)>,
    /// The framing for which the machine wants escapes counted, if it does.
    framing: Option<Framing>,
    /// True if the machine wants the headers of packets.
    wants_headers: bool,
    /// The filters of the machine, if it has some.
    filters: Option<Arc<dyn PacketFilters>>,
    /// The machine takes nothing for the time being; what comes waits.
    paused: bool,
    backlog: VecDeque<Item>,
}

/// A machine and its surroundings.
pub(super) struct Node<O> {
    pub machine: Box<dyn Machine>,
    pub outputs: Outputs,
    pub observer: O,
    pub ports: Vec<Port>,
    pub attachments: Vec<Attachment>,
    /// Number of active endpoints.
    pub active: usize,
    /// Number of packets that the machine held when it was last asked, and since when.
    held: (Time, u64),
    /// Packets that left through a port at which nobody waited for their flow.
    pub unclaimed: u64,
    pub begun: bool,
    commands: VecDeque<(Time, Command)>,
    next_id: PduId,
    /// The instant of the last round, and how many there were at it.
    now: Time,
    rounds: u32,
    /// Nothing leaves the machine before this, as of its last call.
    machine_due: Time,
    timers: Deadlines,
    /// Items of other machines, to be offered at `now`.
    inbox: Vec<(PortId, Item)>,
    /// Ports whose pause is over, and whose backlog goes before anything else.
    released: Vec<PortId>,
    sent: Sent,
    /// Sender of each group of packets in `sent` and their number, and the sum of these numbers.
    senders: Vec<(usize, usize)>,
    sent_before: usize,
}

/// Number of rounds at one instant that are no work but a circle.
const ROUNDS_LIMIT: u32 = 1_000_000;

impl<O: Observer> Node<O> {
    pub(super) fn new(machine: Box<dyn Machine>, observer: O) -> Node<O> {
        let outputs = Outputs {
            level: observer.level(),
            leaves_out: observer.leaves_out(),
            keeps_links: observer.keeps_links(),
            ..Outputs::default()
        };
        let machine_due = machine.next_emission().unwrap_or(Time::NEVER);
        Node {
            machine,
            outputs,
            observer,
            ports: Vec::new(),
            attachments: Vec::new(),
            active: 0,
            held: (Time::ZERO, 0),
            unclaimed: 0,
            begun: false,
            commands: VecDeque::new(),
            next_id: 1,
            now: Time::ZERO,
            rounds: 0,
            machine_due,
            timers: Deadlines::default(),
            inbox: Vec::new(),
            released: Vec::new(),
            sent: Sent::default(),
            senders: Vec::new(),
            sent_before: 0,
        }
    }

    /// The port with its surroundings, which are empty if nothing has been said about it.
    #[inline]
    pub(super) fn port(&mut self, port: PortId) -> &mut Port {
        let index = usize::from(port.0);
        if index >= self.ports.len() {
            self.make_ports(index);
        }
        &mut self.ports[index]
    }

    #[cold]
    fn make_ports(&mut self, last: usize) {
        for number in self.ports.len()..=last {
            let port = PortId(number as u16);
            let (framing, wants_headers) = (self.machine.wants_escapes(port), self.machine.wants_headers(port));
            let filters = self.machine.wants_filters(port);
            self.ports.push(Port { framing, wants_headers, filters, ..Port::default() });
        }
    }

    pub(super) fn attach(&mut self, attachment: Attachment) {
        self.active += usize::from(attachment.active);
        self.attachments.push(attachment);
    }

    pub(super) fn command(&mut self, at: Time, command: Command) {
        // Behind those of the same instant.
        let index = self.commands.partition_point(|(other, _)| *other <= at);
        self.commands.insert(index, (at, command));
    }

    /// The time reached.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// Before a run: everything added since the last one gets its deadline.
    pub(super) fn prepare(&mut self) {
        self.timers = Deadlines::new(self.attachments.len());
        for index in 0..self.attachments.len() {
            self.note_timer(index);
        }
        if !self.begun {
            self.begun = true;
            self.observer.begin();
        }
    }

    /// Time of the node's next work.
    #[inline]
    pub(super) fn due(&self) -> Time {
        if !self.inbox.is_empty() || !self.outputs.emissions.is_empty() || !self.released.is_empty() {
            return self.now;
        }
        let command = self.commands.front().map_or(Time::NEVER, |(at, _)| *at);
        self.machine_due.min(self.timers.first().0).min(command)
    }

    /// Time since which the machine has held as many packets as at `at`, as far as this was asked.
    pub(super) fn held_since(&mut self, at: Time) -> Time {
        let held = self.machine.held();
        if self.held.1 != held {
            self.held = (at, held);
        }
        self.held.0
    }

    /// True if anything but the machine itself has work pending.
    pub(super) fn expects_something(&self) -> bool {
        self.timers.first().0 != Time::NEVER
            || !(self.commands.is_empty() && self.inbox.is_empty() && self.released.is_empty())
            || !self.outputs.emissions.is_empty()
            || self.ports.iter().any(|port| !port.backlog.is_empty())
    }

    /// Takes an item of another machine, to be offered at `at`.
    pub(super) fn take(&mut self, at: Time, port: PortId, item: Item) {
        self.reach(at);
        self.inbox.push((port, item));
    }

    fn reach(&mut self, at: Time) {
        debug_assert!(at >= self.now, "time runs backwards from {:?} to {at:?}", self.now);
        if at != self.now {
            self.now = at;
            self.rounds = 0;
        }
    }

    /// One round at `at`: the machine's own events, commands, arrivals at the endpoints and at other
    /// machines, timers, and offers. What they cause at the same instant is due in the next round.
    pub(super) fn round(&mut self, at: Time, outbox: &mut Vec<HandOver>) -> Result<(), NodeError> {
        self.reach(at);
        self.rounds += 1;
        if self.rounds > ROUNDS_LIMIT {
            return Err(NodeError::Standstill { at });
        }
        let mut touched = self.machine_due <= at;
        if touched {
            (*self.machine).advance(at, &mut Cx::new(&mut self.outputs));
            self.heed_machine();
        }
        while self.commands.front().is_some_and(|(due, _)| *due <= at) {
            touched = true;
            self.carry_out(at)?;
        }
        if !self.outputs.emissions.is_empty() {
            self.show_events();
            self.carry_away(at, outbox);
        }
        while let (due, index) = self.timers.first()
            && due <= at
        {
            self.run_timer(at, index);
        }
        if !(self.senders.is_empty() && self.inbox.is_empty() && self.released.is_empty()) {
            self.offer_all(at);
            touched = true;
        }
        // Once for all that has been done to it: its answer takes long compared with the rest.
        if touched {
            self.machine_due = (*self.machine).next_emission().unwrap_or(Time::NEVER);
        }
        // Where something has left already, its events go with it in the next round.
        if self.outputs.emissions.is_empty() {
            self.show_events();
        }
        self.observer.turn(at);
        Ok(())
    }

    /// Brings the machine itself to `at`, the end of a run: what emits nothing may be left to do.
    pub(super) fn settle(&mut self, at: Time) {
        self.reach(at);
        (*self.machine).advance(at, &mut Cx::new(&mut self.outputs));
        self.machine_due = (*self.machine).next_emission().unwrap_or(Time::NEVER);
        self.heed_machine();
        assert!(self.outputs.emissions.is_empty(), "by {at:?} a machine emitted what it had not announced");
        self.show_events();
    }

    fn carry_out(&mut self, at: Time) -> Result<(), NodeError> {
        let Some((_, command)) = self.commands.pop_front() else { return Ok(()) };
        self.observer.commanded(at, &command);
        let outcome = self.machine.control(at, &command, &mut Cx::new(&mut self.outputs));
        for (number, port) in self.ports.iter_mut().enumerate() {
            port.filters = self.machine.wants_filters(PortId(number as u16));
        }
        self.heed_machine();
        outcome.map_err(|error| NodeError::Command { at, error })
    }

    /// Heeds what the machine has said about its ports.
    #[inline]
    fn heed_machine(&mut self) {
        if !self.outputs.flow_control.is_empty() {
            self.note_flow_control();
        }
    }

    #[cold]
    fn note_flow_control(&mut self) {
        for (port, paused) in std::mem::take(&mut self.outputs.flow_control) {
            let state = self.port(port);
            state.paused = paused;
            if !paused && !state.backlog.is_empty() {
                self.released.push(port);
            }
        }
    }

    #[inline]
    fn show_events(&mut self) {
        if !self.outputs.links.is_empty() {
            self.observer.links(&self.outputs.links);
            self.outputs.links.clear();
        }
        if !self.outputs.events.is_empty() {
            self.observer.events(&self.outputs.events);
            self.outputs.events.clear();
        }
    }

    /// Carries what left the machine to where it goes.
    fn carry_away(&mut self, at: Time, outbox: &mut Vec<HandOver>) {
        // Mostly there is one, and taking it from the end costs least. Nothing emits meanwhile.
        self.outputs.emissions.reverse();
        while let Some(emission) = self.outputs.emissions.pop() {
            self.arrive(at, emission, outbox);
        }
    }

    /// Carries an item that left through a port to the connected machine or the endpoint of its flow.
    fn arrive(&mut self, at: Time, emission: Emission, outbox: &mut Vec<HandOver>) {
        assert!(emission.at == at, "at {at:?} something was emitted that was due at {:?}", emission.at);
        self.observer.emitted(&emission);
        let state = self.ports.get(usize::from(emission.port.0));
        if let Some((to, port)) = state.and_then(|state| state.wire) {
            return outbox.push(HandOver { to, port, item: emission.item });
        }
        // Signals concern machines only.
        let Item::Pdu(pdu) = emission.item else { return };
        let place = state.and_then(|state| {
            let index = state.flows.binary_search_by_key(&pdu.flow, |(flow, _)| *flow).ok()?;
            Some(state.flows[index].1)
        });
        match place {
            Some(index) if self.attachments[index].start <= at => {
                if !self.attachments[index].started {
                    self.start(at, index);
                }
                self.attachments[index].endpoint.receive(at, pdu, &mut self.sent);
                self.note_endpoint(at, index);
            }
            _ => self.unclaimed += 1,
        }
    }

    fn run_timer(&mut self, at: Time, index: usize) {
        if !self.attachments[index].started {
            return self.start(at, index);
        }
        self.attachments[index].endpoint.advance(at, &mut self.sent);
        let next = self.note_endpoint(at, index);
        assert!(next > at, "after advancing to {at:?} an endpoint has a timer due at {next:?}");
    }

    fn start(&mut self, at: Time, index: usize) {
        self.attachments[index].started = true;
        self.attachments[index].endpoint.start(at, &mut self.sent);
        self.note_endpoint(at, index);
    }

    /// After a call of an endpoint: what it sent, how it stands, when it wants to be called.
    fn note_endpoint(&mut self, at: Time, index: usize) -> Time {
        if self.sent.len() > self.sent_before {
            self.senders.push((index, self.sent.len() - self.sent_before));
            self.sent_before = self.sent.len();
        }
        let attachment = &mut self.attachments[index];
        let active = attachment.endpoint.is_active();
        if active != attachment.active {
            attachment.active = active;
            attachment.inactive_since = (!active).then_some(at);
            if active {
                self.active += 1;
            } else {
                self.active -= 1;
            }
        }
        self.note_timer(index)
    }

    fn note_timer(&mut self, index: usize) -> Time {
        let attachment = &self.attachments[index];
        let due = match attachment.started {
            true => attachment.endpoint.next_deadline().unwrap_or(Time::NEVER),
            false => attachment.start,
        };
        self.timers.set(index, due);
        due
    }

    /// Offers what a pause kept back, then what other machines handed over, then what the endpoints
    /// have sent.
    fn offer_all(&mut self, at: Time) {
        if !self.released.is_empty() {
            self.offer_backlogs(at);
        }
        if !self.inbox.is_empty() {
            let mut inbox = std::mem::take(&mut self.inbox);
            for (port, item) in inbox.drain(..) {
                self.offer(at, port, item);
            }
            self.inbox = inbox;
        }
        if !self.senders.is_empty() {
            self.offer_sent(at);
        }
    }

    #[cold]
    fn offer_backlogs(&mut self, at: Time) {
        for port in std::mem::take(&mut self.released) {
            while !self.is_paused(at, port)
                && let Some(mut item) = self.port(port).backlog.pop_front()
            {
                self.identify(at, port, &mut item);
                (*self.machine).offer(at, port, item, &mut Cx::new(&mut self.outputs));
                self.heed_machine();
            }
        }
    }

    /// Offers what the endpoints have sent.
    fn offer_sent(&mut self, at: Time) {
        self.sent.reverse();
        for group in 0..self.senders.len() {
            let (index, count) = self.senders[group];
            let Attachment { port, flow, .. } = self.attachments[index];
            for _ in 0..count {
                let Some(mut pdu) = self.sent.pop() else { break };
                pdu.flow = flow;
                self.offer(at, port, Item::Pdu(pdu));
            }
        }
        self.senders.clear();
        self.sent_before = 0;
    }

    /// True if the machine takes nothing through `port` at `at`, once everything due by then has been run.
    fn is_paused(&mut self, at: Time, port: PortId) -> bool {
        if self.machine.controls_flow(port) {
            (*self.machine).advance(at, &mut Cx::new(&mut self.outputs));
            self.heed_machine();
        }
        self.port(port).paused
    }

    fn offer(&mut self, at: Time, port: PortId, mut item: Item) {
        let paused = self.is_paused(at, port);
        let state = self.port(port);
        if paused || !state.backlog.is_empty() {
            return state.backlog.push_back(item);
        }
        self.identify(at, port, &mut item);
        (*self.machine).offer(at, port, item, &mut Cx::new(&mut self.outputs));
        self.heed_machine();
    }

    /// Gives a packet that is about to be offered its identity and its time.
    fn identify(&mut self, at: Time, port: PortId, item: &mut Item) {
        let Item::Pdu(pdu) = item else { return };
        pdu.id = self.next_id;
        pdu.arrived = at;
        let Port { framing, wants_headers, filters, .. } = self.port(port);
        if framing.is_some() || *wants_headers || filters.is_some() {
            tell_contents(pdu, *framing, *wants_headers, filters.as_deref());
        }
        self.next_id += 1;
        self.observer.offered(at, port, pdu);
    }
}

/// Tells a machine what it wants to know of the contents of `pdu`.
fn tell_contents(
    pdu: &mut Pdu,
    framing: Option<Framing>,
    wants_headers: bool,
    filters: Option<&(dyn PacketFilters + 'static)>,
) {
    let contents = pdu.contents();
    let escapes = match framing {
        Some(framing) if !contents.is_empty() => framing.escapes(&contents),
        _ => Escapes::UNKNOWN,
    };
    let matches = match filters {
        Some(filters) if !contents.is_empty() => filters.matches(&contents, pdu.len),
        _ => Matches::NONE,
    };
    let headers = HeaderBytes::of(&contents, pdu.header_len).filter(|_| wants_headers);
    (pdu.escapes, pdu.matches, pdu.headers) = (escapes, matches, headers);
}

/// Error that ends the run of a node early.
pub(super) enum NodeError {
    Command { at: Time, error: CommandError },
    Standstill { at: Time },
}

impl NodeError {
    pub(super) fn of_machine(self, machine: MachineId) -> WorldError {
        match self {
            NodeError::Command { at, error } => WorldError::Command { machine, at, error },
            NodeError::Standstill { at } => WorldError::Standstill { machine, at },
        }
    }
}
