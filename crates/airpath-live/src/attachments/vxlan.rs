// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A tunnel to another host: whole frames in UDP datagrams (VXLAN, RFC 7348), carried by the kernel. The other end is a
//! gateway there, or any other VXLAN endpoint.

use std::net::{IpAddr, ToSocketAddrs};
use std::os::fd::AsFd;

use super::{Attached, Carried, Kind, Place, Plan, device, is_of_one_host};
use crate::addressing::End;
use crate::error::{LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkOptions, RouteSocket, Tunnel};

pub(super) const KIND: Kind = Kind {
    word: "vxlan",
    form: "HOST[/VNI]",
    purpose: "a tunnel to another host, whose end there is `vxlan:` with this host and the same number (default 77)",
    open: |text, _| open(text),
};

/// The port for VXLAN (RFC 7348).
const PORT: u16 = 4789;
const USUAL_NUMBER: u32 = 77;
/// Bits of a VXLAN network identifier.
const NUMBER_BITS: u32 = 24;

/// The other host, and the network that tunnels of both ends share.
#[derive(Debug)]
struct OtherHost {
    shown: String,
    address: IpAddr,
    number: u32,
    network: NetNamespace,
}

fn open(text: &str) -> Result<Box<dyn Place>> {
    let (host, number) = match text.split_once('/') {
        Some((host, number)) => (host, number.parse().ok().filter(|number: &u32| number >> NUMBER_BITS == 0)),
        None => (text, Some(USUAL_NUMBER)),
    };
    let number = number.ok_or_else(|| {
        LiveError::Request(format!("vxlan:{text}: the number behind the slash must be from 0 to 16777215"))
    })?;
    let found = (host.trim_matches(['[', ']']), PORT).to_socket_addrs();
    let address = found.ok().and_then(|mut found| found.next()).ok_or_else(|| {
        LiveError::Request(format!("vxlan:{text}: there is no host `{host}`; write its name or address"))
    })?;
    if !is_of_one_host(address.ip()) {
        return Err(LiveError::Request(format!(
            "vxlan:{text}: that is not the address of one host; write that of the other end of the tunnel"
        )));
    }
    let network = NetNamespace::current()?;
    Ok(Box::new(OtherHost { shown: format!("vxlan:{text}"), address: address.ip(), number, network }))
}

impl Place for OtherHost {
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
        let tunnel = Tunnel { number: self.number, remote: self.address, port: PORT, mtu_bytes: plan.mtu_bytes };
        // The device is in the engine's namespace, its socket in the host's.
        self.network
            .run(|| RouteSocket::open()?.add_tunnel(end.name(), &tunnel, plan.engine.as_fd()))?
            .map_err(|error| explain(&self.shown, error))?;
        let (port, session_end) = device::open(plan, end, &self.shown, LinkOptions::default())?;
        let told = format!("{}: frames in UDP to {}, port {PORT}, number {}", self.shown, self.address, self.number);
        Ok(Attached {
            port: Box::new(port),
            end: session_end,
            told,
            notes: Vec::new(),
            helpers: Vec::new(),
            awaited: None,
        })
    }
}

fn explain(shown: &str, error: std::io::Error) -> LiveError {
    match error.raw_os_error() {
        Some(libc::EEXIST | libc::EADDRINUSE) => LiveError::Request(format!(
            "{shown}: another tunnel of this host has the number or the port; give another number behind a slash, at \
             both hosts"
        )),
        Some(libc::EOPNOTSUPP) => LiveError::Forbidden(format!(
            "{shown}: this kernel has no VXLAN; load its module (`modprobe vxlan`), or use another kernel"
        )),
        _ => LiveError::system(format!("make the tunnel {shown}"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_or_without_a_number() {
        for (text, name) in [("127.0.0.1", "vxlan:127.0.0.1"), ("[::1]/16777215", "vxlan:[::1]/16777215")] {
            assert_eq!(open(text).unwrap().name(), name);
        }
        for text in ["127.0.0.1/16777216", "127.0.0.1/x", "256.0.0.1/5", "0.0.0.0", "224.0.0.1/5", "[ff02::1]", "::"] {
            assert!(open(text).unwrap_err().to_string().contains(text), "{text}");
        }
    }
}
