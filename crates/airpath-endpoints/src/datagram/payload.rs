// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Payload of datagrams.
//!
//! Bits as random as those of compressed or encrypted data. Checksums are sums, which do not see every
//! change of a payload as regular as zeros: a word of zeros that is inverted as a whole adds nothing.

use airpath_core::DrawKey;

/// Fills `payload` with the bits of `key`, beginning with the first.
pub(crate) fn fill(key: DrawKey, payload: &mut [u8]) {
    for (step, bytes) in (0..).zip(payload.chunks_mut(8)) {
        bytes.copy_from_slice(&key.bits(step, 0).to_be_bytes()[..bytes.len()]);
    }
}
