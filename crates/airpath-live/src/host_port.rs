// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Makes a port of the host's loopback reachable through the link: the client
//! connects to `server:N`, and what arrives there is handed to port N of the
//! host, by TCP and UDP, in user space. Needs no right over the host's
//! network, and leaves nothing behind, for it is only sockets and threads.

mod tcp;
mod udp;

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

use crate::error::{Attempting, Result};
use crate::session::SessionEnd;

/// Begins to forward `port` from every address of `server` to the loopback of
/// the network namespace that the calling thread is in, which must be the one
/// the run was started in. The threads end with the process.
///
/// Start it before a [`ListenWatch`](crate::listening::ListenWatch), so that
/// its own sockets do not look like a server's.
///
/// # Errors
/// When the port is taken at the server's end, or privileged there.
pub fn forward(server: &SessionEnd, port: u16) -> Result<()> {
    for address in server.addresses() {
        let local = SocketAddr::new(*address, port);
        let (listener, datagrams) = server
            .network()
            .run(|| std::io::Result::Ok((TcpListener::bind(local)?, UdpSocket::bind(local)?)))?
            .attempting(|| format!("listen at {local} for the host's port {port}"))?;
        tcp::start(listener, port)?;
        udp::start(datagrams, port)?;
    }
    Ok(())
}

/// The loopback addresses at which the host's server may be.
fn loopback(port: u16) -> [SocketAddr; 2] {
    [SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port), SocketAddr::new(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]), port)]
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
        .attempting(|| "start a thread for a port of the host".into())
}
