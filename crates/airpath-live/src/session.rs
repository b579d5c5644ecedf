// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A session: two endpoints in network namespaces, and the engine's two ports
//! between them; or one for each of several users.

mod line;
mod links;
mod names;
mod secrets;
mod users;

use std::fmt;
use std::net::IpAddr;

use airpath_core::limits::{LEAST_MTU_BYTES, LONGEST_PACKET_BYTES};

use crate::addressing::{End, IPV6_MINIMUM_MTU_BYTES, Link, Nesting};
use crate::capability::Bounds;
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::{
    MountNamespace, NamespaceSettings, NetNamespace, default_congestion_control, forward_from, ipv6_available,
};
use crate::ports::{Port, PortKind};
use crate::privilege;
pub use line::{LineOptions, PeerAddress, PppOptions, SessionLine};
use users::{Common, Users};

/// Network of the link's server end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FarEnd {
    /// In a network namespace of its own.
    #[default]
    Fresh,
    /// In the network namespace that the engine was started in: links nest, so
    /// that a program two levels deep reaches the outermost server through
    /// both. Needs privilege over that namespace, which a run nested in
    /// another has.
    Enclosing,
    /// In a network namespace of its own, which is then connected to the
    /// host's network by [`internet::connect`](crate::internet::connect).
    Internet,
}

impl FarEnd {
    fn is_ours(self) -> bool {
        self != Self::Enclosing
    }
}

/// Server ends of several users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerEnds {
    /// One for all of them, with an interface for each.
    #[default]
    One,
    /// One for each of them.
    Each,
}

/// Options of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Position of this run among runs around it, which decides on addresses and names when the far end is the
    /// enclosing namespace.
    pub nesting: Nesting,
    /// Network of the server's end.
    pub far_end: FarEnd,
    /// Kind of the engine's ports.
    pub port_kind: PortKind,
    /// Let the kernel hand over up to 64 KiB of a flow at once, unsegmented.
    pub super_packets: bool,
    /// Largest IP packet, in bytes.
    pub mtu_bytes: u32,
    /// TCP congestion control of both ends; none: the kernel's default.
    pub congestion_control: Option<String>,
    /// Give each namespace a table of TCP sockets of its own, a small one:
    /// asking for its sockets walks through the table, which is the whole
    /// machine's otherwise.
    pub own_socket_tables: bool,
    /// Keep commands of root from the host as far as [`Bounds`] and the mounts can; an ordinary user's are
    /// kept from it by their user namespace.
    pub confine: bool,
    /// A serial line in place of the interface of one end; of one user only.
    pub line: Option<LineOptions>,
    /// Number that differs from run to run, by which the line of another run is told from a loop.
    pub magic_number: u32,
    /// Replaces /etc/resolv.conf; by default no name server is reachable, and
    /// the file says so.
    pub resolv_conf: Option<String>,
}

impl SessionOptions {
    /// The usual: two fresh namespaces, 1500 bytes, whatever port there is.
    ///
    /// # Errors
    /// When the environment tells a nonsensical nesting.
    pub fn from_environment() -> Result<Self> {
        Ok(Self {
            nesting: Nesting::from_environment()?,
            far_end: FarEnd::Fresh,
            port_kind: PortKind::Automatic,
            super_packets: false,
            mtu_bytes: 1500,
            congestion_control: None,
            own_socket_tables: false,
            confine: false,
            line: None,
            magic_number: 1,
            resolv_conf: None,
        })
    }
}

/// One end: its namespaces, addresses and interface.
#[derive(Debug)]
pub struct SessionEnd {
    end: End,
    user: String,
    link: Link,
    interface: String,
    network: NetNamespace,
    /// None where no command is to run.
    mounts: Option<MountNamespace>,
    addresses: Vec<IpAddr>,
    confined: bool,
    has_interface: bool,
}

impl SessionEnd {
    /// The interface `interface` of somebody else's `network` as an end, which runs no commands.
    pub(crate) fn of_others(end: End, interface: String, network: NetNamespace, addresses: Vec<IpAddr>) -> Self {
        let (user, link) = (String::new(), Link::ALONE);
        Self { end, user, link, interface, network, mounts: None, addresses, confined: false, has_interface: true }
    }

    /// True if commands of root are kept from the host.
    pub fn is_confined(&self) -> bool {
        self.confined
    }

    /// Maximum capabilities of its commands.
    pub(crate) fn bounds(&self) -> Bounds {
        match (self.confined, privilege::in_user_namespace()) {
            (true, _) => Bounds::of_confined_root(),
            (false, true) => Bounds::OF_NAMESPACE,
            (false, false) => Bounds::NONE,
        }
    }

    /// End of the link.
    pub fn end(&self) -> End {
        self.end
    }

    /// Name of its user; empty for the only one.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Its network namespace.
    pub fn network(&self) -> &NetNamespace {
        &self.network
    }

    /// The mount namespace of its commands; none where no command is to run.
    pub fn mounts(&self) -> Option<&MountNamespace> {
        self.mounts.as_ref()
    }

    /// Its addresses on the link: IPv4, then IPv6 if there is any.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// True if it has an interface on the link; else a peer on a serial line has its place.
    pub fn has_interface(&self) -> bool {
        self.has_interface
    }

    /// Name of its interface on the link.
    pub fn interface_name(&self) -> String {
        self.interface.clone()
    }

    /// The link it belongs to.
    pub fn link(&self) -> Link {
        self.link
    }
}

/// "client's end", with the user's name behind it where there are several.
impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.end;
        match self.user.as_str() {
            "" => write!(f, "{end}'s end"),
            user => write!(f, "{end}'s end of {user}"),
        }
    }
}

/// Two endpoints and what is between them. Dropping it takes the interfaces
/// and namespaces away, as the end of the process does.
#[derive(Debug)]
pub struct Session {
    /// The mobile end.
    pub client: SessionEnd,
    /// The fixed end.
    pub server: SessionEnd,
    /// The engine's port towards the client.
    pub client_port: Port,
    /// The engine's port towards the server.
    pub server_port: Port,
    /// Choices made, and parts that are not available.
    pub report: SessionReport,
    /// The line in place of an end's interface.
    pub line: Option<SessionLine>,
    /// Keeps the engine's ends of veth pairs alive.
    _engine: Option<NetNamespace>,
    /// The links of all users.
    links: Vec<Link>,
}

/// Facts about a session, for the record of the run.
#[derive(Debug, Clone, Default)]
pub struct SessionReport {
    /// "tun" or "packet".
    pub port: &'static str,
    /// IPv6 is missing: the MTU is below 1280 bytes, or the kernel has none.
    pub ipv4_only: bool,
    /// Reason for missing IPv6, in words, if it is missing.
    pub ipv4_only_reason: Option<String>,
    /// The TCP congestion control in force on connections over the link.
    pub congestion_control: String,
    /// Settings that were refused, and choices the user should know about.
    pub notes: Vec<String>,
}

impl Session {
    /// Sets everything up: namespaces, interfaces, addresses, routes, names.
    ///
    /// # Errors
    /// [`LiveError::Forbidden`] when the system refuses, with what to change;
    /// [`LiveError::Request`] for an unknown congestion control or a bad MTU.
    pub fn create(options: &SessionOptions) -> Result<Self> {
        Self::create_for(options, &Users { names: &[""], servers: ServerEnds::One }, None)
    }

    /// The session of the user of this number in a run with a first session; that of the first user without one.
    fn create_for(options: &SessionOptions, users: &Users<'_>, of_run: Option<(Common<'_>, usize)>) -> Result<Self> {
        check_mtu(options.mtu_bytes)?;
        let mut report = SessionReport::default();
        let new_namespace =
            if options.own_socket_tables { NetNamespace::create_with_own_tables } else { NetNamespace::create };
        let client_network = new_namespace()?;
        let (first, user) = of_run.map_or((None, 0), |(first, user)| (Some(first), user));
        let shared = first.as_ref().filter(|_| users.share_a_server(options)).map(|first| first.server);
        let server_network = match (shared, options.far_end) {
            (Some(server), _) => server.network.try_clone().attempting(|| "open a namespace again".into())?,
            (None, FarEnd::Fresh | FarEnd::Internet) => new_namespace()?,
            (None, FarEnd::Enclosing) => enclosing_namespace()?,
        };
        prepare(options, &client_network, (shared.is_none()).then_some(&server_network), &mut report)?;
        let candidates = match &first {
            Some(first) => vec![first.links.to_vec()],
            None => links::free_links(options, users.names.len(), &server_network)?,
        };
        let mut made =
            links::create_ports(options, &candidates, user, [&client_network, &server_network], &mut report)?;
        let line_end = made.line.as_ref().map(|line| line.end);
        let port = if line_end == Some(End::Client) { &made.server_port } else { &made.client_port };
        report.port = port.label();
        let is_tun = port.label() == "tun";
        let with_ipv6 = decide_ipv6(options, &client_network, &mut report)?;
        report.congestion_control = match &options.congestion_control {
            Some(name) => name.clone(),
            None => client_network.run(default_congestion_control)?.unwrap_or_else(|| "unknown".into()),
        };
        let plan = links::Plan {
            link: made.link,
            mtu_bytes: options.mtu_bytes,
            with_ipv6,
            tun: is_tun,
            congestion_control: &report.congestion_control,
            far_end: options.far_end,
            server_is_shared: users.share_a_server(options),
            other_address: options.line.as_ref().and_then(|line| line.ppp.address),
        };
        for (end, network) in [(End::Server, &server_network), (End::Client, &client_network)] {
            if line_end != Some(end) {
                links::bring_up(&plan, end, network)?;
            }
        }
        if options.far_end == FarEnd::Enclosing && line_end != Some(End::Server) {
            let name = made.link.interface_name();
            report.notes.extend(server_network.run(|| forward_from(&name))?);
        }
        let name = users.names[user];
        let mut endpoint = |end, network: NetNamespace| -> Result<SessionEnd> {
            let addresses = made.link.addresses(end, with_ipv6);
            let ended = |network, mounts| SessionEnd {
                end,
                user: name.to_owned(),
                link: made.link,
                interface: made.link.interface_name(),
                network,
                mounts: Some(mounts),
                addresses,
                confined: options.confine,
                has_interface: line_end != Some(end),
            };
            if let (End::Server, Some(shared)) = (end, shared.and_then(|shared| shared.mounts.as_ref())) {
                let mounts = shared.try_clone().attempting(|| "open a namespace again".into())?;
                return Ok(ended(network, mounts));
            }
            let mut names = names::of_link(made.link, with_ipv6, name);
            if let Some(line) = &options.line {
                line.rename(&mut names, made.link);
            }
            if end == End::Server && users.share_a_server(options) {
                for (link, name) in made.links.iter().zip(users.names).skip(1) {
                    let addresses = link.addresses(End::Client, with_ipv6).into_iter();
                    names.entries.extend(addresses.map(|address| (address, vec![(*name).to_owned()])));
                }
            }
            let resolv_conf = match (&options.resolv_conf, options.far_end, end) {
                (Some(text), _, _) => Some(text.as_str()),
                // The enclosing namespace's name servers serve its end, and
                // are reached through the link from the other.
                (None, FarEnd::Enclosing, _) => None,
                (None, FarEnd::Fresh, _) => Some(NO_NAME_SERVER),
                (None, FarEnd::Internet, _) => Some(INTERNET_NAME_SERVERS),
            };
            // A command at the client's end has the user's own terminal, which fresh ones would hide.
            let log_ins = end == End::Server && privilege::in_user_namespace();
            let mounts = MountNamespace::create(&network, &names, resolv_conf, options.confine, log_ins)?;
            for note in mounts.notes() {
                if !report.notes.contains(note) {
                    report.notes.push(note.clone());
                }
            }
            Ok(ended(network, mounts))
        };
        Ok(Self {
            client: endpoint(End::Client, client_network)?,
            server: endpoint(End::Server, server_network)?,
            client_port: made.client_port,
            server_port: made.server_port,
            report,
            line: made.line,
            _engine: made.engine.take(),
            links: made.links,
        })
    }
}

/// Content of /etc/resolv.conf at both ends: the address at which slirp4netns answers for the host's name
/// servers.
const INTERNET_NAME_SERVERS: &str = "# The host's name servers, through the emulated link.\n\
                                     nameserver 10.0.2.3\n";

/// Without this line the resolver would wait seconds for a name server that
/// cannot be reached; with no server given it asks the local host, which
/// refuses at once.
const NO_NAME_SERVER: &str = "# No name server can be reached over the emulated link.\nnameserver 127.0.0.1\n";

fn check_mtu(mtu_bytes: u32) -> Result<()> {
    if (LEAST_MTU_BYTES..=LONGEST_PACKET_BYTES).contains(&mtu_bytes) {
        return Ok(());
    }
    Err(LiveError::Request(format!(
        "the MTU is {mtu_bytes} bytes, but must be from {LEAST_MTU_BYTES} (RFC 791) to {LONGEST_PACKET_BYTES}"
    )))
}

fn enclosing_namespace() -> Result<NetNamespace> {
    let network = NetNamespace::current()?;
    if !privilege::owns_network(&network)? {
        return Err(LiveError::Forbidden(
            "the far end of this link is the network in which the command started, which belongs to root: run it as \
             root, or inside `airpath exec` or `airpath shell` (as root: without --confine)"
                .into(),
        ));
    }
    Ok(network)
}

/// Settings of the namespaces that are ours.
fn prepare(
    options: &SessionOptions,
    client: &NetNamespace,
    new_server: Option<&NetNamespace>,
    report: &mut SessionReport,
) -> Result<()> {
    // The client's namespace is the enclosing one of runs nested in it. The
    // server's forwards nothing, so that no packet circles between the two.
    let client_notes = NamespaceSettings { forwarding: true }.apply(client)?;
    links::loopback_up(client)?;
    report.notes.extend(client_notes);
    if let Some(server) = new_server.filter(|_| options.far_end.is_ours()) {
        let notes = NamespaceSettings { forwarding: false }.apply(server)?;
        links::loopback_up(server)?;
        for note in notes {
            if !report.notes.contains(&note) {
                report.notes.push(note);
            }
        }
    }
    Ok(())
}

fn decide_ipv6(options: &SessionOptions, client: &NetNamespace, report: &mut SessionReport) -> Result<bool> {
    report.ipv4_only_reason = if options.mtu_bytes < IPV6_MINIMUM_MTU_BYTES {
        Some(format!(
            "IPv4 only: IPv6 needs an MTU of at least {IPV6_MINIMUM_MTU_BYTES} bytes, and this \
             link has {}",
            options.mtu_bytes
        ))
    } else if !client.run(ipv6_available)? {
        Some("IPv4 only: this kernel has no IPv6, or has it disabled".into())
    } else {
        None
    };
    report.ipv4_only = report.ipv4_only_reason.is_some();
    Ok(!report.ipv4_only)
}
