// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames with a link header, as ports on interfaces of the user's have them.

use airpath_packet::ethernet::{UNTAGGED_BYTES, is_ip as is_ip_type};
use bytes::Bytes;

/// Longest frame that may have been padded: 60 bytes (IEEE 802.3, without the check sequence), and two tags.
const LONGEST_PADDED_BYTES: usize = 60 + 8;

/// True if what follows the link header is an IP packet, or should be one: the EtherType before it says so. Without a
/// link header there is nothing else.
pub fn is_ip(whole: &[u8], link_bytes: u8) -> bool {
    let link = usize::from(link_bytes);
    match link_bytes {
        0 => true,
        _ => link >= UNTAGGED_BYTES && is_ip_type(u16::from_be_bytes([whole[link - 2], whole[link - 1]])),
    }
}

/// Cuts off what a short frame has behind its packet of `stated_bytes`: the next device pads it again.
pub fn cut_padding(whole: &mut Bytes, link: usize, stated_bytes: usize) {
    if link > 0 && whole.len() <= LONGEST_PADDED_BYTES && stated_bytes > 0 && link + stated_bytes < whole.len() {
        whole.truncate(link + stated_bytes);
    }
}

/// A hash of a link header: equal for frames of one kind between the same two interfaces, in one direction (FNV-1a).
pub fn hash(link_header: &[u8]) -> u64 {
    link_header
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ether_type_before_the_packet_tells_what_it_is() {
        let frame = |rest: &[u8]| [&[2; 12][..], rest].concat();
        let tagged = frame(&[0x81, 0, 0, 9, 0x86, 0xdd, 0x60]);
        assert!(is_ip(&tagged, 18) && is_ip(&frame(&[8, 0, 0x45]), 14) && is_ip(&[0x45], 0));
        assert!(!is_ip(&frame(&[8, 6, 0x45]), 14));
        assert_ne!(hash(&tagged[..18]), hash(&frame(&[8, 0])));
    }

    #[test]
    fn padding_goes_and_what_is_long_enough_stays() {
        let cut = |bytes: usize, link, stated| {
            let mut whole = Bytes::from(vec![0; bytes]);
            cut_padding(&mut whole, link, stated);
            whole.len()
        };
        assert_eq!([cut(60, 14, 40), cut(64, 18, 28), cut(60, 0, 40)], [54, 46, 60]);
        assert_eq!([cut(100, 14, 40), cut(60, 14, 0), cut(60, 14, 46), cut(60, 14, 90)], [100, 60, 60, 60]);
    }
}
