// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! AF_XDP on an interface of the user's: whole frames taken in the driver, before the kernel's stack sees them, through
//! memory that the engine shares with the kernel. Nothing of the interface is changed but what ends with the port.
//!
//! Frames have no super-packets and no word of checksums that were left to the device (`xdp/left_open.rs` finds these).
//! Their receive stamps are those of our own program (`xdp/program.rs`).

mod left_open;
mod program;
mod queue;
mod ring;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use airpath_core::Span;
use airpath_packet::ethernet::EthernetHeader;
use bytes::BytesMut;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{getsockopt, sockopt};

use super::ethtool::Device;
use super::interface::{Frames, listen_to_all};
use super::isolation::Isolation;
use super::packet::open_silent_socket;
use super::slab::{has_room, make_room};
use super::{
    Adapter, DropsOutsideModel, InterfaceChanges, InterfaceSocket, LONGEST_PACKET_BYTES, OffloadHeader, OnInterface,
    Outgoing, ReadOutcome, Received, WriteOutcome,
};
use crate::clock::ClockOffset;
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkCounters, RouteSocket};
use left_open::left_open;
use program::{Mode, Redirection, Step as ProgramStep};
use queue::{Layout, Put, Queue, Step, Taken};

/// AF_XDP as a choice.
pub(super) const SOCKET: InterfaceSocket = InterfaceSocket {
    word: "af-xdp",
    purpose: "AF_XDP: frames taken in the driver, without super-packets; for fast interfaces of hardware",
    open,
    conflict: |name, facts| facts.has_xdp_program.then(|| has_program(name)),
};

/// Room that the kernel keeps before a received frame.
const HEADROOM_BYTES: usize = 256;
/// Longest link header without absurdity: two tags.
const LINK_BYTES: usize = 22;
/// Bytes of a chunk for usual frames, and for longer ones.
const CHUNK_BYTES: [usize; 2] = [2048, 4096];
/// Received frames of all queues together, and of one queue at least.
const RECEIVED_FRAMES: u32 = 16_384;
const LEAST_RECEIVED_FRAMES: u32 = 2_048;
/// Most queues where the driver does not tell their number.
const MOST_UNTOLD_QUEUES: u32 = 64;
/// Features by which tags of VLANs are handed over beside the frame, where no program of XDP sees them.
const TAG_OFFLOADS: [&str; 2] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse"];
/// Enough for stamps: a loop that loses its processor between two readings of clocks would be off by much more.
const CLOCK_PRECISION_NS: u64 = 1_000;
/// So long that unread frames do not fill the rings.
const UNREAD_LIMIT: Span = Span::from_millis(1);

/// The engine's port on an interface that stays the user's, by AF_XDP.
#[derive(Debug)]
struct XdpPort {
    // The program goes first, so that no frame is handed to a queue that is gone.
    redirection: Redirection,
    queues: Vec<Queue>,
    /// Readable when a queue is, and when the interface is gone.
    waiting: Epoll,
    /// Asks for frames of others, and tells that the interface is gone.
    watch: OwnedFd,
    counters: RouteSocket,
    link_index: u32,
    start: LinkCounters,
    frames: Frames,
    name: String,
    /// The queue that is read first.
    first: usize,
    /// Frames wait for room at the interface.
    is_stuck: bool,
    unreadable: u64,
    too_long: u64,
    _isolation: Option<Isolation>,
}

/// Opens the interface `name` of `network`.
fn open(network: &NetNamespace, name: &str, frames: Frames) -> Result<OnInterface> {
    let mut counters = network.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
    let link_index = counters.link_index(name).attempting(|| format!("find the interface {name}"))?;
    let (isolation, note) = Isolation::begin(network, link_index, name)?;
    let mut notes: Vec<String> = note.into_iter().collect();
    let surroundings = network.run(|| Surroundings::read(name))?;
    let is_isolated = isolation.is_some();
    let start = counters.link_counters(link_index).attempting(|| format!("read the counters of {name}"))?;
    let (redirection, queues) = network.run(|| begin(name, link_index, frames, &surroundings))??;
    let watch = network.run(|| {
        let watch = open_silent_socket(link_index)?;
        listen_to_all(&watch, link_index)?;
        io::Result::Ok(watch)
    })?;
    let watch = watch.attempting(|| format!("ask for all frames of the interface {name}"))?;
    let waiting = wait_for(&queues, &watch).attempting(|| "wait for several queues".into())?;
    if let Some(error) = &redirection.why_generic {
        notes.push(format!(
            "the driver of {name} runs no XDP program ({error}); frames come through the kernel's generic mode, \
             behind the driver"
        ));
    }
    if frames_are_long(frames) && !queues[0].takes_long_frames() {
        let most = CHUNK_BYTES[1] - HEADROOM_BYTES;
        notes.push(format!(
            "frames of {name} longer than {most} bytes are lost, and counted: AF_XDP takes them from Linux 6.6 on; \
             lower its MTU, or leave out --socket af-xdp"
        ));
    }
    notes.extend(surroundings.note(name));
    let port = XdpPort {
        redirection,
        queues,
        waiting,
        watch,
        counters,
        link_index,
        start,
        frames,
        name: name.to_owned(),
        first: 0,
        is_stuck: false,
        unreadable: 0,
        too_long: 0,
        _isolation: isolation,
    };
    Ok(OnInterface { port: Box::new(port), is_isolated, notes })
}

/// The interface as its driver describes it.
struct Surroundings {
    /// Number of its queues; none where the driver does not tell.
    queues: Option<u32>,
    is_veth: bool,
    keeps_tags_apart: bool,
}

impl Surroundings {
    /// Reads them; what cannot be read is what it is most often.
    fn read(name: &str) -> Self {
        let device = Device::open(name).ok();
        let device = device.as_ref();
        Self {
            queues: device.and_then(|device| device.receive_queues().ok()).filter(|queues| *queues > 0),
            is_veth: device.and_then(|device| device.driver().ok()).is_some_and(|driver| driver == "veth"),
            keeps_tags_apart: device.is_some_and(|device| device.has_active(&TAG_OFFLOADS).unwrap_or(false)),
        }
    }

    /// The way to keep tags of VLANs, where frames would come without them.
    fn note(&self, name: &str) -> Option<String> {
        if self.is_veth {
            Some(format!(
                "{name} is an end of a veth pair: tags of VLANs and checksums of SCTP and of tunnels that its peer \
                 leaves to the device are lost with AF_XDP; at the peer: `ethtool -K PEER txvlan off \
                 tx-vlan-stag-hw-insert off tx off`"
            ))
        } else if self.keeps_tags_apart {
            Some(format!(
                "{name} takes tags of VLANs out of frames, and AF_XDP loses them; if there are any: `ethtool -K {name} \
                 rxvlan off`"
            ))
        } else {
            None
        }
    }
}

/// Bytes that the longest frame of the interface takes of a chunk.
fn frame_bytes(frames: Frames) -> usize {
    frames.mtu_bytes as usize + LINK_BYTES + HEADROOM_BYTES
}

/// True if frames of the interface do not fit the larger chunk.
fn frames_are_long(frames: Frames) -> bool {
    frame_bytes(frames) > CHUNK_BYTES[1]
}

/// Attaches the program, and opens a socket on each queue.
fn begin(
    name: &str,
    link_index: u32,
    frames: Frames,
    surroundings: &Surroundings,
) -> Result<(Redirection, Vec<Queue>)> {
    let most_queues = surroundings.queues.unwrap_or(MOST_UNTOLD_QUEUES);
    let redirection =
        Redirection::begin(link_index, most_queues).map_err(|(step, error)| explain_program(name, step, error))?;
    let is_generic = redirection.mode == Mode::Generic;
    let chunk_bytes = if frame_bytes(frames) <= CHUNK_BYTES[0] { CHUNK_BYTES[0] } else { CHUNK_BYTES[1] };
    let shared = RECEIVED_FRAMES / surroundings.queues.unwrap_or(1);
    let received_frames = shared.next_power_of_two().clamp(LEAST_RECEIVED_FRAMES, RECEIVED_FRAMES);
    let mut queues = Vec::new();
    for number in 0..most_queues {
        let layout = Layout {
            received_frames,
            chunk_bytes,
            sends: number == 0,
            in_several_chunks: is_generic || frames_are_long(frames),
        };
        match Queue::open(link_index, number, layout, is_generic) {
            Ok(queue) => {
                redirection.hand(number, &queue).attempting(|| format!("hand frames of {name} to a socket"))?;
                queues.push(queue);
            }
            // Where the driver does not tell their number, this was the last one.
            Err((Step::Bind, error))
                if surroundings.queues.is_none() && number > 0 && error.raw_os_error() == Some(libc::EINVAL) =>
            {
                break;
            }
            Err((step, error)) => return Err(explain_queue(name, number, step, error)),
        }
    }
    Ok((redirection, queues))
}

fn wait_for(queues: &[Queue], watch: &OwnedFd) -> io::Result<Epoll> {
    let waiting = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for queue in queues {
        waiting.add(queue.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    }
    // Of errors epoll tells unasked.
    waiting.add(watch.as_fd(), EpollEvent::new(EpollFlags::empty(), 0))?;
    Ok(waiting)
}

fn explain_program(name: &str, step: ProgramStep, error: io::Error) -> LiveError {
    match (step, error.raw_os_error()) {
        (_, Some(libc::EPERM | libc::EACCES)) => LiveError::Forbidden(format!(
            "AF_XDP on {name}: the kernel lets this process load no program ({error}): that takes CAP_BPF and \
             CAP_NET_ADMIN over the host (run the command as root of the host) and, before Linux 5.11, locked memory \
             (`ulimit -l unlimited`); or leave out --socket af-xdp"
        )),
        (ProgramStep::Attach, Some(libc::EBUSY | libc::EEXIST)) => has_program(name),
        (ProgramStep::Load, Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP)) => LiveError::Missing(format!(
            "AF_XDP on {name}: this kernel has no such programs ({error}); Linux 5.9 with CONFIG_BPF_SYSCALL and \
             CONFIG_XDP_SOCKETS has; leave out --socket af-xdp"
        )),
        (ProgramStep::Load, _) => LiveError::system(format!("load a program of XDP for {name}"), error),
        (ProgramStep::Attach, _) => LiveError::system(format!("attach a program of XDP to {name}"), error),
    }
}

fn has_program(name: &str) -> LiveError {
    LiveError::Request(format!(
        "{name} has an XDP program already, perhaps of another gateway (`ip -details link show {name}` tells); \
         take it off first (`ip link set {name} xdp off`), or leave out --socket af-xdp"
    ))
}

fn explain_queue(name: &str, number: u32, step: Step, error: io::Error) -> LiveError {
    match (step, error.raw_os_error()) {
        (Step::Open, Some(libc::EAFNOSUPPORT)) => LiveError::Missing(format!(
            "AF_XDP on {name}: this kernel has no such sockets ({error}; CONFIG_XDP_SOCKETS); leave out --socket af-xdp"
        )),
        (Step::Open, Some(libc::EPERM | libc::EACCES)) => LiveError::Forbidden(format!(
            "AF_XDP on {name}: a socket takes CAP_NET_RAW over its network ({error}); run the command as root"
        )),
        (Step::Memory, Some(libc::ENOBUFS | libc::ENOMEM | libc::EPERM | libc::EAGAIN)) => LiveError::Missing(format!(
            "AF_XDP on {name}: the kernel gives no memory for frames ({error}): raise the limit on locked memory \
             (`ulimit -l unlimited`), use fewer queues (`ethtool -L {name} combined 1`), or leave out --socket af-xdp"
        )),
        (Step::Bind, Some(libc::EBUSY)) => LiveError::Request(format!(
            "queue {number} of {name} belongs to another program by AF_XDP; end that, or leave out --socket af-xdp"
        )),
        (Step::Bind, Some(libc::EINVAL | libc::EOPNOTSUPP)) => LiveError::Request(format!(
            "AF_XDP cannot take queue {number} of {name} ({error}); use one queue (`ethtool -L {name} combined 1`), or \
             leave out --socket af-xdp"
        )),
        (Step::Open, _) => LiveError::system(format!("open a socket of AF_XDP for {name}"), error),
        (Step::Memory, _) => LiveError::system(format!("share memory with the kernel for {name}"), error),
        (Step::Bind, _) => LiveError::system(format!("take queue {number} of {name} by AF_XDP"), error),
    }
}

impl XdpPort {
    /// Sorts out a frame that was read; none if it does not enter the link.
    fn receive(&mut self, bytes: BytesMut, stamp_realtime_ns: Option<u64>) -> Option<Received> {
        let link_bytes =
            EthernetHeader::read(&bytes).and_then(|header| Some((header, u8::try_from(header.bytes()).ok()?)));
        let Some((header, link_bytes)) = link_bytes else {
            self.unreadable += 1;
            return None;
        };
        let packet = &bytes[usize::from(link_bytes)..];
        if packet.len() > self.frames.limit_bytes as usize {
            self.too_long += 1;
            return None;
        }
        let offload = if header.is_ip() { left_open(packet) } else { OffloadHeader::default() };
        Some(Received { bytes, link_bytes, stamp_realtime_ns, offload, journey: None })
    }

    /// Sends what waits in the ring. What cannot leave is tried again after a time: the kernel calls a socket writable
    /// as long as its ring is half empty, which would wake the loop for ever.
    fn send(&mut self) -> io::Result<()> {
        self.is_stuck = !self.queues[0].send()?;
        Ok(())
    }

    /// The error with which the interface went away, if it has.
    fn look_for_end(&self) -> io::Result<()> {
        match getsockopt(&self.watch, sockopt::SocketError)? {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl Adapter for XdpPort {
    fn label(&self) -> &'static str {
        SOCKET.word
    }

    fn details(&self) -> String {
        let place = match self.redirection.mode {
            Mode::Driver => "in the driver",
            Mode::Generic => "in the generic mode",
        };
        let copies = if self.queues.iter().all(Queue::has_zero_copy) { "zero copy" } else { "frames copied" };
        let queues = self.queues.len();
        format!("{}, program {place}, {copies}, {queues} queue{}", self.label(), if queues == 1 { "" } else { "s" })
    }

    fn read_batch(&mut self, slab: &mut BytesMut, limit: usize, out: &mut Vec<Received>) -> io::Result<ReadOutcome> {
        make_room(slab, LONGEST_PACKET_BYTES);
        let mut outcome = ReadOutcome::default();
        let mut wall_clock = None;
        let count = self.queues.len();
        for number in (self.first..self.first + count).map(|number| number % count) {
            while outcome.packets < limit && has_room(slab, LONGEST_PACKET_BYTES) {
                let Some(taken) = self.queues[number].take(slab) else { break };
                let Taken::Frame(bytes, stamp_ns) = taken else {
                    self.too_long += 1;
                    continue;
                };
                let Some(stamp_ns) = stamp_ns else {
                    return Err(io::Error::other(format!(
                        "the driver of {} has no room for receive stamps before frames, without which lateness is \
                         not known; leave out --socket af-xdp",
                        self.name
                    )));
                };
                let ClockOffset { ahead_ns, .. } =
                    *wall_clock.get_or_insert_with(|| ClockOffset::measure_within(CLOCK_PRECISION_NS));
                if let Some(received) = self.receive(bytes, Some(stamp_ns.saturating_add_signed(ahead_ns))) {
                    out.push(received);
                    outcome.packets += 1;
                }
            }
            self.queues[number].refill()?;
        }
        // No queue waits behind another for ever.
        self.first = (self.first + 1) % count;
        outcome.exhausted = self.queues.iter_mut().all(Queue::is_empty);
        if outcome.packets == 0 {
            self.look_for_end()?;
        }
        Ok(outcome)
    }

    fn write_batch(&mut self, packets: &[Outgoing<'_>]) -> io::Result<WriteOutcome> {
        let mut outcome = WriteOutcome::default();
        for packet in packets {
            let bytes: usize = packet.parts.iter().map(|part| part.len()).sum();
            let is_whole = packet.offload == OffloadHeader::default() && !packet.link_header.is_empty();
            let put = if !is_whole || bytes > self.frames.mtu_bytes as usize {
                Put::Refused
            } else {
                match self.queues[0].put(packet.link_header, packet.parts) {
                    Put::Full => {
                        self.send()?;
                        self.queues[0].put(packet.link_header, packet.parts)
                    }
                    other => other,
                }
            };
            match put {
                Put::Full => break,
                Put::Refused => outcome.refused += 1,
                Put::Done => {}
            }
            outcome.done += 1;
        }
        self.send()?;
        outcome.waits = self.is_stuck;
        Ok(outcome)
    }

    fn try_again(&mut self) -> io::Result<bool> {
        if self.is_stuck {
            self.send()?;
        }
        Ok(self.is_stuck)
    }

    fn drops_outside_model(&mut self) -> io::Result<DropsOutsideModel> {
        let mut before_engine = 0;
        for queue in &self.queues {
            before_engine += queue.lost()?;
        }
        let now = self.counters.link_counters(self.link_index)?;
        if self.queues.iter().any(Queue::has_zero_copy) {
            // The driver's own account: the socket does not know of frames for which there was no chunk.
            before_engine += now.receive_dropped.saturating_sub(self.start.receive_dropped);
        }
        Ok(DropsOutsideModel {
            before_engine,
            after_engine: now.send_dropped.saturating_sub(self.start.send_dropped),
            unreadable: self.unreadable,
        })
    }

    fn interface_changes(&mut self) -> io::Result<InterfaceChanges> {
        // Frames go past the interface's queues; a monitor tells of the rest.
        Ok(InterfaceChanges::default())
    }

    fn unread_limit(&self) -> Option<Span> {
        Some(UNREAD_LIMIT)
    }

    fn too_long(&self) -> u64 {
        self.too_long
    }

    fn takes_unfinished(&self) -> bool {
        false
    }
}

impl AsFd for XdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.0.as_fd()
    }
}
