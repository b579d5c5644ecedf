// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Segments as bytes: headers of RFC 9293 with the options of RFC 2018 and RFC 7323.

use thiserror::Error;

/// Bytes of a header without options.
const HEADER_BYTES: usize = 20;
/// The most bytes of a header.
pub const MOST_HEADER_BYTES: usize = 60;
/// Bytes of the timestamps with the padding in front of them.
pub(crate) const TIMESTAMPS_BYTES: u32 = 12;
/// Padding, kind and length of the timestamps.
const TIMESTAMPS_BEGINNING: [u8; 4] = [1, 1, 8, 10];
const SACK_BASE_BYTES: usize = 4;
const SACK_BLOCK_BYTES: usize = 8;
/// The most blocks beside timestamps.
pub(crate) const MOST_SACK_BLOCKS: usize = 3;

/// Flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronises the sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Resets the connection.
    pub const RST: Flags = Flags(0x04);
    /// End of what was written.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement is valid.
    pub const ACK: Flags = Flags(0x10);
    /// Echo of congestion (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// True if any of `flags` is set.
    pub fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    /// These flags and `flags`.
    #[must_use]
    pub fn with(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }
}

/// Blocks of the option SACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block from the first sequence number to the one after the last; false if there is no room.
    pub fn push(&mut self, begin: u32, end: u32) -> bool {
        let Some(place) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *place = (begin, end);
        self.count += 1;
        true
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
}

/// A segment without the contents of its data, of which it has the length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of its first byte.
    pub sequence: u32,
    /// Next sequence number that its sender expects.
    pub acknowledgement: u32,
    /// Flags.
    pub flags: Flags,
    /// The window as on the wire, not scaled.
    pub window: u16,
    /// Bytes of data.
    pub data_bytes: u32,
    /// The largest segment that the sender takes; in a SYN.
    pub maximum_segment: Option<u16>,
    /// Shift of the sender's windows (RFC 7323); in a SYN.
    pub window_scale: Option<u8>,
    /// True if the sender understands SACK; in a SYN.
    pub sack_permitted: bool,
    /// The sender's clock, and the echo of the receiver's (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// Blocks that the sender has beyond the acknowledgement (RFC 2018, RFC 2883).
    pub sack: SackBlocks,
    /// True if the IP packet is ECN-capable (ECT(0)) when sent.
    pub ecn_capable: bool,
    /// True if the IP packet bears the mark CE when received.
    pub congestion_experienced: bool,
}

/// Reason for which bytes are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SegmentError {
    /// There are fewer bytes than the header says.
    #[error("a TCP header is cut off")]
    Short,
    /// The header's length is impossible.
    #[error("a TCP header has a length of {0} bytes")]
    HeaderLength(usize),
}

impl Segment {
    /// Bytes of its header with options.
    pub fn header_bytes(&self) -> usize {
        let mut bytes = HEADER_BYTES;
        bytes += if self.maximum_segment.is_some() { 4 } else { 0 };
        bytes += match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => 12,
            (false, true) => 4,
            (false, false) => 0,
        };
        bytes += if self.window_scale.is_some() { 4 } else { 0 };
        match self.sack.as_slice().len() {
            0 => bytes,
            count => bytes + SACK_BASE_BYTES + SACK_BLOCK_BYTES * count,
        }
    }

    /// Writes the header into `header`, which has [`Segment::header_bytes`] bytes; the checksum is 0.
    pub fn write(&self, source_port: u16, destination_port: u16, header: &mut [u8]) {
        let header_bytes = header.len();
        let Some((fixed, options)) = header.split_first_chunk_mut::<HEADER_BYTES>() else { return };
        fixed[0..2].copy_from_slice(&source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        fixed[12] = ((header_bytes / 4) << 4) as u8;
        fixed[13] = self.flags.0;
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[16..20].fill(0);
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            options[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(largest) = self.maximum_segment {
            put(&[2, 4]);
            put(&largest.to_be_bytes());
        }
        match (self.timestamps.is_some(), self.sack_permitted) {
            (_, true) => put(&[4, 2]),
            (true, false) => put(&[1, 1]),
            (false, false) => {}
        }
        if let Some((value, echo)) = self.timestamps {
            put(&[8, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        } else if self.sack_permitted {
            put(&[1, 1]);
        }
        if let Some(shift) = self.window_scale {
            put(&[1, 3, 3, shift]);
        }
        if let blocks @ [_, ..] = self.sack.as_slice() {
            put(&[1, 1, 5, (2 + SACK_BLOCK_BYTES * blocks.len()) as u8]);
            for (begin, end) in blocks {
                put(&begin.to_be_bytes());
                put(&end.to_be_bytes());
            }
        }
    }

    /// The segment at the beginning of `bytes`, which end with its data.
    ///
    /// # Errors
    /// When there is no whole header.
    pub fn read(bytes: &[u8]) -> Result<Segment, SegmentError> {
        Segment::read_beginning(bytes, bytes.len())
    }

    /// The segment of `length` bytes in all that begins with `bytes`, which may end behind its header. Options that it
    /// does not know are passed over; what follows an option of an impossible length is not read.
    ///
    /// # Errors
    /// When there is no whole header.
    pub fn read_beginning(bytes: &[u8], length: usize) -> Result<Segment, SegmentError> {
        let Some((fixed, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Err(SegmentError::Short) };
        let header_bytes = usize::from(fixed[12] >> 4) * 4;
        if header_bytes < HEADER_BYTES {
            return Err(SegmentError::HeaderLength(header_bytes));
        }
        let Some((header, _)) = bytes.split_at_checked(header_bytes) else { return Err(SegmentError::Short) };
        let mut segment = Segment {
            sequence: word(&header[4..8]),
            acknowledgement: word(&header[8..12]),
            flags: Flags(header[13]),
            window: u16::from_be_bytes([header[14], header[15]]),
            data_bytes: length.saturating_sub(header_bytes) as u32,
            ..Segment::default()
        };
        let mut options = &header[HEADER_BYTES..];
        // What nearly all segments have: timestamps alone, behind two bytes of padding.
        if let Some((&TIMESTAMPS_BEGINNING, values)) = options.split_first_chunk()
            && values.len() == 8
        {
            segment.timestamps = Some((word(&values[..4]), word(&values[4..])));
            return Ok(segment);
        }
        while let [kind, rest @ ..] = options {
            options = match (kind, rest) {
                (0, _) => break,
                (1, _) => rest,
                (_, [length, ..]) => {
                    let Some((option, after)) = options.split_at_checked(usize::from(*length)) else { break };
                    if option.len() < 2 {
                        break;
                    }
                    segment.take_option(*kind, &option[2..]);
                    after
                }
                _ => break,
            };
        }
        Ok(segment)
    }

    fn take_option(&mut self, kind: u8, value: &[u8]) {
        match (kind, value) {
            (2, [high, low]) => self.maximum_segment = Some(u16::from_be_bytes([*high, *low])),
            (3, [shift]) => self.window_scale = Some((*shift).min(14)),
            (4, []) => self.sack_permitted = true,
            (5, blocks) => {
                for block in blocks.chunks_exact(SACK_BLOCK_BYTES) {
                    self.sack.push(word(&block[..4]), word(&block[4..]));
                }
            }
            (8, value) if value.len() == 8 => self.timestamps = Some((word(&value[..4]), word(&value[4..]))),
            _ => {}
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(segment: &Segment) -> Vec<u8> {
        let mut bytes = vec![0; segment.header_bytes() + segment.data_bytes as usize];
        segment.write(5_001, 49_152, &mut bytes[..segment.header_bytes()]);
        bytes
    }

    #[test]
    fn a_syn_is_laid_out_as_that_of_linux() {
        let syn = Segment {
            sequence: 0x0102_0304,
            flags: Flags::SYN,
            window: 64_240,
            maximum_segment: Some(1_460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((9, 0)),
            ..Segment::default()
        };
        let expected = [
            0x13, 0x89, 0xc0, 0x00, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, // Header.
            2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7,
        ];
        assert_eq!(bytes_of(&syn), expected);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut sack = SackBlocks::default();
        assert!(sack.push(100, 200) && sack.push(300, u32::MAX) && sack.push(5, 6));
        let plain = Segment { sequence: u32::MAX, acknowledgement: 17, data_bytes: 33, ..Segment::default() };
        let stamped = Segment { timestamps: Some((1, 2)), sack, flags: Flags::ACK.with(Flags::PSH), ..plain };
        let opening = Segment { sack_permitted: true, maximum_segment: Some(536), window_scale: Some(3), ..plain };
        for segment in [plain, stamped, opening] {
            assert_eq!(Segment::read(&bytes_of(&segment)), Ok(segment));
        }
        assert_eq!(stamped.header_bytes(), MOST_HEADER_BYTES);
    }

    #[test]
    fn damaged_headers_are_refused_or_read_as_far_as_they_go() {
        let whole = bytes_of(&Segment { timestamps: Some((1, 2)), ..Segment::default() });
        for length in 0..whole.len() {
            assert_eq!(Segment::read(&whole[..length]), Err(SegmentError::Short));
        }
        let mut short = whole.clone();
        short[12] = 0x40;
        assert_eq!(Segment::read(&short), Err(SegmentError::HeaderLength(16)));
        for length in [0, 1, 200] {
            let mut odd = whole.clone();
            odd[23] = length;
            assert_eq!(Segment::read(&odd).unwrap().timestamps, None);
        }
    }
}
