// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The header by which the kernel and a device agree on unfinished work:
//! checksums and segmentation (`struct virtio_net_hdr`).

/// Bytes of the header in front of every packet.
pub(super) const HEADER_BYTES: usize = 10;

const NEEDS_CHECKSUM: u8 = 1;
const ECN_BIT: u8 = 0x80;

/// Segmentation of a super-packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Segmentation {
    /// One packet, not to be cut.
    #[default]
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams, each with a header of its own.
    Udp,
    /// Something this crate does not know; the number is the kernel's.
    Other(u8),
}

/// Work that the sender of a packet left undone. Offsets count from the first byte of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffloadHeader {
    /// The transport checksum holds only the sum of the pseudo header.
    pub needs_checksum: bool,
    /// Segmentation of the packet.
    pub segmentation: Segmentation,
    /// The first segment carries TCP's CWR flag, which the others must not.
    pub ecn: bool,
    /// IP and transport headers, in bytes (a hint).
    pub header_bytes: u16,
    /// Payload of each segment but the last, in bytes.
    pub segment_bytes: u16,
    /// Start of the checksummed part.
    pub checksum_start: u16,
    /// Position of the checksum, counted from `checksum_start`.
    pub checksum_offset: u16,
}

impl OffloadHeader {
    /// Decodes the kernel's header; `frame_bytes` is the length of whatever
    /// precedes the IP header in the kernel's view (14 for Ethernet).
    pub(super) fn decode(raw: &[u8; HEADER_BYTES], frame_bytes: u16) -> Self {
        let word = |at: usize| u16::from_ne_bytes([raw[at], raw[at + 1]]);
        let needs_checksum = raw[0] & NEEDS_CHECKSUM != 0;
        let segmentation = match raw[1] & !ECN_BIT {
            0 => Segmentation::None,
            1 => Segmentation::TcpV4,
            4 => Segmentation::TcpV6,
            5 => Segmentation::Udp,
            other => Segmentation::Other(other),
        };
        Self {
            needs_checksum,
            segmentation,
            ecn: raw[1] & ECN_BIT != 0,
            header_bytes: word(2).saturating_sub(frame_bytes),
            segment_bytes: word(4),
            checksum_start: if needs_checksum { word(6).saturating_sub(frame_bytes) } else { 0 },
            checksum_offset: if needs_checksum { word(8) } else { 0 },
        }
    }

    /// The kernel's form of the header.
    pub(super) fn encode(&self, frame_bytes: u16) -> [u8; HEADER_BYTES] {
        let mut raw = [0; HEADER_BYTES];
        if self.needs_checksum {
            raw[0] = NEEDS_CHECKSUM;
            raw[6..8].copy_from_slice(&(self.checksum_start + frame_bytes).to_ne_bytes());
            raw[8..10].copy_from_slice(&self.checksum_offset.to_ne_bytes());
        }
        raw[1] = match self.segmentation {
            Segmentation::None => 0,
            Segmentation::TcpV4 => 1,
            Segmentation::TcpV6 => 4,
            Segmentation::Udp => 5,
            Segmentation::Other(number) => number,
        };
        if self.segmentation != Segmentation::None {
            if self.ecn {
                raw[1] |= ECN_BIT;
            }
            raw[2..4].copy_from_slice(&(self.header_bytes + frame_bytes).to_ne_bytes());
            raw[4..6].copy_from_slice(&self.segment_bytes.to_ne_bytes());
        }
        raw
    }

    /// True if the packet stands for several on the wire.
    pub fn is_super_packet(&self) -> bool {
        self.segmentation != Segmentation::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_inverts_encoding() {
        let header = OffloadHeader {
            needs_checksum: true,
            segmentation: Segmentation::TcpV6,
            ecn: true,
            header_bytes: 72,
            segment_bytes: 1428,
            checksum_start: 40,
            checksum_offset: 16,
        };
        for frame_bytes in [0, 14] {
            let raw = header.encode(frame_bytes);
            assert_eq!(OffloadHeader::decode(&raw, frame_bytes), header);
        }
        assert_eq!(OffloadHeader::default().encode(14), [0; HEADER_BYTES]);
    }
}
