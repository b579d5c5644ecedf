// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! EGPRS over radio blocks of 1392 bits in 20 ms: coding schemes, repetition in other schemes, and what copies of a
//! block gain.

use airpath_core::{Direction, EventKind, Origin, PortId, Seed, Span, Time};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, Per};
use airpath_models::entity::egprs::{EgprsConfig, Mcs};
use airpath_models::entity::gprs::{FlowConfig, Mode};
use airpath_models::{Path, PathConfig, Problem, StateConfig};

use super::*;

const ALL: [Mcs; 9] =
    [Mcs::Mcs1, Mcs::Mcs2, Mcs::Mcs3, Mcs::Mcs4, Mcs::Mcs5, Mcs::Mcs6, Mcs::Mcs7, Mcs::Mcs8, Mcs::Mcs9];

fn with(coding: Mcs) -> EgprsConfig {
    EgprsConfig { coding, flow: FlowConfig::ideal(), ..EgprsConfig::default() }
}

fn over(config: EgprsConfig, slots: u64, errors: ErrorsConfig) -> HopConfig {
    let link = cell(EntityConfig::Egprs(config), 1392 * slots, errors);
    assert_eq!(link.problems(), []);
    hop(&link)
}

/// The hop with errors in the uplink alone.
fn uplink(config: EgprsConfig, errors: ErrorsConfig) -> HopConfig {
    let mut hop = over(config, 1, ErrorsConfig::default());
    hop.uplink.errors = errors;
    hop
}

fn play_hop(hop: HopConfig, states: Vec<StateConfig>, script: &Script, end: Time, seed: u64) -> Trace {
    let config = PathConfig { hops: vec![hop], states, ..PathConfig::default() };
    run_to(Path::new(&config, Seed(seed)), script, end)
}

fn sent(trace: &Trace) -> u64 {
    trace.counters.site(0, Direction::Uplink, Origin::User).kind(EventKind::FrameSent).count
}

fn lose_frames(positions: &str, effect: Effect, flips: u32) -> ErrorsConfig {
    let process =
        ErrorProcessConfig::Positions(PositionsConfig { positions: Some(read(positions)), file: None, repeat: None });
    let effect = EffectConfig { effect, flips, ..EffectConfig::default() };
    ErrorsConfig { process, per: Per::Frame, effect, ..ErrorsConfig::default() }
}

fn bits(probability: &str) -> ErrorsConfig {
    let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read(probability) });
    let effect = EffectConfig { effect: Effect::Corrupt, ..EffectConfig::default() };
    ErrorsConfig { process, per: Per::Bit, effect, ..ErrorsConfig::default() }
}

/// Octets of RLC data in a radio block: a packet that fills ten of them exactly needs no length indicator.
#[test]
fn coding_schemes_carry_their_octets() {
    for (coding, octets) in ALL.into_iter().zip([22, 28, 37, 44, 56, 74, 2 * 56, 2 * 68, 2 * 74]) {
        for mode in [Mode::Acknowledged, Mode::Unacknowledged] {
            let config = EgprsConfig { flow: FlowConfig { mode, ..FlowConfig::ideal() }, ..with(coding) };
            let script = vec![offer(ms(0), PortId::CLIENT, 10 * octets)];
            let trace = play_hop(over(config, 1, ErrorsConfig::default()), vec![], &script, ms(5_000), 1);
            assert_eq!(trace.times(PortId::SERVER), [(220 + 10 * 20 + 90) * 1_000_000], "{coding:?}");
            assert_eq!(trace.held, 0);
            if mode == Mode::Unacknowledged {
                assert_eq!(sent(&trace), 10);
            }
        }
    }
}

/// 148 octets are two blocks of MCS-6, from 220 to 260. The first is lost. The last one has come at 350; it is
/// acknowledged from 360 to 380, there at 470. Until then the mobile repeats both by turns, and here in MCS-3, which
/// halves them: at 260 and 280 the two halves of the first block, which is whole at 300 and there at 390.
#[test]
fn a_block_is_repeated_in_two_halves() {
    let script = vec![offer(ms(0), PortId::CLIENT, 148)];
    let halves = EgprsConfig { repetition: Some(Mcs::Mcs3), ..with(Mcs::Mcs6) };
    let arrives = |config: &EgprsConfig, positions: &str| {
        let hop = uplink(config.clone(), lose_frames(positions, Effect::Drop, 1));
        play_hop(hop, vec![], &script, ms(5_000), 1).times(PortId::SERVER)[0] / 1_000_000
    };
    assert_eq!(arrives(&halves, "0"), 390);
    // Whole in one radio block, where it may not be halved, or MCS-6 is commanded.
    assert_eq!(arrives(&EgprsConfig { resegments: false, ..halves.clone() }, "0"), 370);
    assert_eq!(arrives(&with(Mcs::Mcs6), "0"), 370);
    // The second half is lost as well, at 280: the second block's halves go at 300 and 320, the first's at 340 and 360.
    // It needs the second one only.
    assert_eq!(arrives(&halves, "0, 3"), 360 + 20 + 90);
    // The first half is lost: it comes again at 340.
    assert_eq!(arrives(&halves, "0, 2"), 340 + 20 + 90);
}

/// Two blocks of MCS-9 share a radio block; each goes alone in MCS-6, which MCS-8 fills up.
#[test]
fn blocks_of_a_radio_block_are_repeated_one_by_one() {
    for (coding, octets) in [(Mcs::Mcs9, 148), (Mcs::Mcs8, 136), (Mcs::Mcs7, 112)] {
        let script = vec![offer(ms(0), PortId::CLIENT, octets)];
        let lower = if coding == Mcs::Mcs7 { Mcs::Mcs5 } else { Mcs::Mcs6 };
        let config = EgprsConfig { repetition: Some(lower), ..with(coding) };
        let hop = uplink(config, lose_frames("0", Effect::Drop, 1));
        let trace = play_hop(hop, vec![], &script, ms(5_000), 1);
        // At 240 and 260.
        assert_eq!(trace.times(PortId::SERVER), [370_000_000], "{coding:?}");
        // Both again in one radio block.
        let hop = uplink(with(coding), lose_frames("0", Effect::Drop, 1));
        let trace = play_hop(hop, vec![], &script, ms(5_000), 1);
        assert_eq!(trace.times(PortId::SERVER), [350_000_000], "{coding:?}");
    }
}

#[test]
fn nothing_is_lost_and_order_is_kept_under_errors() {
    let script: Script = (0..60).map(|step| offer(ms(step * 100), PortId::CLIENT, 40 + step as u32 * 20)).collect();
    let choices = [(Mcs::Mcs9, Some(Mcs::Mcs3)), (Mcs::Mcs8, Some(Mcs::Mcs1)), (Mcs::Mcs7, None), (Mcs::Mcs4, None)];
    for (probability, seed) in [("0.05", 1), ("0.4", 2)] {
        for (coding, repetition) in choices {
            let flow = FlowConfig { acknowledge_every: 9, ..FlowConfig::ideal() };
            let config = EgprsConfig { repetition, flow, ..with(coding) };
            let errors = ErrorsConfig { per: Per::Frame, block: None, ..losses(probability) };
            // The schemes change in the middle, which cuts blocks otherwise and repeats others otherwise.
            let later = EgprsConfig { coding: Mcs::Mcs6, repetition: Some(Mcs::Mcs9), ..config.clone() };
            let later = over(later, 2, errors.clone());
            let beginning = over(config, 2, errors);
            assert_eq!(later.kind_problems(&beginning), []);
            let state =
                StateConfig { name: "other".into(), at: Some(ms(3_000)), hops: vec![later], stay: Default::default() };
            let trace = play_hop(beginning, vec![state], &script, ms(200_000), seed);
            assert_eq!(trace.ids(PortId::SERVER), (1..=60).collect::<Vec<_>>(), "{coding:?} {probability}");
            assert_eq!((trace.of_kind(EventKind::Dropped).len(), trace.held), (0, 0));
        }
    }
}

/// Blocks of MCS-9 have 612 bits in 612: a copy with a share e of errors brings 612 (1 - h(e)). With 4 % of errors that
/// is 463, so that two copies decode a block and one never does. Without incremental redundancy no copy ever does, but
/// for one without errors.
#[test]
fn copies_of_a_block_add_up_as_the_equation_says() {
    let h = |e: f64| -e * e.log2() - (1.0 - e) * (1.0 - e).log2();
    assert!(1.0 - h(0.04) < 1.0 && 2.0 * (1.0 - h(0.04)) > 1.0);
    let seconds = 60;
    let script: Script = (0..1_500).map(|_| offer(ms(0), PortId::CLIENT, 295)).collect();
    let run = |probability: &str, redundancy| {
        let config = EgprsConfig { incremental_redundancy: redundancy, window: 192, ..with(Mcs::Mcs9) };
        let trace = play_hop(uplink(config, bits(probability)), vec![], &script, ms(seconds * 1_000), 7);
        // 295 octets and a length indicator are four blocks.
        trace.departures.len() as f64 * 4.0
    };
    let most = (seconds as f64 * 50.0 - 11.0) * 2.0;
    // Each block goes twice; what is under way at the end is a window.
    let got = run("0.04", true);
    assert!(got <= most / 2.0 && got > most / 2.0 - 192.0, "{got} of {most}");
    assert_eq!(run("0.04", false), 0.0);
    // Three copies: h(0.13) = 0.557.
    let (e, copies) = (0.13, 3.0);
    assert!((copies - 1.0) * (1.0 - h(e)) < 0.95 && copies * (1.0 - h(e)) > 1.25);
    let got = run("0.13", true);
    assert!(got <= most / 3.0 * 1.01 && got > most / 3.0 * 0.97 - 192.0, "{got} of {most}");
}

/// A repetition in halves has another code, and adds up with other copies of the same half only.
#[test]
fn a_header_that_is_not_understood_adds_nothing() {
    // Flips of half of all bits bring nothing: the block arrives with the next copy and not before.
    let script = vec![offer(ms(0), PortId::CLIENT, 50)];
    let hop = uplink(with(Mcs::Mcs5), lose_frames("0", Effect::Corrupt, 696));
    let trace = play_hop(hop, vec![], &script, ms(5_000), 1);
    assert_eq!(trace.times(PortId::SERVER), [350_000_000]);
    // MCS-5 decodes at 5 % of errors at once, MCS-4 does not.
    for (coding, arrives) in [(Mcs::Mcs5, 330), (Mcs::Mcs4, 370)] {
        let hop = uplink(with(coding), lose_frames("0", Effect::Corrupt, 70));
        let trace = play_hop(hop, vec![], &script, ms(5_000), 1);
        assert!(trace.times(PortId::SERVER)[0] >= arrives * 1_000_000, "{coding:?}");
        assert_eq!(coding == Mcs::Mcs5, trace.times(PortId::SERVER) == [330_000_000]);
    }
}

#[test]
fn bad_parameters_are_named() {
    let problems = |window, slots: u64| {
        let config = EgprsConfig { window, ..with(Mcs::Mcs6) };
        let link = cell(EntityConfig::Egprs(config), 1392 * slots, ErrorsConfig::default());
        link.problems().into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<Vec<_>>()
    };
    for (slots, most) in [(1, 192), (2, 256), (3, 384), (4, 512), (8, 1024)] {
        assert_eq!(problems(most, slots), [""; 0]);
    }
    assert_eq!(problems(224, 1), ["entity.window: is 224; with 1 timeslot it is 192 at most"]);
    assert_eq!(problems(64, 9).len(), 1);
    assert_eq!(problems(512, 3), ["entity.window: is 512; with 3 timeslots it is 384 at most"]);
    assert_eq!(problems(0, 1), ["entity.window: is 0; it is from 64 to 1024, in steps of 32"]);
    assert_eq!(problems(100, 1), ["entity.window: is 100; it is from 64 to 1024, in steps of 32"]);
    let halves = EgprsConfig { resegments: false, ..with(Mcs::Mcs9) };
    let changed = over(halves, 1, losses("0.1")).kind_problems(&over(with(Mcs::Mcs6), 1, losses("0.1")));
    let message = "is another than at the beginning; with this entity no state can change it, only `entity.coding` and \
                   `entity.repetition`";
    assert_eq!(changed, [Problem::new("entity.resegments", message)]);
    assert_eq!(EgprsConfig::default().flow.t3182, Span::from_secs(5));
}
