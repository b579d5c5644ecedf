// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Wireless LAN: exchanges by hand, and the distributed coordination function against Bianchi's model.
//!
//! Times of 802.11a at 54 Mbit/s: a packet of 1500 bytes takes 248 us (`phy.rs`), its acknowledgement 28 us, SIFS 16 us,
//! DIFS 34 us, a slot 9 us; EIFS is 16 + 44 + 34 = 94 us.

use airpath_core::{Cx, Direction, End, EventKind, Item, LogLevel, Machine, Origin, Outputs, Pdu, PortId, Seed, Time};
use airpath_models::cell::{CellConfig, MediumOfCell, SharedMediumConfig, UserConfig, wifi::WifiConfig};
use airpath_models::entity::EntityConfig;
use airpath_models::medium::MediumChoice;
use airpath_models::{Cell, LinkConfig};
use serde_json::{Value, json};

use crate::common::*;

pub(crate) const SLOT_US: u64 = 9;

pub(crate) fn us(microseconds: u64) -> Time {
    Time::from_nanos(microseconds * 1000)
}

/// Users of a LAN with these parameters, whose packets are repeated until they arrive.
pub(crate) fn lan(medium: &Value, users: usize, errors: &Value) -> CellConfig {
    let config: WifiConfig = serde_json::from_value(medium.clone()).unwrap();
    let entity: EntityConfig = serde_json::from_value(json!({ "type": "persistent" })).unwrap();
    let link = LinkConfig {
        medium: MediumChoice::Shared("wifi".into()),
        entity,
        errors: serde_json::from_value(errors.clone()).unwrap(),
        send_buffer: read("64 packets"),
        ..LinkConfig::default()
    };
    let users = (0..users).map(|number| {
        let path = one_hop("radio", link.clone(), link.clone());
        UserConfig { name: format!("user{number}"), is_unnamed: false, path }
    });
    let media = vec![MediumOfCell { name: "wifi".into(), config: SharedMediumConfig::Wifi(config) }];
    CellConfig { media, users: users.collect() }
}

pub(crate) fn from(user: u16, end: End, at: Time, len: u32) -> (Time, Action) {
    offer(at, PortId::of(user, end), len)
}

pub(crate) fn microseconds(trace: &Trace, port: PortId) -> Vec<u64> {
    trace
        .times(port)
        .iter()
        .map(|nanos| {
            assert_eq!(nanos % 1000, 0);
            nanos / 1000
        })
        .collect()
}

/// A packet that finds an idle medium goes in the next slot. The next one waits for the acknowledgement, DIFS and a
/// number of slots that is drawn.
#[test]
fn an_exchange_is_a_frame_and_its_acknowledgement() {
    let config = lan(&json!({ "standard": "802.11a", "rate": "54 Mbit/s" }), 1, &json!({ "type": "none" }));
    let mut waits = Vec::new();
    for seed in 1..=40 {
        let script = vec![from(0, End::Client, us(100), 1500), from(0, End::Client, us(100), 1500)];
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(50));
        let left = microseconds(&trace, PortId::of(0, End::Server));
        // 100 us lie in slot 11, which began at 99.
        assert_eq!(left[0], 12 * SLOT_US + 248);
        let wait = left[1] - left[0] - (16 + 28 + 34 + 248);
        assert_eq!(wait % SLOT_US, 0);
        waits.push(wait / SLOT_US);
    }
    assert!(waits.iter().all(|slots| *slots <= 15), "{waits:?}");
    assert!(waits.contains(&0) && waits.iter().any(|slots| *slots > 12), "{waits:?}");
}

/// A packet that comes while the medium is busy waits for a drawn number of slots; one that comes while it is idle, for
/// a longer time than its station has still to wait, does not.
#[test]
fn a_busy_medium_makes_newcomers_wait() {
    let config = lan(&json!({ "standard": "802.11a", "rate": "54 Mbit/s" }), 2, &json!({ "type": "none" }));
    let mut starts = std::collections::BTreeSet::new();
    for seed in 1..=40 {
        let script = vec![
            from(0, End::Client, us(0), 1500),
            from(1, End::Client, us(50), 1500),
            from(1, End::Client, us(5000), 1500),
        ];
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(50));
        assert_eq!(microseconds(&trace, PortId::of(0, End::Server)), [9 + 248]);
        let left = microseconds(&trace, PortId::of(1, End::Server));
        let idle = 9 + 248 + 16 + 28 + 34;
        starts.insert((left[0] - 248 - idle) / SLOT_US);
        // The slots of the idle period behind the second exchange.
        let idle = left[0] + 16 + 28 + 34;
        let slot = (5000 - idle) / SLOT_US + 1;
        assert_eq!(left[1], idle + slot * SLOT_US + 248);
    }
    assert!(starts.len() > 8, "{starts:?}");
}

/// Frames that begin in the same slot collide: nothing arrives, all wait for EIFS and the slots of a window of 31.
#[test]
fn frames_of_one_slot_collide() {
    let config = lan(&json!({ "standard": "802.11a", "rate": "54 Mbit/s" }), 2, &json!({ "type": "none" }));
    for seed in 1..=20 {
        let script = vec![from(0, End::Client, us(0), 1500), from(1, End::Client, us(0), 1500)];
        let trace = check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(50));
        let lost = trace.of_kind(EventKind::FrameLost);
        assert!(lost.len() >= 2 && lost.len() % 2 == 0);
        assert!(lost[..2].iter().all(|event| event.at == us(9 + 248)));
        let mut left = [0, 1].map(|user| microseconds(&trace, PortId::of(user, End::Server))[0]);
        left.sort_unstable();
        let idle = 9 + 248 + 94;
        if lost.len() == 2 {
            let slots = (left[0] - 248 - idle) / SLOT_US;
            assert_eq!((left[0] - 248 - idle) % SLOT_US, 0);
            assert!(slots <= 31);
        }
    }
}

/// With RTS and CTS a collision costs the length of RTS alone: 28 us, SIFS, 28 us, SIFS before the data.
#[test]
fn an_announced_frame_comes_behind_rts_and_cts() {
    let medium = json!({ "standard": "802.11a", "rate": "54 Mbit/s", "rts_threshold": "500 bytes" });
    let config = lan(&medium, 2, &json!({ "type": "none" }));
    let script = vec![from(0, End::Client, us(0), 1500)];
    let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(50));
    assert_eq!(microseconds(&trace, PortId::of(0, End::Server)), [9 + 28 + 16 + 28 + 16 + 248]);
    let script = vec![from(0, End::Client, us(0), 1500), from(1, End::Client, us(0), 1500)];
    let trace = run_to(Cell::new(&config, Seed(1)), &script, ms(50));
    assert!(trace.of_kind(EventKind::FrameLost)[..2].iter().all(|event| event.at == us(9 + 28)));
    // 400 bytes: 436 octets with what the MAC adds, which is not announced.
    let trace = run_to(Cell::new(&config, Seed(1)), &vec![from(0, End::Client, us(0), 400)], ms(50));
    assert_eq!(microseconds(&trace, PortId::of(0, End::Server)), [9 + 20 + 17 * 4]);
}

/// Four packets in one aggregate: 4 · (4 + 1540) octets in 260 bits a symbol are 191 symbols of 4 us behind 36 us.
#[test]
fn an_aggregate_takes_several_packets() {
    let medium = json!({ "standard": "802.11n", "rate": "65 Mbit/s", "aggregation": { "packets": 4 } });
    let config = lan(&medium, 1, &json!({ "type": "none" }));
    let script: Script = (0..5).map(|_| from(0, End::Server, us(0), 1500)).collect();
    let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(50));
    let left = microseconds(&trace, PortId::of(0, End::Client));
    assert_eq!(left[..4], [9 + 36 + 191 * 4; 4]);
    // The fifth goes alone: 1538 octets in 48 symbols, behind a block acknowledgement of 32 octets at 24 Mbit/s.
    let wait = left[4] - left[0] - (16 + 32 + 34) - (36 + 48 * 4);
    assert!(wait.is_multiple_of(SLOT_US) && wait / SLOT_US <= 15, "{wait}");
}

/// A frame of an aggregate that is lost is repeated alone, and those behind it wait: order is kept.
#[test]
fn what_an_aggregate_loses_is_repeated_in_order() {
    let medium = json!({ "standard": "802.11n", "rate": "65 Mbit/s", "aggregation": {} });
    let errors = json!({ "type": "bernoulli", "probability": 0.3, "per": "frame" });
    let config = lan(&medium, 3, &errors);
    let script: Script = (0..300).map(|packet| from(packet % 3, End::Server, ms(packet.into()), 1500)).collect();
    let trace = check_laws_to(|| Cell::new(&config, Seed(4)), &script, 1, ms(2000));
    assert!(trace.of_kind(EventKind::FrameRepeated).len() > 60);
    for user in 0..3 {
        let ids = trace.ids(PortId::of(user, End::Client));
        assert_eq!(ids.len(), 100);
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

/// Goodput in Mbit/s and the share of frames that are lost, of stations that always have packets of 1500 bytes.
fn saturated(stations: u16, seconds: u64) -> (f64, f64) {
    let medium = json!({ "standard": "802.11a", "rate": "54 Mbit/s", "after_failure": "difs", "retry_limit": 1000 });
    let each = saturate(&lan(&medium, stations.into(), &json!({ "type": "none" })), seconds);
    let sum = |of: fn(&Saturated) -> f64| each.iter().map(of).sum::<f64>();
    (sum(|station| station.goodput), sum(|station| station.lost) / sum(|station| station.sent))
}

/// Share of a station that always has packets.
pub(crate) struct Saturated {
    /// In Mbit/s.
    pub goodput: f64,
    /// Number of frames sent, and of those lost.
    pub sent: f64,
    pub lost: f64,
}

/// Each user of `config` while all always have packets of 1500 bytes for their uplinks.
pub(crate) fn saturate(config: &CellConfig, seconds: u64) -> Vec<Saturated> {
    let stations = config.users.len() as u16;
    let mut cell = Cell::new(config, Seed(3));
    let mut outputs = Outputs { level: LogLevel::Counters, ..Outputs::default() };
    let (mut id, mut delivered) = (0, vec![0u64; usize::from(stations)]);
    // What has left in 10 ms comes anew; the first packets are more than that.
    let mut missing = vec![40; usize::from(stations)];
    for step in 0..seconds * 100 {
        let at = ms(step * 10);
        for (user, missing) in (0..stations).zip(&mut missing) {
            for _ in 0..std::mem::take(missing) {
                id += 1;
                let pdu = Pdu { id, len: 1500, header_len: 40, ..Pdu::default() };
                cell.offer(at, PortId::of(user, End::Client), Item::Pdu(pdu), &mut Cx::new(&mut outputs));
            }
        }
        cell.advance(ms(step * 10 + 10), &mut Cx::new(&mut outputs));
        for emission in outputs.emissions.drain(..) {
            missing[usize::from(emission.port.user())] += 1;
            delivered[usize::from(emission.port.user())] += 1;
        }
    }
    let count =
        |user, kind| outputs.counters.site(cell.place(user), Direction::Uplink, Origin::User).kind(kind).count as f64;
    let of = |(user, delivered): (usize, &u64)| Saturated {
        goodput: *delivered as f64 * 0.012 / seconds as f64,
        sent: count(user, EventKind::FrameSent),
        lost: count(user, EventKind::FrameLost),
    };
    delivered.iter().enumerate().map(of).collect()
}

/// Bianchi 2000, equations 7, 9 and 13: goodput in Mbit/s and the probability of a collision.
pub(crate) fn bianchi(stations: u16) -> (f64, f64) {
    let (window, stages) = (16.0, 6);
    let others = i32::from(stations) - 1;
    let tau = |p: f64| {
        let doubled: f64 = (0..stages).map(|stage| (2.0 * p).powi(stage)).sum();
        2.0 / (1.0 + window + p * window * doubled)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let p = (low + high) / 2.0;
        if 1.0 - (1.0 - tau(p)).powi(others) > p { low = p } else { high = p }
    }
    let tau = tau(low);
    let busy = 1.0 - (1.0 - tau).powi(i32::from(stations));
    let success = f64::from(stations) * tau * (1.0 - tau).powi(others);
    let (slot, good, bad) = (9.0, 248.0 + 16.0 + 28.0 + 34.0, 248.0 + 34.0);
    let time = (1.0 - busy) * slot + success * good + (busy - success) * bad;
    (success * 12_000.0 / time, low)
}

/// The coordination function slot by slot: goodput in Mbit/s and the share of transmissions that collide. With
/// `counts_busy` a busy medium counts as one slot for those that wait, as in Bianchi's model.
pub(crate) fn slot_by_slot(stations: u16, exchanges: u32, counts_busy: bool) -> (f64, f64) {
    let mut dice = Dice::new(u64::from(stations));
    let mut waits: Vec<(u64, u32)> = (0..stations).map(|_| (dice.below(16), 0)).collect();
    let (mut time, mut sent, mut lost, mut delivered) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..exchanges {
        while waits.iter().all(|(wait, _)| *wait > 0) {
            time += 9.0;
            waits.iter_mut().for_each(|(wait, _)| *wait -= 1);
        }
        let begins = waits.iter().filter(|(wait, _)| *wait == 0).count();
        sent += begins as f64;
        time += if begins == 1 { 248.0 + 16.0 + 28.0 + 34.0 } else { 248.0 + 34.0 };
        delivered += f64::from(u8::from(begins == 1));
        lost += if begins == 1 { 0.0 } else { begins as f64 };
        for (wait, stage) in &mut waits {
            if *wait == 0 {
                *stage = if begins == 1 { 0 } else { *stage + 1 };
                *wait = dice.below(16 << (*stage).min(6));
            } else if counts_busy {
                *wait -= 1;
            }
        }
    }
    (delivered * 12_000.0 / time, lost / sent)
}

/// Bianchi's model counts a busy medium as one slot for those that wait. In the standard a backoff stands still then,
/// which only those may use who have just sent (Tinnirello et al. 2010): collisions are rarer among many stations, and
/// goodput is nearly the same.
#[test]
fn saturated_stations_agree_with_bianchi() {
    for (stations, seconds) in [(1, 2), (2, 3), (5, 3), (10, 3), (20, 3), (50, 3)] {
        let (goodput, collisions) = saturated(stations, seconds);
        let (expected, p) = bianchi(stations);
        let (exact, exact_p) = slot_by_slot(stations, 200_000, false);
        let (counted, counted_p) = slot_by_slot(stations, 200_000, true);
        println!(
            "{stations}: {goodput:.2} Mbit/s, {collisions:.4}; slot by slot {exact:.2}, {exact_p:.4}; Bianchi \
             {expected:.2}, {p:.4}; by his rule {counted:.2}, {counted_p:.4}"
        );
        assert!((goodput / expected - 1.0).abs() < 0.02, "{stations} stations: {goodput} of {expected} Mbit/s");
        // Some 8,000 exchanges: a standard deviation is below 0.5 %.
        assert!((goodput / exact - 1.0).abs() < 0.015, "{stations} stations: {goodput} of {exact} Mbit/s");
        assert!((collisions - exact_p).abs() < 0.015, "{stations} stations: {collisions} of {exact_p}");
        assert!((counted / expected - 1.0).abs() < 0.01, "{stations} stations: {counted} of {expected} Mbit/s");
        assert!((counted_p - p).abs() < 0.01, "{stations} stations: {counted_p} of {p}");
    }
}

/// One slow station drags all: each sends as many packets (Heusse et al. 2003). An access point that shares airtime
/// gives each the same time instead.
#[test]
fn a_slow_station_drags_the_others_unless_airtime_is_shared() {
    let shares = |order: &str, end: End| {
        let medium = json!({
            "standard": "802.11g", "rate": "54 Mbit/s", "rates": { "user1": "6 Mbit/s" }, "order": order,
        });
        let config = lan(&medium, 2, &json!({ "type": "none" }));
        let script: Script = (0..900).flat_map(|_| [from(0, end, us(0), 1500), from(1, end, us(0), 1500)]).collect();
        let trace = run_to(Cell::new(&config, Seed(5)), &script, ms(500));
        let sent = [0, 1].map(|user| trace.departures.iter().filter(|left| left.port.user() == user).count());
        assert!(sent.iter().all(|sent| *sent < 900), "{sent:?}: both always have something to send");
        sent.map(|sent| sent as f64)
    };
    let [fast, slow] = shares("round_robin", End::Server);
    assert!((fast - slow).abs() <= 1.0, "{fast} and {slow} packets");
    let [fast, slow] = shares("first_come", End::Client);
    // They contend: 99.99 % of the shares of 190 packets each lie within a quarter.
    assert!((fast / slow - 1.0).abs() < 0.25, "{fast} and {slow} packets of stations that contend");
    // Frames of 254 and 2078 us, answers of 44 and 60 us: the times are as 298 to 2138.
    let [fast, slow] = shares("airtime", End::Server);
    assert!((fast * 298.0 - slow * 2138.0).abs() <= 2138.0, "{fast} and {slow} packets");
}
