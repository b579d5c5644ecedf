// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Option of IPV6CP: the interface identifier, RFC 5072.

use crate::negotiation::{Opinion, Options};
use crate::options::{ConfigurationOption, append};

const INTERFACE_IDENTIFIER: u8 = 1;

/// Interface identifiers of the two ends.
#[derive(Debug)]
pub(crate) struct Ipv6cp {
    pub ours: u64,
    /// The peer's as agreed; 0 if it told none.
    pub peers: u64,
    configured: u64,
    given: u64,
    rejected: bool,
}

impl Ipv6cp {
    /// `given` is for a peer that has no identifier, or ours.
    pub fn new(ours: u64, given: u64) -> Self {
        Self { ours, peers: 0, configured: ours, given, rejected: false }
    }
}

impl Options for Ipv6cp {
    fn begin(&mut self) {
        (self.ours, self.peers, self.rejected) = (self.configured, 0, false);
    }

    fn request(&self, list: &mut Vec<u8>) {
        if !self.rejected {
            append(list, INTERFACE_IDENTIFIER, &self.ours.to_be_bytes());
        }
    }

    fn judge(&mut self, (kind, data): ConfigurationOption<'_>) -> Opinion {
        let (INTERFACE_IDENTIFIER, Ok(octets)) = (kind, <[u8; 8]>::try_from(data)) else { return Opinion::Refused };
        let asked = u64::from_be_bytes(octets);
        if asked == 0 || asked == self.ours {
            return Opinion::Rather(self.given.to_be_bytes().to_vec());
        }
        Opinion::Good
    }

    fn agree(&mut self, options: &[ConfigurationOption<'_>]) {
        let octets = options.first().and_then(|(_, data)| <[u8; 8]>::try_from(*data).ok());
        self.peers = octets.map_or(0, u64::from_be_bytes);
    }

    fn take_nak(&mut self, (kind, data): ConfigurationOption<'_>) {
        if let (INTERFACE_IDENTIFIER, Ok(octets)) = (kind, <[u8; 8]>::try_from(data)) {
            let told = u64::from_be_bytes(octets);
            // 0 is no identifier, and the peer's own would be no other.
            if told != 0 && told != self.given {
                self.ours = told;
            }
        }
    }

    fn take_reject(&mut self, (kind, _): ConfigurationOption<'_>) {
        self.rejected |= kind == INTERFACE_IDENTIFIER;
    }
}
