// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A packet socket at the engine's end of a veth pair. It needs no device
//! node, gives receive stamps of the kernel, and is read in batches.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use airpath_core::Span;
use bytes::BytesMut;

use super::features::restrict_segmentation;
use super::packet_batch::{BATCH, Read, ReadBuffers, WriteBuffers};
use super::slab::{has_room, make_room};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, LONGEST_PACKET_BYTES, Outgoing, ReadOutcome, Received, WriteOutcome,
    meddling_queues, refuses_packet, would_block,
};
use crate::error::{Attempting, Result};
use crate::kernel_release::kernel_cuts_datagrams;
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkCounters, LinkOptions, RouteSocket};
use crate::series::LostFrames;

/// Asked for; without privilege over the host the kernel grants what
/// net.core.rmem_max allows.
const BUFFER_BYTES: libc::c_int = 64 << 20;

/// A receive buffer that takes what comes in a millisecond at tens of gigabits a second.
const LARGE_BUFFER_BYTES: usize = 8 << 20;

const ETHERNET_PROTOCOL_ALL: u16 = libc::ETH_P_ALL as u16;
/// Protocol of the test frames of old (Configuration Testing Protocol), which nobody sends.
const UNUSED_PROTOCOL: u16 = libc::ETH_P_LOOPBACK as u16;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// The engine's end of a veth pair whose other end is in an endpoint's
/// namespace.
#[derive(Debug)]
pub struct PacketPort {
    socket: OwnedFd,
    reading: ReadBuffers,
    writing: WriteBuffers,
    /// Deferred packets that the kernel did not take; none while packets are sent at once.
    deferred_losses: Option<LostFrames>,
    engine_side: Counted,
    endpoint_side: Counted,
    carrier_losses_at_start: u32,
    receive_buffer_bytes: usize,
    socket_drops: u64,
    oversized: u64,
    not_ip: u64,
    takes_runs_of_datagrams: bool,
}

#[derive(Debug)]
struct Counted {
    socket: RouteSocket,
    link_index: u32,
    start: LinkCounters,
}

impl Counted {
    fn begin(mut socket: RouteSocket, link_index: u32) -> io::Result<Self> {
        let start = socket.link_counters(link_index)?;
        Ok(Self { socket, link_index, start })
    }

    fn send_dropped(&mut self) -> io::Result<u64> {
        let now = self.socket.link_counters(self.link_index)?;
        Ok(now.send_dropped - self.start.send_dropped)
    }
}

impl PacketPort {
    /// Makes a veth pair: `engine_name` in the namespace `engine`, `name` in
    /// `endpoint`, and a socket on the former. With `super_packets` the
    /// endpoint's kernel hands over up to 64 KiB of a flow at once.
    ///
    /// # Errors
    /// The kernel's; `EEXIST` when a name is taken.
    pub fn create(
        engine: &NetNamespace,
        engine_name: &str,
        endpoint: &NetNamespace,
        name: &str,
        mtu_bytes: u32,
        super_packets: bool,
    ) -> Result<Self> {
        let mut engine_side = engine.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
        engine_side
            .add_veth(engine_name, name, endpoint.as_fd(), mtu_bytes)
            .attempting(|| format!("make the veth pair {engine_name}-{name}"))?;
        let mut endpoint_side = endpoint.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
        let mut configured = || -> io::Result<(u32, u32, [u8; 6], [u8; 6])> {
            let near = engine_side.link_index(engine_name)?;
            let far = endpoint_side.link_index(name)?;
            let options =
                LinkOptions { without_resolution: true, without_link_local: true, up: true, ..LinkOptions::default() };
            engine_side.configure_link(near, &options)?;
            endpoint_side.configure_link(
                far,
                &LinkOptions { without_resolution: true, without_link_local: true, ..LinkOptions::default() },
            )?;
            let missing = || io::Error::other("a veth without an Ethernet address");
            let near_address = engine_side.hardware_address(near)?.ok_or_else(missing)?;
            let far_address = endpoint_side.hardware_address(far)?.ok_or_else(missing)?;
            Ok((near, far, near_address, far_address))
        };
        let (near, far, near_address, far_address) =
            configured().attempting(|| format!("configure the veth pair {engine_name}-{name}"))?;
        restrict_segmentation(endpoint, name, super_packets)?;
        let (socket, receive_buffer_bytes) =
            engine.run(|| open_socket(near))?.attempting(|| "open a packet socket".into())?;
        let carrier_losses_at_start = engine_side
            .carrier_losses(near)
            .attempting(|| format!("read the carrier of {engine_name}"))?
            .unwrap_or_default();
        let counted = |socket, index| Counted::begin(socket, index).attempting(|| "read the counters of a veth".into());
        Ok(Self {
            socket,
            reading: ReadBuffers::new(mtu_bytes as usize),
            writing: WriteBuffers::new(far_address, near_address),
            deferred_losses: None,
            engine_side: counted(engine_side, near)?,
            endpoint_side: counted(endpoint_side, far)?,
            carrier_losses_at_start,
            receive_buffer_bytes,
            socket_drops: 0,
            oversized: 0,
            not_ip: 0,
            takes_runs_of_datagrams: super_packets && kernel_cuts_datagrams(),
        })
    }
}

impl Adapter for PacketPort {
    fn label(&self) -> &'static str {
        "packet"
    }

    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome> {
        read_all(&mut self.reading, self.socket.as_fd(), slab, limit, out, |read| {
            let read = read?;
            self.oversized += read.oversized;
            self.not_ip += read.not_ip;
            Ok(read)
        })
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        match &self.deferred_losses {
            Some(lost) => Ok(self.writing.defer(self.socket.as_fd(), packets, lost)),
            None => write_all(&mut self.writing, self.socket.as_fd(), packets),
        }
    }

    fn defer_writes(&mut self) {
        self.deferred_losses.get_or_insert_default();
    }

    fn defers_writes(&self) -> bool {
        self.deferred_losses.is_some()
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        // Reading the statistics resets them.
        self.socket_drops += u64::from(packet_statistics(self.socket.as_fd())?.tp_drops);
        Ok(DropsOutsideModel {
            before_engine: self.socket_drops + self.endpoint_side.send_dropped()?,
            after_engine: self.engine_side.send_dropped()? + self.deferred_losses.as_ref().map_or(0, LostFrames::count),
            unreadable: self.oversized,
        })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        let Counted { socket, link_index, .. } = &mut self.engine_side;
        // The pair is made without a carrier, and gets one when its other end goes up.
        let losses = socket.carrier_losses(*link_index)?.unwrap_or_default();
        let downs = u64::from(losses.saturating_sub(self.carrier_losses_at_start));
        let Counted { socket, link_index, .. } = &mut self.endpoint_side;
        let queues = match meddling_queues(socket, *link_index) {
            // Whoever took it away was counted.
            Err(_) if downs > 0 => Vec::new(),
            other => other?,
        };
        Ok(InterfaceChanges { downs, queues })
    }

    /// So long that unread packets do not fill the socket's buffer.
    fn unread_limit(&self) -> Option<Span> {
        Some(unread_limit(self.receive_buffer_bytes))
    }

    fn not_ip(&self) -> u64 {
        self.not_ip
    }

    fn takes_runs_of_datagrams(&self) -> bool {
        self.takes_runs_of_datagrams
    }

    fn remove_interface(&mut self) {
        let Counted { socket, link_index, .. } = &mut self.engine_side;
        // Should it fail, the pair still ends with the engine's namespace.
        let _ = socket.remove_link(*link_index);
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Time for which a socket with so large a receive buffer may be left unread.
pub(super) fn unread_limit(receive_buffer_bytes: usize) -> Span {
    if receive_buffer_bytes >= LARGE_BUFFER_BYTES { Span::from_millis(1) } else { Span::from_micros(200) }
}

/// Reads packets until `limit` is reached, the slab is full, or the socket has no more. `count` gets what each call
/// read or failed with, except that there was nothing or a signal came, and ends the reading with an error.
pub(super) fn read_all(
    reading: &mut ReadBuffers,
    socket: BorrowedFd<'_>,
    slab: &mut BytesMut,
    limit: usize,
    out: &mut Vec<Received>,
    mut count: impl FnMut(io::Result<Read>) -> io::Result<Read>,
) -> io::Result<ReadOutcome> {
    let mut outcome = ReadOutcome::default();
    make_room(slab, LONGEST_PACKET_BYTES);
    while outcome.packets < limit && has_room(slab, LONGEST_PACKET_BYTES) {
        let wanted = (limit - outcome.packets).min(BATCH);
        let read = match reading.read(socket, slab, wanted, out) {
            Err(error) if would_block(&error) => {
                outcome.exhausted = true;
                break;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => count(other)?,
        };
        outcome.packets += read.packets;
        if read.exhausted {
            outcome.exhausted = true;
            break;
        }
    }
    Ok(outcome)
}

/// Writes packets until the socket takes no more; single ones that it refuses are counted.
pub(super) fn write_all(
    writing: &mut WriteBuffers,
    socket: BorrowedFd<'_>,
    packets: &[Outgoing<'_>],
) -> io::Result<WriteOutcome> {
    let mut outcome = WriteOutcome::default();
    while outcome.done < packets.len() {
        match writing.write(socket, &packets[outcome.done..]) {
            Ok(sent) => outcome.done += sent,
            Err(error) if would_block(&error) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The error is about the first packet of the rest.
            Err(error) if refuses_packet(&error) => {
                outcome.done += 1;
                outcome.refused += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outcome)
}

pub(super) fn open_socket(link_index: u32) -> io::Result<(OwnedFd, usize)> {
    let socket = open_unbound()?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
    set_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
    set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    for (force, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        set_option(&socket, libc::SOL_SOCKET, force, BUFFER_BYTES)
            .or_else(|_| set_option(&socket, libc::SOL_SOCKET, plain, BUFFER_BYTES))?;
    }
    bind(&socket, link_index, ETHERNET_PROTOCOL_ALL)?;
    let granted = nix::sys::socket::getsockopt(&socket, nix::sys::socket::sockopt::RcvBuf)?;
    Ok((socket, granted))
}

/// A socket that gets no frames, and an error when the interface goes away.
pub(super) fn open_silent_socket(link_index: u32) -> io::Result<OwnedFd> {
    let socket = open_unbound()?;
    set_option(&socket, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
    bind(&socket, link_index, UNUSED_PROTOCOL)?;
    Ok(socket)
}

fn open_unbound() -> io::Result<OwnedFd> {
    // Protocol 0: nothing is received until the socket is bound.
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes integers.
    let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

pub(super) fn set_option(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the value is an int that lives over the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn bind(socket: &OwnedFd, link_index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: an all-zero sockaddr_ll is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = link_index as i32;
    // SAFETY: the address has the given size and lives over the call.
    let done = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

pub(super) fn packet_statistics(socket: BorrowedFd<'_>) -> io::Result<libc::tpacket_stats> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the struct.
    let done = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &mut length,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(statistics)
}
