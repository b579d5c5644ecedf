// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! News of an interface, as the kernel tells them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::RECEIVE_BUFFER_BYTES;

/// Groups of kernel notifications: `RTNLGRP_LINK`, `_TC`, `_IPV4_IFADDR` and `_IPV6_IFADDR`.
const GROUPS: [u32; 4] = [libc::RTNLGRP_LINK, libc::RTNLGRP_TC, libc::RTNLGRP_IPV4_IFADDR, libc::RTNLGRP_IPV6_IFADDR];
/// The shortest message.
const HEADER_BYTES: usize = 16;

/// A change of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkNews {
    /// It is up or down now, as somebody has it; told again with everything else that is new of it.
    Up(bool),
    /// It is not in its network namespace any more.
    Gone {
        /// True if it is in another one.
        moved: bool,
    },
    /// It has an address no more.
    AddressRemoved(String),
    /// A queue discipline was put before it.
    QueueSet(String),
}

/// Listens to what is done to one interface.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: Socket,
    link_index: u32,
    buffer: Vec<u8>,
}

impl LinkMonitor {
    /// Listens from now on, in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(link_index: u32) -> io::Result<LinkMonitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(LinkMonitor { socket, link_index, buffer: vec![0; RECEIVE_BUFFER_BYTES] })
    }

    /// News since the last question, without waiting.
    ///
    /// # Errors
    /// `ENOBUFS` when the kernel had more to tell than it could keep, so that some news are lost.
    pub fn news(&mut self) -> io::Result<Vec<LinkNews>> {
        let mut news = Vec::new();
        loop {
            let received = match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(news),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut rest = &self.buffer[..received];
            while rest.len() >= HEADER_BYTES {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                let length = (message.header.length as usize).next_multiple_of(4).max(HEADER_BYTES);
                rest = rest.get(length..).unwrap_or_default();
                if let NetlinkPayload::InnerMessage(inner) = message.payload {
                    news.extend(of_link(self.link_index, &inner));
                }
            }
        }
    }
}

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn of_link(link_index: u32, message: &RouteNetlinkMessage) -> Option<LinkNews> {
    match message {
        RouteNetlinkMessage::NewLink(link) if link.header.index == link_index => {
            Some(LinkNews::Up(link.header.flags.contains(LinkFlags::Up)))
        }
        RouteNetlinkMessage::DelLink(link) if link.header.index == link_index => {
            Some(LinkNews::Gone { moved: has_a_new_namespace(link) })
        }
        RouteNetlinkMessage::DelAddress(address) if address.header.index == link_index => removed(address),
        RouteNetlinkMessage::NewQueueDiscipline(queue) if queue.header.index == link_index as i32 => set(queue),
        _ => None,
    }
}

fn has_a_new_namespace(link: &LinkMessage) -> bool {
    link.attributes.iter().any(|attribute| matches!(attribute, LinkAttribute::NewNetnsId(_)))
}

/// An IPv4 address of an interface that is its own peer has two attributes, of which the local one is meant.
fn removed(address: &AddressMessage) -> Option<LinkNews> {
    let local = address.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Local(local) => Some(local),
        _ => None,
    });
    let any = address.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(any) => Some(any),
        _ => None,
    });
    local.or(any).map(|address| LinkNews::AddressRemoved(address.to_string()))
}

/// The kernel's own have no handle; those inside others are told with the outermost.
fn set(queue: &TcMessage) -> Option<LinkNews> {
    let is_outermost = queue.header.parent.major == u16::MAX && queue.header.handle.major != 0;
    let kind = queue.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    });
    is_outermost.then(|| LinkNews::QueueSet(kind.unwrap_or_default()))
}
