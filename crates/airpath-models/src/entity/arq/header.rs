// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Header of a frame in words, and the answer of the receiving end.

/// Header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Place of the frame's first bit in the stream of all packets.
    pub position: u64,
    /// Bits of the first packet that earlier frames carry.
    pub offset: u32,
    /// True if the frame is not repeated any more.
    pub is_last: bool,
    /// Number of the first packet among those of its direction.
    pub packet: u64,
}

impl Header {
    /// The header as words of a frame.
    pub fn words(self) -> Box<[u64]> {
        Box::new([self.position, u64::from(self.offset) << 1 | u64::from(self.is_last), self.packet])
    }

    /// The header in the words of a frame; none if they are no header.
    pub fn read(words: Option<&[u64]>) -> Option<Header> {
        let [position, rest, packet] = *words? else { return None };
        Some(Header { position, offset: (rest >> 1) as u32, is_last: rest & 1 == 1, packet })
    }
}

/// Answer of the receiving end to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Place of the frame in the stream.
    pub position: u64,
    /// True if the frame is to be repeated; false if it arrived, or was taken as it was.
    pub repeat: bool,
}

impl Answer {
    /// The answer as a word.
    pub fn word(self) -> u64 {
        self.position << 1 | u64::from(self.repeat)
    }

    /// The answer in a word.
    pub fn read(word: u64) -> Answer {
        Answer { position: word >> 1, repeat: word & 1 == 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_were_written() {
        for (position, offset, is_last) in [(0, 0, false), (7, u32::MAX, true), (1 << 62, 12_000, false)] {
            let header = Header { position, offset, is_last, packet: position / 7 };
            assert_eq!(Header::read(Some(&header.words())), Some(header));
            let answer = Answer { position, repeat: is_last };
            assert_eq!(Answer::read(answer.word()), answer);
        }
        assert_eq!(Header::read(None), None);
        assert_eq!(Header::read(Some(&[1])), None);
    }
}
