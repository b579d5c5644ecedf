// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that are frames of a line: a flag, and bytes that the engine does not look into. No IP packet begins with a
//! flag, so that one is told from the other by its first byte.

use airpath_packet::Headers;

/// The flag of HDLC-like framing.
const FLAG: u8 = 0x7e;

/// Headers of a frame: none that the engine knows of.
pub const NO_HEADERS: Headers = Headers {
    version: 0,
    ip_bytes: 0,
    protocol: 0,
    stated_bytes: 0,
    traffic_class: 0,
    fragment: None,
    transport: None,
};

/// True for the bytes of a frame.
pub fn is_frame(bytes: &[u8]) -> bool {
    bytes.first() == Some(&FLAG)
}
