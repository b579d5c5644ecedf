// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! UDP (RFC 768).

use super::{Packet, Protocol, Sequences, Told, is_of, with_contents, word};
use crate::protocol::UDP;

pub(super) const PROTOCOL: Protocol = Protocol { name: "udp", number: Some(UDP), recognises, prints };

const HEADER_BYTES: u32 = 8;

fn recognises(packet: &Packet<'_>) -> bool {
    is_of(packet, UDP)
}

fn prints(packet: &Packet<'_>, sequences: &mut Sequences) -> Option<Told> {
    let bytes = packet.upper();
    let told = |text: String| Some(Told::Instead(text));
    let whole = packet.upper_length();
    if whole < HEADER_BYTES && bytes.len() >= 4 {
        return told(format!("truncated-udp {whole}"));
    }
    if bytes.len() < HEADER_BYTES as usize {
        return told(" [|udp]".into());
    }
    let stated = u32::from(word(bytes, 4)?);
    let there = whole.saturating_sub(HEADER_BYTES);
    let Some(payload) = stated.checked_sub(HEADER_BYTES) else {
        return told(format!("truncated-udplength {stated}"));
    };
    // The length is that of the whole datagram: of a fragment, it is no mistake that more is stated than is there.
    let is_fragment = packet.headers.is_some_and(|headers| headers.fragment.is_some());
    let own = if payload > there && !is_fragment {
        format!("UDP, bad length {payload} > {there}")
    } else {
        format!("UDP, length {payload}")
    };
    Some(with_contents(own, packet, sequences))
}
