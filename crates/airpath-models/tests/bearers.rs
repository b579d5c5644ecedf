// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Bearers of a station: against a station without, by hand, and what they share of a radio channel.

use std::collections::BTreeSet;

use airpath_core::{Bits, Direction, End, EventKind, Origin, PortId, Seed, Time};
use airpath_models::cell::{
    CellConfig, MediumOfCell, SharedMediumConfig, UserConfig,
    continuous::{Order, SharedContinuousConfig},
    ofdm::OfdmConfig,
};
use airpath_models::channel::ErrorsConfig;
use airpath_models::load::{BackgroundConfig, LoadConfig};
use airpath_models::medium::MediumChoice;
use airpath_models::queueing::classes::{MatchConfig, MatchOrigin};
use airpath_models::{BearerConfig, Cell, LinkConfig, PathConfig, StateConfig};
use serde_json::{Value, json};

use crate::common::*;

fn continuous(rate: &str, order: Order) -> MediumOfCell {
    let rate = || Some(read(rate));
    let config = SharedContinuousConfig { uplink: rate(), downlink: rate(), order, queue: None };
    MediumOfCell { name: "cell".into(), config: SharedMediumConfig::Continuous(config) }
}

fn ofdm(config: Value) -> MediumOfCell {
    let mut config = config;
    config["direction"] = "both".into();
    let config: OfdmConfig = serde_json::from_value(config).unwrap();
    MediumOfCell { name: "cell".into(), config: SharedMediumConfig::Ofdm(config) }
}

fn up_to(bytes: u64) -> MatchConfig {
    MatchConfig { longest: Some(Bits::from_bytes(bytes)), ..MatchConfig::default() }
}

/// Short packets on a bearer of their own.
fn voice_and_rest() -> Vec<BearerConfig> {
    vec![BearerConfig::new("voice", up_to(60)), BearerConfig::new("rest", MatchConfig::default())]
}

fn on_cell(link: LinkConfig) -> LinkConfig {
    LinkConfig { medium: MediumChoice::Shared("cell".into()), rate: read("unlimited"), ..link }
}

fn path(link: &LinkConfig) -> PathConfig {
    one_hop("radio", link.clone(), link.clone())
}

fn user(name: &str, path: PathConfig) -> UserConfig {
    UserConfig { name: name.into(), is_unnamed: false, path }
}

fn down(user: u16, at: Time, len: u32) -> (Time, Action) {
    offer(at, PortId::of(user, End::Server), len)
}

fn errors(errors: Value) -> ErrorsConfig {
    serde_json::from_value(errors).unwrap()
}

/// Times and lengths of what leaves at the client of user 0, in microseconds and bytes.
fn left(trace: &Trace) -> Vec<(u64, u32)> {
    let at_client = trace.departures.iter().filter(|left| left.port == PortId::CLIENT);
    at_client.map(|left| (left.at.nanos() / 1_000, left.len)).collect()
}

/// One bearer that takes everything is the station without bearers, on both media, among others, with states.
#[test]
fn one_bearer_for_all_leaves_the_trace_of_the_station_without() {
    let radio = json!({ "type": "jakes", "speed": "75 km/h", "snr": "14 dB", "prediction_error": 0.1 });
    let arq = json!({ "type": "arq", "retransmissions": 2 });
    let mut compared = 0;
    let mut links: Vec<(MediumOfCell, LinkConfig)> = LinkConfig::examples()
        .into_iter()
        .map(|link| (continuous("500 kbit/s", Order::RoundRobin), on_cell(link)))
        .collect();
    for medium in [json!({ "resources": 3 }), json!({ "resources": 4, "scheduler": { "type": "proportional_fair" } })] {
        let link = LinkConfig {
            fading: Some(Box::new(serde_json::from_value(radio.clone()).unwrap())),
            entity: serde_json::from_value(arq.clone()).unwrap(),
            errors: errors(json!({ "type": "bernoulli", "probability": 0.1, "per": "frame" })),
            ..LinkConfig::default()
        };
        links.push((ofdm(medium), on_cell(link)));
    }
    for (number, (medium, link)) in links.into_iter().enumerate() {
        let plain = path(&link);
        let dark = LinkConfig {
            queue: serde_json::from_value(json!({ "type": "tail_drop", "limit": "3 packets" })).unwrap(),
            ..link.clone()
        };
        let later = path(&dark);
        let with_state = |path: PathConfig, later: PathConfig| PathConfig {
            states: vec![StateConfig {
                name: "short".into(),
                at: Some(ms(70)),
                hops: later.hops,
                stay: Default::default(),
            }],
            ..path
        };
        let all = |mut path: PathConfig| {
            for link in path.hops.iter_mut().flat_map(|hop| [&mut hop.uplink, &mut hop.downlink]) {
                link.bearers = vec![BearerConfig::new("all", MatchConfig::default())];
            }
            path
        };
        let other = user("bob", plain.clone());
        let without = with_state(plain.clone(), later.clone());
        let with = with_state(all(plain), all(later));
        let config = |path| CellConfig { media: vec![medium.clone()], users: vec![user("alice", path), other.clone()] };
        let script: Script = (0..80u64)
            .map(|step| {
                let port = [PortId::SERVER, PortId::CLIENT, PortId(2), PortId(3)][(step * 7 % 4) as usize];
                offer(ms(step * 2), port, 40 + (step * 37 % 400) as u32)
            })
            .collect();
        let end = ms(20_000);
        let expected = run_to(Cell::new(&config(without), Seed(3)), &script, end);
        let trace = run_to(Cell::new(&config(with), Seed(3)), &script, end);
        expected.assert_same(&trace, &format!("example {number}: {link:?}"));
        compared += expected.departures.len();
    }
    assert!(compared > 1000, "{compared} packets are too few to compare");
}

/// 1 Mbit/s, so that 125 bytes take 1 ms. Three long packets are there before a short one, which has a bearer of its own.
#[test]
fn bearers_of_a_station_take_turns() {
    for (order, bearers, expected) in [
        (Order::RoundRobin, voice_and_rest(), [(1_000, 125), (1_200, 25), (2_200, 125), (3_200, 125)]),
        // The oldest packet first, whatever bearer it is on, is one queue.
        (Order::FirstCome, voice_and_rest(), [(1_000, 125), (2_000, 125), (3_000, 125), (3_200, 25)]),
        (Order::RoundRobin, Vec::new(), [(1_000, 125), (2_000, 125), (3_000, 125), (3_200, 25)]),
    ] {
        let link = LinkConfig { bearers, ..on_cell(LinkConfig::default()) };
        let config = CellConfig { media: vec![continuous("1 Mbit/s", order)], users: vec![user("alice", path(&link))] };
        let short = down(0, Time::from_nanos(1), 25);
        let script = vec![down(0, ms(0), 125), down(0, ms(0), 125), down(0, ms(0), 125), short];
        let trace = check_laws(|| Cell::new(&config, Seed(1)), &script, 1);
        assert_eq!(left(&trace), expected, "{order:?}");
    }
}

/// Bearers, and not users, are what takes turns: one of two users has two bearers, and two thirds of the medium.
#[test]
fn a_user_with_two_bearers_has_two_turns() {
    let link = on_cell(LinkConfig::default());
    let two = LinkConfig { bearers: voice_and_rest(), ..link.clone() };
    let users = vec![user("alice", path(&two)), user("bob", path(&link))];
    let config = CellConfig { media: vec![continuous("1 Mbit/s", Order::RoundRobin)], users };
    // 50 bytes take 0.4 ms, and 125 bytes 1 ms: a round is 2.4 ms.
    let script: Script = (0..50).flat_map(|_| [down(0, ms(0), 50), down(0, ms(0), 125), down(1, ms(0), 125)]).collect();
    let trace = run_to(Cell::new(&config, Seed(1)), &script, ms(48));
    assert_eq!([0, 1].map(|user| trace.times(PortId::of(user, End::Client)).len()), [40, 20]);
}

/// Each bearer has a queue, whose limit is its own, and a place of its own in events and counters.
#[test]
fn bearers_have_queues_and_places_of_their_own() {
    let queue = |limit: &str| Some(serde_json::from_value(json!({ "type": "tail_drop", "limit": limit })).unwrap());
    let mut bearers = voice_and_rest();
    (bearers[0].queue, bearers[1].queue) = (queue("2 packets"), queue("5 packets"));
    let link = LinkConfig { bearers, ..on_cell(LinkConfig::default()) };
    let config =
        CellConfig { media: vec![continuous("1 Mbit/s", Order::RoundRobin)], users: vec![user("alice", path(&link))] };
    let script: Script = (0..10).flat_map(|_| [down(0, ms(0), 25), down(0, ms(0), 125)]).collect();
    let trace = check_laws(|| Cell::new(&config, Seed(1)), &script, 1);
    let dropped = |place| trace.counters.site(place, Direction::Downlink, Origin::User).kind(EventKind::Dropped).count;
    // One packet of each is in the send buffer, or under transmission.
    assert_eq!([dropped(0), dropped(1), dropped(2)], [7, 4, 0]);
    let longest = |place| {
        let at_place = trace.events.iter().filter(|event| event.hop == place);
        at_place.map(|event| event.queue_packets).max()
    };
    assert_eq!([longest(0), longest(1)], [Some(2), Some(5)]);
}

/// Virtual packets are classified as any other.
#[test]
fn background_loads_find_their_bearer() {
    let load: LoadConfig =
        serde_json::from_value(json!({ "type": "cbr", "rate": "100 kbit/s", "packet_size": "125 bytes" })).unwrap();
    let background = MatchConfig { origin: Some(MatchOrigin::Background), ..MatchConfig::default() };
    let bearers = vec![BearerConfig::new("load", background), BearerConfig::new("rest", MatchConfig::default())];
    let link = LinkConfig { bearers, ..on_cell(LinkConfig::default()) };
    let mut path = path(&link);
    path.background = vec![BackgroundConfig {
        stop: Some(span("95 ms")),
        ..BackgroundConfig::new("load", "radio", Direction::Downlink, load)
    }];
    let config = CellConfig { media: vec![continuous("1 Mbit/s", Order::FirstCome)], users: vec![user("alice", path)] };
    let trace = check_laws(|| Cell::new(&config, Seed(1)), &vec![down(0, ms(3), 125)], 1);
    let count = |place, origin, kind| trace.counters.site(place, Direction::Downlink, origin).kind(kind).count;
    let of_loads = |place| count(place, Origin::Background, EventKind::Generated);
    assert_eq!([of_loads(0), of_loads(1)], [10, 0]);
    assert_eq!([count(0, Origin::User, EventKind::Enqueued), count(1, Origin::User, EventKind::Enqueued)], [0, 1]);
}

/// A state changes the conditions and the queue of a bearer.
#[test]
fn a_state_changes_parameters_of_bearers() {
    let link = LinkConfig { bearers: voice_and_rest(), ..on_cell(LinkConfig::default()) };
    let mut later = link.clone();
    later.bearers[0].matching = up_to(10);
    later.bearers[1].queue =
        Some(serde_json::from_value(json!({ "type": "tail_drop", "limit": "1 packets" })).unwrap());
    let mut path = path(&link);
    path.states = vec![StateConfig {
        name: "later".into(),
        at: Some(ms(50)),
        hops: self::path(&later).hops,
        stay: Default::default(),
    }];
    let config =
        CellConfig { media: vec![continuous("1 Mbit/s", Order::RoundRobin)], users: vec![user("alice", path)] };
    let script: Script = [0, 60].into_iter().flat_map(|at| (0..5).map(move |_| down(0, ms(at), 25))).collect();
    let trace = check_laws(|| Cell::new(&config, Seed(1)), &script, 1);
    let count = |place, kind| trace.counters.site(place, Direction::Downlink, Origin::User).kind(kind).count;
    assert_eq!([count(0, EventKind::Enqueued), count(0, EventKind::Dropped)], [5, 0]);
    // One packet is in the send buffer, and one in the queue.
    assert_eq!([count(1, EventKind::Enqueued), count(1, EventKind::Dropped)], [2, 3]);
}

/// Numbers of the packets that errors hit, of two bearers that send a packet each in every block.
fn hit(errors: ErrorsConfig) -> [BTreeSet<u64>; 2] {
    let link = LinkConfig { bearers: voice_and_rest(), errors, ..on_cell(LinkConfig::default()) };
    let config =
        CellConfig { media: vec![continuous("1 Gbit/s", Order::RoundRobin)], users: vec![user("alice", path(&link))] };
    let script: Script = (0..200).flat_map(|step| [down(0, ms(step * 10), 25), down(0, ms(step * 10), 125)]).collect();
    let trace = run_to(Cell::new(&config, Seed(5)), &script, ms(3_000));
    let drops = trace.of_kind(EventKind::Dropped);
    [0, 1].map(|place| {
        drops.iter().filter(|event| event.hop == place).map(|event| event.at.nanos() / 10_000_000).collect()
    })
}

/// Errors by time are those of the station, so that equal processes of its bearers are one; those that are counted
/// belong to each bearer.
#[test]
fn errors_by_time_hit_all_bearers_at_once() {
    let [voice, rest] =
        hit(errors(json!({ "type": "bernoulli", "probability": 0.4, "per": "block", "block": "10 ms" })));
    assert_eq!(voice, rest);
    assert!((50..110).contains(&voice.len()), "{} of 200 blocks", voice.len());
    let [voice, rest] = hit(errors(json!({ "type": "bernoulli", "probability": 0.4, "per": "packet" })));
    // Of two independent draws of 0.4, 0.48 differ.
    let differing = voice.symmetric_difference(&rest).count();
    assert!((70..125).contains(&differing), "{differing} of 200 packets");
}

/// Six resources among two bearers of one station: a resource carries a frame of one of them.
#[test]
fn resources_go_to_bearers_in_turn() {
    let fading = serde_json::from_value(json!({ "type": "constant", "snr": "60 dB" })).unwrap();
    let link = |bearers| LinkConfig {
        fading: Some(Box::new(fading)),
        send_buffer: read("64 kB"),
        bearers,
        ..on_cell(LinkConfig::default())
    };
    // Packets of 107 or 108 bytes have a resource each.
    let bearers = vec![BearerConfig::new("voice", up_to(107)), BearerConfig::new("rest", MatchConfig::default())];
    let config = CellConfig {
        media: vec![ofdm(json!({ "resources": 6, "adaptation": { "type": "fixed", "mode": "256-qam" } }))],
        users: vec![user("alice", path(&link(bearers)))],
    };
    let script: Script = (0..60).map(|packet| down(0, ms(0), [107, 108][packet % 2])).collect();
    let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(50));
    for len in [107, 108] {
        let times: Vec<u64> =
            trace.departures.iter().filter(|left| left.len == len).map(|left| left.at.nanos()).collect();
        let expected: Vec<u64> = (0..30u64).map(|packet| (packet / 3 + 2) * 2_000_000 / 3).collect();
        assert_eq!(times, expected, "{len} bytes");
    }
}

/// The radio channel is the station's: frames of a busy station have the same sizes and fates, whoever of its bearers
/// sends them, and a limit of resources is that of the station.
#[test]
fn bearers_share_the_channel_of_their_station() {
    let radio = json!({
        "type": "profile", "profile": "tu12_at5_mhz", "speed": "75 km/h", "snr": "16 dB", "prediction_error": 0.1,
    });
    let frames = |medium: &Value, bearers: Vec<BearerConfig>| {
        let link = LinkConfig {
            fading: Some(Box::new(serde_json::from_value(radio.clone()).unwrap())),
            entity: serde_json::from_value(json!({ "type": "arq", "retransmissions": 0, "last_try": "drop" })).unwrap(),
            send_buffer: read("unlimited"),
            bearers,
            ..on_cell(LinkConfig::default())
        };
        let config = CellConfig { media: vec![ofdm(medium.clone())], users: vec![user("alice", path(&link))] };
        let script: Script = (0..8000).map(|packet| down(0, ms(0), [60, 61][packet % 2])).collect();
        let trace = run_to(Cell::new(&config, Seed(7)), &script, ms(150));
        // Of a frame its time and bits, whatever bearer it is of.
        let of = |kind| {
            let mut frames: Vec<_> = trace.of_kind(kind).iter().map(|event| (event.at, event.bits)).collect();
            frames.sort_unstable();
            frames
        };
        let bearers: BTreeSet<u16> = trace.of_kind(EventKind::FrameSent).iter().map(|event| event.hop).collect();
        (of(EventKind::FrameSent), of(EventKind::FrameLost), bearers.len())
    };
    for medium in [json!({ "resources": 8 }), json!({ "resources": 8, "resources_per_station": 2 })] {
        let (sent, lost, one) = frames(&medium, Vec::new());
        let (sent_by_two, lost_by_two, two) = frames(&medium, voice_and_rest());
        assert_eq!((one, two), (1, 2));
        assert!(sent.len() > 100 && lost.len() > 5, "{} frames, {} lost", sent.len(), lost.len());
        assert_eq!((sent, lost), (sent_by_two, lost_by_two), "{medium}");
    }
}

/// Names of what a scheduler shares resources among.
#[test]
fn bearers_are_named_behind_their_user() {
    let link = LinkConfig { bearers: voice_and_rest(), ..on_cell(LinkConfig::default()) };
    let mut two_hops = path(&link);
    let plain = on_cell(LinkConfig::default());
    two_hops.hops.push(airpath_models::HopConfig::new("core", plain.clone(), plain.clone()));
    let medium = continuous("1 Mbit/s", Order::FirstCome);
    let users = [("alice", path(&link)), ("bob", path(&plain)), ("carol", two_hops)];
    let names = medium.bearer_names(users.iter().map(|(name, path)| (*name, path)));
    assert_eq!(names, ["alice.voice", "alice.rest", "bob", "carol.radio.voice", "carol.radio.rest", "carol.core"]);
}
