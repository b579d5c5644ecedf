// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! UDP-Lite (RFC 3828), of which tcpdump knows the number alone.

use super::{Packet, Protocol, Sequences, Told, contents, is_of, word};
use crate::protocol::UDP_LITE;

pub(super) const PROTOCOL: Protocol = Protocol { name: "udp-lite", number: Some(UDP_LITE), recognises, prints };

const HEADER_BYTES: u32 = 8;

fn recognises(packet: &Packet<'_>) -> bool {
    is_of(packet, UDP_LITE)
}

fn prints(packet: &Packet<'_>, sequences: &mut Sequences) -> Option<Told> {
    let bytes = packet.upper();
    if bytes.len() < HEADER_BYTES as usize {
        return Some(Told::Instead(" [|udp-lite]".into()));
    }
    let coverage = match word(bytes, 4)? {
        0 => "all".into(),
        bytes => bytes.to_string(),
    };
    let length = packet.upper_length().saturating_sub(HEADER_BYTES);
    let text = format!("UDP-Lite, coverage {coverage}, length {length}");
    // What a datagram carries is told behind that.
    Some(Told::Instead(match contents(packet, sequences) {
        Some(Told::Instead(more)) => format!("{text}: {more}"),
        Some(Told::Behind(more)) => text + &more,
        None => text,
    }))
}
