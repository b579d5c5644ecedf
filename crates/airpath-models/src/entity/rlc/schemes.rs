// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Coding schemes: the RLC data of a radio block, and what its code corrects.
//!
//! A radio block is told of errors in its coded bits. A code of `information` bits in `coded` bits corrects what it
//! can in theory: with a share e of flipped bits, each coded bit brings 1 - h(e) bits of mutual information, with the
//! binary entropy h, and the block is decoded if they come to `information` (Shannon 1948). Copies of a block add up
//! (Caire and Tuninetti 2001, incremental redundancy). A real decoder needs more: `efficiency` is the share that it
//! makes use of. A block without a flipped bit is always decoded.

/// A code.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Code {
    /// Bits before coding, with parity and tail bits.
    pub information: u32,
    /// Bits after coding and puncturing.
    pub coded: u32,
}

/// A coding scheme.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scheme {
    /// Octets of RLC data in an RLC block, with length indicators.
    pub octets: u32,
    /// RLC blocks in a radio block.
    pub blocks: u32,
    /// The code of an RLC block.
    pub code: Code,
    /// The code of the header in uplink and downlink, where it has one of its own.
    pub header: Option<[Code; 2]>,
    /// Coded bits in a radio block.
    pub bits: u32,
    /// Bits of the air that a coded bit stands for: 3 for GMSK where a radio block is counted in bits of 8-PSK.
    pub stride: u32,
}

/// The coding schemes of one system.
#[derive(Debug)]
pub struct Schemes {
    /// The schemes, the most robust first.
    pub table: &'static [Scheme],
    /// The scheme of radio blocks with control messages.
    pub control: Scheme,
    /// Bits of the air in a radio block.
    pub block_bits: u32,
    /// The scheme in which a block of scheme `.0` is repeated where scheme `.1` is commanded; `.2` says whether blocks
    /// may be cut into halves. All of them are places in the table.
    pub repetition: fn(usize, usize, bool) -> usize,
    /// The scheme in which an RLC block goes alone that was meant to share a radio block.
    pub single: fn(usize) -> usize,
}

/// Mutual information of a coded bit, where a share of `errors` is flipped.
fn mutual_information(errors: f64) -> f64 {
    if errors <= 0.0 {
        return 1.0;
    }
    if errors >= 0.5 {
        return 0.0;
    }
    1.0 + errors * libm::log2(errors) + (1.0 - errors) * libm::log2(1.0 - errors)
}

impl Code {
    /// Mutual information of a copy with `flips` flipped bits, in bits.
    pub fn mutual_information(&self, flips: usize) -> f64 {
        f64::from(self.coded) * mutual_information(flips as f64 / f64::from(self.coded))
    }

    /// True if `mutual_information` is enough for a decoder of `efficiency`.
    pub fn decodes(&self, mutual_information: f64, efficiency: f64) -> bool {
        mutual_information * efficiency >= f64::from(self.information)
    }
}

impl Scheme {
    /// Number of `flips`, bits of the air in ascending order, that hit the coded bits from `from` to `to`.
    fn count(&self, flips: &[u32], from: u32, to: u32) -> usize {
        let within = |place: &u32| place.is_multiple_of(self.stride) && (from..to).contains(&(*place / self.stride));
        flips.iter().filter(|place| within(place)).count()
    }

    /// The first coded bit of the first RLC block.
    fn first_bit(&self) -> u32 {
        self.bits - self.blocks * self.code.coded
    }

    /// True if the header is understood; `direction` is 0 in the uplink.
    pub fn reads_header(&self, flips: &[u32], direction: usize, efficiency: f64) -> bool {
        let Some(codes) = self.header else { return true };
        let (code, end) = (codes[direction], self.first_bit());
        let flips = self.count(flips, end - code.coded, end);
        flips == 0 || code.decodes(code.mutual_information(flips), efficiency)
    }

    /// Number of flipped bits of RLC block `block`.
    pub fn flips_of(&self, flips: &[u32], block: u32) -> usize {
        let from = self.first_bit() + block * self.code.coded;
        self.count(flips, from, from + self.code.coded)
    }
}
