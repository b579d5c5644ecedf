// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Header of a frame in words, and the acknowledgement of the receiving end.

/// Number that stands for a frame without a packet.
pub const REQUEST: u64 = (1 << 44) - 1;

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the packet; [`REQUEST`] in a frame without one.
    pub number: u64,
    /// Number of the oldest packet that the sending end has not settled: nothing before it comes any more.
    pub start: u64,
    /// Number of the try, from 1.
    pub attempt: u16,
    /// True if the packet is not sent again.
    pub is_last: bool,
}

impl Header {
    /// The header as words of a frame.
    pub fn words(self) -> Box<[u64]> {
        Box::new([self.number, self.start, u64::from(self.attempt) << 1 | u64::from(self.is_last)])
    }

    /// The header in the words of a frame; none if they are no header.
    pub fn read(words: Option<&[u64]>) -> Option<Header> {
        let [number, start, rest] = *words? else { return None };
        Some(Header { number, start, attempt: (rest >> 1) as u16, is_last: rest & 1 == 1 })
    }
}

/// Acknowledgement of one try of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Number of the packet; [`REQUEST`] for a frame without one.
    pub number: u64,
    /// Number of the try.
    pub attempt: u16,
    /// True if the frame arrived whole.
    pub is_received: bool,
}

impl Acknowledgement {
    /// The acknowledgement as a word.
    pub fn word(self) -> u64 {
        (self.number << 16 | u64::from(self.attempt)) << 1 | u64::from(self.is_received)
    }

    /// The acknowledgement in a word.
    pub fn read(word: u64) -> Acknowledgement {
        Acknowledgement { number: word >> 17, attempt: (word >> 1) as u16, is_received: word & 1 == 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        for (number, start, attempt, flag) in [(0, 0, 1, false), (REQUEST, 1 << 43, u16::MAX, true), (7, 5, 300, true)]
        {
            let header = Header { number, start, attempt, is_last: flag };
            assert_eq!(Header::read(Some(&header.words())), Some(header));
            let acknowledgement = Acknowledgement { number, attempt, is_received: flag };
            assert_eq!(Acknowledgement::read(acknowledgement.word()), acknowledgement);
        }
        assert_eq!(Header::read(None), None);
        assert_eq!(Header::read(Some(&[1, 2])), None);
    }
}
