// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Connections: each is joined to one of its own at the host.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{loopback, spawn};
use crate::error::Result;

/// Connections at once; more are refused, so that a run cannot use up the
/// host's threads.
const CONNECTIONS_LIMIT: usize = 1024;

pub(super) fn start(listener: TcpListener, port: u16) -> Result<()> {
    let open = Arc::new(AtomicUsize::new(0));
    spawn("host-port-tcp", move || {
        loop {
            match listener.accept() {
                Ok((near, _)) => admit(near, port, &open),
                // Out of descriptors, most likely: let some close.
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    })
}

fn admit(near: TcpStream, port: u16, open: &Arc<AtomicUsize>) {
    if open.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_LIMIT {
        open.fetch_sub(1, Ordering::Relaxed);
        refuse(&near);
        return;
    }
    let counted = Arc::clone(open);
    let started = spawn("host-port-tcp", move || {
        match TcpStream::connect(&loopback(port)[..]) {
            Ok(far) => join(&near, &far),
            Err(_) => refuse(&near),
        }
        counted.fetch_sub(1, Ordering::Relaxed);
    });
    if started.is_err() {
        open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends a connection with a reset, as a closed port would.
fn refuse(stream: &TcpStream) {
    let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
    // Failing leaves an ordinary end of the connection.
    let _ = nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &at_once);
}

/// Copies both ways until both have ended; an end of one way is passed on
/// alone, so that half-closed connections work.
fn join(near: &TcpStream, far: &TcpStream) {
    // The proxy must not add delays of its own.
    let _ = near.set_nodelay(true);
    let _ = far.set_nodelay(true);
    std::thread::scope(|scope| {
        scope.spawn(|| copy(near, far));
        copy(far, near);
    });
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    if io::copy(&mut from, &mut to).is_ok() {
        let _ = to.shutdown(Shutdown::Write);
    } else {
        refuse(from);
        refuse(to);
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
