// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tests that headers are read as they were built, whole and cut, and that no bytes do harm.

use airpath_core::FiveTuple;
use airpath_packet::{Fragment, Headers};
use proptest::prelude::*;

use crate::build::{Extension, Packet, Upper, packets};

#[test]
fn lengths_ports_and_classes_are_found() {
    for (version, ip_bytes) in [(4, 20), (6, 40)] {
        let mut packet = Packet { version, upper: Upper::Tcp(3), ..Packet::default() }.bytes();
        let headers = Headers::read(&packet).unwrap();
        assert_eq!((headers.version, headers.ip_bytes, headers.bytes()), (version, ip_bytes, ip_bytes + 32));
        assert_eq!(headers.stated_bytes, packet.len());
        assert_eq!((headers.traffic_class, headers.dscp()), (0xb8, 46));
        assert_eq!(headers.transport.unwrap().ports, (4000, 5001));
        packet.truncate(ip_bytes + 31);
        assert_eq!(Headers::read(&packet).unwrap().transport, None);
        packet.truncate(ip_bytes - 1);
        assert_eq!(Headers::read(&packet), None);
    }
}

#[test]
fn a_hand_made_packet_with_extensions() {
    // Version 6, class 0x2e, 48 bytes of payload; hop-by-hop options of 16 bytes, the first fragment,
    // then UDP from 5000 to 53.
    let mut packet = vec![0x62, 0xe0, 0, 0, 0, 48, 0, 64];
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend([44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend([17, 0, 0, 1, 0, 0, 0, 9]);
    packet.extend([0x13, 0x88, 0, 53, 0, 40, 0, 0]);
    packet.resize(88, 0xaa);
    let headers = Headers::read(&packet).unwrap();
    assert_eq!((headers.ip_bytes, headers.protocol, headers.stated_bytes), (64, 17, 88));
    assert_eq!(headers.fragment, Some(Fragment { offset: 0, more: true }));
    let transport = headers.transport.unwrap();
    assert_eq!((transport.ports, transport.bytes, transport.checksum_offset), ((5000, 53), 8, 6));
    assert_eq!(
        headers.ends(&packet),
        ["fd00::1", "fd00::2"].map(|address| address.parse::<std::net::IpAddr>().unwrap())
    );
    // The same as a whole packet that bears the header.
    packet[59] = 0;
    assert_eq!(Headers::read(&packet).unwrap().fragment, None);
    // A later fragment, at 8: what follows is no UDP header.
    packet[59] = 8;
    let later = Headers::read(&packet).unwrap();
    assert_eq!((later.fragment, later.transport, later.bytes()), (Some(Fragment { offset: 8, more: false }), None, 64));
}

#[test]
fn tuples_are_what_the_headers_say() {
    for (version, addresses) in [(4, ["10.0.0.1", "10.0.0.2"]), (6, ["fd00::1", "fd00::2"])] {
        let [source, destination] = addresses.map(|address| FiveTuple::fold(address.parse().unwrap()));
        let expected = FiveTuple { source, destination, source_port: 4000, destination_port: 5001, protocol: 6 };
        let tuple = |packet: Packet| {
            let bytes = Packet { version, ..packet }.bytes();
            Headers::read(&bytes).unwrap().tuple(&bytes)
        };
        let plain = Packet { upper: Upper::Tcp(3), ..Packet::default() };
        assert_eq!(tuple(plain.clone()), expected);
        assert_eq!(tuple(Packet { upper: Upper::Udp, ..plain.clone() }), FiveTuple { protocol: 17, ..expected });
        // An unknown protocol has addresses and a number; fragments have no ports, not even the first.
        let none = FiveTuple { source_port: 0, destination_port: 0, ..expected };
        assert_eq!(tuple(Packet { upper: Upper::Other(253), ..plain.clone() }), FiveTuple { protocol: 253, ..none });
        for place in [(0, true), (64, true), (64, false)] {
            let extensions = vec![Extension::Fragment(place.0, place.1)];
            assert_eq!(tuple(Packet { fragment: place, extensions, ..plain.clone() }), none, "{version} {place:?}");
        }
    }
}

#[test]
fn what_is_cut_off_is_told_from_what_is_not_there() {
    // An IPv6 packet with hop-by-hop options, of which 44 bytes were captured.
    let extensions = vec![Extension::Options(0, 0)];
    let packet = Packet { version: 6, extensions, upper: Upper::Tcp(3), ..Packet::default() }.bytes();
    let cut = Headers::read_beginning(&packet[..44]).unwrap();
    assert_eq!((cut.protocol, cut.ip_bytes, cut.bytes()), (6, 48, 68));
    assert_eq!(cut.transport.unwrap().ports, (0, 0));
    // As a whole packet, it is one of protocol 0.
    let whole = Headers::read(&packet[..44]).unwrap();
    assert_eq!((whole.protocol, whole.ip_bytes, whole.transport), (0, 40, None));
    // Ports that were kept are there, and so is the length that the header states.
    let cut = Headers::read_beginning(&packet[..52]).unwrap();
    assert_eq!((cut.transport.unwrap().ports, cut.bytes()), ((4000, 5001), 68));
    let cut = Headers::read_beginning(&packet[..61]).unwrap();
    assert_eq!((cut.transport.unwrap().ports, cut.bytes()), ((4000, 5001), 80));
    assert_eq!(Headers::read_beginning(&packet[..39]), None);
}

#[test]
fn padding_is_no_part_of_a_captured_packet() {
    let packet = Packet { payload: 2, ..Packet::default() }.bytes();
    let padded = [&packet[..], &[0xee; 16]].concat();
    assert_eq!(Headers::read_captured(&padded), Some((Headers::read(&packet).unwrap(), &packet[..])));
    let mut lying = packet.clone();
    lying[3] = 19;
    assert_eq!(Headers::read_captured(&lying), None);
}

proptest! {
    #[test]
    fn what_is_put_in_comes_out(packet in packets()) {
        let bytes = packet.bytes();
        let headers = Headers::read(&bytes).unwrap();
        prop_assert_eq!(headers.version, packet.version);
        prop_assert_eq!(headers.ip_bytes, packet.ip_bytes());
        prop_assert_eq!(headers.protocol, packet.protocol());
        prop_assert_eq!(headers.stated_bytes, bytes.len());
        prop_assert_eq!(headers.traffic_class, packet.traffic_class);
        let place = packet.place().map(|(offset, more)| Fragment { offset: u32::from(offset), more });
        prop_assert_eq!(headers.fragment, place);
        let expected = packet.transport().filter(|_| !headers.is_later_fragment());
        prop_assert_eq!(headers.transport.map(|transport| (transport.bytes, transport.checksum_offset)), expected);
        if let (Some(transport), Upper::Tcp(_) | Upper::Udp | Upper::UdpLite) = (headers.transport, &packet.upper) {
            prop_assert_eq!(transport.ports, packet.ports);
        }
        // All that is read of the packet is read of its beginning, and of a capture of it.
        prop_assert_eq!(Headers::read_beginning(&bytes), Some(headers));
        prop_assert_eq!(Headers::read_captured(&bytes), Some((headers, &bytes[..])));
        for kept in headers.bytes()..bytes.len() {
            prop_assert_eq!(Headers::read_beginning(&bytes[..kept]), Some(headers), "{} bytes kept", kept);
            prop_assert_eq!(Headers::read_captured(&bytes[..kept]), Some((headers, &bytes[..kept])));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(packet in prop::collection::vec(any::<u8>(), 0..200), version in prop::sample::select(vec![None, Some(4u8), Some(6)])) {
        let mut packet = packet;
        if let (Some(version), Some(first)) = (version, packet.first_mut()) {
            *first = version << 4 | *first & 15;
        }
        if let Some(headers) = Headers::read(&packet) {
            prop_assert!(headers.bytes() <= packet.len());
            headers.flow_hash(&packet);
            headers.tuple(&packet);
            // The headers of another packet.
            headers.tuple(&packet[..1]);
            headers.ends(&[]);
        }
        Headers::read_beginning(&packet);
        if let Some((headers, own)) = Headers::read_captured(&packet) {
            prop_assert!(headers.ip_bytes <= headers.stated_bytes && own.len() <= packet.len());
        }
    }

    #[test]
    fn damaged_packets_are_read_within_their_bytes(packet in packets(), at in 0usize..80, value in any::<u8>(), kept in 0usize..400) {
        let mut bytes = packet.bytes();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        bytes.truncate(kept);
        if let Some(headers) = Headers::read(&bytes) {
            prop_assert!(headers.bytes() <= bytes.len());
        }
        Headers::read_beginning(&bytes);
        Headers::read_captured(&bytes);
    }
}
