// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A small synchronous netlink client: links, addresses, routes, sockets.
//! A socket belongs to the network namespace in which it was opened, for ever;
//! so it may be used from any thread afterwards.

mod address;
mod link;
mod monitor;
mod queue;
mod route;
mod sock_diag;
mod tcp_diag;
mod tunnel;

use std::fmt::Debug;
use std::io;
use std::os::fd::AsRawFd;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::{NETLINK_ROUTE, NETLINK_SOCK_DIAG};
use netlink_sys::{Socket, SocketAddr};

pub use link::{Below, LinkCounters, LinkFacts, LinkOptions};
pub use monitor::{LinkMonitor, LinkNews};
pub use queue::QueueDiscipline;
pub use route::Route;
pub use sock_diag::{BoundSocket, SockDiag, Transport};
pub use tcp_diag::{ClosedSockets, TcpDiag, TcpSocket};
pub use tunnel::Tunnel;

use crate::series;

/// Large enough for any datagram the kernel puts a dump into.
const RECEIVE_BUFFER_BYTES: usize = 64 * 1024;

/// A connected netlink socket of one protocol.
#[derive(Debug)]
struct Connection {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
    /// Room for an answer that comes together with the one before; none if requests and answers are calls of
    /// their own.
    second: Option<Vec<u8>>,
}

impl Connection {
    fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; RECEIVE_BUFFER_BYTES], second: None })
    }

    /// Requests and receives in one system call, where the kernel is that of warp.
    fn in_series(self) -> Self {
        Self { second: Some(vec![0; RECEIVE_BUFFER_BYTES]), ..self }
    }

    /// Sends one request and collects the answers up to the end of the dump or
    /// the acknowledgement.
    fn request<M>(&mut self, message: M, flags: u16) -> io::Result<Vec<M>>
    where
        M: NetlinkSerializable + NetlinkDeserializable + Debug,
    {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        let mut answers = Vec::new();
        if let Some(second) = &mut self.second {
            match series::request(self.socket.as_raw_fd(), &bytes, [&mut self.buffer, second]) {
                Ok((first_bytes, second_bytes)) => {
                    let mut over = take(&self.buffer[..first_bytes], self.sequence, &mut answers)?;
                    // An answer that came with the last one is of an earlier request.
                    if let Some(second_bytes) = second_bytes {
                        over |= take(&second[..second_bytes], self.sequence, &mut answers)?;
                    }
                    if over {
                        return Ok(answers);
                    }
                    return self.collect(answers);
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.second = None,
                Err(error) => return Err(error),
            }
        }
        self.socket.send(&bytes, 0)?;
        self.collect(answers)
    }

    fn collect<M>(&mut self, mut answers: Vec<M>) -> io::Result<Vec<M>>
    where
        M: NetlinkDeserializable + Debug,
    {
        let buffer = &mut self.buffer;
        loop {
            let received = self.socket.recv(&mut &mut buffer[..], 0)?;
            if take(&buffer[..received], self.sequence, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Takes the answers out of what was received; returns whether the last one was among them.
fn take<M>(mut rest: &[u8], sequence: u32, answers: &mut Vec<M>) -> io::Result<bool>
where
    M: NetlinkDeserializable + Debug,
{
    while rest.len() >= 16 {
        let answer = NetlinkMessage::<M>::deserialize(rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        // Messages are padded to four bytes.
        let length = (answer.header.length as usize).next_multiple_of(4).max(16);
        rest = rest.get(length..).unwrap_or_default();
        // Left over from a request that failed half way.
        if answer.header.sequence_number != sequence {
            continue;
        }
        match answer.payload {
            NetlinkPayload::InnerMessage(inner) => answers.push(inner),
            NetlinkPayload::Error(error) if error.code.is_none() => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::Done(_) => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// Configures the network of the namespace in which it was opened.
#[derive(Debug)]
pub struct RouteSocket {
    connection: Connection,
}

impl RouteSocket {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        Ok(Self { connection: Connection::open(NETLINK_ROUTE)? })
    }

    fn acknowledged(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.connection.request(message, NLM_F_ACK | flags).map(|_| ())
    }

    fn dump(&mut self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.connection.request(message, NLM_F_DUMP)
    }
}

fn open_sock_diag() -> io::Result<Connection> {
    Connection::open(NETLINK_SOCK_DIAG)
}
