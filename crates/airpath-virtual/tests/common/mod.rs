// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Shared helpers for tests of worlds: simple endpoints, and an observer that keeps everything.

pub mod chatter;

use airpath_core::{Command, Emission, Event, Item, LogLevel, Machine, Pdu, PortId, Seed, Span, Time};
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use airpath_virtual::{Ending, Endpoint, FinishedMachine, MachineEnd, Observer, Progress, Sent, World};

pub fn ms(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

/// Reads a quantity as a scenario would.
pub fn read<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// 8 kbit/s, so that 100 bytes take 100 ms, and 10 ms to the other end.
pub fn slow() -> LinkConfig {
    LinkConfig { rate: read("8 kbit/s"), propagation: read("10 ms"), ..LinkConfig::default() }
}

pub fn hop(name: &str, link: &LinkConfig) -> HopConfig {
    HopConfig { name: name.into(), uplink: link.clone(), downlink: link.clone() }
}

pub fn path(hops: Vec<HopConfig>) -> Box<dyn Machine> {
    Box::new(Path::new(&PathConfig { hops, ..PathConfig::default() }, Seed(1)))
}

pub fn link(link: &LinkConfig) -> Box<dyn Machine> {
    path(vec![hop("radio", link)])
}

pub fn packet(len: u32) -> Pdu {
    Pdu { len, header_len: 20, ..Pdu::default() }
}

/// Sends `count` packets, one every `interval`, and is done with the last.
pub struct Source {
    pub interval: Span,
    pub len: u32,
    pub count: u64,
    next: Time,
}

impl Source {
    pub fn new(interval: Span, len: u32, count: u64) -> Box<Source> {
        Box::new(Source { interval, len, count, next: Time::NEVER })
    }
}

impl Endpoint for Source {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.next = at;
        self.advance(at, out);
    }
    fn receive(&mut self, _: Time, _: Pdu, _: &mut Sent) {}
    fn advance(&mut self, at: Time, out: &mut Sent) {
        while self.count > 0 && self.next <= at {
            out.push(packet(self.len));
            self.count -= 1;
            self.next += self.interval;
        }
    }
    fn next_deadline(&self) -> Option<Time> {
        (self.count > 0).then_some(self.next)
    }
    fn progress(&self) -> Progress {
        if self.count > 0 { Progress::Active } else { Progress::Done }
    }
}

/// Answers every packet at once by one of `len` bytes; with 0 it says nothing.
pub struct Echo {
    pub len: u32,
}

impl Endpoint for Echo {
    fn start(&mut self, _: Time, _: &mut Sent) {}
    fn receive(&mut self, _: Time, _: Pdu, out: &mut Sent) {
        if self.len > 0 {
            out.push(packet(self.len));
        }
    }
    fn advance(&mut self, _: Time, _: &mut Sent) {}
    fn next_deadline(&self) -> Option<Time> {
        None
    }
    fn progress(&self) -> Progress {
        Progress::Done
    }
}

pub fn sink() -> Box<Echo> {
    Box::new(Echo { len: 0 })
}

/// Sends one packet after the other, the next when the answer to the last has come.
pub struct Asker {
    pub len: u32,
    pub questions: u32,
}

impl Endpoint for Asker {
    fn start(&mut self, _: Time, out: &mut Sent) {
        out.push(packet(self.len));
    }
    fn receive(&mut self, _: Time, _: Pdu, out: &mut Sent) {
        self.questions -= 1;
        if self.questions > 0 {
            out.push(packet(self.len));
        }
    }
    fn advance(&mut self, _: Time, _: &mut Sent) {}
    fn next_deadline(&self) -> Option<Time> {
        None
    }
    fn progress(&self) -> Progress {
        if self.questions > 0 { Progress::Active } else { Progress::Done }
    }
}

/// A packet as it is seen at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub at: Time,
    pub port: PortId,
    pub id: u64,
    pub flow: u32,
    pub len: u32,
    pub header_len: u16,
    pub flips: Vec<u32>,
}

impl Seen {
    pub fn of(at: Time, port: PortId, pdu: &Pdu) -> Seen {
        let flips = pdu.damage.as_ref().map(|damage| damage.flips.clone()).unwrap_or_default();
        Seen { at, port, id: pdu.id, flow: pdu.flow, len: pdu.len, header_len: pdu.header_len, flips }
    }

    pub fn of_emission(emission: &Emission) -> Option<Seen> {
        match &emission.item {
            Item::Pdu(pdu) => Some(Seen::of(emission.at, emission.port, pdu)),
            Item::Signal(_) => None,
        }
    }
}

/// Everything that an observer is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    pub offered: Vec<Seen>,
    pub emitted: Vec<Seen>,
    pub events: Vec<Event>,
    pub commands: Vec<Time>,
    pub turns: Vec<Time>,
    pub ending: Option<(Ending, u64)>,
}

impl Observer for Watch {
    fn level(&self) -> LogLevel {
        LogLevel::Events
    }
    fn offered(&mut self, at: Time, port: PortId, pdu: &Pdu) {
        self.offered.push(Seen::of(at, port, pdu));
    }
    fn commanded(&mut self, at: Time, _: &Command) {
        self.commands.push(at);
    }
    fn events(&mut self, events: &[Event]) {
        self.events.extend_from_slice(events);
    }
    fn emitted(&mut self, emission: &Emission) {
        self.emitted.extend(Seen::of_emission(emission));
    }
    fn turn(&mut self, at: Time) {
        self.turns.push(at);
    }
    fn end(&mut self, end: &MachineEnd<'_>) {
        self.ending = Some((end.ending, end.held));
    }
}

/// The times, in milliseconds, at which packets left each machine.
pub fn departures(machines: &[FinishedMachine<Watch>]) -> Vec<Vec<(u64, u16, u64)>> {
    let of = |machine: &FinishedMachine<Watch>| {
        let seen = machine.observer.emitted.iter();
        seen.map(|seen| (seen.at.nanos() / 1_000_000, seen.port.0, seen.id)).collect()
    };
    machines.iter().map(of).collect()
}

pub fn world() -> World<Watch> {
    World::new()
}
