// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fate of queued packets when parameters change.

use airpath_core::{Bits, Cause, Direction, Time};
use airpath_models::queueing::classes::{ClassConfig, MatchConfig, Order};
use airpath_models::queueing::head_drop::HeadDropConfig;
use airpath_models::queueing::{QueueConfig, Queueing};

use super::bench::{Bench, between, packet, read};
use super::schedules::{classes, of_dscp, tail_drop};

/// Packets stay with the class of their name, whatever it now takes and wherever it now stands.
#[test]
fn packets_stay_with_the_class_of_their_name() {
    let mut bench = Bench::new(&classes(Order::Strict, vec![of_dscp("a", 1), of_dscp("b", 2), of_dscp("c", 0)]));
    for dscp in [0, 1, 2, 0, 1, 2] {
        bench.put(packet(100, dscp, 0));
    }
    let again =
        ClassConfig { queue: QueueConfig::HeadDrop(HeadDropConfig { limit: read("9 packets") }), ..of_dscp("a", 2) };
    bench.configure(&classes(Order::Strict, vec![of_dscp("c", 0), again, of_dscp("b", 1)]));
    bench.put(packet(100, 1, 0));
    bench.put(packet(100, 2, 0));
    // c: 1, 4; a: 2, 5 and 8, which is of DSCP 2; b: 3, 6 and 7.
    assert_eq!(bench.ids(), [1, 4, 2, 5, 8, 3, 6, 7]);
}

/// Those of a class that is gone are matched anew, in order of their arrival among the others, and as
/// old as they are.
#[test]
fn packets_of_a_class_that_is_gone_are_matched_anew() {
    let config = |names: &[(&str, u8)]| {
        let class = |(name, dscp): &(&str, u8)| ClassConfig { queue: tail_drop("50 ms"), ..of_dscp(name, *dscp) };
        classes(Order::Strict, names.iter().map(class).collect())
    };
    let mut bench = Bench::new(&config(&[("a", 1), ("b", 2), ("c", 0)]));
    for (step, dscp) in [1, 2, 0, 1, 2, 0].into_iter().enumerate() {
        bench.at = Time::from_nanos(step as u64 * 1_000_000);
        bench.put(packet(100, dscp, 0));
    }
    bench.configure(&config(&[("b", 2), ("c", 0)]));
    // What was a's goes to c, the last: 1 is the oldest of all.
    assert_eq!(bench.queue.next_deadline(), Time::from_nanos(50_000_000));
    assert_eq!(bench.ids(), [2, 5, 1, 3, 4, 6]);
}

#[test]
fn a_change_of_the_kind_keeps_the_order_of_arrival() {
    let several = classes(Order::Strict, vec![of_dscp("a", 1), of_dscp("b", 0)]);
    let mut bench = Bench::new(&several);
    for dscp in [0, 1, 0, 1] {
        bench.put(packet(100, dscp, 0));
    }
    bench.configure(&tail_drop("2 packets"));
    assert_eq!(bench.take(), Some((1, 100)));
    bench.put(packet(100, 1, 0));
    assert_eq!(bench.drops(), [(5, Cause::QueuePackets)]);
    bench.configure(&several);
    assert_eq!(bench.ids(), [2, 4, 3]);
}

/// The client's end is known to a queue that comes later, too, and to one within another.
#[test]
fn the_direction_is_known_after_a_change() {
    let port = MatchConfig { client_port: Some(read("5000")), ..MatchConfig::default() };
    let inner = classes(Order::Strict, vec![ClassConfig::new("it", port, tail_drop("unlimited")), of_dscp("rest", 0)]);
    let outer = classes(Order::Strict, vec![ClassConfig::new("all", MatchConfig::default(), inner.clone())]);
    for then in [inner, outer] {
        let mut bench = Bench::serving(&tail_drop("unlimited"), Direction::Downlink, 1);
        bench.put(between("10.0.0.2", "10.0.0.1", (5_000, 1), 17));
        bench.put(between("10.0.0.2", "10.0.0.1", (1, 5_000), 17));
        bench.configure(&then);
        bench.put(between("10.0.0.2", "10.0.0.1", (1, 5_000), 17));
        assert_eq!(bench.ids(), [2, 3, 1]);
    }
}

/// In deficit round robin a class keeps what it has left, and its place, when others come and go.
#[test]
fn turns_go_on_after_a_change() {
    let class = |name: &str, dscp| ClassConfig { quantum: Bits::from_bytes(300), ..of_dscp(name, dscp) };
    let config = |names: &[(&str, u8)]| {
        classes(Order::DeficitRoundRobin, names.iter().map(|(name, dscp)| class(name, *dscp)).collect())
    };
    let mut bench = Bench::new(&config(&[("a", 1), ("b", 2)]));
    for (len, dscp) in [(200, 1), (400, 1), (100, 2), (250, 2), (100, 1)] {
        bench.put(packet(len, dscp, 0));
    }
    // a sends 1 and has 100 left; then b has its turn and sends 3.
    assert_eq!([bench.take(), bench.take()].map(|sent| sent.unwrap().0), [1, 3]);
    bench.configure(&config(&[("new", 7), ("b", 2), ("a", 1)]));
    bench.put(packet(50, 7, 0));
    // b has 200 left for 250: a's turn with 400, which is just enough; new; b; a.
    assert_eq!(bench.ids(), [2, 6, 4, 5]);
}
