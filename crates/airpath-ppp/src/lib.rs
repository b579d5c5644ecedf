// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! PPP over serial lines: frames as in RFC 1662, negotiation as in RFC 1661,
//! authentication
//! (RFC 1334, RFC 1994), and the addresses of IPv4 (RFC 1332, RFC 1877) and IPv6 (RFC 5072).
//!
//! Bytes and packets go in and out, and time comes in as an argument: there are
//! no system calls, and memory is bounded whatever the line brings.

mod authentication;
mod automaton;
mod configuration;
mod endpoint;
mod fcs;
mod framing;
mod ipcp;
mod ipv6cp;
mod lcp;
mod negotiation;
mod options;
mod report;

pub use authentication::{Authentication, Credentials, Denial, Method};
pub use automaton::State;
pub use configuration::Configuration;
pub use endpoint::Endpoint;
pub use fcs::Fcs;
pub use framing::{Deframer, Framer, FramingError};
pub use report::{Counters, LineDown, NotSent};
