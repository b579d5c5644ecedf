// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The UDP socket of one end: datagrams of one session, with the kernel's stamps of their arrival.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use airpath_clocks::simulated::{Error, HostClock};
use airpath_clocks::socket::StampedSocket;
use airpath_load::plan::Transport;
use airpath_load::sockets::{datagram_socket, plain};
use nix::sys::socket::{setsockopt, sockopt};

use crate::wire::datagram::{Addressed, Datagram};

/// Receive buffer that is asked for, in bytes; the kernel may grant less.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// Index of the drops in what SO_MEMINFO tells (SK_MEMINFO_DROPS).
const DROPS: usize = 8;
const MEMINFO_VARS: usize = 9;

/// A datagram that came.
#[derive(Clone, Copy, Debug)]
pub struct Came {
    /// Number of its phase, modulo 256.
    pub phase: u8,
    /// The datagram.
    pub datagram: Datagram,
    /// Time of its arrival in ns since 1970: the kernel's where it stamps.
    pub at_ns: u64,
}

/// The socket.
#[derive(Debug)]
pub struct PathSocket {
    socket: StampedSocket,
    clock: HostClock,
    token: u32,
    /// Only this host is heard.
    peer: IpAddr,
    /// Port of the other end; none before it has been heard.
    to: Mutex<Option<SocketAddr>>,
}

impl PathSocket {
    /// A socket at a free port of `local` for a session with `peer`, to whose port `to` it sends.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(
        local: IpAddr,
        peer: IpAddr,
        to: Option<SocketAddr>,
        token: u32,
        error: Error,
    ) -> io::Result<PathSocket> {
        let socket: UdpSocket = datagram_socket(local, Transport::Udp)?;
        // Root may have more than the limit of the system.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
            let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES);
        }
        let socket = StampedSocket::of_arrivals(socket)?;
        Ok(PathSocket { socket, clock: HostClock::new(error), token, peer, to: Mutex::new(to) })
    }

    /// Token of the session.
    pub fn token(&self) -> u32 {
        self.token
    }

    /// Port of this end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// CLOCK_REALTIME of this end, in ns since 1970.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in ns: changes where the clock is set.
    pub fn ahead_ns(&self) -> i64 {
        self.clock.ahead_ns()
    }

    /// Learns where the other end is.
    pub fn learn(&self, to: SocketAddr) {
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
    }

    /// True once the other end has been heard.
    pub fn knows_peer(&self) -> bool {
        self.to.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Sends `datagram`, filled up to `payload_bytes`.
    ///
    /// # Errors
    /// The kernel's, and [`io::ErrorKind::NotConnected`] before the other end has been heard.
    pub fn send(&self, phase: u8, datagram: Datagram, payload_bytes: usize) -> io::Result<()> {
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner).ok_or(io::ErrorKind::NotConnected)?;
        let mut bytes = Addressed { token: self.token, phase, datagram }.encode();
        // Bits without a pattern, so that no link compresses them away.
        let filler = bytes.len() as u32..payload_bytes as u32;
        bytes.extend(filler.map(|place| (place.wrapping_mul(0x9e37_79b9) >> 24) as u8));
        self.socket.send(&bytes, Some(to), None)
    }

    /// The next datagram of the session, if one is there. A hello also tells where the other end is.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive(&self) -> io::Result<Option<Came>> {
        let mut buffer = [0; 64];
        loop {
            let Some(arrival) = self.socket.receive(&mut buffer)? else { return Ok(None) };
            let from = plain(arrival.from);
            let known = Addressed::decode(&buffer[..arrival.length.min(buffer.len())]);
            let Some(addressed) = known.filter(|one| one.token == self.token && from.ip() == self.peer) else {
                continue;
            };
            if addressed.datagram == Datagram::Hello {
                self.learn(from);
            }
            let at_ns = arrival.kernel_ns.map_or_else(|| self.now_ns(), |stamp| self.clock.shown_at_ns(stamp));
            return Ok(Some(Came { phase: addressed.phase, datagram: addressed.datagram, at_ns }));
        }
    }

    /// Number of datagrams for which the socket had no room since it was made; 0 where the kernel does not tell.
    pub fn overflowed(&self) -> u64 {
        let mut info = [0u32; MEMINFO_VARS];
        let mut length = (MEMINFO_VARS * size_of::<u32>()) as libc::socklen_t;
        // SAFETY: the array and its length live over the call; a kernel with fewer values fills in fewer.
        let done = unsafe {
            libc::getsockopt(
                self.socket.inner().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if done == 0 { u64::from(info[DROPS]) } else { 0 }
    }
}

impl AsFd for PathSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
