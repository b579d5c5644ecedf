// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Written frames with link headers.

use airpath_core::{Damage, FiveTuple};
use airpath_packet::checksum;
use airpath_packet::protocol::TCP;
use bytes::BytesMut;

use super::*;
use crate::engine_loop::ingress::Arrival;
use crate::packet_bytes::{naive_check, tcp_packet};
use crate::ports::{Received, Segmentation};

const TAGGED_IP: [u8; 18] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0x20, 7, 8, 0];
const UNKNOWN: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];

fn arrival(header: &[u8], packet: &[u8], offload: OffloadHeader) -> Arrival {
    let bytes = BytesMut::from(&[header, packet].concat()[..]);
    let received = Received { bytes, link_bytes: header.len() as u8, stamp_realtime_ns: None, offload, journey: None };
    Arrival::read(received, 0, Time::ZERO, None).unwrap()
}

fn written(egress: &Egress) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entry = |entry: &Entry| {
        let link_header = egress.headers[entry.link_header.clone()].to_vec();
        (link_header, [&egress.headers[entry.header.clone()], &entry.body].concat())
    };
    egress.entries.iter().map(entry).collect()
}

#[test]
fn segments_keep_the_link_header_of_their_frame_and_lengths_do_not_count_it() {
    let whole = tcp_packet(4, 0, 300);
    let header_bytes = whole.len() - 300;
    let offload = OffloadHeader {
        needs_checksum: true,
        segmentation: Segmentation::TcpV4,
        header_bytes: header_bytes as u16,
        segment_bytes: 100,
        checksum_start: 20,
        checksum_offset: 16,
        ..OffloadHeader::default()
    };
    let mut other = TAGGED_IP;
    other[15] = 8;
    let mut egress = Egress::default();
    for header in [TAGGED_IP, other] {
        let arrival = arrival(&header, &whole, offload);
        assert_eq!((arrival.segments(), arrival.first_bytes() as usize), (3, header_bytes + 100));
        for index in 0..3 {
            let pdu = arrival.pdu(&arrival.flow(), index, 1);
            assert_eq!((pdu.len as usize, pdu.header_len as usize), (header_bytes + 100, header_bytes));
            naive_check(&finished_bytes(&pdu)).unwrap();
            egress.push(&pdu, Time::ZERO, Span::ZERO);
        }
    }
    egress.close();
    let frames = written(&egress);
    assert_eq!(frames.iter().map(|frame| frame.0.clone()).collect::<Vec<_>>(), [TAGGED_IP.to_vec(), other.to_vec()]);
    assert!(frames.iter().all(|frame| frame.1.len() == whole.len()));
    assert!(egress.entries.iter().all(|entry| entry.pdus == 3 && entry.offload.is_super_packet()));
}

#[test]
fn a_frame_that_is_no_ip_passes_as_it_came_whatever_it_looks_like() {
    // As an IPv4 packet with ECT(0) would begin.
    let payload = [&[0x45, 2][..], &[7; 60]].concat();
    let arrival = arrival(&UNKNOWN, &payload, OffloadHeader::default());
    let pdu = arrival.pdu(&arrival.flow(), 0, 1);
    assert_eq!((pdu.len, pdu.header_len, pdu.ecn, pdu.tuple), (62, 0, Ecn::NotEct, FiveTuple::default()));
    assert_ne!(pdu.flow, 0);
    assert!(!is_changed(&pdu));
    let damage = Damage { flips: vec![0], truncated_to: Some(3) };
    let mut egress = Egress::default();
    egress.push(&pdu, Time::ZERO, Span::ZERO);
    egress.push(&Pdu { damage: Some(Box::new(damage)), ..pdu }, Time::ZERO, Span::ZERO);
    egress.close();
    let damaged = vec![0xc5, 2, 7];
    assert_eq!(written(&egress), [(UNKNOWN.to_vec(), payload), (UNKNOWN.to_vec(), damaged)]);
}

#[test]
fn a_marked_packet_in_a_frame_keeps_its_link_header() {
    let packet = tcp_packet(4, 0, 100);
    let arrival = arrival(&TAGGED_IP, &packet, OffloadHeader::default());
    let mut egress = Egress::default();
    egress.push(&Pdu { ecn: Ecn::Ce, ..arrival.pdu(&arrival.flow(), 0, 1) }, Time::ZERO, Span::ZERO);
    egress.close();
    let [(link_header, marked)] = &written(&egress)[..] else { panic!() };
    assert_eq!((&link_header[..], ecn_of(marked), marked.len()), (&TAGGED_IP[..], Some(Ecn::Ce), packet.len()));
    naive_check(marked).unwrap();
}

#[test]
fn a_port_that_takes_no_unfinished_packets_gets_segments_and_checksums_complete() {
    let whole = tcp_packet(4, 0, 300);
    let header_bytes = whole.len() - 300;
    let checksum_left =
        OffloadHeader { needs_checksum: true, checksum_start: 20, checksum_offset: 16, ..OffloadHeader::default() };
    let super_packet = OffloadHeader {
        segmentation: Segmentation::TcpV4,
        header_bytes: header_bytes as u16,
        segment_bytes: 100,
        ..checksum_left
    };
    let mut left = whole.clone();
    let sum = checksum::pseudo_header_sum(&left[12..20], left.len() - 20, TCP);
    left[36..38].copy_from_slice(&checksum::fold(sum).to_be_bytes());
    let mut egress = Egress { finishes: true, ..Egress::default() };
    for (packet, offload) in [(&whole, super_packet), (&left, checksum_left)] {
        let arrival = arrival(&TAGGED_IP, packet, offload);
        for index in 0..arrival.segments() {
            egress.push(&arrival.pdu(&arrival.flow(), index, 1), Time::ZERO, Span::ZERO);
        }
    }
    egress.close();
    let frames = written(&egress);
    let lengths = [header_bytes + 100, header_bytes + 100, header_bytes + 100, whole.len()];
    assert_eq!(frames.iter().map(|frame| frame.1.len()).collect::<Vec<_>>(), lengths);
    assert!(egress.entries.iter().all(|entry| entry.offload == OffloadHeader::default()));
    for (link_header, packet) in &frames {
        assert_eq!(link_header, &TAGGED_IP);
        naive_check(packet).unwrap();
    }
}
