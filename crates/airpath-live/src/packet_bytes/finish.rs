// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Checksums that the sending kernel left to the device.

use airpath_packet::checksum;

use crate::ports::OffloadHeader;

/// Finishes the transport checksum that the sending kernel left to the device,
/// and marks it as finished. It must be done before a packet is corrupted:
/// the receiving kernel believes a packet whose checksum is left to it.
///
/// Returns whether the packet's checksum is now complete (false for a header
/// that points outside the packet: the packet is malformed).
pub fn complete_checksum(packet: &mut [u8], offload: &mut OffloadHeader) -> bool {
    if !offload.needs_checksum {
        return true;
    }
    if !checksum::finish(packet, usize::from(offload.checksum_start), usize::from(offload.checksum_offset)) {
        return false;
    }
    offload.needs_checksum = false;
    offload.checksum_start = 0;
    offload.checksum_offset = 0;
    true
}

#[cfg(test)]
mod tests {
    use airpath_packet::Headers;

    use super::*;
    use crate::packet_bytes::{naive_check, tcp_packet};

    #[test]
    fn a_partial_checksum_is_completed() {
        for version in [4_u8, 6] {
            for payload in [0, 1, 100, 1401] {
                let mut packet = tcp_packet(version, 12, payload);
                let headers = Headers::read(&packet).unwrap();
                let field = headers.ip_bytes + 16;
                let sum = checksum::pseudo_header_sum(headers.addresses(&packet), packet.len() - headers.ip_bytes, 6);
                packet[field..field + 2].copy_from_slice(&checksum::fold(sum).to_be_bytes());
                let mut offload = OffloadHeader {
                    needs_checksum: true,
                    checksum_start: headers.ip_bytes as u16,
                    checksum_offset: 16,
                    ..OffloadHeader::default()
                };
                assert!(naive_check(&packet).is_err());
                assert!(complete_checksum(&mut packet, &mut offload));
                naive_check(&packet).unwrap();
                assert_eq!(offload, OffloadHeader::default());
            }
        }
    }

    #[test]
    fn a_checksum_outside_the_packet_is_refused() {
        let mut packet = tcp_packet(4, 0, 0);
        let mut offload = OffloadHeader {
            needs_checksum: true,
            checksum_start: packet.len() as u16,
            checksum_offset: 16,
            ..OffloadHeader::default()
        };
        assert!(!complete_checksum(&mut packet, &mut offload));
    }
}
