// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that are frames of a line: a flag, and bytes that the engine does not look into. No IP packet begins with a
//! flag, so that one is told from the other by its first byte.

/// The flag of HDLC-like framing.
const FLAG: u8 = 0x7e;

/// True for the bytes of a frame.
pub fn is_frame(bytes: &[u8]) -> bool {
    bytes.first() == Some(&FLAG)
}
