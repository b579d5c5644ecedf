// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Waiting for the server's command, and the addresses under which the client finds it then.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use airpath_core::End;
use airpath_live::command::Stream;
use airpath_live::listening::ListenWatch;
use airpath_live::netlink::BoundSocket;
use airpath_live::session::SessionEnd;

use super::said::Said;
use crate::error::{Failure, Result};
use crate::server_ready::ServerReady;

/// Time for a server that listens for one family of addresses to listen for the other, too. Programs with a socket for
/// each open both within a millisecond or so; whether one family is all must not depend on when it was looked.
const OTHER_FAMILY: Duration = Duration::from_millis(20);

/// Watches a server's command become ready.
pub struct ReadyWatch<'a> {
    sign: &'a ServerReady,
    listening: ListenWatch,
    said: Option<Said>,
    /// Since when sockets of one family alone are there.
    one_family: Option<Instant>,
}

impl<'a> ReadyWatch<'a> {
    /// Begins at `server`, for `sign`; returns the standard output and error for the command, where they are watched.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn begin(server: &SessionEnd, sign: &'a ServerReady) -> Result<(ReadyWatch<'a>, Option<[Stream; 2]>)> {
        let listening = ListenWatch::begin(server).map_err(Failure::live)?;
        let said = match sign {
            ServerReady::Says(text) => Some(
                Said::begin(text).map_err(|error| Failure::new(format!("cannot read the server's output: {error}")))?,
            ),
            ServerReady::Listens | ServerReady::Now | ServerReady::Port(_) => None,
        };
        let (said, streams) = said.unzip();
        Ok((ReadyWatch { sign, listening, said, one_family: None }, streams))
    }

    /// The sockets of the server at which it is ready, of which there may be none if its sign is another; None if it
    /// is not ready yet.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn look(&mut self) -> Result<Option<Vec<BoundSocket>>> {
        let mut sockets = self
            .listening
            .new_servers()
            .map_err(|error| Failure::new(format!("cannot list the sockets of the server's end: {error}")))?;
        let is_ready = match self.sign {
            ServerReady::Now => return Ok(Some(sockets)),
            ServerReady::Says(_) => self.said.as_ref().is_some_and(Said::is_found),
            ServerReady::Listens => !sockets.is_empty(),
            ServerReady::Port(port) => {
                sockets.retain(|socket| socket.local.port() == *port);
                !sockets.is_empty()
            }
        };
        if !is_ready {
            return Ok(None);
        }
        let since = *self.one_family.get_or_insert_with(Instant::now);
        let waits = Families::of(&sockets).is_one() && since.elapsed() < OTHER_FAMILY;
        Ok((!waits).then_some(sockets))
    }

    /// Advice on a server that is not ready in time.
    pub fn advice(&self) -> String {
        let is_listening = "check that it opens a TCP or UDP socket that the client can reach (not on 127.0.0.1); for \
                            one that does not listen, add --server-ready now";
        match self.sign {
            ServerReady::Listens | ServerReady::Now => is_listening.into(),
            ServerReady::Port(port) => {
                format!("check that it listens at port {port}, where the client can reach it (not on 127.0.0.1)")
            }
            ServerReady::Says(text) => {
                format!("check that its output has `{text}`; some programs keep output back until there is more of it")
            }
        }
    }

    /// The output that is still watched.
    pub fn into_said(self) -> Option<Said> {
        self.said
    }
}

/// Families of addresses at which a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Families {
    ipv4: bool,
    ipv6: bool,
}

impl Families {
    /// Those of `sockets`. A socket at `::` is for both: whether it is for IPv6 alone the kernel does not tell.
    pub fn of(sockets: &[BoundSocket]) -> Families {
        let has = |wanted: fn(IpAddr) -> bool| sockets.iter().any(|socket| wanted(socket.local.ip()));
        Families { ipv4: has(|ip| ip.is_ipv4() || ip.is_unspecified()), ipv6: has(|ip| ip.is_ipv6()) }
    }

    /// True if there is one of them alone.
    fn is_one(self) -> bool {
        self.ipv4 != self.ipv6
    }

    /// Has the name of the server lead to these families alone at the clients; both names stay where it listens at
    /// both, or at none.
    ///
    /// # Errors
    /// When the names cannot be changed.
    pub fn name(self, clients: &[&SessionEnd], server: &SessionEnd) -> Result<()> {
        if !self.is_one() {
            return Ok(());
        }
        for mounts in clients.iter().filter_map(|client| client.mounts()) {
            for address in server.addresses().iter().filter(|address| address.is_ipv4() != self.ipv4) {
                mounts.unname(*address, End::Server.name()).map_err(Failure::live)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use airpath_live::netlink::Transport;

    use super::*;

    fn families(addresses: &[&str]) -> Families {
        let socket =
            |address: &&str| BoundSocket { transport: Transport::Tcp, local: address.parse().unwrap(), inode: 1 };
        Families::of(&addresses.iter().map(socket).collect::<Vec<_>>())
    }

    #[test]
    fn a_socket_at_any_ipv6_address_takes_ipv4_as_well() {
        assert_eq!(families(&["[::]:80"]), Families { ipv4: true, ipv6: true });
        assert_eq!(families(&["0.0.0.0:80"]), Families { ipv4: true, ipv6: false });
        assert_eq!(families(&["[fd00::2]:80"]), Families { ipv4: false, ipv6: true });
        assert_eq!(families(&["0.0.0.0:80", "[fd00::2]:80"]), Families { ipv4: true, ipv6: true });
        assert!(!families(&[]).is_one());
    }
}
