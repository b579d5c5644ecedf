// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fields of the headers of IPv4 (RFC 791) and of IPv6 with its extension headers (RFC 8200).

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Layers, number};
use crate::Headers;
use crate::headers::{IPV4_BYTES, IPV6_BYTES};
use crate::protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ICMP, ICMPV6, IGMP, ROUTING, TCP, UDP, UDP_LITE};

pub(super) fn version_4(found: &mut Layers<'_>, headers: &Headers) {
    found.begin("IPv4");
    found.field("version, header length", 0, 1, |byte| format!("4, {} bytes", (byte[0] & 15) * 4));
    found.field("DSCP, ECN", 1, 1, |byte| format!("{}, {}", byte[0] >> 2, byte[0] & 3));
    found.number("total length", 2, 2);
    found.number("identification", 4, 2);
    found.field("flags, fragment offset", 6, 2, |field| {
        let flags: Vec<&str> =
            [(0x40, "DF"), (0x20, "MF")].iter().filter(|(bit, _)| field[0] & bit != 0).map(|(_, name)| *name).collect();
        let flags = if flags.is_empty() { "-".into() } else { flags.join(" ") };
        format!("{flags}, {}", (number(field) & 0x1fff) * 8)
    });
    found.number("time to live", 8, 1);
    found.field("protocol", 9, 1, |byte| protocol(byte[0]));
    found.hexadecimal("checksum", 10, 2);
    found.field("source", 12, 4, address);
    found.field("destination", 16, 4, address);
    let options = headers.ip_bytes.saturating_sub(IPV4_BYTES);
    if options > 0 {
        found.hexadecimal("options", IPV4_BYTES, options);
    }
}

pub(super) fn version_6(found: &mut Layers<'_>, headers: &Headers) {
    found.begin("IPv6");
    let class = headers.traffic_class;
    found.field("version, DSCP, ECN", 0, 2, |_| format!("6, {}, {}", class >> 2, class & 3));
    found.field("flow label", 1, 3, |label| format!("{:05x}", number(label) & 0xf_ffff));
    found.number("payload length", 4, 2);
    found.field("next header", 6, 1, |byte| protocol(byte[0]));
    found.number("hop limit", 7, 1);
    found.field("source", 8, 16, address);
    found.field("destination", 24, 16, address);
    let mut next = found.bytes.get(6).copied();
    let mut at = IPV6_BYTES;
    while let (Some(kind), true) = (next, at < headers.ip_bytes) {
        next = found.bytes.get(at).copied();
        found.begin(format!("IPv6 {}", name(kind).unwrap_or("extension")));
        found.field("next header", at, 1, |byte| protocol(byte[0]));
        if kind == FRAGMENT {
            found.hexadecimal("reserved", at + 1, 1);
            found.field("fragment offset, more", at + 2, 2, |field| {
                format!("{}, {}", number(field) & 0xfff8, if field[1] & 1 == 1 { "more follow" } else { "last" })
            });
            found.number("identification", at + 4, 4);
            at += 8;
            continue;
        }
        let length = 8 + found.bytes.get(at + 1).map_or(0, |words| usize::from(*words) * 8);
        found.field("length", at + 1, 1, |_| format!("{length} bytes"));
        found.hexadecimal("options", at + 2, length - 2);
        at += length;
    }
}

fn address(content: &[u8]) -> String {
    match (content.first_chunk::<16>(), content.first_chunk::<4>()) {
        (Some(bytes), _) => Ipv6Addr::from(*bytes).to_string(),
        (None, Some(bytes)) => Ipv4Addr::from(*bytes).to_string(),
        (None, None) => String::new(),
    }
}

/// Number and name of a protocol.
fn protocol(number: u8) -> String {
    name(number).map_or_else(|| number.to_string(), |name| format!("{number}, {name}"))
}

pub(super) fn name(protocol: u8) -> Option<&'static str> {
    Some(match protocol {
        TCP => "TCP",
        UDP => "UDP",
        UDP_LITE => "UDP-Lite",
        ICMP => "ICMP",
        ICMPV6 => "ICMPv6",
        IGMP => "IGMP",
        HOP_BY_HOP => "hop-by-hop options",
        ROUTING => "routing",
        FRAGMENT => "fragment",
        DESTINATION_OPTIONS => "destination options",
        _ => return None,
    })
}
