// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Primitives of filter expressions: protocols, addresses, ports, lengths.

use std::net::IpAddr;

use super::evaluate::Cut;
use crate::protocol::{TCP, UDP, UDP_LITE};
use crate::protocols::{Packet, Protocol, rtp, tls};

/// Stream Control Transmission Protocol (RFC 9260).
pub(super) const SCTP: u8 = 132;

/// Ends of a packet that a primitive looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ends {
    Source,
    Destination,
    #[default]
    Either,
    Both,
}

impl Ends {
    fn test<T>(self, [source, destination]: [T; 2], wanted: impl Fn(T) -> bool) -> bool {
        match self {
            Ends::Source => wanted(source),
            Ends::Destination => wanted(destination),
            Ends::Either => wanted(source) || wanted(destination),
            Ends::Both => wanted(source) && wanted(destination),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Primitive {
    /// IP of this version.
    Version(u8),
    /// A protocol above IP, of this version of IP or any.
    Number {
        version: Option<u8>,
        protocol: u8,
    },
    /// An address, of which the first bits count.
    Net {
        ends: Ends,
        address: IpAddr,
        mask: u128,
    },
    /// Ports from the first to the last, of this protocol or any that has ports.
    Ports {
        ends: Ends,
        protocol: Option<u8>,
        version: Option<u8>,
        first: u16,
        last: u16,
    },
    Recognised(&'static Protocol),
    RtpSsrc(u32),
    RtpPayloadType(u32),
    ServerName(String),
}

/// An address as a number, left-aligned, so that masks of both versions are alike.
pub(super) fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

impl Primitive {
    pub(super) fn reads_contents(&self) -> bool {
        match self {
            Primitive::Version(_) | Primitive::Number { .. } | Primitive::Net { .. } | Primitive::Ports { .. } => false,
            Primitive::Recognised(_)
            | Primitive::RtpSsrc(_)
            | Primitive::RtpPayloadType(_)
            | Primitive::ServerName(_) => true,
        }
    }

    pub(super) fn matches(&self, packet: &Packet<'_>) -> Result<bool, Cut> {
        let version = packet.bytes.first().ok_or(Cut)? >> 4;
        let fits = |wanted: Option<u8>| wanted.map_or(version == 4 || version == 6, |wanted| wanted == version);
        // The fixed header is at hand, or what is asked for was cut off.
        let headers = || packet.headers.ok_or(Cut);
        Ok(match self {
            Primitive::Version(wanted) => version == *wanted,
            Primitive::Number { version, protocol } => fits(*version) && headers()?.protocol == *protocol,
            Primitive::Net { ends, address, mask } => {
                let wanted = |end| (bits(end) ^ bits(*address)) & mask == 0;
                let same = if address.is_ipv4() { 4 } else { 6 };
                version == same && ends.test(headers()?.ends(packet.bytes), wanted)
            }
            Primitive::Ports { ends, protocol, version, first, last } => {
                if !fits(*version) {
                    return Ok(false);
                }
                let headers = headers()?;
                let known = protocol
                    .map_or([TCP, UDP, UDP_LITE, SCTP].contains(&headers.protocol), |one| one == headers.protocol);
                if !known || headers.is_later_fragment() {
                    return Ok(false);
                }
                let ports: &[u8; 4] =
                    packet.bytes.get(headers.ip_bytes..).and_then(|bytes| bytes.first_chunk()).ok_or(Cut)?;
                let ports = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
                ends.test(ports, |port| (*first..=*last).contains(&port))
            }
            Primitive::Recognised(protocol) => (protocol.recognises)(packet),
            Primitive::RtpSsrc(ssrc) => rtp::read(packet).is_some_and(|rtp| rtp.ssrc == *ssrc),
            Primitive::RtpPayloadType(kind) => {
                rtp::read(packet).is_some_and(|rtp| u32::from(rtp.payload_type) == *kind)
            }
            Primitive::ServerName(name) => {
                tls::server_name(packet).is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
            }
        })
    }
}
