// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Class of a packet, key by key, for IPv4 and IPv6 and in both directions.

use airpath_core::{Direction, Ecn, Origin, Pdu};
use airpath_models::queueing::classes::{ClassConfig, MatchConfig, MatchOrigin, Order};

use super::bench::{Bench, between, packet, read};
use super::schedules::{classes, tail_drop};

/// True if a class with `matching` takes `pdu` in `direction`: it goes before one that came first.
fn takes(matching: &MatchConfig, pdu: &Pdu, direction: Direction) -> bool {
    let queue = || tail_drop("unlimited");
    let config = vec![
        ClassConfig::new("it", matching.clone(), queue()),
        // What comes first matches nothing else.
        ClassConfig::new("other", MatchConfig { dscp: vec![63], ..MatchConfig::default() }, queue()),
        ClassConfig::new("rest", MatchConfig::default(), queue()),
    ];
    let mut bench = Bench::serving(&classes(Order::Strict, config), direction, 1);
    bench.put(Pdu { class: 63, len: 1, flow: 999_983, origin: Origin::Control, ..Pdu::default() });
    bench.put(pdu.clone());
    bench.ids() == [2, 1]
}

fn both(matching: MatchConfig, uplink: &Pdu, expected: bool) {
    let tuple = &uplink.tuple;
    let reversed = airpath_core::FiveTuple {
        source: tuple.destination,
        destination: tuple.source,
        source_port: tuple.destination_port,
        destination_port: tuple.source_port,
        ..*tuple
    };
    let downlink = Pdu { tuple: reversed, ..uplink.clone() };
    assert_eq!(takes(&matching, uplink, Direction::Uplink), expected, "{matching:?} {uplink:?}");
    assert_eq!(takes(&matching, &downlink, Direction::Downlink), expected, "{matching:?} {downlink:?}");
}

#[test]
fn addresses_ports_and_protocols() {
    for (client, server, stranger) in [("10.77.0.1", "10.77.0.2", "10.77.0.3"), ("fd00::1", "fd00::2", "fd00::3")] {
        let udp = between(client, server, (5_000, 443), 17);
        let config = MatchConfig::default;
        let address = |text: &str| Some(read(text));
        both(MatchConfig { client_address: address(client), ..config() }, &udp, true);
        both(MatchConfig { server_address: address(server), ..config() }, &udp, true);
        both(MatchConfig { client_address: address(server), ..config() }, &udp, false);
        both(MatchConfig { server_address: address(stranger), ..config() }, &udp, false);
        both(MatchConfig { protocol: Some(read("udp")), ..config() }, &udp, true);
        both(MatchConfig { protocol: Some(read("17")), ..config() }, &udp, true);
        both(MatchConfig { protocol: Some(read("tcp")), ..config() }, &udp, false);
        for (ports, expected) in
            [("5000", true), ("443", false), ("4000-5000", true), ("5001-6000", false), ("80, 5000-5001", true)]
        {
            both(MatchConfig { client_port: Some(read(ports)), ..config() }, &udp, expected);
        }
        both(MatchConfig { server_port: Some(read("443")), ..config() }, &udp, true);
        both(MatchConfig { server_port: Some(read("5000")), ..config() }, &udp, false);
        // All that is named has to be right.
        let all = MatchConfig {
            protocol: Some(read("udp")),
            client_address: address(client),
            server_address: address(server),
            client_port: Some(read("5000")),
            server_port: Some(read("443")),
            ..config()
        };
        both(all.clone(), &udp, true);
        both(MatchConfig { server_port: Some(read("444")), ..all }, &udp, false);
        // A fragment, or a protocol without ports, matches no port.
        let fragment = between(client, server, (0, 0), 17);
        both(MatchConfig { client_port: Some(read("1-65535")), ..config() }, &fragment, false);
    }
}

#[test]
fn classes_lengths_origins_and_flows() {
    let take = |matching: MatchConfig, pdu: Pdu, expected: bool| {
        let found = takes(&matching, &pdu, Direction::Uplink);
        assert_eq!(found, expected, "{matching:?} {pdu:?}");
    };
    let config = MatchConfig::default;
    for (dscp, expected) in [(46, true), (0, true), (45, false), (62, false)] {
        take(MatchConfig { dscp: vec![46, 0], ..config() }, packet(100, dscp, 0), expected);
    }
    // The ECN field is no part of the class.
    take(MatchConfig { dscp: vec![46], ..config() }, Pdu { ecn: Ecn::Ce, ..packet(100, 46, 0) }, true);
    for (len, expected) in [(99, false), (100, true), (200, true), (201, false)] {
        let between = MatchConfig { shortest: Some(read("100 bytes")), longest: Some(read("200 bytes")), ..config() };
        take(between, packet(len, 0, 0), expected);
    }
    for (origin, user) in [(Origin::User, true), (Origin::Background, false)] {
        let pdu = || Pdu { origin, ..packet(100, 0, 0) };
        take(MatchConfig { origin: Some(MatchOrigin::User), ..config() }, pdu(), user);
        take(MatchConfig { origin: Some(MatchOrigin::Background), ..config() }, pdu(), !user);
    }
    for flow in 0..8 {
        let bucket = MatchConfig { flow_buckets: Some(4), bucket: Some(1), ..config() };
        take(bucket, packet(100, 0, flow), flow % 4 == 1);
    }
}

#[test]
fn the_first_class_that_takes_it_gets_it_and_the_last_what_none_takes() {
    let dscp = |name: &str, dscp: &[u8]| {
        ClassConfig::new(name, MatchConfig { dscp: dscp.to_vec(), ..MatchConfig::default() }, tail_drop("unlimited"))
    };
    let config = classes(Order::Strict, vec![dscp("a", &[1]), dscp("b", &[1, 2]), dscp("c", &[3])]);
    let mut bench = Bench::new(&config);
    for class in [9, 3, 2, 1] {
        bench.put(packet(100, class, 0));
    }
    // 9 is nobody's, and goes to c, where it came first.
    assert_eq!(bench.ids(), [4, 3, 1, 2]);
}
