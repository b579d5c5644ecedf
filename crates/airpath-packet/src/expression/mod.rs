// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Filter expressions in the language of pcap-filter(7), over IP packets.
//!
//! Differences from libpcap: the transport header is found behind the extension headers of IPv6, for
//! `tcp[…]` too; ports of UDP-Lite count for `port`; there are no names of hosts and services and no
//! link layers; the words of the recognisers ([`crate::protocols`]) are known.

mod error;
mod evaluate;
mod parser;
mod primitive;
mod relation;
mod token;

pub use error::ExpressionError;

use crate::protocols::Packet;
use primitive::Primitive;
use relation::Relation;

/// Longest text of an expression, in bytes: it bounds how deep the recursion goes.
pub const MOST_BYTES: usize = 4096;

/// A filter: an expression that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketFilter {
    root: Node,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Everything,
    Not(Box<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Primitive(Primitive),
    Relation(Relation),
}

impl PacketFilter {
    /// Reads an expression; an empty one matches everything.
    ///
    /// # Errors
    /// When it is none; the message shows the place.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        parser::parse(text).map(|root| Self { root })
    }

    /// True if the filter looks behind the transport header by a word of a recogniser.
    pub fn reads_contents(&self) -> bool {
        self.root.reads_contents()
    }

    /// The answer for the packet of `length` bytes that begins with `bytes`. As in libpcap, a packet
    /// does not match where a byte that decides was cut off, under `not` neither.
    pub fn matches(&self, bytes: &[u8], length: u32) -> bool {
        evaluate::node(&self.root, &Packet::new(bytes, length)).unwrap_or(false)
    }
}

impl Node {
    fn reads_contents(&self) -> bool {
        match self {
            Node::Everything | Node::Relation(_) => false,
            Node::Not(inner) => inner.reads_contents(),
            Node::And(left, right) | Node::Or(left, right) => left.reads_contents() || right.reads_contents(),
            Node::Primitive(primitive) => primitive.reads_contents(),
        }
    }
}

impl std::str::FromStr for PacketFilter {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        Self::parse(text)
    }
}
