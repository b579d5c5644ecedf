// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! TCP sockets of a namespace in the kernel (INET_DIAG), asked for, or told of its own accord when a socket
//! goes.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use netlink_packet_core::{DefaultNla, Emitable, NLM_F_DUMP, NetlinkMessage, NetlinkPayload, Nla as _};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use nix::sys::socket::{setsockopt, sockopt};

use super::sock_diag::absent;
use super::{Connection, RECEIVE_BUFFER_BYTES, Transport, open_sock_diag};

/// The attribute with what BBR knows (INET_DIAG_BBRINFO).
const BBR_INFO: u16 = 16;

/// The groups of messages of closed TCP sockets, of IPv4 and of IPv6
/// (SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY).
const CLOSED_GROUPS: [u32; 2] = [1, 3];

/// Room for messages of closed sockets until they are read, in bytes.
const CLOSED_BUFFER_BYTES: usize = 8 << 20;

/// State of one TCP socket in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSocket {
    /// The socket's number in the kernel, never used again.
    pub cookie: u64,
    /// The kernel's number of its state.
    pub state: u8,
    /// Its own address and port; of IPv4 if it speaks IPv4 through IPv6.
    pub local: SocketAddr,
    /// The address and port it is connected to.
    pub remote: SocketAddr,
    /// The name of its congestion control, if told.
    pub congestion_control: Option<String>,
    /// `struct tcp_info`, as long as this kernel makes it.
    pub info: Vec<u8>,
    /// `struct tcp_bbr_info`, if BBR is in use.
    pub bbr: Option<Vec<u8>>,
}

impl TcpSocket {
    /// None for what has no `tcp_info`: requests that are no sockets yet, and
    /// what remains of sockets.
    fn new(response: InetResponse) -> Option<Self> {
        let id = &response.header.socket_id;
        let canonical = |address: std::net::IpAddr, port| SocketAddr::new(address.to_canonical(), port);
        let mut socket = Self {
            cookie: cookie(id),
            state: response.header.state,
            local: canonical(id.source_address, id.source_port),
            remote: canonical(id.destination_address, id.destination_port),
            congestion_control: None,
            info: Vec::new(),
            bbr: None,
        };
        for attribute in response.nlas {
            match attribute {
                Nla::TcpInfo(bytes) => socket.info = bytes,
                Nla::Congestion(name) => socket.congestion_control = Some(name),
                Nla::Other(other) if other.kind() == BBR_INFO => socket.bbr = Some(value_of(&other)),
                _ => {}
            }
        }
        (!socket.info.is_empty()).then_some(socket)
    }
}

fn cookie(id: &SocketId) -> u64 {
    u64::from_ne_bytes(id.cookie)
}

fn value_of(attribute: &DefaultNla) -> Vec<u8> {
    // Behind a header of four bytes.
    let mut bytes = vec![0; attribute.buffer_len()];
    attribute.emit(&mut bytes);
    bytes[4..][..attribute.value_len()].to_vec()
}

/// Asks for the TCP sockets of the namespace in which it was opened.
#[derive(Debug)]
pub struct TcpDiag {
    connection: Connection,
}

impl TcpDiag {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        Ok(Self { connection: open_sock_diag()? })
    }

    /// Asks with fewer system calls, where the kernel is that of warp.
    #[must_use]
    pub fn in_series(self) -> Self {
        Self { connection: self.connection.in_series() }
    }

    /// All TCP sockets that are or were connected, or try to be: neither those
    /// that listen, nor what remains of closed ones (TIME_WAIT).
    ///
    /// # Errors
    /// The kernel's; of two families it may lack one.
    pub fn sockets(&mut self) -> io::Result<Vec<TcpSocket>> {
        let mut found = Vec::new();
        let mut lacking = Vec::new();
        for family in [AF_INET, AF_INET6] {
            let request = InetRequest {
                family,
                protocol: Transport::Tcp.protocol(),
                extensions: ExtensionFlags::INFO | ExtensionFlags::CONG | ExtensionFlags::VEGASINFO,
                states: StateFlags::all() - StateFlags::LISTEN - StateFlags::TIME_WAIT - StateFlags::CLOSE,
                socket_id: if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() },
            };
            match self.connection.request(SockDiagMessage::InetRequest(request), NLM_F_DUMP) {
                Ok(answers) => found.extend(answers.into_iter().filter_map(|answer| match answer {
                    SockDiagMessage::InetResponse(response) => TcpSocket::new(*response),
                    _ => None,
                })),
                Err(error) if absent(&error) => lacking.push(error),
                Err(error) => return Err(error),
            }
        }
        match (lacking.pop(), lacking.is_empty()) {
            (Some(error), false) => Err(error),
            _ => Ok(found),
        }
    }
}

/// Is told of the TCP sockets of a namespace that are closed, with their last
/// `tcp_info`.
#[derive(Debug)]
pub struct ClosedSockets {
    socket: Socket,
    buffer: Vec<u8>,
}

impl ClosedSockets {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's: it wants the right to administer that namespace.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        // Without this much the messages of a crowd would be lost; less will do mostly. The kernel gives an
        // ordinary user no more than net.core.rmem_max.
        if setsockopt(&socket, sockopt::RcvBufForce, &CLOSED_BUFFER_BYTES).is_err() {
            let _ = socket.set_rx_buf_sz(CLOSED_BUFFER_BYTES as libc::c_int);
        }
        for group in CLOSED_GROUPS {
            socket.add_membership(group)?;
        }
        socket.set_non_blocking(true)?;
        Ok(Self { socket, buffer: vec![0; RECEIVE_BUFFER_BYTES] })
    }

    /// Hands over those that were closed since the last call, and returns
    /// whether some were lost for lack of room. Never blocks.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&mut self, mut take: impl FnMut(TcpSocket)) -> io::Result<bool> {
        let mut lost = false;
        loop {
            let received = match self.socket.recv(&mut &mut self.buffer[..], 0) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(lost),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    lost = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(&self.buffer[..received])
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) = message.payload
                && let Some(socket) = TcpSocket::new(*response)
            {
                take(socket);
            }
        }
    }
}

impl AsRawFd for ClosedSockets {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl std::os::fd::AsFd for ClosedSockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
