// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! ICMP (RFC 792, RFC 1191, RFC 1812).

use std::net::Ipv4Addr;

use super::{Packet, Protocol, Sequences, Told, is_of, long, word};
use crate::Headers;
use crate::protocol::{ICMP, TCP, UDP};

pub(super) const PROTOCOL: Protocol = Protocol { name: "icmp", number: Some(ICMP), recognises, prints };

/// Bytes of a header.
const HEADER_BYTES: usize = 8;

fn recognises(packet: &Packet<'_>) -> bool {
    is_of(packet, ICMP)
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    let text = match message(packet.upper()) {
        Some(message) => format!("ICMP {message}, length {}", packet.upper_length()),
        None => " [|icmp]".into(),
    };
    Some(Told::Instead(text))
}

fn message(bytes: &[u8]) -> Option<String> {
    let (kind, code) = (*bytes.first()?, *bytes.get(1)?);
    let echo = || Some(format!("id {}, seq {}", word(bytes, 4)?, word(bytes, 6)?));
    Some(match (kind, code) {
        (0, _) => format!("echo reply, {}", echo()?),
        (3, _) => unreachable(code, bytes)?,
        (4, _) => "source quench".into(),
        (5, _) => redirect(code, bytes)?,
        (8, _) => format!("echo request, {}", echo()?),
        (10, _) => "router solicitation".into(),
        (11, 0) => "time exceeded in-transit".into(),
        (11, 1) => "ip reassembly time exceeded".into(),
        (11, code) => format!("time exceeded-#{code}"),
        (12, 0) => format!("parameter problem - octet {}", bytes.get(4)?),
        (12, code) => format!("parameter problem - code {code}"),
        (13, _) => format!("time stamp query id {} seq {}", word(bytes, 4)?, word(bytes, 6)?),
        (15, _) => "information request".into(),
        (16, _) => "information reply".into(),
        (17, _) => "address mask request".into(),
        (kind, _) => format!("type-#{kind}"),
    })
}

/// Destination of the packet that a message is about; none where it is not at hand.
fn about(bytes: &[u8]) -> Option<(Ipv4Addr, &[u8])> {
    let inner = bytes.get(HEADER_BYTES..)?;
    Some((Ipv4Addr::from(long(inner, 16)?), inner))
}

fn unreachable(code: u8, bytes: &[u8]) -> Option<String> {
    let Some((to, inner)) = about(bytes) else {
        // The headers alone have the code, and tcpdump says nothing about it.
        return (bytes.len() >= HEADER_BYTES).then(|| without_inner(code, bytes));
    };
    Some(match code {
        0 => format!("net {to} unreachable"),
        1 => format!("host {to} unreachable"),
        2 => format!("{to} protocol {} unreachable", inner.get(9)?),
        3 => {
            let protocol = *inner.get(9)?;
            let port = word(inner, Headers::read_beginning(inner)?.ip_bytes + 2);
            let Some(port) = port else { return Some(without_inner(code, bytes)) };
            match protocol {
                TCP => format!("{to} tcp port {port} unreachable"),
                UDP => format!("{to} udp port {port} unreachable"),
                other => format!("{to} protocol {other} port {port} unreachable"),
            }
        }
        4 => match word(bytes, 6)? {
            0 => format!("{to} unreachable - need to frag"),
            mtu => format!("{to} unreachable - need to frag (mtu {mtu})"),
        },
        5 => format!("{to} unreachable - source route failed"),
        6 => format!("net {to} unreachable - unknown"),
        7 => format!("host {to} unreachable - unknown"),
        8 => format!("{to} unreachable - source host isolated"),
        9 => format!("net {to} unreachable - admin prohibited"),
        10 => format!("host {to} unreachable - admin prohibited"),
        11 => format!("net {to} unreachable - tos prohibited"),
        12 => format!("host {to} unreachable - tos prohibited"),
        13 => format!("host {to} unreachable - admin prohibited filter"),
        14 => format!("host {to} unreachable - host precedence violation"),
        15 => format!("host {to} unreachable - precedence cutoff"),
        code => format!("{to} unreachable - #{code}"),
    })
}

/// The words for a message of which the packet that it is about was cut off.
fn without_inner(code: u8, bytes: &[u8]) -> String {
    match code {
        0 => "net unreachable".into(),
        1 => "host unreachable".into(),
        2 => "protocol unreachable".into(),
        3 => "port unreachable".into(),
        4 => format!("unreachable - need to frag (mtu {})", word(bytes, 6).unwrap_or(0)),
        code => format!("unreachable, code {code}"),
    }
}

fn redirect(code: u8, bytes: &[u8]) -> Option<String> {
    let gateway = Ipv4Addr::from(long(bytes, 4)?);
    let Some((of, _)) = about(bytes) else { return Some(format!("redirect to {gateway}")) };
    Some(match code {
        0 => format!("redirect {of} to net {gateway}"),
        1 => format!("redirect {of} to host {gateway}"),
        2 => format!("redirect-tos {of} to net {gateway}"),
        3 => format!("redirect-tos {of} to host {gateway}"),
        code => format!("redirect-#{code} {of} to {gateway}"),
    })
}
