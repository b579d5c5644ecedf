// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An interface that is there already, with the network behind it.

use std::fs;
use std::sync::OnceLock;

use super::claim::{self, Claim};
use super::namespace::{self, listed};
use super::{Attached, Carried, Device, Kind, Opening, Place, Plan};
use crate::addressing::End;
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkFacts, RouteSocket};
use crate::ports::{Frames, InterfaceSocket, OnInterface};
use crate::privilege;
use crate::session::SessionEnd;

pub(super) const KIND: Kind = Kind {
    word: "interface",
    form: "[NETNS/]NAME",
    purpose: "an Ethernet interface of this host, or of a network namespace of `ip netns`",
    open,
};

/// The interface of this name.
#[derive(Debug)]
struct Interface {
    shown: String,
    name: String,
    network: NetNamespace,
    identity: (u64, u64),
    facts: LinkFacts,
    socket: &'static InterfaceSocket,
    claim: OnceLock<Claim>,
}

fn open(text: &str, opening: Opening) -> Result<Box<dyn Place>> {
    let (network, name) = match text.rsplit_once('/') {
        Some((namespace, name)) => (namespace::network(namespace)?, name),
        None => (NetNamespace::current()?, text),
    };
    if !privilege::owns_network(&network)? {
        return Err(LiveError::Forbidden(format!(
            "this user may not read the frames of {text}: that takes CAP_NET_RAW and CAP_NET_ADMIN over its network; \
             run the command as root"
        )));
    }
    let found = network.run(|| {
        let mut socket = RouteSocket::open()?;
        match socket.link_facts(name) {
            Err(error) if is_missing(&error) => Ok((None, socket.link_names()?)),
            other => other.map(|facts| (Some(facts), Vec::new())),
        }
    })?;
    let (facts, names) = found.attempting(|| format!("look at the interface {text}"))?;
    let facts = facts.ok_or_else(|| {
        let names: Vec<String> = names.into_iter().filter(|name| name != "lo").collect();
        let lists = text.rsplit_once('/').map_or("ip link".into(), |(namespace, _)| format!("ip -n {namespace} link"));
        LiveError::Request(format!("there is no interface `{name}`{}; `{lists}` lists them", listed(&names)))
    })?;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let routes = network.run(|| [read("/proc/thread-self/net/route"), read("/proc/thread-self/net/ipv6_route")])?;
    let has_default_route = has_default_route(&routes[0], &routes[1], name);
    refuse(text, &facts, has_default_route, opening)?;
    let identity = network.identity().attempting(|| format!("look at the network namespace of {text}"))?;
    let (shown, name, socket) = (text.to_owned(), name.to_owned(), opening.socket);
    Ok(Box::new(Interface { shown, name, network, identity, facts, socket, claim: OnceLock::new() }))
}

/// ENODEV, or what the kernel says of a name that cannot be one.
fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ERANGE | libc::EINVAL))
}

/// True if one of the tables of /proc/net has a default route through the interface.
fn has_default_route(ipv4: &str, ipv6: &str, name: &str) -> bool {
    let of_four = ipv4.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first() == Some(&name) && words.get(1) == Some(&"00000000") && words.get(7) == Some(&"00000000")
    });
    let of_six = ipv6.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.last() == Some(&name) && words.get(1) == Some(&"00") && words[0].bytes().all(|digit| digit == b'0')
    });
    of_four || of_six
}

/// Refuses an interface that cannot be an end, or that its host needs.
fn refuse(shown: &str, facts: &LinkFacts, has_default_route: bool, opening: Opening) -> Result<()> {
    let why = if !facts.is_ethernet {
        format!("{shown} is no Ethernet interface; name one that is, or join network namespaces (--between)")
    } else if !facts.is_up {
        let name = shown.rsplit('/').next().unwrap_or(shown);
        format!("{shown} is down; bring it up first: `ip link set {name} up`")
    } else if opening.force {
        return Ok(());
    } else if has_default_route {
        format!(
            "{shown} has the default route of its host, which would lose its network, and you perhaps your connection \
             to it; name another interface, or add --force"
        )
    } else if facts.controller.is_some() {
        format!("{shown} is a port of a bridge or bond, which would lose it; take it out first, or add --force")
    } else {
        return Ok(());
    };
    Err(LiveError::Request(why))
}

impl Place for Interface {
    fn name(&self) -> String {
        self.shown.clone()
    }

    fn carries(&self) -> Carried {
        Carried::Frames
    }

    fn network(&self) -> Option<&NetNamespace> {
        Some(&self.network)
    }

    fn mtu_bytes(&self) -> Option<u32> {
        Some(self.facts.mtu_bytes)
    }

    fn device(&self) -> Option<Device> {
        Some(Device { network: self.identity, index: Some(self.facts.index), related: self.facts.below })
    }

    fn claim(&self) -> Result<()> {
        match claim::claim(&self.network, self.facts.index)? {
            Claim::Held(holder) => Err(self.socket.conflict(&self.name, &self.facts).unwrap_or_else(|| {
                LiveError::Request(format!(
                    "{} is an end of another gateway, and both would carry every frame; {holder}, or name another \
                     interface",
                    self.shown
                ))
            })),
            claim => {
                let _ = self.claim.set(claim);
                Ok(())
            }
        }
    }

    fn attach(&self, plan: &Plan<'_>, end: End) -> Result<Attached> {
        let frames = Frames { mtu_bytes: self.facts.mtu_bytes, limit_bytes: plan.mtu_bytes };
        let OnInterface { port, is_isolated, notes } = self.socket.open(&self.network, &self.name, frames)?;
        let network = self.network.try_clone().attempting(|| "open a namespace again".into())?;
        let kept = if is_isolated { "; its host neither hears nor speaks there meanwhile" } else { "" };
        let told = format!("{}: the network behind it ({}){kept}", self.shown, port.details());
        let end = SessionEnd::of_others(end, self.name.clone(), network, Vec::new());
        Ok(Attached { port, end, told, notes, helpers: Vec::new(), awaited: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_is_found_in_either_family() {
        let four = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
            eth0 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0\neth1 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        let zeros = "0".repeat(32);
        let six = format!("{zeros} 00 {zeros} 00 {zeros} 00000400 1 0 00000003 eth2\nfd00{} 40 a\n", &zeros[4..]);
        let found = ["eth0", "eth1", "eth2", "eth3"].map(|name| has_default_route(four, &six, name));
        assert_eq!(found, [true, false, true, false]);
    }

    #[test]
    fn an_interface_that_the_host_needs_is_taken_by_force_only() {
        let facts = LinkFacts { is_ethernet: true, is_up: true, ..LinkFacts::default() };
        let port = LinkFacts { controller: Some(7), ..facts.clone() };
        let refused = |facts: &LinkFacts, route, force| {
            refuse("eth1", facts, route, Opening { force, ..Opening::default() })
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert!(refused(&facts, true, false).contains("--force") && refused(&port, false, false).contains("--force"));
        assert_eq!((refused(&port, true, true), refused(&facts, false, false)), (String::new(), String::new()));
        let down = LinkFacts { is_up: false, ..facts.clone() };
        assert!(refused(&down, false, true).contains("ip link set eth1 up"));
        assert!(refused(&LinkFacts { is_ethernet: false, ..facts }, false, true).contains("no Ethernet"));
    }
}
