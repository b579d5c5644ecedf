// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tests of headers told field by field: values and places by hand, and every byte of a packet told once.

use airpath_packet::Headers;
use airpath_packet::protocols::{Field, Layer, layers};
use proptest::prelude::*;

use crate::build::packets;

fn names(layers: &[Layer]) -> Vec<&str> {
    layers.iter().map(|layer| layer.name.as_str()).collect()
}

fn field<'a>(layers: &'a [Layer], layer: &str, name: &str) -> &'a Field {
    let found = layers.iter().find(|one| one.name == layer).unwrap_or_else(|| panic!("no {layer} in {layers:?}"));
    found.fields.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no {name} in {found:?}"))
}

/// A SYN of 10.0.0.1 port 40000 to 10.0.0.2 port 80, with a maximum segment size and a window scale.
const SYN: [u8; 48] = [
    0x45, 0xb9, 0, 48, 0x12, 0x34, 0x40, 0, 64, 6, 0xab, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x70, 0x02, 0xff, 0xff, 0xbe, 0xef, 0, 0, // TCP
    2, 4, 5, 0xb4, 1, 3, 3, 7, // options
];

#[test]
fn a_syn_is_told_field_by_field() {
    let told = layers(&SYN, 48);
    assert_eq!(names(&told), ["IPv4", "TCP"]);
    for (layer, name, offset, bytes, text) in [
        ("IPv4", "version, header length", 0, 1, "4, 20 bytes"),
        ("IPv4", "DSCP, ECN", 1, 1, "46, 1"),
        ("IPv4", "flags, fragment offset", 6, 2, "DF, 0"),
        ("IPv4", "protocol", 9, 1, "6, TCP"),
        ("IPv4", "checksum", 10, 2, "abcd"),
        ("IPv4", "source", 12, 4, "10.0.0.1"),
        ("TCP", "source port", 20, 2, "40000"),
        ("TCP", "sequence number", 24, 4, "7"),
        ("TCP", "header length", 32, 1, "28 bytes"),
        ("TCP", "flags", 33, 1, "SYN"),
        ("TCP", "checksum", 36, 2, "beef"),
        ("TCP", "options", 40, 8, "mss 1460,nop,wscale 7"),
    ] {
        assert_eq!(
            field(&told, layer, name),
            &Field { name: field(&told, layer, name).name, offset, bytes, text: text.into() }
        );
    }
}

#[test]
fn extension_headers_are_layers_of_their_own() {
    let mut packet = vec![0x62, 0xe0, 0, 0, 0, 48, 0, 64];
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend([44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend([17, 0, 0, 1, 0, 0, 0, 9]);
    packet.extend([0x13, 0x88, 0x13, 0x89, 0, 40, 0, 0]);
    packet.resize(88, 0x11);
    let told = layers(&packet, 88);
    assert_eq!(names(&told), ["IPv6", "IPv6 hop-by-hop options", "IPv6 fragment", "UDP", "payload"]);
    assert_eq!(field(&told, "IPv6", "version, DSCP, ECN").text, "6, 11, 2");
    assert_eq!(field(&told, "IPv6 fragment", "fragment offset, more").text, "0, more follow");
    assert_eq!(field(&told, "UDP", "destination port").text, "5001");
    assert_eq!(field(&told, "payload", "bytes").offset, 72);
}

#[test]
fn contents_that_are_recognised_are_told() {
    let request = b"GET /index.html HTTP/1.1\r\nHost: example.org\r\n\r\n";
    let mut packet = SYN.to_vec();
    packet.extend(request);
    packet[3] = packet.len() as u8;
    packet[33] = 0x18;
    let told = layers(&packet, packet.len() as u32);
    assert_eq!(names(&told), ["IPv4", "TCP", "http"]);
    assert!(field(&told, "http", "contents").text.contains("GET /index.html"), "{told:?}");
}

#[test]
fn fields_that_are_cut_off_are_left_out() {
    let told = layers(&SYN[..30], 48);
    assert_eq!(names(&told), ["IPv4", "TCP"]);
    assert_eq!(told[1].fields.len(), 3, "{:?}", told[1]);
    assert_eq!(names(&layers(&SYN[..10], 48)), ["not an IP packet, or cut off within its header"]);
    assert_eq!(layers(&[], 0)[0].fields.len(), 0);
}

proptest! {
    #[test]
    fn every_byte_of_a_packet_is_told(packet in packets(), kept in 0usize..400, at in 0usize..80, value in any::<u8>()) {
        let mut bytes = packet.bytes();
        let whole = bytes.len();
        let told = layers(&bytes, whole as u32);
        let mut times = vec![0; whole];
        for field in told.iter().flat_map(|layer| &layer.fields) {
            times[field.offset..field.offset + field.bytes].iter_mut().for_each(|times| *times += 1);
        }
        prop_assert!(!times.contains(&0), "{times:?} of {told:?}");
        let headers = Headers::read(&bytes).unwrap();
        let ends = headers.ends(&bytes).map(|address| address.to_string());
        let ip = if packet.version == 4 { "IPv4" } else { "IPv6" };
        prop_assert_eq!([&field(&told, ip, "source").text, &field(&told, ip, "destination").text], [&ends[0], &ends[1]]);
        // Cut and damaged, it stays within its bytes.
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        bytes.truncate(kept);
        for field in layers(&bytes, whole as u32).iter().flat_map(|layer| &layer.fields) {
            prop_assert!(field.offset + field.bytes <= bytes.len(), "{field:?}");
        }
    }
}
