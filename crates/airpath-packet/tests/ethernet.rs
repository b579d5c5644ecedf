// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Ethernet headers with and without tags.

use airpath_packet::ethernet::{CUSTOMER_TAG, EthernetHeader, IPV4, IPV6, PROVIDER_TAG};
use proptest::prelude::*;

const ARP: u16 = 0x0806;

/// A frame with these tags, of VLAN 7 each.
fn frame(tags: &[u16], ether_type: u16) -> Vec<u8> {
    let mut bytes = vec![0x02; 12];
    for tag in tags {
        bytes.extend(tag.to_be_bytes());
        bytes.extend([0, 7]);
    }
    bytes.extend(ether_type.to_be_bytes());
    bytes
}

#[test]
fn the_type_is_behind_all_tags() {
    for tags in [&[][..], &[CUSTOMER_TAG], &[PROVIDER_TAG, CUSTOMER_TAG]] {
        for (ether_type, is_ip) in [(IPV4, true), (IPV6, true), (ARP, false), (46, false)] {
            let bytes = frame(tags, ether_type);
            let header = EthernetHeader::read(&bytes).unwrap();
            assert_eq!(header, EthernetHeader { ether_type, tags: tags.len() });
            assert_eq!(header.bytes(), bytes.len());
            assert_eq!(header.is_ip(), is_ip);
        }
    }
}

#[test]
fn a_frame_that_ends_within_its_header_has_none() {
    let bytes = frame(&[PROVIDER_TAG, CUSTOMER_TAG], IPV4);
    for length in 0..bytes.len() {
        assert_eq!(EthernetHeader::read(&bytes[..length]), None, "{length} bytes");
    }
}

proptest! {
    #[test]
    fn whatever_the_bytes_are_the_header_is_within_them(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Some(header) = EthernetHeader::read(&bytes) {
            prop_assert!(header.bytes() <= bytes.len());
        }
    }
}
