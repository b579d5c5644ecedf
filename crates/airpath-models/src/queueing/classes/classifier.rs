// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Classification of packets.

use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::str::FromStr;

use airpath_core::quantity::QuantityError;
use airpath_core::{Bits, Direction, FiveTuple, Origin, Pdu};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::filter::{Filter, VisitFilter};
use crate::problem::Problem;

/// Conditions for a packet of a class: all that are named here. Nothing named: any packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MatchConfig {
    /// Its DSCP is one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(range(max = 63)))]
    pub dscp: Vec<u8>,
    /// Its protocol above IP. What follows an IPv6 header's extensions counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// The client's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_address: Option<Address>,
    /// The server's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_address: Option<Address>,
    /// The client's port. Fragments have no ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_port: Option<Ports>,
    /// The server's port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_port: Option<Ports>,
    /// Its IP length is at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortest: Option<Bits>,
    /// Its IP length is at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest: Option<Bits>,
    /// Origin of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<MatchOrigin>,
    /// Filter expression that its bytes match as it enters the link, as of `airpath log --filter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// Number of buckets for flows, by the flow's number modulo this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub flow_buckets: Option<u32>,
    /// Bucket of its flow, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<u32>,
}

/// Origin of the traffic of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MatchOrigin {
    /// The endpoints' packets.
    User,
    /// Virtual packets of background loads.
    Background,
}

impl MatchConfig {
    /// True if it names nothing, so that it takes any packet.
    pub fn is_any(&self) -> bool {
        *self == MatchConfig::default()
    }

    /// Visits the filter, if there is one.
    pub(crate) fn filters(&mut self, visit: &mut VisitFilter<'_>) {
        if let Some(filter) = &mut self.filter {
            visit(filter);
        }
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |key: &str, message: String| problems.push(Problem::new(key, message));
        if let Some(dscp) = self.dscp.iter().find(|dscp| **dscp > 63) {
            wrong("dscp", format!("has {dscp}; a DSCP is 63 at most"));
        }
        if let (Some(shortest), Some(longest)) = (self.shortest, self.longest)
            && shortest > longest
        {
            wrong("shortest", format!("is {shortest}, which is more than `longest`, {longest}: no packet is both"));
        }
        for (key, ports) in [("client_port", &self.client_port), ("server_port", &self.server_port)] {
            if let Some(protocol) = self.protocol.filter(|protocol| ports.is_some() && !protocol.has_ports()) {
                wrong(key, format!("names a port, and packets of protocol {protocol} have none"));
            }
        }
        match (self.flow_buckets, self.bucket) {
            (Some(0), _) => wrong("flow_buckets", "is 0; divide flows into at least one bucket".into()),
            (Some(buckets), Some(bucket)) if bucket >= buckets => {
                wrong("bucket", format!("is {bucket}; {buckets} buckets are counted from 0 to {}", buckets - 1));
            }
            (Some(_), None) => wrong("flow_buckets", "needs `bucket`, which of them the class takes".into()),
            (None, Some(_)) => wrong("bucket", "needs `flow_buckets`, into how many flows are divided".into()),
            _ => {}
        }
        problems
    }
}

/// A [`MatchConfig`] in force.
#[derive(Clone, Debug)]
pub(crate) struct Classifier {
    any: bool,
    /// A bit for each DSCP that is taken.
    dscp: u64,
    addresses: [Option<u32>; 2],
    config: MatchConfig,
}

impl Classifier {
    pub fn new(config: &MatchConfig) -> Classifier {
        let fold = |address: Option<Address>| address.map(|Address(address)| FiveTuple::fold(address));
        Classifier {
            any: config.is_any(),
            dscp: config.dscp.iter().fold(0, |bits, dscp| bits | 1 << (dscp & 63)),
            addresses: [fold(config.client_address), fold(config.server_address)],
            config: config.clone(),
        }
    }

    /// True if the class takes `pdu`, which travels in `direction`.
    pub fn takes(&self, pdu: &Pdu, direction: Direction) -> bool {
        self.any || self.takes_class_and_length(pdu) && self.takes_ends(&pdu.tuple, direction)
    }

    fn takes_class_and_length(&self, pdu: &Pdu) -> bool {
        let MatchConfig { shortest, longest, origin, filter, flow_buckets, bucket, .. } = &self.config;
        (self.dscp == 0 || self.dscp >> (pdu.class & 63) & 1 == 1)
            && shortest.is_none_or(|shortest| pdu.bits() >= shortest)
            && longest.is_none_or(|longest| pdu.bits() <= longest)
            && match origin {
                None => true,
                Some(MatchOrigin::User) => pdu.origin == Origin::User,
                Some(MatchOrigin::Background) => pdu.origin == Origin::Background,
            }
            && filter.as_ref().is_none_or(|filter| filter.takes(pdu))
            && match (flow_buckets, bucket) {
                (Some(buckets), Some(bucket)) => pdu.flow % buckets == *bucket,
                _ => true,
            }
    }

    fn takes_ends(&self, tuple: &FiveTuple, direction: Direction) -> bool {
        let source = (tuple.source, tuple.source_port);
        let destination = (tuple.destination, tuple.destination_port);
        let (client, server) = match direction {
            Direction::Uplink => (source, destination),
            Direction::Downlink => (destination, source),
        };
        let MatchConfig { protocol, client_port, server_port, .. } = &self.config;
        let [client_address, server_address] = self.addresses;
        protocol.is_none_or(|Protocol(protocol)| tuple.protocol == protocol)
            && client_address.is_none_or(|address| client.0 == address)
            && server_address.is_none_or(|address| server.0 == address)
            && client_port.as_ref().is_none_or(|ports| ports.hold(client.1))
            && server_port.as_ref().is_none_or(|ports| ports.hold(server.1))
    }
}

/// A protocol above IP: its name, or its IANA number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(pub u8);

const PROTOCOLS: &[(&str, u8)] =
    &[("icmp", 1), ("tcp", 6), ("udp", 17), ("gre", 47), ("esp", 50), ("icmpv6", 58), ("sctp", 132), ("udp_lite", 136)];

impl Protocol {
    /// True if the packets of the protocol have ports that Airpath reads: TCP, UDP and UDP-Lite.
    fn has_ports(self) -> bool {
        matches!(self.0, 6 | 17 | 136)
    }
}

impl FromStr for Protocol {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Protocol, QuantityError> {
        let text = text.trim();
        let named = PROTOCOLS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
        let number = named.or_else(|| text.parse().ok().filter(|number| *number > 0));
        number.map(Protocol).ok_or_else(|| {
            let near = airpath_core::nearest::nearest(text, PROTOCOLS.iter().map(|(name, _)| *name));
            let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            QuantityError::new(format!("`{text}` is no protocol{hint}"), "\"udp\", or an IANA number from 1 to 255")
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Ports: one, a range, or several of these joined by commas: `5004`, `"5000-5100, 6000"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(Vec<(u16, u16)>);

impl Ports {
    fn hold(&self, port: u16) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&port))
    }
}

impl FromStr for Ports {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Ports, QuantityError> {
        let wrong = |part: &str, why: &str| {
            QuantityError::new(
                format!("`{}` is no port or range of ports{why}", part.trim()),
                "5004 or \"5000-5100, 6000\"",
            )
        };
        let port = |text: &str| text.trim().parse().ok().filter(|port| *port > 0);
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (port(first), port(last)) {
                (Some(first), Some(last)) if first <= last => Ok((first, last)),
                (Some(_), Some(_)) => Err(wrong(part, ": it ends before it begins")),
                _ => Err(wrong(part, ", which are numbers from 1 to 65535")),
            }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Ports)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            if first == last { write!(f, "{separator}{first}") } else { write!(f, "{separator}{first}-{last}") }?;
        }
        Ok(())
    }
}

/// An IPv4 or IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub IpAddr);

impl FromStr for Address {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Address, QuantityError> {
        const EXAMPLE: &str = "\"10.77.0.1\" or \"fd00::1\"";
        let address = text.trim().parse::<IpAddr>();
        let address = address.map_err(|_| QuantityError::new(format!("`{text}` is no IP address"), EXAMPLE))?;
        if address.is_unspecified() {
            return Err(QuantityError::new(format!("`{text}` is nobody's address"), EXAMPLE));
        }
        Ok(Address(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads text, or a whole number as the text that it is.
struct TextOrNumber<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> serde::de::Visitor<'_> for TextOrNumber<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a whole number")
    }
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

macro_rules! text_or_number {
    ($type:ident, $schema:tt) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = self.to_string();
                match text.parse::<u16>() {
                    Ok(number) => serializer.serialize_u16(number),
                    Err(_) => serializer.serialize_str(&text),
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                deserializer.deserialize_any(TextOrNumber(PhantomData))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

text_or_number!(Protocol, {
    "description": "A protocol above IP: its name, or its IANA number.",
    "anyOf": [{"type": "string", "pattern": r"^\s*([a-z0-9_]+)\s*$"}, {"type": "integer", "minimum": 1, "maximum": 255}],
    "examples": ["udp", 50],
});
text_or_number!(Ports, {
    "description": "A port, a range of ports, or several of these joined by commas.",
    "anyOf": [{"type": "string", "pattern": r"^[\s0-9,-]+$"}, {"type": "integer", "minimum": 1, "maximum": 65535}],
    "examples": [5004, "5000-5100, 6000"],
});
text_or_number!(Address, {
    "type": "string",
    "description": "An IPv4 or IPv6 address.",
    "pattern": r"^\s*[0-9A-Fa-f.:]+\s*$",
    "examples": ["10.77.0.1", "fd00::1"],
});
