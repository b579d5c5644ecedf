// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The reader of headers.

use super::{Fragment, Headers, IPV4_BYTES, IPV6_BYTES, TransportHeader, ip_header_bytes};
use crate::protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ICMP, ICMPV6, ROUTING, TCP, UDP, UDP_LITE};

const FRAGMENT_BYTES: usize = 8;
/// Bytes of a fragment header up to the end of the offset.
const FRAGMENT_OFFSET_BYTES: usize = 4;
const SHORTEST_TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const ICMP_BYTES: usize = 8;

/// Extent of the bytes of a packet that are at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it: what is missing is not there.
    Whole,
    /// Its beginning: what is missing was cut off.
    Beginning,
}

#[inline]
pub(super) fn headers(packet: &[u8], extent: Extent) -> Option<Headers> {
    match packet.first()? >> 4 {
        4 => ipv4(packet, extent),
        6 => ipv6(packet, extent),
        _ => None,
    }
}

fn ipv4(packet: &[u8], extent: Extent) -> Option<Headers> {
    let ip_bytes = ip_header_bytes(packet);
    let least = if extent == Extent::Whole { ip_bytes } else { IPV4_BYTES };
    if ip_bytes < IPV4_BYTES || packet.len() < least {
        return None;
    }
    let protocol = packet[9];
    let place = word(packet, 6)?;
    let fragment = Fragment::new(u32::from(place & 0x1fff) * 8, place & 0x2000 != 0);
    let headers = Headers {
        version: 4,
        ip_bytes,
        protocol,
        stated_bytes: usize::from(word(packet, 2)?),
        traffic_class: packet[1],
        fragment,
        transport: None,
    };
    Some(with_transport(headers, packet, extent))
}

fn ipv6(packet: &[u8], extent: Extent) -> Option<Headers> {
    if packet.len() < IPV6_BYTES {
        return None;
    }
    let mut protocol = packet[6];
    let mut ip_bytes = IPV6_BYTES;
    let mut fragment: Option<Fragment> = None;
    loop {
        let extension = packet.get(ip_bytes..).unwrap_or_default();
        let (length, needed) = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS if extension.len() >= 2 => {
                (8 + usize::from(extension[1]) * 8, 2)
            }
            FRAGMENT => (FRAGMENT_BYTES, FRAGMENT_OFFSET_BYTES),
            _ => break,
        };
        if extension.len() < if extent == Extent::Whole { length } else { needed } {
            break;
        }
        if protocol == FRAGMENT {
            let place = word(extension, 2)?;
            // A whole packet may bear the header, too (RFC 6946).
            fragment = Fragment::new(u32::from(place & 0xfff8), place & 1 != 0).or(fragment);
        }
        protocol = extension[0];
        ip_bytes += length;
        if fragment.is_some_and(|fragment| fragment.offset > 0) {
            break;
        }
    }
    let headers = Headers {
        version: 6,
        ip_bytes,
        protocol,
        stated_bytes: IPV6_BYTES + usize::from(word(packet, 4)?),
        traffic_class: packet[0] << 4 | packet[1] >> 4,
        fragment,
        transport: None,
    };
    Some(with_transport(headers, packet, extent))
}

fn with_transport(headers: Headers, packet: &[u8], extent: Extent) -> Headers {
    if headers.is_later_fragment() {
        return headers;
    }
    let bytes = packet.get(headers.ip_bytes..).unwrap_or_default();
    let transport = transport(headers.protocol, bytes)
        .filter(|transport| extent == Extent::Beginning || bytes.len() >= transport.bytes);
    Headers { transport, ..headers }
}

/// The transport header at the beginning of `bytes`, which may end within it.
fn transport(protocol: u8, bytes: &[u8]) -> Option<TransportHeader> {
    let ports = || (word(bytes, 0).unwrap_or(0), word(bytes, 2).unwrap_or(0));
    let (ports, length, checksum_offset) = match protocol {
        TCP => {
            let length = bytes.get(12).map_or(SHORTEST_TCP_BYTES, |offset| usize::from(offset >> 4) * 4);
            if length < SHORTEST_TCP_BYTES {
                return None;
            }
            (ports(), length, 16)
        }
        UDP | UDP_LITE => (ports(), UDP_BYTES, 6),
        ICMP | ICMPV6 => ((0, 0), ICMP_BYTES, 2),
        _ => return None,
    };
    Some(TransportHeader { ports, bytes: length, checksum_offset })
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
