// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! GPRS over radio blocks of 456 bits in 20 ms: by hand, under errors, in its failure cases, and its goodput.

use airpath_core::{Cause, Direction, EventKind, Origin, PortId, Seed, Span, Time};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, Per};
use airpath_models::entity::gprs::{CodingScheme, FlowConfig, GprsConfig, Mode};
use airpath_models::{LinkConfig, Path, PathConfig, Problem, StateConfig};

use super::*;

/// Flows that are set up and released by time alone.
fn config() -> GprsConfig {
    with(flow())
}

fn flow() -> FlowConfig {
    FlowConfig::ideal()
}

fn with(flow: FlowConfig) -> GprsConfig {
    GprsConfig { flow, ..GprsConfig::default() }
}

fn unacknowledged() -> GprsConfig {
    with(FlowConfig { mode: Mode::Unacknowledged, ..flow() })
}

fn over(config: GprsConfig, slots: u64, errors: ErrorsConfig) -> HopConfig {
    let link = cell(EntityConfig::Gprs(config), 456 * slots, errors);
    assert_eq!(link.problems(), []);
    hop(&link)
}

fn play_hop(hop: HopConfig, states: Vec<StateConfig>, script: &Script, end: Time, seed: u64) -> Trace {
    let config = PathConfig { hops: vec![hop], states, ..PathConfig::default() };
    run_to(Path::new(&config, Seed(seed)), script, end)
}

fn play(config: GprsConfig, slots: u64, errors: ErrorsConfig, script: &Script, end: u64, seed: u64) -> Trace {
    play_hop(over(config, slots, errors), vec![], script, ms(end), seed)
}

fn sent(trace: &Trace, direction: Direction, origin: Origin) -> u64 {
    trace.counters.site(0, direction, origin).kind(EventKind::FrameSent).count
}

/// Blocks of a list are lost, counted over all of a direction.
fn lose_frames(positions: &str) -> ErrorsConfig {
    let process =
        ErrorProcessConfig::Positions(PositionsConfig { positions: Some(read(positions)), file: None, repeat: None });
    ErrorsConfig { process, per: Per::Frame, ..ErrorsConfig::default() }
}

/// The flow is there at 200 ms; 500 octets are 16 blocks of 30 and one of 20 with a length indicator, from 220 to
/// 560, there at 650. The network acknowledges from 660 to 680, there at 770. Until then the mobile repeats: blocks at
/// 560 to 760.
#[test]
fn one_packet_up_by_hand() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let trace = play(config(), 1, ErrorsConfig::default(), &script, 5_000, 1);
    assert_eq!(trace.times(PortId::SERVER), [650_000_000]);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::User), 17 + 11);
    assert_eq!(trace.of_kind(EventKind::FrameRepeated).len(), 11);
    assert_eq!(sent(&trace, Direction::Downlink, Origin::Control), 1);
    assert_eq!(trace.held, 0);
}

/// The last block is polled and there at 650; the mobile answers 40 ms later, in the block from 700 on (one that is
/// due as a block begins waits for the next), there at 810: blocks at 560 to 800 are repeated. The poll of the twentieth
/// block, from 600 to 620, is there at 710 and answered from 760 on.
#[test]
fn one_packet_down_by_hand() {
    let script = vec![offer(ms(0), PortId::SERVER, 500)];
    let trace = play(config(), 1, ErrorsConfig::default(), &script, 5_000, 1);
    assert_eq!(trace.times(PortId::CLIENT), [650_000_000]);
    assert_eq!(sent(&trace, Direction::Downlink, Origin::User), 17 + 13);
    assert_eq!(sent(&trace, Direction::Uplink, Origin::Control), 1);
    // Three timeslots: six rounds of 20 ms.
    let trace = play(config(), 3, ErrorsConfig::default(), &script, 5_000, 1);
    assert_eq!(trace.times(PortId::CLIENT), [220 + 6 * 20 + 90].map(|at: u64| at * 1_000_000));
}

/// Octets of RLC data in a block, by coding scheme: 3600 octets take 181, 121, 101 and 73 blocks, of which one is
/// needed for the length indicator.
#[test]
fn coding_schemes_carry_their_octets() {
    let script = vec![offer(ms(0), PortId::CLIENT, 3_600)];
    let schemes = [CodingScheme::Cs1, CodingScheme::Cs2, CodingScheme::Cs3, CodingScheme::Cs4];
    for (coding, octets) in schemes.into_iter().zip([20, 30, 36, 50]) {
        let config = GprsConfig { coding, ..unacknowledged() };
        let trace = play(config, 1, ErrorsConfig::default(), &script, 9_000, 1);
        // A packet that fills the last block of its flow needs no indicator.
        let blocks = 3_600u64.div_ceil(octets);
        assert_eq!(sent(&trace, Direction::Uplink, Origin::User), blocks, "{coding:?}");
        assert_eq!(trace.times(PortId::SERVER), [(220 + 20 * blocks + 90) * 1_000_000]);
    }
}

/// A packet that comes while a flow ends waits for the next one: the flow of the first ends at 770 when its
/// acknowledgement comes, and the next begins 200 ms later. A flow that stays takes the packet at once.
#[test]
fn a_flow_that_ends_takes_nothing_new() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500), offer(ms(600), PortId::CLIENT, 20)];
    let trace = play(config(), 1, ErrorsConfig::default(), &script, 5_000, 1);
    assert_eq!(trace.times(PortId::SERVER), [650, 980 + 20 + 90].map(|at: u64| at * 1_000_000));
    let stays = with(FlowConfig { release_delay: Span::from_millis(500), ..flow() });
    let trace = play(stays.clone(), 1, ErrorsConfig::default(), &script, 5_000, 1);
    assert_eq!(trace.times(PortId::SERVER), [650, 620 + 20 + 90].map(|at: u64| at * 1_000_000));
    // It is acknowledged at 770 and stays until 1270.
    for (at, arrives) in [(1_270, 1_280 + 20 + 90), (1_271, 1_480 + 20 + 90)] {
        let script = vec![offer(ms(0), PortId::CLIENT, 500), offer(ms(at), PortId::CLIENT, 20)];
        let trace = play(stays.clone(), 1, ErrorsConfig::default(), &script, 5_000, 1);
        assert_eq!(trace.times(PortId::SERVER)[1], arrives * 1_000_000, "{at}");
    }
}

/// With 15 blocks or fewer left, a packet is too late; without countdown it joins until the last block.
#[test]
fn the_countdown_lets_nothing_in() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500), offer(ms(500), PortId::CLIENT, 20)];
    let last = |bs_cv_max| {
        play(with(FlowConfig { bs_cv_max, ..flow() }), 1, ErrorsConfig::default(), &script, 5_000, 1)
            .times(PortId::SERVER)[1]
    };
    assert_eq!(last(15), (980 + 20 + 90) * 1_000_000);
    // 20 octets behind the first packet's 20 and a length indicator: 9 in that block, 11 in the next.
    assert_eq!(last(0), (560 + 20 + 90) * 1_000_000);
}

/// A window of 4 blocks is sent from 220 to 300 and full. The network hears of it at 390 and acknowledges three of
/// four times 20 ms later: what the first stalled block says is there at 390, the answer from 400 to 420 is there at
/// 510. New blocks from 520 on.
#[test]
fn a_full_window_waits_for_its_acknowledgement() {
    let script = vec![offer(ms(0), PortId::CLIENT, 239)];
    let config = GprsConfig { window: 4, ..config() };
    let trace = play(config, 1, ErrorsConfig::default(), &script, 5_000, 1);
    // Eight blocks: four, and four more from 520 to 600.
    assert_eq!(trace.times(PortId::SERVER), [690_000_000]);
    // Blocks at 300 to 500 repeat what is not acknowledged.
    let repeated = trace.of_kind(EventKind::FrameRepeated);
    assert_eq!(repeated.iter().filter(|event| event.at < ms(520)).count(), 11);
}

/// The second block is lost. The acknowledgement of the stream's end asks for it; it was repeated before, as the
/// mobile has nothing else to send: at 580, behind the repetition of the first.
#[test]
fn a_lost_block_is_sent_again() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    let mut hop = over(config(), 1, ErrorsConfig::default());
    hop.uplink.errors = lose_frames("1");
    let trace = play_hop(hop, vec![], &script, ms(5_000), 1);
    assert_eq!(trace.times(PortId::SERVER), [(580 + 20 + 90) * 1_000_000]);
    assert_eq!(trace.held, 0);
}

#[test]
fn nothing_is_lost_and_order_is_kept_under_errors() {
    let script: Script = (0..80)
        .map(|step| {
            let port = if step % 3 == 0 { PortId::SERVER } else { PortId::CLIENT };
            offer(ms(step * 200), port, 40 + step as u32 * 5)
        })
        .collect();
    let (up, down): (Vec<_>, Vec<_>) = (1..=80u64).partition(|id| (id - 1) % 3 != 0);
    for (probability, seed) in [("0.02", 1), ("0.1", 2), ("0.4", 3)] {
        for (slots, release) in [(1, 0), (4, 400)] {
            let config = with(FlowConfig { release_delay: Span::from_millis(release), ..flow() });
            let errors = ErrorsConfig { per: Per::Frame, block: None, ..losses(probability) };
            let trace = play(config, slots, errors, &script, 300_000, seed);
            assert_eq!(trace.ids(PortId::SERVER), up, "{probability}");
            assert_eq!(trace.ids(PortId::CLIENT), down, "{probability}");
            assert_eq!((trace.of_kind(EventKind::Dropped).len(), trace.held), (0, 0));
        }
    }
}

#[test]
fn without_acknowledgements_losses_are_told() {
    let script: Script = (0..400).map(|step| offer(ms(step * 50), PortId::CLIENT, 1 + step as u32 % 150)).collect();
    let trace = play(unacknowledged(), 1, losses("0.1"), &script, 200_000, 5);
    let ids = trace.ids(PortId::SERVER);
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    let drops = trace.of_kind(EventKind::Dropped);
    assert!(drops.len() > 20 && drops.iter().all(|drop| drop.cause == Cause::ChannelError), "{}", drops.len());
    assert_eq!((ids.len() + drops.len(), trace.held), (400, 0));
    assert!(trace.of_kind(EventKind::FrameRepeated).is_empty());
}

/// A link that is down for 12 s: flows are given up 5 s after the last block of the window, and what was under way is
/// dropped with a cause. What waited arrives.
#[test]
fn a_flow_that_nobody_acknowledges_is_given_up() {
    for port in [PortId::CLIENT, PortId::SERVER] {
        let state = |name: &str, at, errors| StateConfig {
            name: name.into(),
            at: Some(ms(at)),
            hops: vec![over(config(), 1, errors)],
            stay: Default::default(),
        };
        let states = vec![state("bad", 2_000, losses("1")), state("good", 14_000, ErrorsConfig::default())];
        let script: Script = (0..200).map(|step| offer(ms(step * 100), port, 100)).collect();
        let trace = play_hop(over(config(), 1, ErrorsConfig::default()), states, &script, ms(90_000), 1);
        let drops = trace.of_kind(EventKind::Dropped);
        assert!(!drops.is_empty() && drops.iter().all(|drop| drop.cause == Cause::LinkReset), "{drops:?}");
        assert!(trace.of_kind(EventKind::LinkReset).len() >= 2);
        assert_eq!((trace.departures.len() + drops.len(), trace.held), (200, 0));
        assert!(trace.departures.len() > 120, "{port:?}: {}", trace.departures.len());
    }
}

/// 17 blocks from 220 on: the last begins at 540, and T3182 runs from there to 5540, whether the flow stays or not, and
/// whether the blocks or the acknowledgements alone are lost. The window of 64 is not full.
#[test]
fn a_flow_that_waits_for_its_last_acknowledgement_is_given_up() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    for release in [0, 1_000, 60_000] {
        for (uplink, arrived) in [("1", vec![]), ("0", vec![650_000_000])] {
            let config = with(FlowConfig { release_delay: Span::from_millis(release), ..flow() });
            let mut hop = over(config, 1, losses("1"));
            hop.uplink.errors = losses(uplink);
            let trace = play_hop(hop, vec![], &script, ms(60_000), 1);
            assert_eq!(trace.times(PortId::SERVER), arrived);
            let resets: Vec<_> = trace.of_kind(EventKind::LinkReset).iter().map(|event| event.at).collect();
            assert_eq!(resets, [ms(5_540)], "{release} ms, losses of {uplink}");
            let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|event| event.cause).collect();
            assert_eq!(drops, vec![Cause::LinkReset; 1 - arrived.len()]);
            assert_eq!(trace.held, 0);
        }
    }
}

/// T3182 begins when no block is left to repeat: the acknowledgement of the stream's end asks for blocks 12 and
/// 14, which begin at 780 and 800. All blocks behind the first copies are lost. It runs from 800 to 5800.
#[test]
fn t3182_begins_behind_the_last_block_that_is_asked_for() {
    let script = vec![offer(ms(0), PortId::CLIENT, 500)];
    for release in [0, 1_000] {
        let config = with(FlowConfig { release_delay: Span::from_millis(release), ..flow() });
        let mut hop = over(config, 1, ErrorsConfig::default());
        hop.uplink.errors = lose_frames("12, 14, 17-999");
        let trace = play_hop(hop, vec![], &script, ms(60_000), 1);
        let resets: Vec<_> = trace.of_kind(EventKind::LinkReset).iter().map(|event| event.at).collect();
        assert_eq!(resets, [ms(5_800)], "{release} ms");
    }
}

/// A flow of more blocks than 16 bits count, in either direction: 450 packets of 3000 octets are 67,500 blocks of 20.
#[test]
fn a_flow_may_have_any_number_of_blocks() {
    for port in [PortId::CLIENT, PortId::SERVER] {
        for mode in [Mode::Acknowledged, Mode::Unacknowledged] {
            let config = GprsConfig { coding: CodingScheme::Cs1, ..with(FlowConfig { mode, ..flow() }) };
            let script: Script = (0..450).map(|_| offer(ms(0), port, 3_000)).collect();
            let trace = play(config, 8, ErrorsConfig::default(), &script, 1_000_000, 1);
            assert_eq!((trace.departures.len(), trace.held), (450, 0), "{port:?}, {mode:?}");
            assert!(trace.of_kind(EventKind::FrameStarted).len() > 1 << 16);
        }
    }
}

/// Errors that CS-1 to CS-3 correct by the equation: 456 (1 - h(e)) bits of information. CS-1 decodes 228 with 50 errors of
/// 456, and not with 51; CS-4 none.
#[test]
fn errors_in_bits_are_corrected_by_the_code() {
    let limit = |information: f64| {
        let h = |e: f64| if e == 0.0 { 0.0 } else { -e * e.log2() - (1.0 - e) * (1.0 - e).log2() };
        (0..228).filter(|flips| 456.0 * (1.0 - h(f64::from(*flips) / 456.0)) >= information).max().unwrap()
    };
    assert_eq!(limit(228.0), 50);
    let cases = [
        (CodingScheme::Cs1, limit(228.0)),
        (CodingScheme::Cs2, limit(294.0)),
        (CodingScheme::Cs3, limit(338.0)),
        (CodingScheme::Cs4, 0),
    ];
    let script = vec![offer(ms(0), PortId::CLIENT, 10)];
    for (coding, most) in cases {
        for (flips, arrives) in [(most.max(1), most > 0), (most + 1, false)] {
            let effect = EffectConfig { effect: Effect::Corrupt, flips, ..EffectConfig::default() };
            let errors = ErrorsConfig { effect, ..lose_frames("0") };
            let config = GprsConfig { coding, ..unacknowledged() };
            let trace = play(config, 1, errors, &script, 5_000, 1);
            assert_eq!(trace.departures.len(), usize::from(arrives), "{coding:?} with {flips} flips");
        }
    }
}

/// A state may change the coding scheme: 36 blocks of 30 octets, then blocks of 50.
#[test]
fn a_state_changes_the_coding_scheme() {
    let faster = GprsConfig { coding: CodingScheme::Cs4, ..unacknowledged() };
    let beginning = over(unacknowledged(), 1, ErrorsConfig::default());
    let later = over(faster, 1, ErrorsConfig::default());
    assert_eq!(later.kind_problems(&beginning), []);
    // From 220 on; 37 blocks have begun when the state comes at 941.
    let state = StateConfig { name: "fast".into(), at: Some(ms(941)), hops: vec![later], stay: Default::default() };
    let script = vec![offer(ms(0), PortId::CLIENT, 37 * 30 + 500)];
    let trace = play_hop(beginning, vec![state], &script, ms(5_000), 1);
    assert_eq!(trace.times(PortId::SERVER), [(220 + 47 * 20 + 90) * 1_000_000]);
}

/// Of the blocks of a link that always has something to send, a share of 1 - p carries new octets: a block that is
/// lost is repeated once for each time that it is lost. At each rate the count lies in its 99 % interval.
#[test]
fn goodput_is_what_errors_leave() {
    let seconds = 300;
    let script: Script = (0..1_700).map(|_| offer(ms(0), PortId::CLIENT, 299)).collect();
    for (probability, seed) in [("0.005", 21), ("0.01", 22), ("0.02", 23), ("0.05", 24), ("0.1", 25)] {
        let p: f64 = probability.parse().unwrap();
        // Acknowledgements come often, so that the window is never full.
        let mut hop = over(with(FlowConfig { acknowledge_every: 4, ..flow() }), 1, losses(probability));
        // Acknowledgements arrive: their loss is another matter.
        hop.downlink.errors = ErrorsConfig::default();
        let trace = play_hop(hop, vec![], &script, ms(seconds * 1_000), seed);
        // From the first block, at 220 ms.
        let blocks = (seconds * 50 - 11) as f64;
        let repeated = trace.of_kind(EventKind::FrameRepeated).len() as f64;
        let new = sent(&trace, Direction::Uplink, Origin::User) as f64 - repeated;
        let deviation = (blocks * p * (1.0 - p)).sqrt();
        assert!((new - blocks * (1.0 - p)).abs() < 2.576 * deviation, "{p}: {new} of {blocks}, {repeated} repeated");
        // 299 octets and a length indicator are ten blocks.
        let delivered = trace.departures.len() as f64 * 10.0;
        assert!(new - delivered < 80.0, "{p}: {new} sent, {delivered} delivered");
    }
}

#[test]
fn bad_parameters_are_named() {
    let problems = |config: GprsConfig, bits| {
        let link: LinkConfig = cell(EntityConfig::Gprs(config), bits, ErrorsConfig::default());
        link.problems().into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<Vec<_>>()
    };
    assert_eq!(problems(config(), 912), [""; 0]);
    let message = "rate.bits: is 500 bit; a radio block of this entity has 456 bits: write bits = \"456 bit\" for one \
                   timeslot, 912 bit for two, and so on";
    assert_eq!(problems(config(), 500), [message]);
    let window = |window| problems(GprsConfig { window, ..config() }, 456);
    assert_eq!(window(0), ["entity.window: is 0; it is from 1 to 64"]);
    assert_eq!(window(65), ["entity.window: is 65; it is from 1 to 64"]);
    let every = with(FlowConfig { acknowledge_every: 0, ..flow() });
    assert_eq!(problems(every, 456), ["entity.acknowledge_every: is 0; write for example 20"]);
    let rrbp = with(FlowConfig { rrbp: Span::from_millis(50), ..flow() });
    assert_eq!(problems(rrbp, 456), ["entity.rrbp: is 50 ms; it is 40 ms, 60 ms, 80 ms or 100 ms"]);
    let countdown = with(FlowConfig { bs_cv_max: 16, ..flow() });
    assert_eq!(problems(countdown, 456), ["entity.bs_cv_max: is 16; it is from 0 to 15"]);
    let timer = with(FlowConfig { t3182: Span::ZERO, ..flow() });
    assert!(problems(timer, 456)[0].starts_with("entity.t3182: is 0 s, less than a radio block of 20 ms"));
    let timer = |t3182| problems(with(FlowConfig { t3182, ..flow() }), 456).len();
    assert_eq!((timer(Span::from_nanos(1)), timer(Span::from_millis(19)), timer(Span::from_millis(20))), (1, 1, 0));
    assert_eq!(problems(config(), 8 * 456), [""; 0]);
    let message = "rate.bits: is 4104 bit in 20 ms, which takes 9 timeslots; a TDMA frame has 8: write 3648 bit in \
                   20 ms at most";
    assert_eq!(problems(config(), 9 * 456), [message]);
    let unlimited = LinkConfig { rate: read("unlimited"), ..cell(EntityConfig::Gprs(config()), 456, losses("0")) };
    assert!(unlimited.problems()[0].message.ends_with("{ type = \"slotted\", slot = \"20 ms\", bits = \"456 bit\" }"));
    let changed =
        over(GprsConfig { window: 30, ..config() }, 1, losses("0.1")).kind_problems(&over(config(), 1, losses("0.1")));
    let message = "is another than at the beginning; with this entity no state can change it, only `entity.coding`";
    assert_eq!(changed, [Problem::new("entity.window", message)]);
    let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read("0.1") });
    let packets = ErrorsConfig { process, ..ErrorsConfig::default() };
    let link = cell(EntityConfig::Gprs(config()), 456, packets);
    assert_eq!(link.problems()[0].key, "errors.per");
}
