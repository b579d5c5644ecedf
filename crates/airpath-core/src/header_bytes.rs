// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Headers of a packet as bytes, for a machine that compresses them.
//!
//! A machine has no contents of packets, because a replay has none. The input log keeps the headers, so that a driver
//! may tell them: the same bytes come in when the run is recorded and when it is repeated.

/// Network and transport headers of a PDU as it came in, with their checksums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderBytes(Box<[u8]>);

impl HeaderBytes {
    /// The first `header_len` bytes of `packet`, which is a PDU as it would be on a wire or the beginning of it; none
    /// of a PDU whose contents nobody knows.
    pub fn of(packet: &[u8], header_len: u16) -> Option<Box<HeaderBytes>> {
        let header = &packet[..packet.len().min(usize::from(header_len))];
        (!header.is_empty()).then(|| Box::new(HeaderBytes(header.into())))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_where_the_packet_or_they_end() {
        let kept =
            |header_len, packet: &[u8]| HeaderBytes::of(packet, header_len).map(|header| header.bytes().to_vec());
        assert_eq!(kept(2, &[1, 2, 3]), Some(vec![1, 2]));
        assert_eq!(kept(4, &[1, 2, 3]), Some(vec![1, 2, 3]));
        assert_eq!(kept(2, &[]), None);
        assert_eq!(kept(0, &[1]), None);
    }
}
