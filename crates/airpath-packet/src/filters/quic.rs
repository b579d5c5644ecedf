// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! QUIC (RFC 9000, RFC 9369): long headers by their version, short headers by port 443.

use super::{Packet, Protocol};

pub(super) const PROTOCOL: Protocol = Protocol { name: "quic", recognises };

const PORT: u16 = 443;
/// Version negotiation, version 1, version 2.
const VERSIONS: [[u8; 4]; 3] = [[0; 4], [0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]];
const LONGEST_CONNECTION_ID_BYTES: u8 = 20;

fn recognises(packet: &Packet<'_>) -> bool {
    let Some((ports, bytes)) = packet.datagram() else { return false };
    match bytes {
        // The fixed bit of version negotiation may have any value.
        [first, a, b, c, d, length, ..] if first & 0x80 != 0 => {
            let version = [*a, *b, *c, *d];
            VERSIONS.contains(&version)
                && (first & 0x40 != 0 || version == VERSIONS[0])
                && *length <= LONGEST_CONNECTION_ID_BYTES
        }
        [first, ..] => first & 0xc0 == 0x40 && (ports.0 == PORT || ports.1 == PORT),
        [] => false,
    }
}
