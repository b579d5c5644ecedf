// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TLS: segments that begin with a record (RFC 8446), and the server name of a ClientHello (RFC 6066).

use super::printable::printable;
use super::{Packet, Protocol, Sequences, Told, word};

pub(super) const PROTOCOL: Protocol = Protocol { name: "tls", number: None, recognises, prints };

const RECORD_BYTES: usize = 5;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;

fn record<'a>(packet: &Packet<'a>) -> Option<(u8, &'a [u8])> {
    let (_, bytes) = packet.segment()?;
    let header: &[u8; RECORD_BYTES] = bytes.first_chunk()?;
    let fits = (20..=24).contains(&header[0]) && header[1] == 3 && header[2] <= 4;
    fits.then_some((header[0], &bytes[RECORD_BYTES..]))
}

fn recognises(packet: &Packet<'_>) -> bool {
    record(packet).is_some()
}

fn prints(packet: &Packet<'_>, _: &mut Sequences) -> Option<Told> {
    let (kind, contents) = record(packet)?;
    let handshake = match contents.first() {
        Some(1) => "ClientHello",
        Some(2) => "ServerHello",
        // What follows these is encrypted, and begins with anything.
        _ => "handshake",
    };
    let kind = match kind {
        20 => "change of cipher",
        21 => "alert",
        HANDSHAKE => handshake,
        23 => "application data",
        _ => "heartbeat",
    };
    let name = server_name(packet).map(|name| format!(", server name {}", printable(name)));
    Some(Told::Behind(format!(": TLS, {kind}{}", name.unwrap_or_default())))
}

/// The server name that a ClientHello asks for, if it is whole within this segment.
pub fn server_name<'a>(packet: &Packet<'a>) -> Option<&'a [u8]> {
    let (HANDSHAKE, hello) = record(packet)? else { return None };
    // Type and length, version, random.
    let mut rest = hello.get(4 + 2 + 32..).filter(|_| hello[0] == CLIENT_HELLO)?;
    let session = usize::from(*rest.first()?);
    rest = rest.get(1 + session..)?;
    rest = rest.get(2 + usize::from(word(rest, 0)?)..)?; // cipher suites
    rest = rest.get(1 + usize::from(*rest.first()?)..)?; // compression methods
    rest = rest.get(2..)?; // length of the extensions
    loop {
        let (kind, length) = (word(rest, 0)?, usize::from(word(rest, 2)?));
        if kind == SERVER_NAME {
            // Length of the list, type of the name, length of the name.
            return rest.get(9..9 + usize::from(word(rest, 7)?));
        }
        rest = rest.get(4 + length..)?;
    }
}
