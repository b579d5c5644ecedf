// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Claims on interfaces: a sign to other gateways that an interface is an end of this one. Two that read one interface
//! would each carry every frame.
//!
//! A claim is a socket with an abstract name in the network namespace of the interface, where the interface's index
//! tells it from all others. It goes with the process, however that ends.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt};

use crate::error::Result;
use crate::namespaces::NetNamespace;

/// Time for the claim of a gateway that is ending to go with its last process.
const PATIENCE: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(20);

/// Result of a claim.
#[derive(Debug)]
pub(super) enum Claim {
    /// It holds while this socket is open.
    Taken { _sign: UnixListener },
    /// Another process has it.
    Held(Holder),
    /// The kernel lets nobody claim anything here.
    Impossible,
}

/// A process that has a claim.
#[derive(Debug)]
pub(super) struct Holder {
    /// Its number, where this process can see it.
    process: Option<i32>,
}

/// Claims the interface of this index in `network`.
///
/// # Errors
/// When the namespace cannot be entered.
pub(super) fn claim(network: &NetNamespace, index: u32) -> Result<Claim> {
    let name = format!("airpath-interface-{index}");
    network.run(|| {
        let begun = Instant::now();
        loop {
            match SocketAddr::from_abstract_name(&name).and_then(|address| UnixListener::bind_addr(&address)) {
                Ok(sign) => return Claim::Taken { _sign: sign },
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Claim::Impossible,
                Err(_) if begun.elapsed() < PATIENCE => thread::sleep(INTERVAL),
                Err(_) => return Claim::Held(Holder { process: holder(&name) }),
            }
        }
    })
}

/// The process that listens at an abstract name of this thread's network namespace.
fn holder(name: &str) -> Option<i32> {
    // It accepts nobody, so that a call that waits could do so for ever.
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
    connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes()).ok()?).ok()?;
    // 0 is a process of a namespace that is not seen from here.
    getsockopt(&socket, sockopt::PeerCredentials).ok().map(|peer| peer.pid()).filter(|pid| *pid > 0)
}

impl fmt::Display for Holder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(process) = self.process else {
            return out.write_str("end it (its process is not visible from here, perhaps in a container)");
        };
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        match name.trim() {
            "" => write!(out, "end it (`kill {process}`)"),
            name => write!(out, "end it (`kill {process}`, which is `{name}`)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_claimed_once_and_free_again_afterwards() {
        let network = NetNamespace::current().unwrap();
        // Indices that no interface has.
        let index = 0x7ffe_0000 + (std::process::id() & 0xffff);
        let other = index + 0x1_0000;
        let first = claim(&network, index).unwrap();
        if matches!(first, Claim::Impossible) {
            return;
        }
        assert!(matches!(first, Claim::Taken { .. }));
        assert!(matches!(claim(&network, other).unwrap(), Claim::Taken { .. }));
        let Claim::Held(holder) = claim(&network, index).unwrap() else { panic!("it was claimed twice") };
        assert!(holder.to_string().contains(&format!("`kill {}`", std::process::id())), "{holder}");
        // What ends a moment later is waited for.
        let ending = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            drop(first);
        });
        assert!(matches!(claim(&network, index).unwrap(), Claim::Taken { .. }));
        ending.join().unwrap();
    }
}
