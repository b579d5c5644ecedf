// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frame check sequences of RFC 1662, appendix C.

/// Frame check sequence at the end of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fcs {
    /// Of 16 bits, the default.
    #[default]
    Bits16,
    /// Of 32 bits.
    Bits32,
}

const TABLE_16: [u32; 256] = table(0x8408);
const TABLE_32: [u32; 256] = table(0xedb8_8320);

const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ polynomial } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

impl Fcs {
    /// Length in bytes.
    pub fn length_bytes(self) -> usize {
        match self {
            Fcs::Bits16 => 2,
            Fcs::Bits32 => 4,
        }
    }

    fn remainder(self, bytes: &[u8]) -> u32 {
        let (table, start) = match self {
            Fcs::Bits16 => (&TABLE_16, 0xffff),
            Fcs::Bits32 => (&TABLE_32, 0xffff_ffff),
        };
        bytes.iter().fold(start, |value, byte| (value >> 8) ^ table[((value ^ u32::from(*byte)) & 0xff) as usize])
    }

    /// Appends the sequence over all of `bytes`, least significant byte first.
    pub fn append(self, bytes: &mut Vec<u8>) {
        let sequence = !self.remainder(bytes);
        bytes.extend_from_slice(&sequence.to_le_bytes()[..self.length_bytes()]);
    }

    /// True if `bytes` end with the right sequence.
    pub fn is_good(self, bytes: &[u8]) -> bool {
        let good = match self {
            Fcs::Bits16 => 0xf0b8,
            Fcs::Bits32 => 0xdebb_20e3,
        };
        bytes.len() >= self.length_bytes() && self.remainder(bytes) == good
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check values of the catalogue of CRCs: CRC-16/IBM-SDLC and CRC-32/ISO-HDLC.
    #[test]
    fn sequences_have_their_published_check_values() {
        for (fcs, expected) in [(Fcs::Bits16, &[0x6e, 0x90][..]), (Fcs::Bits32, &[0x26, 0x39, 0xf4, 0xcb][..])] {
            let mut bytes = b"123456789".to_vec();
            fcs.append(&mut bytes);
            assert_eq!(&bytes[9..], expected);
            assert!(fcs.is_good(&bytes));
            bytes[3] ^= 4;
            assert!(!fcs.is_good(&bytes));
        }
    }
}
