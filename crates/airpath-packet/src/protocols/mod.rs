// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Protocols: one file each with what recognises it and what prints it, behind one interface.
//!
//! A recogniser sees one packet and no state, so that it can only say what the bytes look like: RTP and QUIC bear no
//! mark that other datagrams could not bear by chance. A printer writes what tcpdump (4.99) writes, and behind that
//! what tcpdump does not know.

mod dns;
mod dns_records;
mod fields;
mod http;
mod icmp;
mod icmp6;
mod packet;
pub mod ppp;
mod ppp_tunnels;
mod printable;
mod quic;
mod rtcp;
pub mod rtp;
mod sequences;
mod tcp;
mod tcp_options;
mod text;
pub mod tls;
mod udp;
mod udp_lite;

pub use fields::{Field, Layer, layers};
pub use packet::Packet;
use packet::{long, word};
pub use sequences::Sequences;
pub use text::describe;

/// A protocol.
#[derive(Debug)]
pub struct Protocol {
    /// Its name; of a protocol that is known by its contents also the word for it in filter expressions.
    pub name: &'static str,
    /// Its IANA number, if it is one above IP; none of what is known by its contents.
    pub number: Option<u8>,
    /// The test of a packet; false where the bytes that tell are cut off.
    pub recognises: fn(&Packet<'_>) -> bool,
    /// The printer of a packet; none where the protocol has nothing to say about it.
    pub prints: fn(&Packet<'_>, &mut Sequences) -> Option<Told>,
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Protocol {}

/// Text of a protocol about a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// All that there is to say behind the addresses.
    Instead(String),
    /// Text behind that of the protocol below.
    Behind(String),
}

/// All protocols. Of several that have something to say about the contents of a packet, the first one does.
pub const PROTOCOLS: &[Protocol] = &[
    tcp::PROTOCOL,
    udp::PROTOCOL,
    udp_lite::PROTOCOL,
    icmp::PROTOCOL,
    icmp6::PROTOCOL,
    dns::PROTOCOL,
    http::PROTOCOL,
    ppp_tunnels::PROTOCOL,
    quic::PROTOCOL,
    rtcp::PROTOCOL,
    rtp::PROTOCOL,
    tls::PROTOCOL,
];

/// Protocols that are known by their contents, which are words of filter expressions.
pub fn by_contents() -> impl Iterator<Item = &'static Protocol> {
    PROTOCOLS.iter().filter(|protocol| protocol.number.is_none())
}

/// Text about the contents of a packet.
fn contents(packet: &Packet<'_>, sequences: &mut Sequences) -> Option<Told> {
    by_contents().find_map(|protocol| (protocol.prints)(packet, sequences))
}

/// `own`, and the text about the contents of a packet.
fn with_contents(own: String, packet: &Packet<'_>, sequences: &mut Sequences) -> Told {
    match contents(packet, sequences) {
        Some(Told::Instead(text)) => Told::Instead(text),
        Some(Told::Behind(text)) => Told::Instead(own + &text),
        None => Told::Instead(own),
    }
}

/// The test of a packet for the protocol of this number.
fn is_of(packet: &Packet<'_>, number: u8) -> bool {
    packet.headers.is_some_and(|headers| headers.protocol == number)
}
