// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Lengths of headers and of STATUS PDUs in octets (3GPP TS 38.322, clause 6.2; TS 38.321, clause 6.1.2), and sequence
//! numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mode of an RLC entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "RlcMode")]
pub enum Mode {
    /// Unacknowledged mode: nothing is repeated by RLC.
    Um,
    /// Acknowledged mode: what STATUS PDUs report as missing is repeated.
    #[default]
    Am,
}

/// Format of the PDUs of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Mode.
    pub mode: Mode,
    /// Length of sequence numbers.
    pub sn_bits: u8,
}

impl Format {
    /// Number of sequence numbers.
    pub fn modulus(self) -> u64 {
        1 << self.sn_bits
    }

    /// Window (UM_Window_Size, AM_Window_Size): half of the sequence numbers.
    pub fn window(self) -> u64 {
        self.modulus() / 2
    }

    /// Octets of the header of a data PDU that begins at octet `offset` of its packet; `is_whole` where it has all of
    /// the packet. A whole packet of unacknowledged mode has no sequence number, and no segment offset is needed at
    /// the beginning of a packet.
    pub fn header_octets(self, is_whole: bool, offset: u32) -> u32 {
        let number = match (self.mode, self.sn_bits) {
            (Mode::Um, _) if is_whole => 1,
            (Mode::Um, 6) => 1,
            (Mode::Um, _) | (Mode::Am, 12) => 2,
            (Mode::Am, _) => 3,
        };
        number + if offset > 0 { 2 } else { 0 }
    }

    /// Octets of a STATUS PDU without a NACK.
    pub const STATUS_OCTETS: u32 = 3;

    /// Octets of a NACK in a STATUS PDU: its number, with the first and the last octet of a segment, or the number of
    /// packets that are missing in sequence.
    pub fn nack_octets(self, is_segment: bool, is_range: bool) -> u32 {
        let number = if self.sn_bits == 12 { 2 } else { 3 };
        number + if is_segment { 4 } else { 0 } + u32::from(is_range)
    }
}

/// Octets of the subheader of MAC in front of a PDU of `octets`.
pub fn mac_octets(octets: u32) -> u32 {
    if octets <= 255 { 2 } else { 3 }
}

/// Most octets of a PDU that fit into `room` together with the subheader of MAC.
pub fn pdu_room(room: u32) -> u32 {
    room.saturating_sub(2).min(255).max(room.saturating_sub(3))
}

/// The number congruent to `sn` modulo `modulus` from `base` on.
pub fn from_base(base: u64, sn: u64, modulus: u64) -> u64 {
    base + (sn + modulus - base % modulus) % modulus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_octets_of_the_standard() {
        let octets = |mode, sn_bits| {
            let format = Format { mode, sn_bits };
            [format.header_octets(true, 0), format.header_octets(false, 0), format.header_octets(false, 7)]
        };
        assert_eq!(octets(Mode::Um, 6), [1, 1, 3]);
        assert_eq!(octets(Mode::Um, 12), [1, 2, 4]);
        assert_eq!(octets(Mode::Am, 12), [2, 2, 4]);
        assert_eq!(octets(Mode::Am, 18), [3, 3, 5]);
        let nack = |sn_bits| {
            let format = Format { mode: Mode::Am, sn_bits };
            [format.nack_octets(false, false), format.nack_octets(true, false), format.nack_octets(false, true)]
        };
        assert_eq!([nack(12), nack(18)], [[2, 6, 3], [3, 7, 4]]);
    }

    #[test]
    fn a_pdu_fits_with_its_subheader() {
        for room in 0..600 {
            let pdu = pdu_room(room);
            assert!(pdu == 0 || pdu + mac_octets(pdu) <= room, "{room}");
            assert!(pdu + 1 + mac_octets(pdu + 1) > room, "{room}");
        }
    }

    #[test]
    fn numbers_count_from_their_base() {
        assert_eq!(from_base(70, 6, 64), 70);
        assert_eq!(from_base(70, 5, 64), 133);
        assert_eq!(from_base(0, 63, 64), 63);
    }
}
