// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Facts about the link and the run that endpoints need.

use std::net::Ipv4Addr;

use airpath_core::{End, FiveTuple};

use crate::error::EndpointError;

/// The client's port of flow 0; those of others count up from there.
pub const FIRST_CLIENT_PORT: u16 = 49_152;
/// The server's port of flow 0; those of others count up from there.
pub const FIRST_SERVER_PORT: u16 = 5_001;
/// Number of flows with ports of their own; later ones start over, which matters to captures only.
const PORTS: u32 = 16_384;

/// Facts about the link and the run that endpoints need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// True if every packet carries its bytes, as captures need. Without, those that nobody reads are lengths
    /// only; protocols that read their own packets carry them always.
    pub bytes: bool,
    /// The largest IP packet in bytes; none is fragmented.
    pub mtu_bytes: u32,
    /// The link's number, which gives the addresses.
    pub link: u16,
}

impl Default for Options {
    fn default() -> Options {
        Options { bytes: false, mtu_bytes: 1_500, link: 0 }
    }
}

impl Options {
    /// `size`, or the MTU without one.
    pub(crate) fn packet_size(&self, what: &'static str, size: Option<u64>) -> Result<u32, EndpointError> {
        match size {
            None => Ok(self.mtu_bytes),
            Some(bytes) => u32::try_from(bytes)
                .ok()
                .filter(|size| *size <= self.mtu_bytes)
                .ok_or(EndpointError::AboveMtu { what, bytes, mtu_bytes: self.mtu_bytes }),
        }
    }
}

/// An address and a port at either end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub source: (Ipv4Addr, u16),
    pub destination: (Ipv4Addr, u16),
}

impl Route {
    /// The route of what `from` sends in `flow`.
    pub(crate) fn new(from: End, flow: u32, options: &Options) -> Route {
        let socket = |end: End| {
            let first = match end {
                End::Client => FIRST_CLIENT_PORT,
                End::Server => FIRST_SERVER_PORT,
            };
            (end.ipv4(options.link), first.saturating_add((flow % PORTS) as u16))
        };
        Route { source: socket(from), destination: socket(from.other()) }
    }

    /// Between whom packets of `protocol` (its IANA number) travel on this route.
    pub(crate) fn tuple(&self, protocol: u8) -> FiveTuple {
        FiveTuple {
            source: FiveTuple::fold(self.source.0.into()),
            destination: FiveTuple::fold(self.destination.0.into()),
            source_port: self.source.1,
            destination_port: self.destination.1,
            protocol,
        }
    }

    /// The route of the answers.
    pub(crate) fn reversed(self) -> Route {
        Route { source: self.destination, destination: self.source }
    }
}
