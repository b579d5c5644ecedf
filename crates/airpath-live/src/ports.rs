// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Ports: where packets enter and leave an engine. Whatever the kernel offers
//! below (a TUN device, or a veth pair and a packet socket), a port reads and
//! writes batches of raw IP packets; their length is the IP length. A port on an
//! interface of the user's also reads and writes the link header of each frame,
//! which is no part of the length.
#![allow(unsafe_code)]

mod bpf;
mod control_messages;
pub mod credit;
mod ethtool;
mod features;
mod frames;
mod interface;
mod isolation;
pub mod joined;
mod line_news;
mod link_frame;
mod offload;
mod packet;
mod packet_batch;
mod ppp;
mod serial;
mod slab;
mod tap;
mod tun;
mod xdp;

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::thread;

use airpath_core::{Credit, Span};
use bytes::BytesMut;

use crate::error::{LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkFacts, QueueDiscipline, RouteSocket};

pub use frames::FramePort;
pub use interface::{Frames, InterfacePort};
pub use joined::{JoinedPort, Journey};
pub use line_news::{LineNews, Listener, Teller, line_news};
pub use offload::{OffloadHeader, Segmentation};
pub use packet::PacketPort;
pub use ppp::PppPort;
pub use serial::{Baud, LineSpec};
pub use tap::create_tap;
pub use tun::TunPort;
pub(crate) use tun::{TRANSMIT_QUEUE_PACKETS, tun_available};

/// True if this process may make TUN devices.
pub fn tun_usable() -> bool {
    tun_available().is_ok()
}

/// Makes what all ports share that this thread reads, so that its first read need not.
pub(crate) fn prepare_thread() {
    packet_batch::prepare_thread();
}

/// Longest IP packet or super-packet, in bytes.
pub const LONGEST_PACKET_BYTES: usize = 65_536 + 256;

/// Kind of port to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PortKind {
    /// A packet socket, whose packets bear the kernel's stamps; TUN where that cannot be had.
    #[default]
    Automatic,
    /// A TUN device.
    Tun,
    /// A veth pair and an AF_PACKET socket at its engine end.
    Packet,
}

/// The sockets, in the order of the help; the first is the usual one.
pub const INTERFACE_SOCKETS: &[InterfaceSocket] = &[interface::SOCKET, xdp::SOCKET];

/// A kind of socket on an interface of the user's.
#[derive(Debug, Clone, Copy)]
pub struct InterfaceSocket {
    /// Its word on the command line.
    pub word: &'static str,
    /// Its purpose, in a line.
    pub purpose: &'static str,
    /// Opens an interface of a namespace by name.
    open: fn(&NetNamespace, &str, Frames) -> Result<OnInterface>,
    /// Refusal of an interface with this name and these facts, if its like is on it already.
    conflict: fn(&str, &LinkFacts) -> Option<LiveError>,
}

/// A port on an interface of the user's.
#[derive(Debug)]
pub struct OnInterface {
    /// The port.
    pub port: Port,
    /// True if the host has nothing to do with the interface meanwhile.
    pub is_isolated: bool,
    /// Facts of it that the user should know.
    pub notes: Vec<String>,
}

impl InterfaceSocket {
    /// Opens the interface `name` of `network`.
    ///
    /// # Errors
    /// [`crate::error::LiveError::Forbidden`] without the right to it; otherwise what the kernel refuses, with what to
    /// change.
    pub fn open(&self, network: &NetNamespace, name: &str, frames: Frames) -> Result<OnInterface> {
        (self.open)(network, name, frames)
    }

    /// Refusal of the interface `name`, if something of these facts is in the way of this kind of socket.
    pub fn conflict(&self, name: &str, facts: &LinkFacts) -> Option<LiveError> {
        (self.conflict)(name, facts)
    }
}

impl Default for &'static InterfaceSocket {
    fn default() -> Self {
        &INTERFACE_SOCKETS[0]
    }
}

/// A packet or super-packet read from a port.
#[derive(Debug)]
pub struct Received {
    /// The IP packet, behind its link header if it has one: a slice of the slab, not shared with anything.
    pub bytes: BytesMut,
    /// Bytes of the link header; 0 where the port has IP packets alone.
    pub link_bytes: u8,
    /// Receive stamp of the kernel (CLOCK_REALTIME, ns); TUN has no stamp.
    pub stamp_realtime_ns: Option<u64>,
    /// Work that the sending kernel left to the device.
    pub offload: OffloadHeader,
    /// Its record from the hops of other hosts; none at an end of the path.
    pub journey: Option<Box<Journey>>,
}

/// A packet to be written.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The link header; empty for a port that has IP packets alone.
    pub link_header: &'a [u8],
    /// The IP packet, or what else follows the link header, in one or several parts.
    pub parts: &'a [IoSlice<'a>],
    /// Offload header for the receiving kernel; the default says that the packet is complete.
    pub offload: OffloadHeader,
    /// Record of the packet, for the hops of other hosts.
    pub journey: Option<&'a Journey>,
}

/// Result of a call of [`Adapter::read_batch`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Packets appended.
    pub packets: usize,
    /// Nothing more was waiting.
    pub exhausted: bool,
}

/// Result of writing a batch of packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOutcome {
    /// Packets dealt with, from the front: accepted or refused. The rest must
    /// wait until the port is writable.
    pub done: usize,
    /// Of those, packets that the kernel refused (no valid IP version, longer
    /// than the MTU, …): they are gone.
    pub refused: usize,
    /// True if some that were accepted wait for room at the interface: [`Adapter::try_again`] sends them.
    pub waits: bool,
}

/// Packets that went missing beside the model, since the port was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropsOutsideModel {
    /// Between the endpoint and the engine (full queue, full socket buffer).
    pub before_engine: u64,
    /// Between the engine and the endpoint (full backlog).
    pub after_engine: u64,
    /// Frames that were no IP packets or did not fit the buffer.
    pub unreadable: u64,
}

impl DropsOutsideModel {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.before_engine + self.after_engine + self.unreadable
    }
}

/// Changes of the endpoint's interface by others since the port was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceChanges {
    /// Number of times that it was taken down, or away; not told of a TUN device.
    pub downs: u64,
    /// Queue disciplines that somebody put on it, or that lost packets.
    pub queues: Vec<QueueDiscipline>,
}

/// Queue disciplines of an interface that can have changed what passed.
fn meddling_queues(socket: &mut RouteSocket, link_index: u32) -> io::Result<Vec<QueueDiscipline>> {
    let mut queues = socket.queue_disciplines(link_index)?;
    queues.retain(|queue| queue.is_set || queue.drops > 0);
    Ok(queues)
}

/// One end of the engine. A batch costs one dynamic call.
pub type Port = Box<dyn Adapter + Send>;

/// A way for packets into and out of the engine: one file of this folder each.
pub trait Adapter: AsFd + fmt::Debug {
    /// A word for the record of the run, such as "tun".
    fn label(&self) -> &'static str;

    /// The same with how it reads and writes, where that depends on the machine.
    fn details(&self) -> String {
        self.label().to_owned()
    }

    /// Reads up to `limit` packets without blocking, appending them to `out`.
    /// They are split off the front of `slab`, whose own content is discarded
    /// and which is replaced when it has no room left (see
    /// [`airpath_core::BufferPool`], which recycles). A read ends early when the slab is full.
    ///
    /// # Errors
    /// The kernel's, such as `ENETDOWN` when the interface was taken down.
    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome>;

    /// Writes packets without blocking.
    ///
    /// # Errors
    /// When the interface is gone; single packets that are refused are counted
    /// instead.
    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome>;

    /// From now on packets may be sent with the thread's next call that waits (see [`crate::series::defer`]).
    fn defer_writes(&mut self) {}

    /// True if all packets are sent so.
    fn defers_writes(&self) -> bool {
        false
    }

    /// Packets lost beside the model.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel>;

    /// Changes of the endpoint's interface by others.
    ///
    /// # Errors
    /// The kernel's, such as `ENODEV` when the interface is gone.
    fn interface_changes(&mut self) -> io::Result<InterfaceChanges>;

    /// Maximum time for which packets may be left unread. None: packets bear no receive stamp, and
    /// come when they are read.
    fn unread_limit(&self) -> Option<Span>;

    /// True if packets carry the kernel's receive stamp.
    fn has_kernel_stamps(&self) -> bool {
        self.unread_limit().is_some()
    }

    /// True if it is a serial line, and no interface.
    fn is_line(&self) -> bool {
        false
    }

    /// True if what is read are frames of a line, which begin with a flag (0x7e), and no IP packets.
    fn carries_frames(&self) -> bool {
        false
    }

    /// Frames that were read and were no IP packets: none of them is for a link.
    fn not_ip(&self) -> u64 {
        0
    }

    /// The first credit of the machine behind it, where the path goes on there, at another host.
    fn joined(&self) -> Option<Credit> {
        None
    }

    /// Gives the machine behind it `credit`.
    ///
    /// # Errors
    /// A way to it that is gone.
    fn give_credit(&mut self, _credit: Credit) -> io::Result<()> {
        Ok(())
    }

    /// Tries again what found no room before, a credit or frames that were taken; true if some of it still waits.
    ///
    /// # Errors
    /// A way that is gone.
    fn try_again(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    /// Credits of the machine behind it that were read, each with its receive stamp (CLOCK_REALTIME, ns).
    fn take_credits(&mut self) -> Vec<(Credit, u64)> {
        Vec::new()
    }

    /// True if runs of UDP datagrams may be written as one super-packet, which the endpoint's kernel cuts again.
    fn takes_runs_of_datagrams(&self) -> bool {
        false
    }

    /// True if segments and checksums may be left to the kernel at the other end; otherwise packets are written as they
    /// would be on a wire.
    fn takes_unfinished(&self) -> bool {
        true
    }

    /// Frames longer than the link takes, which were refused: none of them enters it.
    fn too_long(&self) -> u64 {
        0
    }

    /// Takes the interface away at once, where dropping the port would leave that to the kernel's
    /// own time: veth pairs end with a namespace, which is taken apart in the background.
    fn remove_interface(&mut self) {}
}

/// True if the error means "not now".
fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// True if the error is about this one packet (or a moment without memory), not about the port.
fn refuses_packet(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::ENOBUFS | libc::ENOMEM | libc::EIO))
}

/// Number of threads that close ports.
const CLOSERS: usize = 8;

/// Closes the ports of a run. The kernel waits for all processors before it lets go of a packet socket: those of many
/// users are closed side by side.
pub fn close(mut ports: Vec<Port>) {
    thread::scope(|scope| {
        for closers in (1..=CLOSERS).rev() {
            let part = ports.split_off(ports.len() - ports.len().div_ceil(closers));
            // A thread that cannot be had leaves the part to this one.
            let _ = thread::Builder::new().name("close".into()).spawn_scoped(scope, move || drop(part));
        }
    });
}
