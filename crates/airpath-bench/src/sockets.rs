// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sockets that send and receive in batches and tell when the kernel received each packet.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use airpath_live::clock;

/// Packets per system call.
pub const BATCH: usize = 64;
/// Receive buffer that is asked of the kernel.
const BUFFER_BYTES: libc::c_int = 256 << 20;
/// The longest payload.
pub const LONGEST_BYTES: usize = 2048;
/// A sequence number and a time: what every payload begins with.
const TAG_BYTES: usize = 16;

/// Something received.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Send time (CLOCK_REALTIME, ns).
    pub sent_ns: u64,
    /// Receive stamp of the kernel (CLOCK_REALTIME, ns).
    pub stamp_ns: u64,
}

fn set_option(socket: &impl AsRawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
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
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Asks for the kernel's receive stamps.
///
/// # Errors
/// The kernel's.
pub fn with_stamps(socket: &impl AsRawFd) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Asks for large buffers; as an ordinary user as large as the system allows.
///
/// # Errors
/// The kernel's.
pub fn with_large_buffers(socket: &impl AsRawFd) -> io::Result<()> {
    for (force, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)] {
        set_option(socket, libc::SOL_SOCKET, force, BUFFER_BYTES)
            .or_else(|_| set_option(socket, libc::SOL_SOCKET, plain, BUFFER_BYTES))?;
    }
    Ok(())
}

/// Limits what the kernel keeps for a sender or a receiver.
///
/// # Errors
/// The kernel's.
pub fn with_buffers(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes)
}

/// Hands the kernel up to [`BATCH`] datagrams of `bytes` of payload as one super-packet (`UDP_SEGMENT`), so that a sender
/// takes less time for a datagram than whoever carries it.
///
/// # Errors
/// The kernel's.
pub fn with_segments_of(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_SEGMENT, bytes as libc::c_int)
}

/// Datagrams that one message holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Messages {
    /// One.
    Single,
    /// A batch, on a socket [`with_segments_of`] their length.
    Batches,
}

/// Sends datagrams of one length over a connected socket.
pub struct Sender {
    socket: RawFd,
    messages: Messages,
    payloads: Vec<[u8; LONGEST_BYTES]>,
    bytes: usize,
    sequence: u64,
}

impl Sender {
    /// A sender of datagrams with `bytes` of payload; `socket` must outlive it.
    pub fn new(socket: &impl AsRawFd, bytes: usize) -> Sender {
        Sender::of(socket, bytes, Messages::Single)
    }

    /// A sender of datagrams with `bytes` of payload, in such messages; `socket` must outlive it.
    pub fn of(socket: &impl AsRawFd, bytes: usize, messages: Messages) -> Sender {
        let bytes = bytes.clamp(TAG_BYTES, LONGEST_BYTES);
        Sender { socket: socket.as_raw_fd(), messages, payloads: vec![[0; LONGEST_BYTES]; BATCH], bytes, sequence: 0 }
    }

    /// Number of packets sent.
    pub fn sent(&self) -> u64 {
        self.sequence
    }

    /// Sends `count` datagrams, waiting where the socket's buffer is full.
    ///
    /// # Errors
    /// The kernel's.
    pub fn send(&mut self, mut count: usize) -> io::Result<()> {
        while count > 0 {
            count -= self.send_batch(count.min(BATCH))?;
        }
        Ok(())
    }

    fn send_batch(&mut self, count: usize) -> io::Result<usize> {
        // SAFETY: all-zero iovecs and message headers are valid.
        let mut parts: [libc::iovec; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for (index, payload) in self.payloads[..count].iter_mut().enumerate() {
            payload[..8].copy_from_slice(&(self.sequence + index as u64).to_ne_bytes());
            parts[index] = libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: self.bytes };
            messages[index].msg_hdr.msg_iov = &raw mut parts[index];
            messages[index].msg_hdr.msg_iovlen = 1;
        }
        let now = clock::realtime_ns().to_ne_bytes();
        self.payloads[..count].iter_mut().for_each(|payload| payload[8..16].copy_from_slice(&now));
        if self.messages == Messages::Batches {
            messages[0].msg_hdr.msg_iovlen = count as _;
        }
        let message_count = if self.messages == Messages::Batches { 1 } else { count };
        // SAFETY: as many headers point at parts that live over the call.
        let sent = unsafe { libc::sendmmsg(self.socket, messages.as_mut_ptr(), message_count as libc::c_uint, 0) };
        // A message is sent whole or not at all.
        let sent = if sent > 0 && self.messages == Messages::Batches { count as libc::c_int } else { sent };
        if sent < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINTR | libc::ENOBUFS) => Ok(0),
                _ => Err(error),
            };
        }
        self.sequence += sent as u64;
        Ok(sent as usize)
    }
}

/// Room for one control message with a timespec.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Receives in batches.
pub struct Receiver {
    socket: RawFd,
    buffers: Vec<[u8; LONGEST_BYTES]>,
    controls: Vec<Control>,
}

impl Receiver {
    /// A receiver on `socket`, which must outlive it and give stamps.
    pub fn new(socket: &impl AsRawFd) -> Receiver {
        Receiver {
            socket: socket.as_raw_fd(),
            buffers: vec![[0; LONGEST_BYTES]; BATCH],
            controls: vec![Control([0; 64]); BATCH],
        }
    }

    /// Appends what waits to `out`, waiting for the first one for as long as the socket's timeout;
    /// how many came.
    ///
    /// # Errors
    /// The kernel's; a timeout is none.
    pub fn receive(&mut self, wait: bool, out: &mut Vec<Arrival>) -> io::Result<usize> {
        // SAFETY: all-zero iovecs and message headers are valid.
        let mut parts: [libc::iovec; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut messages: [libc::mmsghdr; BATCH] = unsafe { std::mem::zeroed() };
        for index in 0..BATCH {
            parts[index] = libc::iovec { iov_base: self.buffers[index].as_mut_ptr().cast(), iov_len: LONGEST_BYTES };
            let header = &mut messages[index].msg_hdr;
            header.msg_iov = &raw mut parts[index];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[index]).cast();
            header.msg_controllen = size_of::<Control>() as _;
        }
        let flags = if wait { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        // SAFETY: the headers point at writable memory that lives over the call.
        let count =
            unsafe { libc::recvmmsg(self.socket, messages.as_mut_ptr(), BATCH as _, flags as _, std::ptr::null_mut()) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => Ok(0),
                _ => Err(error),
            };
        }
        let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        for (index, message) in messages.iter().enumerate().take(count as usize) {
            let control = message.msg_hdr.msg_controllen.min(size_of::<Control>());
            let buffer = &self.buffers[index];
            if let Some(stamp_ns) = stamp(&self.controls[index].0[..control]) {
                out.push(Arrival { sent_ns: word(buffer, 8), stamp_ns });
            }
        }
        Ok(count as usize)
    }
}

/// Reads what waits on a stream with stamps: bytes read, and the kernel's stamp of the last of
/// them. No bytes: the stream has ended or the socket's timeout has passed.
///
/// # Errors
/// The kernel's.
pub fn read_stream(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: an all-zero message header is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: the header points at writable memory that lives over the call.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) };
    if count < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EINTR | libc::EAGAIN) => Ok((0, None)),
            _ => Err(error),
        };
    }
    let length = header.msg_controllen.min(size_of::<Control>());
    Ok((count as usize, stamp(&control.0[..length])))
}

/// The kernel's receive stamp among control messages, which comes first as nothing else is asked for.
fn stamp(control: &[u8]) -> Option<u64> {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    if control.len() < HEADER + size_of::<libc::timespec>() {
        return None;
    }
    // SAFETY: a header and a timespec fit what there is; unaligned reads are asked for.
    let (header, time): (libc::cmsghdr, libc::timespec) = unsafe {
        (std::ptr::read_unaligned(control.as_ptr().cast()), std::ptr::read_unaligned(control[HEADER..].as_ptr().cast()))
    };
    let is_stamp = header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_TIMESTAMPNS;
    is_stamp.then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
