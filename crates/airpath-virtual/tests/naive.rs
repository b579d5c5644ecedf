// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A world against one that is written for clarity alone: no deadline is kept, every part is asked at
//! every step, every machine is woken at each of its deadlines, and everything happens in one order.

use std::num::NonZeroUsize;

use airpath_core::{Cx, Event, Item, LogLevel, Machine, Outputs, Pdu, PortId, Time};
use airpath_models::PathConfig;
use airpath_virtual::{Endpoint, Sent, Until, World};

use crate::common::chatter::{self, Chatter, attach_chatter, machine_of, scenarios};
use crate::common::{Seen, Watch, ms};

const CLIENT: PortId = PortId::CLIENT;
const SERVER: PortId = PortId::SERVER;

struct Place {
    flow: u32,
    port: PortId,
    start: Time,
    started: bool,
    endpoint: Box<Chatter>,
}

impl Place {
    fn due(&self) -> Time {
        if self.started { self.endpoint.next_deadline().unwrap_or(Time::NEVER) } else { self.start }
    }
}

struct Naive {
    machine: Box<dyn Machine>,
    outputs: Outputs,
    places: Vec<Place>,
    /// Ports that lead to a port of another machine.
    wires: Vec<(PortId, usize, PortId)>,
    inbox: Vec<(PortId, Pdu)>,
    /// Ports that the machine has paused, and what waits for them.
    paused: Vec<PortId>,
    waiting: Vec<(PortId, Pdu)>,
    offered: Vec<Seen>,
    emitted: Vec<Seen>,
}

impl Naive {
    fn new(config: &PathConfig, seed: u64) -> Naive {
        Naive {
            machine: machine_of(config, seed),
            outputs: Outputs { level: LogLevel::Events, ..Outputs::default() },
            places: Vec::new(),
            wires: Vec::new(),
            inbox: Vec::new(),
            paused: Vec::new(),
            waiting: Vec::new(),
            offered: Vec::new(),
            emitted: Vec::new(),
        }
    }

    /// Runs the machine to `now`, and heeds what it says about its ports.
    fn advance(&mut self, now: Time) {
        self.machine.advance(now, &mut Cx::new(&mut self.outputs));
        self.heed();
    }

    fn heed(&mut self) {
        for (port, pauses) in std::mem::take(&mut self.outputs.flow_control) {
            self.paused.retain(|other| *other != port);
            self.paused.extend(pauses.then_some(port));
        }
    }

    /// `now` if something waits that may go on.
    fn due(&self, now: Time) -> Time {
        let waiting = !self.inbox.is_empty() || !self.outputs.emissions.is_empty();
        if waiting || self.waiting.iter().any(|(port, _)| !self.paused.contains(port)) {
            return now;
        }
        let machine = self.machine.next_deadline().unwrap_or(Time::NEVER);
        self.places.iter().map(Place::due).chain([machine]).min().unwrap()
    }
}

/// Runs everything due at or before `last`.
fn run(machines: &mut [Naive], last: Time) {
    let mut now = Time::ZERO;
    loop {
        let (due, index) = machines.iter().enumerate().map(|(index, machine)| (machine.due(now), index)).min().unwrap();
        now = now.max(due);
        if now > last {
            return;
        }
        let mut handed_over = Vec::new();
        let this = &mut machines[index];
        this.advance(now);
        let mut sent = Vec::new();
        let mut collect = |place: &Place, out: &mut Sent| {
            sent.extend(out.drain().map(|pdu| (place.port, Pdu { flow: place.flow, ..pdu })));
        };
        let mut out = Sent::default();
        for emission in std::mem::take(&mut this.outputs.emissions) {
            this.emitted.extend(Seen::of_emission(&emission));
            let Item::Pdu(pdu) = emission.item else { continue };
            if let Some((_, to, port)) = this.wires.iter().find(|(from, ..)| *from == emission.port) {
                handed_over.push((*to, *port, pdu));
                continue;
            }
            let place = this.places.iter_mut().find(|place| place.port == emission.port && place.flow == pdu.flow);
            let place = place.filter(|place| place.start <= now).expect("somebody waits for it");
            if !place.started {
                place.started = true;
                place.endpoint.start(now, &mut out);
            }
            place.endpoint.receive(now, pdu, &mut out);
            collect(place, &mut out);
        }
        for place in &mut this.places {
            while place.due() <= now {
                if place.started {
                    place.endpoint.advance(now, &mut out);
                } else {
                    place.started = true;
                    place.endpoint.start(now, &mut out);
                }
                collect(place, &mut out);
            }
        }
        let arrived = std::mem::take(&mut this.inbox);
        let waited = std::mem::take(&mut this.waiting);
        for (port, pdu) in waited.into_iter().chain(arrived).chain(sent) {
            this.advance(now);
            if this.paused.contains(&port) || this.waiting.iter().any(|(other, _)| *other == port) {
                this.waiting.push((port, pdu));
                continue;
            }
            let pdu = Pdu { id: this.offered.len() as u64 + 1, arrived: now, ..pdu };
            this.offered.push(Seen::of(now, port, &pdu));
            this.machine.offer(now, port, Item::Pdu(pdu), &mut Cx::new(&mut this.outputs));
            this.heed();
        }
        for (to, port, pdu) in handed_over {
            machines[to].inbox.push((port, pdu));
        }
    }
}

/// The traffic of `attach_chatter`, attached by hand.
fn attach(machines: &mut [Naive], from: (usize, PortId), to: (usize, PortId), seed: u64) {
    for (flow, packets, pause, start) in chatter::WORKLOADS {
        for (end, (machine, port)) in [from, to].into_iter().enumerate() {
            let endpoint = Chatter::new(chatter::seed_of(seed, flow, end), packets, pause);
            machines[machine].places.push(Place { flow, port, start, started: false, endpoint });
        }
    }
}

fn compare(configs: &[&PathConfig], seed: u64, what: &str) {
    let last = ms(20_000);
    let end = configs.len() - 1;
    let mut naive: Vec<Naive> = configs.iter().map(|config| Naive::new(config, seed)).collect();
    let mut world = World::new();
    let machines: Vec<_> =
        configs.iter().map(|config| world.machine(machine_of(config, seed), Watch::default())).collect();
    for index in 0..end {
        naive[index].wires.push((SERVER, index + 1, CLIENT));
        naive[index + 1].wires.push((CLIENT, index, SERVER));
        world.connect((machines[index], SERVER), (machines[index + 1], CLIENT));
    }
    attach(&mut naive, (0, CLIENT), (end, SERVER), seed);
    attach_chatter(&mut world, (machines[0], CLIENT), (machines[end], SERVER), seed);
    run(&mut naive, last);
    world.run(Until::At(last), NonZeroUsize::MIN).unwrap();
    for (index, (naive, machine)) in naive.iter().zip(world.finish()).enumerate() {
        let (expected, seen): (&[Event], &[Event]) = (&naive.outputs.events, &machine.observer.events);
        let same = expected.iter().zip(seen).take_while(|(expected, seen)| expected == seen).count();
        assert!(expected == seen, "{what}: machine {index} differs at event {same}");
        assert!(naive.offered == machine.observer.offered, "{what}: offers of machine {index}");
        assert!(naive.emitted == machine.observer.emitted, "{what}: emissions of machine {index}");
        assert!(naive.emitted.len() > 20, "{what}: only {} packets", naive.emitted.len());
    }
}

#[test]
fn a_world_is_what_the_naive_one_is() {
    let scenarios = scenarios();
    for (index, (name, config)) in scenarios.iter().enumerate() {
        compare(&[config], index as u64, name);
    }
    for (index, chain) in scenarios.windows(3).step_by(3).enumerate() {
        let configs: Vec<&PathConfig> = chain.iter().map(|(_, config)| config).collect();
        compare(&configs, index as u64, &format!("the chain from {} on", chain[0].0));
    }
}
