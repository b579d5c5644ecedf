// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A socket of AF_XDP on one queue of an interface: frames, the four rings, and the calls that wake the kernel.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use bytes::BytesMut;

use super::program::{MARK, STAMP_BYTES};
use super::ring::{Emptied, Filled, Frames, Ring};
use crate::ports::{LONGEST_PACKET_BYTES, would_block};

/// Frames that a socket may have under way to the interface.
const SENT_FRAMES: u32 = 2048;
/// Most chunks in which a sent frame may lie: what the kernel takes.
const MOST_CHUNKS: usize = 17;
/// Number of calls that get no further, after which frames wait for the next turn.
const PATIENCE: u32 = 4;
const SEND_BUFFER_BYTES: libc::c_int = 64 << 20;

/// Layout of a socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Received frames that may wait; a power of two.
    pub(super) received_frames: u32,
    /// Bytes of a chunk.
    pub(super) chunk_bytes: usize,
    /// True for the socket by which frames are sent.
    pub(super) sends: bool,
    /// True if frames may lie in several chunks, where the kernel can do that.
    pub(super) in_several_chunks: bool,
}

/// Step at which the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Making a socket.
    Open,
    /// Memory for frames and rings.
    Memory,
    /// Taking the queue.
    Bind,
}

/// A socket on one queue.
#[derive(Debug)]
pub(super) struct Queue {
    socket: OwnedFd,
    frames: Frames,
    fill: Filled<u64>,
    received: Emptied<libc::xdp_desc>,
    sending: Option<Sending>,
    has_zero_copy: bool,
    /// True if frames may lie in several chunks.
    takes_long_frames: bool,
}

#[derive(Debug)]
struct Sending {
    ring: Filled<libc::xdp_desc>,
    completed: Emptied<u64>,
    /// Chunks that are not under way.
    free: Vec<u64>,
}

/// A frame that was read, or why it was not.
#[derive(Debug)]
pub(super) enum Taken {
    /// The frame, and when the program saw it (CLOCK_MONOTONIC, ns).
    Frame(BytesMut, Option<u64>),
    /// Longer than anything that a link carries.
    Giant,
}

/// Result of putting a frame into the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// It is too long for the socket.
    Refused,
    /// There is no room at present.
    Full,
}

impl Queue {
    /// Opens a socket on the queue of this number, in the thread's network namespace. `copies` forbids zero copy.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(link_index: u32, number: u32, layout: Layout, copies: bool) -> Result<Self, (Step, io::Error)> {
        let socket = open_socket().map_err(|error| (Step::Open, error))?;
        let mut queue = Self::prepare(socket, layout).map_err(|error| (Step::Memory, error))?;
        let bind = |flags| bind(&queue.socket, link_index, number, flags);
        // Unless told to copy, the kernel tries zero copy first.
        let flags = libc::XDP_USE_NEED_WAKEUP | if copies { libc::XDP_COPY } else { 0 };
        let bound = match layout.in_several_chunks {
            false => bind(flags).map(|()| false),
            true => match bind(flags | libc::XDP_USE_SG) {
                // A kernel before 6.6.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => bind(flags).map(|()| false),
                other => other.map(|()| true),
            },
        };
        queue.takes_long_frames = bound.map_err(|error| (Step::Bind, error))?;
        queue.has_zero_copy = has_zero_copy(&queue.socket).map_err(|error| (Step::Bind, error))?;
        Ok(queue)
    }

    fn prepare(socket: OwnedFd, layout: Layout) -> io::Result<Self> {
        let Layout { received_frames, chunk_bytes, sends, .. } = layout;
        let sent_frames = if sends { SENT_FRAMES } else { 0 };
        let frames = Frames::new(received_frames + sent_frames, chunk_bytes)?;
        register(&socket, &frames)?;
        set(&socket, libc::XDP_UMEM_FILL_RING, &received_frames)?;
        set(&socket, libc::XDP_UMEM_COMPLETION_RING, &SENT_FRAMES)?;
        set(&socket, libc::XDP_RX_RING, &received_frames)?;
        if sends {
            set(&socket, libc::XDP_TX_RING, &SENT_FRAMES)?;
            set_at(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER_BYTES)
                .or_else(|_| set_at(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER_BYTES))?;
        }
        // SAFETY: offsets are numbers, for which zeros are valid.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
        get(&socket, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        let mut fill = Filled(Ring::new(&socket, libc::XDP_UMEM_PGOFF_FILL_RING as _, offsets.fr, received_frames)?);
        let received = Emptied(Ring::new(&socket, libc::XDP_PGOFF_RX_RING as _, offsets.rx, received_frames)?);
        let chunk = |number: u32| u64::from(number) * chunk_bytes as u64;
        (0..received_frames).map(chunk).for_each(|at| fill.push(at));
        fill.publish();
        let completion_ring = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
        let sending = match sends {
            false => None,
            true => Some(Sending {
                ring: Filled(Ring::new(&socket, libc::XDP_PGOFF_TX_RING as _, offsets.tx, SENT_FRAMES)?),
                completed: Emptied(Ring::new(&socket, completion_ring, offsets.cr, SENT_FRAMES)?),
                free: (received_frames..received_frames + SENT_FRAMES).map(chunk).collect(),
            }),
        };
        Ok(Self { socket, frames, fill, received, sending, has_zero_copy: false, takes_long_frames: false })
    }

    /// True if the driver uses the frames themselves, without copies of the kernel's.
    pub(super) fn has_zero_copy(&self) -> bool {
        self.has_zero_copy
    }

    /// True if frames may be longer than a chunk.
    pub(super) fn takes_long_frames(&self) -> bool {
        self.takes_long_frames
    }

    /// True if nothing waits to be read.
    pub(super) fn is_empty(&mut self) -> bool {
        self.received.waiting() == 0
    }

    /// Copies the next frame into `slab`, which has room for the longest packet.
    pub(super) fn take(&mut self, slab: &mut BytesMut) -> Option<Taken> {
        let waiting = self.received.waiting();
        let (mut count, mut bytes) = (0, 0);
        loop {
            if count == waiting {
                // The rest of a frame is on its way, if there is any.
                self.received.look();
                return None;
            }
            let part = self.received.peek(count);
            count += 1;
            bytes += part.len as usize;
            if part.options & libc::XDP_PKT_CONTD == 0 {
                break;
            }
        }
        let is_giant = bytes > LONGEST_PACKET_BYTES;
        let stamp_ns = self.take_stamp(self.received.peek(0).addr);
        for number in 0..count {
            let part = self.received.peek(number);
            if !is_giant && let Some(bytes) = self.frames.bytes(part.addr, part.len as usize) {
                slab.extend_from_slice(bytes);
            }
            self.fill.push(self.frames.chunk_of(part.addr));
        }
        self.received.release(count);
        Some(if is_giant { Taken::Giant } else { Taken::Frame(slab.split(), stamp_ns) })
    }

    /// The stamp before a frame, which is removed so that the next frame there does not get it.
    fn take_stamp(&mut self, frame: u64) -> Option<u64> {
        let before = self.frames.bytes_mut(frame.checked_sub(STAMP_BYTES as u64)?, STAMP_BYTES)?;
        let (mark, stamp) = before.split_at_mut(8);
        if mark != MARK.to_ne_bytes() {
            return None;
        }
        mark.fill(0);
        Some(u64::from_ne_bytes(stamp.try_into().ok()?))
    }

    /// Gives the kernel the chunks of what was read.
    ///
    /// # Errors
    /// An interface that is gone.
    pub(super) fn refill(&mut self) -> io::Result<()> {
        self.fill.publish();
        if self.fill.needs_wakeup() {
            // SAFETY: nothing is to be received: the call only wakes the driver.
            let done = unsafe {
                libc::recvfrom(
                    self.socket.as_raw_fd(),
                    std::ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
            };
            check_wakeup(done)?;
        }
        Ok(())
    }

    /// Puts a frame into the ring of what is to be sent.
    pub(super) fn put(&mut self, link_header: &[u8], parts: &[IoSlice<'_>]) -> Put {
        let (chunk_bytes, takes_long_frames) = (self.frames.chunk_bytes(), self.takes_long_frames);
        let Some(sending) = &mut self.sending else { return Put::Refused };
        let bytes = link_header.len() + parts.iter().map(|part| part.len()).sum::<usize>();
        let chunks = bytes.div_ceil(chunk_bytes);
        if bytes == 0 || chunks > MOST_CHUNKS || (chunks > 1 && !takes_long_frames) {
            return Put::Refused;
        }
        if sending.free.len() < chunks || (sending.ring.room() as usize) < chunks {
            return Put::Full;
        }
        let mut rest = bytes;
        let mut content = Content { now: link_header, parts };
        while rest > 0 {
            let Some(at) = sending.free.pop() else { return Put::Full };
            let length = rest.min(chunk_bytes);
            if let Some(chunk) = self.frames.bytes_mut(at, length) {
                content.copy_to(chunk);
            }
            rest -= length;
            let options = if rest > 0 { libc::XDP_PKT_CONTD } else { 0 };
            sending.ring.push(libc::xdp_desc { addr: at, len: length as u32, options });
        }
        Put::Done
    }

    /// Lets the interface send what is in the ring, and takes back what it has sent. True if all is on its way.
    ///
    /// # Errors
    /// An interface that is gone.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        let Some(sending) = &mut self.sending else { return Ok(true) };
        sending.ring.publish();
        let (mut unread, mut idle) = (sending.ring.unread(), 0);
        let mut is_with_driver = self.has_zero_copy;
        while unread > 0 && idle < PATIENCE && sending.ring.needs_wakeup() {
            // SAFETY: nothing is handed over by the call: it only wakes the kernel.
            let done = unsafe {
                libc::sendto(self.socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            let is_woken = check_wakeup(done)?;
            if self.has_zero_copy {
                // Once woken, the driver takes them by itself.
                is_with_driver = is_woken;
                break;
            }
            let before = std::mem::replace(&mut unread, sending.ring.unread());
            idle = if unread < before { 0 } else { idle + 1 };
            sending.take_back(&self.frames);
        }
        sending.take_back(&self.frames);
        Ok(is_with_driver || unread == 0)
    }

    /// Frames that the kernel lost, since the socket was opened: no room in the ring, no free chunk, or too long.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn lost(&self) -> io::Result<u64> {
        // SAFETY: counters are numbers, for which zeros are valid.
        let mut counters: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        get(&self.socket, libc::XDP_STATISTICS, &mut counters)?;
        Ok(counters.rx_dropped + counters.rx_ring_full)
    }
}

impl Sending {
    fn take_back(&mut self, frames: &Frames) {
        let count = self.completed.waiting();
        for number in 0..count {
            self.free.push(frames.chunk_of(self.completed.peek(number)));
        }
        self.completed.release(count);
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.socket.as_raw_fd()
    }
}

/// A frame in parts.
struct Content<'a> {
    now: &'a [u8],
    parts: &'a [IoSlice<'a>],
}

impl Content<'_> {
    fn copy_to(&mut self, mut target: &mut [u8]) {
        while !target.is_empty() {
            if self.now.is_empty() {
                let Some((next, rest)) = self.parts.split_first() else { return };
                (self.now, self.parts) = (next, rest);
                continue;
            }
            let bytes = target.len().min(self.now.len());
            let (filled, rest) = target.split_at_mut(bytes);
            filled.copy_from_slice(&self.now[..bytes]);
            (self.now, target) = (&self.now[bytes..], rest);
        }
    }
}

/// True if a wake-up succeeded; an error of one that does not mean "not now".
fn check_wakeup(done: isize) -> io::Result<bool> {
    if done >= 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        _ if would_block(&error) => Ok(false),
        // EBUSY: the interface dropped a frame, and counted it.
        Some(libc::EBUSY | libc::ENOBUFS | libc::ENOMEM | libc::EINTR) => Ok(false),
        // The socket has lost its interface.
        Some(libc::ENXIO | libc::EBADF) => Err(io::Error::from_raw_os_error(libc::ENETDOWN)),
        _ => Err(error),
    }
}

fn open_socket() -> io::Result<OwnedFd> {
    // SAFETY: socket takes integers.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Gives the kernel the memory of the frames.
fn register(socket: &OwnedFd, frames: &Frames) -> io::Result<()> {
    // SAFETY: the registration has numbers alone, for which zeros are valid.
    let mut request: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    (request.addr, request.len) = frames.area();
    request.chunk_size = frames.chunk_bytes() as u32;
    set(socket, libc::XDP_UMEM_REG, &request)
}

fn bind(socket: &OwnedFd, link_index: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: link_index,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the address has the given size and lives over the call.
    let done = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_xdp>() as libc::socklen_t)
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn has_zero_copy(socket: &OwnedFd) -> io::Result<bool> {
    let mut options = libc::xdp_options { flags: 0 };
    get(socket, libc::XDP_OPTIONS, &mut options)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

fn set<T>(socket: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    set_at(socket, libc::SOL_XDP, name, value)
}

fn set_at<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value has the given size and lives over the call.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), bytes) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Reads an option, a structure of numbers, into `value`.
fn get<T>(socket: &OwnedFd, name: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most so many bytes into the value, of which any are valid.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_XDP, name, std::ptr::from_mut(value).cast(), &raw mut bytes)
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_in_parts_is_cut_into_chunks() {
        let parts = [IoSlice::new(&[3, 4, 5]), IoSlice::new(&[]), IoSlice::new(&[6])];
        let mut content = Content { now: &[1, 2], parts: &parts };
        let (mut first, mut second) = ([0; 4], [0; 3]);
        content.copy_to(&mut first);
        content.copy_to(&mut second);
        assert_eq!((first, second), ([1, 2, 3, 4], [5, 6, 0]));
    }
}
