// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Radio blocks: how much data each carries, and how long it is on the air.
//!
//! Source: Singh 2000, section 2.3.2 and Figure 10: a block of 30 bytes every 20 ms; the asynchronous mode has two
//! bits of overhead a byte, taken as 2 bytes a block, so that 28 bytes of data are left. Those would be
//! 11.2 kbit/s. GSM data at 9.6 kbit/s (3GPP TS 44.021) carry 24 bytes in 20 ms.

/// Data bytes of a block of the thesis.
pub const THESIS_BLOCK_DATA_BYTES: u32 = 28;
/// Data bytes of 20 ms at 9.6 kbit/s.
pub const STANDARD_BLOCK_DATA_BYTES: u32 = 24;
/// Time of a block on the air, in ns.
pub const BLOCK_NS: u64 = 20_000_000;

/// Number of blocks of `block_data_bytes` that a packet of `packet_bytes` needs.
pub fn needed(packet_bytes: usize, block_data_bytes: u32) -> u64 {
    (packet_bytes as u64).div_ceil(u64::from(block_data_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_may_be_filled_in_part() {
        // 500 bytes and 42 of headers: 19 blocks of 28 hold 532, the twentieth 10.
        assert_eq!(needed(542, THESIS_BLOCK_DATA_BYTES), 20);
        assert_eq!([needed(43, 28), needed(56, 28), needed(57, 28), needed(542, 24)], [2, 2, 3, 23]);
    }

    #[test]
    fn rates_are_those_of_the_thesis_and_of_the_standard() {
        let bits_per_second = |bytes: u32| u64::from(bytes) * 8 * 1_000_000_000 / BLOCK_NS;
        assert_eq!(bits_per_second(STANDARD_BLOCK_DATA_BYTES), 9_600);
        assert_eq!(bits_per_second(THESIS_BLOCK_DATA_BYTES), 11_200);
    }
}
