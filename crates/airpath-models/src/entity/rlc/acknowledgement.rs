// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packet Ack/Nack of RLC.
//!
//! Source: 3GPP TS 44.060, clauses 9.1.8 (received block bitmap) and 12.3.

use smallvec::SmallVec;

/// Packet Ack/Nack: what has been received.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Acknowledgement {
    /// Number of the flow.
    pub flow: u32,
    /// True if the flow is complete and released (Final Ack Indicator). That of the network asks for an answer.
    pub is_final: bool,
    /// Number of the newest radio block that has been understood.
    pub seen: u64,
    /// V(Q): number of the oldest block that has not been received.
    pub v_q: u16,
    /// Number of blocks from V(Q) to V(R).
    pub count: u16,
    /// A bit for each of those, the lowest for V(Q).
    pub bitmap: SmallVec<[u64; 2]>,
}

impl Acknowledgement {
    /// True if block V(Q) + `place` has been received.
    pub fn has(&self, place: usize) -> bool {
        self.bitmap.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// The starting sequence number and the received block bitmap of GPRS (clause 12.3): V(R), and a bit for each of
    /// the 64 blocks before, the lowest for V(R) - 1. The other end needs no more.
    pub fn gprs(&self) -> (u16, u64) {
        let known = u32::from(self.count).min(64);
        let bits = self.bitmap.first().copied().unwrap_or(0);
        let received = if known == 0 { 0 } else { bits.reverse_bits() >> (64 - known) };
        let before = if known == 64 { 0 } else { u64::MAX << known };
        ((self.v_q + self.count) % 128, received | before)
    }
}
