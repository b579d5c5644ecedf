// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The simulation: read an ADU, send it as a packet, write what the receiver accepts.
//!
//! Source: Singh 2000, section 5.1, step 3.

use std::io::{self, Read, Write};

use clap::ValueEnum;

use super::blocks;
use super::damage::DamagedByte;
use super::layout::Receiver;
use super::positions::Positions;
use super::radio::Radio;
use super::statistics::Statistics;
use super::units::{Adus, ReadError};

/// Content of the output in the place of an ADU whose packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dropped {
    /// Nothing, as in the thesis
    Skip,
    /// As many zeros
    Zeros,
}

/// A reason for which a simulation ended early.
#[derive(Debug)]
pub enum SimulationError {
    /// The input cannot be read.
    Read(io::Error),
    /// The input is not what was said.
    Malformed(String),
    /// The output cannot be written.
    Write(io::Error),
    /// The list of positions cannot be written.
    Positions(io::Error),
    /// The trace ended before the input, which needs so many elements.
    TraceEnded {
        /// The elements that the input needs.
        needed: u64,
    },
}

/// ADUs between two calls of `tell`.
const TOLD_EVERY: u64 = 4_096;

/// Sends every ADU of `adus` over `radio` to `receiver`, and writes to `out` what arrives. `tell` is called now and
/// then with the number of bytes read.
///
/// # Errors
/// See [`SimulationError`].
pub fn simulate<R: Read>(
    adus: &mut Adus<R>,
    radio: &mut Radio,
    receiver: &Receiver,
    dropped: Dropped,
    out: &mut dyn Write,
    mut positions: Positions<'_>,
    tell: &mut dyn FnMut(u64),
) -> Result<Statistics, SimulationError> {
    let mut counts = Statistics::default();
    let mut damaged: Vec<DamagedByte> = Vec::new();
    let mut trace_ended = false;
    let before = receiver.headers.before_bytes();
    loop {
        let adu = match adus.next() {
            Ok(Some(adu)) => adu,
            Ok(None) => break,
            Err(ReadError::Read(error)) => return Err(SimulationError::Read(error)),
            Err(ReadError::Malformed(what)) => return Err(SimulationError::Malformed(what)),
        };
        let length = adu.len();
        counts.input_bytes += length as u64;
        counts.packets += 1;
        if counts.packets.is_multiple_of(TOLD_EVERY) {
            tell(counts.input_bytes);
        }
        let packet_bytes = receiver.headers.bytes() + length;
        trace_ended |= !radio.carry(packet_bytes, &mut damaged);
        if trace_ended {
            // The rest is read only to say what it needs.
            continue;
        }
        counts.standard_blocks += blocks::needed(packet_bytes, blocks::STANDARD_BLOCK_DATA_BYTES);
        if let Some(region) = damaged.iter().find_map(|byte| receiver.drops(byte.position, length)) {
            counts.dropped_packets += 1;
            *counts.dropped_by.of(region) += 1;
            counts.dropped_bytes += length as u64;
            let zeros = dropped == Dropped::Zeros;
            positions.dropped(counts.output_bytes, length, zeros).map_err(SimulationError::Positions)?;
            if !zeros {
                continue;
            }
            adu.fill(0);
        } else {
            // What is damaged lies in the ADU, or in the frame check sequence behind it, which is not written.
            damaged.retain(|byte| byte.position < before + length);
            damaged.iter().for_each(|byte| adu[byte.position - before] ^= byte.mask);
            positions.damaged(counts.output_bytes, before, &damaged).map_err(SimulationError::Positions)?;
            counts.damaged_bytes += damaged.len() as u64;
            match damaged.is_empty() {
                true => counts.whole_adus += 1,
                false => counts.damaged_adus += 1,
            }
        }
        out.write_all(adu).map_err(SimulationError::Write)?;
        counts.output_bytes += length as u64;
    }
    if trace_ended {
        return Err(SimulationError::TraceEnded { needed: radio.needed() });
    }
    out.flush().map_err(SimulationError::Write)?;
    positions.end().map_err(SimulationError::Positions)?;
    Ok(Statistics {
        blocks: radio.blocks(),
        damaged_blocks: radio.damaged_blocks(),
        elements: radio.needed(),
        ..counts
    })
}
