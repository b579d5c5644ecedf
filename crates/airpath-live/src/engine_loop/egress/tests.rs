// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Written bytes of packets whose ECN field the link has changed.

use airpath_core::Damage;
use airpath_packet::checksum;

use super::*;
use crate::packet_bytes::{naive_check, tcp_packet};
use crate::ports::Segmentation;

/// A packet with correct checksums and ECT(0).
fn capable(version: u8, payload_bytes: usize) -> Bytes {
    let mut packet = tcp_packet(version, 0, payload_bytes);
    assert!(set_ecn(&mut packet, Ecn::Ect0));
    packet.into()
}

fn written(egress: &Egress) -> Vec<Vec<u8>> {
    let entries = egress.entries.iter();
    entries.map(|entry| [&egress.headers[entry.header.clone()], &entry.body].concat()).collect()
}

#[test]
fn a_marked_packet_gets_a_right_header_and_keeps_its_payload_where_it_was() {
    for version in [4, 6] {
        let bytes = capable(version, 100);
        let mut egress = Egress::default();
        let pdu = |ecn| Pdu { ecn, payload: Payload::Whole(bytes.clone()), ..Pdu::default() };
        egress.push(&pdu(Ecn::Ect0), Time::ZERO, Span::ZERO);
        egress.push(&pdu(Ecn::Ce), Time::ZERO, Span::ZERO);
        let [plain, marked] = &written(&egress)[..] else { panic!() };
        assert_eq!((plain, ecn_of(marked)), (&bytes.to_vec(), Some(Ecn::Ce)));
        naive_check(marked).unwrap();
        assert_eq!((marked.len(), &marked[20..]), (bytes.len(), &bytes[20..]));
        assert_eq!(egress.entries[1].body.as_ptr(), bytes[20..].as_ptr());
        assert!(!is_changed(&pdu(Ecn::Ect0)) && is_changed(&pdu(Ecn::Ce)));
    }
}

#[test]
fn what_is_no_ip_packet_any_more_is_not_written() {
    for version in [4, 6] {
        let bytes = capable(version, 100);
        let mut egress = Egress::default();
        // The first bit of the version, a bit of the payload, and nothing left at all.
        for (flips, truncated_to) in [(vec![0], None), (vec![8 * 90], None), (vec![], Some(0))] {
            let damage = Some(Box::new(Damage { flips, truncated_to }));
            egress.push(
                &Pdu { damage, payload: Payload::Whole(bytes.clone()), ..Pdu::default() },
                Time::ZERO,
                Span::ZERO,
            );
        }
        let [written] = &written(&egress)[..] else { panic!() };
        assert_eq!((written.len(), written[90] ^ bytes[90]), (bytes.len(), 0x80));
    }
}

#[test]
fn segments_are_written_together_only_with_equal_ecn_fields() {
    for (version, segmentation) in [(4, Segmentation::TcpV4), (6, Segmentation::TcpV6)] {
        let whole = capable(version, 5 * 100);
        let header_bytes = whole.len() - 500;
        let offload = OffloadHeader {
            needs_checksum: true,
            segmentation,
            header_bytes: header_bytes as u16,
            segment_bytes: 100,
            checksum_start: header_bytes as u16 - 20,
            checksum_offset: 16,
            ..OffloadHeader::default()
        };
        let fields = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ect0];
        let mut egress = Egress::default();
        for (index, ecn) in fields.into_iter().enumerate() {
            let payload =
                Payload::Segment { whole: whole.clone(), index: index as u16, layout: layout::pack(&offload, 0) };
            let pdu = Pdu { ecn, payload, ..Pdu::default() };
            egress.push(&pdu, Time::ZERO, Span::ZERO);
            // Alone, finished, as a capture has it.
            let finished = finished_bytes(&pdu);
            naive_check(&finished).unwrap();
            assert_eq!((ecn_of(&finished), finished.len()), (Some(ecn), header_bytes + 100));
            assert_eq!(is_changed(&pdu), ecn == Ecn::Ce);
            let damage = Damage { flips: vec![8 * 60], truncated_to: None };
            let damaged = damaged_bytes(&Pdu { damage: Some(Box::new(damage)), ..pdu });
            assert_eq!((ecn_of(&damaged), damaged[60] ^ finished[60]), (Some(ecn), 0x80));
        }
        egress.close();
        let packets = written(&egress);
        let seen: Vec<_> = packets.iter().map(|packet| (ecn_of(packet), packet.len() - header_bytes)).collect();
        assert_eq!(seen, [(Some(Ecn::Ect0), 100), (Some(Ecn::Ce), 200), (Some(Ecn::Ect0), 200)]);
        let pdus: Vec<u32> = egress.entries.iter().map(|entry| entry.pdus).collect();
        assert_eq!(pdus, [1, 2, 2]);
        let supers: Vec<bool> = egress.entries.iter().map(|entry| entry.offload.is_super_packet()).collect();
        assert_eq!(supers, [false, true, true]);
        if version == 4 {
            assert!(packets.iter().all(|packet| checksum::checksum(&packet[..20]) == 0));
        }
    }
}

/// A super-packet of `segments` segments with 100 bytes of payload each.
fn super_packet(segments: usize) -> (Bytes, OffloadHeader) {
    let whole = capable(4, segments * 100);
    let header_bytes = whole.len() - segments * 100;
    let offload = OffloadHeader {
        needs_checksum: true,
        segmentation: Segmentation::TcpV4,
        header_bytes: header_bytes as u16,
        segment_bytes: 100,
        checksum_start: header_bytes as u16 - 20,
        checksum_offset: 16,
        ..OffloadHeader::default()
    };
    (whole, offload)
}

#[test]
fn segments_due_within_a_quantum_are_written_together() {
    let (whole, offload) = super_packet(8);
    let pdu = |index| {
        let payload = Payload::Segment { whole: whole.clone(), index, layout: layout::pack(&offload, 0) };
        Pdu { ecn: Ecn::Ect0, payload, ..Pdu::default() }
    };
    let together = |quantum_ns, segments: &[(u16, u64)]| -> Vec<u32> {
        let mut egress = Egress::default();
        for (index, due_ns) in segments {
            egress.push(&pdu(*index), Time::from_nanos(*due_ns), Span::from_nanos(quantum_ns));
        }
        egress.close();
        written(&egress).iter().for_each(|packet| assert_eq!(checksum::checksum(&packet[..20]), 0));
        egress.entries.iter().map(|entry| entry.pdus).collect()
    };
    let paced: Vec<(u16, u64)> = (0..8).map(|index| (index, 1_200 * u64::from(index))).collect();
    assert_eq!(together(0, &paced), [1; 8]);
    // The span of those written together is no longer than the quantum, however many they are.
    assert_eq!(together(3_600, &paced), [4, 4]);
    assert_eq!(together(3_599, &paced), [3, 3, 2]);
    assert_eq!(together(1_000_000, &paced), [8]);
    // One was lost, two were swapped: what is not contiguous is written apart.
    assert_eq!(together(1_000_000, &[(0, 0), (1, 1), (3, 3), (4, 4)]), [2, 2]);
    assert_eq!(together(1_000_000, &[(0, 0), (2, 2), (1, 3), (3, 4)]), [1; 4]);
}

/// A packet whose checksum is left to the receiver stays unfinished when it is marked.
#[test]
fn an_unfinished_packet_stays_unfinished() {
    let bytes = capable(4, 100);
    let offload =
        OffloadHeader { needs_checksum: true, checksum_start: 20, checksum_offset: 16, ..OffloadHeader::default() };
    let payload = Payload::Segment { whole: bytes.clone(), index: 0, layout: layout::pack(&offload, 0) };
    let mut egress = Egress::default();
    egress.push(&Pdu { ecn: Ecn::Ce, payload, ..Pdu::default() }, Time::ZERO, Span::ZERO);
    egress.close();
    let marked = &written(&egress)[0];
    assert_eq!((ecn_of(marked), &marked[20..]), (Some(Ecn::Ce), &bytes[20..]));
    assert_eq!(checksum::checksum(&marked[..20]), 0);
    assert_eq!(egress.entries[0].offload, offload);
}
