// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Datagrams: each sender at the link gets a socket of its own at the host,
//! until it has been silent for a while.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{loopback, spawn};
use crate::error::{Attempting, Result};

/// Silence after which a sender is forgotten.
const SILENCE: Duration = Duration::from_secs(120);
/// Senders at once; datagrams of others are dropped.
const SENDERS_LIMIT: usize = 1024;
const LONGEST_DATAGRAM_BYTES: usize = airpath_core::limits::LONGEST_PACKET_BYTES as usize;

type Senders = Arc<Mutex<HashMap<SocketAddr, Arc<UdpSocket>>>>;

pub(super) fn start(near: UdpSocket, port: u16) -> Result<()> {
    let near = Arc::new(near);
    let senders = Senders::default();
    spawn("host-port-udp", move || {
        let mut datagram = vec![0; LONGEST_DATAGRAM_BYTES];
        loop {
            let Ok((length, sender)) = near.recv_from(&mut datagram) else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            if let Ok(far) = far_socket(&near, &senders, sender, port) {
                // Refused by the host: a datagram into the void, as on any
                // network.
                let _ = far.send(&datagram[..length]);
            }
        }
    })
}

fn far_socket(near: &Arc<UdpSocket>, senders: &Senders, sender: SocketAddr, port: u16) -> Result<Arc<UdpSocket>> {
    let mut known = senders.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(far) = known.get(&sender) {
        return Ok(Arc::clone(far));
    }
    if known.len() >= SENDERS_LIMIT {
        return Err(io::Error::from(io::ErrorKind::QuotaExceeded)).attempting(|| "serve one more sender".into());
    }
    let far = Arc::new(connect(port).attempting(|| format!("reach UDP port {port}"))?);
    known.insert(sender, Arc::clone(&far));
    let (near, senders, receiving) = (Arc::clone(near), Arc::clone(senders), Arc::clone(&far));
    spawn("host-port-udp", move || {
        pass_replies(&receiving, &near, sender);
        let mut known = senders.lock().unwrap_or_else(PoisonError::into_inner);
        known.remove(&sender);
    })?;
    Ok(far)
}

/// IPv4 first: without an answer there is no telling which one the host's
/// server uses, and few use IPv6 alone.
fn connect(port: u16) -> io::Result<UdpSocket> {
    let [ipv4, ipv6] = loopback(port);
    let attempt = |local: &str, remote: SocketAddr| {
        let far = UdpSocket::bind(local)?;
        far.connect(remote)?;
        far.set_read_timeout(Some(SILENCE))?;
        io::Result::Ok(far)
    };
    attempt("127.0.0.1:0", ipv4).or_else(|_| attempt("[::1]:0", ipv6))
}

fn pass_replies(far: &UdpSocket, near: &UdpSocket, sender: SocketAddr) {
    let mut datagram = vec![0; LONGEST_DATAGRAM_BYTES];
    loop {
        match far.recv(&mut datagram) {
            Ok(length) => {
                let _ = near.send_to(&datagram[..length], sender);
            }
            // Nobody listens at the host now; somebody may yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => return,
        }
    }
}
