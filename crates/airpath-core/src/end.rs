// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The two ends of a link and the addresses of the hosts that stand there.
//!
//! Links are numbered from 0 to 16383; link N has IPv4 `10.77.0.0 + 4N` (a /30: server `+1`, client
//! `+2`) and IPv6 `fd61:6972:7000:N::/64` (server `::1`, client `::2`), however it is driven.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::machine::PortId;
use crate::pdu::Direction;

/// Bits of a link number.
pub const LINK_NUMBER_BITS: u8 = 14;
/// The prefix length of a link's IPv4 network.
pub const IPV4_PREFIX_LENGTH: u8 = 30;
/// The prefix length of a link's IPv6 network.
pub const IPV6_PREFIX_LENGTH: u8 = 64;

/// The end of a link.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The mobile end.
    Client,
    /// The fixed end.
    Server,
}

impl End {
    /// Both ends, the client first.
    pub const ALL: [End; 2] = [End::Client, End::Server];

    /// The name by which programs reach it.
    pub const fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }

    /// The end across the link.
    pub const fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    /// The port of a path at which it stands.
    pub const fn port(self) -> PortId {
        match self {
            End::Client => PortId::CLIENT,
            End::Server => PortId::SERVER,
        }
    }

    /// The direction of what it sends.
    pub const fn sends(self) -> Direction {
        match self {
            End::Client => Direction::Uplink,
            End::Server => Direction::Downlink,
        }
    }

    /// Its IPv4 address on the link of this number.
    pub const fn ipv4(self, link: u16) -> Ipv4Addr {
        let [_, _, high, low] = ipv4_network(link).octets();
        Ipv4Addr::new(10, 77, high, low + self.host() as u8)
    }

    /// Its IPv6 address on the link of this number.
    pub const fn ipv6(self, link: u16) -> Ipv6Addr {
        let [a, b, c, d, ..] = ipv6_network(link).segments();
        Ipv6Addr::new(a, b, c, d, 0, 0, 0, self.host())
    }

    const fn host(self) -> u16 {
        match self {
            End::Server => 1,
            End::Client => 2,
        }
    }
}

impl Direction {
    /// The end that sends in this direction.
    pub const fn sender(self) -> End {
        match self {
            Direction::Uplink => End::Client,
            Direction::Downlink => End::Server,
        }
    }

    /// The end that receives in this direction.
    pub const fn receiver(self) -> End {
        self.sender().other()
    }
}

impl PortId {
    /// The port at `end` of the path of user number `user`.
    pub const fn of(user: u16, end: End) -> PortId {
        PortId(user * 2 + end.port().0)
    }

    /// Number of the user whose port it is.
    pub const fn user(self) -> u16 {
        self.0 / 2
    }

    /// End of the user's path at which it is.
    pub const fn end(self) -> End {
        if self.0.is_multiple_of(2) { End::Client } else { End::Server }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The IPv4 network of the link of this number.
pub const fn ipv4_network(link: u16) -> Ipv4Addr {
    let [high, low] = (link << 2).to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// The IPv6 network of the link of this number.
pub const fn ipv6_network(link: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd61, 0x6972, 0x7000, link, 0, 0, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_link_has_the_addresses_that_users_type() {
        assert_eq!(End::Server.ipv4(0).to_string(), "10.77.0.1");
        assert_eq!(End::Client.ipv4(0).to_string(), "10.77.0.2");
        assert_eq!(End::Client.ipv4(64).to_string(), "10.77.1.2");
        assert_eq!(End::Server.ipv6(3).to_string(), "fd61:6972:7000:3::1");
    }
}
