// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options of an end.

use std::net::Ipv4Addr;

use crate::authentication::Authentication;

/// Options of an end: those that it asks for, and those that it gives.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Our address; `None` to be given one.
    pub address: Option<Ipv4Addr>,
    /// Address for the peer; `None` to take the one that it says.
    pub peer_address: Option<Ipv4Addr>,
    /// Name servers for the peer, two at most.
    pub name_servers: Vec<Ipv4Addr>,
    /// IPv6 is offered.
    pub ipv6: bool,
    /// Interface identifiers of ours and the peer's; `None` to make them of the magic number.
    pub interface_identifiers: Option<(u64, u64)>,
    /// Longest information field that we take.
    pub mru_bytes: u16,
    /// Characters below 0x20 that the line does not pass.
    pub character_map: u32,
    /// Frames with a sequence of 32 bits are asked for, and written where the peer asks for them.
    pub long_sequences: bool,
    /// Authentication of the two ends.
    pub authentication: Authentication,
    /// Number that differs between the two ends.
    pub magic_number: u32,
    /// Time between two Echo-Requests; 0 for none.
    pub echo_interval_ns: u64,
    /// Echo-Requests without a reply after which the line is down.
    pub echo_failures: u32,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            address: None,
            peer_address: None,
            name_servers: Vec::new(),
            ipv6: true,
            interface_identifiers: None,
            mru_bytes: 1500,
            character_map: 0,
            long_sequences: false,
            authentication: Authentication::default(),
            magic_number: 1,
            echo_interval_ns: 10_000_000_000,
            echo_failures: 3,
        }
    }
}
