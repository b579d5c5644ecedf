// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sockets of a namespace, asked of the kernel (INET_DIAG): nothing is sent to anybody.

use std::io;
use std::net::SocketAddr;

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};

use super::{Connection, open_sock_diag};

/// A transport whose servers can be recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// TCP; a server listens.
    Tcp,
    /// UDP; a server is bound and not connected.
    Udp,
    /// UDP-Lite (RFC 3828).
    UdpLite,
}

impl Transport {
    const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::UdpLite];

    /// Number of the protocol in the IP header.
    pub fn protocol(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::UdpLite => 136,
        }
    }

    fn server_states(self) -> StateFlags {
        match self {
            Self::Tcp => StateFlags::LISTEN,
            // The kernel shows an unconnected datagram socket as CLOSE.
            Self::Udp | Self::UdpLite => StateFlags::CLOSE,
        }
    }
}

/// A socket at which a server may wait for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BoundSocket {
    /// Its transport.
    pub transport: Transport,
    /// The local address; unspecified when bound to any.
    pub local: SocketAddr,
    /// The socket's inode, which tells it from others.
    pub inode: u32,
}

/// Asks for the sockets of the namespace in which it was opened.
#[derive(Debug)]
pub struct SockDiag {
    connection: Connection,
}

impl SockDiag {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<Self> {
        Ok(Self { connection: open_sock_diag()? })
    }

    /// All sockets of the namespace at which a server may wait: TCP sockets
    /// that listen, and bound, unconnected UDP and UDP-Lite sockets.
    ///
    /// # Errors
    /// The kernel's; a transport that the kernel lacks is left out.
    pub fn servers(&mut self) -> io::Result<Vec<BoundSocket>> {
        let mut found = Vec::new();
        for transport in Transport::ALL {
            for family in [AF_INET, AF_INET6] {
                match self.dump(transport, family) {
                    Ok(sockets) => found.extend(sockets),
                    Err(error) if absent(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    fn dump(&mut self, transport: Transport, family: u8) -> io::Result<Vec<BoundSocket>> {
        let request = InetRequest {
            family,
            protocol: transport.protocol(),
            extensions: ExtensionFlags::empty(),
            states: transport.server_states(),
            socket_id: if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() },
        };
        let answers = self.connection.request(SockDiagMessage::InetRequest(request), NLM_F_DUMP)?;
        let sockets = answers.into_iter().filter_map(|answer| match answer {
            SockDiagMessage::InetResponse(response) => {
                let id = &response.header.socket_id;
                (id.source_port != 0).then(|| BoundSocket {
                    transport,
                    local: SocketAddr::new(id.source_address, id.source_port),
                    inode: response.header.inode,
                })
            }
            _ => None,
        });
        Ok(sockets.collect())
    }
}

/// The kernel has no such transport, or no diagnosis of it.
pub(super) fn absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT))
}
