// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Addresses of interfaces.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::RouteSocket;

impl RouteSocket {
    /// Adds an address without duplicate address detection and without the
    /// route to its prefix (so that routes can carry a congestion control).
    ///
    /// # Errors
    /// `EEXIST` when it is there already; otherwise the kernel's.
    pub fn add_address(&mut self, link_index: u32, address: IpAddr, prefix_length: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = match address {
            IpAddr::V4(_) => AddressFamily::Inet,
            IpAddr::V6(_) => AddressFamily::Inet6,
        };
        message.header.prefix_len = prefix_length;
        message.header.scope = AddressScope::Universe;
        message.header.index = link_index;
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
            AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute),
        ];
        self.acknowledged(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }
}
