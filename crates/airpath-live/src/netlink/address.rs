// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Addresses of interfaces.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};

use super::RouteSocket;
use super::route::family;

/// Interval between two looks for an address.
const INTERVAL: Duration = Duration::from_micros(100);
/// Time after which an address counts as usable, although the kernel does not say so.
const PATIENCE: Duration = Duration::from_secs(5);

impl RouteSocket {
    /// Adds an address without duplicate address detection and without the
    /// route to its prefix (so that routes can carry a congestion control).
    ///
    /// # Errors
    /// `EEXIST` when it is there already; otherwise the kernel's.
    pub fn add_address(&mut self, link_index: u32, address: IpAddr, prefix_length: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
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

    /// Waits until the namespace takes packets to `address` in. The kernel adds an address of IPv6 at once, but the route
    /// to it later, in a work queue; until then packets to the address are lost, on a busy machine for milliseconds.
    /// Where the user's own rules of routing lead elsewhere, the wait ends after five seconds.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait_for_address(&mut self, address: Ipv6Addr) -> io::Result<()> {
        let begun = Instant::now();
        while !self.is_local(address.into())? && begun.elapsed() < PATIENCE {
            sleep(INTERVAL);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::namespaces::NetNamespace;
    use crate::netlink::LinkOptions;

    #[test]
    fn packets_to_an_address_are_taken_in_once_it_was_waited_for() {
        // Without the rights to make a namespace there is nothing to test; tests run as root.
        let Ok(network) = NetNamespace::create() else { return };
        let mut socket = network.run(RouteSocket::open).unwrap().unwrap();
        socket.add_veth("one", "other", network.as_fd(), 1500).unwrap();
        for name in ["one", "other"] {
            let index = socket.link_index(name).unwrap();
            socket.configure_link(index, &LinkOptions { up: true, ..LinkOptions::default() }).unwrap();
        }
        let index = socket.link_index("one").unwrap();
        // About every second one is not local at first.
        for number in 1..=200 {
            let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number);
            assert!(!socket.is_local(address.into()).unwrap());
            socket.add_address(index, address.into(), 64).unwrap();
            socket.wait_for_address(address).unwrap();
            assert!(socket.is_local(address.into()).unwrap());
        }
    }
}
