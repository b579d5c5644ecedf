// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Hidden stations of a wireless LAN: two of them by hand, against a simulation microsecond by microsecond, and the
//! contention of stations that all hear each other, which comes out the same.
//!
//! Times are those of `wifi.rs`: a packet of 1500 bytes takes 248 us at 54 Mbit/s, its acknowledgement 28 us, SIFS 16 us,
//! DIFS 34 us, EIFS 94 us; RTS and CTS take 28 us each.

use airpath_core::{End, EventKind, PortId, Seed};
use airpath_models::Cell;
use serde_json::{Value, json};

use crate::common::*;
use crate::wifi::{SLOT_US, from, lan, microseconds, saturate, us};

fn none() -> Value {
    json!({ "type": "none" })
}

/// The second station does not hear the first one, and begins while that sends: both are lost. Each waits for EIFS from
/// the end of its own frame, and up to 31 slots.
#[test]
fn frames_of_hidden_stations_meet_at_the_access_point() {
    let medium = json!({ "standard": "802.11a", "rate": "54 Mbit/s", "hidden": [["user0", "user1"]] });
    let config = lan(&medium, 2, &none());
    let script = vec![from(0, End::Client, us(0), 1500), from(1, End::Client, us(100), 1500)];
    let mut waits = std::collections::BTreeSet::new();
    for seed in 1..=30 {
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(200));
        let lost = trace.of_kind(EventKind::FrameLost);
        assert_eq!([lost[0].at, lost[1].at], [us(9 + 248), us(12 * SLOT_US + 248)]);
        let starts: Vec<u64> =
            trace.of_kind(EventKind::FrameRepeated).iter().map(|event| event.at.nanos() / 1000).collect();
        // The first repetition is of one of the two, behind its own EIFS.
        let since = [9 + 248 + 94, 12 * SLOT_US + 248 + 94];
        let slots = |begin: u64| since.map(|since| begin.checked_sub(since).filter(|wait| wait % SLOT_US == 0));
        let fitting = slots(starts[0]).into_iter().flatten().map(|wait| wait / SLOT_US).collect::<Vec<_>>();
        assert!(fitting.iter().any(|slots| *slots <= 31), "{starts:?}");
        waits.extend(fitting);
        assert_eq!(trace.departures.len(), 2);
    }
    assert!(waits.len() > 5, "{waits:?}");
    // Where they hear each other, the second one waits.
    let medium = json!({ "standard": "802.11a", "rate": "54 Mbit/s" });
    let trace = run_to(Cell::new(&lan(&medium, 2, &none()), Seed(1)), &script, ms(200));
    assert!(trace.of_kind(EventKind::FrameLost).is_empty());
}

/// CTS tells the hidden station how long to wait: from 53 us, as the packet comes, to the end of the acknowledgement at
/// 417 us. Its own packet comes behind DIFS, up to 15 slots, and RTS and CTS of its own.
#[test]
fn a_hidden_station_heeds_cts() {
    let medium = json!({
        "standard": "802.11a", "rate": "54 Mbit/s", "hidden": [["user0", "user1"]], "rts_threshold": "500 bytes",
    });
    let config = lan(&medium, 2, &none());
    let script = vec![from(0, End::Client, us(0), 1500), from(1, End::Client, us(100), 1500)];
    for seed in 1..=30 {
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(200));
        assert!(trace.of_kind(EventKind::FrameLost).is_empty());
        let first = 9 + 28 + 16 + 28 + 16 + 248;
        assert_eq!(microseconds(&trace, PortId::of(0, End::Server)), [first]);
        let left = microseconds(&trace, PortId::of(1, End::Server))[0];
        let wait = left - (first + 16 + 28 + 34 + 28 + 16 + 28 + 16 + 248);
        assert!(wait.is_multiple_of(SLOT_US) && wait / SLOT_US <= 15, "{wait} us");
    }
}

/// The acknowledgement of a station is protected by the NAV of the access point's frame: a hidden station whose packet
/// comes as the frame ends waits for it.
#[test]
fn an_answer_of_a_hidden_station_is_protected() {
    let medium = json!({ "standard": "802.11a", "rate": "6 Mbit/s", "hidden": [["user0", "user1"]] });
    let config = lan(&medium, 2, &none());
    // 2072 us, and 44 us of acknowledgement behind 16 us; DIFS would be over after 34 us.
    let script = vec![from(0, End::Server, us(0), 1500), from(1, End::Client, us(9 + 2072 + 1), 1500)];
    for seed in 1..=10 {
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(200));
        assert!(trace.of_kind(EventKind::FrameLost).is_empty());
        let left = microseconds(&trace, PortId::of(1, End::Server))[0];
        let wait = left - (9 + 2072 + 16 + 44 + 34 + 2072);
        assert!(wait.is_multiple_of(SLOT_US) && wait / SLOT_US <= 15, "{wait} us");
    }
}

/// With a hidden pair of which one never sends, nobody who sends is hidden: the trace is that of the LAN in which all
/// hear each other.
#[test]
fn views_of_stations_that_hear_each_other_agree_with_one_medium() {
    let plain = json!({ "standard": "802.11a", "rate": "54 Mbit/s" });
    let rts = json!({ "standard": "802.11g", "rate": "24 Mbit/s", "rts_threshold": "700 bytes" });
    let aggregates = json!({ "standard": "802.11n", "aggregation": { "packets": 3 }, "order": "round_robin" });
    let categories = json!({
        "standard": "802.11a", "edca": {
            "stations": { "voice": { "txop_limit": "0 us" }, "best_effort": { "txop_limit": "0 us" } },
            "access_point": { "voice": { "txop_limit": "0 us" }, "best_effort": { "txop_limit": "0 us" } },
        }, "access_categories": { "user1": "voice" },
    });
    let errors = json!({ "type": "bernoulli", "probability": 0.1, "per": "frame" });
    let mut lost = 0;
    // Behind RTS and CTS the time of an answer that does not come stays announced, which one medium leaves out.
    for (medium, errors) in [(plain, &errors), (rts, &none()), (aggregates, &errors), (categories, &errors)] {
        let mut hidden = medium.clone();
        hidden["hidden"] = json!([["user0", "user3"]]);
        for seed in 1..=6 {
            let mut dice = Dice::new(seed);
            let mut at = 0;
            let script: Script = (0..300)
                .map(|_| {
                    at += dice.below(500);
                    let end = if dice.below(2) == 0 { End::Client } else { End::Server };
                    from(dice.below(3) as u16, end, us(at), 40 + dice.below(1400) as u32)
                })
                .collect();
            let trace = |medium: &Value| run_to(Cell::new(&lan(medium, 4, errors), Seed(seed)), &script, ms(2000));
            let (one, views) = (trace(&medium), trace(&hidden));
            lost += one.of_kind(EventKind::FrameLost).len();
            let leave = |trace: &Trace| trace.departures.iter().map(|left| (left.at, left.port)).collect::<Vec<_>>();
            assert_eq!(leave(&one), leave(&views), "seed {seed}: {medium}");
        }
    }
    assert!(lost > 300, "{lost} frames lost are too few to compare");
}

/// A station of the simulation below, which hears the access point alone.
#[derive(Clone, Copy, Default)]
struct Naive {
    /// Microsecond from which it may count slots.
    counts_from: u64,
    wait: u64,
    window: u64,
    /// Beginning of its frame, if it sends.
    sends_from: Option<u64>,
    is_hit: bool,
}

/// Two hidden stations that always have packets, microsecond by microsecond: goodput in Mbit/s and the share of lost
/// frames. A station counts slots of 9 us from DIFS behind the answers that it hears.
fn microsecond_by_microsecond(microseconds: u64) -> (f64, f64) {
    let mut dice = Dice::new(3);
    let mut stations = [Naive { window: 15, ..Naive::default() }; 2];
    stations.iter_mut().for_each(|station| station.wait = dice.below(16));
    let (mut sent, mut lost, mut delivered) = (0.0, 0.0, 0.0);
    // Beginning and end of the access point's answer.
    let mut answer: Option<(u64, u64)> = None;
    for now in 0..microseconds {
        // What ends.
        for station in &mut stations {
            if station.sends_from.is_some_and(|begin| begin + 248 == now) {
                station.sends_from = None;
                sent += 1.0;
                if station.is_hit {
                    lost += 1.0;
                    station.window = (station.window * 2 + 1).min(1023);
                    station.counts_from = now + 94;
                } else {
                    delivered += 1.0;
                    station.window = 15;
                    // It waits for the answer, and the other one hears it.
                    station.counts_from = now + 16 + 28 + 34;
                    answer = Some((now + 16, now + 16 + 28));
                }
                station.wait = dice.below(station.window + 1);
            }
        }
        // Who begins now hears nothing yet.
        let begins: Vec<usize> = (0..2)
            .filter(|number| {
                let station = &stations[*number];
                let is_idle = station.sends_from.is_none() && now >= station.counts_from;
                is_idle && now == station.counts_from + station.wait * 9
            })
            .collect();
        if let Some((begin, end)) = answer.filter(|(begin, _)| *begin == now) {
            for (number, station) in stations.iter_mut().enumerate() {
                // Whoever sends is not received by the access point, which sends itself.
                station.is_hit |= station.sends_from.is_some();
                if station.sends_from.is_none() && !begins.contains(&number) && station.counts_from < end + 34 {
                    // Slots that have passed stay counted.
                    let passed = begin.saturating_sub(station.counts_from) / 9;
                    station.wait -= passed.min(station.wait);
                    station.counts_from = end + 34;
                }
            }
        }
        for number in begins {
            let on_air = answer.is_some_and(|(begin, end)| begin <= now && now < end);
            let other = &mut stations[1 - number];
            let is_hit = other.sends_from.is_some() || on_air;
            other.is_hit |= other.sends_from.is_some();
            let station = &mut stations[number];
            station.sends_from = Some(now);
            station.is_hit = is_hit;
        }
    }
    (delivered * 12_000.0 / microseconds as f64, lost / sent)
}

/// Two hidden stations that always have packets agree with the simulation, and are below two that hear each other; RTS
/// and CTS help with long frames.
#[test]
fn saturated_hidden_stations_agree_with_a_simulation() {
    let of = |own: &Value| {
        let mut medium = json!({ "standard": "802.11a", "rate": "54 Mbit/s", "retry_limit": 1000 });
        medium.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let each = saturate(&lan(&medium, 2, &none()), 8);
        let sum = |of: fn(&crate::wifi::Saturated) -> f64| each.iter().map(of).sum::<f64>();
        (sum(|station| station.goodput), sum(|station| station.lost) / sum(|station| station.sent))
    };
    let (goodput, lost) = of(&json!({ "hidden": [["user0", "user1"]] }));
    let (expected, expected_lost) = microsecond_by_microsecond(40_000_000);
    let (open, _) = of(&json!({}));
    println!("{goodput:.2} of {expected:.2} Mbit/s, {lost:.4} of {expected_lost:.4}; {open:.2} Mbit/s unhidden");
    assert!((goodput / expected - 1.0).abs() < 0.05, "{goodput} of {expected} Mbit/s");
    assert!((lost - expected_lost).abs() < 0.03, "{lost} of {expected_lost}");
    assert!(goodput < 0.93 * open, "{goodput} of {open} Mbit/s");
    // At 6 Mbit/s a frame takes 2 ms, RTS 52 us.
    let slow = json!({ "rate": "6 Mbit/s", "hidden": [["user0", "user1"]] });
    let healed = json!({ "rate": "6 Mbit/s", "hidden": [["user0", "user1"]], "rts_threshold": "500 bytes" });
    let ((slow, _), (healed, _)) = (of(&slow), of(&healed));
    println!("{slow:.2} Mbit/s at 6 Mbit/s, {healed:.2} with RTS and CTS");
    assert!(healed > 2.0 * slow, "{healed} and {slow} Mbit/s");
}
