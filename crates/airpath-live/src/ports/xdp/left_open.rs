// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Checksums that a kernel left to the device, as on a veth pair. AF_XDP does not tell of them; the packet does: the
//! field has the sum of the pseudo header and nothing else. To finish a checksum that was complete and looks so by
//! chance does no harm, because the sum over the whole comes to the same.

use airpath_packet::protocol::{TCP, UDP};
use airpath_packet::{Headers, checksum};

use crate::ports::OffloadHeader;

/// Description of the work left on the checksum of an IP packet; the default if it is complete.
pub(super) fn left_open(packet: &[u8]) -> OffloadHeader {
    open_checksum(packet).unwrap_or_default()
}

fn open_checksum(packet: &[u8]) -> Option<OffloadHeader> {
    let (headers, packet) = Headers::read_captured(packet)?;
    let transport =
        headers.transport.filter(|_| matches!(headers.protocol, TCP | UDP) && headers.fragment.is_none())?;
    let field = headers.ip_bytes + transport.checksum_offset;
    let held = packet.get(field..field + 2)?;
    let transport_bytes = packet.len().checked_sub(headers.ip_bytes)?;
    let sum = checksum::pseudo_header_sum(headers.addresses(packet), transport_bytes, headers.protocol);
    if held != checksum::fold(sum).to_be_bytes() {
        return None;
    }
    Some(OffloadHeader {
        needs_checksum: true,
        checksum_start: headers.ip_bytes as u16,
        checksum_offset: transport.checksum_offset as u16,
        ..OffloadHeader::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram over IPv4 whose checksum holds the sum of the pseudo header.
    fn datagram(payload: &[u8]) -> Vec<u8> {
        let bytes = 28 + payload.len();
        let mut packet = vec![0x45, 0, 0, bytes as u8, 0, 0, 0, 0, 64, UDP, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet.extend([0, 7, 0, 9, 0, 8 + payload.len() as u8, 0, 0]);
        packet.extend(payload);
        let sum = checksum::pseudo_header_sum(&packet[12..20], 8 + payload.len(), UDP);
        packet[26..28].copy_from_slice(&checksum::fold(sum).to_be_bytes());
        packet
    }

    #[test]
    fn an_open_checksum_is_told_and_a_finished_one_is_not() {
        let mut packet = datagram(b"hello");
        let open = left_open(&packet);
        assert_eq!((open.needs_checksum, open.checksum_start, open.checksum_offset), (true, 20, 6));
        // Padding of a short frame is no part of the packet.
        assert_eq!(left_open(&[&packet[..], &[0; 13]].concat()), open);
        assert!(checksum::finish(&mut packet, 20, 6));
        assert_eq!(left_open(&packet), OffloadHeader::default());
        packet[27] ^= 1;
        assert_eq!(left_open(&packet), OffloadHeader::default());
    }

    #[test]
    fn to_finish_a_complete_checksum_that_looks_open_changes_nothing() {
        // The payload for which the complete checksum is the sum of the pseudo header.
        let found = (0..=u16::MAX).find_map(|word| {
            let open = datagram(&word.to_be_bytes());
            let mut finished = open.clone();
            checksum::finish(&mut finished, 20, 6);
            (finished == open).then_some(finished)
        });
        let looks_open = found.unwrap();
        assert!(left_open(&looks_open).needs_checksum);
    }

    #[test]
    fn what_has_no_such_checksum_is_left_alone() {
        let mut fragment = datagram(b"hello");
        fragment[6] = 0x20;
        let mut other = datagram(b"hello");
        other[9] = 132;
        for packet in [&fragment[..], &other, &[], &[0x45], &datagram(b"hello")[..27]] {
            assert_eq!(left_open(packet), OffloadHeader::default());
        }
    }
}
