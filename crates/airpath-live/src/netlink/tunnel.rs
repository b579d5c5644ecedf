// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tunnels to other hosts.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoKind, InfoVxlan, LinkAttribute, LinkInfo, LinkMessage};

use super::RouteSocket;

/// A VXLAN tunnel between two hosts.
#[derive(Debug, Clone, Copy)]
pub struct Tunnel {
    /// VXLAN network identifier.
    pub number: u32,
    /// The other host.
    pub remote: IpAddr,
    /// UDP port of both hosts.
    pub port: u16,
    /// Largest packet in a frame, in bytes.
    pub mtu_bytes: u32,
}

impl RouteSocket {
    /// Makes the device `name` of a tunnel in `namespace`. Its datagrams go through the network of this socket.
    ///
    /// # Errors
    /// `EEXIST` when the number is taken, `EOPNOTSUPP` when the kernel has no such devices.
    pub fn add_tunnel(&mut self, name: &str, tunnel: &Tunnel, namespace: BorrowedFd<'_>) -> io::Result<()> {
        let remote = match tunnel.remote {
            IpAddr::V4(address) => InfoVxlan::Group(address),
            IpAddr::V6(address) => InfoVxlan::Group6(address),
        };
        let details = vec![InfoVxlan::Id(tunnel.number), remote, InfoVxlan::Port(tunnel.port)];
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Mtu(tunnel.mtu_bytes),
            LinkAttribute::NetNsFd(namespace.as_raw_fd()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Vxlan), LinkInfo::Data(InfoData::Vxlan(details))]),
        ];
        self.acknowledged(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }
}
