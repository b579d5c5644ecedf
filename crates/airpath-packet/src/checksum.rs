// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

/// Sum of 16-bit big-endian words, not folded. Parts may be added when each
/// but the last has an even length.
pub fn sum(bytes: &[u8]) -> u64 {
    // Wide words: the carry out of each is put back at the end, for 2^16 - 1
    // divides 2^32 - 1.
    let mut chunks = bytes.chunks_exact(4);
    let mut total: u64 = 0;
    for chunk in &mut chunks {
        let word: [u8; 4] = [chunk[0], chunk[1], chunk[2], chunk[3]];
        total += u64::from(u32::from_be_bytes(word));
    }
    let rest = chunks.remainder();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    total + u64::from(u32::from_be_bytes(last))
}

/// Folds a sum to 16 bits with the carries put back; not complemented.
pub fn fold(sum: u64) -> u16 {
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    folded as u16
}

/// The checksum over one part: complement of the folded sum.
pub fn checksum(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// Sum of the pseudo header of TCP and UDP over IPv4 or IPv6 (RFC 9293,
/// RFC 8200): both addresses, the length and the protocol number.
pub fn pseudo_header_sum(addresses: &[u8], transport_bytes: usize, protocol: u8) -> u64 {
    sum(addresses) + transport_bytes as u64 + u64::from(protocol)
}

/// The checksum after one 16-bit word has changed.
pub fn update(checksum: u16, before: u16, after: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!before) + u64::from(after))
}

/// A transport checksum as it is sent: UDP takes zero for "no checksum", and all ones is the same
/// number.
pub fn as_sent(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}

/// Finishes the checksum over `packet` from `start` on, whose field lies `offset` bytes behind `start`
/// and holds the sum of what else is covered (the pseudo header). Returns false, and changes nothing,
/// where the field lies outside the packet.
pub fn finish(packet: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(covered) = packet.get_mut(start..) else { return false };
    if offset.checked_add(2).is_none_or(|end| end > covered.len()) {
        return false;
    }
    // The field is summed along.
    let value = as_sent(checksum(covered));
    covered[offset..offset + 2].copy_from_slice(&value.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Word by word, with the carry put back at once.
    fn naive(bytes: &[u8]) -> u16 {
        let mut total: u16 = 0;
        for index in (0..bytes.len()).step_by(2) {
            let low = bytes.get(index + 1).copied().unwrap_or(0);
            let word = u16::from_be_bytes([bytes[index], low]);
            let (next, carry) = total.overflowing_add(word);
            total = next + u16::from(carry);
        }
        !total
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
    }

    #[test]
    fn a_checksum_is_finished_in_its_field_or_not_at_all() {
        // Words 1, 2 (what else is covered) and 4 behind two bytes that are not covered.
        let mut packet = [9, 9, 0, 1, 0, 2, 0, 4];
        assert!(finish(&mut packet, 2, 2));
        assert_eq!(packet, [9, 9, 0, 1, 0xff, 0xf8, 0, 4]);
        // A sum of all ones has the checksum zero.
        let mut packet = [0xff, 0xfe, 0, 1];
        assert!(finish(&mut packet, 0, 2));
        assert_eq!(packet, [0xff, 0xfe, 0xff, 0xff]);
        for (start, offset) in [(0, 3), (3, 0), (4, 0), (5, 0), (0, usize::MAX), (usize::MAX, 2)] {
            assert!(!finish(&mut packet, start, offset), "{start} {offset}");
        }
        assert_eq!(packet, [0xff, 0xfe, 0xff, 0xff]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_naive_one(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(checksum(&bytes), naive(&bytes));
        }

        #[test]
        fn an_update_equals_a_recomputation(
            mut bytes in prop::collection::vec(any::<u8>(), 2..64),
            word in any::<u16>(),
        ) {
            // A leading word that is not zero: the all-zero input has two
            // representations of its sum.
            bytes[0] |= 1;
            bytes.extend([0x12, 0x34]);
            let before = checksum(&bytes);
            let end = bytes.len() & !1;
            let old = u16::from_be_bytes([bytes[end - 2], bytes[end - 1]]);
            bytes[end - 2..end].copy_from_slice(&word.to_be_bytes());
            prop_assert_eq!(update(before, old, word), checksum(&bytes));
        }
    }
}
