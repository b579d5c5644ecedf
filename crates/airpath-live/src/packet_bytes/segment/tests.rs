// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets to test with, an independent check of checksums, and the tests of
//! cutting.

use proptest::prelude::*;

use super::*;

/// Adds word by word, carries put back at once: nothing shared with the code
/// under test.
fn naive_sum(parts: &[&[u8]]) -> u16 {
    let joined: Vec<u8> = parts.concat();
    let mut total: u32 = 0;
    for pair in joined.chunks(2) {
        total += u32::from(pair[0]) * 256 + u32::from(pair.get(1).copied().unwrap_or(0));
        if total > 65_535 {
            total -= 65_535;
        }
    }
    total as u16
}

/// Checks the checksums of a whole IP packet and that it states its length.
pub(crate) fn naive_check(packet: &[u8]) -> Result<(), String> {
    let version = packet[0] >> 4;
    let (ip_bytes, protocol, addresses, stated) = if version == 4 {
        let ip_bytes = usize::from(packet[0] & 15) * 4;
        if naive_sum(&[&packet[..ip_bytes]]) != 65_535 {
            return Err("IPv4 header checksum".into());
        }
        let stated = usize::from(packet[2]) * 256 + usize::from(packet[3]);
        (ip_bytes, packet[9], &packet[12..20], stated)
    } else {
        let stated = 40 + usize::from(packet[4]) * 256 + usize::from(packet[5]);
        (40, packet[6], &packet[8..40], stated)
    };
    if stated != packet.len() {
        return Err(format!("states {stated} bytes, has {}", packet.len()));
    }
    let length = (packet.len() - ip_bytes) as u32;
    let pseudo = [addresses, &length.to_be_bytes(), &[0, 0, 0, protocol]].concat();
    let sum = naive_sum(&[&pseudo, &packet[ip_bytes..]]);
    if sum == 65_535 { Ok(()) } else { Err(format!("transport checksum: sum {sum:#06x}")) }
}

/// Puts an IP header in front of `transport`.
fn with_ip(version: u8, protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    if version == 4 {
        let total = (20 + transport.len()) as u16;
        packet.extend([0x45, 0xb8]);
        packet.extend(total.to_be_bytes());
        packet.extend([0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0]);
        packet.extend([10, 77, 0, 2, 10, 77, 0, 1]);
        let checksum = !naive_sum(&[&packet]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    } else {
        packet.extend([0x6b, 0x80, 0, 0]);
        packet.extend((transport.len() as u16).to_be_bytes());
        packet.extend([protocol, 64]);
        packet.extend([0xfd; 16]);
        packet.extend([0xfe; 16]);
    }
    packet.extend(transport);
    packet
}

fn fill_checksum(packet: &mut [u8], ip_bytes: usize, at: usize) {
    let version = packet[0] >> 4;
    let (addresses, protocol) =
        if version == 4 { (packet[12..20].to_vec(), packet[9]) } else { (packet[8..40].to_vec(), packet[6]) };
    let length = (packet.len() - ip_bytes) as u32;
    let pseudo = [&addresses[..], &length.to_be_bytes(), &[0, 0, 0, protocol]].concat();
    let checksum = !naive_sum(&[&pseudo, &packet[ip_bytes..]]);
    let at = ip_bytes + at;
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// A TCP packet with correct checksums: ports 4000 to 5001, sequence number
/// 0xfffffff0, flags CWR, ACK, PSH, FIN.
pub(crate) fn tcp_packet(version: u8, option_bytes: usize, payload_bytes: usize) -> Vec<u8> {
    let mut tcp = vec![0x0f, 0xa0, 0x13, 0x89, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 9];
    tcp.extend([((20 + option_bytes) / 4 * 16) as u8, 0x99, 1, 2, 0, 0, 0, 0]);
    tcp.extend(vec![1; option_bytes]);
    tcp.extend((0..payload_bytes).map(|index| (index * 7 + index / 256) as u8));
    let mut packet = with_ip(version, TCP, &tcp);
    let ip_bytes = packet.len() - tcp.len();
    fill_checksum(&mut packet, ip_bytes, 16);
    packet
}

/// A UDP packet with correct checksums, ports 4000 to 5001.
pub(crate) fn udp_packet(version: u8, payload_bytes: usize) -> Vec<u8> {
    let mut udp = vec![0x0f, 0xa0, 0x13, 0x89];
    udp.extend(((8 + payload_bytes) as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend((0..payload_bytes).map(|index| (index * 3 + 1) as u8));
    let mut packet = with_ip(version, UDP, &udp);
    let ip_bytes = packet.len() - udp.len();
    fill_checksum(&mut packet, ip_bytes, 6);
    packet
}

fn offload(packet: &[u8], segmentation: Segmentation, segment_bytes: u16) -> OffloadHeader {
    let headers = Headers::read(packet).unwrap();
    OffloadHeader {
        needs_checksum: true,
        segmentation,
        ecn: false,
        header_bytes: headers.bytes() as u16,
        segment_bytes,
        checksum_start: headers.ip_bytes as u16,
        checksum_offset: headers.transport.unwrap().checksum_offset as u16,
    }
}

/// The segments as whole packets.
fn cut(packet: &[u8], offload: &OffloadHeader, work: ChecksumWork) -> Vec<Vec<u8>> {
    Segmenter::new(packet, offload, work)
        .unwrap()
        .map(|segment| {
            let mut bytes = [segment.bytes(), &packet[segment.payload.clone()]].concat();
            assert_eq!(bytes.len(), segment.packet_bytes());
            let mut offload = segment.offload;
            if work == ChecksumWork::Leave {
                assert!(offload.needs_checksum);
            }
            assert!(crate::packet_bytes::complete_checksum(&mut bytes, &mut offload));
            bytes
        })
        .collect()
}

proptest! {
    #[test]
    fn tcp_segments_are_whole_packets_in_order(
        six in any::<bool>(),
        options in 0_usize..=10,
        payload in 0_usize..20_000,
        segment_bytes in 1_u16..3000,
        leave in any::<bool>(),
    ) {
        let version = if six { 6 } else { 4 };
        let packet = tcp_packet(version, options * 4, payload);
        let kind = if six { Segmentation::TcpV6 } else { Segmentation::TcpV4 };
        let offload = offload(&packet, kind, segment_bytes);
        let work = if leave { ChecksumWork::Leave } else { ChecksumWork::Complete };
        let header_bytes = packet.len() - payload;
        let ip_bytes = if six { 40 } else { 20 };
        let segments = cut(&packet, &offload, work);
        let expected = payload.div_ceil(usize::from(segment_bytes)).max(1);
        prop_assert_eq!(segments.len(), expected);
        prop_assert_eq!(
            Segmenter::new(&packet, &offload, work).unwrap().count_all(),
            expected
        );
        let mut joined: Vec<u8> = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            prop_assert_eq!(naive_check(segment), Ok(()));
            let tcp = &segment[ip_bytes..];
            let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
            prop_assert_eq!(sequence, 0xffff_fff0_u32.wrapping_add(joined.len() as u32));
            let last = index + 1 == segments.len();
            prop_assert_eq!(tcp[13] & (TCP_FIN | TCP_PSH) != 0, last);
            prop_assert_eq!(tcp[13] & TCP_CWR != 0, index == 0);
            prop_assert_eq!(tcp[13] & 0x10, 0x10);
            if !six {
                let id = u16::from_be_bytes([segment[4], segment[5]]);
                prop_assert_eq!(id, 0xfffe_u16.wrapping_add(index as u16));
            }
            joined.extend(&segment[header_bytes..]);
        }
        prop_assert_eq!(&joined[..], &packet[header_bytes..]);
    }

    #[test]
    fn udp_segments_are_datagrams(
        six in any::<bool>(),
        payload in 1_usize..9000,
        segment_bytes in 1_u16..2000,
    ) {
        let version = if six { 6 } else { 4 };
        let packet = udp_packet(version, payload);
        let offload = offload(&packet, Segmentation::Udp, segment_bytes);
        let header_bytes = packet.len() - payload;
        let mut joined: Vec<u8> = Vec::new();
        for segment in cut(&packet, &offload, ChecksumWork::Complete) {
            prop_assert_eq!(naive_check(&segment), Ok(()));
            let udp = &segment[header_bytes - 8..];
            prop_assert_eq!(usize::from(u16::from_be_bytes([udp[4], udp[5]])), udp.len());
            joined.extend(&segment[header_bytes..]);
        }
        prop_assert_eq!(&joined[..], &packet[header_bytes..]);
    }

    #[test]
    fn no_bytes_make_it_panic(
        packet in prop::collection::vec(any::<u8>(), 0..400),
        kind in 0..3,
        segment_bytes in any::<u16>(),
    ) {
        let segmentation = match kind {
            0 => Segmentation::TcpV4,
            1 => Segmentation::TcpV6,
            _ => Segmentation::Udp,
        };
        let offload = OffloadHeader { segmentation, segment_bytes, ..OffloadHeader::default() };
        if let Ok(segments) = Segmenter::new(&packet, &offload, ChecksumWork::Complete) {
            prop_assert!(segments.count() <= 400);
        }
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let packet = tcp_packet(4, 0, 100);
    let refused = |packet: &[u8], segmentation, segment_bytes| {
        let offload = OffloadHeader { segmentation, segment_bytes, ..OffloadHeader::default() };
        Segmenter::new(packet, &offload, ChecksumWork::Complete).is_err()
    };
    assert!(refused(&packet, Segmentation::TcpV4, 0));
    assert!(refused(&packet, Segmentation::TcpV6, 10));
    assert!(refused(&packet, Segmentation::Udp, 10));
    assert!(refused(&packet, Segmentation::Other(3), 10));
    assert!(refused(&packet, Segmentation::None, 10));
    assert!(refused(&packet[..30], Segmentation::TcpV4, 10));
}

#[test]
fn udp_without_checksum_stays_without() {
    let mut packet = udp_packet(4, 100);
    packet[26..28].copy_from_slice(&[0, 0]);
    let offload = OffloadHeader { segmentation: Segmentation::Udp, segment_bytes: 40, ..OffloadHeader::default() };
    let segments: Vec<_> = Segmenter::new(&packet, &offload, ChecksumWork::Complete).unwrap().collect();
    assert_eq!(segments.len(), 3);
    for segment in segments {
        assert_eq!(segment.bytes()[26..28], [0, 0]);
        assert_eq!(segment.offload, OffloadHeader::default());
    }
}
