// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The limit that users of a wired bottleneck have in common.

use airpath_core::{Cause, End, EventKind, PortId, Seed};
use airpath_models::cell::continuous::{CommonQueueConfig, Order, SharedContinuousConfig};
use airpath_models::cell::{CellConfig, MediumOfCell, SharedMediumConfig, UserConfig};
use airpath_models::medium::{MediumChoice, RateConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::{Cell, LinkConfig, Path};
use serde_json::json;

use crate::common::*;

/// Users whose downlink is on a medium of 1 Mbit/s: 125 bytes take 1 ms.
fn cell(count: usize, order: Order, limit: &str, link: LinkConfig) -> CellConfig {
    let downlink = LinkConfig { medium: MediumChoice::Shared("cell".into()), rate: RateConfig::default(), ..link };
    let user = |number| UserConfig {
        name: format!("user{number}"),
        is_unnamed: false,
        path: one_hop("wire", LinkConfig::default(), downlink.clone()),
    };
    let queue = Some(CommonQueueConfig { limit: read(limit) });
    let config = SharedContinuousConfig { uplink: None, downlink: Some(read("1 Mbit/s")), order, queue };
    let media = vec![MediumOfCell { name: "cell".into(), config: SharedMediumConfig::Continuous(config) }];
    CellConfig { media, users: (0..count).map(user).collect() }
}

fn to(user: u16, at: u64, len: u32) -> (airpath_core::Time, Action) {
    offer(ms(at), PortId::of(user, End::Server), len)
}

fn play(config: &CellConfig, script: &Script) -> Trace {
    check_laws(|| Cell::new(config, Seed(1)), script, 1)
}

fn drops(trace: &Trace) -> Vec<(u64, Cause, u16)> {
    trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.pdu, drop.cause, drop.hop)).collect()
}

/// A limit of three packets: the first packet is on the air, three wait, whoever sent them; the fifth and sixth find no
/// room. At 1 ms a place is free again: the packet that comes at 1 ms finds it.
#[test]
fn packets_of_all_users_count() {
    for order in [Order::FirstCome, Order::RoundRobin] {
        let config = cell(3, order, "3 packets", LinkConfig::default());
        let script = vec![
            to(0, 0, 125),
            to(0, 0, 125),
            to(1, 0, 125),
            to(2, 0, 125),
            to(2, 0, 125),
            to(1, 0, 125),
            to(1, 1, 125),
            to(1, 1, 125),
        ];
        let trace = play(&config, &script);
        // The hops of the users have the places 0, 2 and 4.
        let expected = [(5, Cause::QueuePackets, 4), (6, Cause::QueuePackets, 2), (8, Cause::QueuePackets, 2)];
        assert_eq!(drops(&trace), expected, "{order:?}");
        let left: Vec<u64> = trace.departures.iter().map(|left| left.at.nanos() / 1_000_000).collect();
        assert_eq!(left, [1, 2, 3, 4, 5]);
    }
}

/// Bytes: 1000 wait at most. The queue of a hop holds as well: two packets here.
#[test]
fn bytes_count_and_the_hops_own_queues_hold_too() {
    let config = cell(2, Order::FirstCome, "1000 bytes", LinkConfig::default());
    let script = vec![to(0, 0, 125), to(0, 0, 600), to(1, 0, 401), to(1, 0, 400), to(0, 0, 1)];
    assert_eq!(drops(&play(&config, &script)), [(3, Cause::QueueBytes, 2), (5, Cause::QueueBytes, 0)]);
    let queue: QueueConfig = serde_json::from_value(json!({ "type": "tail_drop", "limit": "2 packets" })).unwrap();
    let config = cell(2, Order::FirstCome, "5 packets", LinkConfig { queue, ..LinkConfig::default() });
    // The send buffer has one, and the queue of the first user two.
    let script: Script = (0..5).map(|_| to(0, 0, 125)).chain((0..4).map(|_| to(1, 0, 125))).collect();
    let trace = play(&config, &script);
    let packets = Cause::QueuePackets;
    assert_eq!(drops(&trace), [(4, packets, 0), (5, packets, 0), (9, packets, 2)]);
}

/// With one user it is the limit of the queue of a path alone, where the send buffer has one packet.
#[test]
fn of_one_user_it_is_the_limit_of_the_queue() {
    let mut dice = Dice::new(4);
    for limit in ["1 packet", "7 packets", "3000 bytes", "5 packets, 2 kB"] {
        let mut now = 0;
        let script: Script = (0..400)
            .map(|_| {
                now += dice.below(5);
                to(0, now, 40 + dice.below(600) as u32)
            })
            .collect();
        let unlimited: QueueConfig = serde_json::from_value(json!({ "type": "infinite" })).unwrap();
        let config = cell(1, Order::FirstCome, limit, LinkConfig { queue: unlimited, ..LinkConfig::default() });
        let queue: QueueConfig = serde_json::from_value(json!({ "type": "tail_drop", "limit": limit })).unwrap();
        let link = LinkConfig { queue, rate: read("1 Mbit/s"), ..LinkConfig::default() };
        let path = Path::new(&one_hop("wire", LinkConfig::default(), link), Seed(1));
        let trace = play(&config, &script);
        let dropped = |trace: &Trace| {
            let of = |drop: &&airpath_core::Event| (drop.pdu, drop.cause, drop.at);
            trace.of_kind(EventKind::Dropped).iter().map(of).collect::<Vec<_>>()
        };
        let alone = run(path, &script);
        assert_eq!(dropped(&trace), dropped(&alone), "{limit}");
        assert!(dropped(&trace).len() > 20, "{limit}: {}", dropped(&trace).len());
        assert_eq!(trace.times(PortId::CLIENT), alone.times(PortId::CLIENT), "{limit}");
    }
}

/// Against a queue of one list: arrivals in order, one packet on the air, a limit for those that wait.
#[test]
fn it_is_the_queue_of_a_bottleneck() {
    let mut dice = Dice::new(9);
    let config = cell(5, Order::FirstCome, "6 packets", LinkConfig::default());
    let mut now = 0;
    let arrivals: Vec<(u64, u16, u64)> = (0..600)
        .map(|_| {
            now += dice.below(2_100_000);
            (now, dice.below(5) as u16, 50 + dice.below(150))
        })
        .collect();
    let offer_of = |(at, user, len): &(u64, u16, u64)| {
        offer(airpath_core::Time::from_nanos(*at), PortId::of(*user, End::Server), *len as u32)
    };
    let trace = play(&config, &arrivals.iter().map(offer_of).collect());
    // Beginnings of the transmissions of those that were taken.
    let (mut begins, mut end, mut expected): (Vec<u64>, u64, Vec<u64>) = (Vec::new(), 0, Vec::new());
    for (at, _, len) in &arrivals {
        if begins.iter().filter(|begin| *begin > at).count() < 6 {
            let begin = end.max(*at);
            end = begin + len * 8_000;
            begins.push(begin);
            expected.push(end);
        }
    }
    let left: Vec<u64> = trace.departures.iter().map(|left| left.at.nanos()).collect();
    assert!(expected.len() < 590, "{} of 600 taken", expected.len());
    assert_eq!(left, expected);
}

#[test]
fn a_common_queue_has_no_limit_in_time() {
    let config = cell(1, Order::FirstCome, "7 packets, 20 ms", LinkConfig::default());
    let keys: Vec<String> = config.media[0].config.problems().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["queue.limit"]);
}
