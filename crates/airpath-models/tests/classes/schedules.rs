// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Order of classes, packet by packet.

use airpath_core::{Bits, Cause, EventKind, Time};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::classes::{ClassConfig, ClassesConfig, MatchConfig, Order};
use airpath_models::queueing::codel::CodelConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;

use super::bench::{Bench, packet, read};

pub fn tail_drop(limit: &str) -> QueueConfig {
    QueueConfig::TailDrop(TailDropConfig { limit: read(limit) })
}

/// A class that takes a DSCP.
pub fn of_dscp(name: &str, dscp: u8) -> ClassConfig {
    let matching = MatchConfig { dscp: vec![dscp], ..MatchConfig::default() };
    ClassConfig::new(name, matching, tail_drop("unlimited"))
}

pub fn classes(order: Order, classes: Vec<ClassConfig>) -> QueueConfig {
    QueueConfig::Classes(ClassesConfig { order, limit: read("unlimited"), classes })
}

#[test]
fn strict_priority_serves_the_first_class_that_holds_anything() {
    let mut bench = Bench::new(&classes(Order::Strict, vec![of_dscp("high", 1), of_dscp("mid", 2), of_dscp("low", 0)]));
    for dscp in [0, 2, 0, 1, 2, 1] {
        bench.put(packet(100, dscp, 0));
    }
    assert_eq!([bench.take(), bench.take(), bench.take()].map(|sent| sent.unwrap().0), [4, 6, 2]);
    bench.put(packet(100, 1, 0));
    assert_eq!(bench.ids(), [7, 5, 1, 3]);
}

/// Weights 3, 1, 2 with six packets each: two full rounds; then the first is empty, then the third.
#[test]
fn weighted_round_robin_by_packets() {
    let weighted = |name: &str, dscp, weight| ClassConfig { weight, ..of_dscp(name, dscp) };
    let config =
        classes(Order::WeightedRoundRobin, vec![weighted("a", 1, 3), weighted("b", 2, 1), weighted("c", 3, 2)]);
    let mut bench = Bench::new(&config);
    for _ in 0..6 {
        for dscp in [3, 2, 1] {
            // The length says of which class it is.
            bench.put(packet(u32::from(dscp), dscp, 0));
        }
    }
    let order: Vec<u32> = bench.take_all().into_iter().map(|(_, len)| len).collect();
    assert_eq!(order, [1, 1, 1, 2, 3, 3, 1, 1, 1, 2, 3, 3, 2, 3, 3, 2, 2, 2]);
    // A turn ends when its class is empty, even if more comes before the next packet goes.
    for dscp in [1, 2, 2] {
        bench.put(packet(u32::from(dscp), dscp, 0));
    }
    // The last turn was that of b, and c holds nothing: it is a's.
    assert_eq!(bench.take().unwrap().1, 1);
    bench.put(packet(1, 1, 0));
    let order: Vec<u32> = bench.take_all().into_iter().map(|(_, len)| len).collect();
    assert_eq!(order, [2, 1, 2]);
}

/// Quantum 500 bytes; packets of 200, 750, 20 bytes in the first class, 500, 500 in the second, 100,
/// 600, 200 in the third, 180, 700, 50 in the fourth (after Figure 2 of Shreedhar & Varghese 1996).
/// First round: 200 (300 left), 500 (0), 100 (400), 180 (320). Second: 800, so 750 and 20; 500; 900, so
/// 600 and 200; 820, so 700 and 50.
#[test]
fn deficit_round_robin_by_bytes() {
    let quantum = |name: &str, dscp| ClassConfig { quantum: Bits::from_bytes(500), ..of_dscp(name, dscp) };
    let names = [("one", 1), ("two", 2), ("three", 3), ("four", 4)];
    let config = classes(Order::DeficitRoundRobin, names.map(|(name, dscp)| quantum(name, dscp)).to_vec());
    let mut bench = Bench::new(&config);
    let queues: [&[u32]; 4] = [&[200, 750, 20], &[500, 500], &[100, 600, 200], &[180, 700, 50]];
    for (class, lengths) in queues.iter().enumerate() {
        for len in *lengths {
            bench.put(packet(*len, class as u8 + 1, 0));
        }
    }
    let order: Vec<u32> = bench.take_all().into_iter().map(|(_, len)| len).collect();
    assert_eq!(order, [200, 500, 100, 180, 750, 20, 500, 600, 200, 700, 50]);
    // What an empty class had left is gone: 70 bytes would have let 570 pass at once.
    for (dscp, len) in [(4, 570), (1, 500)] {
        bench.put(packet(len, dscp, 0));
    }
    let order: Vec<u32> = bench.take_all().into_iter().map(|(_, len)| len).collect();
    assert_eq!(order, [500, 570]);
}

/// Theorem 2 of Shreedhar & Varghese 1996: while two classes hold packets, what they sent, each over
/// its share, differs by no more than a quantum and two packets of the greatest length.
#[test]
fn deficit_round_robin_is_fair_in_bytes() {
    let (small, large) = (of_dscp("small", 1), ClassConfig { quantum: Bits::from_bytes(3_000), ..of_dscp("large", 2) });
    let mut bench = Bench::new(&classes(Order::DeficitRoundRobin, vec![small, large]));
    let mut lengths = (0u64..).map(|step| 40 + (step * step * 7_919 % 1_461) as u32);
    for _ in 0..2_000 {
        bench.put(packet(lengths.next().unwrap() % 300 + 40, 1, 0));
        bench.put(packet(1_500, 2, 0));
    }
    let (mut small, mut large) = (0i64, 0i64);
    // The small packets, 190 bytes on average, last for about as long as 500 large ones.
    while large < 600_000 {
        let (id, len) = bench.take().unwrap();
        if id % 2 == 1 {
            small += i64::from(len)
        } else {
            large += i64::from(len)
        }
        assert!((small - large / 2).abs() <= 1_500 + 2 * 1_500, "{small} and {large}");
    }
    assert!(small > 290_000);
}

/// The packet chosen waits, and none overtakes it; asking in vain, however often, changes nothing.
#[test]
fn refusals_change_nothing() {
    for order in [Order::Strict, Order::WeightedRoundRobin, Order::DeficitRoundRobin] {
        let of = |name: &str, dscp, weight, quantum| ClassConfig {
            weight,
            quantum: Bits::from_bytes(quantum),
            ..of_dscp(name, dscp)
        };
        let config = classes(order, vec![of("a", 1, 2, 100), of("b", 2, 1, 700), of("c", 3, 3, 300)]);
        let schedule = |refusals: u64| {
            let mut bench = Bench::new(&config);
            let mut sent = Vec::new();
            for step in 0..3_000u64 {
                let draw = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                if draw % 5 < 2 || bench.is_empty() {
                    bench.put(packet(40 + (draw / 5 % 1_400) as u32, 1 + (draw / 7 % 3) as u8, 0));
                } else {
                    for _ in 0..refusals {
                        let chosen = bench.refuse();
                        assert!(chosen.is_some() && chosen == bench.refuse());
                    }
                    let next = if refusals > 0 { bench.refuse() } else { None };
                    let (id, _) = bench.take().unwrap();
                    assert!(next.is_none_or(|next| next == id), "{id} overtook {next:?}");
                    sent.push(id);
                }
                if refusals > 0 && draw.is_multiple_of(3) {
                    bench.refuse();
                }
            }
            sent
        };
        assert_eq!(schedule(0), schedule(1), "{order:?}");
        assert_eq!(schedule(0), schedule(3), "{order:?}");
    }
}

#[test]
fn the_limit_of_the_whole_drops_what_arrives() {
    let mut config = ClassesConfig {
        order: Order::Strict,
        limit: read("3 packets"),
        classes: vec![of_dscp("high", 1), of_dscp("low", 0)],
    };
    config.classes[1].queue = tail_drop("2 packets");
    let mut bench = Bench::new(&QueueConfig::Classes(config.clone()));
    for dscp in [0, 0, 0, 1, 1] {
        bench.put(packet(100, dscp, 0));
    }
    // The third finds its class full, the fifth the whole.
    assert_eq!(bench.drops(), [(3, Cause::QueuePackets), (5, Cause::QueuePackets)]);
    assert_eq!(bench.events(EventKind::Dropped).iter().map(|event| event.queue_packets).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(bench.ids(), [4, 1, 2]);
    config.limit = read("250 bytes");
    let mut bench = Bench::new(&QueueConfig::Classes(config));
    for len in [100, 100, 51, 50] {
        bench.put(packet(len, 1, 0));
    }
    assert_eq!(bench.drops(), [(3, Cause::QueueBytes)]);
}

/// Drops by management within a class cost it no turn. The weight of 1 ends the first turn in weighted round
/// robin; the quantum of 1500 bytes does not.
#[test]
fn drops_within_a_class_cost_no_turn() {
    let codel = CodelConfig {
        limit: read("unlimited"),
        target: read("1 ms"),
        interval: read("10 ms"),
        ecn: false,
        ce_threshold: None,
        mtu: Bits::ZERO,
    };
    for order in [Order::Strict, Order::WeightedRoundRobin, Order::DeficitRoundRobin] {
        let managed = ClassConfig { queue: QueueConfig::Codel(codel), ..of_dscp("managed", 1) };
        let mut bench = Bench::new(&classes(order, vec![managed, of_dscp("rest", 0)]));
        for _ in 0..3 {
            bench.put(packet(100, 1, 0));
        }
        bench.put(packet(100, 0, 0));
        // Waits are too long from 5 ms on; at 20 ms they have been so for an interval.
        bench.at = Time::from_nanos(5_000_000);
        assert_eq!(bench.take().map(|(id, _)| id), Some(1));
        bench.at = Time::from_nanos(20_000_000);
        let expected = if order == Order::WeightedRoundRobin { [4, 3] } else { [3, 4] };
        assert_eq!(bench.ids(), expected, "{order:?}");
        // The last packet of a queue is let through: nothing is left behind it.
        assert_eq!(bench.drops(), [(2, Cause::QueueManagement)], "{order:?}");
    }
}
