// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets between two hosts as datagrams of UDP, beside the connection that carries everything else.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Failure, Result};

/// Bytes before the packet: the word that both hosts know, and the number of the datagram.
const HEAD_BYTES: usize = 16;
/// Longest payload of a datagram of UDP over IPv4.
const LONGEST_BYTES: usize = 65_507;
/// Interval at which a waiting thread looks whether the run goes on.
const LOOK: Duration = Duration::from_secs(1);

/// A tunnel as one of the hosts is to make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ends {
    /// Its own address.
    pub own: SocketAddr,
    /// The address of the other host.
    pub peer: SocketAddr,
    /// A word without which a datagram is none of this run.
    pub token: u64,
}

/// One end of a tunnel.
#[derive(Clone, Debug)]
pub struct Tunnel {
    socket: Arc<UdpSocket>,
    token: u64,
    sent: Arc<AtomicU64>,
    /// Datagrams that did not come.
    pub lost: Arc<AtomicU64>,
}

impl Tunnel {
    /// Opens the end.
    ///
    /// # Errors
    /// When the address is not one of this host, or is in use.
    pub fn open(ends: &Ends) -> Result<Tunnel> {
        let open = || -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind(ends.own)?;
            socket.connect(ends.peer)?;
            socket.set_read_timeout(Some(LOOK))?;
            Ok(socket)
        };
        let socket = open().map_err(|error| {
            let Ends { own, peer, .. } = ends;
            Failure::new(format!(
                "cannot open the tunnel by UDP from {own} to {peer}: {error}; name an address of this host and a free port"
            ))
        })?;
        Ok(Tunnel { socket: Arc::new(socket), token: ends.token, sent: Arc::default(), lost: Arc::default() })
    }

    /// Sends `frame`. False if it is too long for a datagram.
    pub fn send(&self, frame: &[u8]) -> bool {
        if HEAD_BYTES + frame.len() > LONGEST_BYTES {
            return false;
        }
        let mut datagram = Vec::with_capacity(HEAD_BYTES + frame.len());
        datagram.extend_from_slice(&self.token.to_le_bytes());
        datagram.extend_from_slice(&self.sent.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        datagram.extend_from_slice(frame);
        // What the kernel refuses did not come: the other host counts it.
        let _ = self.socket.send(&datagram);
        true
    }

    /// Receives until `goes_on` says no; what comes is handed to `take`.
    pub fn receive(&self, goes_on: impl Fn() -> bool, mut take: impl FnMut(&mut [u8])) {
        let mut buffer = vec![0; LONGEST_BYTES];
        let (mut received, mut expected) = (0_u64, 0_u64);
        while goes_on() {
            // A timeout, or an error that an earlier datagram has brought about.
            let Ok(count) = self.socket.recv(&mut buffer) else { continue };
            let Some((head, frame)) = buffer[..count].split_at_mut_checked(HEAD_BYTES) else { continue };
            let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
            if word(0) != self.token {
                continue;
            }
            received += 1;
            expected = expected.max(word(8).saturating_add(1));
            self.lost.store(expected.saturating_sub(received), Ordering::Relaxed);
            take(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_is_counted_and_what_is_strange_is_left() {
        let port = |socket: &UdpSocket| socket.local_addr().unwrap();
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let (own, peer) = (port(&one), port(&other));
        drop((one, other));
        let near = Tunnel::open(&Ends { own, peer, token: 7 }).unwrap();
        let far = Tunnel::open(&Ends { own: peer, peer: own, token: 7 }).unwrap();
        assert!(Tunnel::open(&Ends { own, peer, token: 7 }).is_err());
        assert!(near.send(b"first"));
        near.socket.send(b"strange").unwrap();
        near.sent.store(3, Ordering::Relaxed);
        assert!(near.send(b"fourth"));
        assert!(!near.send(&vec![0; LONGEST_BYTES]));
        let came = std::cell::RefCell::new(Vec::new());
        far.receive(|| came.borrow().len() < 2, |frame| came.borrow_mut().push(frame.to_vec()));
        assert_eq!(came.into_inner(), [b"first".to_vec(), b"fourth".to_vec()]);
        assert_eq!(far.lost.load(Ordering::Relaxed), 2);
    }
}
