// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RLP over blocks of 240 bits in 20 ms: by hand, under errors, in its failure cases, and its goodput.

use airpath_core::{Cause, Direction, EventKind, Origin, PortId, Seed, Span, Time};
use airpath_models::channel::ErrorsConfig;
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, Per};
use airpath_models::entity::EntityConfig;
use airpath_models::entity::rlp::{Opener, RlpConfig};
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig, Problem, StateConfig};

use super::*;

const MINUTE: Time = Time::from_nanos(60_000_000_000);

fn config() -> RlpConfig {
    RlpConfig { negotiates: false, ..RlpConfig::default() }
}

fn path(hop: HopConfig, states: Vec<StateConfig>, seed: u64) -> Path {
    Path::new(&PathConfig { hops: vec![hop], states, ..PathConfig::default() }, Seed(seed))
}

fn over(config: RlpConfig, errors: ErrorsConfig) -> HopConfig {
    hop(&radio(EntityConfig::Rlp(config), errors))
}

fn play(config: RlpConfig, errors: ErrorsConfig, script: &Script, end: Time, seed: u64) -> Trace {
    run_to(path(over(config, errors), vec![], seed), script, end)
}

/// A state that begins at `at` milliseconds and stays.
fn state(name: &str, at: u64, hop: HopConfig) -> StateConfig {
    StateConfig { name: name.into(), at: Some(ms(at)), hops: vec![hop], stay: Default::default() }
}

fn sent(trace: &Trace, direction: Direction, origin: Origin) -> u64 {
    trace.counters.site(0, direction, origin).kind(EventKind::FrameSent).count
}

/// SABM 20–40, there at 130; UA 140–160, there at 250; 507 octets in 22 frames from 260 on, the last one ends at
/// 700.
#[test]
fn one_packet_by_hand() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let trace = play(config(), ErrorsConfig::default(), &script, MINUTE, 1);
    assert_eq!(trace.times(PortId::SERVER), [790_000_000]);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 22);
    // Fifty blocks a second in each direction; the block that begins at 60 s is on the air.
    assert_eq!(sent(&trace, Direction::Downlink, Origin::Control), 2_999);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::Control), 2_999 - 22);
}

/// XID 20–40, there at 130; its answer 140–160, there at 250; SABM 260–280, there at 370; UA 380–400, there at 490;
/// information from 500 on.
#[test]
fn negotiation_takes_a_round_trip() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let trace = play(RlpConfig::default(), ErrorsConfig::default(), &script, ms(2_000), 1);
    assert_eq!(trace.times(PortId::SERVER), [1_030_000_000]);
}

/// The commands of both ends meet at 130. The mobile repeats its XID T1 later, in the block at 620. The fixed end
/// answers at 740 and sends SABM at 760, which is there at 870; UA at 880, information at 900.
#[test]
fn negotiations_that_meet_are_ignored_and_the_mobile_begins_again() {
    let script = vec![offer(ms(0), PortId::CLIENT, 17)];
    let both = RlpConfig { opens: Opener::Both, ..RlpConfig::default() };
    let trace = play(both, ErrorsConfig::default(), &script, ms(3_000), 1);
    assert_eq!(trace.times(PortId::SERVER), [1_010_000_000]);
}

/// A user that takes a frame of 24 octets in 40 ms. Frames arrive from 370 on, every 20 ms; at 510 five are there, and
/// the end is busy. It says so in the block at 520, there at 630: the last information before goes at 620, and 19 frames
/// have gone. The user has taken 17 of them at 410 + 16 * 40; RR goes at 1060 and is there at 1170. The last three frames
/// go from 1180 on: they arrive at 1290, 1310 and 1330, are taken at 1330, 1370, and 3 octets 5 ms later.
#[test]
fn a_busy_end_says_so_and_goes_on() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let slow = RlpConfig { receive_rate: read("4800 bit/s"), receive_buffer: Some(read("96 B")), ..config() };
    let trace = play(slow.clone(), ErrorsConfig::default(), &script, MINUTE, 1);
    assert_eq!(trace.times(PortId::SERVER), [1_375_000_000]);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 22);
    assert_eq!((trace.of_kind(EventKind::LinkReset).len(), trace.held), (0, 0));
    // RNR and RR are sent once each where nothing else is said; the user takes as long.
    let quiet = RlpConfig { discontinuous: true, ..slow.clone() };
    assert_eq!(play(quiet, ErrorsConfig::default(), &script, MINUTE, 1).times(PortId::SERVER), [1_375_000_000]);
    // An end that is always ready has everything at 790; 507 octets take 845 ms from 370 on.
    let patient = RlpConfig { receive_buffer: None, ..slow };
    let trace = play(patient, ErrorsConfig::default(), &script, MINUTE, 1);
    assert_eq!(trace.times(PortId::SERVER), [1_215_000_000]);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 22);
}

/// Without transmission where there is nothing to say, the RR that ends a wait may be lost; the other end asks.
#[test]
fn a_lost_rr_does_not_stop_a_connection() {
    let script: Script = (0..40).map(|step| offer(ms(step * 20), PortId::CLIENT, 200)).collect();
    for (probability, seed) in [("0.1", 1), ("0.3", 2), ("0.3", 3)] {
        let user = RlpConfig { receive_rate: read("4800 bit/s"), receive_buffer: Some(read("150 B")), ..config() };
        let quiet = RlpConfig { discontinuous: true, n2: 200, ..user };
        let trace = play(quiet, losses(probability), &script, Time::from_nanos(300_000_000_000), seed);
        assert_eq!(trace.ids(PortId::SERVER), (1..=40).collect::<Vec<_>>());
        assert_eq!((trace.of_kind(EventKind::Dropped).len(), trace.held), (0, 0));
    }
}

/// Acknowledged information waits for the user of the other end, and arrives although the connection begins anew meanwhile.
#[test]
fn a_reset_takes_nothing_from_the_user() {
    let slow = RlpConfig { receive_rate: read("2400 bit/s"), ..config() };
    let states = vec![
        state("bad", 900, over(slow.clone(), losses("1"))),
        state("good", 12_000, over(slow.clone(), ErrorsConfig::default())),
    ];
    let script: Script = (0..60).map(|step| offer(ms(step * 100), PortId::CLIENT, 100)).collect();
    let trace = run_to(path(over(slow, ErrorsConfig::default()), states, 1), &script, MINUTE);
    let drops = trace.of_kind(EventKind::Dropped);
    assert!(drops.iter().all(|drop| drop.cause == Cause::LinkReset), "{drops:?}");
    assert_eq!((trace.departures.len() + drops.len(), trace.held), (60, 0));
    let late = trace.departures.iter().filter(|departure| (ms(1_000)..ms(12_000)).contains(&departure.at)).count();
    assert!(late > 0, "nothing was taken during the outage");
}

/// Packets of 3 octets are 10 in the stream: frames hold two of them and a part of the third.
#[test]
fn packets_share_frames() {
    let script: Script = (0..5).map(|_| offer(ms(0), PortId::CLIENT, 3)).collect();
    let trace = play(config(), ErrorsConfig::default(), &script, ms(2_000), 1);
    assert_eq!(trace.times(PortId::SERVER), [370, 370, 390, 390, 410].map(|at: u64| at * 1_000_000));
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 3);
}

/// Frames without packets are not transmitted, once the connection is there: what is left is the answer.
#[test]
fn discontinuous_transmission_sends_what_says_something() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let quiet = RlpConfig { discontinuous: true, ..config() };
    let trace = play(quiet, ErrorsConfig::default(), &script, MINUTE, 1);
    assert_eq!(trace.times(PortId::SERVER), [790_000_000]);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::Control), 1);
    // UA, and an acknowledgement in each block from the first frame's arrival to the last one's.
    assert_eq!(sent(&trace, Direction::Downlink, Origin::Control), 1 + 22);
}

#[test]
fn nothing_is_lost_and_order_is_kept_under_errors() {
    let script: Script = (0..60).map(|step| offer(ms(step * 300), PortId::CLIENT, 40 + step as u32 * 5)).collect();
    for (probability, seed) in [("0.02", 1), ("0.1", 2), ("0.3", 3)] {
        for discontinuous in [false, true] {
            let config = RlpConfig { n2: 200, discontinuous, ..config() };
            let trace = play(config, losses(probability), &script, Time::from_nanos(200_000_000_000), seed);
            assert_eq!(trace.ids(PortId::SERVER), (1..=60).collect::<Vec<_>>(), "{probability}");
            let count = |kind| trace.of_kind(kind).len();
            assert!(count(EventKind::FrameRepeated) > 3 && count(EventKind::Dropped) == 0);
        }
    }
}

/// The frame check sequence covers every bit of every frame, those without packets too.
#[test]
fn errors_damage_control_frames_too_and_cost_frames_only() {
    let effect = EffectConfig { effect: Effect::Corrupt, ..EffectConfig::default() };
    let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read("0.002") });
    let errors = ErrorsConfig { process, per: Per::Bit, effect, ..ErrorsConfig::default() };
    let script: Script = (0..20).map(|step| offer(ms(step * 500), PortId::CLIENT, 100)).collect();
    let trace = play(RlpConfig { n2: 200, ..config() }, errors, &script, MINUTE, 4);
    assert_eq!(trace.ids(PortId::SERVER), (1..=20).collect::<Vec<_>>());
    assert!(trace.departures.iter().all(|departure| departure.flips.is_empty()));
    let lost = |origin| trace.counters.site(0, Direction::Uplink, origin).kind(EventKind::FrameLost).count;
    // A frame of 240 bits is hit with probability 1 - 0.998^240 = 0.381.
    assert!(lost(Origin::Control) > 800 && lost(Origin::User) > 20, "{} {}", lost(Origin::Control), lost(Origin::User));
}

/// XID is sent at 20 ms and six times again, then DISC as often. T1 expires as a block begins that nobody has asked
/// for, so that the next one is used: 500 ms for each, and at 7020 ms the end gives up.
#[test]
fn an_end_that_nobody_answers_gives_up_after_its_attempts() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500), offer(ms(8_000), PortId::CLIENT, 500)];
    let quiet = RlpConfig { discontinuous: true, reconnect: None, ..RlpConfig::default() };
    let trace = play(quiet, losses("1"), &script, MINUTE, 1);
    let dropped: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.at, drop.cause)).collect();
    assert_eq!(dropped, [(ms(7_020), Cause::LinkDown), (ms(8_000), Cause::LinkDown)]);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::Control), 14);
    assert_eq!(trace.held, 0);
}

/// A link that is down for ten seconds is reset and given up, and opened again; what was under way is dropped with
/// a cause, and what waited arrives.
#[test]
fn a_connection_comes_back_after_an_outage() {
    let states = vec![
        state("bad", 2_000, over(config(), losses("1"))),
        state("good", 12_000, over(config(), ErrorsConfig::default())),
    ];
    let script: Script = (0..200).map(|step| offer(ms(step * 100), PortId::CLIENT, 100)).collect();
    let trace = run_to(path(over(config(), ErrorsConfig::default()), states, 1), &script, MINUTE);
    let drops = trace.of_kind(EventKind::Dropped);
    assert!(!drops.is_empty() && drops.iter().all(|drop| drop.cause == Cause::LinkReset), "{drops:?}");
    assert!(drops.len() < 60, "{}", drops.len());
    assert_eq!(trace.departures.len() + drops.len(), 200);
    assert_eq!(trace.held, 0);
}

/// A fade that outlasts all attempts: the end that sends is disconnected, the other one has nothing to send and notices
/// nothing. The connection comes back all the same, whichever end opened it.
#[test]
fn a_connection_comes_back_though_one_end_noticed_nothing() {
    for opens in [Opener::Client, Opener::Server, Opener::Both] {
        for negotiates in [true, false] {
            for port in [PortId::CLIENT, PortId::SERVER] {
                let config = RlpConfig { opens, negotiates, ..RlpConfig::default() };
                let states = vec![
                    state("bad", 5_000, over(config.clone(), losses("1"))),
                    state("good", 25_000, over(config.clone(), ErrorsConfig::default())),
                ];
                let script: Script = (0..120).map(|step| offer(ms(step * 500), port, 100)).collect();
                let trace = run_to(path(over(config, ErrorsConfig::default()), states, 1), &script, ms(120_000));
                let late = trace.departures.iter().filter(|departure| departure.at > ms(40_000)).count();
                assert!(late > 30, "{opens:?} {negotiates} {port:?}: {late} packets after the fade");
                assert_eq!(trace.held, 0);
            }
        }
    }
}

/// Ends that differ, both opening, and a channel that loses half of all blocks at first: they agree in the end.
#[test]
fn ends_that_differ_agree_whatever_is_lost() {
    let end = |version, window| RlpConfig { version, window, opens: Opener::Both, ..RlpConfig::default() };
    for seed in 0..60 {
        let hop = |errors: ErrorsConfig| {
            let uplink = radio(EntityConfig::Rlp(end(2, 300)), errors.clone());
            HopConfig::new("radio", uplink, radio(EntityConfig::Rlp(end(1, 61)), errors))
        };
        assert_eq!(hop(losses("0.5")).kind_problems(&hop(losses("0.5"))), []);
        let good = state("good", 6_000, hop(ErrorsConfig::default()));
        let script: Script = (0..60).map(|step| offer(ms(step * 500), PortId::SERVER, 100)).collect();
        let trace = run_to(path(hop(losses("0.5")), vec![good], seed), &script, ms(60_000));
        assert!(trace.departures.len() > 40, "seed {seed}: {} packets", trace.departures.len());
        assert_eq!(trace.held, 0, "seed {seed}");
    }
}

/// Selective reject repeats just the frames that were lost: of the blocks of a link that always has something to
/// send, a share of 1 - p carries new octets. At each rate the count lies in its 99 % interval.
#[test]
fn goodput_is_what_errors_leave() {
    let seconds = 300;
    let script: Script = (0..1_500).map(|_| offer(ms(0), PortId::CLIENT, 257)).collect();
    for (probability, seed) in [("0.005", 11), ("0.01", 12), ("0.02", 13), ("0.05", 14), ("0.1", 15)] {
        let p: f64 = probability.parse().unwrap();
        let mut hop = over(config(), losses(probability));
        // Acknowledgements arrive: their loss is another matter.
        hop.downlink.errors = ErrorsConfig::default();
        let trace = run_to(path(hop, vec![], seed), &script, Time::from_nanos(seconds * 1_000_000_000));
        // From the first block with information, at 260 ms.
        let blocks = (seconds * 50 - 13) as f64;
        let repeated = trace.of_kind(EventKind::FrameRepeated).len() as f64;
        let new = sent(&trace, Direction::Uplink, Origin::User) as f64 - repeated;
        let deviation = (blocks * p * (1.0 - p)).sqrt();
        assert!((new - blocks * (1.0 - p)).abs() < 2.576 * deviation, "{p}: {new} of {blocks}, {repeated} repeated");
        let delivered = trace.departures.len() as f64 * 264.0 / 24.0;
        assert!(new - delivered < 80.0, "{p}: {new} sent, {delivered} delivered");
    }
}

#[test]
fn bad_parameters_are_named() {
    let problems = |config: RlpConfig| {
        let link: LinkConfig = radio(EntityConfig::Rlp(config), ErrorsConfig::default());
        link.problems().into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<Vec<_>>()
    };
    assert_eq!(problems(config()), [""; 0]);
    let window = |version, window| problems(RlpConfig { version, window, ..config() });
    assert_eq!(window(1, 0), ["entity.window: is 0; in version 1 it is from 1 to 61"]);
    assert_eq!(window(1, 62), ["entity.window: is 62; in version 1 it is from 1 to 61"]);
    assert_eq!(window(2, 481), ["entity.window: is 481; in version 2 it is from 1 to 480"]);
    assert_eq!(window(3, 1), ["entity.version: is 3; RLP has the versions 0, 1 and 2"]);
    let timer = problems(RlpConfig { t1: Span::from_millis(485), ..config() });
    assert_eq!(timer, ["entity.t1: is 485 ms; it is a multiple of 10 ms, from 10 ms to 2550 ms"]);
    let unlimited = LinkConfig { rate: read_rate("unlimited"), ..radio(EntityConfig::Rlp(config()), losses("0.1")) };
    assert_eq!(unlimited.problems()[0].key, "rate");
    // There is always a frame to send, so that such a slot never ended.
    let slots = |bits| cell(EntityConfig::Rlp(config()), bits, losses("0.1")).problems();
    assert_eq!(slots(240_239).iter().filter(|problem| problem.key == "rate.bits").count(), 0);
    let message = "is 240240 bit; a frame of this entity has 240 bits, and a slot holds 1000 at most: write for example \
                   bits = \"240 bit\"";
    assert!(slots(240_240).contains(&Problem::new("rate.bits", message)));
    let mut packets = radio(EntityConfig::Rlp(config()), losses("0.1"));
    packets.errors.per = Per::Packet;
    packets.errors.block = None;
    assert_eq!(packets.problems()[0].key, "errors.per");
    let never = problems(RlpConfig { receive_buffer: Some(read("100 B")), ..config() });
    assert!(never[0].starts_with("entity.receive_buffer: never fills, because the user takes everything at once"));
    let other = over(RlpConfig { window: 30, ..config() }, ErrorsConfig::default());
    let mixed = |uplink: RlpConfig, downlink: RlpConfig| {
        let link = |config| radio(EntityConfig::Rlp(config), ErrorsConfig::default());
        let hop = HopConfig::new("radio", link(uplink), link(downlink));
        hop.kind_problems(&hop).into_iter().map(|problem| problem.key).collect::<Vec<_>>()
    };
    assert_eq!(mixed(config(), RlpConfig { opens: Opener::Server, ..config() }), ["entity.opens"]);
    assert_eq!(mixed(config(), RlpConfig { window: 30, ..config() }), ["entity.version"]);
    let changed = other.kind_problems(&over(config(), ErrorsConfig::default()));
    let message = "is another than at the beginning; with this entity no state can change it";
    assert_eq!(changed, [Problem::new("entity.window", message)]);
}

fn read_rate(text: &str) -> airpath_models::medium::RateConfig {
    airpath_models::medium::RateConfig::Constant(read(text))
}
