// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A packet as recognisers and printers see it.

use std::net::IpAddr;

use crate::Headers;
use crate::protocol::{TCP, UDP, UDP_LITE};

/// A packet, of which the end may be cut off.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// Bytes at hand, from the IP header on.
    pub bytes: &'a [u8],
    /// Length of the whole packet, in bytes.
    pub length: u32,
    /// Its headers, if it is an IP packet whose fixed header is at hand.
    pub headers: Option<Headers>,
}

impl<'a> Packet<'a> {
    /// The packet of `length` bytes that begins with `bytes`.
    pub fn new(bytes: &'a [u8], length: u32) -> Self {
        Self { bytes, length, headers: Headers::read_beginning(bytes) }
    }

    /// Both ports, source first, and the contents of a UDP or UDP-Lite datagram, as far as at hand.
    pub fn datagram(&self) -> Option<((u16, u16), &'a [u8])> {
        self.contents(&[UDP, UDP_LITE])
    }

    /// Both ports, source first, and the contents of a TCP segment, as far as at hand.
    pub fn segment(&self) -> Option<((u16, u16), &'a [u8])> {
        self.contents(&[TCP])
    }

    fn contents(&self, protocols: &[u8]) -> Option<((u16, u16), &'a [u8])> {
        let headers = self.headers.filter(|headers| protocols.contains(&headers.protocol))?;
        Some((headers.transport?.ports, self.bytes.get(headers.bytes()..)?))
    }

    /// Number of bytes that the IP header states, or that there are, if they are fewer.
    fn stated(&self) -> usize {
        let stated = self.headers.map_or(usize::MAX, |headers| headers.stated_bytes);
        stated.min(self.length as usize)
    }

    /// Bytes behind the IP header and its extensions, as far as at hand.
    pub(super) fn upper(&self) -> &'a [u8] {
        let from = self.headers.map_or(0, |headers| headers.ip_bytes);
        self.bytes.get(from..self.bytes.len().min(self.stated())).unwrap_or_default()
    }

    /// Whole length of that, in bytes.
    pub(super) fn upper_length(&self) -> u32 {
        self.stated().saturating_sub(self.headers.map_or(0, |headers| headers.ip_bytes)) as u32
    }

    /// Source and destination address.
    pub(super) fn ends(&self) -> Option<[IpAddr; 2]> {
        self.headers.map(|headers| headers.ends(self.bytes))
    }
}

/// The 16 bits at `at`, in network order.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The 32 bits at `at`, in network order.
pub(super) fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
