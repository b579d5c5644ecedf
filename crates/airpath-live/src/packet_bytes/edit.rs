//! The only place where packets are rewritten; every edit keeps the checksums
//! that it touches correct.

use super::headers::Headers;
use crate::ports::OffloadHeader;
use airpath_core::{Ecn, checksum};

/// Bytes of an IPv4 header without options, and of the part of an IPv6 header
/// that holds its traffic class.
const IPV4_BYTES: usize = 20;
const IPV6_CLASS_BYTES: usize = 2;

/// How many bytes from the front of a packet [`set_ecn`] looks at and changes.
pub const ECN_EDIT_BYTES: usize = IPV4_BYTES;

/// The ECN field of an IP packet, of which the beginning is enough.
pub fn ecn_of(packet: &[u8]) -> Option<Ecn> {
    match packet.first()? >> 4 {
        4 if packet.len() >= IPV4_BYTES => Some(Ecn::of(packet[1])),
        6 if packet.len() >= IPV6_CLASS_BYTES => Some(Ecn::of(packet[1] >> 4)),
        _ => None,
    }
}

/// Sets the ECN field and corrects the IPv4 header checksum; the transport
/// checksum does not cover it. The beginning of a packet is enough. Returns
/// whether there was an IP header to edit.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> bool {
    if ecn_of(packet).is_none() {
        return false;
    }
    if packet[0] >> 4 == 4 {
        let before = u16::from_be_bytes([packet[0], packet[1]]);
        packet[1] = packet[1] & !3 | ecn as u8;
        let after = u16::from_be_bytes([packet[0], packet[1]]);
        update_ipv4_checksum(packet, before, after);
    } else {
        packet[1] = packet[1] & !0x30 | (ecn as u8) << 4;
    }
    true
}

/// Makes the IP header state `bytes` (which the caller then cuts the packet
/// to), with a correct IPv4 header checksum; the transport header stays as it
/// is, as after a link has lost a packet's tail. Returns whether that was
/// possible: there is an IP header, and it fits into `bytes`.
///
/// Left out, the kernel drops the packet for stating more than there is.
pub fn shorten(packet: &mut [u8], bytes: usize) -> bool {
    let Some(headers) = Headers::read(packet) else {
        return false;
    };
    if bytes < headers.ip_bytes || bytes > headers.stated_bytes {
        return false;
    }
    match headers.version {
        4 => {
            let before = u16::from_be_bytes([packet[2], packet[3]]);
            let after = bytes as u16;
            packet[2..4].copy_from_slice(&after.to_be_bytes());
            update_ipv4_checksum(packet, before, after);
        }
        _ => packet[4..6].copy_from_slice(&((bytes - 40) as u16).to_be_bytes()),
    }
    true
}

fn update_ipv4_checksum(packet: &mut [u8], before: u16, after: u16) {
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let updated = checksum::update(checksum, before, after);
    packet[10..12].copy_from_slice(&updated.to_be_bytes());
}

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
    let start = usize::from(offload.checksum_start);
    let field = start + usize::from(offload.checksum_offset);
    if field + 2 > packet.len() || start >= packet.len() {
        return false;
    }
    // The field holds the sum of the pseudo header, so it is summed along.
    let value = checksum::checksum(&packet[start..]);
    // Zero would mean "no checksum" to UDP; all ones is the same number.
    let value = if value == 0 { 0xffff } else { value };
    packet[field..field + 2].copy_from_slice(&value.to_be_bytes());
    offload.needs_checksum = false;
    offload.checksum_start = 0;
    offload.checksum_offset = 0;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_bytes::segment::tests::{naive_check, tcp_packet};

    #[test]
    fn ecn_edits_keep_checksums_right() {
        for version in [4, 6] {
            for ecn in [Ecn::Ce, Ecn::Ect0, Ecn::NotEct] {
                let mut packet = tcp_packet(version, 0, 33);
                let dscp = Headers::read(&packet).unwrap().dscp();
                assert!(set_ecn(&mut packet, ecn));
                let headers = Headers::read(&packet).unwrap();
                assert_eq!(Ecn::of(headers.traffic_class), ecn);
                assert_eq!(ecn_of(&packet), Some(ecn));
                assert_eq!(headers.dscp(), dscp);
                naive_check(&packet).unwrap();
            }
        }
        assert!(!set_ecn(&mut [], Ecn::Ect0));
        assert!(!set_ecn(&mut [0x45], Ecn::Ect0));
        assert_eq!((ecn_of(&[]), ecn_of(&[0x45; 19]), ecn_of(&[0x60]), ecn_of(&[0; 40])), (None, None, None, None));
    }

    #[test]
    fn shortening_keeps_the_ip_header_right_and_breaks_the_transport() {
        for version in [4, 6] {
            let mut packet = tcp_packet(version, 0, 100);
            let bytes = packet.len() - 51;
            assert!(shorten(&mut packet, bytes));
            packet.truncate(bytes);
            let headers = Headers::read(&packet).unwrap();
            assert_eq!(headers.stated_bytes, bytes);
            if version == 4 {
                assert_eq!(checksum::checksum(&packet[..20]), 0);
            }
            assert!(naive_check(&packet).is_err());
            assert!(!shorten(&mut packet, 10));
            assert!(!shorten(&mut packet, bytes + 1));
        }
    }

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
