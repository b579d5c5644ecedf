// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A tunnel to another host over TCP, where a firewall lets nothing else pass: whole frames in one connection, which
//! either host may make. Either names the other one, and takes nobody else's connection.

mod carrier;
pub mod wire;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use carrier::Peer;

use super::{Attached, Awaited, Carried, Kind, Place, Plan, device, is_of_one_host};
use crate::addressing::End;
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::LinkOptions;
use crate::ports::create_tap;

pub(super) const KIND: Kind = Kind {
    word: "tcp",
    form: "HOST:PORT",
    purpose: "a tunnel to another host over TCP, which has `tcp-listen:` with this host and the same port",
    open: |text, _| open(text, false),
};

pub(super) const LISTENING: Kind = Kind {
    word: "tcp-listen",
    form: "HOST:PORT",
    purpose: "the same, where HOST connects to PORT of this host; nobody else may",
    open: |text, _| open(text, true),
};

/// Room for two tags in frames of the device, beside the MTU.
const TAGS_BYTES: u32 = 8;
/// Largest MTU of a TAP device.
const MOST_MTU_BYTES: u32 = 65_521;
/// Packets that wait for a connection whose buffers are full.
const QUEUE_PACKETS: u32 = 1000;

/// The other host, and who of the two connects.
#[derive(Debug)]
struct Tunnel {
    shown: String,
    addresses: Vec<IpAddr>,
    port: u16,
    listens: bool,
    network: NetNamespace,
}

fn open(text: &str, listens: bool) -> Result<Box<dyn Place>> {
    let word = if listens { LISTENING.word } else { KIND.word };
    let shown = format!("{word}:{text}");
    let wrong = |what: &str| {
        LiveError::Request(format!(
            "{shown}: {what}; write the other host and a port, as in {word}:192.0.2.7:7000 or {word}:[2001:db8::7]:7000"
        ))
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("there is no port"))?;
    let number: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("the port is not 1 to 65535"))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let found = (bare, number).to_socket_addrs().map_err(|_| wrong(&format!("there is no host `{host}`")))?;
    let addresses: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
    if !addresses.iter().copied().any(is_of_one_host) {
        return Err(wrong("that is not the address of one host"));
    }
    let network = NetNamespace::current()?;
    Ok(Box::new(Tunnel { shown, addresses, port: number, listens, network }))
}

impl Tunnel {
    /// The connecting side, or the listening one, in the host's own network.
    fn peer(&self) -> Result<Peer> {
        if !self.listens {
            return Ok(Peer::At(SocketAddr::new(self.addresses[0], self.port)));
        }
        let any: IpAddr = match self.addresses.iter().any(IpAddr::is_ipv6) {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        };
        let listener = TcpListener::bind((any, self.port)).map_err(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => LiveError::Request(format!(
                "{}: another program of this host has the port; name another one, at both hosts",
                self.shown
            )),
            _ => LiveError::system(format!("listen on port {}", self.port), error),
        })?;
        listener.set_nonblocking(true).attempting(|| format!("listen on port {}", self.port))?;
        Ok(Peer::From(listener, self.addresses.clone()))
    }

    /// Message about a host that has not come: the one that is to connect, and to where. To be called in the host's own
    /// network.
    fn awaited(&self) -> String {
        let (host, port) = (self.addresses[0], self.port);
        if !self.listens {
            return format!(
                "{host} does not answer at port {port}; `airpath gateway` with {}:HOST:{port} is to run there, with an \
                 address of this host",
                LISTENING.word
            );
        }
        let mut what = format!(
            "{host} has not connected to port {port} of this host; `airpath gateway` with {}:HOST:{port} is to run \
             there, with an address of this host",
            KIND.word
        );
        // An address that is here can be bound.
        if !host.is_loopback() && UdpSocket::bind((host, 0)).is_ok() {
            what.push_str(&format!("; {host} is this host itself: {} names the other one", LISTENING.word));
        }
        what
    }
}

impl Place for Tunnel {
    fn name(&self) -> String {
        self.shown.clone()
    }

    fn carries(&self) -> Carried {
        Carried::Frames
    }

    fn network(&self) -> Option<&NetNamespace> {
        None
    }

    fn attach(&self, plan: &Plan<'_>, end: End) -> Result<Attached> {
        let tap = create_tap(plan.engine, end.name())?;
        let options = LinkOptions {
            // The kernel counts tags beyond the first among the packet's bytes.
            mtu_bytes: Some(plan.mtu_bytes.saturating_add(TAGS_BYTES).min(MOST_MTU_BYTES)),
            transmit_queue_packets: Some(QUEUE_PACKETS),
            ..LinkOptions::default()
        };
        let (port, session_end) = device::open(plan, end, &self.shown, options)?;
        let lost = Arc::new(AtomicU64::new(0));
        let came = Arc::new(AtomicBool::new(false));
        let (started, what) = self.network.run(|| {
            // A thread is in the network of the one that starts it.
            let start = |peer| {
                carrier::start(tap, peer, Arc::clone(&lost), Arc::clone(&came))
                    .attempting(|| format!("start the tunnel {}", self.shown))
            };
            (self.peer().and_then(start), self.awaited())
        })?;
        let port = port.carried_on(started?, lost);
        let awaited = Some(Awaited { what, came });
        let (shown, port_number) = (&self.shown, self.port);
        let told = match self.listens {
            true => format!("{shown}: frames in TCP, for which that host connects to port {port_number}"),
            false => format!("{shown}: frames in TCP to port {port_number} of {}", self.addresses[0]),
        };
        Ok(Attached { port: Box::new(port), end: session_end, told, notes: Vec::new(), helpers: Vec::new(), awaited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tunnel_names_a_host_and_a_port() {
        assert_eq!(open("127.0.0.1:7000", false).unwrap().name(), "tcp:127.0.0.1:7000");
        assert_eq!(open("[::1]:7000", true).unwrap().name(), "tcp-listen:[::1]:7000");
        for (text, what) in [
            ("127.0.0.1", "no port"),
            ("127.0.0.1:0", "1 to 65535"),
            ("127.0.0.1:70000", "1 to 65535"),
            ("256.0.0.1:7000", "no host"),
            ("0.0.0.0:7000", "address of one host"),
            ("[ff02::1]:7000", "address of one host"),
        ] {
            let told = open(text, true).unwrap_err().to_string();
            assert!(told.contains(what) && told.contains("tcp-listen:192.0.2.7:7000"), "{told}");
        }
    }
}
