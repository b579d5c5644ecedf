// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The ports' encoding of what is unfinished in a packet, and of where it begins behind its link header, as one word
//! that travels with the PDU.

use crate::ports::{OffloadHeader, Segmentation};

/// Width of each field of the word, in bits.
const START_BITS: u32 = 12;
const OFFSET_BITS: u32 = 8;
const HEADER_BITS: u32 = 12;

/// True if [`pack`] can hold the numbers of `offload`: kernels ask for no more, but a program with a raw socket
/// may.
pub fn fits(offload: &OffloadHeader) -> bool {
    offload.checksum_start >> START_BITS == 0
        && offload.checksum_offset >> OFFSET_BITS == 0
        && offload.header_bytes >> HEADER_BITS == 0
}

/// Place of the length of the link header in the word.
const LINK_SHIFT: u32 = 56;

/// Packs `offload`, which [`fits`], into a word, with the bytes of the link header before the packet.
pub fn pack(offload: &OffloadHeader, link_bytes: u8) -> u64 {
    debug_assert!(fits(offload), "{offload:?}");
    let segmentation = match offload.segmentation {
        Segmentation::None => 0u64,
        Segmentation::TcpV4 => 1,
        Segmentation::TcpV6 => 2,
        Segmentation::Udp => 3,
        Segmentation::Other(_) => 4,
    };
    u64::from(offload.segment_bytes)
        | u64::from(offload.checksum_start & 0xfff) << 16
        | u64::from(offload.checksum_offset & 0xff) << 28
        | u64::from(offload.header_bytes & 0xfff) << 36
        | segmentation << 48
        | u64::from(offload.needs_checksum) << 52
        | u64::from(offload.ecn) << 53
        | u64::from(link_bytes) << LINK_SHIFT
}

/// Bytes of the link header before the packet.
pub fn link_bytes(word: u64) -> u8 {
    (word >> LINK_SHIFT) as u8
}

/// Reads what [`pack`] packed.
pub fn unpack(word: u64) -> OffloadHeader {
    OffloadHeader {
        needs_checksum: word >> 52 & 1 == 1,
        segmentation: match word >> 48 & 7 {
            0 => Segmentation::None,
            1 => Segmentation::TcpV4,
            2 => Segmentation::TcpV6,
            3 => Segmentation::Udp,
            _ => Segmentation::Other(0),
        },
        ecn: word >> 53 & 1 == 1,
        header_bytes: (word >> 36 & 0xfff) as u16,
        segment_bytes: word as u16,
        checksum_start: (word >> 16 & 0xfff) as u16,
        checksum_offset: (word >> 28 & 0xff) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacking_inverts_packing() {
        for segmentation in [Segmentation::None, Segmentation::TcpV4, Segmentation::TcpV6, Segmentation::Udp] {
            let header = OffloadHeader {
                needs_checksum: true,
                segmentation,
                ecn: true,
                header_bytes: 132,
                segment_bytes: 65_000,
                checksum_start: 120,
                checksum_offset: 16,
            };
            for link in [0, 14, 255] {
                let word = pack(&header, link);
                assert_eq!((unpack(word), link_bytes(word)), (header, link));
            }
        }
        assert_eq!(unpack(pack(&OffloadHeader::default(), 0)), OffloadHeader::default());
    }

    #[test]
    fn what_fits_reads_back_and_what_does_not_is_told() {
        let header = |checksum_start, checksum_offset, header_bytes| OffloadHeader {
            needs_checksum: true,
            checksum_start,
            checksum_offset,
            header_bytes,
            ..OffloadHeader::default()
        };
        let largest = header(4095, 255, 4095);
        assert!(fits(&largest));
        assert_eq!(unpack(pack(&largest, u8::MAX)), largest);
        for too_large in [header(4096, 0, 0), header(0, 256, 0), header(0, 0, 4096), header(65_535, 65_535, 65_535)] {
            assert!(!fits(&too_large), "{too_large:?}");
        }
    }
}
