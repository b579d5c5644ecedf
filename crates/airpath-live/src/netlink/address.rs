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
const PATIENCE: Duration = Duration::from_secs(1);

impl RouteSocket {
    /// Adds an address without duplicate address detection and without the
    /// route to its prefix (so that routes can carry a congestion control).
    /// If it is one of IPv6, packets to it are taken in afterwards; the
    /// interface has to be up.
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
        self.acknowledged(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)?;
        if let IpAddr::V6(address) = address {
            self.wait_for_address(address);
        }
        Ok(())
    }

    /// Waits until the namespace takes packets to `address` in, for a second at most. The kernel adds an address of IPv6
    /// at once, but the route to it later, in a work queue; until then packets to the address are lost, on a busy machine
    /// for milliseconds. In a user's namespace whose rules of routing lead elsewhere, the address may never seem to be
    /// there: the run goes on as it would without the wait.
    fn wait_for_address(&mut self, address: Ipv6Addr) {
        let begun = Instant::now();
        while !self.is_local(address.into()).unwrap_or(false) && begun.elapsed() < PATIENCE {
            sleep(INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::process::Command;

    use super::*;
    use crate::namespaces::NetNamespace;
    use crate::netlink::LinkOptions;

    /// A namespace with an interface that is up, whose number is beside it; nothing without the rights to make one.
    fn network() -> Option<(NetNamespace, RouteSocket, u32)> {
        let Ok(network) = NetNamespace::create() else {
            eprintln!("skipped: no network namespace can be made here");
            return None;
        };
        let mut socket = network.run(RouteSocket::open).unwrap().unwrap();
        socket.add_veth("one", "other", network.as_fd(), 1500).unwrap();
        for name in ["one", "other"] {
            let index = socket.link_index(name).unwrap();
            socket.configure_link(index, &LinkOptions { up: true, ..LinkOptions::default() }).unwrap();
        }
        let index = socket.link_index("one").unwrap();
        Some((network, socket, index))
    }

    #[test]
    fn packets_to_an_address_are_taken_in_once_it_is_added() {
        let Some((_network, mut socket, index)) = network() else { return };
        // A third of them or more are not local at first.
        for number in 1..=200 {
            let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number);
            assert!(!socket.is_local(address.into()).unwrap());
            socket.add_address(index, address.into(), 64).unwrap();
            assert!(socket.is_local(address.into()).unwrap());
        }
    }

    #[test]
    fn rules_that_lead_elsewhere_end_the_wait_and_not_the_run() {
        let Some((network, mut socket, index)) = network() else { return };
        let rules = "ip -6 rule add pref 1 prohibit && ip -6 rule del pref 0 table local";
        assert!(network.run(|| Command::new("sh").args(["-c", rules]).status()).unwrap().unwrap().success());
        let address = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
        let begun = Instant::now();
        socket.add_address(index, address.into(), 64).unwrap();
        assert!(begun.elapsed() >= PATIENCE);
        assert!(socket.is_local(address.into()).is_err(), "the rule does nothing");
    }
}
