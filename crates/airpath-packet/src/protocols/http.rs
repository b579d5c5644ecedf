// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! HTTP/1: segments that begin with a request or status line (RFC 9112).

use super::printable::printable;
use super::{Packet, Protocol, Sequences, Told};

pub(super) const PROTOCOL: Protocol = Protocol { name: "http", number: None, recognises, prints };

/// Beginnings of request lines (RFC 9110, RFC 5789) and of the status line.
const BEGINNINGS: [&[u8]; 10] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"CONNECT ", b"OPTIONS ", b"TRACE ", b"PATCH ", b"HTTP/1."];
/// Ports at which tcpdump expects HTTP.
const PORTS: [u16; 2] = [80, 8080];

fn recognises(packet: &Packet<'_>) -> bool {
    packet.segment().is_some_and(|(_, bytes)| BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning)))
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    let ((source, destination), bytes) = packet.segment()?;
    if recognises(packet) {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let line = &bytes[..end.unwrap_or(bytes.len())];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let cut = if end.is_none() { " [|http]" } else { "" };
        return Some(Told::Behind(format!(": HTTP: {}{cut}", printable(line))));
    }
    let is_expected = PORTS.contains(&source) || PORTS.contains(&destination);
    (is_expected && !bytes.is_empty()).then(|| Told::Behind(": HTTP".into()))
}
