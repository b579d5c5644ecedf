// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Primitives: protocols, and addresses and ports with their qualifiers.

use std::net::{IpAddr, Ipv4Addr};

use super::{Parser, words};
use crate::expression::primitive::{Ends, Primitive, bits};
use crate::expression::relation::{Number, Relation};
use crate::expression::{ExpressionError, Node};
use crate::protocols::by_contents;

/// Words before an address or port.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Qualifiers {
    version: Option<u8>,
    protocol: Option<u8>,
    ends: Ends,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Host,
    Net,
    Port,
    PortRange,
}

impl Parser<'_> {
    pub(super) fn primitive(&mut self) -> Result<Node, ExpressionError> {
        for (word, operator) in [("less", "<="), ("greater", ">=")] {
            if self.take(&[word]) {
                let right = Number::Constant(self.plain("a length in bytes")?);
                return Ok(Node::Relation(Relation { left: Number::Length, operator, right }));
            }
        }
        if self.take(&["sni"]) {
            return Ok(Node::Primitive(Primitive::ServerName(self.word("the name of a server")?.into())));
        }
        if let Some(protocol) = by_contents().find(|protocol| self.peek() == Some(protocol.name)) {
            self.next += 1;
            let rtp = protocol.name == "rtp";
            return Ok(Node::Primitive(if rtp && self.take(&["ssrc"]) {
                Primitive::RtpSsrc(self.plain("a synchronisation source")?)
            } else if rtp && self.take(&["payload-type"]) {
                Primitive::RtpPayloadType(self.plain("a payload type")?)
            } else {
                Primitive::Recognised(protocol)
            }));
        }
        self.qualified().map(Node::Primitive)
    }

    fn qualified(&mut self) -> Result<Primitive, ExpressionError> {
        let from = self.next;
        let mut new = Qualifiers::default();
        if let Some((_, version)) = [("ip", 4), ("ip6", 6)].iter().find(|(word, _)| self.peek() == Some(word)) {
            self.next += 1;
            new.version = Some(*version);
        } else if let Some(protocol) = self.peek().and_then(words::protocol) {
            self.next += 1;
            (new.protocol, new.version) = (Some(protocol), words::version_of(protocol));
        }
        if new.protocol.is_none() && self.take(&["proto"]) {
            return self.by_number(new.version);
        }
        let ends = self.ends()?;
        new.ends = ends.unwrap_or_default();
        let kinds = [("host", Kind::Host), ("net", Kind::Net), ("port", Kind::Port), ("portrange", Kind::PortRange)];
        let kind = kinds.iter().find(|(word, _)| self.peek() == Some(word)).map(|(_, kind)| *kind);
        self.next += usize::from(kind.is_some());
        new.kind = kind.unwrap_or_default();
        if kind.is_none() && ends.is_none() {
            match (new.protocol, new.version) {
                (Some(protocol), version) => return Ok(Primitive::Number { version, protocol }),
                (None, Some(version)) => return Ok(Primitive::Version(version)),
                (None, None) => {}
            }
        }
        let bare = self.next == from;
        if bare && !self.peek().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()) || word.contains(':'))
        {
            return Err(self.unknown());
        }
        let qualifiers = if bare { self.last.unwrap_or_default() } else { new };
        let primitive = match qualifiers.kind {
            Kind::Host | Kind::Net => self.address(qualifiers, bare && self.last.is_none())?,
            Kind::Port | Kind::PortRange => self.ports(qualifiers)?,
        };
        self.last = Some(qualifiers);
        Ok(primitive)
    }

    fn by_number(&mut self, version: Option<u8>) -> Result<Primitive, ExpressionError> {
        let word = self.word("a protocol")?;
        let known = words::protocol(word.trim_start_matches('\\'));
        let protocol = known.or_else(|| word.parse().ok());
        let protocol = protocol.ok_or_else(|| self.wrong_before(&format!("`{word}` is no protocol, 0 to 255")))?;
        Ok(Primitive::Number { version, protocol })
    }

    fn ends(&mut self) -> Result<Option<Ends>, ExpressionError> {
        let one = |parser: &mut Self| {
            let found = match parser.peek() {
                Some("src") => Ends::Source,
                Some("dst") => Ends::Destination,
                _ => return None,
            };
            parser.next += 1;
            Some(found)
        };
        let Some(first) = one(self) else { return Ok(None) };
        let joined = match (self.peek(), self.after()) {
            (Some("or" | "||"), Some("src" | "dst")) => Ends::Either,
            (Some("and" | "&&"), Some("src" | "dst")) => Ends::Both,
            _ => return Ok(Some(first)),
        };
        self.next += 1;
        if one(self) == Some(first) {
            return Err(self.wrong_before("the same end is named twice"));
        }
        Ok(Some(joined))
    }

    fn ports(&mut self, qualifiers: Qualifiers) -> Result<Primitive, ExpressionError> {
        if qualifiers.protocol.is_some_and(|protocol| words::version_of(protocol).is_some()) {
            return Err(self.wrong_before("this protocol has no ports"));
        }
        let word = self.word("a port")?;
        let (first, last) = match word.split_once('-') {
            Some(both) if qualifiers.kind == Kind::PortRange => both,
            _ => (word, word),
        };
        let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>()) else {
            let form = if qualifiers.kind == Kind::Port { "a port, 0 to 65535" } else { "a range such as 5000-5010" };
            return Err(self.wrong_before(&format!("`{word}` is not {form}; names of services are not looked up")));
        };
        let Qualifiers { version, protocol, ends, .. } = qualifiers;
        Ok(Primitive::Ports { ends, protocol, version, first: first.min(last), last: first.max(last) })
    }

    fn address(&mut self, qualifiers: Qualifiers, first: bool) -> Result<Primitive, ExpressionError> {
        if qualifiers.protocol.is_some() {
            return Err(self.wrong_before("a protocol above IP has no addresses: write `and` between the two"));
        }
        let word = self.word("an address")?;
        let (address, mut length) = match word.parse::<IpAddr>() {
            Ok(address) => (address, if address.is_ipv4() { 32 } else { 128 }),
            Err(_) => match beginning(word).filter(|_| qualifiers.kind == Kind::Net) {
                Some(found) => found,
                None => return Err(self.wrong_before(&no_address(word))),
            },
        };
        if qualifiers.version.is_some_and(|version| (version == 4) != address.is_ipv4()) {
            return Err(self.wrong_before(&format!("`{word}` is an address of the other version of IP")));
        }
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let mut mask = None;
        if (qualifiers.kind == Kind::Net || first) && self.take(&["/"]) {
            length = self.plain("the length of a prefix")?;
            if length > longest {
                return Err(self.wrong_before(&format!("a prefix of `{word}` has at most {longest} bits")));
            }
        } else if qualifiers.kind == Kind::Net && self.take(&["mask"]) {
            let given = self.word("a mask")?;
            let read = given.parse::<Ipv4Addr>().ok().filter(|_| address.is_ipv4());
            mask = Some(bits(read.ok_or_else(|| self.wrong_before(&format!("`{given}` is no mask of IPv4")))?.into()));
        }
        let mask = mask.unwrap_or(u128::MAX.checked_shl(128 - length).unwrap_or(0));
        if bits(address) & !mask != 0 {
            return Err(self.wrong_before(&format!("`{word}` has bits behind the prefix: they must be 0")));
        }
        Ok(Primitive::Net { ends: qualifiers.ends, address, mask })
    }
}

fn no_address(word: &str) -> String {
    format!("`{word}` is no address; names of hosts are not looked up")
}

/// The net that one to three octets stand for, and the length of its prefix.
fn beginning(word: &str) -> Option<(IpAddr, u32)> {
    let mut octets = [0; 4];
    let parts: Vec<&str> = word.split('.').collect();
    for (octet, part) in octets.get_mut(..parts.len())?.iter_mut().zip(&parts) {
        *octet = part.parse().ok()?;
    }
    Some((octets.into(), 8 * parts.len() as u32))
}
