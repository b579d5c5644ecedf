// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Places and contents of the headers of a packet.
//!
//! Sources: RFC 791, RFC 8200, RFC 6946 (whole packets with a fragment header), RFC 9293, RFC 768,
//! RFC 3828, RFC 792, RFC 4443.

mod read;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an IPv4 header without options.
pub const IPV4_BYTES: usize = 20;
/// Bytes of an IPv6 header without extension headers.
pub const IPV6_BYTES: usize = 40;

/// The transport header of a packet, of a known kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportHeader {
    /// Source and destination port; zero where there are none (ICMP), and where they are cut off.
    pub ports: (u16, u16),
    /// Length of the header, in bytes.
    pub bytes: usize,
    /// Offset of the checksum from the beginning of the header, in bytes.
    pub checksum_offset: usize,
}

/// The place of a fragment in its packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    /// Bytes of the packet's payload before those of the fragment.
    pub offset: u32,
    /// More fragments follow.
    pub more: bool,
}

impl Fragment {
    /// None for a packet that is no fragment: one that begins at `offset` 0 and is not continued.
    fn new(offset: u32, more: bool) -> Option<Fragment> {
        (offset > 0 || more).then_some(Fragment { offset, more })
    }
}

/// The headers of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// 4 or 6.
    pub version: u8,
    /// Length of the IP header with options or extension headers, in bytes.
    pub ip_bytes: usize,
    /// Protocol number of what follows the IP header and its extensions.
    pub protocol: u8,
    /// Length of the whole packet as the IP header states it, in bytes.
    pub stated_bytes: usize,
    /// Traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// The place in the packet, if this is a fragment of one.
    pub fragment: Option<Fragment>,
    /// The transport header, if it is there and of a known kind.
    pub transport: Option<TransportHeader>,
}

impl Headers {
    /// Reads the headers of a whole packet; none where it is no IP packet or shorter than its IP
    /// header. A transport header that does not fit into the packet is none, and an extension header
    /// that does not fit ends the IP header before it, as a protocol of its own.
    pub fn read(packet: &[u8]) -> Option<Self> {
        read::headers(packet, read::Extent::Whole)
    }

    /// Reads the headers at the beginning of a packet, of which the rest is not at hand; none where it
    /// is no IP packet or the fixed part of its IP header is cut off. Lengths are as the headers state
    /// them, and may go beyond `bytes`; for a TCP header that is cut off before it states its length,
    /// the least.
    pub fn read_beginning(bytes: &[u8]) -> Option<Self> {
        read::headers(bytes, read::Extent::Beginning)
    }

    /// Reads the headers of a captured packet, whole or cut, and says which of `bytes` are its own:
    /// short Ethernet frames are padded behind the packet. None where it is no IP packet, or states
    /// that it is shorter than its IP header.
    pub fn read_captured(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let stated = Self::read_beginning(bytes)?.stated_bytes;
        let own = &bytes[..bytes.len().min(stated)];
        let headers = if own.len() == stated { Self::read(own) } else { Self::read_beginning(own) }?;
        (headers.ip_bytes <= stated).then_some((headers, own))
    }

    /// IP and transport headers together, in bytes: what a corruption that
    /// spares headers must spare.
    pub fn bytes(&self) -> usize {
        self.ip_bytes + self.transport.map_or(0, |transport| transport.bytes)
    }

    /// The DSCP, 0 to 63.
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// True if the packet is a fragment other than the first: there is no transport header in it.
    pub fn is_later_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.offset > 0)
    }

    /// Both addresses, source first: 8 or 32 bytes of `packet`, from which
    /// these headers were read.
    pub fn addresses<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        let place = if self.version == 4 { 12..20 } else { 8..40 };
        packet.get(place).unwrap_or_default()
    }

    /// Source and destination address of `packet`, from which these headers were read.
    pub fn ends(&self, packet: &[u8]) -> [IpAddr; 2] {
        let addresses = self.addresses(packet);
        let (source, destination) = addresses.split_at(addresses.len() / 2);
        [source, destination].map(|address| match (<[u8; 4]>::try_from(address), <[u8; 16]>::try_from(address)) {
            (Ok(address), _) => address.into(),
            (_, Ok(address)) => address.into(),
            _ if self.version == 4 => Ipv4Addr::UNSPECIFIED.into(),
            _ => Ipv6Addr::UNSPECIFIED.into(),
        })
    }
}

/// Bytes of the IP header that `bytes` begin with, as it states them: with options, without extension
/// headers; 0 where there is none.
pub fn ip_header_bytes(bytes: &[u8]) -> usize {
    match bytes.first().map(|first| (first >> 4, first & 15)) {
        Some((4, words)) => usize::from(words) * 4,
        Some((6, _)) => IPV6_BYTES,
        _ => 0,
    }
}
