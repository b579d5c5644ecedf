// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A packet as a port may read it: ten bytes of what the sender left to the device, then the packet.

use airpath_core::Ecn;
use airpath_live::packet_bytes::{ChecksumWork, Segmenter, complete_checksum, noise};
use airpath_live::ports::{OffloadHeader, Segmentation};
use airpath_packet::edit::{ecn_of, set_ecn, shorten};
use airpath_packet::flow::flow_number;
use airpath_packet::protocols::{PROTOCOLS, Packet, Sequences, Told, describe, layers};
use airpath_packet::{Headers, PacketFilter};

const HEAD_BYTES: usize = 10;

pub fn run(input: &[u8]) {
    let (head, packet) = input.split_at(input.len().min(HEAD_BYTES));
    let offload = offload(head);
    noise(packet);
    let headers = Headers::read(packet);
    if let Some(headers) = headers {
        assert!(headers.bytes() <= packet.len(), "headers of {} bytes in {}", headers.bytes(), packet.len());
        assert!(headers.dscp() < 64);
        flow_number(headers.flow_hash(packet));
        headers.tuple(packet);
    }
    edit(packet, &offload);
    for work in [ChecksumWork::Complete, ChecksumWork::Leave] {
        segment(packet, &offload, work);
    }
    filter(packet);
    // The dissector sees the first bytes of packets, however many were kept.
    let mut sequences = Sequences::default();
    for kept in [packet.len(), packet.len() / 2, 20.min(packet.len())] {
        assert!(!describe(&packet[..kept], packet.len() as u32, &mut sequences).is_empty());
        protocols(&Packet::new(&packet[..kept], packet.len() as u32));
        for field in layers(&packet[..kept], packet.len() as u32).iter().flat_map(|layer| &layer.fields) {
            assert!(field.offset + field.bytes <= kept, "{field:?} in {kept} bytes");
        }
    }
}

/// Every recogniser and every printer, whatever the packet is.
fn protocols(packet: &Packet<'_>) {
    for protocol in PROTOCOLS {
        let _ = (protocol.recognises)(packet);
        if let Some(Told::Instead(text) | Told::Behind(text)) = (protocol.prints)(packet, &mut Sequences::default()) {
            assert!(!text.is_empty(), "{} tells nothing", protocol.name);
        }
    }
}

/// Filters that look at every header; each recogniser has its word in one of them.
const FILTERS: [&str; 6] = [
    "tcp[tcpflags] & tcp-syn != 0 or icmp6[0] = 128 or ip[ip[2:2]] = 0",
    "rtp ssrc 1 or rtp payload-type 96 or rtcp or quic",
    "dns or http or tls or sni example.org",
    "src and dst net 10.0.0.0/8 or portrange 1-53",
    "not port 53",
    "len < 60",
];

fn filter(packet: &[u8]) {
    for filter in FILTERS.map(|text| PacketFilter::parse(text).expect("an expression")) {
        for kept in [packet.len(), packet.len() / 2, 20.min(packet.len())] {
            filter.matches(&packet[..kept], packet.len() as u32);
        }
    }
}

fn offload(head: &[u8]) -> OffloadHeader {
    let byte = |at: usize| head.get(at).copied().unwrap_or_default();
    let word = |at: usize| u16::from_le_bytes([byte(at), byte(at + 1)]);
    OffloadHeader {
        needs_checksum: byte(0) & 1 != 0,
        segmentation: match byte(1) & 0x7f {
            0 => Segmentation::None,
            1 => Segmentation::TcpV4,
            4 => Segmentation::TcpV6,
            5 => Segmentation::Udp,
            other => Segmentation::Other(other),
        },
        ecn: byte(1) & 0x80 != 0,
        header_bytes: word(2),
        segment_bytes: word(4),
        checksum_start: word(6),
        checksum_offset: word(8),
    }
}

fn edit(packet: &[u8], offload: &OffloadHeader) {
    let before = ecn_of(packet);
    for ecn in Ecn::ALL {
        let mut edited = packet.to_vec();
        assert_eq!(set_ecn(&mut edited, ecn), before.is_some());
        assert_eq!(ecn_of(&edited), before.map(|_| ecn));
        assert_eq!(edited.len(), packet.len());
    }
    for bytes in [0, 20, 40, packet.len() / 2, packet.len()] {
        let mut cut = packet.to_vec();
        if bytes <= packet.len() && shorten(&mut cut, bytes) {
            cut.truncate(bytes);
            let headers = Headers::read(&cut).expect("the IP header of a shortened packet");
            assert_eq!(headers.stated_bytes, bytes);
        }
    }
    let (mut finished, mut left) = (packet.to_vec(), *offload);
    if complete_checksum(&mut finished, &mut left) {
        assert!(!left.needs_checksum);
    } else {
        assert_eq!(finished, packet, "a checksum that cannot be finished changes nothing");
    }
}

/// The segments of a super-packet hold each byte of its payload once, in order.
fn segment(packet: &[u8], offload: &OffloadHeader, work: ChecksumWork) {
    let Ok(segmenter) = Segmenter::new(packet, offload, work) else { return };
    let count = segmenter.count_all();
    assert!(count >= 1 && count <= packet.len().max(1));
    let mut at = None;
    for index in 0..count as u32 {
        let segment = segmenter.group(index, index + 1);
        assert!(segment.payload.start <= segment.payload.end && segment.payload.end <= packet.len());
        assert!(at.is_none_or(|at| at == segment.payload.start), "a gap before segment {index}");
        at = Some(segment.payload.end);
        assert_eq!(segment.packet_bytes(), segment.bytes().len() + segment.payload.len());
        let mut whole = segment.bytes().to_vec();
        whole.extend_from_slice(&packet[segment.payload.clone()]);
        assert!(Headers::read(&whole).is_some(), "segment {index} has no header");
    }
    assert_eq!(at, Some(packet.len()), "the last segment ends with the packet");
    let group = segmenter.group(0, count as u32);
    assert_eq!(group.payload.end, packet.len());
}
