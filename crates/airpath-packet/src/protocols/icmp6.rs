// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! ICMPv6 (RFC 4443, RFC 4861, RFC 2710, RFC 3810).

use std::net::Ipv6Addr;

use super::{Packet, Protocol, Sequences, Told, is_of, long, word};
use crate::Headers;
use crate::protocol::{ICMPV6, TCP, UDP};

pub(super) const PROTOCOL: Protocol = Protocol { name: "icmp6", number: Some(ICMPV6), recognises, prints };

/// Bytes of a header.
const HEADER_BYTES: usize = 8;

fn recognises(packet: &Packet<'_>) -> bool {
    is_of(packet, ICMPV6)
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    let text = match message(packet.upper(), packet.upper_length()) {
        Some(message) => format!("ICMP6, {message}, length {}", packet.upper_length()),
        None => "[|icmp6]".into(),
    };
    Some(Told::Instead(text))
}

fn message(bytes: &[u8], length: u32) -> Option<String> {
    let (kind, code) = (*bytes.first()?, *bytes.get(1)?);
    let echo = || Some(format!("id {}, seq {}", word(bytes, 4)?, word(bytes, 6)?));
    let address = |at| Some(Ipv6Addr::from_bits(u128::from_be_bytes(*bytes.get(at..)?.first_chunk()?)));
    // Where the address was cut off, as from the headers of a log, the kind is told alone.
    let about = |words: &str, between: &str| match address(HEADER_BYTES) {
        Some(target) => format!("{words}{between}{target}"),
        None => words.into(),
    };
    Some(match (kind, code) {
        (1, _) => format!("destination unreachable, {}", unreachable(code, bytes)),
        (2, _) => format!("packet too big, mtu {}", long(bytes, 4)?),
        (3, 0) => match inner_ends(bytes) {
            Some((_, to)) => format!("time exceeded in-transit for {to}"),
            None => "time exceeded in-transit".into(),
        },
        (3, 1) => "time exceeded in-transit (reassembly)".into(),
        (3, code) => format!("time exceeded in-transit, unknown code ({code})"),
        (4, 0) => format!("parameter problem, erroneous - octet {}", long(bytes, 4)?),
        (4, 1) => format!("parameter problem, next header - octet {}", long(bytes, 4)?),
        (4, 2) => format!("parameter problem, option - octet {}", long(bytes, 4)?),
        (4, 3) => format!("parameter problem, incomplete header chain - octet {}", long(bytes, 4)?),
        (4, code) => format!("parameter problem, code-#{code}"),
        (128, _) => format!("echo request, {}", echo()?),
        (129, _) => format!("echo reply, {}", echo()?),
        (130, _) if length >= 28 => about("multicast listener query v2", " [gaddr ") + "]",
        (130, _) => about(&format!("multicast listener querymax resp delay: {} addr:", word(bytes, 4)?), " "),
        (131, _) => about(&format!("multicast listener reportmax resp delay: {} addr:", word(bytes, 4)?), " "),
        (132, _) => about(&format!("multicast listener donemax resp delay: {} addr:", word(bytes, 4)?), " "),
        (133, _) => "router solicitation".into(),
        (134, _) => "router advertisement".into(),
        (135, _) => about("neighbor solicitation", ", who has "),
        (136, _) => about("neighbor advertisement", ", tgt is "),
        (137, _) => match (address(HEADER_BYTES), address(HEADER_BYTES + 16)) {
            (Some(target), Some(destination)) => format!("redirect, {destination} to {target}"),
            _ => "redirect".into(),
        },
        (143, _) => format!("multicast listener report v2, {} group record(s)", word(bytes, 6)?),
        (kind, code) => format!("type {kind}, code {code}"),
    })
}

/// Ends of the packet that a message is about; none where they are not at hand.
fn inner_ends(bytes: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr)> {
    let addresses: &[u8; 32] = bytes.get(HEADER_BYTES + 8..)?.first_chunk()?;
    let half =
        |from: usize| addresses[from..].first_chunk().map(|half| Ipv6Addr::from_bits(u128::from_be_bytes(*half)));
    Some((half(0)?, half(16)?))
}

fn unreachable(code: u8, bytes: &[u8]) -> String {
    let Some((from, to)) = inner_ends(bytes) else {
        return match code {
            0 => "unreachable route".into(),
            1 => "unreachable prohibited".into(),
            3 => "unreachable address".into(),
            4 => "unreachable port".into(),
            code => format!("unreachable, code {code}"),
        };
    };
    match code {
        0 => format!("unreachable route {to}"),
        1 => format!(" unreachable prohibited {to}"),
        2 => format!("beyond scope {to}, source address {from}"),
        3 => format!("unreachable address {to}"),
        4 => {
            let inner = &bytes[HEADER_BYTES..];
            let headers = Headers::read_beginning(inner);
            let port = headers.and_then(|headers| Some((headers.protocol, word(inner, headers.ip_bytes + 2)?)));
            match port {
                Some((TCP, port)) => format!("unreachable port, {to} tcp port {port}"),
                Some((UDP, port)) => format!("unreachable port, {to} udp port {port}"),
                Some((protocol, port)) => format!("unreachable port, {to} protocol {protocol} port {port}"),
                None => "unreachable port".into(),
            }
        }
        code => format!("unknown unreach code ({code})"),
    }
}
