// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Recognisers of protocols, one file each, behind one interface.
//!
//! A recogniser sees one packet and no state, so that it can only say what the bytes look like: RTP and
//! QUIC bear no mark that other datagrams could not bear by chance.

mod dns;
mod http;
mod quic;
mod rtcp;
pub mod rtp;
pub mod tls;

use crate::Headers;
use crate::protocol::{TCP, UDP, UDP_LITE};

/// A recogniser of one protocol.
#[derive(Debug)]
pub struct Protocol {
    /// The word for it in filter expressions.
    pub name: &'static str,
    /// The test of a packet; false where the bytes that tell are cut off.
    pub recognises: fn(&Packet<'_>) -> bool,
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

/// All recognisers above the transport layer.
pub const PROTOCOLS: &[Protocol] =
    &[dns::PROTOCOL, http::PROTOCOL, quic::PROTOCOL, rtcp::PROTOCOL, rtp::PROTOCOL, tls::PROTOCOL];

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
}

/// The 16 bits at `at`, in network order.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
