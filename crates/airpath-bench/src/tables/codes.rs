// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Speed of Reed-Solomon codes of 255 bytes, in processor time of one thread.

use std::hint::black_box;

use airpath_coding::{BLOCK_BYTES, ReedSolomon};
use airpath_live::clock::thread_processor_ns;

use super::Options;
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::Failure;

const ROUNDS: usize = 5;
/// Blocks that fit into the cache of a core.
const BLOCKS: usize = 64;
/// Parity bytes: 5, 10, 29 and 78 % of a block.
const PARITY: [u8; 4] = [12, 26, 74, 199];
/// Targets at 10 % parity.
const AIMED_PARITY: u8 = 26;
const CHECKED_MB: f64 = 1_000.0;
const DECODED_MB: f64 = 200.0;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let columns = ["parity bytes", "wrong bytes", "MB/s"];
    let mut table = Table::new("codes", "Reed-Solomon blocks of 255 bytes, one core, medians", &columns);
    let passes = if options.quick { 50 } else { 500 };
    for parity in PARITY {
        let code = ReedSolomon::new(parity);
        for wrong in [0, 1, usize::from(parity) / 4, usize::from(parity) / 2] {
            let blocks = blocks(&code, wrong);
            let rounds: Result<Vec<f64>, Failure> = (0..ROUNDS).map(|_| speed(&code, &blocks, passes)).collect();
            let speed = Samples::new(rounds?).quantile(0.5);
            table.row([parity.to_string(), wrong.to_string(), short(speed)]);
            let aim = Target::AtLeast(if wrong == 0 { CHECKED_MB } else { DECODED_MB });
            let aim = (parity == AIMED_PARITY).then_some(aim);
            table.figure("Reed-Solomon decoder", format!("{parity} parity, {wrong} wrong bytes"), speed, "MB/s", aim);
        }
    }
    table.notes.push("MB/s of whole blocks, parity included; a block without errors is checked alone".into());
    Ok(table)
}

/// Blocks of the code, each with so many wrong bytes.
fn blocks(code: &ReedSolomon, wrong: usize) -> Vec<[u8; BLOCK_BYTES]> {
    let block = |number: usize| {
        let mut block: [u8; BLOCK_BYTES] = std::array::from_fn(|place| (place * 31 + number * 17) as u8);
        code.encode(&mut block);
        for error in 0..wrong {
            // 77 and 255 have no common factor: the places differ.
            block[(number * 7 + error * 77) % BLOCK_BYTES] ^= 1 | (number + error) as u8;
        }
        block
    };
    (0..BLOCKS).map(block).collect()
}

/// Megabytes decoded in a second of processor time.
fn speed(code: &ReedSolomon, blocks: &[[u8; BLOCK_BYTES]], passes: usize) -> Result<f64, Failure> {
    let began = thread_processor_ns();
    for _ in 0..passes {
        for block in blocks {
            let mut block = *black_box(block);
            black_box(code.decode(&mut block, &[])).map_err(|error| Failure::from(error.to_string()))?;
            black_box(&block);
        }
    }
    let elapsed = thread_processor_ns() - began;
    Ok((passes * blocks.len() * BLOCK_BYTES) as f64 * 1e3 / elapsed as f64)
}
