// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Values of workloads' keys: how each is read, written and described.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use airpath_core::length::BYTES_UNITS;
use airpath_core::quantity::{self, QuantityError};
use airpath_core::{End, Probability, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// Error of parsing a key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// Message.
    pub message: String,
    /// The words that would be valid, where there is a list of them.
    pub valid: Vec<&'static str>,
}

impl From<QuantityError> for ValueError {
    fn from(error: QuantityError) -> ValueError {
        ValueError { message: error.to_string(), valid: Vec::new() }
    }
}

/// A value of a key.
pub trait Value: Sized + Clone + PartialEq + Serialize + JsonSchema {
    /// Reads it.
    ///
    /// # Errors
    /// When `text` is no such value.
    fn read(text: &str) -> Result<Self, ValueError>;

    /// Writes it so that [`Value::read`] gives the same.
    fn write(&self) -> String;
}

macro_rules! quantity_value {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn read(text: &str) -> Result<Self, ValueError> {
                Ok(text.parse()?)
            }
            fn write(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
quantity_value!(Span, Rate, Probability, Bytes, Count);

/// A choice between words: an enumeration with its words, in scenarios, files and messages.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant),*
        }
        choice!($name { $($variant = $word),* });
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.write())
            }
        }
    };
}
macro_rules! choice {
    ($name:ident { $($variant:ident = $word:expr),* }) => {
        impl Value for $name {
            fn read(text: &str) -> Result<Self, ValueError> {
                match text {
                    $(text if text == $word => Ok($name::$variant),)*
                    _ => Err(ValueError {
                        message: format!("`{text}` is not a valid value here"),
                        valid: vec![$($word),*],
                    }),
                }
            }
            fn write(&self) -> String {
                match self { $($name::$variant => $word.to_string()),* }
            }
        }
    };
}

choice!(End { Client = End::Client.name(), Server = End::Server.name() });

words! {
    /// Congestion control of a TCP sender.
    TcpCongestionControl {
        /// Reno: additive increase, halving upon loss.
        Reno = "reno",
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
        /// Nothing but the receiver's window.
        None = "none",
    }
}

words! {
    /// Congestion control of a QUIC sender. BBR is left out: the only implementation that runs in virtual time
    /// draws from the system's random numbers, and its runs would not repeat.
    QuicCongestionControl {
        /// New Reno (RFC 9002, section 7).
        NewReno = "newreno",
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
    }
}

words! {
    /// Congestion control of media.
    MediaControl {
        /// NADA (RFC 8698).
        Nada = "nada",
    }
}

words! {
    /// Use of explicit congestion notification.
    EcnUse {
        /// Packets are not ECN-capable.
        No = "no",
        /// Packets are ECN-capable (ECT(0)).
        Yes = "yes",
    }
}

words! {
    /// Use of timestamps by TCP.
    TimestampUse {
        /// Segments bear no timestamps.
        No = "no",
        /// Segments bear timestamps.
        Yes = "yes",
    }
}

words! {
    /// The transport protocol of datagrams.
    UdpProtocol {
        /// UDP (RFC 768).
        Udp = "udp",
        /// UDP-Lite (RFC 3828): damage beyond the coverage is delivered.
        UdpLite = "udp-lite",
    }
}

/// A number of bytes: a bare number, or one with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Bytes, QuantityError> {
        const EXAMPLE: &str = "102400, \"200 bytes\" or \"1 MB\"";
        if quantity::split(text).1.is_empty() && !text.trim().is_empty() {
            let wrong = |problem| QuantityError::new(format!("`{text}` is not a number of bytes: {problem}"), EXAMPLE);
            return quantity::scale(text.trim(), 1).map(Bytes).map_err(wrong);
        }
        quantity::parse(text, "number of bytes", BYTES_UNITS, EXAMPLE).map(Bytes)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of bytes: a bare number, or text with a unit (bytes, kB, MB, GB, TB).",
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": r"^\s*[0-9_]*\.?[0-9]+\s*(bytes?|B|octets?|kB|MB|GB|TB)?\s*$"},
            ],
            "examples": [102_400, "1 MB"],
        })
    }
}

/// A count; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Count, QuantityError> {
        match quantity::scale(text.trim(), 1) {
            Ok(0) => Err(QuantityError::new(format!("`{text}` is zero"), "10")),
            Ok(count) => Ok(Count(count)),
            Err(problem) => Err(QuantityError::new(format!("`{text}` is not a count: {problem}"), "10")),
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl JsonSchema for Count {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"description": "A count; at least one.", "type": "integer", "minimum": 1, "examples": [10]})
    }
}

/// Duration of each of a row of periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Always as long.
    Fixed(Span),
    /// Exponentially distributed with this mean.
    Exponential(Span),
}

const EXPONENTIAL: &str = "exponential";

impl Period {
    /// Mean duration of a period.
    pub fn mean(self) -> Span {
        match self {
            Period::Fixed(span) | Period::Exponential(span) => span,
        }
    }
}

impl Value for Period {
    fn read(text: &str) -> Result<Period, ValueError> {
        match text.trim().split_once(char::is_whitespace) {
            Some((EXPONENTIAL, mean)) => Ok(Period::Exponential(mean.parse()?)),
            _ if text.trim() == EXPONENTIAL => Err(ValueError {
                message: format!("`{text}` has no mean; write for example \"exponential 1 s\""),
                valid: Vec::new(),
            }),
            Some((word, _)) if word.starts_with(char::is_alphabetic) => Err(ValueError {
                message: format!("`{word}` is no distribution; write \"1 s\" or \"exponential 1 s\""),
                valid: vec![EXPONENTIAL],
            }),
            _ => Ok(Period::Fixed(text.parse()?)),
        }
    }

    fn write(&self) -> String {
        match self {
            Period::Fixed(span) => span.to_string(),
            Period::Exponential(mean) => format!("{EXPONENTIAL} {mean}"),
        }
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.write())
    }
}

impl JsonSchema for Period {
    fn schema_name() -> Cow<'static, str> {
        "Period".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Duration of periods: a time, or `exponential` and their mean.",
            "type": "string",
            "pattern": r"^\s*(exponential\s+)?[0-9_]*\.?[0-9]+\s*(h|min|s|ms|us|µs|μs|ns)\s*$",
            "examples": ["1 s", "exponential 1 s"],
        })
    }
}

impl Value for String {
    fn read(text: &str) -> Result<String, ValueError> {
        match text {
            "" => Err(ValueError { message: "it is empty".into(), valid: Vec::new() }),
            text => Ok(text.to_string()),
        }
    }
    fn write(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    fn read(text: &str) -> Result<PathBuf, ValueError> {
        String::read(text).map(PathBuf::from)
    }
    fn write(&self) -> String {
        self.to_string_lossy().into_owned()
    }
}

impl Value for IpAddr {
    fn read(text: &str) -> Result<IpAddr, ValueError> {
        let message = || format!("`{text}` is not an IP address; write for example 10.77.0.2");
        text.trim().parse().map_err(|_| ValueError { message: message(), valid: Vec::new() })
    }
    fn write(&self) -> String {
        self.to_string()
    }
}
