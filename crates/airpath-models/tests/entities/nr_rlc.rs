// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RLC of NR by hand: slots of 1 ms, packets that come together before the slot that begins at 1 ms, which is slot 0
//! here. PDCP adds 2 octets to a packet, MAC 2 to a PDU of up to 255.

use std::sync::Arc;

use airpath_core::{Cause, Direction, EventKind, LinkEvent, LinkFrame, PortId, Time};
use airpath_models::LinkConfig;
use airpath_models::channel::ErrorsConfig;
use airpath_models::entity::EntityConfig;
use airpath_models::entity::nr_rlc::NrRlcConfig;
use serde_json::{Value, json};

use super::arq::{arq_link, over_bins, quality};
use crate::common::*;
use crate::toys::bins::{Conditions, Radio};

/// Arrival of the packets.
const BEFORE: Time = Time::from_nanos(1);

/// An entity without HARQ's repetitions unless `keys` say otherwise.
pub fn rlc(mut keys: Value) -> NrRlcConfig {
    let table = keys.as_object_mut().unwrap();
    table.entry("harq").or_insert(json!({ "retransmissions": 0 }));
    serde_json::from_value(keys).unwrap()
}

/// A link of it whose send buffer is unlimited.
pub fn rlc_link(config: &NrRlcConfig) -> LinkConfig {
    let entity = EntityConfig::NrRlc(config.clone());
    LinkConfig { entity, ..arq_link(&Default::default(), ErrorsConfig::default()) }
}

/// One bin whose slots have `bits` by number (the last one from there on), with errors in the slots of `hit`, by
/// direction.
fn radio(bits: &'static [u64], hit: [&'static [u64]; 2]) -> Radio {
    Arc::new(move |direction, resource, slot| {
        let number = slot - 1;
        let bits = if resource == 0 { bits[(number as usize).min(bits.len() - 1)] } else { 0 };
        let is_hit = hit[direction as usize].contains(&number);
        Conditions { bits, quality: quality(is_hit, resource, slot) }
    })
}

fn play(keys: Value, lengths: &[u32], radio: Radio) -> Trace {
    let script: Script = lengths.iter().map(|len| offer(BEFORE, PortId::CLIENT, *len)).collect();
    check_laws_to(|| over_bins(&rlc_link(&rlc(keys.clone())), span("1 ms"), radio.clone()), &script, 1, ms(2_000))
}

/// Number and time in ms of each packet that left, in that order.
fn left(trace: &Trace) -> Vec<(u64, u64)> {
    trace.departures.iter().map(|left| (left.id, left.at.nanos() / 1_000_000 - 1)).collect()
}

fn drops(trace: &Trace) -> Vec<(u64, Cause, u64)> {
    let of = |event: &&airpath_core::Event| (event.pdu, event.cause, event.at.nanos() / 1_000_000 - 1);
    trace.of_kind(EventKind::Dropped).iter().map(of).collect()
}

/// 100 octets a slot, packets of 127 octets with PDCP. With numbers of 12 bits a first segment has a header of 2
/// octets, a later one of 4. Slot 0: 96 octets. Slot 1: 31, then 59 of packet 2. Slot 2: 68, then 22 of packet 3.
/// Slot 3: 94, slot 4: 11.
#[test]
fn segments_fill_the_grants_to_the_octet() {
    let trace = play(json!({ "mode": "um" }), &[125, 125, 125], radio(&[800], [&[], &[]]));
    assert_eq!(left(&trace), [(1, 2), (2, 3), (3, 5)]);
    let sent: Vec<_> = trace.links.iter().filter(|row| row.event == LinkEvent::Sent).map(|row| row.n_s).collect();
    assert_eq!(sent, [Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), Some(2)]);
    // One octet more in slot 4 is one too many: 94 + 12 of a packet of 128 octets.
    let trace = play(json!({ "mode": "um" }), &[125, 125, 126], radio(&[800, 800, 800, 800, 136, 144], [&[], &[]]));
    assert_eq!(left(&trace), [(1, 2), (2, 3), (3, 6)]);
    // A whole packet has no number and a header of one octet: 97 with PDCP fit, in acknowledged mode 96.
    let um = play(json!({ "mode": "um" }), &[95, 95], radio(&[800], [&[], &[]]));
    assert_eq!(left(&um), [(1, 1), (2, 2)]);
    assert!(um.links.iter().all(|row| row.n_s.is_none()));
    assert_eq!(left(&play(json!({}), &[94, 94], radio(&[800], [&[], &[]]))), [(1, 1), (2, 2)]);
    assert_eq!(left(&play(json!({}), &[95, 94], radio(&[800], [&[], &[]]))), [(1, 2), (2, 3)]);
    // Numbers of 18 bits take an octet more, PDCP with 18 bits another one.
    let long = json!({ "sn_bits": 18, "pdcp": { "sn_bits": 18 } });
    assert_eq!(left(&play(long.clone(), &[92, 92], radio(&[800], [&[], &[]]))), [(1, 1), (2, 2)]);
    assert_eq!(left(&play(long, &[93, 92], radio(&[800], [&[], &[]]))), [(1, 2), (2, 3)]);
}

/// The block of slot 1 is lost with packet 2. Packet 3 comes at 3 ms and is held for 10 ms, packet 4 with it.
#[test]
fn a_lost_packet_holds_later_ones_back_for_t_reordering() {
    let play = |pdcp: Value| play(json!({ "mode": "um", "pdcp": pdcp }), &[120; 4], radio(&[1000], [&[1], &[]]));
    let trace = play(json!({ "t_reordering": "10 ms" }));
    assert_eq!(left(&trace), [(1, 1), (3, 13), (4, 13)]);
    assert_eq!(drops(&trace), [(2, Cause::ChannelError, 2)]);
    assert_eq!(trace.held, 0);
    assert_eq!(left(&play(json!({ "out_of_order": true }))), [(1, 1), (3, 3), (4, 4)]);
    let trace = play(json!({ "t_reordering": "never" }));
    assert_eq!((left(&trace), trace.held), (vec![(1, 1)], 2));
}

/// The first segment of packet 1 (96 octets of 127) is in the block of slot 0, which HARQ repeats 6 ms after its
/// arrival, in slot 7. Packet 2 is complete in slot 2. t-Reassembly runs from 2 ms on, when the second segment comes.
#[test]
fn a_segment_behind_t_reassembly_is_too_late() {
    let play = |t_reassembly: &str| {
        let harq = json!({ "retransmissions": 3, "feedback_delay": "6 ms" });
        let keys = json!({ "mode": "um", "t_reassembly": t_reassembly, "harq": harq });
        play(keys, &[125, 125], radio(&[800], [&[0], &[]]))
    };
    assert_eq!(left(&play("7 ms")), [(1, 8), (2, 8)]);
    let trace = play("5 ms");
    // Given up at 7 ms; packet 2 waits for t-Reordering (100 ms) from 3 ms on.
    assert_eq!(left(&trace), [(2, 103)]);
    assert_eq!(drops(&trace), [(1, Cause::TooLate, 7)]);
}

/// Packets of 119 octets fill the slots. That of slot 1 is lost; the poll comes with packet 4 at 4 ms, and waits until
/// t-Reassembly, which began at 3 ms, has expired at 38 ms. The STATUS PDU goes in slot 38, the repetition in slot 39.
#[test]
fn what_a_status_pdu_reports_is_sent_again() {
    let trace = play(json!({}), &[119; 4], radio(&[1000], [&[1], &[]]));
    assert_eq!(left(&trace), [(1, 1), (2, 40), (3, 40), (4, 40)]);
    let status: Vec<u64> = trace
        .links
        .iter()
        .filter(|row| row.event == LinkEvent::Sent && row.frame == LinkFrame::Status)
        .map(|row| row.at.nanos() / 1_000_000 - 1)
        .collect();
    // The repetition polls, since nothing is left behind it.
    assert_eq!(status, [38, 40]);
    // Where the STATUS PDU is lost, t-PollRetransmit expires 45 ms after the poll of slot 3: packet 4 again in slot 48,
    // which is answered in slot 49.
    let trace = play(json!({}), &[119; 4], radio(&[1000], [&[1], &[38]]));
    assert_eq!(left(&trace), [(1, 1), (2, 51), (3, 51), (4, 51)]);
    assert_eq!(trace.of_kind(EventKind::Dropped).len(), 0);
}

/// The only PDU is lost with its poll. 45 ms later it is repeated in slots of 62 octets: 58, 56 and 7 of 121 octets.
#[test]
fn a_repetition_is_cut_into_segments_that_fit() {
    let trace = play(json!({}), &[119], radio(&[1000, 500], [&[0], &[]]));
    assert_eq!(left(&trace), [(1, 48)]);
    // The segment of slot 46 is lost as well: the poll of slot 47 is answered when t-Reassembly (10 ms) has expired, at
    // 58 ms. Only those 56 octets are sent again, in slot 59.
    let trace = play(json!({ "t_reassembly": "10 ms" }), &[119], radio(&[1000, 500], [&[0, 46], &[]]));
    assert_eq!(left(&trace), [(1, 60)]);
    let bits: Vec<u64> = trace
        .of_kind(EventKind::FrameSent)
        .iter()
        .filter(|event| event.direction == Direction::Uplink)
        .map(|event| event.bits)
        .collect();
    assert_eq!(bits, [1000, 500, 500, 500, 500]);
}

/// STATUS PDUs are 20 ms apart at least: the second poll comes at 2 ms, and its answer waits until 21 ms.
#[test]
fn status_pdus_keep_their_distance() {
    let status = |prohibit: &str| -> Vec<u64> {
        let keys = json!({ "t_status_prohibit": prohibit, "poll_pdu": 1 });
        let trace = play(keys, &[119, 119], radio(&[1000], [&[], &[]]));
        let is_status =
            |row: &&airpath_core::LinkRecord| row.event == LinkEvent::Sent && row.frame == LinkFrame::Status;
        trace.links.iter().filter(is_status).map(|row| row.at.nanos() / 1_000_000 - 1).collect()
    };
    assert_eq!(status("0 ms"), [1, 2]);
    assert_eq!(status("20 ms"), [1, 21]);
}

/// Nothing arrives before slot 60. The poll of slot 0 is repeated every 20 ms: RETX_COUNT is 0 at 20 ms, 1 at 40 ms,
/// and 2 at 60 ms, where the flow begins anew; the packet is lost. The next one goes as number 0 of the new flow.
#[test]
fn a_packet_that_is_repeated_too_often_resets_the_flow() {
    let keys = json!({ "t_poll_retransmit": "20 ms", "max_retx_threshold": 2 });
    let hits: &'static [u64] = &[0, 20, 40];
    let script = vec![offer(BEFORE, PortId::CLIENT, 119), offer(ms(71), PortId::CLIENT, 119)];
    let machine = || over_bins(&rlc_link(&rlc(keys.clone())), span("1 ms"), radio(&[1000], [hits, &[]]));
    let trace = check_laws_to(machine, &script, 1, ms(1_000));
    assert_eq!(drops(&trace), [(1, Cause::LinkReset, 60)]);
    let resets: Vec<u64> =
        trace.of_kind(EventKind::LinkReset).iter().map(|event| event.at.nanos() / 1_000_000 - 1).collect();
    assert_eq!(resets, [60]);
    // It comes as slot 70 begins, and is there at 71 ms; PDCP misses packet 1 for 100 ms.
    assert_eq!(left(&trace), [(2, 71 + 100)]);
    assert_eq!(trace.held, 0);
}

/// Each error names its key.
#[test]
fn parameters_that_do_not_fit_are_refused() {
    let keys = |keys: Value| -> Vec<String> {
        let config: NrRlcConfig = serde_json::from_value(keys).unwrap();
        EntityConfig::NrRlc(config).problems().into_iter().map(|problem| problem.key).collect()
    };
    assert!(keys(json!({})).is_empty());
    assert_eq!(keys(json!({ "mode": "um", "sn_bits": 18 })), ["sn_bits"]);
    assert_eq!(keys(json!({ "mode": "am", "sn_bits": 6 })), ["sn_bits"]);
    assert_eq!(keys(json!({ "pdcp": { "sn_bits": 16 } })), ["pdcp.sn_bits"]);
    assert_eq!(keys(json!({ "t_poll_retransmit": "0 s", "max_retx_threshold": 0 })).len(), 2);
    assert_eq!(keys(json!({ "harq": { "repeat": "resegment" } })), ["harq.repeat"]);
    assert_eq!(keys(json!({ "harq": { "repeat": "hold", "combining": "chase" } })), ["harq.combining"]);
}
