// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The packets of a pcap file, one at a time.

use std::io::Read;

use super::error::{CaptureError, CaptureProblem, Place};
use super::order::Order;
use super::{MAGIC_BYTES, MOST_BYTES};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const SECOND_NS: u64 = 1_000_000_000;
const HEAD_BYTES: usize = 24;
const RECORD_BYTES: usize = 16;

/// Byte order and length of a tick in nanoseconds of a file that begins with `magic`.
pub(super) fn kind(magic: [u8; MAGIC_BYTES]) -> Option<(Order, u64)> {
    [Order::Little, Order::Big].into_iter().find_map(|order| match order.u32(&magic, 0)? {
        MICROSECONDS => Some((order, 1_000)),
        NANOSECONDS => Some((order, 1)),
        _ => None,
    })
}

/// A packet as it is in the file.
#[derive(Debug, Default)]
pub struct Record {
    /// Seconds, ticks within the second, kept length, length.
    head: [u8; RECORD_BYTES],
    bytes: Vec<u8>,
    place: Place,
}

impl Record {
    /// The bytes kept of the packet, from its link header on.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The record header before these bytes: the stamp and two lengths.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Place of the packet in the file.
    pub fn place(&self) -> Place {
        self.place
    }
}

/// Reads a pcap file packet by packet.
#[derive(Debug)]
pub struct PcapReader<R> {
    input: R,
    order: Order,
    tick_ns: u64,
    head: [u8; HEAD_BYTES],
    next: Place,
}

impl<R: Read> PcapReader<R> {
    /// Reads `input` from its beginning.
    ///
    /// # Errors
    /// When its head cannot be read or is none of pcap.
    pub fn new(mut input: R) -> Result<PcapReader<R>, CaptureError> {
        let mut read = Vec::with_capacity(HEAD_BYTES);
        let error = |problem| CaptureError { place: Place::default(), problem };
        input.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut read).map_err(|source| error(source.into()))?;
        let magic = read.first_chunk().ok_or_else(|| error(CaptureProblem::Torn))?;
        let (order, tick_ns) = kind(*magic).ok_or_else(|| error(CaptureProblem::Foreign))?;
        let head = read.try_into().map_err(|_| error(CaptureProblem::Torn))?;
        let next = Place { unit: "packet", number: 1, offset: HEAD_BYTES as u64 };
        Ok(PcapReader { input, order, tick_ns, head, next })
    }

    /// The file's head, unchanged.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Link type of the packets, of libpcap's registry.
    pub fn link_type(&self) -> u32 {
        // The upper bits describe checksums behind the frames.
        self.order.u32(&self.head, 20).unwrap_or_default() & 0xffff
    }

    /// Reads the next packet into `record`; false at the end of the file.
    ///
    /// # Errors
    /// When reading fails, the file ends within the packet, or the packet contradicts itself.
    pub fn read(&mut self, record: &mut Record) -> Result<bool, CaptureError> {
        record.place = self.next;
        record.bytes.clear();
        self.fill(record).map_err(|problem| CaptureError { place: self.next, problem })
    }

    fn fill(&mut self, record: &mut Record) -> Result<bool, CaptureProblem> {
        let bytes = &mut record.bytes;
        self.input.by_ref().take(RECORD_BYTES as u64).read_to_end(bytes)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        record.head = bytes[..].try_into().map_err(|_| CaptureProblem::Torn)?;
        bytes.clear();
        let kept = self.order.u32(&record.head, 8).unwrap_or_default();
        if kept > MOST_BYTES {
            return Err(CaptureProblem::Length(kept));
        }
        self.input.by_ref().take(u64::from(kept)).read_to_end(bytes)?;
        if bytes.len() < kept as usize {
            return Err(CaptureProblem::Torn);
        }
        self.next = self.next.after(RECORD_BYTES as u64 + u64::from(kept));
        Ok(true)
    }

    /// Returns the time at which a packet was captured, in nanoseconds since 1970.
    ///
    /// # Errors
    /// When the part of the second is none.
    pub fn unix_ns(&self, record: &Record) -> Result<u64, CaptureError> {
        let word = |at| u64::from(self.order.u32(&record.head, at).unwrap_or_default());
        let part_ns = word(4) * self.tick_ns;
        if part_ns >= SECOND_NS {
            return Err(CaptureError { place: record.place, problem: CaptureProblem::Time });
        }
        Ok(word(0) * SECOND_NS + part_ns)
    }

    /// Stamps a packet with `unix_ns`, rounded to a tick.
    ///
    /// # Errors
    /// When that is too late for a pcap file (2106).
    pub fn set_unix_ns(&self, record: &mut Record, unix_ns: u64) -> Result<(), CaptureError> {
        let per_second = SECOND_NS / self.tick_ns;
        let ticks = unix_ns.saturating_add(self.tick_ns / 2) / self.tick_ns;
        let seconds = u32::try_from(ticks / per_second);
        let seconds = seconds.map_err(|_| CaptureError { place: record.place, problem: CaptureProblem::Time })?;
        record.head[..4].copy_from_slice(&self.order.bytes(seconds));
        record.head[4..8].copy_from_slice(&self.order.bytes((ticks % per_second) as u32));
        Ok(())
    }
}
