// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Blackouts, computed by hand to the nanosecond, most of them with several things at one instant.

use airpath_core::{Cause, EventKind, PortId, Seed, Time};
use airpath_models::blackout::{BlackoutConfig, InFlight, Parts, Waiting};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::states::Stay;
use airpath_models::{Fragmentation, LastFrame, LinkConfig, Path, PathConfig, StateConfig};

use crate::common::*;

/// 100 bytes take 100 ms, and 30 ms on the way.
fn link() -> LinkConfig {
    LinkConfig { rate: read("8 kbit/s"), propagation: read("30 ms"), ..LinkConfig::default() }
}

/// A path whose uplink is `link`, blacked out from `from` to `to`.
fn dark(link: &LinkConfig, from: Time, to: Time, blackout: BlackoutConfig) -> PathConfig {
    let config = one_hop("radio", link.clone(), LinkConfig::default());
    let hops = one_hop("radio", LinkConfig { blackout, ..link.clone() }, LinkConfig::default()).hops;
    let stay = Stay { duration: Some(to.since(from).into()), next: Vec::new() };
    PathConfig { states: vec![StateConfig { name: "tunnel".into(), at: Some(from), hops, stay }], ..config }
}

fn parts(queued: Waiting, in_flight: InFlight, arriving: Waiting) -> BlackoutConfig {
    BlackoutConfig::Parts(Parts { queued, in_flight, arriving })
}

fn play(config: &PathConfig, script: &Script) -> Trace {
    let trace = check_laws(|| Path::new(config, Seed(1)), script, 7);
    assert_eq!(trace.held, 0);
    trace
}

fn packets(times: &[u64]) -> Script {
    times.iter().map(|at| offer(ms(*at), PortId::CLIENT, 100)).collect()
}

/// Numbers and times in milliseconds of what left.
fn left(trace: &Trace) -> Vec<(u64, u64)> {
    let times = trace.times(PortId::SERVER);
    assert!(times.iter().all(|at| at % 1_000_000 == 0), "{times:?}");
    trace.ids(PortId::SERVER).into_iter().zip(times.into_iter().map(|at| at / 1_000_000)).collect()
}

/// Numbers and times in milliseconds of what a blackout has dropped.
fn dropped(trace: &Trace) -> Vec<(u64, u64)> {
    let drops = trace.of_kind(EventKind::Dropped);
    assert!(drops.iter().all(|event| event.cause == Cause::Blackout), "{drops:?}");
    drops.iter().map(|event| (event.pdu, event.at.nanos() / 1_000_000)).collect()
}

const TUNNEL: (u64, u64) = (220, 1_000);

/// Packet 1 is on the air from 0 to 100 ms and arrives at 130, 2 from 100 to 200 and would arrive at
/// 230; 3 is under transmission when the blackout begins at 220 ms, 4 is queued, 5 comes at 500 ms. The
/// blackout ends at 1000 ms.
fn tunnel(blackout: BlackoutConfig) -> Trace {
    let config = dark(&link(), ms(TUNNEL.0), ms(TUNNEL.1), blackout);
    play(&config, &packets(&[0, 0, 0, 0, 500]))
}

/// Propagating packets arrive when the blackout ends; the third packet is sent again from its beginning.
#[test]
fn stored_packets_arrive_in_order_after_it() {
    let trace = tunnel(BlackoutConfig::STORE);
    assert_eq!(left(&trace), [(1, 130), (2, 1_000), (3, 1_130), (4, 1_230), (5, 1_330)]);
    assert_eq!(dropped(&trace), []);
    let of_third = |kind| -> Vec<u64> {
        trace.of_kind(kind).iter().filter(|event| event.pdu == 3).map(|event| event.at.nanos() / 1_000_000).collect()
    };
    assert_eq!((of_third(EventKind::FrameStarted), of_third(EventKind::FrameSent)), (vec![200, 1_000], vec![1_100]));
}

/// Propagating packets are lost at once, those under transmission when that would have ended, queued ones at
/// once, and later ones as they come.
#[test]
fn dropped_packets_do_not_arrive() {
    let trace = tunnel(BlackoutConfig::DROP);
    assert_eq!(left(&trace), [(1, 130)]);
    assert_eq!(dropped(&trace), [(4, 220), (2, 220), (3, 300), (5, 500)]);
}

#[test]
fn every_part_has_its_own_fate() {
    use InFlight as Flight;
    use Waiting::{Drop, Store};
    // Queued: packet 4.
    let trace = tunnel(parts(Drop, Flight::Store, Store));
    assert_eq!(left(&trace), [(1, 130), (2, 1_000), (3, 1_130), (5, 1_230)]);
    assert_eq!(dropped(&trace), [(4, 220)]);
    // In flight: packets 2 and 3.
    let trace = tunnel(parts(Store, Flight::Drop, Store));
    assert_eq!(left(&trace), [(1, 130), (4, 1_130), (5, 1_230)]);
    assert_eq!(dropped(&trace), [(2, 220), (3, 300)]);
    let trace = tunnel(parts(Store, Flight::Pass, Store));
    assert_eq!(left(&trace), [(1, 130), (2, 230), (3, 330), (4, 1_130), (5, 1_230)]);
    // Arriving: packet 5.
    let trace = tunnel(parts(Store, Flight::Pass, Drop));
    assert_eq!(left(&trace), [(1, 130), (2, 230), (3, 330), (4, 1_130)]);
    assert_eq!(dropped(&trace), [(5, 500)]);
}

/// At 100 ms the first packet's transmission ends, at 130 ms it arrives: both come before a blackout
/// that begins then. At its end a packet that waits starts at once, and one that arrives waits behind it.
#[test]
fn a_blackout_begins_behind_all_service_and_ends_before_all_arrivals() {
    for (from, expected) in [(100, [(1, 400), (2, 530), (3, 630)]), (130, [(1, 130), (2, 530), (3, 630)])] {
        let config = dark(&link(), ms(from), ms(400), BlackoutConfig::STORE);
        let trace = play(&config, &packets(&[0, 0, 400]));
        // The second packet is on the air from 100 ms on, and is sent again from 400 ms on.
        assert_eq!(left(&trace), expected);
    }
    // A packet that comes as the blackout begins comes behind its beginning.
    let config = dark(&link(), ms(50), ms(400), BlackoutConfig::DROP);
    let trace = play(&config, &packets(&[50, 400]));
    assert_eq!((left(&trace), dropped(&trace)), (vec![(2, 530)], vec![(1, 50)]));
}

/// A blackout from 20 to 40 ms ends while the first transmission of packet 1 would still go on, until
/// 100 ms: then it is sent again. Dropped, it makes room at 100 ms.
#[test]
fn a_short_blackout_takes_the_frame_under_transmission_and_no_more() {
    let with = |blackout| play(&dark(&link(), ms(20), ms(40), blackout), &packets(&[0, 0]));
    assert_eq!(left(&with(BlackoutConfig::STORE)), [(1, 230), (2, 330)]);
    let trace = with(parts(Waiting::Store, InFlight::Drop, Waiting::Store));
    assert_eq!((left(&trace), dropped(&trace)), (vec![(2, 230)], vec![(1, 100)]));
}

/// A blackout of no length, by two commands at 50 ms: the frame on the air is caught all the same, one
/// that starts at that instant, too.
#[test]
fn a_blackout_of_no_length_catches_what_is_under_transmission() {
    for start in [10, 50] {
        let config = dark(&link(), ms(50), ms(60), BlackoutConfig::DROP);
        let config = PathConfig { states: vec![StateConfig { at: None, ..config.states[0].clone() }], ..config };
        let mut script = packets(&[start]);
        // Between the two the packet has to be on the air already.
        let commands = ["tunnel", "initial"].map(|name| (ms(50), Action::Enter(name.into())));
        script.extend(commands);
        script.extend(packets(&[300]));
        let trace = play(&config, &script);
        assert_eq!(left(&trace), [(2, 430)]);
        let when = if start == 10 { 110 } else { 150 };
        assert_eq!(dropped(&trace), [(1, when)], "{:#?}", trace.events);
    }
}

/// Frames of 250 bit take 31.25 ms, so that the first packet's four frames (the last of 50 bit) are
/// under transmission until 31.25, 62.5, 93.75 and 100 ms. At 70 ms two are behind, one is on the air.
/// It would be caught, and sent again at that instant, for ever.
#[test]
fn a_frame_of_no_duration_passes_at_the_instant_of_a_blackout_that_has_ended() {
    let link = LinkConfig { rate: read("unlimited"), ..link() };
    let config = dark(&link, ms(50), ms(60), BlackoutConfig::STORE);
    let config = PathConfig { states: vec![StateConfig { at: None, ..config.states[0].clone() }], ..config };
    let mut script: Script = ["tunnel", "initial"].map(|name| (ms(50), Action::Enter(name.into()))).into();
    script.extend(packets(&[50]));
    assert_eq!(left(&play(&config, &script)), [(1, 80)]);
}

#[test]
fn frames_are_caught_one_by_one() {
    let framed = LinkConfig {
        fragmentation: Some(Fragmentation {
            frame_payload: read("250 bit"),
            frame_header: read("0 bit"),
            last_frame: LastFrame::Short,
        }),
        propagation: read("10 ms"),
        send_buffer: read("2 packets"),
        ..link()
    };
    let stored = play(&dark(&framed, ms(70), ms(200), BlackoutConfig::STORE), &packets(&[0, 0]));
    // At 200 the second frame arrives, and the third starts again: 231.25, 237.5; then the second packet.
    assert_eq!(stored.times(PortId::SERVER), [247_500_000, 347_500_000]);
    // Of the second packet no frame has started: it is queued, though in the send buffer. What is left of
    // the first is sent from 200 ms on for nothing, and a packet that comes at 201 ms follows it.
    let config = dark(&framed, ms(70), ms(200), BlackoutConfig::DROP);
    let trace = play(&config, &packets(&[0, 0, 201]));
    assert_eq!(dropped(&trace), [(2, 70), (1, 70)]);
    assert_eq!(trace.times(PortId::SERVER), [316_250_000]);
}

/// Limits in packets and in time hold during a blackout.
#[test]
fn the_limits_of_the_queue_go_on() {
    let queue = |limit| QueueConfig::TailDrop(TailDropConfig { limit: read(limit) });
    let with = |limit| {
        let config = dark(&LinkConfig { queue: queue(limit), ..link() }, ms(50), ms(1_000), BlackoutConfig::STORE);
        play(&config, &packets(&[0, 60, 70, 80]))
    };
    let trace = with("2 packets");
    assert_eq!(left(&trace), [(1, 1_130), (2, 1_230), (3, 1_330)]);
    assert_eq!(trace.of_kind(EventKind::Dropped)[0].cause, Cause::QueuePackets);
    let trace = with("925 ms");
    // Packet 2 has waited 925 ms at 985, 3 at 995, 4 at 1005.
    let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|event| (event.at, event.cause)).collect();
    assert_eq!(drops, [985, 995, 1_005].map(|at| (ms(at), Cause::QueueAge)));
}

/// A packet that meets an empty link in the dark is given its resources, and goes when there is light.
#[test]
fn an_allocation_goes_on_in_the_dark() {
    let slow = LinkConfig { allocation_delay: read("50 ms"), ..link() };
    for (comes, leaves) in [(20, 230), (80, 260)] {
        let config = dark(&slow, ms(10), ms(100), BlackoutConfig::STORE);
        assert_eq!(left(&play(&config, &packets(&[comes]))), [(1, leaves)]);
    }
}

/// One blackout after the other: what the second newly drops goes when it begins, what it has in
/// common with the first is not done again.
#[test]
fn one_blackout_may_become_another() {
    let config = dark(&link(), ms(220), ms(500), BlackoutConfig::STORE);
    let darker = StateConfig {
        name: "darker".into(),
        at: None,
        hops: dark(&link(), ms(0), ms(1), parts(Waiting::Store, InFlight::Drop, Waiting::Drop)).states[0].hops.clone(),
        stay: Stay { duration: Some(span("300 ms").into()), next: Vec::new() },
    };
    let mut states = config.states.clone();
    states[0].stay.next = vec![(2, airpath_core::Probability::ONE)];
    states.push(darker);
    let config = PathConfig { states, ..config };
    let trace = play(&config, &packets(&[0, 0, 0, 0, 400, 600]));
    // 2 was on the way and 3 under transmission at 220; both are kept until 500, and lost then. 4 and 5
    // are queued, 6 comes while nothing is taken. The second ends at 800 ms.
    assert_eq!(left(&trace), [(1, 130), (4, 930), (5, 1_030)]);
    let mut all = dropped(&trace);
    all.sort_unstable();
    assert_eq!(all, [(2, 500), (3, 500), (6, 600)]);
    // The same state entered again drops nothing more.
    let config = dark(&link(), ms(220), ms(1_000), parts(Waiting::Drop, InFlight::Store, Waiting::Store));
    let mut script = packets(&[0, 0, 0, 0, 400]);
    script.push((ms(500), Action::Enter("tunnel".into())));
    let trace = play(&config, &script);
    assert_eq!(dropped(&trace), [(4, 220)]);
    // The stay begins anew at 500 ms and lasts 780 ms.
    assert_eq!(left(&trace), [(1, 130), (2, 1_280), (3, 1_410), (5, 1_510)]);
}

/// The directions of a hop, and the hops of a path, each have their own.
#[test]
fn a_blackout_concerns_its_direction_and_its_hop_only() {
    let config = dark(&link(), ms(0), ms(500), BlackoutConfig::DROP);
    let script = vec![offer(ms(10), PortId::SERVER, 100), offer(ms(20), PortId::CLIENT, 100)];
    let trace = play(&config, &script);
    assert_eq!(trace.times(PortId::CLIENT), [10_000_000]);
    assert_eq!(dropped(&trace), [(2, 20)]);
}

/// Frames that one blackout has condemned are lost when their transmission would have ended, even if another
/// one that stores has come meanwhile.
#[test]
fn what_is_lost_waits_for_no_second_blackout() {
    let link = LinkConfig { rate: read("1 kbit/s"), ..LinkConfig::default() };
    let state = |name: &str, at: u64, blackout, duration: Option<u64>| StateConfig {
        name: name.into(),
        at: Some(ms(at)),
        hops: one_hop("radio", LinkConfig { blackout, ..link.clone() }, LinkConfig::default()).hops,
        stay: Stay { duration: duration.map(|ms| airpath_core::Span::from_millis(ms).into()), next: Vec::new() },
    };
    let drop = parts(Waiting::Drop, InFlight::Drop, Waiting::Drop);
    let store = parts(Waiting::Store, InFlight::Store, Waiting::Store);
    let states = vec![state("drop", 1_000, drop, None), state("store", 2_000, store, Some(18_000))];
    let config = PathConfig { states, ..one_hop("radio", link.clone(), LinkConfig::default()) };
    let trace = play(&config, &vec![offer(ms(0), PortId::CLIENT, 1_000)]);
    assert_eq!(dropped(&trace), [(1, 8_000)]);
}

/// Over a blackout that empties it a RED queue is idle like any other: its average decays.
#[test]
fn an_emptied_red_queue_is_idle() {
    let red = airpath_models::queueing::red::RedConfig {
        limit: read("100 packets"),
        ..match QueueConfig::examples().into_iter().find(|queue| matches!(queue, QueueConfig::Red(_))) {
            Some(QueueConfig::Red(config)) => config,
            _ => panic!("RED is registered with examples"),
        }
    };
    let link = LinkConfig { rate: read("8 kbit/s"), queue: QueueConfig::Red(red), ..LinkConfig::default() };
    let drop = parts(Waiting::Drop, InFlight::Drop, Waiting::Drop);
    let config = dark(&link, ms(5_000), ms(6_000), drop);
    // Twice as much as the link takes for five seconds; one packet ten minutes later.
    let mut script: Script = (0..100).map(|step| offer(ms(step * 50), PortId::CLIENT, 100)).collect();
    script.push(offer(ms(600_000), PortId::CLIENT, 100));
    let trace = play(&config, &script);
    assert_eq!(trace.ids(PortId::SERVER).last(), Some(&101));
}
