// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The medium with poll and response: exchanges by hand, and the tables of Eckhardt and Steenkiste 2002.
//!
//! A frame of 1275 bytes takes 5.1 ms, an exchange of one 12.75 ms.

use airpath_core::{End, PortId, Seed};
use airpath_models::Cell;
use airpath_models::cell::{CellConfig, UserConfig};
use serde_json::{Value, json};

use crate::common::*;

const EXCHANGE_US: u64 = 12_750;

/// Users with these names, each with these errors of its frames.
fn radio(scheduler: &Value, users: &[(&str, Value)]) -> CellConfig {
    let medium = json!({ "name": "air", "type": "poll", "scheduler": scheduler });
    let users = users.iter().map(|(name, errors)| {
        let link = json!({
            "medium": "air",
            "entity": { "type": "persistent", "window": 1 },
            "queue": { "type": "tail_drop", "limit": "5000 packets" },
            "errors": errors,
        });
        let link: airpath_models::LinkConfig = serde_json::from_value(link).unwrap();
        UserConfig { name: (*name).into(), is_unnamed: false, path: one_hop("radio", link.clone(), link) }
    });
    let config = CellConfig { users: users.collect(), media: vec![serde_json::from_value(medium).unwrap()] };
    assert_eq!(config.media[0].config.problems(), []);
    config
}

fn none() -> Value {
    json!({ "type": "none" })
}

/// Every second frame is lost, the first one not.
fn every_second() -> Value {
    json!({ "type": "pattern", "burst": 1, "every": 2, "offset": 1, "per": "frame" })
}

fn half() -> Value {
    json!({ "type": "bernoulli", "probability": 0.5, "per": "frame" })
}

/// Two packets for a station that has one to send itself, and one for another that comes in the same instant.
#[test]
fn an_exchange_carries_a_frame_of_each_direction_and_has_a_fixed_cost() {
    let config = radio(&json!({ "type": "round_robin" }), &[("a", none()), ("b", none())]);
    let script = vec![
        offer(ms(1), PortId::of(1, End::Server), 1275),
        offer(ms(1), PortId::of(0, End::Server), 1275),
        offer(ms(1), PortId::of(0, End::Server), 255),
        offer(ms(1), PortId::of(0, End::Client), 1275),
    ];
    let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(200));
    // The lower number first. The answer begins behind the frame, and the fixed cost follows: 17.85 ms in all.
    let start_of_b = 1_000_000 + 2 * 5_100_000 + 7_650_000;
    let start_of_second = start_of_b + 12_750_000;
    assert_eq!(trace.times(PortId::of(0, End::Server)), [1_000_000 + 10_200_000]);
    assert_eq!(trace.times(PortId::of(1, End::Client)), [start_of_b + 5_100_000]);
    // One block: 1.02 ms on the air.
    assert_eq!(trace.times(PortId::of(0, End::Client)), [6_100_000, start_of_second + 1_020_000]);
}

/// A frame that is lost is repeated in the next exchange, since its sender knows at once.
#[test]
fn a_lost_frame_is_repeated_in_the_next_exchange() {
    let errors = json!({ "type": "pattern", "burst": 2, "every": 100, "per": "frame" });
    let config = radio(&json!({ "type": "first_come" }), &[("a", errors)]);
    let script = vec![offer(ms(0), PortId::of(0, End::Server), 1275)];
    let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, ms(200));
    assert_eq!(trace.times(PortId::of(0, End::Client)), [2 * 12_750_000 + 5_100_000]);
}

/// Number of packets that each user receives in 4000 exchanges; with 2000 each, all of them always have some.
fn received(scheduler: &Value, users: &[(&str, Value)]) -> Vec<u64> {
    let config = radio(scheduler, users);
    let count = users.len() as u16;
    let script: Script =
        (0..2000).flat_map(|_| (0..count).map(|user| offer(ms(0), PortId::of(user, End::Server), 1275))).collect();
    let end = airpath_core::Time::from_nanos(4000 * EXCHANGE_US * 1000);
    let trace = run_to(Cell::new(&config, Seed(7)), &script, end);
    (0..count).map(|user| trace.times(PortId::of(user, End::Client)).len() as u64).collect()
}

/// Compares packets of 4000 exchanges with rates of a link of 800 kbit/s: 5 packets are 1 kbit/s.
fn assert_rates(found: &[u64], kilobits: [f64; 4], tolerance: f64, what: &str) {
    for (found, expected) in found.iter().zip(kilobits) {
        let packets = expected * 5.0;
        assert!((*found as f64 - packets).abs() <= tolerance, "{what}: {found} packets, {packets} expected");
    }
}

fn table_2(errors: &Value) -> [(&'static str, Value); 4] {
    ["audio", "video", "ftp1", "ftp2"].map(|name| (name, errors.clone()))
}

fn table_3(errors: &Value) -> [(&'static str, Value); 4] {
    [("video1", none()), ("ftp1", none()), ("video2", errors.clone()), ("ftp2", errors.clone())]
}

fn elf_of_table_2() -> Value {
    let audio = json!({ "rate": "8 kbit/s", "power_factor": 3 });
    json!({ "type": "elf", "flows": { "audio": audio, "video": { "rate": "350 kbit/s", "power_factor": 2.2 } } })
}

fn wfq_of_table_2() -> Value {
    json!({ "type": "wfq", "weights": { "audio": 8, "video": 350, "ftp1": 221, "ftp2": 221 } })
}

fn elf_of_table_3() -> Value {
    let video = json!({ "rate": "100 kbit/s", "power_factor": 3 });
    json!({ "type": "elf", "power_factor": 3, "flows": { "video1": video, "video2": video } })
}

fn priority_of_table_3() -> Value {
    let video = json!({ "rate": "100 kbit/s" });
    json!({ "type": "strict_priority", "flows": { "video1": video, "video2": video } })
}

fn wfq_of_table_3() -> Value {
    json!({ "type": "wfq", "weights": { "video1": 100, "ftp1": 300, "video2": 100, "ftp2": 300 } })
}

/// With every second frame lost, rates are those of the tables to within the packets that a flow may be ahead.
#[test]
fn tables_2_and_3_with_errors_at_fixed_places() {
    let second = every_second();
    // The paper rounds 110.5 and, in table 3, 166 2/3.
    let rows = [
        (elf_of_table_2(), table_2(&second), [8.0, 350.0, 21.0, 21.0], "table 2, preferable"),
        (wfq_of_table_2(), table_2(&second), [4.0, 175.0, 110.5, 110.5], "table 2, effort"),
        (elf_of_table_3(), table_3(&second), [100.0, 500.0 / 3.0, 100.0, 500.0 / 3.0], "table 3, desirable"),
        (priority_of_table_3(), table_3(&second), [100.0, 250.0, 100.0, 125.0], "table 3, priority"),
        (wfq_of_table_3(), table_3(&second), [100.0, 300.0, 50.0, 150.0], "table 3, effort"),
    ];
    for (scheduler, users, kilobits, what) in rows {
        let found = received(&scheduler, &users);
        println!("{what}: {found:?}");
        assert_rates(&found, kilobits, 3.0, what);
    }
    // Throughput and efficiency of table 3, in packets of 4000: 75 %, 72 % and 67 %.
    let sum = |scheduler| received(&scheduler, &table_3(&second)).iter().sum::<u64>();
    for (sum, kilobits) in
        [(sum(wfq_of_table_3()), 600.0), (sum(priority_of_table_3()), 575.0), (sum(elf_of_table_3()), 1600.0 / 3.0)]
    {
        assert!((sum as f64 - kilobits * 5.0).abs() <= 6.0, "{sum} packets, {kilobits} kbit/s expected");
    }
}

/// The same with random errors, by frame and by time. 4000 exchanges have 2000 successes with a standard deviation of
/// 32; 130 packets are 4 of them, and all but reservations carry it.
#[test]
fn tables_2_and_3_with_random_errors() {
    let by_time = json!({ "type": "bernoulli", "probability": 0.5, "per": "block", "block": "12.75 ms" });
    for errors in [half(), by_time] {
        let rows = [
            (elf_of_table_2(), table_2(&errors), [8.0, 350.0, 21.0, 21.0]),
            (wfq_of_table_2(), table_2(&errors), [4.0, 175.0, 110.5, 110.5]),
            (elf_of_table_3(), table_3(&errors), [100.0, 500.0 / 3.0, 100.0, 500.0 / 3.0]),
            (priority_of_table_3(), table_3(&errors), [100.0, 250.0, 100.0, 125.0]),
            (wfq_of_table_3(), table_3(&errors), [100.0, 300.0, 50.0, 150.0]),
        ];
        for (scheduler, users, kilobits) in rows {
            let found = received(&scheduler, &users);
            assert_rates(&found, kilobits, 130.0, &format!("{scheduler} with {errors}: {found:?}"));
        }
    }
}
