// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! FQ-CoDel and FQ-PIE: turns and overflow computed by hand, hashing, and marks.

use airpath_core::{Cause, Direction, Ecn, EventKind, Pdu, Time};
use airpath_models::queueing::QueueConfig;

use super::bench::{Bench, packet};

/// The defaults of a kind, with some changed.
fn fair(kind: &str, change: impl Fn(&mut toml::Table)) -> QueueConfig {
    let mut table = toml::Table::new();
    table.insert("type".into(), kind.into());
    change(&mut table);
    table.try_into().unwrap()
}

const KINDS: [&str; 2] = ["fq_codel", "fq_pie"];

/// A sends four packets of 1500 bytes, B six of 500, all at once, with a quantum of 1500. A new flow
/// sends one quantum before the other has its turn; then they alternate, byte for byte.
#[test]
fn turns_by_hand() {
    for kind in KINDS {
        let mut bench = Bench::new(&fair(kind, |_| {}));
        for flow in [1, 1, 1, 1, 2, 2, 2, 2, 2, 2] {
            bench.put(packet(if flow == 1 { 1_500 } else { 500 }, 0, flow));
        }
        assert_eq!(bench.refuse(), Some(1));
        assert_eq!(bench.ids(), [1, 5, 6, 7, 2, 8, 9, 10, 3, 4]);
    }
}

/// A flow that comes to a standing queue goes first, as a new one; when it comes again before its last
/// turn is over it is an old one, behind the other (RFC 8290, section 4.2); later it is new again.
#[test]
fn new_flows_go_first_but_not_twice() {
    let mut bench = Bench::new(&fair("fq_codel", |_| {}));
    for _ in 0..6 {
        bench.put(packet(1_500, 0, 1));
    }
    assert_eq!(bench.take().unwrap().0, 1);
    bench.put(packet(100, 0, 2));
    assert_eq!(bench.take().unwrap().0, 7);
    // Its queue is empty, and has yet to go behind the old ones.
    bench.put(packet(100, 0, 2));
    assert_eq!(bench.take().unwrap().0, 8, "it has credit left");
    assert_eq!(bench.take().unwrap().0, 2, "the empty one has gone behind");
    bench.put(packet(100, 0, 2));
    // Old, with its place before the first flow, which has just had its turn; then that again.
    assert_eq!([bench.take(), bench.take()].map(|sent| sent.unwrap().0), [9, 3]);
    assert_eq!(bench.take().unwrap().0, 4, "the empty one has left the lists");
    bench.put(packet(100, 0, 2));
    assert_eq!(bench.ids(), [10, 5, 6]);
}

/// Beyond the limit half the packets of the flow with the most bytes go, 64 at most, oldest first.
#[test]
fn overflow_takes_from_the_fattest() {
    for kind in KINDS {
        let mut bench = Bench::new(&fair(kind, |table| {
            table.insert("limit".into(), "6 packets".into());
        }));
        for flow in [1, 1, 1, 1, 1, 2] {
            bench.put(packet(1_000, 0, flow));
        }
        assert_eq!(bench.drops(), []);
        bench.put(packet(1_000, 0, 2));
        assert_eq!(bench.drops(), [1, 2, 3].map(|id| (id, Cause::QueuePackets)));
        let mut bench = Bench::new(&fair(kind, |table| {
            table.insert("limit".into(), "100 kB".into());
        }));
        for _ in 0..1_001 {
            bench.put(packet(100, 0, 1));
        }
        assert_eq!(bench.drops(), (1..=64).map(|id| (id, Cause::QueueBytes)).collect::<Vec<_>>());
    }
}

/// Into 8 queues two of 9 flows must share one; which do depends on the seed alone. Flows that share
/// a queue keep their order.
#[test]
fn flows_are_hashed_by_the_seed() {
    let config = fair("fq_codel", |table| {
        table.insert("flows".into(), 8.into());
        table.insert("quantum".into(), "100 bytes".into());
    });
    let order = |config: &QueueConfig, seed: u64| {
        let mut bench = Bench::serving(config, Direction::Uplink, seed);
        for flow in (0..9).chain(0..9) {
            bench.put(packet(100, 0, flow));
        }
        bench.ids()
    };
    assert_eq!(order(&config, 1), order(&config, 1));
    let orders: std::collections::HashSet<_> = (0..50).map(|seed| order(&config, seed)).collect();
    assert!(orders.len() > 25, "{}", orders.len());
    // With a queue for each flow all first packets go before all second ones; else not.
    let shared = |config: &QueueConfig, seed: u64| !order(config, seed).into_iter().eq(1..=18);
    assert!((0..50).all(|seed| shared(&config, seed)));
    // With the usual 1024 queues nine flows rarely meet: 1 - (1 - 1/1024)^36 = 3.5 % of seeds; at 50
    // seeds 1.7 are expected, and more than 8 have a probability below 1e-4.
    let wide = fair("fq_codel", |table| {
        table.insert("quantum".into(), "100 bytes".into());
    });
    assert!((0..50).filter(|seed| shared(&wide, *seed)).count() <= 8);
    let mut one = Bench::new(&fair("fq_codel", |table| {
        table.insert("flows".into(), 1.into());
    }));
    for flow in [1, 2, 3, 1, 2, 3] {
        one.put(packet(1_500, 0, flow));
    }
    assert_eq!(one.ids(), [1, 2, 3, 4, 5, 6]);
}

/// A flow whose packets wait for longer than an interval is marked or dropped from; the other, whose
/// packets have not waited, is left alone.
#[test]
fn management_concerns_one_flow() {
    for (ecn, marked) in [(Ecn::Ect0, true), (Ecn::Ect1, true), (Ecn::NotEct, false)] {
        let mut bench = Bench::new(&fair("fq_codel", |_| {}));
        for _ in 0..200 {
            bench.put(Pdu { ecn, ..packet(1_500, 0, 1) });
        }
        let mut sparse = Vec::new();
        for step in 1..150u64 {
            bench.at = Time::from_nanos(step * 2_000_000);
            sparse.push(bench.put(Pdu { ecn, ..packet(100, 0, 2) }));
            bench.take();
            bench.take();
        }
        let kind = if marked { EventKind::Marked } else { EventKind::Dropped };
        let managed: Vec<u64> = bench.events(kind).iter().map(|event| event.pdu).collect();
        assert!(!managed.is_empty() && managed.iter().all(|id| !sparse.contains(id)), "{ecn:?} {managed:?}");
        let other = if marked { EventKind::Dropped } else { EventKind::Marked };
        assert!(bench.events(other).is_empty());
    }
}

/// Changes keep what is queued; other numbers of queues sort it anew.
#[test]
fn changes_keep_what_is_queued() {
    for kind in KINDS {
        let with_flows = |flows: i64| {
            fair(kind, |table| {
                table.insert("flows".into(), flows.into());
            })
        };
        let mut bench = Bench::new(&with_flows(1));
        for flow in [1, 1, 1, 2, 2] {
            bench.put(packet(1_500, 0, flow));
        }
        bench.configure(&with_flows(1_024));
        assert_eq!(bench.ids(), [1, 4, 2, 5, 3]);
        for flow in [1, 1, 2] {
            bench.put(packet(1_500, 0, flow));
        }
        bench.configure(&QueueConfig::default());
        assert_eq!(bench.take().unwrap().0, 6);
        bench.configure(&with_flows(16));
        assert_eq!(bench.ids().len(), 2);
    }
}

#[test]
fn problems_are_told() {
    let problem = |kind: &str, key: &str, value: &str| {
        let config = fair(kind, |table| {
            table.insert(key.into(), value.parse::<i64>().map_or(value.into(), toml::Value::Integer));
        });
        config.problems().into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<String>()
    };
    for kind in KINDS {
        assert!(problem(kind, "flows", "0").starts_with("flows: is 0"));
        assert!(problem(kind, "limit", "100 packets, 1 s").starts_with("limit: has a limit in time"));
        assert!(problem(kind, "quantum", "1 bytes").starts_with("quantum: is 8 bit"));
        assert!(problem(kind, "target", "2 s").is_empty() != (kind == "fq_codel"));
    }
}
