// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From one rate to another while packets are on their way, and a rate for each direction.

use airpath_core::{Direction, EventKind, PortId, Seed, Time};
use airpath_models::medium::rate::trace::Interpolation;
use airpath_models::medium::{RateConfig, VaryingConfig};
use airpath_models::{LinkConfig, Path, PathConfig, StateConfig};

use super::curves::steps;
use super::opportunities::mm;
use super::slots::slots;
use super::{MS, sends};
use crate::common::{Script, check_laws, ms, offer, one_hop, read};

fn changing(before: impl Into<RateConfig>, at: u64, after: impl Into<RateConfig>) -> PathConfig {
    let hops =
        |rate: RateConfig| one_hop("radio", LinkConfig { rate, ..LinkConfig::default() }, LinkConfig::default()).hops;
    let state = StateConfig {
        name: "other".into(),
        at: Some(Time::from_nanos(at)),
        hops: hops(after.into()),
        stay: Default::default(),
    };
    PathConfig { hops: hops(before.into()), states: vec![state], ..PathConfig::default() }
}

fn play_change(before: impl Into<RateConfig>, at: u64, after: impl Into<RateConfig>, script: &Script) -> Vec<u64> {
    let config = changing(before, at, after);
    check_laws(|| Path::new(&config, Seed(1)), script, 1).times(PortId::SERVER)
}

#[test]
fn a_frame_that_began_at_a_constant_rate_keeps_it() {
    // 1000 bit at 100 kbit/s until 10 ms, then by the trace.
    let times = play_change(read::<RateConfig>("100 kbit/s"), 3 * MS, mm("4\n12\n"), &sends(&[(0, 125), (0, 1500)]));
    assert_eq!(times, [10 * MS, 12 * MS]);
    let outage = steps(&["0 s: 0 bit/s", "20 ms: 1 Mbit/s"], None, Interpolation::Step);
    let times = play_change(read::<RateConfig>("100 kbit/s"), 3 * MS, outage, &sends(&[(0, 125), (0, 125)]));
    assert_eq!(times, [10 * MS, 21 * MS]);
    let slotted = slots("4 ms", "1000 bit", None, "0 s");
    let times = play_change(read::<RateConfig>("100 kbit/s"), 3 * MS, slotted, &sends(&[(0, 125), (0, 125)]));
    // The slot from 8 ms on has begun when the frame ends.
    assert_eq!(times, [10 * MS, 16 * MS]);
}

#[test]
fn what_is_left_of_a_frame_of_a_curve_is_sent_at_the_new_rate() {
    // 1000 of 3000 bit in the first millisecond, then nothing; the state of 5 ms sends 2000 bit.
    let outage = || steps(&["0 s: 1 Mbit/s", "1 ms: 0 bit/s"], None, Interpolation::Step);
    let script = sends(&[(0, 375), (0, 125)]);
    assert_eq!(play_change(outage(), 5 * MS, read::<RateConfig>("2 Mbit/s"), &script), [6 * MS, 6_500_000]);
    assert_eq!(play_change(outage(), 5 * MS, read::<RateConfig>("unlimited"), &script), [5 * MS, 5 * MS]);
    assert_eq!(play_change(outage(), 5 * MS, mm("5\n8\n"), &script), [8 * MS, 8 * MS]);
    let later = steps(&["0 s: 4 Mbit/s"], None, Interpolation::Step);
    assert_eq!(play_change(outage(), 5 * MS, later, &script), [5_500_000, 5_750_000]);
    // The same parameters again change nothing.
    let curve = || steps(&["0 s: 1 Mbit/s"], None, Interpolation::Step);
    assert_eq!(play_change(curve(), 500_001, curve(), &script), [3 * MS, 4 * MS]);
}

#[test]
fn what_is_left_of_a_packet_of_opportunities_is_sent_at_the_new_rate() {
    // 1500 of 2500 bytes at 2 ms, then 1000 bytes at 1 Mbit/s from 5 ms on: 8 ms.
    let script = sends(&[(0, 2500), (0, 125)]);
    assert_eq!(play_change(mm("2\n20\n"), 5 * MS, read::<RateConfig>("1 Mbit/s"), &script), [13 * MS, 14 * MS]);
    assert_eq!(play_change(mm("2\n20\n"), 5 * MS, mm("7\n"), &script), [7 * MS, 7 * MS]);
}

#[test]
fn a_slot_that_is_cut_off_has_carried_nothing() {
    // A slot from 4 to 8 ms with 1000 of 1500 bit; from 6 ms on all 1500 bit at 1 Mbit/s.
    let rate = slots("4 ms", "1000 bit", None, "0 s");
    assert_eq!(
        play_change(rate.clone(), 6 * MS, read::<RateConfig>("1.5 Mbit/s"), &sends(&[(1, 187)])),
        [6 * MS + 997_333]
    );
    // The slot before counts.
    assert_eq!(play_change(rate, 9 * MS, read::<RateConfig>("1 Mbit/s"), &sends(&[(1, 250)])), [10 * MS]);
}

#[test]
fn an_unsent_packet_finds_its_way_from_each_kind_of_rate_to_each() {
    let mut all: Vec<RateConfig> = VaryingConfig::examples().into_iter().map(RateConfig::from).collect();
    all.extend([read("1 Mbit/s"), read("unlimited")]);
    let script = sends(&[(0, 1500), (0, 40), (1_000_000, 1500), (9_000_001, 4000), (30_000_000, 1)]);
    for before in &all {
        for after in &all {
            for at in [0, 500_000, 5_000_000, 9_500_000] {
                let config = changing(before.clone(), at, after.clone());
                let trace = check_laws(|| Path::new(&config, Seed(1)), &script, at);
                assert_eq!(trace.ids(PortId::SERVER), [1, 2, 3, 4, 5], "{before:?} to {after:?} at {at}");
                let started = trace.of_kind(EventKind::FrameStarted).len();
                assert_eq!(started, trace.of_kind(EventKind::FrameSent).len());
            }
        }
    }
}

#[test]
fn directions_have_rates_of_their_own() {
    let config = one_hop(
        "radio",
        LinkConfig { rate: mm("5\n9\n").into(), ..LinkConfig::default() },
        LinkConfig { rate: slots("3 ms", "8000 bit", None, "0 s").into(), ..LinkConfig::default() },
    );
    let script: Script = vec![offer(ms(1), PortId::CLIENT, 100), offer(ms(1), PortId::SERVER, 100)];
    let trace = check_laws(|| Path::new(&config, Seed(1)), &script, 1);
    assert_eq!((trace.times(PortId::SERVER), trace.times(PortId::CLIENT)), (vec![5 * MS], vec![6 * MS]));
    assert_eq!(trace.of_kind(EventKind::FrameSent)[0].direction, Direction::Uplink);
}
