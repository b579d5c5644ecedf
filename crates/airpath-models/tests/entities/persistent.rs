// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Persistent retransmission by hand: 1 Mbit/s, so that a packet of 125 bytes takes 1 ms, and acknowledgements that
//! come 1 ms after the end of a frame.

use airpath_core::{Cause, EventKind, PortId, Seed, Span};
use airpath_models::entity::EntityConfig;
use airpath_models::entity::persistent::PersistentConfig;
use airpath_models::{LinkConfig, Path, PathConfig};
use serde_json::json;

use crate::common::*;

/// A path whose uplink loses the frames with these numbers, counted from 1.
fn path(entity: PersistentConfig, lost: &[u64]) -> PathConfig {
    let errors = match lost {
        [] => json!({ "type": "none" }),
        lost => {
            let positions = lost.iter().map(|number| (number - 1).to_string()).collect::<Vec<_>>().join(", ");
            json!({ "type": "positions", "positions": positions, "per": "frame" })
        }
    };
    let errors = serde_json::from_value(errors).unwrap();
    let link = LinkConfig {
        rate: read("1 Mbit/s"),
        send_buffer: read("unlimited"),
        entity: EntityConfig::Persistent(PersistentConfig { feedback_delay: Span::from_millis(1), ..entity }),
        ..LinkConfig::default()
    };
    one_hop("radio", LinkConfig { errors, ..link.clone() }, link)
}

/// Number and time in ms of each packet that leaves, where so many come at 0.
fn left(entity: PersistentConfig, lost: &[u64], packets: u32) -> (Vec<(u64, u64)>, Trace) {
    let config = path(entity, lost);
    assert_eq!(config.hops[0].uplink.problems(), []);
    let script = (0..packets).map(|_| offer(ms(0), PortId::CLIENT, 125)).collect();
    let trace = check_laws_to(|| Path::new(&config, Seed(1)), &script, 1, ms(500));
    (trace.departures.iter().map(|left| (left.id, left.at.nanos() / 1_000_000)).collect(), trace)
}

const PLAIN: PersistentConfig =
    PersistentConfig { retransmissions: None, expiry: None, window: 64, feedback_delay: Span::ZERO };

/// The loss of the first frame is known at 2 ms, as the second frame ends: the packet goes again from 2 to 3 ms.
#[test]
fn what_is_lost_is_repeated_before_new_packets_and_order_is_kept() {
    let (left, trace) = left(PLAIN, &[1], 4);
    assert_eq!(left, [(1, 3), (2, 3), (3, 4), (4, 5)]);
    assert_eq!(trace.of_kind(EventKind::FrameRepeated).len(), 1);
}

/// With a window of one packet, each waits for the acknowledgement of the one before.
#[test]
fn a_window_of_one_stops_and_waits() {
    let stop = PersistentConfig { window: 1, ..PLAIN };
    assert_eq!(left(stop, &[], 3).0, [(1, 1), (2, 3), (3, 5)]);
    assert_eq!(left(stop, &[2, 3], 3).0, [(1, 1), (2, 7), (3, 9)]);
}

/// One retransmission: the second loss of a packet is its last, and those behind it wait no longer.
#[test]
fn the_last_try_gives_a_packet_up() {
    let once = PersistentConfig { retransmissions: Some(1), window: 1, ..PLAIN };
    let (left, trace) = left(once, &[1, 2], 3);
    assert_eq!(left, [(2, 5), (3, 7)]);
    let drops = trace.of_kind(EventKind::Dropped);
    assert_eq!(
        drops.iter().map(|event| (event.pdu, event.at, event.cause)).collect::<Vec<_>>(),
        [(1, ms(3), Cause::ChannelError)]
    );
}

/// The first packet is lost in its tries from 0, 2 and 4 ms. It has expired when that is known at 6 ms, and the fourth,
/// which has not been sent, at 5 ms. Nothing follows, so that a request of 24 octets (192 us) tells the receiving end.
#[test]
fn an_expired_packet_is_told_to_the_receiving_end() {
    let expires = PersistentConfig { expiry: Some(Span::from_millis(5)), ..PLAIN };
    let (_, trace) = left(expires, &[1, 3, 5], 4);
    let drops: Vec<_> =
        trace.of_kind(EventKind::Dropped).iter().map(|event| (event.pdu, event.at, event.cause)).collect();
    assert_eq!(drops, [(4, ms(5), Cause::Expired), (1, ms(6), Cause::Expired)]);
    let sent: Vec<u64> = trace.of_kind(EventKind::FrameSent).iter().map(|event| event.bits).collect();
    assert_eq!(sent, [1000, 1000, 1000, 1000, 1000, 192]);
    let left: Vec<_> = trace.departures.iter().map(|left| (left.id, left.at.nanos())).collect();
    assert_eq!(left, [(2, 6_192_000), (3, 6_192_000)]);
}

/// Half of all frames are lost: everything arrives once, in order.
#[test]
fn everything_arrives_in_order_however_many_frames_are_lost() {
    let errors = json!({ "type": "bernoulli", "probability": 0.5, "per": "frame" });
    let mut config = path(PLAIN, &[]);
    config.hops[0].uplink.errors = serde_json::from_value(errors).unwrap();
    let script = (0..500).map(|packet| offer(ms(packet), PortId::CLIENT, 125)).collect();
    let trace = run_to(Path::new(&config, Seed(3)), &script, ms(5_000));
    assert_eq!(trace.ids(PortId::SERVER), (1..=500).collect::<Vec<u64>>());
    // Each packet takes 1 / (1 - p) tries: 99.99 % of the sums lie within 3.9 standard deviations.
    let tries = 500.0 + trace.of_kind(EventKind::FrameRepeated).len() as f64;
    let deviation = (500.0f64 * 0.5 / 0.25).sqrt();
    assert!((tries - 1000.0).abs() < 3.9 * deviation, "{tries} tries");
}
