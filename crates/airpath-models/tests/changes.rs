// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Changes of parameters by states and commands, computed by hand, most of them at ties.

use airpath_core::{Cause, EventKind, PortId, Seed, Time};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::head_drop::HeadDropConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig, StateConfig};

use crate::common::*;

/// A path of one hop whose uplink is `first`, and from `at` on `then`.
fn changing(first: LinkConfig, at: Time, then: LinkConfig) -> PathConfig {
    let hops = |link| one_hop("radio", link, LinkConfig::default()).hops;
    let state = StateConfig { name: "then".into(), at: Some(at), hops: hops(then), stay: Default::default() };
    PathConfig { hops: hops(first), states: vec![state], ..PathConfig::default() }
}

fn play(config: &PathConfig, script: &Script) -> Trace {
    let trace = check_laws(|| Path::new(config, Seed(1)), script, 7);
    assert_eq!(trace.held, 0);
    trace
}

fn rate(text: &str) -> LinkConfig {
    LinkConfig { rate: read(text), ..LinkConfig::default() }
}

fn burst(count: usize) -> Script {
    (0..count).map(|_| offer(Time::ZERO, PortId::CLIENT, 100)).collect()
}

/// 100 bytes take 100 ms at 8 kbit/s and 50 ms at 16 kbit/s. The change at 150 ms finds the second
/// packet on the air, which keeps its rate.
#[test]
fn a_frame_on_the_air_keeps_its_rate() {
    let trace = play(&changing(rate("8 kbit/s"), ms(150), rate("16 kbit/s")), &burst(4));
    assert_eq!(trace.times(PortId::SERVER), [100_000_000, 200_000_000, 250_000_000, 300_000_000]);
}

/// Service comes before a change at the same instant, arrivals behind it: the second packet starts
/// at 100 ms under the old rate, a packet that meets an idle link at 300 ms under the new one.
#[test]
fn service_then_state_then_arrival() {
    let trace = play(&changing(rate("8 kbit/s"), ms(100), rate("16 kbit/s")), &burst(3));
    assert_eq!(trace.times(PortId::SERVER), [100_000_000, 200_000_000, 250_000_000]);
    let script = vec![offer(ms(300), PortId::CLIENT, 100)];
    let trace = play(&changing(rate("8 kbit/s"), ms(300), rate("16 kbit/s")), &script);
    assert_eq!(trace.times(PortId::SERVER), [350_000_000]);
    let kinds: Vec<EventKind> = trace.events.iter().map(|event| event.kind).take(3).collect();
    assert_eq!(kinds, [EventKind::StateChanged, EventKind::Offered, EventKind::Enqueued]);
    assert!(trace.events.iter().all(|event| event.state == 1));
    // At the very beginning, too.
    let trace = play(&changing(rate("8 kbit/s"), Time::ZERO, rate("16 kbit/s")), &burst(1));
    assert_eq!(trace.times(PortId::SERVER), [50_000_000]);
}

/// All that can meet at one instant, in its order: at 100 ms a frame ends in each hop and direction,
/// both packets pass on, the state changes, and two packets come.
#[test]
fn everything_at_one_instant() {
    let hop = |name: &str| HopConfig { name: name.into(), uplink: rate("8 kbit/s"), downlink: rate("8 kbit/s") };
    let hops = vec![hop("near"), hop("far")];
    let state = StateConfig { name: "same".into(), at: Some(ms(100)), hops: hops.clone(), stay: Default::default() };
    let config = PathConfig { hops, states: vec![state], ..PathConfig::default() };
    let both = |at| [offer(at, PortId::SERVER, 100), offer(at, PortId::CLIENT, 100)];
    let trace = play(&config, &[both(ms(0)), both(ms(100))].concat());
    let at_100: Vec<_> = trace
        .events
        .iter()
        .filter(|event| event.at == ms(100))
        .map(|event| (event.kind, event.hop, event.pdu, event.state))
        .collect();
    use EventKind::*;
    const PATH: u16 = airpath_core::Event::WHOLE_PATH;
    // Packets 1 and 3 are the server's, 2 and 4 the client's; near is hop 0.
    let expected = [
        // Service: transmissions end, hops in order; then arrivals at the ends of the hops.
        (FrameSent, 0, 2, 0),
        (FrameSent, 1, 1, 0),
        (Passed, 0, 2, 0),
        (Passed, 1, 1, 0),
        (StateChanged, PATH, 0, 1),
        // What passes on, one after the other, each with what it causes.
        (Enqueued, 1, 2, 1),
        (Dequeued, 1, 2, 1),
        (FrameStarted, 1, 2, 1),
        (Enqueued, 0, 1, 1),
        (Dequeued, 0, 1, 1),
        (FrameStarted, 0, 1, 1),
        // What comes from outside, likewise.
        (Offered, PATH, 3, 1),
        (Enqueued, 1, 3, 1),
        (Dequeued, 1, 3, 1),
        (FrameStarted, 1, 3, 1),
        (Offered, PATH, 4, 1),
        (Enqueued, 0, 4, 1),
        (Dequeued, 0, 4, 1),
        (FrameStarted, 0, 4, 1),
    ];
    assert_eq!(at_100, expected);
    assert_eq!(trace.times(PortId::CLIENT), [200_000_000, 300_000_000]);
    assert_eq!(trace.times(PortId::SERVER), [200_000_000, 300_000_000]);
}

/// A command does what a state does at the same instant, but behind arrivals that came before it.
#[test]
fn commands_come_in_their_place_among_the_inputs() {
    let config = PathConfig {
        states: vec![StateConfig {
            at: None,
            ..changing(rate("8 kbit/s"), ms(0), rate("16 kbit/s")).states[0].clone()
        }],
        ..changing(rate("8 kbit/s"), ms(0), rate("16 kbit/s"))
    };
    let packet = offer(ms(10), PortId::CLIENT, 100);
    let enter = (ms(10), Action::Enter("then".into()));
    let configure = (ms(10), Action::Configure(config.states[0].hops.clone()));
    for change in [enter, configure] {
        let before = play(&config, &vec![change.clone(), packet.clone()]);
        assert_eq!(before.times(PortId::SERVER), [60_000_000]);
        let behind = play(&config, &vec![packet.clone(), change]);
        assert_eq!(behind.times(PortId::SERVER), [110_000_000]);
    }
}

/// The state is in force for all hops at once: at 100 ms the packet passes from the first hop to the
/// second, which already has the new rate.
#[test]
fn states_switch_all_hops_at_one_instant() {
    let hops = |text: &str| -> Vec<HopConfig> {
        let hop = |name: &str| HopConfig { name: name.into(), uplink: rate(text), downlink: rate(text) };
        vec![hop("near"), hop("far")]
    };
    let state =
        StateConfig { name: "then".into(), at: Some(ms(100)), hops: hops("16 kbit/s"), stay: Default::default() };
    let config = PathConfig { hops: hops("8 kbit/s"), states: vec![state], ..PathConfig::default() };
    assert_eq!(play(&config, &burst(1)).times(PortId::SERVER), [150_000_000]);
}

/// A third of a nanosecond is left of the first frame (1 bit at 3 Gbit/s would be 0.33 ns; here
/// 1001 bit at 3 kbit/s): the fraction goes over into the next frame's time at the other rate.
#[test]
fn fractions_of_a_nanosecond_survive_a_change_of_rate() {
    // 8 bit at 7 kbit/s: 1,142,857.142… ns; the change comes while the first is on the air; then
    // 8 bit at 9 kbit/s: 888,888.888… ns. Together 2,031,746.03 ns; without the fraction …745.
    let script: Script = (0..3).map(|_| offer(Time::ZERO, PortId::CLIENT, 1)).collect();
    let trace = play(&changing(rate("7 kbit/s"), ms(1), rate("9 kbit/s")), &script);
    assert_eq!(trace.times(PortId::SERVER), [1_142_857, 2_031_746, 2_920_634]);
}

/// A fraction does not outlive a busy period, not even one without a rate: 8 bit at 7 kbit/s leave
/// a fraction of 1/7 ns; at 2 ms a packet passes at no time, and behind it at the same instant eight
/// bits at 9 kbit/s take 888,888 ns, not 888,889.
#[test]
fn fractions_of_a_nanosecond_do_not_survive_a_gap() {
    let hops = |text: &str| one_hop("radio", rate(text), LinkConfig::default()).hops;
    let config = PathConfig { hops: hops("7 kbit/s"), ..PathConfig::default() };
    let script = vec![
        offer(ms(0), PortId::CLIENT, 1),
        (ms(2), Action::Configure(hops("unlimited"))),
        offer(ms(2), PortId::CLIENT, 1),
        (ms(2), Action::Configure(hops("9 kbit/s"))),
        offer(ms(2), PortId::CLIENT, 1),
        offer(ms(2), PortId::CLIENT, 1),
        offer(ms(2), PortId::CLIENT, 1),
        offer(ms(2), PortId::CLIENT, 1),
        offer(ms(2), PortId::CLIENT, 1),
        offer(ms(2), PortId::CLIENT, 1),
        offer(ms(2), PortId::CLIENT, 1),
        offer(ms(2), PortId::CLIENT, 1),
    ];
    let trace = play(&config, &script);
    let times = trace.times(PortId::SERVER);
    let exact: Vec<u64> = (1..=8).map(|frame| 2_000_000 + frame * 8_000_000 / 9).collect();
    assert_eq!(times[2..], exact);
}

/// A shorter propagation delay lets nothing overtake: the first packet, sent under 200 ms, arrives
/// at 210; the second, sent at 20 under 10 ms, would at 30.
#[test]
fn order_is_kept_when_the_propagation_shrinks() {
    let link = |delay: &str| LinkConfig { propagation: read(delay), ..LinkConfig::default() };
    let script = vec![
        offer(ms(10), PortId::CLIENT, 100),
        offer(ms(20), PortId::CLIENT, 100),
        offer(ms(205), PortId::CLIENT, 100),
    ];
    let trace = play(&changing(link("200 ms"), ms(15), link("10 ms")), &script);
    assert_eq!(trace.times(PortId::SERVER), [210_000_000, 210_000_000, 215_000_000]);
}

fn queued(queue: QueueConfig) -> LinkConfig {
    LinkConfig { queue, ..rate("8 kbit/s") }
}

fn tail_drop(limit: &str) -> QueueConfig {
    QueueConfig::TailDrop(TailDropConfig { limit: read(limit) })
}

fn head_drop(limit: &str) -> QueueConfig {
    QueueConfig::HeadDrop(HeadDropConfig { limit: read(limit) })
}

fn drops(trace: &Trace) -> Vec<(Time, u64, Cause)> {
    trace.of_kind(EventKind::Dropped).iter().map(|event| (event.at, event.pdu, event.cause)).collect()
}

/// The limit in time comes when the third packet has waited longer than it: it goes at once, not in
/// the past. The same if the kind of the queue changes with it.
#[test]
fn a_new_age_limit_applies_from_its_beginning() {
    for queue in [tail_drop("40 ms"), head_drop("40 ms")] {
        let trace = play(&changing(queued(tail_drop("unlimited")), ms(150), queued(queue)), &burst(4));
        assert_eq!(drops(&trace), [(ms(150), 3, Cause::QueueAge), (ms(150), 4, Cause::QueueAge)]);
        assert_eq!(trace.times(PortId::SERVER), [100_000_000, 200_000_000]);
    }
}

/// Packets keep their age and their places when the kind of the queue changes, and a smaller limit
/// concerns only those that come later.
#[test]
fn a_change_of_the_queue_keeps_what_is_queued() {
    for then in [tail_drop("2 packets, 250 ms"), head_drop("2 packets, 250 ms")] {
        let mut script = burst(6);
        script.push(offer(ms(60), PortId::CLIENT, 100));
        let trace = play(&changing(queued(tail_drop("unlimited")), ms(50), queued(then.clone())), &script);
        // At 60 ms five packets are queued, and the limit is two.
        let dropped = drops(&trace);
        if matches!(then, QueueConfig::TailDrop(_)) {
            let aged = [4, 5, 6].map(|id| (ms(250), id, Cause::QueueAge));
            assert_eq!(dropped[0], (ms(60), 7, Cause::QueuePackets));
            assert_eq!(dropped[1..], aged);
            assert_eq!(trace.ids(PortId::SERVER), [1, 2, 3]);
        } else {
            assert_eq!(dropped, [2, 3, 4, 5].map(|id| (ms(60), id, Cause::QueuePackets)));
            assert_eq!(trace.ids(PortId::SERVER), [1, 6, 7]);
        }
        let enqueued = trace.of_kind(EventKind::Enqueued).len();
        assert!(enqueued <= 7, "a change of the queue is no arrival: {enqueued}");
    }
}

/// A queue of no packets at all, which no scenario can describe but a program can.
#[test]
fn a_queue_without_room_drops_everything() {
    let limit = airpath_core::QueueLimit { packets: Some(0), bytes: None, age: None };
    for queue in [QueueConfig::TailDrop(TailDropConfig { limit }), QueueConfig::HeadDrop(HeadDropConfig { limit })] {
        let config = one_hop("radio", queued(queue), LinkConfig::default());
        let trace = play(&config, &burst(3));
        assert_eq!(drops(&trace).len(), 3);
    }
}

/// A larger send buffer takes from the queue at once; a smaller one keeps what it has.
#[test]
fn the_send_buffer_changes_at_once() {
    let link = |limit: &str| LinkConfig { send_buffer: read(limit), queue: tail_drop("3 packets"), ..rate("8 kbit/s") };
    let mut script = burst(4);
    script.push(offer(ms(50), PortId::CLIENT, 100));
    let trace = play(&changing(link("1 packet"), ms(50), link("2 packets")), &script);
    assert_eq!(trace.ids(PortId::SERVER), [1, 2, 3, 4, 5]);
    let trace = play(&changing(link("2 packets"), ms(50), link("1 packet")), &script);
    assert_eq!(trace.ids(PortId::SERVER), [1, 2, 3, 4, 5]);
}

/// Frames that errors have delayed keep their time when there are no errors any more, and their turn.
#[test]
fn frames_that_wait_survive_a_change_of_errors_and_of_the_receive_buffer() {
    let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read("1") });
    let effect = |keep_order| EffectConfig {
        effect: Effect::Delay,
        delay: Some(span("100 ms").into()),
        keep_order,
        ..EffectConfig::default()
    };
    for (keep_order, expected) in [(true, [(100, 1), (100, 2)]), (false, [(20, 2), (100, 1)])] {
        let errors = ErrorsConfig { process: process.clone(), effect: effect(keep_order), ..ErrorsConfig::default() };
        let delayed = LinkConfig { errors, ..LinkConfig::default() };
        let clean = LinkConfig { receive_buffer: read("2 packets"), ..LinkConfig::default() };
        let script = vec![offer(ms(0), PortId::CLIENT, 100), offer(ms(20), PortId::CLIENT, 100)];
        let trace = play(&changing(delayed, ms(10), clean), &script);
        let left: Vec<(u64, u64)> =
            trace.times(PortId::SERVER).into_iter().map(|at| at / 1_000_000).zip(trace.ids(PortId::SERVER)).collect();
        assert_eq!(left, expected);
    }
}
