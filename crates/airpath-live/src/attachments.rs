// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Attachments: networks of others at the ends of a link, such as a container, an interface of the host, or a tunnel to
//! another host. A kind of attachment is one file of this folder and one line in [`KINDS`].

mod claim;
mod clashes;
mod container;
mod device;
mod inside;
mod interface;
mod namespace;
mod process;
mod router;
pub mod tcp;
mod vxlan;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use airpath_core::limits::{LEAST_MTU_BYTES, LONGEST_PACKET_BYTES};

use crate::addressing::{End, IPV6_MINIMUM_MTU_BYTES, Link, Nesting};
use crate::error::{Attempting, LiveError, Result};
use crate::namespaces::NetNamespace;
use crate::netlink::{Below, RouteSocket};
use crate::ports::{InterfaceSocket, Port};
use crate::session::{SessionEnd, SessionReport};

/// The kinds, in the order of the help.
pub const KINDS: &[Kind] = &[
    namespace::KIND,
    process::KIND,
    container::DOCKER,
    container::PODMAN,
    interface::KIND,
    vxlan::KIND,
    tcp::KIND,
    tcp::LISTENING,
    router::KIND,
];

/// MTU of interfaces that are made for a link, where nobody asks for another.
const USUAL_MTU_BYTES: u32 = 1500;

/// A kind of attachment.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// The word before the colon.
    pub word: &'static str,
    /// Form of the text behind the colon.
    pub form: &'static str,
    /// Its purpose, in a line.
    pub purpose: &'static str,
    /// Finds what the text behind the colon names.
    open: fn(&str, Opening) -> Result<Box<dyn Place>>,
}

/// Conditions under which places are opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opening {
    /// Take interfaces that the host needs itself.
    pub force: bool,
    /// Socket on interfaces.
    pub socket: &'static InterfaceSocket,
}

/// Content of a link between two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// IP packets between interfaces with addresses of the link's own.
    Packets,
    /// Frames of any kind.
    Frames,
}

/// The interface of a place, as far as it tells two places apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Identity of its network namespace.
    pub network: (u64, u64),
    /// Its index there; none for one that is made for the link.
    pub index: Option<u32>,
    /// The interface that it is on, or whose peer it is.
    pub related: Option<Below>,
}

/// A place where one end of a link is attached. It is opened in the process that the user started, and attached in the
/// engine's.
pub trait Place: fmt::Debug + Send + Sync {
    /// Its name, as the user gave it.
    fn name(&self) -> String;

    /// Most that a link to it can carry.
    fn carries(&self) -> Carried;

    /// The network in which the interface of the end is; none if it is yet to be made.
    fn network(&self) -> Option<&NetNamespace>;

    /// MTU of its interface in bytes; none where the interface is made for the link.
    fn mtu_bytes(&self) -> Option<u32> {
        None
    }

    /// The interface; none for a place that cannot be the same as another.
    fn device(&self) -> Option<Device> {
        None
    }

    /// Claims the place for this process, which is to outlive the link.
    ///
    /// # Errors
    /// [`LiveError::Request`] where it is an end of another link that would take its packets too.
    fn claim(&self) -> Result<()> {
        Ok(())
    }

    /// Makes the engine's port and the end behind it.
    ///
    /// # Errors
    /// When the system refuses, with what to change.
    fn attach(&self, plan: &Plan<'_>, end: End) -> Result<Attached>;
}

/// Decisions about a link between two places.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Content of the link.
    pub carried: Carried,
    /// Addresses of a link of packets, and the name of interfaces that are made.
    pub link: Link,
    /// Largest packet of the link, in bytes.
    pub mtu_bytes: u32,
    /// True if interfaces get addresses of IPv6, too.
    pub with_ipv6: bool,
    /// TCP congestion control on the routes of the link.
    pub congestion_control: Option<&'a str>,
    /// Namespace of the engine's ends of veth pairs.
    pub engine: &'a NetNamespace,
}

/// One end of a link at a place.
#[derive(Debug)]
pub struct Attached {
    /// The engine's port.
    pub port: Port,
    /// The end.
    pub end: SessionEnd,
    /// Description of what was made, for the user.
    pub told: String,
    /// Warnings beside that.
    pub notes: Vec<String>,
    /// Processes on the packets' way that were started.
    pub helpers: Vec<u32>,
    /// The other host, where it has to be there for the end to carry anything.
    pub awaited: Option<Awaited>,
}

/// Another host that an end waits for.
#[derive(Debug, Clone)]
pub struct Awaited {
    /// Message about its absence: the one that is to connect, and to where.
    pub what: String,
    /// True once it has connected.
    pub came: Arc<AtomicBool>,
}

/// Options of a link between two places.
#[derive(Debug, Clone, Default)]
pub struct JoinOptions {
    /// Largest packet in bytes; none: the largest that both take.
    pub mtu_bytes: Option<u32>,
    /// TCP congestion control on the routes of the link.
    pub congestion_control: Option<String>,
}

/// A link between two places, without what is between its ports.
#[derive(Debug)]
pub struct Joined {
    /// The client's end and the server's.
    pub ends: [Attached; 2],
    /// Content of the link.
    pub carried: Carried,
    /// Largest packet of the link, in bytes.
    pub mtu_bytes: u32,
    /// Choices made, and parts that are not available.
    pub report: SessionReport,
}

/// Opens the place that `text` names, such as `netns:NAME`.
///
/// # Errors
/// [`LiveError::Request`] if there is none such, [`LiveError::Forbidden`] if it may not be used.
pub fn open(text: &str, opening: Opening) -> Result<Box<dyn Place>> {
    let kind = text.split_once(':').and_then(|(word, rest)| Some((KINDS.iter().find(|kind| kind.word == word)?, rest)));
    match kind {
        Some((kind, rest)) if !rest.is_empty() => (kind.open)(rest, opening),
        _ => {
            let forms: Vec<String> = KINDS.iter().map(|kind| format!("{}:{}", kind.word, kind.form)).collect();
            Err(LiveError::Request(format!("`{text}` names no end of a link; write {}", forms.join(", "))))
        }
    }
}

/// Refuses two places that are one, or between which packets go past the link.
///
/// # Errors
/// [`LiveError::Request`], with what to name instead.
fn check(places: [&dyn Place; 2]) -> Result<()> {
    let names = places.map(Place::name);
    let [Some(one), Some(other)] = places.map(Place::device) else { return Ok(()) };
    let is_same_network = one.network == other.network;
    let why = match (one.index, other.index) {
        (None, None) if is_same_network => "are in the same network namespace, within which packets do not leave it",
        (Some(one), Some(other)) if is_same_network && one == other => "are the same interface",
        (Some(_), Some(_))
            if is_on((&one, places[0]), (&other, places[1]))? || is_on((&other, places[1]), (&one, places[0]))? =>
        {
            "belong to one another (the ends of a veth pair, or an interface on the other): what leaves one enters the \
             other without the link"
        }
        _ => return Ok(()),
    };
    Err(LiveError::Request(format!("the two ends, {} and {}, {why}; name two networks", names[0], names[1])))
}

/// True if the interface `one` is on `other`, or is its peer, in whatever namespaces they are.
fn is_on((one, place): (&Device, &dyn Place), (other, of_other): (&Device, &dyn Place)) -> Result<bool> {
    let Some(related) = one.related.filter(|related| other.index == Some(related.index)) else { return Ok(false) };
    match (related.namespace, place.network(), of_other.network()) {
        (None, ..) => Ok(one.network == other.network),
        (Some(id), Some(network), Some(of_other)) => {
            let of_other = network.run(|| RouteSocket::open()?.namespace_id(of_other.as_fd()))?;
            let of_other = of_other.attempting(|| format!("compare the network namespaces of {}", place.name()))?;
            Ok(of_other == Some(id))
        }
        _ => Ok(false),
    }
}

/// Claims both places for this process, which is to outlive the link between them.
///
/// # Errors
/// Those of [`check`], and [`LiveError::Request`] where one is an end of another link that would take its packets too.
pub fn claim(places: [&dyn Place; 2]) -> Result<()> {
    check(places)?;
    places.into_iter().try_for_each(Place::claim)
}

/// True if `address` is that of one host: neither that of all nor one of a group.
fn is_of_one_host(address: IpAddr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST))
}

/// Content of a link between two places.
pub fn carried(places: [&dyn Place; 2]) -> Carried {
    match places.map(Place::carries) {
        [Carried::Packets, Carried::Packets] => Carried::Packets,
        _ => Carried::Frames,
    }
}

/// Joins two places by the ports of a link: the client's first.
///
/// # Errors
/// When they do not fit together, or the system refuses.
pub fn join(places: [&dyn Place; 2], options: &JoinOptions) -> Result<Joined> {
    check(places)?;
    let carried = carried(places);
    let mtu_bytes = mtu_bytes(places, options.mtu_bytes)?;
    let networks: Vec<&NetNamespace> = places.iter().filter_map(|place| place.network()).collect();
    let mut report = SessionReport { port: "packet", ..SessionReport::default() };
    report.ipv4_only_reason = match (carried, mtu_bytes < IPV6_MINIMUM_MTU_BYTES, clashes::without_ipv6(&networks)?) {
        (Carried::Frames, ..) => None,
        (Carried::Packets, true, _) => {
            Some(format!("IPv4 only: IPv6 needs an MTU of at least {IPV6_MINIMUM_MTU_BYTES} bytes"))
        }
        (Carried::Packets, false, true) => Some("IPv4 only: one of the two networks has IPv6 disabled".into()),
        (Carried::Packets, false, false) => None,
    };
    report.ipv4_only = report.ipv4_only_reason.is_some();
    report.congestion_control = options.congestion_control.clone().unwrap_or_else(|| "of the ends".into());
    let link = clashes::free_link(Nesting::OUTERMOST.candidates(), &networks)?;
    let engine = NetNamespace::create()?;
    let plan = Plan {
        carried,
        link,
        mtu_bytes,
        with_ipv6: carried == Carried::Packets && !report.ipv4_only,
        congestion_control: options.congestion_control.as_deref(),
        engine: &engine,
    };
    let [client, server] = places;
    let ends = [client.attach(&plan, End::Client)?, server.attach(&plan, End::Server)?];
    report.port = ends[0].port.label();
    report.notes = ends.iter().flat_map(|end| end.notes.clone()).collect();
    Ok(Joined { ends, carried, mtu_bytes, report })
}

/// Largest packet that both places take, or `asked`.
fn mtu_bytes(places: [&dyn Place; 2], asked: Option<u32>) -> Result<u32> {
    let narrowest = places.iter().filter_map(|place| Some((place.mtu_bytes()?, place.name()))).min();
    match (asked, narrowest) {
        (Some(asked), Some((most, name))) if asked > most => Err(LiveError::Request(format!(
            "the link cannot carry packets of {asked} bytes: the MTU of {name} is {most}; raise it (`ip link set … mtu \
             {asked}`), or lower --mtu"
        ))),
        (Some(asked), _) => Ok(asked),
        (None, Some((most, _))) => Ok(most.clamp(LEAST_MTU_BYTES, LONGEST_PACKET_BYTES)),
        (None, None) => Ok(USUAL_MTU_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_place_is_told_what_does() {
        for text in ["", "eth1", "netns:", "nets:a", ":a"] {
            let error = open(text, Opening::default()).unwrap_err().to_string();
            assert!(error.contains("netns:NAME") && error.contains("docker:"), "{error}");
        }
    }
}
