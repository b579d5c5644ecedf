// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The laws over whole scenarios in worlds: threads, extra stops, records and replays change nothing,
//! and nothing gets lost.

use std::num::NonZeroUsize;

use airpath_core::{Counters, Direction, EventKind, LogLevel, Origin, Pdu, PortId, Span, Time};
use airpath_models::{Path, PathConfig};
use airpath_scenario::Scenario;
use airpath_virtual::{
    DriveUntil, Ended, FinishedMachine, MachineId, Observer, TimedInput, Until, VirtualDriver, World,
};

use crate::common::chatter::{Chatter, attach_chatter, machine_of, scenarios, seed_of};
use crate::common::{Seen, Watch, ms};

const CLIENT: PortId = PortId::CLIENT;
const SERVER: PortId = PortId::SERVER;
const DONE: Until = Until::Done { latest: Time::NEVER };

fn threads(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Every scenario by itself with two seeds; and all of them once more in chains of up to three.
fn whole_world<O: Observer + Default>(configs: &[PathConfig]) -> World<O> {
    let mut world = World::new();
    for (index, config) in configs.iter().enumerate() {
        for seed in [index as u64, 1_000 + index as u64] {
            let machine = world.machine(machine_of(config, seed), O::default());
            attach_chatter(&mut world, (machine, CLIENT), (machine, SERVER), seed);
        }
    }
    for (index, chain) in configs.chunks(3).enumerate() {
        let seed = 2_000 + index as u64;
        let machines: Vec<MachineId> =
            chain.iter().map(|config| world.machine(machine_of(config, seed), O::default())).collect();
        for pair in machines.windows(2) {
            world.connect((pair[0], SERVER), (pair[1], CLIENT));
        }
        attach_chatter(&mut world, (machines[0], CLIENT), (machines[machines.len() - 1], SERVER), seed);
    }
    world
}

fn configs() -> Vec<PathConfig> {
    scenarios().into_iter().map(|(_, config)| config).collect()
}

fn assert_same(one: &[FinishedMachine<Watch>], other: &[FinishedMachine<Watch>], what: &str) {
    assert_eq!(one.len(), other.len());
    for (index, (one, other)) in one.iter().zip(other).enumerate() {
        let events = (&one.observer.events, &other.observer.events);
        let same = events.0.iter().zip(events.1).take_while(|(one, other)| one == other).count();
        assert!(events.0 == events.1, "{what}: events of machine {index} differ from number {same} on");
        assert!(one.observer == other.observer, "{what}: machine {index} is seen differently");
        assert_eq!(one.counters, other.counters, "{what}: counters of machine {index}");
        let state = |machine: &FinishedMachine<Watch>| {
            let endpoints = machine.endpoints.iter();
            let endpoints: Vec<_> = endpoints.map(|end| (end.flow, end.port, end.inactive_since)).collect();
            (machine.held, machine.unclaimed, machine.ending, endpoints)
        };
        assert_eq!(state(one), state(other), "{what}: machine {index}");
    }
}

#[test]
fn every_number_of_threads_gives_the_same() {
    let configs = configs();
    assert!(configs.len() > 40, "only {} scenarios", configs.len());
    let run = |count| {
        let mut world = whole_world::<Watch>(&configs);
        world.run(DONE, threads(count)).unwrap();
        world.finish()
    };
    let single = run(1);
    for machine in &single {
        assert!(machine.observer.emitted.len() > 20, "only {} packets", machine.observer.emitted.len());
    }
    for count in [2, 5] {
        assert_same(&single, &run(count), &format!("{count} threads"));
    }
}

#[test]
fn stops_on_the_way_change_nothing() {
    let configs = configs();
    let mut straight = whole_world::<Watch>(&configs);
    straight.run(Until::At(ms(60_000)), threads(1)).unwrap();
    let mut halting = whole_world::<Watch>(&configs);
    // At times when something happens and when nothing does, the same twice, with other threads.
    for (step, at) in [0, 1, 40, 40, 700, 777, 3_000, 21_000, 60_000].into_iter().enumerate() {
        halting.run(Until::At(ms(at)), threads(1 + step % 2)).unwrap();
    }
    // A machine that has been stopped may know better when it emits next, and be woken less often.
    let without_turns = |world: World<Watch>| {
        let mut machines = world.finish();
        machines.iter_mut().for_each(|machine| machine.observer.turns.clear());
        machines
    };
    assert_same(&without_turns(straight), &without_turns(halting), "stops");
}

#[test]
fn packets_are_conserved_and_seen_as_they_are_counted() {
    let mut world = whole_world::<Watch>(&configs());
    world.run(Until::At(ms(5_000)), threads(2)).unwrap();
    let (mut held, mut dropped) = (0, 0);
    for machine in world.finish() {
        let total = |kind| Direction::ALL.map(|direction| machine.counters.total(direction, kind)).iter().sum::<u64>();
        let (offered, delivered) = (total(EventKind::Offered), total(EventKind::Delivered));
        assert_eq!(offered, delivered + total(EventKind::Dropped) + machine.held);
        let seen = &machine.observer;
        assert_eq!((seen.offered.len() as u64, seen.emitted.len() as u64), (offered, delivered));
        assert!(seen.offered.iter().zip(1..).all(|(seen, id)| seen.id == id), "identities count up");
        let mut recount = Counters::default();
        seen.events.iter().for_each(|event| recount.count(event));
        assert_eq!(recount, machine.counters);
        assert_eq!(machine.unclaimed, 0);
        held += machine.held;
        dropped += total(EventKind::Dropped);
    }
    assert!(held > 100 && dropped > 500, "{held} held and {dropped} dropped test little");
}

/// Law 6: the input log of a machine, played to it alone, gives its trace.
#[test]
fn what_was_offered_replays_to_the_same_trace() {
    let configs = configs();
    let mut world = whole_world::<Watch>(&configs);
    world.run(Until::At(ms(30_000)), threads(2)).unwrap();
    let alone = 2 * configs.len();
    for (index, machine) in world.finish().iter().take(alone).enumerate() {
        let seed = [0, 1_000][index % 2] + index as u64 / 2;
        let mut driver = VirtualDriver::new(Path::new(&configs[index / 2], airpath_core::Seed(seed)), LogLevel::Events);
        let inputs = machine.observer.offered.iter().map(|seen| {
            let pdu =
                Pdu { id: seen.id, len: seen.len, header_len: seen.header_len, flow: seen.flow, ..Pdu::default() };
            TimedInput::packet(seen.at, seen.port, pdu)
        });
        driver.run(inputs, DriveUntil::At(ms(30_000)), |_| ()).unwrap();
        assert!(driver.outputs().events == machine.observer.events, "events of machine {index}");
        let emitted: Vec<Seen> = driver.outputs().emissions.iter().filter_map(Seen::of_emission).collect();
        assert!(emitted == machine.observer.emitted, "emissions of machine {index}");
    }
}

/// The same as `Watch`, but the machine keeps counters only.
#[derive(Default)]
struct Quiet(Watch);

impl Observer for Quiet {
    fn offered(&mut self, at: Time, port: PortId, pdu: &Pdu) {
        self.0.offered(at, port, pdu);
    }
    fn emitted(&mut self, emission: &airpath_core::Emission) {
        self.0.emitted(emission);
    }
}

#[test]
fn what_is_recorded_changes_nothing() {
    let configs = configs();
    let (mut loud, mut quiet) = (whole_world::<Watch>(&configs), whole_world::<Quiet>(&configs));
    loud.run(DONE, threads(2)).unwrap();
    quiet.run(DONE, threads(2)).unwrap();
    for (loud, quiet) in loud.finish().iter().zip(quiet.finish()) {
        assert!(loud.observer.offered == quiet.observer.0.offered && loud.observer.emitted == quiet.observer.0.emitted);
        assert_eq!((&loud.counters, loud.ending), (&quiet.counters, quiet.ending));
    }
}

/// Ten thousand links that are never idle, each with a connection of its own and a frame in every block.
#[test]
fn ten_thousand_radio_links_share_a_world() {
    const LINKS: usize = 10_000;
    let scenario = Scenario::profile("gsm-rlp-9.6k").unwrap();
    let config = scenario.paths().unwrap().remove(0).config;
    let mut world = World::new();
    for index in 0..LINKS {
        let machine = world.machine(machine_of(&config, index as u64), ());
        for (end, port) in [CLIENT, SERVER].into_iter().enumerate() {
            let endpoint = Chatter::new(seed_of(index as u64, 1, end), 1, Span::from_millis(100));
            world.attach(1, machine, port, Time::ZERO, endpoint);
        }
    }
    world.run(Until::At(ms(3_000)), threads(1)).unwrap();
    let mut delivered = 0;
    for machine in world.finish() {
        let frames = |direction, origin| machine.counters.total_of(direction, origin, EventKind::FrameSent).count;
        for direction in Direction::ALL {
            // Blocks from 20 ms on; the one that begins at 3 s is on the air.
            assert_eq!(frames(direction, Origin::User) + frames(direction, Origin::Control), 149);
            delivered += machine.counters.total(direction, EventKind::Delivered);
        }
    }
    assert!(delivered as usize > LINKS, "{delivered} of {} packets were delivered", 2 * LINKS);
}

/// Packets that stay in a machine for good end a run all the same, though its entities repeat their frames for ever.
#[test]
fn packets_that_stay_for_good_end_a_run() {
    let mut scenario = Scenario::profile("gsm-rlp-9.6k").unwrap();
    scenario.set("radio.link.errors={ type = \"bernoulli\", probability = 1, per = \"frame\" }").unwrap();
    let config = scenario.paths().unwrap().remove(0).config;
    let mut world = World::new();
    let machine = world.machine(machine_of(&config, 1), ());
    attach_chatter(&mut world, (machine, CLIENT), (machine, SERVER), 1);
    // In pieces that are shorter than the wait for anything to change.
    let mut latest = Time::ZERO;
    while world.ending(machine).is_none_or(|ending| ending.why == Ended::Time) {
        latest += Span::from_secs(600);
        world.run(Until::Done { latest }, threads(1)).unwrap();
        assert!(latest < Time::from_nanos(100_000_000_000_000), "it never ends");
    }
    let ending = world.ending(machine).unwrap();
    assert_eq!(ending.why, Ended::Stalled);
    assert!(ending.at < Time::from_nanos(4_000_000_000_000), "{:?}", ending.at);
}
