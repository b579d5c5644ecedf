// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A network namespace of others, in which an interface is made for the link.

use std::net::IpAddr;

use super::{Attached, Carried, Device, Place, Plan};
use crate::addressing::End;
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkOptions, Route, RouteSocket};
use crate::ports::{InterfacePort, PacketPort, Port};
use crate::privilege;
use crate::session::SessionEnd;

/// A network namespace by the name that the user gave.
#[derive(Debug)]
pub(super) struct Inside {
    name: String,
    network: NetNamespace,
    identity: (u64, u64),
}

impl Inside {
    /// The namespace that somebody called `name`.
    pub(super) fn new(name: String, network: NetNamespace) -> Result<Self> {
        if !privilege::owns_network(&network)? {
            return Err(LiveError::Forbidden(format!(
                "an interface cannot be made in {name}, which belongs to another user; run the command as root"
            )));
        }
        let identity = network.identity().attempting(|| format!("look at the network namespace of {name}"))?;
        Ok(Self { name, network, identity })
    }

    /// Brings the interface up, with addresses and the routes to the link's own networks alone.
    fn bring_up(&self, plan: &Plan<'_>, interface: &str, addresses: &[IpAddr]) -> Result<()> {
        let attempted = |what: &str| format!("{what} the interface {interface} in {}", self.name);
        let mut socket = self.network.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
        let index = socket.link_index(interface).attempting(|| attempted("find"))?;
        let is_addressed = plan.carried == Carried::Packets;
        let options = LinkOptions {
            mtu_bytes: Some(plan.mtu_bytes),
            without_link_local: is_addressed,
            without_resolution: is_addressed,
            ..LinkOptions::default()
        };
        socket.configure_link(index, &options).attempting(|| attempted("configure"))?;
        let up = LinkOptions { up: true, ..LinkOptions::default() };
        socket.configure_link(index, &up).attempting(|| attempted("bring up"))?;
        for address in addresses {
            let (destination, prefix_length) = plan.link.network(*address);
            socket
                .add_address(index, *address, prefix_length)
                .attempting(|| attempted(&format!("give {address} to")))?;
            let route = Route {
                destination,
                prefix_length,
                link_index: index,
                gateway: None,
                source: Some(*address),
                congestion_control: plan.congestion_control.map(str::to_owned),
            };
            socket.add_route(&route).attempting(|| attempted(&format!("add the route to {destination} through")))?;
        }
        Ok(())
    }
}

impl Place for Inside {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn carries(&self) -> Carried {
        Carried::Packets
    }

    fn network(&self) -> Option<&NetNamespace> {
        Some(&self.network)
    }

    fn device(&self) -> Option<Device> {
        Some(Device { network: self.identity, index: None, related: None })
    }

    fn attach(&self, plan: &Plan<'_>, end: End) -> Result<Attached> {
        let (interface, engine, in_engine) = (plan.link.interface_name(), plan.engine, end.name());
        let (network, mtu_bytes) = (&self.network, plan.mtu_bytes);
        let (port, addresses): (Port, _) = match plan.carried {
            Carried::Packets => (
                Box::new(PacketPort::create(engine, in_engine, network, &interface, mtu_bytes, true)?),
                plan.link.addresses(end, plan.with_ipv6),
            ),
            Carried::Frames => {
                (Box::new(InterfacePort::create(engine, in_engine, network, &interface, mtu_bytes)?), Vec::new())
            }
        };
        self.bring_up(plan, &interface, &addresses)?;
        let shown: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        let with = if shown.is_empty() { "no addresses yet".to_owned() } else { shown.join(" and ") };
        let told = format!("{}: interface {interface} with {with}", self.name);
        let network = network.try_clone().attempting(|| "open a namespace again".into())?;
        let end = SessionEnd::of_others(end, interface, network, addresses);
        Ok(Attached { port, end, told, notes: Vec::new(), helpers: Vec::new(), awaited: None })
    }
}
