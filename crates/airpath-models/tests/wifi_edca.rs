// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Access categories of a wireless LAN: spaces, opportunities and internal collisions by hand, and shares of stations
//! that always have packets against the rules of the standard slot by slot.
//!
//! Times are those of `wifi.rs`: a packet of 1500 bytes takes 248 us at 54 Mbit/s, its acknowledgement 28 us, SIFS 16 us.

use airpath_core::{End, EventKind, PortId, Seed};
use airpath_models::cell::CellConfig;
use airpath_models::queueing::classes::MatchConfig;
use airpath_models::{BearerConfig, Cell};
use serde_json::{Value, json};

use crate::common::*;
use crate::wifi::{SLOT_US, bianchi, from, lan, microseconds, saturate, slot_by_slot, us};

/// Users of a LAN of 802.11a with access categories, at 54 Mbit/s and 36 octets with each packet.
fn categories(own: &Value, users: usize) -> CellConfig {
    let mut medium = json!({ "standard": "802.11a", "rate": "54 Mbit/s", "overhead": "36 bytes", "edca": {} });
    medium.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    lan(&medium, users, &json!({ "type": "none" }))
}

/// An opportunity of 2080 us has room for six exchanges of 292 us, 16 us apart, and not for a seventh. The next one
/// comes behind 34 us and up to three slots.
#[test]
fn voice_keeps_the_medium_for_its_opportunity() {
    let config = categories(&json!({ "access_categories": { "user0": "voice" } }), 1);
    let script: Script = (0..8).map(|_| from(0, End::Client, us(0), 1500)).collect();
    let mut waits = std::collections::BTreeSet::new();
    for seed in 1..=20 {
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(50));
        let left = microseconds(&trace, PortId::of(0, End::Server));
        let expected: Vec<u64> = (0..6).map(|exchange| SLOT_US + 248 + exchange * (292 + 16)).collect();
        assert_eq!(left[..6], expected);
        let wait = left[6] - left[5] - (16 + 28 + 34 + 248);
        assert_eq!(wait % SLOT_US, 0);
        waits.insert(wait / SLOT_US);
        assert_eq!(left[7] - left[6], 292 + 16);
    }
    assert_eq!(waits.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

/// A packet that is too long for the rest of an opportunity waits for the next one, and one that is too long for any
/// goes alone: 1500 bytes at 6 Mbit/s take 2072 us and are answered after 16 + 44 us.
#[test]
fn an_opportunity_has_room_for_what_fits() {
    let own = json!({
        "access_categories": { "user0": "voice" }, "rate": "6 Mbit/s",
        "edca": { "stations": { "voice": { "txop_limit": "2048 us" } } },
    });
    let config = categories(&own, 1);
    // 100 bytes: 1088 bits and 22 in 24 a symbol are 47 symbols, 208 us, answered after 60 us.
    let script: Script = [1500, 100, 1500, 100].map(|bytes| from(0, End::Client, us(0), bytes)).into();
    let trace = check_laws_to(|| Cell::new(&config, Seed(3)), &script, 1, ms(50));
    let left = microseconds(&trace, PortId::of(0, End::Server));
    assert_eq!(left[0], SLOT_US + 2072);
    let slots = |wait: u64| (wait.is_multiple_of(SLOT_US) && wait / SLOT_US <= 3, wait);
    // The long packet does not fit behind the short one.
    for (number, bytes_us) in [(1, 208), (2, 2072), (3, 208)] {
        let wait = slots(left[number] - left[number - 1] - (60 + 34 + bytes_us));
        assert!(wait.0, "packet {number}: {} us", wait.1);
    }
}

/// Aggregates end with the opportunity: three packets take 36 + 4 · ⌈(3 · 1544 · 8 + 22)/260⌉ us, 608 us, and are
/// answered after 48 us. With a limit of 0 us only that of aggregates counts.
#[test]
fn an_aggregate_is_no_longer_than_the_opportunity() {
    for (limit, together) in [("655 us", 2), ("656 us", 3), ("0 us", 4)] {
        let medium = json!({
            "standard": "802.11n", "rate": "65 Mbit/s", "aggregation": { "packets": 4 },
            "edca": { "stations": { "best_effort": { "txop_limit": limit } } },
        });
        let config = lan(&medium, 1, &json!({ "type": "none" }));
        let script: Script = (0..4).map(|_| from(0, End::Client, us(0), 1500)).collect();
        let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(50));
        let left = trace.times(PortId::of(0, End::Server));
        let first = left.iter().filter(|at| **at == left[0]).count();
        assert_eq!(first, together, "{limit}: {left:?}");
    }
}

/// Behind an exchange, best effort of a station waits for SIFS and 3 slots, background for SIFS and 7.
#[test]
fn categories_wait_for_spaces_of_their_own() {
    let own = json!({ "access_categories": { "user0": "voice", "user1": "background" } });
    for (user, space) in [(1, 16 + 7 * SLOT_US), (2, 16 + 3 * SLOT_US)] {
        let config = categories(&own, 3);
        let mut waits = std::collections::BTreeSet::new();
        for seed in 1..=60 {
            let script = vec![from(0, End::Client, us(0), 1500), from(user, End::Client, us(50), 1500)];
            let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(50));
            let left = microseconds(&trace, PortId::of(user, End::Server));
            let wait = left[0] - (SLOT_US + 248 + 16 + 28 + space + 248);
            assert_eq!(wait % SLOT_US, 0);
            waits.insert(wait / SLOT_US);
        }
        assert_eq!((waits.first(), waits.last()), (Some(&0), Some(&15)), "user {user}");
    }
}

/// The access point's voice waits for SIFS and one slot.
#[test]
fn voice_of_the_access_point_goes_first() {
    let config = categories(&json!({ "access_categories": { "user0": "voice" } }), 1);
    let mut waits = std::collections::BTreeSet::new();
    for seed in 1..=20 {
        let script = vec![from(0, End::Client, us(0), 1500), from(0, End::Server, us(50), 1500)];
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(50));
        let left = microseconds(&trace, PortId::of(0, End::Client));
        let wait = left[0] - (SLOT_US + 248 + 16 + 28 + 16 + SLOT_US + 248);
        assert_eq!(wait % SLOT_US, 0);
        waits.insert(wait / SLOT_US);
    }
    assert_eq!(waits.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

/// Two categories of a station that begin in the same slot do not collide on the air: the higher one sends, the lower
/// one waits with a window of 31. Those of two stations collide.
#[test]
fn categories_of_a_station_collide_inside() {
    let own = json!({ "edca": { "stations": { "best_effort": { "aifsn": 2 } } } });
    let mut config = categories(&own, 1);
    let short = MatchConfig { longest: Some(read("1000 bytes")), ..MatchConfig::default() };
    let bearers = vec![BearerConfig::new("voice", short), BearerConfig::new("rest", MatchConfig::default())];
    let hop = &mut config.users[0].path.hops[0];
    hop.uplink.bearers.clone_from(&bearers);
    hop.downlink.bearers = bearers;
    let mut waits = std::collections::BTreeSet::new();
    for seed in 1..=80 {
        let script = vec![from(0, End::Client, us(0), 1500), from(0, End::Client, us(0), 100)];
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(50));
        assert!(trace.of_kind(EventKind::FrameLost).is_empty());
        let left = microseconds(&trace, PortId::of(0, End::Server));
        // 1088 bits and 22 in 216 a symbol: 6 symbols.
        assert_eq!(left[0], SLOT_US + 20 + 6 * 4);
        let wait = left[1] - (left[0] + 16 + 28 + 34 + 248);
        assert_eq!(wait % SLOT_US, 0);
        waits.insert(wait / SLOT_US);
    }
    assert!(waits.contains(&0) && waits.last() > Some(&15) && waits.last() <= Some(&31), "{waits:?}");
    let own =
        json!({ "edca": { "stations": { "best_effort": { "aifsn": 2 } } }, "access_categories": { "user1": "voice" } });
    let script = vec![from(0, End::Client, us(0), 1500), from(1, End::Client, us(0), 100)];
    let trace = run_to(Cell::new(&categories(&own, 2), Seed(1)), &script, ms(50));
    assert!(trace.of_kind(EventKind::FrameLost).len() >= 2);
}

/// Backoffs of categories count busy slots, as Bianchi's model does: the standard's own rule meets it, also in the
/// probability of a collision, which the coordination function without categories does not.
#[test]
fn saturated_categories_agree_with_bianchi() {
    for (stations, seconds) in [(2, 3), (5, 3), (10, 3), (20, 3)] {
        let own = json!({
            "after_failure": "difs", "retry_limit": 1000,
            "edca": { "stations": { "best_effort": { "aifsn": 2, "txop_limit": "0 us" } } },
        });
        let each = saturate(&categories(&own, stations), seconds);
        let goodput: f64 = each.iter().map(|station| station.goodput).sum();
        let collisions =
            each.iter().map(|station| station.lost).sum::<f64>() / each.iter().map(|station| station.sent).sum::<f64>();
        let (expected, p) = bianchi(stations as u16);
        let (exact, exact_p) = slot_by_slot(stations as u16, 200_000, true);
        println!(
            "{stations}: {goodput:.2} Mbit/s, {collisions:.4}; slot by slot {exact:.2}, {exact_p:.4}; Bianchi \
             {expected:.2}, {p:.4}"
        );
        assert!((goodput / expected - 1.0).abs() < 0.015, "{stations} stations: {goodput} of {expected} Mbit/s");
        // Some 8,000 exchanges: a standard deviation of the share is below 0.5 %.
        assert!((collisions - p).abs() < 0.015, "{stations} stations: {collisions} of {p}");
        assert!((collisions - exact_p).abs() < 0.015, "{stations} stations: {collisions} of {exact_p}");
    }
}

/// A station of the simulation below.
#[derive(Clone, Copy)]
struct Station {
    /// Slots of its space beyond DIFS.
    space: u64,
    least: u64,
    greatest: u64,
    wait: u64,
    window: u64,
    sent: f64,
    lost: f64,
}

/// Clause 10.22.2.4 slot boundary by slot boundary: at each of its own, a station begins if it has no slot to wait for,
/// or else counts one. Goodput in Mbit/s, and the share of transmissions that collide, of each station.
fn boundary_by_boundary(mut stations: Vec<Station>, exchanges: u32) -> Vec<(f64, f64)> {
    let mut dice = Dice::new(7);
    stations.iter_mut().for_each(|station| station.wait = dice.below(station.least + 1));
    let mut time = 0.0;
    for _ in 0..exchanges {
        let mut begin: Vec<usize> = Vec::new();
        let mut boundary = 0;
        while begin.is_empty() {
            for (number, station) in stations.iter_mut().enumerate().filter(|(_, station)| station.space <= boundary) {
                if station.wait == 0 {
                    begin.push(number);
                } else {
                    station.wait -= 1;
                }
            }
            time += if begin.is_empty() { 9.0 } else { 0.0 };
            boundary += 1;
        }
        time += if begin.len() == 1 { 248.0 + 16.0 + 28.0 + 34.0 } else { 248.0 + 34.0 };
        for number in &begin {
            let station = &mut stations[*number];
            station.sent += 1.0;
            station.window =
                if begin.len() == 1 { station.least } else { station.window * 2 + 1 }.min(station.greatest);
            station.lost += f64::from(u8::from(begin.len() > 1));
            station.wait = dice.below(station.window + 1);
        }
    }
    stations
        .iter()
        .map(|station| ((station.sent - station.lost) * 12_000.0 / time, station.lost / station.sent))
        .collect()
}

/// Two stations of each category that always have packets share the medium as the standard's rules say.
#[test]
fn saturated_categories_share_as_the_rules_say() {
    let own = json!({
        "after_failure": "difs", "retry_limit": 1000,
        "edca": { "stations": {
            "voice": { "txop_limit": "0 us" }, "video": { "txop_limit": "0 us", "least_contention_window": 15 },
            "best_effort": { "txop_limit": "0 us" }, "background": { "txop_limit": "0 us", "aifsn": 4 },
        } },
        "access_categories": {
            "user0": "video", "user1": "video", "user2": "best_effort", "user3": "best_effort",
            "user4": "background", "user5": "background",
        },
    });
    let each = saturate(&categories(&own, 6), 6);
    let station =
        |space, least, greatest| Station { space, least, greatest, wait: 0, window: least, sent: 0.0, lost: 0.0 };
    let (video, best_effort, background) = (station(0, 15, 15), station(1, 15, 1023), station(2, 15, 1023));
    let stations = vec![video, video, best_effort, best_effort, background, background];
    let exact = boundary_by_boundary(stations, 400_000);
    for pair in [0, 2, 4] {
        let goodput = each[pair].goodput + each[pair + 1].goodput;
        let lost = (each[pair].lost + each[pair + 1].lost) / (each[pair].sent + each[pair + 1].sent);
        let expected = exact[pair].0 + exact[pair + 1].0;
        let expected_lost = f64::midpoint(exact[pair].1, exact[pair + 1].1);
        println!("{goodput:.3} of {expected:.3} Mbit/s, {lost:.4} of {expected_lost:.4}");
        // The rarest kind sends some 1000 frames: four standard deviations.
        let sent = each[pair].sent + each[pair + 1].sent;
        let tolerance = 4.0 / sent.sqrt() + 0.01;
        assert!((goodput / expected - 1.0).abs() < tolerance, "{goodput} of {expected} Mbit/s");
        assert!((lost - expected_lost).abs() < tolerance, "{lost} of {expected_lost}");
    }
}
