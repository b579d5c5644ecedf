// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets as lines of text, in tcpdump's manner (`tcpdump -n -t`): IPv4 and IPv6, and what their protocols say.

use std::net::Ipv6Addr;

use super::{PROTOCOLS, Packet, Sequences, Told, contents, long, word};
use crate::headers::IPV6_BYTES;
use crate::protocol::{DESTINATION_OPTIONS, FRAGMENT, HOP_BY_HOP, ROUTING, TCP, UDP, UDP_LITE};

/// No next header (RFC 8200).
const NOTHING: u8 = 59;

/// Describes the packet of `length` bytes that begins with `bytes`, of which any part may be missing. `sequences`
/// remembers where the sequence numbers of each connection began.
pub fn describe(bytes: &[u8], length: u32, sequences: &mut Sequences) -> String {
    let packet = Packet::new(bytes, length);
    match (packet.headers.map(|headers| headers.version), bytes.first().map(|first| first >> 4)) {
        (Some(4), _) => ipv4(&packet, sequences),
        (Some(_), _) => ipv6(&packet, sequences),
        (None, Some(4)) => "IP  [|ip]".into(),
        (None, Some(6)) => " [|ip6]".into(),
        (None, _) => format!("not an IP packet, length {length}"),
    }
}

fn ipv4(packet: &Packet<'_>, sequences: &mut Sequences) -> String {
    let (Some(headers), Some([from, to])) = (packet.headers, packet.ends()) else { return "IP  [|ip]".into() };
    let stated = headers.stated_bytes;
    if stated < headers.ip_bytes {
        return format!("IP bad-len {stated}");
    }
    let missing = match stated.saturating_sub(packet.length as usize) {
        0 => String::new(),
        missing => format!("truncated-ip - {missing} bytes missing! "),
    };
    if headers.is_later_fragment() {
        return format!("IP {missing}{from} > {to}: ip-proto-{}", headers.protocol);
    }
    let ends = match ports(packet, headers.protocol) {
        Some((source, destination)) => format!("{from}.{source} > {to}.{destination}"),
        None => format!("{from} > {to}"),
    };
    format!("IP {missing}{ends}: {}", upper(packet, headers.protocol, sequences))
}

fn ipv6(packet: &Packet<'_>, sequences: &mut Sequences) -> String {
    let (Some(headers), Some([from, to])) = (packet.headers, packet.ends()) else { return " [|ip6]".into() };
    let missing = match headers.stated_bytes.saturating_sub(packet.length as usize) {
        0 => String::new(),
        missing => format!("truncated-ip6 - {missing} bytes missing!"),
    };
    let ports = ports(packet, headers.protocol);
    if headers.ip_bytes == IPV6_BYTES {
        let ends = match ports {
            Some((source, destination)) => format!("{from}.{source} > {to}.{destination}"),
            None => format!("{from} > {to}"),
        };
        return format!("IP6 {missing}{ends}: {}", upper(packet, headers.protocol, sequences));
    }
    let line = format!("IP6 {missing}{from} > {to}: {}", extensions(packet));
    if headers.is_later_fragment() {
        return line.trim_end().into();
    }
    let ports = ports.map(|(source, destination)| format!("{source} > {destination}: "));
    format!("{line}{}{}", ports.unwrap_or_default(), upper(packet, headers.protocol, sequences))
}

/// Both ports, if the protocol has some and they are at hand.
fn ports(packet: &Packet<'_>, protocol: u8) -> Option<(u16, u16)> {
    let bytes = packet.upper();
    let has_ports = [TCP, UDP, UDP_LITE].contains(&protocol);
    has_ports.then(|| Some((word(bytes, 0)?, word(bytes, 2)?))).flatten()
}

fn upper(packet: &Packet<'_>, protocol: u8, sequences: &mut Sequences) -> String {
    let known = PROTOCOLS.iter().find(|known| known.number == Some(protocol));
    match known.and_then(|known| (known.prints)(packet, sequences)) {
        Some(Told::Instead(text) | Told::Behind(text)) => text,
        None if protocol == NOTHING => "no next header".into(),
        None => match contents(packet, sequences) {
            Some(Told::Instead(text)) => text,
            _ => format!(" ip-proto-{protocol} {}", packet.upper_length()),
        },
    }
}

/// The extension headers of IPv6, each with a space behind it.
fn extensions(packet: &Packet<'_>) -> String {
    let mut text = String::new();
    let (mut protocol, mut at) = (packet.bytes[6], IPV6_BYTES);
    let end = packet.headers.map_or(IPV6_BYTES, |headers| headers.ip_bytes);
    while at < end {
        let rest = packet.bytes.get(at..).unwrap_or_default();
        let Some([next, units]) = rest.first_chunk() else { break };
        match protocol {
            HOP_BY_HOP => text.push_str("HBH "),
            DESTINATION_OPTIONS => text.push_str("DSTOPT "),
            FRAGMENT => {
                let place = word(rest, 2).unwrap_or_default();
                let stated = packet.headers.map_or(0, |headers| headers.stated_bytes);
                text += &format!("frag ({}|{}) ", place & 0xfff8, stated.saturating_sub(at + 8));
            }
            ROUTING => text += &routing(rest),
            _ => break,
        }
        at += if protocol == FRAGMENT { 8 } else { 8 + usize::from(*units) * 8 };
        protocol = *next;
    }
    text
}

/// A routing header: types 0 (RFC 2460) and 4 (RFC 8754) with their addresses.
fn routing(bytes: &[u8]) -> String {
    let Some(&[_, units, kind, left]) = bytes.first_chunk() else { return "RT6 ".into() };
    let address = |number: u8| {
        let place = bytes.get(8 + usize::from(number) * 16..)?.first_chunk()?;
        Some(format!(", [{number}]{}", Ipv6Addr::from_bits(u128::from_be_bytes(*place))))
    };
    let addresses = || (0..units / 2).map_while(address).collect::<String>();
    let kind = match kind {
        0 => {
            let reserved = long(bytes, 4).filter(|reserved| *reserved != 0);
            let reserved = reserved.map(|reserved| format!(", rsv=0x{reserved:x}")).unwrap_or_default();
            format!("type=0 [Deprecated], segleft={left}{reserved}{}", addresses())
        }
        4 => {
            let last = bytes.get(4).copied().unwrap_or_default();
            let flags = bytes.get(5).filter(|flags| **flags != 0);
            let flags = flags.map(|flags| format!(", flags=0x{flags:x}")).unwrap_or_default();
            let tag = word(bytes, 6).unwrap_or_default();
            format!("type=4, segleft={left}, last-entry={last}{flags}, tag={tag:x}{}", addresses())
        }
        other => format!("type={other}, segleft={left}"),
    };
    format!("RT6 (len={units}, {kind}) ")
}
