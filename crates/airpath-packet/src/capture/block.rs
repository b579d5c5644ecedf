// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The blocks of a pcapng file, one at a time.

use std::io::Read;

use super::error::{CaptureError, CaptureProblem, Place};
use super::order::Order;

/// The kind of a section header block.
pub const SECTION: u32 = 0x0a0d_0d0a;
/// The byte-order mark of a section, in the section's own byte order.
pub const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Bytes of a block's kind and first length, and of its last length.
pub(super) const HEAD_BYTES: usize = 8;
const TAIL_BYTES: usize = 4;
const LEAST_BYTES: usize = HEAD_BYTES + TAIL_BYTES;
/// Kind, length, byte order, version, the section's length, length.
const LEAST_SECTION_BYTES: usize = 28;

/// A block as it is in the file.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    order: Order,
    place: Place,
}

impl Default for Block {
    fn default() -> Block {
        Block { bytes: Vec::new(), order: Order::Little, place: Place::default() }
    }
}

impl Block {
    /// The number of its kind.
    pub fn kind(&self) -> u32 {
        self.order.u32(&self.bytes, 0).unwrap_or_default()
    }

    /// True if a section begins with this block, with interfaces of its own.
    pub fn is_section(&self) -> bool {
        self.kind() == SECTION
    }

    /// The byte order of its section.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Place of the block in the file.
    pub fn place(&self) -> Place {
        self.place
    }

    /// All its bytes, with kind and lengths.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Content between the lengths.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(HEAD_BYTES..self.bytes.len().saturating_sub(TAIL_BYTES)).unwrap_or_default()
    }

    /// Content between the lengths, to be changed in place.
    pub(super) fn body_mut(&mut self) -> &mut [u8] {
        let end = self.bytes.len().saturating_sub(TAIL_BYTES);
        self.bytes.get_mut(HEAD_BYTES..end).unwrap_or_default()
    }

    /// `problem` at this block.
    pub fn error(&self, problem: CaptureProblem) -> CaptureError {
        CaptureError { place: self.place, problem }
    }
}

/// Reads a pcapng file block by block.
#[derive(Debug)]
pub struct BlockReader<R> {
    input: R,
    order: Order,
    most: u32,
    next: Place,
}

impl<R: Read> BlockReader<R> {
    /// Reads `input` from its beginning; blocks of more than `most` bytes are refused.
    pub fn new(input: R, most: u32) -> BlockReader<R> {
        BlockReader { input, order: Order::Little, most, next: Place { unit: "block", number: 1, offset: 0 } }
    }

    /// Place of the next block: all bytes before it were whole blocks.
    pub fn next_place(&self) -> Place {
        self.next
    }

    /// Reads the next block into `block`; false at the end of the file.
    ///
    /// # Errors
    /// When reading fails, the file ends within the block, or the block is none. Nothing can be read
    /// after that.
    pub fn read(&mut self, block: &mut Block) -> Result<bool, CaptureError> {
        block.place = self.next;
        block.bytes.clear();
        self.fill(block).map_err(|problem| CaptureError { place: self.next, problem })
    }

    fn fill(&mut self, block: &mut Block) -> Result<bool, CaptureProblem> {
        let bytes = &mut block.bytes;
        self.input.by_ref().take(LEAST_BYTES as u64).read_to_end(bytes)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        if bytes.len() < LEAST_BYTES {
            return Err(CaptureProblem::Torn);
        }
        // The kind of a section reads the same in both orders, and its order follows its length.
        let is_section = bytes.starts_with(&SECTION.to_le_bytes());
        if is_section {
            self.order = match Order::Little.u32(bytes, HEAD_BYTES) {
                Some(BYTE_ORDER) => Order::Little,
                Some(word) if word.swap_bytes() == BYTE_ORDER => Order::Big,
                _ => return Err(CaptureProblem::ByteOrder),
            };
        } else if self.next.number == 1 {
            return Err(CaptureProblem::Foreign);
        }
        block.order = self.order;
        let length = self.order.u32(bytes, 4).ok_or(CaptureProblem::Short)?;
        let least = if is_section { LEAST_SECTION_BYTES } else { LEAST_BYTES };
        if (length as usize) < least || length > self.most || !length.is_multiple_of(4) {
            return Err(CaptureProblem::Length(length));
        }
        self.input.by_ref().take(u64::from(length) - LEAST_BYTES as u64).read_to_end(bytes)?;
        if bytes.len() < length as usize {
            return Err(CaptureProblem::Torn);
        }
        if self.order.u32(bytes, bytes.len() - TAIL_BYTES) != Some(length) {
            return Err(CaptureProblem::Lengths);
        }
        self.next = self.next.after(u64::from(length));
        Ok(true)
    }
}
