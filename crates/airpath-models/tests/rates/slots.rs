// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Slots that carry so many bits.

use airpath_core::EventKind;
use airpath_models::medium::VaryingConfig;
use airpath_models::medium::rate::slotted::SlottedConfig;
use airpath_models::{Fragmentation, LastFrame, LinkConfig};

use super::{MS, arrivals_ms, play, play_link, sends, sends_ms};
use crate::common::{Script, Trace, read};

pub fn slots(slot: &str, bits: &str, period: Option<&str>, offset: &str) -> VaryingConfig {
    VaryingConfig::Slotted(SlottedConfig {
        slot: read(slot),
        bits: read(bits),
        period: period.map(read),
        offset: read(offset),
    })
}

/// With a send buffer that does not matter.
fn play_slots(rate: &VaryingConfig, script: &Script) -> Trace {
    let rate = rate.clone().into();
    play_link(LinkConfig { rate, send_buffer: read("unlimited"), ..LinkConfig::default() }, script)
}

#[test]
fn what_is_there_when_a_slot_begins_arrives_when_it_ends() {
    // Slots from 2 to 3 ms, 12 to 13 ms, …
    let rate = slots("1 ms", "1000 bit", Some("10 ms"), "2 ms");
    let trace = play_slots(&rate, &sends(&[(0, 100), (2 * MS, 100), (12 * MS - 1, 1), (22 * MS + 1, 1)]));
    // 800 + 8 bit fit into the second slot, which the packet of 2 ms has to wait for.
    assert_eq!(arrivals_ms(&trace), [3, 13, 13, 33]);
}

#[test]
fn frames_span_slots_and_share_them() {
    // Slots without gaps; the packets are there for the one from 1 to 2 ms.
    let rate = slots("1 ms", "1000 bit", None, "0 s");
    let trace = play_slots(&rate, &sends(&[(1, 300), (1, 50), (1, 50)]));
    // 2400 bit end in the third slot (3 to 4 ms), together with the 400 bit of the second packet and
    // 200 of the third, whose other 200 go in the slot behind.
    assert_eq!(arrivals_ms(&trace), [4, 4, 5]);
    // A send buffer of one packet takes the next one when a slot has ended, for the one that begins.
    let trace = play(rate.clone(), &sends(&[(1, 300), (1, 50), (1, 50)]));
    assert_eq!(arrivals_ms(&trace), [4, 5, 6]);
    // A slot without anything to send is lost: nothing is saved up.
    let trace = play_slots(&rate, &sends(&[(10 * MS + 1, 125), (10 * MS + 1, 125)]));
    assert_eq!(arrivals_ms(&trace), [12, 13]);
}

#[test]
fn radio_blocks_of_gprs_in_slots() {
    // CS-1 (3GPP TS 45.003): a block of 181 bit every 20 ms; an IP packet of 40 bytes is two blocks.
    let fragmentation = Some(Fragmentation {
        frame_payload: read("160 bit"),
        frame_header: read("21 bit"),
        last_frame: LastFrame::Padded,
    });
    let link =
        LinkConfig { rate: slots("20 ms", "181 bit", None, "0 s").into(), fragmentation, ..LinkConfig::default() };
    let trace = play_link(link, &sends_ms(&[(5, 40), (5, 60)]));
    assert_eq!(arrivals_ms(&trace), [60, 120]);
    assert_eq!(trace.of_kind(EventKind::FrameSent).len(), 5);
}
