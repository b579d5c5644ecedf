// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Names and addresses that networks of others have already.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use crate::addressing::Link;
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::{NetNamespace, ipv6_available};
use crate::netlink::RouteSocket;

const ROUTES: &str = "/proc/thread-self/net/route";

/// The first of `candidates` whose name and IPv4 network are free in all `networks`.
pub(super) fn free_link(mut candidates: impl Iterator<Item = Link>, networks: &[&NetNamespace]) -> Result<Link> {
    let (mut names, mut routes) = (Vec::new(), Vec::new());
    for network in networks {
        let read = network.run(|| io::Result::Ok((RouteSocket::open()?.link_names()?, fs::read_to_string(ROUTES)?)))?;
        let read = read.attempting(|| "list the interfaces and routes at an end of the link".into())?;
        names.extend(read.0);
        routes.extend(networks_of(&read.1));
    }
    candidates.find(|link| is_free(*link, &names, &routes)).ok_or_else(|| {
        LiveError::Request(
            "no free addresses for this link: all networks in 10.77.0.0/16 are taken at its ends; stop other links first"
                .into(),
        )
    })
}

/// True if any of `networks` has no IPv6, or has it disabled.
pub(super) fn without_ipv6(networks: &[&NetNamespace]) -> Result<bool> {
    for network in networks {
        if !network.run(ipv6_available)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_free(link: Link, names: &[String], networks: &[(u32, u32)]) -> bool {
    let (IpAddr::V4(network), length) = link.network(Ipv4Addr::UNSPECIFIED.into()) else { return false };
    let (network, mask) = (network.to_bits(), u32::MAX << (32 - u32::from(length)));
    let overlaps = |(other, other_mask): &(u32, u32)| (network ^ other) & mask & other_mask == 0;
    !names.contains(&link.interface_name()) && !networks.iter().any(overlaps)
}

/// Destinations and masks of the routes in /proc/net/route, without default routes.
fn networks_of(text: &str) -> Vec<(u32, u32)> {
    let number = |word: &str| u32::from_str_radix(word, 16).ok().map(u32::swap_bytes);
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((number(words.get(1)?)?, number(words.get(7)?)?))
    };
    text.lines().skip(1).filter_map(route).filter(|(_, mask)| *mask != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addressing::Nesting;

    const HEADING: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";

    #[test]
    fn a_link_avoids_names_and_routes_that_are_there() {
        let links: Vec<Link> = Nesting::OUTERMOST.candidates().collect();
        let default = format!("{HEADING}eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n");
        assert!(is_free(links[0], &[], &networks_of(&default)));
        assert!(!is_free(links[0], &[links[0].interface_name()], &[]));
        // 10.77.0.0/24 takes the first link's addresses alone, 10.0.0.0/8 those of all.
        let narrow = networks_of(&format!("{HEADING}eth0 00004D0A 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"));
        assert!(!is_free(links[0], &[], &narrow) && is_free(links[1], &[], &narrow));
        let wide = networks_of(&format!("{HEADING}eth0 0000000A 00000000 0001 0 0 0 000000FF 0 0 0\n"));
        assert!(links.iter().all(|link| !is_free(*link, &[], &wide)));
    }
}
