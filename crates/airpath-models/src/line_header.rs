// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The header of a packet as it is on the line of a link that compresses headers.

use smallvec::SmallVec;

/// Octets of a header; those of most headers take no allocation.
pub type Octets = SmallVec<[u8; 64]>;

/// Form of a header on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As long as it was; it tells the other end what later headers refer to.
    Uncompressed,
    /// Compressed.
    Compressed,
}

/// Header of a packet on the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineHeader {
    form: Form,
    octets: Octets,
    original: u32,
}

impl LineHeader {
    /// A header of `octets` in place of `original` octets, which are not fewer.
    pub fn new(form: Form, octets: Octets, original: u32) -> LineHeader {
        debug_assert!(octets.len() as u32 <= original, "a header does not become longer");
        LineHeader { form, octets, original }
    }

    /// Its form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Its octets, after the errors that have hit them.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Octets of the packet's own header.
    pub fn original(&self) -> u32 {
        self.original
    }

    /// Octets that the packet takes less than it has.
    pub fn spared(&self) -> u32 {
        self.original - self.octets.len() as u32
    }

    /// The bit of the packet that bit `bit` of the packet on the line is; none if that is in the header.
    pub fn behind(&self, bit: u32) -> Option<u32> {
        (bit as usize / 8 >= self.octets.len()).then(|| bit + self.spared() * 8)
    }

    /// Flips bit `bit` of the header.
    pub fn flip(&mut self, bit: u32) {
        if let Some(octet) = self.octets.get_mut(bit as usize / 8) {
            *octet ^= 0x80 >> (bit % 8);
        }
    }
}
