// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Filters of packets by their bytes, in classifiers and error models.
//!
//! Models have no contents of packets. A path numbers its filters ([`crate::filter_list`]); a driver asks them where a
//! packet comes in, and the packet carries the answers ([`airpath_core::Matches`]).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use airpath_core::Pdu;
use airpath_core::quantity::QuantityError;
use airpath_packet::PacketFilter;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A filter expression in the language of pcap-filter. Written as text.
#[derive(Clone)]
pub struct Filter {
    text: String,
    expression: Arc<PacketFilter>,
    /// Its number among the filters of its path; none before the path is built.
    number: Option<u8>,
}

impl Filter {
    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expression.
    pub fn expression(&self) -> &PacketFilter {
        &self.expression
    }

    /// Gives it its number among the filters of its path.
    pub(crate) fn set_number(&mut self, number: Option<u8>) {
        self.number = number;
    }

    /// True if `pdu` matched as it came in; false for a packet without bytes, and for one that came in before the path
    /// had the filter.
    #[inline]
    pub(crate) fn takes(&self, pdu: &Pdu) -> bool {
        self.number.is_some_and(|number| pdu.matches.has(number))
    }
}

impl FromStr for Filter {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Filter, QuantityError> {
        const EXAMPLE: &str = "\"udp and port 5004\"";
        if text.trim().is_empty() {
            return Err(QuantityError::new("the filter is empty; leave it out to take all packets", EXAMPLE));
        }
        let expression = PacketFilter::parse(text).map_err(|error| QuantityError::new(error.to_string(), EXAMPLE))?;
        Ok(Filter { text: text.into(), expression: Arc::new(expression), number: None })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "filter {:?}", self.text)
    }
}

/// The same text, whatever the number.
impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        self.text == other.text
    }
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Filter, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Filter {
    fn schema_name() -> Cow<'static, str> {
        "Filter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A filter expression in the language of tcpdump (pcap-filter).",
            "pattern": r"\S",
            "examples": ["udp and port 5004", "rtp payload-type 96"],
        })
    }
}

/// Visitor of each filter in parameters.
pub type VisitFilter<'a> = dyn FnMut(&mut Filter) + 'a;
