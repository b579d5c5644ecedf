// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Networks of others at both ends of a live link: joined, told, and left again.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use airpath_live::attachments::{self, Attached, Awaited, Carried, JoinOptions, Joined};
use airpath_live::end_waits::{Party, Register};
use airpath_live::ports::Port;
use airpath_live::session::{SessionEnd, SessionReport};

use super::request::{Gateway, Report, RunRequest};
use super::workload::{Woken, Workload};
use crate::error::{Failure, Result};
use crate::terminal::say;

/// Surroundings of a link between networks of others.
pub struct Surroundings {
    /// Largest packet in bytes.
    pub mtu_bytes: u32,
    /// Facts for the record of the run.
    pub facts: serde_json::Value,
    /// Processes that were started on the packets' way.
    pub helpers: Vec<u32>,
    /// Other hosts that its ends wait for, where that is told.
    pub awaited: Vec<(&'static str, Awaited)>,
}

/// Time after which a host that has not come is told.
const PATIENCE: Duration = Duration::from_secs(2);

/// Both ends of such a link.
pub struct Joint {
    /// The client's end and the server's.
    pub ends: [SessionEnd; 2],
    /// The engine's ports, the client's first.
    pub ports: Vec<Port>,
    /// Choices made, and parts that are not available.
    pub report: SessionReport,
    /// Surroundings of the link.
    pub surroundings: Surroundings,
}

/// Joins the places that `gateway` names, and tells what was made.
///
/// # Errors
/// When the system refuses, with what to change.
pub fn join(gateway: &Gateway, request: &RunRequest) -> Result<Joint> {
    let options = JoinOptions { mtu_bytes: gateway.mtu_bytes, congestion_control: request.congestion_control.clone() };
    let [client, server] = &gateway.places;
    let Joined { ends, carried, mtu_bytes, report } =
        attachments::join([&**client, &**server], &options).map_err(Failure::live)?;
    let what = match carried {
        Carried::Packets => "IP packets",
        Carried::Frames => "Ethernet frames of any kind",
    };
    if request.report != Report::Nothing {
        report.notes.iter().for_each(|note| say!("airpath: {note}"));
        for (end, told) in ["client", "server"].into_iter().zip(ends.iter().map(|end| &end.told)) {
            say!("airpath: {end} end: {told}");
        }
        let until = match gateway.duration {
            Some(duration) => format!("ends in {duration}, or at Ctrl-C"),
            None => "ends at Ctrl-C".to_owned(),
        };
        say!("airpath: the link carries {what}, with packets of at most {mtu_bytes} bytes; {until}");
    }
    let facts = serde_json::json!({
        "client": client.name(),
        "server": server.name(),
        "client_interface": ends[0].end.interface_name(),
        "server_interface": ends[1].end.interface_name(),
        "client_port": ends[0].port.details(),
        "server_port": ends[1].port.details(),
        "client_addresses": ends[0].end.addresses(),
        "server_addresses": ends[1].end.addresses(),
        "carries": match carried { Carried::Packets => "packets", Carried::Frames => "frames" },
        "duration_ns": gateway.duration.map(|duration| duration.nanos()),
    });
    let helpers = ends.iter().flat_map(|end| end.helpers.clone()).collect();
    let awaited = ["client", "server"].into_iter().zip(&ends).filter(|_| request.report != Report::Nothing);
    let awaited = awaited.filter_map(|(end, attached)| Some((end, attached.awaited.clone()?))).collect();
    let [Attached { port: client_port, end: client, .. }, Attached { port: server_port, end: server, .. }] = ends;
    Ok(Joint {
        ends: [client, server],
        ports: vec![client_port, server_port],
        report,
        surroundings: Surroundings { mtu_bytes, facts, helpers, awaited },
    })
}

/// Waits until the time of the gateway is over, or a signal asks for its end. `stopped` becomes readable if the
/// engine's loop stops first; then this returns false. Tells of `awaited` hosts that do not come.
///
/// # Errors
/// When the kernel refuses to wait.
pub fn wait(
    gateway: &Gateway,
    awaited: &[(&str, Awaited)],
    workload: &mut Workload<'_>,
    stopped: BorrowedFd<'_>,
) -> Result<bool> {
    let begun = Instant::now();
    let end = gateway.duration.map(|duration| begun + Duration::from_nanos(duration.nanos()));
    let first = begun + PATIENCE;
    if !awaited.is_empty() && end.is_none_or(|end| first < end) {
        match workload.wait_until(stopped, Some(first))? {
            Woken::Time => {}
            Woken::Signal => return Ok(true),
            Woken::Stopped => return Ok(false),
        }
        for (end, Awaited { what, .. }) in awaited.iter().filter(|(_, one)| !one.came.load(Ordering::Relaxed)) {
            say!("airpath: {end} end: waiting: {what}");
        }
    }
    Ok(workload.wait_until(stopped, end)? != Woken::Stopped)
}

/// Counts the helpers of a link among those on the packets' way.
pub fn enter(surroundings: &Surroundings, register: &Register) {
    surroundings.helpers.iter().for_each(|helper| register.enter(*helper as i32, Party::Relay, 0));
}
