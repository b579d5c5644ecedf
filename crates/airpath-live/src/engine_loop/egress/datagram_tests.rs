// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Runs of datagrams: what the kernel cuts them into is what was read.

use airpath_packet::checksum;

use super::*;
use crate::packet_bytes::complete_checksum;

/// A datagram whose checksum is left to the receiver.
fn datagram(version: u8, number: u16, port: u16, payload: &[u8]) -> (Vec<u8>, OffloadHeader) {
    let udp_bytes = 8 + payload.len();
    let mut packet = match version {
        4 => {
            let mut ip = vec![0x45, 2, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            ip[2..4].copy_from_slice(&(20 + udp_bytes as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&number.to_be_bytes());
            let value = checksum::checksum(&ip);
            ip[10..12].copy_from_slice(&value.to_be_bytes());
            ip
        }
        _ => {
            let mut ip = vec![0x60, 0x20, 0, 7, 0, 0, 17, 64];
            ip[4..6].copy_from_slice(&(udp_bytes as u16).to_be_bytes());
            ip.extend((0..32).map(|byte| byte % 16));
            ip
        }
    };
    let ip_bytes = packet.len();
    let addresses = if version == 4 { &packet[12..20] } else { &packet[8..40] };
    let pseudo = checksum::fold(checksum::pseudo_header_sum(addresses, udp_bytes, 17));
    for word in [5000, port, udp_bytes as u16, pseudo] {
        packet.extend(word.to_be_bytes());
    }
    packet.extend(payload);
    let offload = OffloadHeader {
        needs_checksum: true,
        checksum_start: ip_bytes as u16,
        checksum_offset: 6,
        ..OffloadHeader::default()
    };
    (packet, offload)
}

/// Writes datagrams in one flush: the numbers of datagrams in each packet that is written, and all packets that arrive.
fn flushed(datagrams: &[(Vec<u8>, OffloadHeader)]) -> (Vec<u32>, Vec<Vec<u8>>) {
    let mut egress = Egress { joins_datagrams: true, ..Egress::default() };
    for (bytes, offload) in datagrams {
        let payload = Payload::Segment { whole: bytes.clone().into(), index: 0, layout: layout::pack(offload, 0) };
        // The ECN field of the packets above.
        let pdu = Pdu { ecn: Ecn::Ect0, payload, ..Pdu::default() };
        egress.push(&pdu, Time::ZERO, Span::ZERO);
    }
    egress.close();
    egress.close_runs();
    let mut arrived = Vec::new();
    for entry in &egress.entries {
        let skip = if entry.run.is_empty() { 0 } else { entry.datagram_header };
        let bodies = std::iter::once(&entry.body).chain(&entry.run).flat_map(|body| body[skip..].to_vec());
        let whole: Vec<u8> = egress.headers[entry.header.clone()].iter().copied().chain(bodies).collect();
        if entry.offload.is_super_packet() {
            let segments = Segmenter::new(&whole, &entry.offload, ChecksumWork::Complete).unwrap();
            arrived.extend(segments.map(|segment| [segment.bytes(), &whole[segment.payload.clone()]].concat()));
        } else {
            let (mut bytes, mut offload) = (whole, entry.offload);
            complete_checksum(&mut bytes, &mut offload);
            arrived.push(bytes);
        }
    }
    (egress.entries.iter().map(|entry| entry.pdus).collect(), arrived)
}

fn finished(datagrams: &[(Vec<u8>, OffloadHeader)]) -> Vec<Vec<u8>> {
    let finish = |(bytes, offload): &(Vec<u8>, OffloadHeader)| {
        let (mut bytes, mut offload) = (bytes.clone(), *offload);
        complete_checksum(&mut bytes, &mut offload);
        bytes
    };
    datagrams.iter().map(finish).collect()
}

#[test]
fn equal_datagrams_of_a_flow_leave_as_one_and_arrive_as_they_were() {
    for version in [4, 6] {
        let sent: Vec<_> = (0..70u8)
            .map(|index| datagram(version, 65_500u16.wrapping_add(u16::from(index)), 9, &[index; 64]))
            .collect();
        let (counts, arrived) = flushed(&sent);
        // 64 at most; with IPv4 the identification wraps on the way.
        assert_eq!(counts, [64, 6], "IPv{version}");
        assert_eq!(arrived, finished(&sent));
    }
}

#[test]
fn what_the_kernel_would_make_otherwise_leaves_alone() {
    let one = |number, port, payload: usize| datagram(4, number, port, &vec![7; payload]);
    // Numbers that do not count up, as of sockets that are not connected; other ports; other lengths.
    for datagrams in [
        vec![one(5, 9, 64), one(5, 9, 64), one(7, 9, 64)],
        vec![one(5, 9, 64), one(6, 8, 64), one(7, 9, 64)],
        vec![one(5, 9, 64), one(6, 9, 63), one(7, 9, 64)],
    ] {
        let (counts, arrived) = flushed(&datagrams);
        assert_eq!((counts, arrived), (vec![1, 1, 1], finished(&datagrams)));
    }
    // A datagram with a finished checksum is not known to be right; a fragment is none.
    let (bytes, offload) = one(5, 9, 64);
    assert_eq!(datagrams::header_bytes(&bytes, &OffloadHeader::default()), None);
    let mut fragment = bytes.clone();
    fragment[6] = 0x20;
    assert_eq!(datagrams::header_bytes(&fragment, &offload), None);
    assert_eq!(datagrams::header_bytes(&bytes, &offload), Some(28));
    // No super-packet is longer than a packet can be.
    let long: Vec<_> = (0..50).map(|number| one(number, 9, 1472)).collect();
    let (counts, arrived) = flushed(&long);
    assert_eq!((counts, arrived), (vec![43, 7], finished(&long)));
}
