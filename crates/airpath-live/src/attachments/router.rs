// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A router with DHCP behind the link: clients get addresses from dnsmasq, and reach the host's network through
//! slirp4netns. Both run in a namespace of the run's own, so that nothing of the host changes and nothing can be left
//! behind. IPv4 only, as slirp4netns has no stable IPv6.
#![allow(unsafe_code)]

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Attached, Carried, Kind, Place, Plan};
use crate::addressing::End;
use crate::error::{Attempting, LiveError, Result};
use crate::internet;
use crate::listening::ListenWatch;
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkOptions, Route, RouteSocket};
use crate::ports::InterfacePort;
use crate::session::SessionEnd;

pub(super) const KIND: Kind = Kind {
    word: "router",
    form: "ADDRESS",
    purpose: "a router of this address (in a /24) with DHCP, and the network of this host behind it",
    open: |text, _| open(text),
};

const PROGRAM: &str = "dnsmasq";
/// Interface to the link.
const INTERFACE: &str = "lan";
const PREFIX_LENGTH: u8 = 24;
/// Name server in the network of slirp4netns.
const NAME_SERVER: &str = "10.0.2.3";
/// Time for dnsmasq to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// Addresses for clients: the last byte of the first and of the last.
const LEASED: [u8; 2] = [100, 250];

/// A router that is yet to be made.
#[derive(Debug)]
struct Router {
    address: Ipv4Addr,
}

fn open(text: &str) -> Result<Box<dyn Place>> {
    let address = text.parse().ok().filter(|address: &Ipv4Addr| {
        let host = address.octets()[3];
        address.is_private() && host != 0 && !(LEASED[0]..=LEASED[1]).contains(&host) && host != u8::MAX
    });
    let address = address.ok_or_else(|| {
        LiveError::Request(format!(
            "router:{text}: write a private IPv4 address that ends in 1 to 99, such as router:192.168.77.1"
        ))
    })?;
    Ok(Box::new(Router { address }))
}

impl Place for Router {
    fn name(&self) -> String {
        format!("router:{}", self.address)
    }

    fn carries(&self) -> Carried {
        Carried::Frames
    }

    fn network(&self) -> Option<&NetNamespace> {
        None
    }

    fn attach(&self, plan: &Plan<'_>, end: End) -> Result<Attached> {
        let network = NetNamespace::create()?;
        let port = InterfacePort::create(plan.engine, end.name(), &network, INTERFACE, plan.mtu_bytes)?;
        self.bring_up(&network, plan.mtu_bytes)?;
        let end = SessionEnd::of_others(end, INTERFACE.to_owned(), network, vec![IpAddr::V4(self.address)]);
        let helpers = vec![internet::connect(&end, plan.mtu_bytes)?, self.start_dhcp(&end, plan.mtu_bytes)?];
        let told = format!("{}: DHCP leases {} to {}", self.name(), self.leased(0), self.leased(1));
        Ok(Attached { port: Box::new(port), end, told, notes: Vec::new(), helpers, awaited: None })
    }
}

impl Router {
    /// The first or last address for clients.
    fn leased(&self, index: usize) -> Ipv4Addr {
        let [a, b, c, _] = self.address.octets();
        Ipv4Addr::new(a, b, c, LEASED[index])
    }

    fn bring_up(&self, network: &NetNamespace, mtu_bytes: u32) -> Result<()> {
        let configured = network.run(|| {
            let mut socket = RouteSocket::open()?;
            let up = LinkOptions { up: true, ..LinkOptions::default() };
            let loopback = socket.link_index("lo")?;
            socket.configure_link(loopback, &up)?;
            let index = socket.link_index(INTERFACE)?;
            socket.configure_link(index, &LinkOptions { mtu_bytes: Some(mtu_bytes), ..up })?;
            socket.add_address(index, self.address.into(), PREFIX_LENGTH)?;
            let [a, b, c, _] = self.address.octets();
            socket.add_route(&Route {
                destination: Ipv4Addr::new(a, b, c, 0).into(),
                prefix_length: PREFIX_LENGTH,
                link_index: index,
                gateway: None,
                source: Some(self.address.into()),
                congestion_control: None,
            })
        })?;
        configured.attempting(|| format!("configure the router {}", self.address))
    }

    /// Starts dnsmasq, and returns its process id once it listens.
    fn start_dhcp(&self, end: &SessionEnd, mtu_bytes: u32) -> Result<u32> {
        let mut watch = ListenWatch::begin(end)?;
        let mut helper = self.spawn(end.network(), mtu_bytes)?;
        let begun = Instant::now();
        loop {
            let served = watch.new_servers().attempting(|| "list the sockets of the router".into())?;
            if served.iter().any(|socket| socket.local.port() == 67) {
                return Ok(helper.id());
            }
            let ended = helper.try_wait().attempting(|| format!("wait for {PROGRAM}"))?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let _ = helper.kill();
                let mut text = String::new();
                if let Some(messages) = &mut helper.stderr {
                    let _ = messages.read_to_string(&mut text);
                }
                return Err(LiveError::Request(format!("{PROGRAM} does not serve DHCP: {}", text.trim())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn spawn(&self, network: &NetNamespace, mtu_bytes: u32) -> Result<Child> {
        let range = format!("{},{},255.255.255.0,1h", self.leased(0), self.leased(1));
        let namespace = network.as_fd().as_raw_fd();
        let mut command = Command::new(PROGRAM);
        command
            .args(["--keep-in-foreground", "--conf-file=/dev/null", "--pid-file", "--leasefile-ro", "--no-resolv"])
            .args(["--no-hosts", "--dhcp-authoritative", "--quiet-dhcp", "--log-facility=/dev/null", "--user=root"])
            .args(["--bind-interfaces", "--except-interface=lo"])
            .arg(format!("--interface={INTERFACE}"))
            .arg(format!("--server={NAME_SERVER}"))
            .arg(format!("--dhcp-range={range}"))
            .arg(format!("--dhcp-option=option:mtu,{mtu_bytes}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let prepare = move || {
            // Out of reach of the terminal's signals.
            nix::unistd::setsid()?;
            // SAFETY: setns with integer arguments.
            if unsafe { libc::setns(namespace, libc::CLONE_NEWNET) } < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        };
        // SAFETY: system calls only; no allocation, no lock.
        unsafe { command.pre_exec(prepare) };
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LiveError::Missing(format!(
                "addresses for clients need {PROGRAM}, which is not installed; install the package `dnsmasq-base` \
                 (`apt install dnsmasq-base`; `dnf install dnsmasq`)"
            )),
            _ => LiveError::system(format!("start {PROGRAM}"), error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_has_a_private_address_outside_its_leases() {
        assert_eq!(open("192.168.77.1").unwrap().name(), "router:192.168.77.1");
        for text in ["8.8.8.8", "192.168.77.0", "192.168.77.100", "192.168.77.255", "x"] {
            assert!(open(text).is_err(), "{text}");
        }
    }
}
