// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Header of a frame in words, and the answer of the receiving end.

use super::frame::{Arrived, Finding, Shape};

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the fragment.
    pub number: u64,
    /// Number of the try, from 1.
    pub attempt: u16,
    /// Blocks of the frame, and their code.
    pub shape: Shape,
    /// True if the fragment is not sent again.
    pub is_last: bool,
}

impl Header {
    /// The header as words of a frame.
    pub fn words(self) -> Box<[u64]> {
        let Shape { blocks, parity } = self.shape;
        let rest = u64::from(self.attempt) << 17 | u64::from(blocks) << 9 | u64::from(parity) << 1;
        Box::new([self.number, rest | u64::from(self.is_last)])
    }

    /// The header in the words of a frame; none if they are no header.
    pub fn read(words: Option<&[u64]>) -> Option<Header> {
        let [number, rest] = *words? else { return None };
        let shape = Shape { blocks: (rest >> 9) as u8, parity: (rest >> 1) as u8 };
        Some(Header { number, attempt: (rest >> 17) as u16, shape, is_last: rest & 1 == 1 })
    }
}

/// Answer to one try of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of the fragment, its lowest 32 bits.
    pub number: u32,
    /// Number of the try.
    pub attempt: u16,
    /// State in which the frame was found.
    pub finding: Finding,
}

impl Report {
    /// The answer to the frame with this header.
    pub fn new(header: Header, finding: Finding) -> Report {
        Report { number: header.number as u32, attempt: header.attempt, finding }
    }

    /// The answer as a word.
    pub fn word(self) -> u64 {
        let Finding { is_received, arrived, corrected } = self.finding;
        let arrived = match arrived {
            Arrived::Nothing => 0,
            Arrived::Beginning(blocks) => 2 | u64::from(blocks) << 2,
            Arrived::Everything => 1,
        };
        let of_try = u64::from(self.number) << 16 | u64::from(self.attempt);
        of_try << 16 | u64::from(corrected) << 8 | arrived << 1 | u64::from(is_received)
    }

    /// The answer in a word.
    pub fn read(word: u64) -> Report {
        let arrived = match word >> 1 & 3 {
            0 => Arrived::Nothing,
            1 => Arrived::Everything,
            _ => Arrived::Beginning((word >> 3 & 0x1f) as u8),
        };
        let finding = Finding { is_received: word & 1 == 1, arrived, corrected: (word >> 8) as u8 };
        Report { number: (word >> 32) as u32, attempt: (word >> 16) as u16, finding }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        let shapes = [(1, 0), (5, 199), (3, 12)].map(|(blocks, parity)| Shape { blocks, parity });
        for (number, attempt) in [(0, 1), (u64::MAX, u16::MAX), (7, 300)] {
            for shape in shapes {
                for is_last in [false, true] {
                    let header = Header { number, attempt, shape, is_last };
                    assert_eq!(Header::read(Some(&header.words())), Some(header));
                    for arrived in [Arrived::Nothing, Arrived::Beginning(4), Arrived::Beginning(0), Arrived::Everything]
                    {
                        for corrected in [0, 99, 255] {
                            let report = Report::new(header, Finding { is_received: is_last, arrived, corrected });
                            assert_eq!(Report::read(report.word()), report);
                        }
                    }
                }
            }
        }
        assert_eq!(Header::read(None), None);
        assert_eq!(Header::read(Some(&[1])), None);
    }
}
