// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Interfaces: making, configuring, counting.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo,
    LinkLayerType, LinkMessage, LinkXdp, XdpAttached,
};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};

use super::RouteSocket;

/// Changes to an interface; `None` and `false` leave it alone.
#[derive(Debug, Clone, Default)]
pub struct LinkOptions {
    /// Largest IP packet, in bytes.
    pub mtu_bytes: Option<u32>,
    /// Length of the transmit queue, in packets.
    pub transmit_queue_packets: Option<u32>,
    /// No address resolution at all: neither ARP nor neighbour discovery.
    pub without_resolution: bool,
    /// No automatic IPv6 link-local address (and so no duplicate address
    /// detection, router solicitation or listener report for it).
    pub without_link_local: bool,
    /// Bring it up.
    pub up: bool,
}

/// Counters of an interface, in packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Received by the interface.
    pub received: u64,
    /// Sent by the interface.
    pub sent: u64,
    /// Dropped while receiving.
    pub receive_dropped: u64,
    /// Dropped while sending (a full queue among others).
    pub send_dropped: u64,
    /// Errors in either direction.
    pub errors: u64,
}

/// Kind, state and relations of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkFacts {
    /// Its index.
    pub index: u32,
    /// True if its frames have Ethernet headers.
    pub is_ethernet: bool,
    /// True if it is up.
    pub is_up: bool,
    /// Largest packet, in bytes.
    pub mtu_bytes: u32,
    /// Index of the bridge or bond whose port it is.
    pub controller: Option<u32>,
    /// The interface that it is on, or its peer.
    pub below: Option<Below>,
    /// True if it has an XDP program.
    pub has_xdp_program: bool,
}

/// An interface on which another one is, or its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Below {
    /// Its index.
    pub index: u32,
    /// Id of its network namespace in that of the other one; none if that is the same.
    pub namespace: Option<i32>,
}

impl RouteSocket {
    /// The facts about the interface called `name`.
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub fn link_facts(&mut self, name: &str) -> io::Result<LinkFacts> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        let link = self.get_link(message)?;
        let mut facts = LinkFacts {
            index: link.header.index,
            is_ethernet: link.header.link_layer_type == LinkLayerType::Ether,
            is_up: link.header.flags.contains(LinkFlags::Up),
            ..LinkFacts::default()
        };
        let (mut below, mut namespace) = (None, None);
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Mtu(bytes) => facts.mtu_bytes = *bytes,
                LinkAttribute::Controller(index) => facts.controller = Some(*index),
                LinkAttribute::Link(index) => below = Some(*index).filter(|index| *index != 0),
                LinkAttribute::LinkNetNsId(id) => namespace = Some(*id),
                LinkAttribute::Xdp(program) => {
                    let none = LinkXdp::Attached(XdpAttached::None);
                    facts.has_xdp_program =
                        program.iter().any(|part| matches!(part, LinkXdp::Attached(_)) && *part != none);
                }
                _ => {}
            }
        }
        facts.below = below.map(|index| Below { index, namespace });
        Ok(facts)
    }

    /// The id that the network namespace `other` has in that of this socket; none if nothing here refers to it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn namespace_id(&mut self, other: BorrowedFd<'_>) -> io::Result<Option<i32>> {
        let mut message = NsidMessage::default();
        message.attributes = vec![NsidAttribute::Fd(other.as_raw_fd() as u32)];
        let answers = self.connection.request(RouteNetlinkMessage::GetNsId(message), netlink_packet_core::NLM_F_ACK)?;
        let attributes = answers.into_iter().flat_map(|answer| match answer {
            RouteNetlinkMessage::NewNsId(answer) => answer.attributes,
            _ => Vec::new(),
        });
        let ids = attributes.filter_map(|attribute| match attribute {
            NsidAttribute::Id(id) => Some(id),
            _ => None,
        });
        // A negative one stands for none.
        Ok(ids.into_iter().find(|id| *id >= 0))
    }

    /// Makes a veth pair: `name` here, `peer_name` in `peer_namespace`.
    ///
    /// # Errors
    /// `EEXIST` when a name is taken; otherwise the kernel's.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer_name: &str,
        peer_namespace: BorrowedFd<'_>,
        mtu_bytes: u32,
    ) -> io::Result<()> {
        let mut peer = LinkMessage::default();
        peer.attributes = vec![
            LinkAttribute::IfName(peer_name.to_owned()),
            LinkAttribute::Mtu(mtu_bytes),
            LinkAttribute::NetNsFd(peer_namespace.as_raw_fd()),
        ];
        let mut message = LinkMessage::default();
        message.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Mtu(mtu_bytes),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
            ]),
        ];
        self.acknowledged(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes an interface, and with one end of a veth pair the other.
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub fn remove_link(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.acknowledged(RouteNetlinkMessage::DelLink(message), 0)
    }

    /// Changes an interface.
    ///
    /// # Errors
    /// The kernel's.
    pub fn configure_link(&mut self, index: u32, options: &LinkOptions) -> io::Result<()> {
        if options.without_link_local {
            // A request of its own, before the interface comes up: the address
            // is made at that moment. Fails where the kernel has no IPv6,
            // and then there is nothing to prevent.
            let mut message = LinkMessage::default();
            message.header.index = index;
            message.attributes =
                vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(
                    In6AddrGenMode::None,
                )])])];
            match self.acknowledged(RouteNetlinkMessage::SetLink(message), 0) {
                Err(error) if error.raw_os_error() != Some(libc::EAFNOSUPPORT) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        let mut message = LinkMessage::default();
        message.header.index = index;
        if options.up {
            message.header.flags |= LinkFlags::Up;
            message.header.change_mask |= LinkFlags::Up;
        }
        if options.without_resolution {
            message.header.flags |= LinkFlags::Noarp;
            message.header.change_mask |= LinkFlags::Noarp;
        }
        let attributes =
            [options.mtu_bytes.map(LinkAttribute::Mtu), options.transmit_queue_packets.map(LinkAttribute::TxQueueLen)];
        message.attributes = attributes.into_iter().flatten().collect();
        self.acknowledged(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// The index of the interface called `name`.
    ///
    /// # Errors
    /// `ENODEV` when there is none.
    pub fn link_index(&mut self, name: &str) -> io::Result<u32> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        self.get_link(message).map(|link| link.header.index)
    }

    /// The Ethernet address of an interface, if it has one.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn hardware_address(&mut self, index: u32) -> io::Result<Option<[u8; 6]>> {
        let link = self.get_link_by_index(index)?;
        Ok(link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => bytes.as_slice().try_into().ok(),
            _ => None,
        }))
    }

    /// The counters of an interface.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn link_counters(&mut self, index: u32) -> io::Result<LinkCounters> {
        let link = self.get_link_by_index(index)?;
        let stats = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(stats) => Some(LinkCounters {
                received: stats.rx_packets,
                sent: stats.tx_packets,
                receive_dropped: stats.rx_dropped,
                send_dropped: stats.tx_dropped,
                errors: stats.rx_errors + stats.tx_errors,
            }),
            _ => None,
        });
        stats.ok_or_else(|| io::Error::other("the kernel reports no counters of this interface"))
    }

    /// Number of times that an interface lost its carrier: of one end of a veth pair, the times that the other
    /// was taken down. None where the kernel does not tell.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn carrier_losses(&mut self, index: u32) -> io::Result<Option<u32>> {
        let link = self.get_link_by_index(index)?;
        Ok(link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::CarrierDownCount(count) => Some(*count),
            _ => None,
        }))
    }

    /// The names of all interfaces of the namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn link_names(&mut self) -> io::Result<Vec<String>> {
        let answers = self.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
        let names = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewLink(link) => link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name),
                _ => None,
            }),
            _ => None,
        });
        Ok(names.collect())
    }

    fn get_link_by_index(&mut self, index: u32) -> io::Result<LinkMessage> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.get_link(message)
    }

    fn get_link(&mut self, message: LinkMessage) -> io::Result<LinkMessage> {
        let answers = self.connection.request(RouteNetlinkMessage::GetLink(message), netlink_packet_core::NLM_F_ACK)?;
        answers
            .into_iter()
            .find_map(|answer| match answer {
                RouteNetlinkMessage::NewLink(link) => Some(link),
                _ => None,
            })
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
    }
}
