// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! HTTP/1: segments that begin with a request or status line (RFC 9112).

use super::{Packet, Protocol};

pub(super) const PROTOCOL: Protocol = Protocol { name: "http", recognises };

/// Beginnings of request lines (RFC 9110, RFC 5789) and of the status line.
const BEGINNINGS: [&[u8]; 10] =
    [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"CONNECT ", b"OPTIONS ", b"TRACE ", b"PATCH ", b"HTTP/1."];

fn recognises(packet: &Packet<'_>) -> bool {
    packet.segment().is_some_and(|(_, bytes)| BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning)))
}
