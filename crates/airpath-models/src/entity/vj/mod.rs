// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP/IP header compression of Van Jacobson, over PPP.
//!
//! Source: RFC 1144 (Jacobson 1990), sections 3.2 and 4; RFC 1332, section 4 (the slots, and the choice to send slot
//! identifiers always). Both ends keep the last header of each connection in a slot. A packet goes as regular IP (PPP
//! protocol 0x0021), as uncompressed TCP (0x002f), whose protocol field tells the slot, or as compressed TCP (0x002d),
//! whose header is a mask of the fields that changed, the TCP checksum, and the differences.
//!
//! The compressor takes a packet when it enters the send buffer, behind the queue. Where the text leaves room, or would
//! change a packet on a clean line:
//!
//! - A packet whose IP checksum or total length is wrong goes as regular IP: a router would have dropped it, and the
//!   decompressor would make both right.
//! - The reserved bits of TCP, CWR and ECE must be those of the header before, or the packet goes uncompressed. RFC
//!   1144 is older than ECN and does not compare them.
//! - In the special cases the decompressor clears URG, which the sample code leaves as it was.
//!
//! After a loss the decompressor has other headers than the compressor, and goes on all the same: what it makes of a
//! packet then is what it makes here (`decompress`). It is compared with the packet that came in. Bits that differ are
//! damage of the packet, which then leaves with the TCP checksum of the original, as RFC 1144 has it. A packet that the
//! decompressor tosses, or of which it would make one of another length, is dropped.

mod compress;
mod decompress;
mod header;

use airpath_core::{Cause, Pdu};
use smallvec::SmallVec;

pub use compress::Compressor;
pub use decompress::Decompressor;

use super::Sdu;
use crate::line_header::{Form, LineHeader};

/// Bit of the change mask: a slot identifier follows.
const CONNECTION: u8 = 0x40;
/// Bit of the change mask: the IP identification differs by something else than 1.
const IDENTIFICATION: u8 = 0x20;
/// Bit of the change mask: the flag PSH.
const PUSH: u8 = 0x10;
/// Bit of the change mask: the sequence number differs.
const SEQUENCE: u8 = 0x08;
/// Bit of the change mask: the acknowledgement number differs.
const ACKNOWLEDGEMENT: u8 = 0x04;
/// Bit of the change mask: the window differs.
const WINDOW: u8 = 0x02;
/// Bit of the change mask: the flag URG, and its pointer follows.
const URGENT: u8 = 0x01;
/// Mask of echoed interactive traffic: both numbers differ by the data of the packet before.
const SPECIAL_INTERACTIVE: u8 = SEQUENCE | WINDOW | URGENT;
/// Mask of a transfer in one direction: the sequence number differs by the data of the packet before.
const SPECIAL_DATA: u8 = SEQUENCE | ACKNOWLEDGEMENT | WINDOW | URGENT;
/// Bits of the mask in which the special cases are.
const SPECIALS: u8 = SPECIAL_DATA;

/// Octets of the shortest compressed header: mask and checksum.
pub const LEAST_OCTETS: u32 = 3;

/// Parameters of one direction, on which both ends agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of slots: 1 to 256.
    pub slots: u16,
    /// True if a packet of the same slot as the one before it does without the identifier.
    pub compress_slot_id: bool,
}

impl Options {
    /// The fewest octets that a packet of `octets` takes.
    pub fn least_octets(&self, octets: u32) -> u32 {
        if octets < header::LEAST_OCTETS {
            return octets;
        }
        octets - octets.min(header::MOST_OCTETS) + LEAST_OCTETS + u32::from(!self.compress_slot_id)
    }
}

impl Compressor {
    /// The header with which `pdu` goes over the line; none if it goes as regular IP.
    pub fn take(&mut self, pdu: &Pdu) -> Option<Box<LineHeader>> {
        let header = header::entered(pdu)?;
        let original = header.len() as u32;
        let (form, octets) = self.compress(&header)?;
        Some(Box::new(LineHeader::new(form, octets, original)))
    }
}

impl Decompressor {
    /// Rebuilds the header of a packet that has arrived: the bits of the packet that are not those with which it came
    /// in, in ascending order.
    ///
    /// # Errors
    /// The cause for which it is dropped.
    pub fn take(&mut self, sdu: &Sdu) -> Result<SmallVec<[u32; 16]>, Cause> {
        let Some(line) = &sdu.line else { return Ok(SmallVec::new()) };
        let data = sdu.pdu.len - line.original();
        let rebuilt = match line.form() {
            Form::Uncompressed => self.uncompressed(line.octets()),
            Form::Compressed => self.compressed(line.octets(), data),
        };
        let entered = header::entered(&sdu.pdu);
        match (rebuilt, entered) {
            (Some(rebuilt), Some(entered)) if rebuilt.len() == entered.len() => {
                let octets = rebuilt.iter().zip(&*entered).map(|(rebuilt, entered)| rebuilt ^ entered);
                let bits = |(place, octet): (usize, u8)| {
                    (0..8).filter(move |bit| octet & 0x80 >> bit != 0).map(move |bit| place as u32 * 8 + bit)
                };
                Ok(octets.enumerate().flat_map(bits).collect())
            }
            _ => Err(Cause::Decompression),
        }
    }
}
