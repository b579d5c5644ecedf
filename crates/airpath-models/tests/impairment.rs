// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reordering and duplication, by hand to the nanosecond, and what they promise of any traffic.

use airpath_core::{EventKind, PortId, Seed, Span};
use airpath_models::impairment::{DuplicateConfig, ReorderConfig};
use airpath_models::random::{Distribution, Random, Uniform};
use airpath_models::{Fragmentation, LastFrame, LinkConfig, Path, PathConfig, StateConfig};

use crate::common::*;

fn reorder(probability: &str, delay: Option<&str>, distance: Option<u32>) -> ReorderConfig {
    ReorderConfig {
        probability: read(probability),
        delay: delay.map(|delay| span(delay).into()),
        distance,
        gap: 1,
        correlation: read("0"),
    }
}

fn duplicate(probability: &str, delay: &str, copies: u32) -> DuplicateConfig {
    DuplicateConfig { probability: read(probability), delay: span(delay).into(), copies, correlation: read("0") }
}

/// One packet each millisecond.
fn steady(count: u64) -> Script {
    (0..count).map(|step| offer(ms(step), PortId::CLIENT, 125)).collect()
}

/// Departures uplink, packet by packet, in microseconds.
fn left(trace: &Trace) -> Vec<(u64, u64)> {
    trace.times(PortId::SERVER).into_iter().map(|at| at / 1_000).zip(trace.ids(PortId::SERVER)).collect()
}

fn play(link: LinkConfig, script: &Script) -> Trace {
    let config = one_hop("radio", link, LinkConfig::default());
    check_laws(|| Path::new(&config, Seed(1)), script, 1)
}

/// Every third packet is held back by 2.5 ms: 3 comes at 2 ms and leaves at 4.5, behind 4 and 5.
#[test]
fn one_in_so_many_is_held_back_for_its_time() {
    let reorder = ReorderConfig { gap: 3, ..reorder("1", Some("2500 us"), None) };
    let trace = play(LinkConfig { reorder: Some(reorder), ..LinkConfig::default() }, &steady(7));
    let expected = [(0, 1), (1_000, 2), (3_000, 4), (4_000, 5), (4_500, 3), (6_000, 7), (7_500, 6)];
    assert_eq!(left(&trace), expected);
    let held: Vec<(u64, u64)> = trace.of_kind(EventKind::HeldBack).iter().map(|e| (e.at.nanos(), e.pdu)).collect();
    assert_eq!(held, [(2_000_000, 3), (5_000_000, 6)]);
}

/// Every third packet waits for two to overtake it and follows the second at once; at the end of the traffic
/// its time is over first.
#[test]
fn a_distance_counts_packets() {
    let reorder = ReorderConfig { gap: 3, ..reorder("1", Some("50 ms"), Some(2)) };
    let trace = play(LinkConfig { reorder: Some(reorder), ..LinkConfig::default() }, &steady(7));
    let expected = [(0, 1), (1_000, 2), (3_000, 4), (4_000, 5), (4_000, 3), (6_000, 7), (55_000, 6)];
    assert_eq!(left(&trace), expected);
    // Without a time it is a second.
    let reorder = ReorderConfig { gap: 3, ..self::reorder("1", None, Some(2)) };
    let trace = play(LinkConfig { reorder: Some(reorder), ..LinkConfig::default() }, &steady(3));
    assert_eq!(left(&trace), [(0, 1), (1_000, 2), (1_002_000, 3)]);
}

/// Holding back everything keeps order and makes all packets later.
#[test]
fn what_is_all_held_back_keeps_its_order() {
    let link = LinkConfig { reorder: Some(reorder("1", Some("7 ms"), None)), ..LinkConfig::default() };
    assert_eq!(left(&play(link, &steady(3))), [(7_000, 1), (8_000, 2), (9_000, 3)]);
}

/// Copies at once follow their packet; later ones come when they come. 1 Mbit/s: a packet takes 1 ms.
#[test]
fn copies_leave_at_once_or_later() {
    let at_once = LinkConfig {
        rate: read("1 Mbit/s"),
        propagation: span("5 ms").into(),
        duplicate: Some(duplicate("1", "0 s", 2)),
        ..LinkConfig::default()
    };
    let trace = play(at_once.clone(), &steady(2));
    assert_eq!(left(&trace), [(6_000, 1), (6_000, 1), (6_000, 1), (7_000, 2), (7_000, 2), (7_000, 2)]);
    assert_eq!(trace.of_kind(EventKind::Duplicated).len(), 4);
    let later = LinkConfig { duplicate: Some(duplicate("1", "1500 us", 1)), ..at_once };
    assert_eq!(left(&play(later, &steady(2))), [(6_000, 1), (7_000, 2), (7_500, 1), (8_500, 2)]);
}

/// A packet that is held back has its copy go ahead of it.
#[test]
fn copies_are_not_held_back() {
    let link = LinkConfig {
        reorder: Some(reorder("1", Some("3 ms"), None)),
        duplicate: Some(duplicate("1", "0 s", 1)),
        ..LinkConfig::default()
    };
    assert_eq!(left(&play(link, &steady(2))), [(0, 1), (1_000, 2), (3_000, 1), (4_000, 2)]);
}

/// Copies made by a hop go through the next one like any packet: at 1 Mbit/s they take their time, and its
/// queue drops what it has no room for.
#[test]
fn copies_are_packets_to_the_next_hop() {
    let mut config = one_hop(
        "first",
        LinkConfig { duplicate: Some(duplicate("1", "0 s", 3)), ..LinkConfig::default() },
        LinkConfig::default(),
    );
    let second = LinkConfig {
        rate: read("1 Mbit/s"),
        queue: airpath_models::queueing::QueueConfig::TailDrop(airpath_models::queueing::tail_drop::TailDropConfig {
            limit: read("1 packet"),
        }),
        ..LinkConfig::default()
    };
    config.hops.push(airpath_models::HopConfig {
        name: "second".into(),
        uplink: second,
        downlink: LinkConfig::default(),
    });
    let script = vec![offer(ms(10), PortId::CLIENT, 125)];
    let trace = check_laws(|| Path::new(&config, Seed(1)), &script, 1);
    // One in transmission, one in the queue, two dropped.
    assert_eq!(left(&trace), [(11_000, 1), (12_000, 1)]);
    assert_eq!(trace.of_kind(EventKind::Dropped).len(), 2);
}

/// A change concerns packets that come after it; what is held back keeps its time, and is overtaken on.
#[test]
fn a_change_leaves_what_is_held_back() {
    let with = |reorder| LinkConfig { reorder, ..LinkConfig::default() };
    let path = |before, after| -> PathConfig {
        let mut config = one_hop("radio", with(before), LinkConfig::default());
        let hops = one_hop("radio", with(after), LinkConfig::default()).hops;
        config.states.push(StateConfig {
            name: "after".into(),
            at: Some(read_time("1500 us")),
            hops,
            stay: Default::default(),
        });
        config
    };
    let run = |config: PathConfig| left(&check_laws(|| Path::new(&config, Seed(1)), &steady(5), 1));
    let all = || Some(reorder("1", Some("10 ms"), None));
    assert_eq!(run(path(all(), None)), [(2_000, 3), (3_000, 4), (4_000, 5), (10_000, 1), (11_000, 2)]);
    let counted = || Some(reorder("1", Some("10 ms"), Some(2)));
    assert_eq!(run(path(counted(), None)), [(2_000, 3), (3_000, 4), (3_000, 1), (3_000, 2), (4_000, 5)]);
    assert_eq!(run(path(None, all())), [(0, 1), (1_000, 2), (12_000, 3), (13_000, 4), (14_000, 5)]);
}

fn read_time(text: &str) -> airpath_core::Time {
    airpath_core::Time::ZERO + span(text)
}

/// The shares of packets held back and copied are those asked for, and only packets held back are
/// late: 1 % of 20,000, five standard errors.
#[test]
fn shares_are_as_asked_for() {
    let link = LinkConfig {
        reorder: Some(reorder("0.01", Some("5 ms"), None)),
        duplicate: Some(duplicate("0.02", "0 s", 1)),
        ..LinkConfig::default()
    };
    let config = one_hop("radio", link, LinkConfig::default());
    let trace = run(Path::new(&config, Seed(9)), &steady(20_000));
    let within = |found: usize, share: f64| {
        let expected = 20_000.0 * share;
        assert!((found as f64 - expected).abs() < 5.0 * (expected * (1.0 - share)).sqrt(), "{found}, not {expected}");
    };
    let held = trace.of_kind(EventKind::HeldBack).len();
    within(held, 0.01);
    within(trace.of_kind(EventKind::Duplicated).len(), 0.02);
    let late = trace.departures.iter().filter(|left| left.at != left.arrived).count();
    assert_eq!(late, held);
    assert!(trace.departures.iter().all(|left| [0, 5_000_000].contains(&left.at.since(left.arrived).nanos())));
}

/// Jitter alone reorders nothing: a packet that draws a shorter delay waits for the one before it. Delays
/// of 1, 9, 2 and 3 ms from a file, one packet each millisecond: they would arrive at 1, 10, 4 and 6 ms.
#[test]
fn jitter_keeps_order() {
    use airpath_models::file::FileRef;
    use airpath_models::random::{AtEnd, Distribution, Numbers, Random, Sequence};
    let file = FileRef::with_data("delays.txt", Numbers::Values(vec![1.0, 9.0, 2.0, 3.0]));
    let sequence = Sequence { file, unit: span("1 ms"), at_end: AtEnd::Repeat };
    let propagation = Random::Drawn(Distribution::Sequence(sequence));
    let link = LinkConfig { propagation, ..LinkConfig::default() };
    let trace = play(link, &steady(5));
    assert_eq!(left(&trace), [(1_000, 1), (10_000, 2), (10_000, 3), (10_000, 4), (10_000, 5)]);
    // The mean delay by hand: (1 + 9 + 8 + 7 + 6) / 5 ms.
    let delays: u64 = trace.departures.iter().map(|left| left.at.since(left.arrived).nanos()).sum();
    assert_eq!(delays / 5, 6_200_000);
}

/// A random delay of the same length for whom it is drawn would be an accident.
fn uniform(from: &str, to: &str) -> Random<Span> {
    Random::Drawn(Distribution::Uniform(Uniform { from: span(from), to: span(to), ..Uniform::default() }))
}

/// Packet 1 is in four frames of 50 ms each; a state lengthens the delay after the first. No later frame
/// keeps the former draw, of which nothing would tell a driver.
#[test]
fn a_change_leaves_no_draw_behind() {
    let link = |propagation| LinkConfig {
        rate: read("24 kbit/s"),
        fragmentation: Some(Fragmentation {
            frame_payload: read("1200 bit"),
            frame_header: read("0 bit"),
            last_frame: LastFrame::Short,
        }),
        propagation,
        ..LinkConfig::default()
    };
    let hops = |propagation| one_hop("radio", link(propagation), LinkConfig::default()).hops;
    let later = uniform("2 s", "3 s");
    let state = StateConfig { name: "far".into(), at: Some(ms(60)), hops: hops(later), stay: Default::default() };
    let config = PathConfig { hops: hops(uniform("5 ms", "10 ms")), states: vec![state], ..PathConfig::default() };
    let script = vec![offer(ms(0), PortId::CLIENT, 600)];
    let trace = check_laws(|| Path::new(&config, Seed(1)), &script, 1);
    let [left] = trace.times(PortId::SERVER)[..] else { panic!("{:?}", trace.departures) };
    assert!((2_200_000_000..=3_200_000_000).contains(&left), "{left}");
}

/// Copies of one packet that cross a hop one after the other each have a delay of their own.
#[test]
fn copies_have_delays_of_their_own() {
    let copies = DuplicateConfig { delay: uniform("100 ms", "900 ms"), ..duplicate("1", "0 s", 3) };
    let first = LinkConfig { duplicate: Some(copies), ..LinkConfig::default() };
    let second = LinkConfig { propagation: uniform("5 ms", "90 ms"), ..LinkConfig::default() };
    let mut config = one_hop("one", first, LinkConfig::default());
    config.hops.extend(one_hop("two", second, LinkConfig::default()).hops);
    let trace = check_laws(|| Path::new(&config, Seed(1)), &vec![offer(ms(0), PortId::CLIENT, 100)], 1);
    let passed: Vec<u64> = trace.of_kind(EventKind::Passed).iter().map(|event| event.at.nanos()).collect();
    let mut crossing: Vec<u64> = passed.iter().zip(trace.times(PortId::SERVER)).map(|(from, to)| to - from).collect();
    assert_eq!(crossing.len(), 4);
    crossing.sort_unstable();
    crossing.dedup();
    assert_eq!(crossing.len(), 4, "{crossing:?}");
}
