// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The header of an RTP packet (RFC 3550, section 5.1).

use airpath_workload::kinds::RTP_BYTES;

/// Bytes of a header without extensions.
pub(super) const HEADER_BYTES: usize = RTP_BYTES as usize;
/// The clock of video (RFC 3551).
pub(super) const CLOCK_HZ: u32 = 90_000;

const VERSION_2: u8 = 0x80;
const MARKER: u8 = 0x80;
/// The first of the dynamic payload types (RFC 3551, section 3).
const PAYLOAD_TYPE: u8 = 96;

/// Fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// True for a frame's last packet.
    pub marker: bool,
    /// Counts packets.
    pub sequence: u16,
    /// Capture time of the frame, in ticks of the clock.
    pub timestamp: u32,
    /// Identifier of the sender.
    pub source: u32,
}

impl Header {
    pub(super) fn write(&self, packet: &mut [u8]) {
        packet[0] = VERSION_2;
        packet[1] = if self.marker { MARKER | PAYLOAD_TYPE } else { PAYLOAD_TYPE };
        packet[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        packet[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        packet[8..12].copy_from_slice(&self.source.to_be_bytes());
    }

    /// Reads a header; none where there is none of ours.
    pub(super) fn read(packet: &[u8]) -> Option<Header> {
        let header = packet.first_chunk::<HEADER_BYTES>()?;
        if header[0] != VERSION_2 || header[1] & !MARKER != PAYLOAD_TYPE {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        Some(Header {
            marker: header[1] & MARKER != 0,
            sequence: u16::from_be_bytes([header[2], header[3]]),
            timestamp: word(4),
            source: word(8),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_laid_out_as_the_standard_says_and_reads_back() {
        let header = Header { marker: true, sequence: 0x1234, timestamp: 0x0102_0304, source: 0xdead_beef };
        let mut packet = [0; 14];
        header.write(&mut packet);
        assert_eq!(packet, [0x80, 0xe0, 0x12, 0x34, 1, 2, 3, 4, 0xde, 0xad, 0xbe, 0xef, 0, 0]);
        assert_eq!(Header::read(&packet), Some(header));
        assert_eq!(Header::read(&packet[..11]), None);
        packet[0] ^= 1;
        assert_eq!(Header::read(&packet), None);
    }
}
