// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Edited headers have correct checksums.

use airpath_core::Ecn;
use airpath_packet::edit::{ecn_of, set_ecn, shorten};
use airpath_packet::{Headers, checksum};
use proptest::prelude::*;

use crate::build::{Packet, Upper, naive_sum, packets};

#[test]
fn nothing_but_ip_headers_is_edited() {
    assert!(!set_ecn(&mut [], Ecn::Ect0));
    assert!(!set_ecn(&mut [0x45], Ecn::Ect0));
    assert_eq!((ecn_of(&[]), ecn_of(&[0x45; 19]), ecn_of(&[0x60]), ecn_of(&[0; 40])), (None, None, None, None));
    assert!(!shorten(&mut [], 0));
}

#[test]
fn shortening_keeps_the_ip_header_right() {
    for version in [4, 6] {
        let mut packet = Packet { version, upper: Upper::Tcp(0), ..Packet::default() }.bytes();
        let bytes = packet.len() - 51;
        assert!(shorten(&mut packet, bytes));
        packet.truncate(bytes);
        let headers = Headers::read(&packet).unwrap();
        assert_eq!(headers.stated_bytes, bytes);
        if version == 4 {
            assert_eq!(checksum::checksum(&packet[..20]), 0);
        }
        assert!(!shorten(&mut packet, 10));
        assert!(!shorten(&mut packet, bytes + 1));
    }
}

proptest! {
    #[test]
    fn ecn_edits_change_the_field_and_the_checksum_alone(packet in packets(), ecn in prop::sample::select(Ecn::ALL.to_vec())) {
        let before = packet.bytes();
        let mut after = before.clone();
        prop_assert!(set_ecn(&mut after, ecn));
        prop_assert_eq!(ecn_of(&after), Some(ecn));
        let edited = Packet { traffic_class: packet.traffic_class & !3 | ecn as u8, ..packet };
        let mut expected = edited.bytes();
        if edited.version == 4 {
            let ip_bytes = edited.ip_bytes();
            prop_assert_eq!(naive_sum(&after[..ip_bytes]), 0xffff);
            // Zero and all ones are the same sum.
            expected[10..12].copy_from_slice(&after[10..12]);
        }
        prop_assert_eq!(after, expected);
    }
}
