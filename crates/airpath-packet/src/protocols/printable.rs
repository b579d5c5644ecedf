// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Bytes as text that no terminal takes for more than text.

/// `bytes` as characters: control characters as `^X`, those beyond ASCII behind `M-`.
pub(super) fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte & 0x80 != 0 {
            text.push_str("M-");
        }
        let low = byte & 0x7f;
        if (0x20..0x7f).contains(&low) {
            text.push(low.into());
        } else {
            text.push('^');
            text.push((low ^ 0x40).into());
        }
    }
    text
}
