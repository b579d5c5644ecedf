// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Routes, which can also choose the TCP congestion control.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
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
            address_family: match route.destination {
                IpAddr::V4(_) => AddressFamily::Inet,
                IpAddr::V6(_) => AddressFamily::Inet6,
            },
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
        let wire = |address: IpAddr| match address {
            IpAddr::V4(address) => RouteAddress::Inet(address),
            IpAddr::V6(address) => RouteAddress::Inet6(address),
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
