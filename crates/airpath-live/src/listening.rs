// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Noticing that a server is ready, by asking the kernel for its sockets:
//! no probe goes over the link.

use std::collections::HashSet;
use std::io;

use crate::error::{Attempting, Result};
use crate::netlink::{BoundSocket, SockDiag};
use crate::session::SessionEnd;

/// Watches an endpoint for sockets that were not there at the beginning.
#[derive(Debug)]
pub struct ListenWatch {
    diagnosis: SockDiag,
    known: HashSet<BoundSocket>,
}

impl ListenWatch {
    /// Begins; what is bound already does not count.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn begin(endpoint: &SessionEnd) -> Result<Self> {
        let mut diagnosis =
            endpoint.network().run(SockDiag::open)?.attempting(|| "open a socket diagnosis socket".into())?;
        let known = diagnosis.servers().attempting(|| "list the sockets of a namespace".into())?;
        Ok(Self { diagnosis, known: known.into_iter().collect() })
    }

    /// The sockets at which a server waits now: listening TCP, and bound and
    /// unconnected UDP and UDP-Lite. Takes some tens of microseconds; call it
    /// every millisecond or so until it returns something, or the command
    /// has ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new_servers(&mut self) -> io::Result<Vec<BoundSocket>> {
        let mut servers = self.diagnosis.servers()?;
        // What listens on its own loopback only cannot be reached through the link.
        servers.retain(|socket| !self.known.contains(socket) && !socket.local.ip().is_loopback());
        Ok(servers)
    }
}
