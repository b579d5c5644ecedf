// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A packet socket on an interface of the user's: whole frames, of any EtherType and with their tags, in promiscuous
//! mode. Nothing of the interface is changed but what ends with the port.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use airpath_core::Span;
use bytes::BytesMut;

use super::ethtool::Device;
use super::isolation::Isolation;
use super::packet::{open_socket, packet_statistics, read_all, set_option, unread_limit, write_all};
use super::packet_batch::{Read, ReadBuffers, WriteBuffers};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, InterfaceSocket, OnInterface, Outgoing, ReadOutcome, Received,
    WriteOutcome,
};
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkCounters, LinkOptions, RouteSocket};

/// The packet socket as a choice.
pub(super) const SOCKET: InterfaceSocket = InterfaceSocket {
    word: "packet",
    purpose: "a packet socket: super-packets, checksums left to the device and tags as they are",
    open: |network, name, frames| {
        let (port, note) = InterfacePort::open(network, name, frames, true)?;
        let is_isolated = port.isolation.is_some();
        Ok(OnInterface { port: Box::new(port), is_isolated, notes: note.into_iter().collect() })
    },
    conflict: |_, _| None,
};

const PACKET_AUXDATA: libc::c_int = 8;

/// Frames that a port lets through.
#[derive(Debug, Clone, Copy)]
pub struct Frames {
    /// MTU of the interface, in bytes.
    pub mtu_bytes: u32,
    /// Longest packet in a frame that the link takes, in bytes; longer ones are refused and counted.
    pub limit_bytes: u32,
}

/// The engine's port on an interface that stays the user's.
#[derive(Debug)]
pub struct InterfacePort {
    socket: OwnedFd,
    reading: ReadBuffers,
    writing: WriteBuffers,
    counters: RouteSocket,
    link_index: u32,
    start: LinkCounters,
    receive_buffer_bytes: usize,
    socket_drops: u64,
    unreadable: u64,
    refused: u64,
    too_long: u64,
    /// True of an interface that was made for the port.
    is_ours: bool,
    isolation: Option<Isolation>,
    carrier: Option<Carrier>,
}

/// A program of this process behind the interface, which carries frames on.
#[derive(Debug)]
struct Carrier {
    /// It ends when this is closed.
    _alive: OwnedFd,
    /// Frames that it lost.
    lost: Arc<AtomicU64>,
}

impl InterfacePort {
    /// Opens the interface `name` of `network`. With `isolated` its host has nothing to do with it meanwhile, where the
    /// kernel can do that: the note says where it cannot.
    ///
    /// # Errors
    /// [`LiveError::Forbidden`] without the right to read frames; otherwise the kernel's.
    pub fn open(network: &NetNamespace, name: &str, frames: Frames, isolated: bool) -> Result<(Self, Option<String>)> {
        let mut counters = network.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
        let link_index = counters.link_index(name).attempting(|| format!("find the interface {name}"))?;
        let (isolation, note) = if isolated { Isolation::begin(network, link_index, name)? } else { (None, None) };
        let opened = network.run(|| {
            let (socket, buffer_bytes) = open_socket(link_index)?;
            set_option(&socket, libc::SOL_PACKET, PACKET_AUXDATA, 1)?;
            listen_to_all(&socket, link_index)?;
            // Past the queue of a device that cuts no super-packets itself, the kernel throws them away.
            if !Device::open(name)?.cuts_super_packets()? {
                set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 0)?;
            }
            io::Result::Ok((socket, buffer_bytes))
        })?;
        let (socket, receive_buffer_bytes) = opened.map_err(|error| explain(name, error))?;
        let start = counters.link_counters(link_index).attempting(|| format!("read the counters of {name}"))?;
        let port = Self {
            socket,
            reading: ReadBuffers::of_frames(frames.mtu_bytes as usize, frames.limit_bytes as usize),
            writing: WriteBuffers::new([0; 6], [0; 6]),
            counters,
            link_index,
            start,
            receive_buffer_bytes,
            socket_drops: 0,
            unreadable: 0,
            refused: 0,
            too_long: 0,
            is_ours: false,
            isolation,
            carrier: None,
        };
        Ok((port, note))
    }

    /// Makes a veth pair: `engine_name` in the namespace `engine`, on which the port is, and `name` in `endpoint`,
    /// which is to be configured and brought up.
    ///
    /// # Errors
    /// The kernel's; `EEXIST` when a name is taken.
    pub fn create(
        engine: &NetNamespace,
        engine_name: &str,
        endpoint: &NetNamespace,
        name: &str,
        mtu_bytes: u32,
    ) -> Result<Self> {
        let mut socket = engine.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
        socket
            .add_veth(engine_name, name, endpoint.as_fd(), mtu_bytes)
            .attempting(|| format!("make the veth pair {engine_name}-{name}"))?;
        let options =
            LinkOptions { without_resolution: true, without_link_local: true, up: true, ..LinkOptions::default() };
        socket
            .link_index(engine_name)
            .and_then(|index| socket.configure_link(index, &options))
            .attempting(|| format!("configure the veth pair {engine_name}-{name}"))?;
        super::features::restrict_segmentation(endpoint, name, true)?;
        let frames = Frames { mtu_bytes, limit_bytes: mtu_bytes };
        let (port, _) = Self::open(engine, engine_name, frames, false)?;
        Ok(Self { is_ours: true, ..port })
    }

    /// The same port, behind which a program carries frames on until `alive` is closed, and counts those that are lost.
    #[must_use]
    pub fn carried_on(self, alive: OwnedFd, lost: Arc<AtomicU64>) -> Self {
        Self { carrier: Some(Carrier { _alive: alive, lost }), ..self }
    }
}

/// Asks for frames that are not addressed to the interface, too, until the socket is closed.
pub(super) fn listen_to_all(socket: &OwnedFd, link_index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: link_index as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the request lives over the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const request).cast(),
            size_of::<libc::packet_mreq>() as libc::socklen_t,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn explain(name: &str, error: io::Error) -> LiveError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => LiveError::Forbidden(format!(
            "frames of the interface {name} cannot be read ({error}): that takes CAP_NET_RAW over its network; run the \
             command as root"
        )),
        _ => LiveError::system(format!("read frames of the interface {name}"), error),
    }
}

impl Adapter for InterfacePort {
    fn label(&self) -> &'static str {
        "interface"
    }

    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome> {
        read_all(&mut self.reading, self.socket.as_fd(), slab, limit, out, |read| match read {
            Ok(read) => {
                self.unreadable += read.oversized;
                self.too_long += read.too_long;
                Ok(read)
            }
            // A super-packet of a kind that its header cannot describe: the kernel has thrown it away.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.unreadable += 1;
                Ok(Read::default())
            }
            Err(error) => Err(error),
        })
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        let outcome = write_all(&mut self.writing, self.socket.as_fd(), packets)?;
        self.refused += outcome.refused as u64;
        Ok(outcome)
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        // Reading the statistics resets them.
        self.socket_drops += u64::from(packet_statistics(self.socket.as_fd())?.tp_drops);
        let sent = self.counters.link_counters(self.link_index)?.send_dropped - self.start.send_dropped;
        let behind = self.carrier.as_ref().map_or(0, |carrier| carrier.lost.load(Ordering::Relaxed));
        Ok(DropsOutsideModel {
            before_engine: self.socket_drops,
            // What the kernel refused was told by it.
            after_engine: sent.saturating_sub(self.refused) + behind,
            unreadable: self.unreadable,
        })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        // Frames go past the interface's queues; a monitor tells of the rest.
        Ok(InterfaceChanges::default())
    }

    fn unread_limit(&self) -> Option<Span> {
        Some(unread_limit(self.receive_buffer_bytes))
    }

    fn too_long(&self) -> u64 {
        self.too_long
    }

    fn remove_interface(&mut self) {
        if self.is_ours {
            // Should it fail, the pair still ends with the engine's namespace.
            let _ = self.counters.remove_link(self.link_index);
        }
    }
}

impl AsFd for InterfacePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
