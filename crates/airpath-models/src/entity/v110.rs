// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The radio block of a transparent bearer: four V.110 frames of 60 bits, which carry 48 bits of data each.
//!
//! Source: 3GPP TS 44.021 (GSM 04.21), clause 8.1.1: the frame of 60 bits that is left of the 80 bits of
//! V.110 without its synchronisation. The other twelve bits are E4 to E7, S and X: rate and modem signals,
//! in which an error changes no data.

/// Bits of a V.110 frame.
const FRAME_BITS: u32 = 60;

/// Places of the bits that are no data in a V.110 frame: S1, X, S3, S4, E4 to E7, S6, X, S8, S9.
const SIGNALS: [u32; 12] = [6, 13, 20, 27, 28, 29, 30, 31, 38, 45, 52, 59];

/// Bits of data in a V.110 frame.
const DATA_BITS: u32 = FRAME_BITS - SIGNALS.len() as u32;

/// Bits of a radio block.
pub const BLOCK_BITS: u32 = 4 * FRAME_BITS;

/// Bits of data in a radio block: 192 in 20 ms are 9.6 kbit/s.
pub const BLOCK_DATA_BITS: u32 = 4 * DATA_BITS;

/// The bit of data that bit `place` of a radio block carries; none if it carries a signal.
pub fn data_bit(place: u32) -> Option<u32> {
    let (frame, within) = (place / FRAME_BITS, place % FRAME_BITS);
    let before = SIGNALS.partition_point(|signal| *signal < within);
    let is_signal = SIGNALS.get(before) == Some(&within);
    (!is_signal && frame < 4).then(|| frame * DATA_BITS + within - before as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_carries_each_bit_of_data_once() {
        let data: Vec<u32> = (0..BLOCK_BITS).filter_map(data_bit).collect();
        assert_eq!(data, (0..BLOCK_DATA_BITS).collect::<Vec<_>>());
        assert_eq!(BLOCK_DATA_BITS, 192);
        // D1, D7, D25 and D48 of the first frame, D1 of the second.
        assert_eq!([0, 7, 32, 58, 60].map(data_bit), [Some(0), Some(6), Some(24), Some(47), Some(48)]);
        // E4, S9, and behind the block.
        assert_eq!([28, 59, 240].map(data_bit), [None; 3]);
    }
}
