// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The radio link: packets fill blocks, and each block, or each byte, takes an element of the error trace.
//!
//! Source: Singh 2000, section 5.1, steps (c) and (d); section 8 for traces of bytes.

use airpath_models::channel::trace_file::Record;
use clap::ValueEnum;

use super::blocks;
use super::damage::{DamagedByte, Damager};
use super::elements::Elements;

/// Unit that an element of the trace stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceUnit {
    /// A radio block
    Block,
    /// A byte of a packet, headers included
    Byte,
}

/// A radio link, and what it has carried.
#[derive(Debug)]
pub struct Radio {
    unit: TraceUnit,
    block_data_bytes: u32,
    elements: Elements,
    damager: Damager,
    /// Number of elements that the packets have needed.
    needed: u64,
    blocks: u64,
    damaged_blocks: u64,
    ended: bool,
}

impl Radio {
    /// A link with blocks of `block_data_bytes`.
    pub fn new(unit: TraceUnit, block_data_bytes: u32, elements: Elements, damager: Damager) -> Radio {
        Radio { unit, block_data_bytes, elements, damager, needed: 0, blocks: 0, damaged_blocks: 0, ended: false }
    }

    /// Number of elements that the packets so far have needed.
    pub fn needed(&self) -> u64 {
        self.needed
    }

    /// Number of blocks so far.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Number of blocks so far in which the trace has an error.
    pub fn damaged_blocks(&self) -> u64 {
        self.damaged_blocks
    }

    /// Carries a packet of `packet_bytes` and sets `damaged` to its damaged bytes, ascending. False where the trace
    /// has ended; then the link counts what packets need, and damages nothing.
    pub fn carry(&mut self, packet_bytes: usize, damaged: &mut Vec<DamagedByte>) -> bool {
        damaged.clear();
        let first = self.needed;
        let blocks = blocks::needed(packet_bytes, self.block_data_bytes);
        let needs = match self.unit {
            TraceUnit::Block => blocks,
            TraceUnit::Byte => packet_bytes as u64,
        };
        self.needed += needs;
        self.blocks += blocks;
        let mut done = 0;
        while done < needs && !self.ended {
            done += self.elements.pass(needs - done);
            if done == needs {
                break;
            }
            let Some(record) = self.elements.next() else {
                self.ended = true;
                break;
            };
            match self.unit {
                _ if record == Record::Ok => {}
                TraceUnit::Block => {
                    self.damaged_blocks += 1;
                    let start = done as usize * self.block_data_bytes as usize;
                    self.damager.block(first + done, record, start, packet_bytes, damaged);
                }
                TraceUnit::Byte => self.damager.byte(first + done, done as usize, damaged),
            }
            done += 1;
        }
        if self.unit == TraceUnit::Byte {
            self.damaged_blocks += blocks_of(damaged, self.block_data_bytes);
        }
        !self.ended
    }
}

/// The number of blocks in which `damaged` bytes lie.
fn blocks_of(damaged: &[DamagedByte], block_data_bytes: u32) -> u64 {
    let block = |byte: &DamagedByte| byte.position / block_data_bytes as usize;
    damaged.chunk_by(|one, other| block(one) == block(other)).count() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use airpath_core::{Direction, DrawKey, DrawScope, Seed};
    use airpath_models::channel::trace_file::ErrorTrace;
    use airpath_models::file::FileFormat;

    use super::*;
    use crate::wsim::damage::Within;

    fn radio(unit: TraceUnit, trace: &str) -> Radio {
        let scope = DrawScope { hop: "radio", direction: Direction::Uplink, role: "damage", instance: 0 };
        let damager = Damager::new(Within::All, 10, DrawKey::new(Seed(1), &scope));
        let trace = Arc::new(ErrorTrace::parse(trace.as_bytes()).unwrap());
        Radio::new(unit, 10, Elements::of_trace(trace, 0, false), damager)
    }

    fn carried(radio: &mut Radio, bytes: usize) -> Option<Vec<usize>> {
        let mut damaged = Vec::new();
        radio.carry(bytes, &mut damaged).then(|| damaged.iter().map(|byte| byte.position).collect())
    }

    #[test]
    fn a_packet_takes_an_element_for_each_block() {
        let mut radio = radio(TraceUnit::Block, "010 001 00");
        assert_eq!(carried(&mut radio, 30), Some((10..20).collect()));
        // The third block has 5 bytes of the packet.
        assert_eq!(carried(&mut radio, 25), Some((20..25).collect()));
        assert_eq!(carried(&mut radio, 11), Some(vec![]));
        assert_eq!((radio.needed(), radio.blocks(), radio.damaged_blocks()), (8, 8, 2));
        assert_eq!(carried(&mut radio, 1), None);
        assert_eq!(carried(&mut radio, 11), None);
        assert_eq!(radio.needed(), 11);
    }

    #[test]
    fn a_packet_takes_an_element_for_each_byte() {
        let mut radio = radio(TraceUnit::Byte, "0000 0110 0100 1000");
        assert_eq!(carried(&mut radio, 11), Some(vec![5, 6, 9]));
        assert_eq!(carried(&mut radio, 5), Some(vec![1]));
        assert_eq!((radio.needed(), radio.blocks(), radio.damaged_blocks()), (16, 3, 2));
        assert_eq!(carried(&mut radio, 1), None);
    }
}
