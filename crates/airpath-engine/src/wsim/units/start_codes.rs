// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Units that begin with start codes.
//!
//! Source: ITU-T H.264 and H.265, Annex B: 00 00 01, with a zero before it where there is one; further zeros end the
//! unit before. ITU-T H.263, 5.1.1 and 5.2.2: 16 zero bits, a one and five bits, of which the picture start code has
//! zeros; a start code at a byte boundary is 00 00 and a byte from 80 on.

use super::first;

/// A codec with start codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    H264,
    H265,
    H263,
}

impl Codec {
    /// True if 00 00 and `third` are a start code; `third` is not 0.
    fn begins(self, third: u8) -> bool {
        match self {
            Codec::H264 | Codec::H265 => third == 1,
            Codec::H263 => third & 0x80 != 0,
        }
    }

    /// The number of bytes at the beginning of a stream that belong to its first start code; none if it has none.
    fn first_code(self, bytes: &[u8]) -> Option<usize> {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let third = *bytes.get(zeros)?;
        let is_code = match self {
            Codec::H264 | Codec::H265 => zeros >= 2 && third == 1,
            Codec::H263 => zeros == 2 && third & 0xfc == 0x80,
        };
        is_code.then_some(zeros + 1)
    }

    fn looked_for(self) -> &'static str {
        match self {
            Codec::H264 => "H.264 with start codes (Annex B) begins with 00 00 01 or 00 00 00 01",
            Codec::H265 => "H.265 with start codes (Annex B) begins with 00 00 01 or 00 00 00 01",
            Codec::H263 => "H.263 begins with a picture start code, 00 00 and 80 to 83",
        }
    }
}

/// The units of a stream.
#[derive(Debug)]
pub struct StartCodes {
    codec: Codec,
    /// True before the first unit, whose start code is checked.
    is_first: bool,
}

impl StartCodes {
    /// The units of `codec`.
    pub fn new(codec: Codec) -> StartCodes {
        StartCodes { codec, is_first: true }
    }

    /// The length of the next ADU of at most `most`, where `bytes` begin with it and go on behind it.
    ///
    /// # Errors
    /// When the stream does not begin with a start code.
    pub fn length(&mut self, bytes: &[u8], most: usize) -> Result<usize, String> {
        let from = match self.is_first {
            true => self
                .codec
                .first_code(bytes)
                .ok_or_else(|| format!("there is no start code: {}, and {}", self.codec.looked_for(), first(bytes)))?,
            false => self.own_code(bytes),
        };
        self.is_first = false;
        Ok(self.next_unit(bytes, from, most).unwrap_or(most).min(bytes.len()))
    }

    /// The place behind the start code with which `bytes` begin, or behind one byte of a unit's continuation.
    fn own_code(&self, bytes: &[u8]) -> usize {
        let annex_b = self.codec != Codec::H263;
        match *bytes {
            [0, 0, third, ..] if third != 0 && self.codec.begins(third) => 3,
            [0, 0, 0, 1, ..] if annex_b => 4,
            _ => 1,
        }
    }

    /// The place, from `from` on and at most `most`, at which a unit begins.
    fn next_unit(&self, bytes: &[u8], from: usize, most: usize) -> Option<usize> {
        let mut at = from;
        // A start code one byte behind `most` may have a zero before it that belongs to it.
        while at <= most + 1 {
            let third = *bytes.get(at + 2)?;
            if third == 0 {
                at += 1;
                continue;
            }
            if bytes[at] == 0 && bytes[at + 1] == 0 && self.codec.begins(third) {
                let has_zero = self.codec != Codec::H263 && at > from && bytes[at - 1] == 0;
                return Some(at - usize::from(has_zero)).filter(|place| *place <= most);
            }
            at += 3;
        }
        None
    }
}
