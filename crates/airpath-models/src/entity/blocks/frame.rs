// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of Reed-Solomon blocks: what they carry, and what is left of them behind the channel.
//!
//! A frame is 1 to 5 blocks of 255 bytes, all of one code: in each, the data bytes stand before the parity bytes. The
//! data of the blocks, one after the other, are a link header, the payload, padding and a check sequence:
//!
//! ```text
//! packet 2 | first octet 2 | octets 2 | parity 1 | blocks and flags 1 | payload | padding | check sequence 4
//! ```
//!
//! Blocks are not shortened, as all blocks of the paper have 255 bytes; the last fragment of a packet has as few blocks
//! as carry it.

use crate::channel::ChannelOutcome;

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = 255;

/// Greatest number of blocks of a frame.
pub const MOST_BLOCKS: u8 = 5;

/// Greatest number of parity bytes of a block: 78 %.
pub const MOST_PARITY: u8 = 199;

/// Bytes of the link header.
pub const HEADER_BYTES: u32 = 8;

/// Bytes of the check sequence.
pub const CHECK_BYTES: u32 = 4;

/// Blocks of a frame, and parity bytes in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of blocks.
    pub blocks: u8,
    /// Number of parity bytes in each block.
    pub parity: u8,
}

impl Shape {
    /// Bits on the air.
    pub fn bits(self) -> u64 {
        u64::from(self.blocks) * u64::from(BLOCK_BYTES) * 8
    }

    /// Bytes of packets that the frame carries.
    pub fn payload_bytes(self) -> u32 {
        u32::from(self.blocks) * (BLOCK_BYTES - u32::from(self.parity)) - HEADER_BYTES - CHECK_BYTES
    }

    /// The shape with as few blocks as carry `bytes`; the shape itself if it does not carry them.
    pub fn least_for(self, bytes: u32) -> Shape {
        let fits = |shape: &Shape| shape.payload_bytes() >= bytes;
        (1..self.blocks).map(|blocks| Shape { blocks, ..self }).find(fits).unwrap_or(self)
    }

    /// Bits on the air of all frames of a packet of `bytes`, each sent once.
    pub fn bits_of(self, bytes: u32) -> u64 {
        let whole = bytes.saturating_sub(1) / self.payload_bytes();
        u64::from(whole) * self.bits() + self.least_for(bytes - whole * self.payload_bytes()).bits()
    }
}

/// Part of a frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Nothing.
    Nothing,
    /// The beginning, with so many whole blocks.
    Beginning(u8),
    /// Everything.
    Everything,
}

/// State of a frame as the receiving end finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// True if all blocks are decoded, so that the check sequence fits.
    pub is_received: bool,
    /// Part of the frame that has arrived.
    pub arrived: Arrived,
    /// Most bytes corrected in a block, of the blocks that are decoded. Bytes that are missing do not count.
    pub corrected: u8,
}

impl Finding {
    /// The finding about a frame of which nothing arrives.
    pub const NOTHING: Finding = Finding { is_received: false, arrived: Arrived::Nothing, corrected: 0 };

    /// The finding about a frame of `shape` that the channel has left in this state.
    ///
    /// A code with p parity bytes corrects a block if twice the number of wrong bytes and the number of missing ones
    /// are p together at most. More errors are noticed: by the decoder, or by the check sequence. Bytes behind the end
    /// of a frame that was cut are missing bytes of known place.
    pub fn new(shape: Shape, outcome: &ChannelOutcome) -> Finding {
        let whole = u32::from(shape.blocks) * BLOCK_BYTES;
        match outcome {
            ChannelOutcome::Ok | ChannelOutcome::Delayed { .. } => {
                Finding { is_received: true, arrived: Arrived::Everything, corrected: 0 }
            }
            ChannelOutcome::Lost | ChannelOutcome::BlackedOut => Finding::NOTHING,
            ChannelOutcome::Flipped(flips) => Finding::of_blocks(shape, whole, flips),
            // A frame without its header is none.
            ChannelOutcome::Truncated { bytes, .. } if *bytes < HEADER_BYTES => Finding::NOTHING,
            ChannelOutcome::Truncated { bytes, flips } => Finding::of_blocks(shape, *bytes, flips),
        }
    }

    /// The finding about a frame of which the first `kept` bytes arrive, with the bits `flips`, in ascending order,
    /// flipped.
    fn of_blocks(shape: Shape, kept: u32, flips: &[u32]) -> Finding {
        let mut wrong = [0u32; MOST_BLOCKS as usize];
        let mut last = None;
        for byte in flips.iter().map(|flip| flip / 8).filter(|byte| *byte < kept) {
            if last.replace(byte) != Some(byte)
                && let Some(wrong) = wrong.get_mut((byte / BLOCK_BYTES) as usize)
            {
                *wrong += 1;
            }
        }
        let (mut is_received, mut corrected) = (true, 0);
        for (block, wrong) in (0..u32::from(shape.blocks)).zip(wrong) {
            let missing = ((block + 1) * BLOCK_BYTES).saturating_sub(kept).min(BLOCK_BYTES);
            if 2 * wrong + missing <= u32::from(shape.parity) {
                corrected = corrected.max(wrong as u8);
            } else {
                is_received = false;
            }
        }
        let arrived = match kept / BLOCK_BYTES {
            blocks if blocks >= u32::from(shape.blocks) => Arrived::Everything,
            blocks => Arrived::Beginning(blocks as u8),
        };
        Finding { is_received, arrived, corrected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_carry_what_header_and_check_sequence_leave() {
        for (blocks, parity, bytes) in [(5, 0, 1263), (5, 12, 1203), (1, 74, 169), (1, 199, 44), (2, 199, 100)] {
            assert_eq!(Shape { blocks, parity }.payload_bytes(), bytes);
        }
        let light = Shape { blocks: 5, parity: 12 };
        for (bytes, blocks) in
            [(0, 1), (231, 1), (232, 2), (474, 2), (475, 3), (960, 4), (961, 5), (1203, 5), (9999, 5)]
        {
            assert_eq!(light.least_for(bytes).blocks, blocks, "{bytes} bytes");
        }
        // 1500 bytes are a full frame and 297 bytes, which take two blocks.
        for (bytes, blocks) in [(0, 1), (1203, 5), (1204, 6), (1500, 7), (2406, 10), (2407, 11)] {
            assert_eq!(light.bits_of(bytes), blocks * 255 * 8, "{bytes} bytes");
        }
    }

    #[test]
    fn errors_count_by_bytes_and_blocks() {
        let shape = Shape { blocks: 2, parity: 4 };
        let found = |flips: &[u32]| Finding::new(shape, &ChannelOutcome::Flipped(flips.to_vec()));
        let all = |is_received, corrected| Finding { is_received, arrived: Arrived::Everything, corrected };
        // Bits 0 to 7 are of one byte, 2039 is the last of the first block.
        assert_eq!(found(&[0, 3, 7]), all(true, 1));
        assert_eq!(found(&[0, 8, 2039]), all(false, 0));
        assert_eq!(found(&[0, 2039, 2040, 4079]), all(true, 2));
        assert_eq!(found(&[0, 2040, 2048, 2056]), all(false, 1));
    }

    #[test]
    fn missing_bytes_count_once_and_errors_twice() {
        let shape = Shape { blocks: 2, parity: 4 };
        let found =
            |bytes, flips: &[u32]| Finding::new(shape, &ChannelOutcome::Truncated { bytes, flips: flips.to_vec() });
        let beginning =
            |is_received, blocks, corrected| Finding { is_received, arrived: Arrived::Beginning(blocks), corrected };
        assert_eq!(found(506, &[]), beginning(true, 1, 0));
        assert_eq!(found(505, &[]), beginning(false, 1, 0));
        assert_eq!(found(508, &[8 * 300]), beginning(true, 1, 1));
        assert_eq!(found(507, &[8 * 300]), beginning(false, 1, 0));
        // What is behind the cut is missing and not wrong.
        assert_eq!(found(506, &[8 * 507]), beginning(true, 1, 0));
        assert_eq!(found(254, &[]), beginning(false, 0, 0));
        assert_eq!(found(7, &[]).arrived, Arrived::Nothing);
    }
}
