// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files in which packets are kept: pcapng (draft-ietf-opsawg-pcapng) and pcap
//! (draft-ietf-opsawg-pcap), of any program, in either byte order.
//!
//! Readers take one block or packet at a time, keep no more of the file than that, and grow a buffer
//! only as bytes arrive, so that a length that lies costs nothing. An error names the place. A file
//! that ends in the middle of a block, as when its writer was killed, is told from a damaged one:
//! who reads decides what that means.

mod block;
mod error;
mod order;
mod pcap;
pub mod pcapng;
mod resolution;
pub mod write;

pub use block::{Block, BlockReader};
pub use error::{CaptureError, CaptureProblem, Place};
pub use order::Order;
pub use pcap::{PcapReader, Record};
pub use resolution::Resolution;

/// Bytes at the beginning of a file that tell its format.
pub const MAGIC_BYTES: usize = 4;
/// The longest block or packet that is read of captures of other programs, in bytes: far more than any
/// program writes.
pub const MOST_BYTES: u32 = 64 << 20;

/// A format of captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// The older one, with one kind of link and stamps in micro- or nanoseconds.
    Pcap,
    /// Blocks of many kinds.
    Pcapng,
}

impl Format {
    /// The format of a file that begins with `magic`; none for what is no capture.
    pub fn of(magic: [u8; MAGIC_BYTES]) -> Option<Format> {
        if u32::from_le_bytes(magic) == pcapng::SECTION {
            return Some(Format::Pcapng);
        }
        pcap::kind(magic).map(|_| Format::Pcap)
    }
}
