// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that are certain to leave. That machines keep such promises is a law (`common::Runner`); here the
//! promises are computed by hand.

use airpath_core::{Cx, Item, LogLevel, Machine, Outputs, Pdu, PortId, Seed, Time};
use airpath_models::blackout::BlackoutConfig;
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig};
use airpath_models::states::Stay;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig, StateConfig};

use crate::common::*;

/// 1000 bytes take 8 ms, and 20 ms more.
fn link() -> LinkConfig {
    LinkConfig { rate: read("1 Mbit/s"), propagation: read("20 ms"), ..LinkConfig::default() }
}

fn hop(name: &str, uplink: LinkConfig) -> HopConfig {
    HopConfig { name: name.into(), uplink, downlink: link() }
}

/// Packets of 1000 bytes that are foretold at `now`, when `offers` to a path of `config` were made at their times (ms)
/// through their ports: time in ms, port and number of each; and the instant before which nothing else leaves.
fn foretold(config: &PathConfig, offers: &[(u64, PortId)], now: u64, until: u64) -> (Vec<(u64, u16, u64)>, Time) {
    let mut path = Path::new(config, Seed(1));
    let mut outputs = Outputs { level: LogLevel::Counters, ..Outputs::default() };
    for (id, (at, port)) in (1..).zip(offers) {
        let pdu = Pdu { id, len: 1000, ..Pdu::default() };
        path.offer(ms(*at), *port, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
    }
    path.advance(ms(now), &mut Cx::new(&mut outputs));
    let mut all = Vec::new();
    let limit = path.foresee(ms(until), &mut |at, port, pdu| all.push((at.nanos() / 1_000_000, port.0, pdu.id)));
    (all, limit)
}

const UP: (u64, PortId) = (0, PortId::CLIENT);
const DOWN: (u64, PortId) = (0, PortId::SERVER);

#[test]
fn what_has_been_sent_is_certain_and_what_is_being_sent_is_not() {
    let config = one_hop("radio", link(), link());
    // At 17 ms two of three packets have been sent. The third ends at 24 ms and arrives at 44 ms.
    let (all, limit) = foretold(&config, &[UP, UP, UP], 17, 100);
    assert_eq!(all, [(28, 1, 1), (36, 1, 2)]);
    assert_eq!(limit, ms(44));
    // Both directions in the order of time, and at one instant the uplink first.
    let (all, _) = foretold(&config, &[UP, DOWN, UP, (3, PortId::SERVER)], 17, 100);
    assert_eq!(all, [(28, 1, 1), (28, 0, 2), (36, 1, 3), (36, 0, 4)]);
    // Of what is due later nobody asked.
    let (all, limit) = foretold(&config, &[UP, UP, UP], 17, 30);
    assert_eq!((all, limit), (vec![(28, 1, 1)], ms(36)));
    assert_eq!(foretold(&config, &[], 17, 100), (vec![], Time::NEVER));
}

#[test]
fn a_lost_packet_leaves_nothing() {
    let always = BernoulliConfig { probability: read("1") };
    let errors = ErrorsConfig { process: ErrorProcessConfig::Bernoulli(always), ..ErrorsConfig::default() };
    let config = one_hop("radio", LinkConfig { errors, ..link() }, link());
    assert_eq!(foretold(&config, &[UP, UP, DOWN], 17, 100).0, [(28, 0, 3)]);
}

#[test]
fn of_several_hops_the_last_one_tells() {
    let config = PathConfig { hops: vec![hop("radio", link()), hop("core", link())], ..PathConfig::default() };
    // The first packet has reached the core at 28 ms and left its sender at 36 ms.
    let (all, limit) = foretold(&config, &[UP, UP, DOWN], 40, 100);
    assert_eq!(all, [(56, 0, 3), (56, 1, 1)]);
    // The second one has until 44 ms at the core's sender.
    assert_eq!(limit, ms(64));
    // In the first hop nothing is certain: the second hop might have a queue.
    let (all, limit) = foretold(&config, &[UP], 20, 100);
    assert_eq!((all, limit), (vec![], ms(28 + 20)));
}

#[test]
fn a_state_to_come_ends_the_promise() {
    let mut config = one_hop("radio", link(), link());
    let outage = LinkConfig { blackout: BlackoutConfig::DROP, ..link() };
    config.states = vec![StateConfig {
        name: "outage".into(),
        hops: vec![hop("radio", outage)],
        at: Some(ms(30)),
        stay: Stay::default(),
    }];
    let (all, limit) = foretold(&config, &[UP, UP, UP], 17, 100);
    assert_eq!((all, limit), (vec![(28, 1, 1)], ms(30)));
    // During a blackout nothing is foretold.
    assert_eq!(foretold(&config, &[DOWN, DOWN], 31, 100).0, []);
}

#[test]
fn promises_of_the_laws_are_not_empty() {
    let config = one_hop("radio", link(), link());
    let mut runner = Runner::new(Path::new(&config, Seed(1)), LogLevel::Events);
    for at in 0..200 {
        runner.act(ms(2 * at), &offer(ms(2 * at), PortId((at % 2) as u16), 500).1);
    }
    runner.advance(ms(1000));
    assert!(runner.foresight.came_true > 150, "{}", runner.foresight.came_true);
}
