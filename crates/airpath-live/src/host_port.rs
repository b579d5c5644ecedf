// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Makes a port of the host's loopback reachable through the link: the client
//! connects to `server:N`, and what arrives there is handed to port N of the
//! host, by TCP and UDP, in user space. Needs no right over the host's
//! network, and leaves nothing behind, for it is only sockets and threads.

mod tcp;
mod udp;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::str::FromStr;

use crate::error::{Attempting, Result};
use crate::netlink::SockDiag;
use crate::session::SessionEnd;

/// A port of the host's loopback behind the link: `PORT`, `PORT:HOST_PORT` or either with `USER:` before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// The only user who has it; without one every user has.
    pub user: Option<String>,
    /// Port at the server's end.
    pub port: u16,
    /// Port of the host.
    pub host_port: u16,
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0);
        let words: Vec<&str> = text.split(':').collect();
        // No name begins with a digit.
        let (user, ports) = match words.as_slice() {
            [user, ports @ ..] if user.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                (Some((*user).to_owned()), ports)
            }
            ports => (None, ports),
        };
        let ports: Option<Vec<u16>> = ports.iter().map(|text| port(text)).collect();
        match ports.as_deref() {
            Some([port]) => Ok(Self { user, port: *port, host_port: *port }),
            Some([port, host_port]) => Ok(Self { user, port: *port, host_port: *host_port }),
            _ => Err("write PORT, PORT:HOST_PORT, or USER:PORT:HOST_PORT, with ports from 1 to 65535".into()),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}:")?;
        }
        match self.port == self.host_port {
            true => write!(f, "{}", self.port),
            false => write!(f, "{}:{}", self.port, self.host_port),
        }
    }
}

impl HostPort {
    /// True if something listens at the port of the host, in the network of the calling thread.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn has_listener(&self) -> io::Result<bool> {
        let there = SockDiag::open()?.servers()?;
        Ok(there.iter().any(|socket| socket.local.port() == self.host_port))
    }
}

/// Begins to forward a port from every address of `server` to the loopback of
/// the network namespace that the calling thread is in, which must be the one
/// the run was started in. The threads end with the process.
///
/// Start it before a [`ListenWatch`](crate::listening::ListenWatch), so that
/// its own sockets do not look like a server's.
///
/// # Errors
/// When the port is taken at the server's end, or privileged there.
pub fn forward(server: &SessionEnd, HostPort { port, host_port, .. }: &HostPort) -> Result<()> {
    for address in server.addresses() {
        let local = SocketAddr::new(*address, *port);
        let (listener, datagrams) = server
            .network()
            .run(|| std::io::Result::Ok((TcpListener::bind(local)?, UdpSocket::bind(local)?)))?
            .attempting(|| format!("listen at {local} for the host's port {host_port}"))?;
        tcp::start(listener, *host_port)?;
        udp::start(datagrams, *host_port)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_read_with_its_user_and_that_of_the_host() {
        let read = |text: &str| HostPort::from_str(text).map(|read| (read.user, read.port, read.host_port));
        let of = |user: &str| Some(user.to_owned());
        assert_eq!(read("8080"), Ok((None, 8080, 8080)));
        assert_eq!(read("80:8080"), Ok((None, 80, 8080)));
        assert_eq!(read("alice:8080"), Ok((of("alice"), 8080, 8080)));
        assert_eq!(read("ue-2:80:8080"), Ok((of("ue-2"), 80, 8080)));
        for text in ["8080", "80:8080", "alice:8080", "alice:80:8080"] {
            assert_eq!(HostPort::from_str(text).unwrap().to_string(), text);
        }
        for text in ["", "0", "65536", "80:", ":80", "alice", "alice:", "80:alice", "1:2:3", "alice:1:2:3", "8 0"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
