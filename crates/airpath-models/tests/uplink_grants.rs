// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Requests and grants of the uplink of adaptive OFDM, by hand.

use airpath_core::{End, EventKind, PortId, Seed, Time};
use airpath_models::cell::ofdm::OfdmConfig;
use airpath_models::cell::{CellConfig, MediumOfCell, SharedMediumConfig, UserConfig};
use airpath_models::medium::MediumChoice;
use airpath_models::{Cell, LinkConfig};
use serde_json::{Value, json};

use crate::common::*;

/// Users whose uplink is on the medium, with ARQ of 2 ms, at a steady signal-to-noise ratio in decibels each.
fn cell(medium: Value, ratios: &[f64]) -> CellConfig {
    let mut medium = medium;
    medium.as_object_mut().unwrap().insert("direction".into(), json!("uplink"));
    let config: OfdmConfig = serde_json::from_value(medium).unwrap();
    let users = ratios.iter().enumerate().map(|(number, ratio)| {
        let fading = json!({ "type": "constant", "snr": format!("{ratio} dB") });
        let entity = json!({ "type": "arq", "in_order": false });
        let uplink = LinkConfig {
            medium: MediumChoice::Shared("cell".into()),
            fading: Some(Box::new(serde_json::from_value(fading).unwrap())),
            send_buffer: read("unlimited"),
            entity: serde_json::from_value(entity).unwrap(),
            ..LinkConfig::default()
        };
        let downlink =
            LinkConfig { medium: MediumChoice::default(), fading: None, rate: read("1 Mbit/s"), ..uplink.clone() };
        UserConfig { name: format!("user{number}"), is_unnamed: false, path: one_hop("radio", uplink, downlink) }
    });
    let media = vec![MediumOfCell { name: "cell".into(), config: SharedMediumConfig::Ofdm(config) }];
    CellConfig { media, users: users.collect() }
}

fn medium(resources: u16, slots_per_second: u32, grants: Value) -> Value {
    json!({
        "resources": resources,
        "slots_per_second": slots_per_second,
        "adaptation": { "type": "fixed", "mode": "256-qam" },
        "uplink_grants": grants,
    })
}

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn from(user: u16, at: Time, len: u32) -> (Time, Action) {
    offer(at, PortId::of(user, End::Client), len)
}

fn play(config: &CellConfig, script: &Script) -> Trace {
    check_laws_to(|| Cell::new(config, Seed(1)), script, 1, ms(200))
}

fn left(trace: &Trace) -> Vec<(u64, u64)> {
    trace.departures.iter().map(|left| (left.id, left.at.nanos())).collect()
}

/// Slots of 1/1500 s; a frame carries 108 octets. The packet comes at 0.3 ms. Request at 5 ms, known at 7 ms; slot 11
/// (7,333,333 ns) decides, and 4 ms are six slots: it is sent in slot 17 (11,333,333 ns), which ends at 12 ms.
#[test]
fn a_packet_waits_for_opportunity_request_decision_and_grant() {
    let config = cell(medium(1, 1500, json!({})), &[60.0]);
    let trace = play(&config, &vec![from(0, at(300_000), 100)]);
    assert_eq!(left(&trace), [(1, 12_000_000)]);
    // A packet that comes at the very opportunity is later than that: request at 10 ms, decision in slot 18, grant in
    // slot 24, which begins at 16 ms.
    let trace = play(&config, &vec![from(0, at(5_000_000), 100)]);
    assert_eq!(left(&trace), [(1, 16_666_666)]);
    // Without delays, and with an opportunity each millisecond: request at 1 ms, slot 2 (1,333,333 ns).
    let quick = json!({ "request_period": "1 ms", "request_delay": "0 s", "grant_delay": "0 s" });
    let trace = play(&cell(medium(1, 1500, quick), &[60.0]), &vec![from(0, at(300_000), 100)]);
    assert_eq!(left(&trace), [(1, 2_000_000)]);
    // 4 ms and a nanosecond are seven slots.
    let more = json!({ "grant_delay": "4000001 ns" });
    let trace = play(&cell(medium(1, 1500, more), &[60.0]), &vec![from(0, at(300_000), 100)]);
    assert_eq!(left(&trace), [(1, 12_666_666)]);
}

/// Slots of 1 ms, four resources. The request is worth one frame, in slot 11 (5 + 2 + 4 ms), which reports the five
/// frames behind it at 12 ms. Slots 12 and 13 decide on four and one of them, for slots 16 and 17.
#[test]
fn the_scheduler_learns_of_the_backlog_with_the_first_frame() {
    let config = cell(medium(4, 1000, json!({})), &[60.0]);
    let script: Script = (0..6).map(|_| from(0, at(1), 108)).collect();
    let trace = play(&config, &script);
    let ms = 1_000_000;
    assert_eq!(left(&trace), [(1, 12 * ms), (2, 17 * ms), (3, 17 * ms), (4, 17 * ms), (5, 17 * ms), (6, 18 * ms)]);
}

/// Three frames in slots 11, 16 and 17 as above, one resource. A packet that comes at 12.5 ms is reported with the frame
/// of slot 16, at 17 ms, and goes in slot 21. One that comes at 21.5 ms is reported by nothing: it takes a request at
/// 25 ms, slot 27 decides, slot 31.
#[test]
fn frames_report_what_comes_meanwhile() {
    let config = cell(medium(1, 1000, json!({})), &[60.0]);
    let script =
        vec![from(0, at(1), 108), from(0, at(1), 108), from(0, at(12_500_000), 108), from(0, at(21_500_000), 108)];
    let ms = 1_000_000;
    // Slot 16 carries the second packet, slot 21 the third.
    assert_eq!(left(&play(&config, &script)), [(1, 12 * ms), (2, 17 * ms), (3, 22 * ms), (4, 32 * ms)]);
}

/// A grant that finds nothing passes unused: with two grants under way for one frame and a half, each carries what is
/// there. What is granted counts as sent: four frames are granted four times, not more.
#[test]
fn what_is_granted_is_not_granted_again() {
    let config = cell(medium(1, 1000, json!({})), &[60.0]);
    let script: Script = (0..5).map(|_| from(0, at(1), 108)).collect();
    let trace = play(&config, &script);
    let ms = 1_000_000;
    // The report of slot 11 says four frames; slots 12 to 15 grant one each.
    assert_eq!(left(&trace), [(1, 12 * ms), (2, 17 * ms), (3, 18 * ms), (4, 19 * ms), (5, 20 * ms)]);
    assert_eq!(trace.of_kind(EventKind::FrameSent).len(), 5);
}

/// At -30 dB every frame has errors. That of slot 11 is to be repeated, as the scheduler notices at 12 ms: it grants
/// slot 16; the answer of the ARQ came at 14 ms. So it goes on every five slots, without another request.
#[test]
fn repetitions_are_granted_without_a_request() {
    let mut config = cell(medium(1, 1000, json!({})), &[-30.0]);
    let hop = &mut config.users[0].path.hops[0];
    for link in [&mut hop.uplink, &mut hop.downlink] {
        link.entity = serde_json::from_value(json!({ "type": "arq", "retransmissions": 2 })).unwrap();
    }
    let trace = play(&config, &vec![from(0, at(1), 108)]);
    let started: Vec<u64> =
        trace.of_kind(EventKind::FrameStarted).iter().map(|event| event.at.nanos() / 1_000_000).collect();
    assert_eq!(started, [11, 16, 21]);
    assert_eq!(trace.departures.len(), 1, "delivered as it is after the last try");
}

/// Two users who request at once share the slots: each has one resource of two in slot 11, and what they report
/// together fills slot 16.
#[test]
fn users_who_request_together_share_the_slot() {
    let config = cell(medium(2, 1000, json!({})), &[60.0, 60.0]);
    let script: Script = (0..4).map(|packet| from(packet % 2, at(1), 108)).collect();
    let ms = 1_000_000;
    assert_eq!(left(&play(&config, &script)), [(1, 12 * ms), (2, 12 * ms), (3, 17 * ms), (4, 17 * ms)]);
}

/// Without delays, opportunities in each slot, and frames that take all that waits: as with the scheduler that knows at
/// once, but for the wait until the opportunity.
#[test]
fn the_ideal_scheduler_is_the_limit_of_short_delays() {
    let quick = json!({ "request_period": "1 ns", "request_delay": "0 s", "grant_delay": "0 s" });
    let script: Script = (0..40).map(|packet| from(0, at(700_000 + packet * 3_000_000), 90)).collect();
    let granted = play(&cell(medium(1, 1000, quick), &[60.0]), &script);
    let ideal = play(&cell(medium(1, 1000, Value::Null), &[60.0]), &script);
    assert_eq!(left(&granted), left(&ideal));
}

/// Each error names its key.
#[test]
fn grants_that_cannot_be_are_refused() {
    let keys = |medium: Value| -> Vec<String> {
        let config: OfdmConfig = serde_json::from_value(medium).unwrap();
        SharedMediumConfig::Ofdm(config).problems().into_iter().map(|problem| problem.key).collect()
    };
    assert_eq!(keys(json!({ "uplink_grants": {} })), ["uplink_grants"]);
    let never = json!({ "request_period": "0 s", "grant_delay": "1 min" });
    let expected = ["uplink_grants.request_period", "uplink_grants.grant_delay"];
    assert_eq!(keys(json!({ "direction": "both", "uplink_grants": never })), expected);
}
