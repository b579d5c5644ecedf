// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Adaptive OFDM: slots and shares by hand, errors against theory.

use airpath_core::{Direction, End, EventKind, Origin, PortId, Seed};
use airpath_models::adaptation::{Modes, ModesConfig};
use airpath_models::cell::{CellConfig, MediumOfCell, SharedMediumConfig, UserConfig, ofdm::OfdmConfig};
use airpath_models::medium::MediumChoice;
use airpath_models::{Cell, LinkConfig};
use serde_json::{Value, json};

use crate::common::*;

/// A cell of users with these radio channels in the downlink, each with a hop of its own in the uplink.
fn cell(medium: Value, channels: &[Value]) -> CellConfig {
    let config: OfdmConfig = serde_json::from_value(medium).unwrap();
    let users = channels.iter().enumerate().map(|(number, channel)| {
        let downlink = LinkConfig {
            medium: MediumChoice::Shared("cell".into()),
            fading: Some(Box::new(serde_json::from_value(channel.clone()).unwrap())),
            send_buffer: read("64 kB"),
            ..LinkConfig::default()
        };
        let path = one_hop("radio", LinkConfig::default(), downlink);
        UserConfig { name: format!("user{number}"), is_unnamed: false, path }
    });
    let media = vec![MediumOfCell { name: "cell".into(), config: SharedMediumConfig::Ofdm(config) }];
    CellConfig { media, users: users.collect() }
}

fn steady(decibels: f64) -> Value {
    json!({ "type": "constant", "snr": format!("{decibels} dB") })
}

fn to(user: u16, at: airpath_core::Time, len: u32) -> (airpath_core::Time, Action) {
    offer(at, PortId::of(user, End::Server), len)
}

/// 8 bits a symbol: 864 bits a frame, 108 bytes. Slots begin at 0, 666,666, 1,333,333 and 2,000,000 ns.
#[test]
fn a_packet_goes_in_the_next_slot_and_arrives_at_its_end() {
    let config = cell(json!({ "resources": 1, "adaptation": { "type": "fixed", "mode": "256-qam" } }), &[steady(60.0)]);
    let at = airpath_core::Time::from_nanos;
    let script = vec![to(0, at(0), 100), to(0, at(666_665), 100), to(0, at(1_333_333), 100), to(0, at(5_000_000), 108)];
    let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(100));
    // The first goes in slot 1, and the second, which was there before slot 2 began, in slot 2. The third came as slot
    // 2 began, and goes in slot 3; the last one came as slot 7 did (4,666,666) and goes in slot 8 (5,333,333).
    let left: Vec<u64> = trace.departures.iter().map(|departure| departure.at.nanos()).collect();
    assert_eq!(left, [1_333_333, 2_000_000, 2_666_666, 6_000_000]);
}

/// Six resources among three users with much to send: two frames each a slot, in turn.
#[test]
fn resources_of_a_slot_go_to_users_in_turn() {
    let medium = json!({ "resources": 6, "adaptation": { "type": "fixed", "mode": "256-qam" } });
    let config = cell(medium, &[steady(60.0), steady(60.0), steady(60.0)]);
    let script: Script = (0..60).map(|packet| to(packet % 3, ms(0), 108)).collect();
    let trace = run_to(Cell::new(&config, Seed(1)), &script, ms(100));
    for user in 0..3 {
        let times = trace.times(PortId::of(user, End::Client));
        let expected: Vec<u64> = (0..20u64).map(|packet| (packet / 2 + 2) * 2_000_000 / 3).collect();
        assert_eq!(times, expected, "user {user}");
    }
}

/// The limit of one resource for each station: it is its best one, and the others stay free.
#[test]
fn a_station_with_one_resource_gets_its_best_one() {
    let profile = json!({ "type": "profile", "profile": "tu12_at5_mhz", "speed": "75 km/h", "snr": "16 dB" });
    let delivered = |medium: Value| {
        let config = cell(medium, std::slice::from_ref(&profile));
        let script: Script = (0..3000).map(|packet| to(0, ms(packet / 2), 13)).collect();
        let trace = run_to(Cell::new(&config, Seed(3)), &script, ms(1500));
        let site = trace.counters.site(0, Direction::Downlink, Origin::User);
        assert_eq!(site.kind(EventKind::FrameSent).count, 2249, "one frame in each slot but the first");
        trace.departures.len()
    };
    let adaptation = json!({ "type": "fixed", "mode": "bpsk" });
    let best = delivered(json!({ "resources_per_station": 1, "adaptation": adaptation }));
    let only = delivered(json!({ "resources": 1, "adaptation": adaptation }));
    assert!(best > only + 50, "{best} of the best of 25, {only} of the only one");
}

/// Frames are lost as often as the modes say: 99.99 % of the counts are within 3.9 standard deviations.
#[test]
fn frames_are_lost_as_often_as_the_true_quality_says() {
    let modes = Modes::new(&ModesConfig::default(), ());
    for (mode, decibels) in [("bpsk", 5.0), ("4-qam", 8.5), ("16-qam", 15.0), ("64-qam", 21.0)] {
        let number = modes.named(mode).unwrap();
        let bytes = modes.frame_bits(number, 108) / 8;
        let medium = json!({ "resources": 4, "adaptation": { "type": "fixed", "mode": mode } });
        let config = cell(medium, &[steady(decibels)]);
        let script: Script = (0..8000).map(|packet| to(0, ms(packet / 5), bytes)).collect();
        let trace = run_to(Cell::new(&config, Seed(5)), &script, ms(5_000));
        let lost = trace.of_kind(EventKind::Dropped).len() as f64;
        let p = modes.frame_error(
            number,
            10f64.powf(decibels / 10.0) as f32,
            bytes * 8 / modes.bits_per_symbol(number) as u32,
        );
        assert!((0.02..0.98).contains(&p), "{mode}: {p} tests little");
        let deviation = (8000.0 * p * (1.0 - p)).sqrt();
        assert!((lost - 8000.0 * p).abs() < 3.9 * deviation, "{mode}: {lost} of 8000 lost, expected {}", 8000.0 * p);
    }
}

/// The same cell with an entity that repeats, in the downlink; `arq` are its parameters.
fn repeating(medium: Value, channel: &Value, arq: &Value) -> CellConfig {
    let mut config = cell(medium, std::slice::from_ref(channel));
    let hop = &mut config.users[0].path.hops[0];
    let mut entity = json!({ "type": "arq" });
    entity.as_object_mut().unwrap().extend(arq.as_object().unwrap().clone());
    for link in [&mut hop.uplink, &mut hop.downlink] {
        link.entity = serde_json::from_value(entity.clone()).unwrap();
    }
    hop.uplink.rate = read("20 kbit/s");
    config
}

/// Table II of Alfredsson et al. 2006: packets of 1500 bytes, each in frames of its own. A packet takes
/// ⌈12000 / 108k⌉ slots; all slots are used.
#[test]
fn fixed_modulation_without_errors_fills_every_slot() {
    for (k, mode) in ["bpsk", "4-qam", "8-qam", "16-qam", "32-qam", "64-qam", "128-qam", "256-qam"].iter().enumerate() {
        let medium = json!({ "resources": 1, "adaptation": { "type": "fixed", "mode": mode } });
        let config = repeating(medium, &steady(80.0), &json!({ "concatenate": false, "in_order": false }));
        let frames = 12_000u64.div_ceil(108 * (k as u64 + 1));
        let packets = 40;
        let script: Script = (0..packets).map(|_| to(0, ms(0), 1500)).collect();
        let trace = run_to(Cell::new(&config, Seed(1)), &script, ms(10_000));
        // Slot 1 is the first after time 0; packet n ends with the frame in slot n · frames.
        let ends = (1..=packets).map(|packet| (packet * frames + 1) * 2_000_000 / 3);
        assert_eq!(trace.times(PortId::of(0, End::Client)), ends.collect::<Vec<u64>>(), "{mode}");
    }
}

/// The choice of the mode sees the prediction: with an error in it, more frames are repeated.
#[test]
fn the_choice_of_the_mode_sees_the_prediction_alone() {
    let repeated = |error: f64| {
        let channel = json!({ "type": "jakes", "speed": "75 km/h", "snr": "16 dB", "prediction_error": error });
        let medium = json!({ "resources": 8, "assumed_prediction_error": 0 });
        let config = repeating(medium, &channel, &json!({ "retransmissions": 50 }));
        let script: Script = (0..500).map(|packet| to(0, ms(packet * 2), 1500)).collect();
        let trace = run_to(Cell::new(&config, Seed(5)), &script, ms(3_000));
        assert_eq!(trace.departures.len(), 500);
        assert!(trace.departures.iter().all(|departure| departure.flips.is_empty()));
        trace.of_kind(EventKind::FrameRepeated).len()
    };
    let (none, some) = (repeated(0.0), repeated(0.2));
    assert!(2 * some > 3 * none, "{some} against {none}");
}

/// After the last try what is wrong stays wrong: a frame of BPSK at 3 dB has each of its 108 bits wrong with the
/// probability of a symbol error, and 12 frames make a packet.
#[test]
fn symbols_in_error_become_bit_errors_after_the_last_try() {
    let modes = Modes::new(&ModesConfig::default(), ());
    let medium = json!({ "resources": 4, "adaptation": { "type": "fixed", "mode": "bpsk" } });
    let config = repeating(medium, &steady(3.0), &json!({ "retransmissions": 0, "concatenate": false }));
    let script: Script = (0..500).map(|packet| to(0, ms(packet * 3), 162)).collect();
    let trace = run_to(Cell::new(&config, Seed(8)), &script, ms(4_000));
    assert_eq!(trace.departures.len(), 500);
    let flips: usize = trace.departures.iter().map(|departure| departure.flips.len()).sum();
    let p = modes.symbol_error(modes.named("bpsk").unwrap(), 10f64.powf(0.3) as f32).unwrap();
    let bits = 500.0 * 1296.0;
    let deviation = (bits * p * (1.0 - p)).sqrt();
    assert!((flips as f64 - bits * p).abs() < 3.9 * deviation, "{flips} bits, expected {}", bits * p);
}

/// An answer that is heard as a slot begins counts in that slot, also where nobody else kept the medium busy: the
/// repetition comes 2 ms, three slots, after the end of the first try.
#[test]
fn a_repetition_comes_after_the_feedback_delay_to_the_slot() {
    let medium = json!({ "resources": 1, "adaptation": { "type": "fixed", "mode": "bpsk" } });
    let config = repeating(medium, &steady(-30.0), &json!({ "retransmissions": 3, "feedback_delay": "2 ms" }));
    let trace = run_to(Cell::new(&config, Seed(2)), &vec![to(0, ms(0), 13)], ms(100));
    let of = |kind| trace.of_kind(kind).iter().map(|event| event.at.nanos()).collect::<Vec<_>>();
    // Slots 1, 5, 9 and 13: a try takes one slot, the answer three.
    let starts: Vec<u64> = [1u64, 5, 9, 13].iter().map(|slot| slot * 2_000_000 / 3).collect();
    assert_eq!(of(EventKind::FrameRepeated), starts[1..]);
    assert_eq!(trace.departures.len(), 1, "the last try is delivered as it is");
    assert_eq!(trace.departures[0].at.nanos(), 14 * 2_000_000 / 3);
}

/// An outer loop reaches its target also where 25 frames of a slot, and those of the slots before the first answer, are
/// lost together.
#[test]
fn an_outer_loop_reaches_its_target_with_many_resources() {
    let medium = json!({
        "modes": { "type": "coded", "table": "lte_cqi" },
        "adaptation": { "type": "outer_loop", "target": "10%" },
    });
    let config = repeating(medium, &steady(15.0), &json!({ "retransmissions": 0 }));
    let script: Script = (0..10_000).map(|packet| to(0, ms(packet / 2), 1500)).collect();
    let trace = run_to(Cell::new(&config, Seed(3)), &script, ms(5_000));
    let sent = trace.counters.site(0, Direction::Downlink, Origin::User).kind(EventKind::FrameSent).count as f64;
    let lost = trace.of_kind(EventKind::FrameLost).len() as f64;
    assert!(sent > 100_000.0, "{sent} frames");
    // The offset stays within 20 dB: with steps of half a dB a slot the count is off by 40 slots at most.
    assert!((lost / sent - 0.1).abs() < 0.01, "{lost} of {sent} lost");
}

/// Two hops of one user on a medium have names of their own, so that a scheduler can name each.
#[test]
fn hops_of_one_user_are_told_apart_by_name() {
    let medium = json!({ "resources": 2, "scheduler": { "type": "static", "owners": ["user0.one", "user0.two"] } });
    let mut config = repeating(medium, &steady(60.0), &json!({}));
    let mut other = config.users[0].path.hops[0].clone();
    config.users[0].path.hops[0].name = "one".into();
    other.name = "two".into();
    config.users[0].path.hops.push(other);
    let names = config.media[0].bearer_names(config.users.iter().map(|user| (user.name.as_str(), &user.path)));
    assert_eq!(names, ["user0.one", "user0.two"]);
    let script: Script = (0..20).map(|packet| to(0, ms(packet), 500)).collect();
    let trace = run_to(Cell::new(&config, Seed(3)), &script, ms(1_000));
    assert_eq!(trace.departures.len(), 20);
}

/// Levels follow the mean that the receiver knows. Where path loss takes 8 dB from a nominal 16 dB, they are those of a
/// channel of 8 dB; those of the nominal mean lose 15 % of the throughput in frames without errors.
#[test]
fn switching_levels_follow_the_local_mean() {
    let delivered = |levels_for: &str, further: Value| {
        let mut channel = json!({ "type": "profile", "profile": "etu", "speed": "75 km/h", "prediction_error": 0.1 });
        channel.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        let config = repeating(json!({ "levels_for": levels_for }), &channel, &json!({ "retransmissions": 100 }));
        let script: Script = (0..2000).map(|packet| to(0, ms(packet), 1500)).collect();
        run_to(Cell::new(&config, Seed(4)), &script, ms(2_000)).departures.len() as f64
    };
    let far = json!({
        "snr": "16 dB",
        "path_loss": { "type": "log_distance", "exponent": 3.5, "reference": "10 km", "ahead": "0 m", "aside": "16.9267 km" },
    });
    let plain = delivered("local_mean", json!({ "snr": "8 dB" }));
    let (local, nominal) = (delivered("local_mean", far.clone()), delivered("nominal_mean", far));
    assert!(plain > 400.0 && (local / plain - 1.0).abs() < 0.02, "{local} packets, {plain} at 8 dB");
    assert!(nominal < 0.92 * local, "{nominal} packets by the nominal mean, {local} by the local one");
    // Without shadowing and path loss both are one.
    let steady = json!({ "snr": "12 dB" });
    assert_eq!(delivered("local_mean", steady.clone()), delivered("nominal_mean", steady));
    for deviation in [4, 8] {
        let shadowed =
            json!({ "snr": "12 dB", "shadowing": { "deviation": format!("{deviation} dB"), "every": "1 m" } });
        let (local, nominal) = (delivered("local_mean", shadowed.clone()), delivered("nominal_mean", shadowed));
        println!("shadowing of {deviation} dB: {local} packets by the local mean, {nominal} by the nominal one");
        assert!(local > nominal, "{local} packets by the local mean, {nominal} by the nominal one");
    }
}
