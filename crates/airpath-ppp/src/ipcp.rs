// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Options of IPCP: addresses (RFC 1332) and name servers (RFC 1877).

use std::net::Ipv4Addr;

use crate::negotiation::{Opinion, Options};
use crate::options::{ConfigurationOption, append};

const ADDRESS: u8 = 3;
const NAME_SERVERS: [u8; 2] = [129, 131];

/// Addresses of the two ends.
#[derive(Debug)]
pub(crate) struct Ipcp {
    /// Ours; unspecified until the peer gives one, if we have none.
    pub ours: Ipv4Addr,
    /// The peer's as agreed; unspecified if it told none.
    pub peers: Ipv4Addr,
    configured: Option<Ipv4Addr>,
    given: Option<Ipv4Addr>,
    name_servers: Vec<Ipv4Addr>,
    rejected: bool,
}

impl Ipcp {
    /// `ours` is `None` if the peer is to give it; `given` is what the peer gets.
    pub fn new(ours: Option<Ipv4Addr>, given: Option<Ipv4Addr>, name_servers: Vec<Ipv4Addr>) -> Self {
        Self {
            ours: ours.unwrap_or(Ipv4Addr::UNSPECIFIED),
            peers: Ipv4Addr::UNSPECIFIED,
            configured: ours,
            given,
            name_servers,
            rejected: false,
        }
    }
}

impl Options for Ipcp {
    fn begin(&mut self) {
        self.ours = self.configured.unwrap_or(Ipv4Addr::UNSPECIFIED);
        self.peers = Ipv4Addr::UNSPECIFIED;
        self.rejected = false;
    }

    fn request(&self, list: &mut Vec<u8>) {
        if !self.rejected {
            append(list, ADDRESS, &self.ours.octets());
        }
    }

    fn judge(&mut self, (kind, data): ConfigurationOption<'_>) -> Opinion {
        let Ok(octets) = <[u8; 4]>::try_from(data) else { return Opinion::Refused };
        let asked = Ipv4Addr::from(octets);
        let should_be = if kind == ADDRESS {
            self.given.or((!asked.is_unspecified()).then_some(asked))
        } else {
            let place = NAME_SERVERS.iter().position(|of| *of == kind);
            place.and_then(|place| self.name_servers.get(place).copied())
        };
        match should_be {
            None => Opinion::Refused,
            Some(address) if address == asked => Opinion::Good,
            Some(address) => Opinion::Rather(address.octets().to_vec()),
        }
    }

    fn agree(&mut self, options: &[ConfigurationOption<'_>]) {
        let address = options.iter().find(|(kind, _)| *kind == ADDRESS);
        let octets = address.and_then(|(_, data)| <[u8; 4]>::try_from(*data).ok());
        self.peers = octets.map_or(Ipv4Addr::UNSPECIFIED, Ipv4Addr::from);
    }

    fn take_nak(&mut self, (kind, data): ConfigurationOption<'_>) {
        if let (ADDRESS, None, Ok(octets)) = (kind, self.configured, <[u8; 4]>::try_from(data)) {
            self.ours = octets.into();
        }
    }

    fn take_reject(&mut self, (kind, _): ConfigurationOption<'_>) {
        self.rejected |= kind == ADDRESS;
    }
}
