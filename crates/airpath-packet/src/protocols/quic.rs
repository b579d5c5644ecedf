// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! QUIC (RFC 9000, RFC 9369): long headers by their version, short headers by port 443.

use super::{Packet, Protocol, Sequences, Told};

pub(super) const PROTOCOL: Protocol = Protocol { name: "quic", number: None, recognises, prints };

const PORT: u16 = 443;
/// Version negotiation, version 1, version 2.
const VERSIONS: [[u8; 4]; 3] = [[0; 4], [0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];
const LONGEST_CONNECTION_ID_BYTES: u8 = 20;
/// Types of long headers of version 1 by their number; version 2 counts from the last one.
const TYPES: [&str; 4] = ["initial", "0-rtt", "handshake", "retry"];

/// A header, as far as it can be read without keys.
enum Header<'a> {
    Long { first: u8, version: [u8; 4], ids: &'a [u8] },
    Short,
}

fn read<'a>(packet: &Packet<'a>) -> Option<Header<'a>> {
    let (ports, bytes) = packet.datagram()?;
    match bytes {
        // The fixed bit of version negotiation may have any value.
        [first, a, b, c, d, length, ..] if first & 0x80 != 0 => {
            let version = [*a, *b, *c, *d];
            let fits = VERSIONS.contains(&version)
                && (first & 0x40 != 0 || version == VERSIONS[0])
                && *length <= LONGEST_CONNECTION_ID_BYTES;
            fits.then_some(Header::Long { first: *first, version, ids: &bytes[5..] })
        }
        [first, ..] => {
            let fits = first & 0xc0 == 0x40 && (ports.0 == PORT || ports.1 == PORT);
            fits.then_some(Header::Short)
        }
        [] => None,
    }
}

fn recognises(packet: &Packet<'_>) -> bool {
    read(packet).is_some()
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    let Header::Long { first, version, ids } = read(packet)? else {
        return Some(Told::Behind(": QUIC, protected".into()));
    };
    let number = usize::from(first >> 4 & 3);
    let (kind, version) = match VERSIONS.iter().position(|known| *known == version) {
        Some(1) => (TYPES[number], ", version 1"),
        Some(2) => (TYPES[(number + 3) % 4], ", version 2"),
        _ => ("version negotiation", ""),
    };
    let mut text = format!(": QUIC, {kind}{version}");
    let mut rest = ids;
    for name in ["dcid", "scid"] {
        let Some((length, behind)) = rest.split_first() else { break };
        let Some((id, behind)) = behind.split_at_checked(usize::from(*length)) else { break };
        text += &format!(", {name} 0x");
        text.extend(id.iter().map(|byte| format!("{byte:02x}")));
        rest = behind;
    }
    Some(Told::Behind(text))
}
