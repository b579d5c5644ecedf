// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! DNS (RFC 1035) and multicast DNS (RFC 6762), by their ports.

use super::{Packet, Protocol};

pub(super) const PROTOCOL: Protocol = Protocol { name: "dns", recognises };

const PORTS: [u16; 2] = [53, 5353];
const HEADER_BYTES: usize = 12;
/// Bytes of the length before a message over TCP.
const LENGTH_BYTES: usize = 2;

fn recognises(packet: &Packet<'_>) -> bool {
    let known = |(source, destination)| PORTS.contains(&source) || PORTS.contains(&destination);
    let over = |contents: Option<((u16, u16), &[u8])>, least| {
        contents.is_some_and(|(ports, bytes)| known(ports) && bytes.len() >= least)
    };
    over(packet.datagram(), HEADER_BYTES) || over(packet.segment(), LENGTH_BYTES + HEADER_BYTES)
}
