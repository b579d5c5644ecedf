// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Making a link's interfaces and configuring them at both ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::line::SessionLine;
use super::{FarEnd, SessionOptions, SessionReport};
use crate::addressing::{End, Link, Nesting};
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{LinkOptions, Route, RouteSocket};
use crate::ports::{PacketPort, Port, PortKind, TRANSMIT_QUEUE_PACKETS, TunPort, tun_available};

/// Ports made for a link.
pub(super) struct Made {
    pub(super) link: Link,
    /// The links of all users.
    pub(super) links: Vec<Link>,
    pub(super) client_port: Port,
    pub(super) server_port: Port,
    pub(super) engine: Option<NetNamespace>,
    pub(super) line: Option<SessionLine>,
}

/// Configuration of both ends.
pub(super) struct Plan<'a> {
    pub(super) link: Link,
    pub(super) mtu_bytes: u32,
    pub(super) with_ipv6: bool,
    pub(super) tun: bool,
    pub(super) congestion_control: &'a str,
    pub(super) far_end: FarEnd,
    /// True if other users' links end there, too.
    pub(super) server_is_shared: bool,
    /// Another address of the end that has an interface.
    pub(super) other_address: Option<Ipv4Addr>,
}

/// Makes both ports of a user, of the first among `candidates` (links of all users) whose name is free at the
/// server's end (the client's namespace is empty). `ends` are the namespaces of client and server.
pub(super) fn create_ports(
    options: &SessionOptions,
    candidates: &[Vec<Link>],
    user: usize,
    ends: [&NetNamespace; 2],
    report: &mut SessionReport,
) -> Result<Made> {
    let of_kind = |tun| create_ports_of_kind(options, candidates, user, ends, tun);
    match options.port_kind {
        PortKind::Packet => of_kind(false),
        PortKind::Tun => {
            tun_available().map_err(tun_forbidden)?;
            of_kind(true)
        }
        // The kernel's stamps tell when a packet came however late it is read.
        PortKind::Automatic => of_kind(false).or_else(|error| {
            // With too few open files the other kind would do no better, and say so in other words.
            if tun_available().is_err() || error.raw_os_error() == Some(libc::EMFILE) {
                return Err(error);
            }
            report.notes.push(format!("using TUN devices: veth pairs with packet sockets are not available ({error})"));
            of_kind(true)
        }),
    }
}

fn tun_forbidden(error: std::io::Error) -> LiveError {
    LiveError::Forbidden(format!(
        "/dev/net/tun cannot be opened ({error}): load the module `tun`, make the device readable and writable \
         for this user, or use packet sockets instead (`--port packet`)"
    ))
}

fn create_ports_of_kind(
    options: &SessionOptions,
    candidates: &[Vec<Link>],
    user: usize,
    [client, server]: [&NetNamespace; 2],
    tun: bool,
) -> Result<Made> {
    let engine = if tun { None } else { Some(NetNamespace::create()?) };
    let mut line = None;
    let mut create = |link: Link, network: &NetNamespace, end: End| -> Result<Port> {
        if let Some(options_of_line) = options.line.as_ref().filter(|line| line.end == end) {
            let (port, opened) = options_of_line.open(link, options.mtu_bytes, options.magic_number)?;
            line = Some(opened);
            return Ok(Box::new(port));
        }
        let name = link.interface_name();
        match &engine {
            None => TunPort::create(network, &name, options.super_packets).map(|port| Box::new(port) as Port),
            Some(engine) => {
                PacketPort::create(engine, end.name(), network, &name, options.mtu_bytes, options.super_packets)
                    .map(|port| Box::new(port) as Port)
            }
        }
    };
    for links in candidates {
        let link = links[user];
        let server_port = match create(link, server, End::Server) {
            // Another run took the name meanwhile.
            Err(error) if name_taken(&error) => continue,
            other => other?,
        };
        let client_port = create(link, client, End::Client)?;
        return Ok(Made { link, links: links.clone(), client_port, server_port, engine, line });
    }
    Err(LiveError::Request(
        "no free addresses for this link: links are nested too deeply (limit: five), or too many links end in this \
         network; stop some of them first"
            .into(),
    ))
}

fn name_taken(error: &LiveError) -> bool {
    // EBUSY is TUN's word for it.
    matches!(error.raw_os_error(), Some(libc::EEXIST | libc::EBUSY))
}

/// The links of so many users, in each group that of the first user free at the server by the name of its interface.
pub(super) fn free_links(options: &SessionOptions, users: usize, server: &NetNamespace) -> Result<Vec<Vec<Link>>> {
    let nesting = match options.far_end {
        FarEnd::Fresh | FarEnd::Internet => Nesting::OUTERMOST,
        FarEnd::Enclosing => options.nesting,
    };
    let names = server
        .run(|| RouteSocket::open()?.link_names())?
        .attempting(|| "list the interfaces of the server's namespace".into())?;
    let free = nesting.candidates().filter(|link| !names.contains(&link.interface_name()));
    let of_users = |link: Link| u16::try_from(users).ok().and_then(|users| link.of_users(users));
    free.map(of_users).collect::<Option<Vec<_>>>().ok_or_else(|| {
        LiveError::Request(format!("a link has no addresses for {users} users; run fewer, or less deeply nested"))
    })
}

pub(super) fn loopback_up(network: &NetNamespace) -> Result<()> {
    network
        .run(|| {
            let mut socket = RouteSocket::open()?;
            let index = socket.link_index("lo")?;
            let up = LinkOptions { up: true, ..LinkOptions::default() };
            socket.configure_link(index, &up)
        })?
        .attempting(|| "bring the loopback interface up".into())
}

/// Configures the interface of one end: MTU, queue, addresses, routes.
pub(super) fn bring_up(plan: &Plan<'_>, end: End, network: &NetNamespace) -> Result<()> {
    let name = plan.link.interface_name();
    let mut socket = network.run(RouteSocket::open)?.attempting(|| "open a netlink socket".into())?;
    let index = socket.link_index(&name).attempting(|| format!("find the interface {name}"))?;
    let mut options = LinkOptions {
        mtu_bytes: Some(plan.mtu_bytes),
        without_link_local: true,
        without_resolution: !plan.tun,
        ..LinkOptions::default()
    };
    if plan.tun {
        options.transmit_queue_packets = Some(TRANSMIT_QUEUE_PACKETS);
    }
    socket.configure_link(index, &options).attempting(|| format!("configure the {}'s interface {name}", end.name()))?;
    let up = LinkOptions { up: true, ..LinkOptions::default() };
    socket.configure_link(index, &up).attempting(|| format!("bring the {}'s interface {name} up", end.name()))?;
    for address in plan.link.addresses(end, plan.with_ipv6) {
        let (_, prefix_length) = plan.link.network(address);
        socket
            .add_address(index, address, prefix_length)
            .attempting(|| format!("give {address} to the {}", end.name()))?;
        if let (IpAddr::V4(_), Some(other)) = (address, plan.other_address) {
            socket.add_address(index, other.into(), 32).attempting(|| format!("give {other} to the {}", end.name()))?;
        }
        for route in routes(plan, end, address, index) {
            socket.add_route(&route).map_err(|error| explain_route(plan, &route, error))?;
        }
    }
    Ok(())
}

/// The route to the link's own network; and beyond it, to everything for the
/// client, and to everything nested in the client's namespace for the server.
/// A fresh server of one user has nowhere else to send to, so it takes a default route:
/// whatever address a program behind the client uses is answered.
fn routes(plan: &Plan<'_>, end: End, address: IpAddr, link_index: u32) -> Vec<Route> {
    let route = |(destination, prefix_length), gateway| Route {
        destination,
        prefix_length,
        link_index,
        gateway,
        source: Some(address),
        congestion_control: Some(plan.congestion_control.to_owned()),
    };
    let (everywhere, far) = match address {
        IpAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(plan.link.ipv4(end.other()))),
        IpAddr::V6(_) => (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(plan.link.ipv6(end.other()))),
    };
    let on_link = plan.link.network(address);
    let beyond = match (end, plan.far_end) {
        (End::Server, FarEnd::Enclosing | FarEnd::Internet) => plan.link.network_with_nested(address),
        (End::Server, FarEnd::Fresh) if plan.server_is_shared => plan.link.network_with_nested(address),
        _ => (everywhere, 0),
    };
    let mut routes = vec![route(on_link, None)];
    // What goes on into the internet is IPv4 only: with no route, programs do
    // not wait for IPv6 in vain.
    let dead_end = plan.far_end == FarEnd::Internet && address.is_ipv6() && end == End::Client;
    if beyond != on_link && !dead_end {
        routes.push(route(beyond, Some(far)));
    }
    routes
}

fn explain_route(plan: &Plan<'_>, route: &Route, error: std::io::Error) -> LiveError {
    let unknown_name = matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT));
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let known = available.split_whitespace().any(|name| name == plan.congestion_control);
    if unknown_name && !known {
        return LiveError::Request(format!(
            "this kernel has no TCP congestion control `{}` (available: {}); load its module, \
             for example with `modprobe tcp_{}`",
            plan.congestion_control,
            available.trim(),
            plan.congestion_control,
        ));
    }
    LiveError::system(format!("add the route to {}/{}", route.destination, route.prefix_length), error)
}
