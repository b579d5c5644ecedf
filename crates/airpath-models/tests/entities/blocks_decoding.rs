// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Findings about frames of blocks, which come from counting errors, against a real decoder and a real check sequence.

use airpath_coding::{BLOCK_BYTES, ReedSolomon};
use airpath_models::channel::ChannelOutcome;
use airpath_models::entity::blocks::{Arrived, Finding, Shape};

use crate::common::*;

/// Check sequence of 32 bits (IEEE 802.3), without initial value and inversion: that of zeros is 0, and the sequence is
/// linear in the errors.
fn remainder(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

/// The frame of zeros, whose parity and check sequence are 0, with these errors: each block through the decoder, then
/// the check sequence. True if it arrives as it was sent, and the most bytes corrected in a block that is decoded, of
/// those that are there.
fn decoded(code: &ReedSolomon, shape: Shape, kept: u32, flips: &[u32]) -> (bool, usize) {
    let mut bytes = vec![0u8; usize::from(shape.blocks) * BLOCK_BYTES];
    // What is missing may be read as anything.
    bytes[kept as usize..].fill(0xa5);
    flips.iter().filter(|flip| **flip / 8 < kept).for_each(|flip| bytes[(flip / 8) as usize] ^= 0x80 >> (flip % 8));
    let (mut data, mut most, mut fails) = (Vec::new(), 0, false);
    for (number, block) in bytes.chunks_exact(BLOCK_BYTES).enumerate() {
        let mut block: [u8; BLOCK_BYTES] = block.try_into().unwrap();
        let before = block;
        let missing: Vec<u8> =
            (0..255).filter(|place| number * BLOCK_BYTES + usize::from(*place) >= kept as usize).collect();
        match code.decode(&mut block, &missing) {
            Ok(_) if block == [0; BLOCK_BYTES] => {
                let there = BLOCK_BYTES - missing.len();
                most = most.max(before[..there].iter().filter(|byte| **byte != 0).count());
            }
            Ok(_) => {}
            Err(_) => fails = true,
        }
        data.extend_from_slice(&block[..code.data()]);
    }
    // The last four data bytes hold the remainder of those before.
    let (before, check) = data.split_at(data.len() - 4);
    let passes = !fails && remainder(before).to_le_bytes() == check;
    assert!(!passes || data.iter().all(|byte| *byte == 0), "a wrong frame passes the check sequence");
    (passes, most)
}

/// Errors of every size around what codes correct, in frames that arrive whole or cut.
#[test]
fn counted_errors_decide_as_the_decoder_and_the_check_sequence_do() {
    let mut dice = Dice::new(23);
    let (mut received, mut lost) = (0, 0);
    for parity in [0u8, 1, 2, 3, 5, 12, 24, 48, 74, 110, 150, 199] {
        let code = ReedSolomon::new(parity);
        for round in 0..120 {
            let shape = Shape { blocks: 1 + dice.below(5) as u8, parity };
            let bytes = u32::from(shape.blocks) * 255;
            let is_cut = round % 3 == 0;
            // Cuts within reach of the last block's code, or anywhere.
            let missing = if round % 6 == 0 {
                1 + dice.below(u64::from(bytes) - 1) as u32
            } else {
                dice.below(u64::from(parity) + 2) as u32
            };
            let kept = if is_cut { bytes - missing.min(bytes - 1) } else { bytes };
            let hit = dice.below(u64::from(shape.blocks) * (u64::from(parity) / 2 + 2)) as u32;
            let mut flips: Vec<u32> = (0..hit).map(|_| dice.below(u64::from(bytes) * 8) as u32).collect();
            flips.sort_unstable();
            flips.dedup();
            let outcome = match is_cut {
                true => ChannelOutcome::Truncated { bytes: kept, flips: flips.clone() },
                false => ChannelOutcome::Flipped(flips.clone()),
            };
            let finding = Finding::new(shape, &outcome);
            let (passes, most) = decoded(&code, shape, kept, &flips);
            assert_eq!(finding.is_received, passes, "{shape:?}, {outcome:?}");
            if passes {
                assert_eq!(usize::from(finding.corrected), most, "{shape:?}, {outcome:?}");
            }
            assert_eq!(finding.arrived == Arrived::Everything, kept == bytes);
            *if passes { &mut received } else { &mut lost } += 1;
        }
    }
    assert!(received > 300 && lost > 300, "{received} {lost}");
}
