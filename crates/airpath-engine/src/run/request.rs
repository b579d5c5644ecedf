// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Request for one live run.

use std::ffi::OsString;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use airpath_core::Span;
use airpath_live::attachments::{self, Carried, Place};
use airpath_live::host_port::HostPort;
use airpath_live::ports::PortKind;
use airpath_live::session::ServerEnds;
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::tuning::{Policy, Tuning};
use airpath_log::verdict::CalibrationFacts;
use airpath_log::{Clock, LatenessBound, Level, Places, RingSize, Snaplen};
use airpath_models::MachineConfig;
use airpath_scenario::Scenario;

use super::lines::Lines;
use super::link_place::LinkPlace;
use super::manifest;
use crate::server_ready::ServerReady;

/// Everything that decides what a live run does.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The scenario, for the record.
    pub scenario: Scenario,
    /// The machine that it describes.
    pub machine: MachineConfig,
    /// The clock by which it runs.
    pub clock: Clock,
    /// The seed of all draws.
    pub seed: u64,
    /// The client's command, of each user; empty for a user who runs none.
    pub clients: Vec<Vec<OsString>>,
    /// Number of the user at whose terminal the run is, and with whose command it ends; without one it ends with
    /// the commands of all.
    pub foreground: Option<usize>,
    /// The server's shell command.
    pub server: Option<String>,
    /// Server ends of several users.
    pub server_ends: ServerEnds,
    /// Sign that the server's command is ready.
    pub server_ready: ServerReady,
    /// Maximum time until the server's command is ready.
    pub server_timeout: Span,
    /// Time that it has to end by itself once the client's command has ended.
    pub server_grace: Span,
    /// True if the far end is the enclosing namespace instead of a fresh one.
    pub enclosing: bool,
    /// True if the far end reaches the host's network.
    pub internet: bool,
    /// Ports of the host's loopback that are reachable as server:PORT.
    pub host_ports: Vec<HostPort>,
    /// Serial lines in the place of interfaces.
    pub lines: Lines,
    /// True if commands are root of their user namespace.
    pub as_root: bool,
    /// True if commands of root are kept from the host.
    pub confine: bool,
    /// TCP congestion control of both ends.
    pub congestion_control: Option<String>,
    /// MTU of both ends in bytes.
    pub mtu_bytes: u32,
    /// Kind of the engine's ports.
    pub port_kind: PortKind,
    /// Kernel settings of the loop, and its policy of meeting deadlines.
    pub tuning: Tuning,
    /// Calibration of the run, for the record; or the reason that there is none.
    pub calibration: serde_json::Value,
    /// Quality of the calibration, if there is one.
    pub calibration_facts: Option<CalibrationFacts>,
    /// The scheduling policy that the user asked for by name, whose refusal is told.
    pub asked_policy: Option<Policy>,
    /// Lateness of a packet at entry or departure from which the run is suspect.
    pub lateness_bound: LatenessBound,
    /// The folder of the run.
    pub out: Option<PathBuf>,
    /// True if the folder was made for this run, rather than found empty.
    pub out_is_ours: bool,
    /// Copy of the manifest outside the folder.
    pub manifest: Option<Arc<File>>,
    /// Level of recording.
    pub level: Level,
    /// Number of bytes of each packet.
    pub snaplen: Snaplen,
    /// True if single frames are recorded.
    pub frames: bool,
    /// Size of the log's memory while the disk takes nothing.
    pub ring: RingSize,
    /// Mode of recording the TCP state.
    pub tcp_state: TcpStateMode,
    /// True if that was asked for, rather than the default.
    pub tcp_state_is_asked: bool,
    /// Networks of others that the link joins, instead of ends of the run's own.
    pub gateway: Option<Gateway>,
    /// True if a run that is not trusted fails.
    pub strict: bool,
    /// Additional environment of the clients' and servers' commands.
    pub environment: Vec<(OsString, OsString)>,
    /// Output at the end.
    pub report: Report,
    /// File for the summary as JSON, beside that output.
    pub json_file: Option<PathBuf>,
    /// The same once it was opened.
    pub json: Option<Arc<File>>,
    /// The host whose part of the path this run is, where the path is on several; otherwise none.
    pub part_of: Option<String>,
    /// Place of this link, if it is one of several of a run that share nothing.
    pub place: Option<LinkPlace>,
    /// Number of threads that carry packets, of a run with several links; without it the engine decides.
    pub loops: Option<NonZeroUsize>,
}

/// Networks of others at the two ends, and how long they are joined.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// The client's place and the server's.
    pub places: [Arc<dyn Place>; 2],
    /// Largest packet of the link in bytes, if that was asked for.
    pub mtu_bytes: Option<u32>,
    /// Duration; none: until a signal comes.
    pub duration: Option<Span>,
}

impl Gateway {
    /// True if whole Ethernet frames pass, and not IP packets alone.
    pub fn carries_frames(&self) -> bool {
        let [client, server] = &self.places;
        attachments::carried([&**client, &**server]) == Carried::Frames
    }
}

/// Output at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The summary of five lines.
    Summary,
    /// The same as JSON.
    Json,
    /// Nothing.
    Nothing,
}

impl RunRequest {
    /// The places of its events.
    pub fn places(&self) -> Places {
        manifest::places(&self.machine)
    }

    /// Names of the users; the empty one for a user alone.
    pub fn users(&self) -> Vec<String> {
        if let Some(place) = &self.place {
            return place.users.clone();
        }
        match self.machine.users().as_slice() {
            [_] => vec![String::new()],
            users => users.iter().map(|user| user.name.to_owned()).collect(),
        }
    }
}
