// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Routes, which can also choose the TCP congestion control.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::RouteSocket;

/// A route out of one interface.
#[derive(Debug, Clone)]
pub struct Route {
    /// First address of the destination; unspecified with length 0 for the
    /// default route.
    pub destination: IpAddr,
    /// Prefix length of the destination.
    pub prefix_length: u8,
    /// The interface.
    pub link_index: u32,
    /// The next hop; none when the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The source address to prefer.
    pub source: Option<IpAddr>,
    /// TCP congestion control of connections over this route.
    pub congestion_control: Option<String>,
}

impl RouteSocket {
    /// Adds a route.
    ///
    /// # Errors
    /// `EINVAL` or `ENOENT` when the kernel has no such congestion control;
    /// `EEXIST` when the route is there already.
    pub fn add_route(&mut self, route: &Route) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(route.destination),
            destination_prefix_length: route.prefix_length,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: if route.gateway.is_some() || route.destination.is_ipv6() {
                RouteScope::Universe
            } else {
                RouteScope::Link
            },
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes.push(RouteAttribute::Oif(route.link_index));
        if route.prefix_length > 0 {
            message.attributes.push(RouteAttribute::Destination(wire(route.destination)));
        }
        if let Some(gateway) = route.gateway {
            message.attributes.push(RouteAttribute::Gateway(wire(gateway)));
        }
        if let Some(source) = route.source {
            message.attributes.push(RouteAttribute::PrefSource(wire(source)));
        }
        if let Some(name) = &route.congestion_control {
            message.attributes.push(RouteAttribute::Metrics(vec![RouteMetric::CcAlgo(name.clone())]));
        }
        self.acknowledged(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// True if packets to `address` stay in the namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv6() { 128 } else { 32 };
        message.attributes.push(RouteAttribute::Destination(wire(address)));
        let answers = match self.connection.request(RouteNetlinkMessage::GetRoute(message), NLM_F_ACK) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENETUNREACH | libc::EHOSTUNREACH)) => {
                return Ok(false);
            }
            answers => answers?,
        };
        let is_local = |answer: &RouteNetlinkMessage| match answer {
            RouteNetlinkMessage::NewRoute(route) => route.header.kind == RouteType::Local,
            _ => false,
        };
        Ok(answers.iter().any(is_local))
    }

    /// The congestion controls that routes out of the interface ask for.
    ///
    /// # Errors
    /// The kernel's.
    pub fn congestion_controls(&mut self, link_index: u32) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for answer in self.dump(RouteNetlinkMessage::GetRoute(RouteMessage::default()))? {
            let RouteNetlinkMessage::NewRoute(route) = answer else {
                continue;
            };
            if !route.attributes.contains(&RouteAttribute::Oif(link_index)) {
                continue;
            }
            for attribute in route.attributes {
                let RouteAttribute::Metrics(metrics) = attribute else {
                    continue;
                };
                for metric in metrics {
                    match metric {
                        RouteMetric::CcAlgo(name) if !names.contains(&name) => names.push(name),
                        _ => {}
                    }
                }
            }
        }
        Ok(names)
    }
}

pub(super) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn wire(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}
