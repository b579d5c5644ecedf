// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of Reed-Solomon blocks by hand: 2.04 Mbit/s, so that a block of 255 bytes takes 1 ms, and answers that come
//! 1 ms after the end of a frame.

use std::sync::Arc;

use airpath_core::{Cause, End, EventKind, LinkEvent, PortId, Seed, Span};
use airpath_models::cell::{CellConfig, MediumOfCell, SharedMediumConfig, UserConfig};
use airpath_models::channel::trace::TraceConfig;
use airpath_models::channel::trace_file::ErrorTrace;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::EntityConfig;
use airpath_models::entity::blocks::{BlocksConfig, Policy};
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::medium::MediumChoice;
use airpath_models::{Cell, LinkConfig, Path, PathConfig};
use serde_json::{Value, json};

use super::arq::{over_bins, quality};
use crate::common::*;
use crate::toys::bins::{Conditions, Radio};

/// Payload of BOLD's frames, and of LIGHT's.
const BOLD: u32 = 5 * 255 - 12;
const LIGHT: u32 = 5 * 243 - 12;

pub fn policy(policy: Policy) -> BlocksConfig {
    BlocksConfig { policy, feedback_delay: Span::from_millis(1), ..BlocksConfig::default() }
}

/// Errors of frames: the records of an error trace, which ends with frames that are all right.
pub fn records(text: &str) -> ErrorsConfig {
    if text.is_empty() {
        return ErrorsConfig::default();
    }
    let trace = ErrorTrace::parse(text.as_bytes()).unwrap();
    let process = ErrorProcessConfig::Trace(TraceConfig { file: FileRef::with_data("trace", trace), repeat: false });
    ErrorsConfig { process, per: Per::Frame, ..ErrorsConfig::default() }
}

/// A path whose uplink has these errors.
pub fn path(entity: BlocksConfig, errors: ErrorsConfig) -> PathConfig {
    let link = LinkConfig {
        rate: read("2.04 Mbit/s"),
        send_buffer: read("unlimited"),
        entity: EntityConfig::Blocks(entity),
        ..LinkConfig::default()
    };
    let config = one_hop("radio", LinkConfig { errors, ..link.clone() }, link);
    assert_eq!(config.hops[0].uplink.problems(), []);
    config
}

/// Number and time in ms of each packet that leaves, where packets of these lengths come at 0.
fn left(entity: BlocksConfig, errors: &str, lengths: &[u32]) -> (Vec<(u64, u64)>, Trace) {
    let config = path(entity, records(errors));
    let script = lengths.iter().map(|len| offer(ms(0), PortId::CLIENT, *len)).collect();
    let trace = check_laws_to(|| Path::new(&config, Seed(1)), &script, 1, ms(2_000));
    assert_eq!(trace.held, 0);
    (trace.departures.iter().map(|left| (left.id, left.at.nanos() / 1_000_000)).collect(), trace)
}

/// Blocks and parity of the frames that were sent, from the link log.
fn shapes(trace: &Trace) -> Vec<(u8, u8)> {
    let sent = trace.links.iter().filter(|record| matches!(record.event, LinkEvent::Sent | LinkEvent::Repeated));
    sent.map(|record| (record.blocks.unwrap(), record.parity.unwrap())).collect()
}

/// 1500 bytes are a full frame of 5 ms and, when that is acknowledged at 6 ms, one of a block for the other 237.
#[test]
fn what_does_not_fit_is_cut() {
    let (left, trace) = left(policy(Policy::Bold), "", &[1500, BOLD, BOLD + 1, 0]);
    assert_eq!(shapes(&trace), [(5, 0), (1, 0), (5, 0), (5, 0), (1, 0), (1, 0)]);
    assert_eq!(left, [(1, 7), (2, 13), (3, 21), (4, 23)]);
    let (left, trace) = self::left(policy(Policy::Robust), "", &[169, 170, 340]);
    assert_eq!(shapes(&trace), [(1, 74); 6]);
    assert_eq!(left, [(1, 1), (2, 5), (3, 11)]);
}

/// A damaged frame of LIGHT arrives with six wrong bytes in a block, and not with seven.
#[test]
fn a_code_corrects_half_as_many_bytes_as_it_has_parity_bytes() {
    // Bits of the second block, which begins at bit 2040: bytes 0 to 5 of it, the first one twice.
    let six = "flipped 2040 2041 2048 2056 2064 2072 2080";
    let (left, trace) = left(policy(Policy::Light), six, &[LIGHT]);
    assert_eq!(left, [(1, 5)]);
    assert!(trace.departures[0].flips.is_empty(), "what arrives is as it was sent");
    let (left, trace) = self::left(policy(Policy::Light), &format!("{six} 2088"), &[LIGHT]);
    assert_eq!(left, [(1, 11)]);
    assert_eq!(trace.of_kind(EventKind::FrameRepeated).len(), 1);
    // One in another block counts there.
    assert_eq!(self::left(policy(Policy::Light), &format!("{six} 4080"), &[LIGHT]).0, [(1, 5)]);
    assert_eq!(self::left(policy(Policy::Bold), "flipped 10199", &[BOLD]).0, [(1, 11)]);
}

/// Of 1275 bytes 1263 are enough for LIGHT: 12 bytes of the last block are missing.
#[test]
fn bytes_behind_a_cut_are_missing() {
    assert_eq!(left(policy(Policy::Light), "truncated 1263", &[LIGHT]).0, [(1, 5)]);
    assert_eq!(left(policy(Policy::Light), "truncated 1262", &[LIGHT]).0, [(1, 11)]);
    assert_eq!(left(policy(Policy::Light), "truncated 1265 flipped 8160", &[LIGHT]).0, [(1, 5)]);
    assert_eq!(left(policy(Policy::Light), "truncated 1264 flipped 8160", &[LIGHT]).0, [(1, 11)]);
}

/// FLEX after a cut behind two blocks: the next frame has two, with the bytes from the beginning of the packet. 1263
/// bytes take 498, 498 and 267 of them, the last in two blocks.
#[test]
fn flex_shrinks_to_what_arrives_and_the_retry_carries_fewer_bytes() {
    let (left, trace) = left(policy(Policy::Flex), "truncated 700", &[BOLD]);
    assert_eq!(shapes(&trace), [(5, 0), (2, 0), (2, 0), (2, 0)]);
    assert_eq!(left, [(1, 5 + 1 + 2 + 1 + 2 + 1 + 2)]);
    // Halved by a loss, two blocks; a block more after four frames, of which the fourth is the first of the second packet.
    let (_, trace) = self::left(policy(Policy::Flex), "lost", &[BOLD, BOLD]);
    assert_eq!(shapes(&trace), [(5, 0), (2, 0), (2, 0), (2, 0), (2, 0), (3, 0), (1, 0)]);
}

/// FLEX after frames that are not decoded: a level more each time.
#[test]
fn flex_adds_redundancy_after_errors() {
    let (left, trace) = left(policy(Policy::Flex), "flipped 0\nflipped 0 8 16 24 32 40 48", &[BOLD]);
    // 1263 bytes take five blocks of 231 data bytes, and a sixth.
    assert_eq!(shapes(&trace), [(5, 0), (5, 12), (5, 24), (1, 24)]);
    assert_eq!(left, [(1, 5 + 1 + 5 + 1 + 5 + 1 + 1)]);
    // Five corrected bytes leave too little in reserve: 12.5 of 12.
    let (_, trace) = self::left(policy(Policy::Flex), "flipped 0\nflipped 0 8 16 24 32", &[LIGHT, LIGHT]);
    assert_eq!(shapes(&trace)[1..3], [(5, 12), (5, 24)]);
}

#[test]
fn the_last_try_gives_a_packet_up() {
    let once = BlocksConfig { retransmissions: Some(1), ..policy(Policy::Robust) };
    // The second fragment of the first packet is lost twice.
    let (left, trace) = left(once, "ok\nlost 2\nok", &[300, 100]);
    assert_eq!(left, [(2, 7)]);
    let drops: Vec<_> =
        trace.of_kind(EventKind::Dropped).iter().map(|event| (event.pdu, event.at, event.cause)).collect();
    assert_eq!(drops, [(1, ms(5), Cause::ChannelError)]);
}

/// Frames end at 1, 3 and 5 ms. At 6 ms the first packet is too old to be sent again, and the second to be sent.
#[test]
fn packets_expire() {
    let expires = BlocksConfig { expiry: Some(Span::from_millis(5)), ..policy(Policy::Robust) };
    let (left, trace) = left(expires, "lost 3", &[100, 100]);
    assert_eq!(left, []);
    let drops: Vec<_> =
        trace.of_kind(EventKind::Dropped).iter().map(|event| (event.pdu, event.at, event.cause)).collect();
    assert_eq!(drops, [(1, ms(6), Cause::Expired), (2, ms(6), Cause::Expired)]);
}

/// A grant that is too short for the frame makes it shorter: slots of two blocks, and of less than one.
#[test]
fn short_grants_make_short_frames() {
    let link = LinkConfig {
        send_buffer: read("unlimited"),
        entity: EntityConfig::Blocks(policy(Policy::Bold)),
        ..LinkConfig::default()
    };
    let played = |bits| {
        let radio: Radio =
            Arc::new(move |_, resource, slot| Conditions { bits, quality: quality(false, resource, slot) });
        let machine = over_bins(&link, span("1 ms"), radio);
        run_to(machine, &vec![offer(ms(0), PortId::CLIENT, BOLD)], ms(50))
    };
    let trace = played(4200);
    assert_eq!(trace.ids(PortId::SERVER), [1]);
    assert_eq!(shapes(&trace), [(2, 0), (2, 0), (2, 0)]);
    assert_eq!(shapes(&played(2039)), []);
}

/// A user of a wireless LAN of this entity, all of whose frames have an error in their first byte.
fn on_wifi(entity: Value) -> Trace {
    let link = LinkConfig {
        medium: MediumChoice::Shared("lan".into()),
        entity: serde_json::from_value(entity).unwrap(),
        errors: records(&"flipped 3\n".repeat(100)),
        send_buffer: read("64 packets"),
        ..LinkConfig::default()
    };
    let path = one_hop("radio", link.clone(), link);
    assert_eq!(path.hops[0].uplink.problems(), []);
    let medium = serde_json::from_value(json!({ "standard": "802.11g", "rate": "54 Mbit/s" })).unwrap();
    let media = vec![MediumOfCell { name: "lan".into(), config: SharedMediumConfig::Wifi(medium) }];
    let config = CellConfig { media, users: vec![UserConfig { name: "alice".into(), is_unnamed: false, path }] };
    let script = (0..20).map(|_| offer(ms(0), PortId::of(0, End::Client), 1000)).collect();
    run_to(Cell::new(&config, Seed(1)), &script, ms(10_000))
}

/// On a medium that acknowledges at once the receiver acknowledges what it can decode.
#[test]
fn what_is_decoded_is_acknowledged_at_once() {
    let light = on_wifi(json!({ "type": "blocks", "policy": "light" }));
    assert_eq!(light.departures.len(), 20);
    assert_eq!(light.of_kind(EventKind::FrameRepeated).len(), 0);
    assert_eq!(light.of_kind(EventKind::FrameLost).len(), 0);
    // Without parity, and without blocks, the first hundred frames are lost.
    for entity in [json!({ "type": "blocks", "policy": "bold" }), json!({ "type": "persistent" })] {
        let trace = on_wifi(entity);
        assert_eq!(trace.departures.len(), 20);
        assert_eq!(trace.of_kind(EventKind::FrameLost).len(), 100);
        assert_eq!(trace.of_kind(EventKind::FrameRepeated).len(), 100);
    }
    // FLEX hears that it is not decoded, and adds a level once.
    let flex = on_wifi(json!({ "type": "blocks" }));
    assert_eq!(flex.of_kind(EventKind::FrameLost).len(), 1);
    assert!(shapes(&flex)[1..].iter().all(|(_, parity)| *parity == 12), "{:?}", shapes(&flex));
}
