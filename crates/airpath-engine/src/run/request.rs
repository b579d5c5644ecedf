//! What is asked of one live run.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use airpath_core::Span;
use airpath_live::ports::PortKind;
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::tuning::{Policy, Tuning};
use airpath_log::verdict::CalibrationFacts;
use airpath_log::{Clock, LatenessBound, Level, RingSize, Snaplen};
use airpath_models::PathConfig;
use airpath_scenario::Scenario;

use super::manifest;

/// How long the server's command may take until it listens, unless an option says otherwise.
pub const SERVER_TIMEOUT: Span = Span::from_secs(10);
/// How long the server's command may take to end by itself, unless an option says otherwise.
pub const SERVER_GRACE: Span = Span::from_millis(200);
/// The MTU of both ends in bytes where neither options nor scenario say otherwise.
pub const DEFAULT_MTU_BYTES: u32 = 1500;

/// Everything that decides what a live run does.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The scenario, for the record.
    pub scenario: Scenario,
    /// The path that it describes.
    pub path: PathConfig,
    /// The clock by which it runs.
    pub clock: Clock,
    /// The seed of all draws.
    pub seed: u64,
    /// The client's command.
    pub client: Vec<OsString>,
    /// The server's shell command.
    pub server: Option<String>,
    /// How long the server's command may take until it listens.
    pub server_timeout: Span,
    /// How long it may take to end by itself once the client's command has ended.
    pub server_grace: Span,
    /// Whether the far end is the enclosing namespace instead of a fresh one.
    pub enclosing: bool,
    /// Whether the far end reaches the host's network.
    pub internet: bool,
    /// Ports of the host's loopback that are reachable as server:PORT.
    pub host_ports: Vec<u16>,
    /// Whether commands are root of their user namespace.
    pub as_root: bool,
    /// Whether commands of root are kept from the host.
    pub confine: bool,
    /// TCP congestion control of both ends.
    pub congestion_control: Option<String>,
    /// MTU of both ends in bytes.
    pub mtu_bytes: u32,
    /// How packets get to the engine.
    pub port_kind: PortKind,
    /// What the loop asks of the kernel, and how it meets deadlines.
    pub tuning: Tuning,
    /// By which calibration, for the record; or why by none.
    pub calibration: serde_json::Value,
    /// How good that is, if there is one.
    pub calibration_facts: Option<CalibrationFacts>,
    /// The scheduling policy that the user asked for by name, whose refusal is told.
    pub asked_policy: Option<Policy>,
    /// How late a packet may enter or leave before the run is suspect.
    pub lateness_bound: LatenessBound,
    /// The folder of the run.
    pub out: Option<PathBuf>,
    /// Whether the folder was made for this run, rather than found empty.
    pub out_is_ours: bool,
    /// Where the manifest goes beside the folder.
    pub manifest: Option<Arc<File>>,
    /// How much is recorded.
    pub level: Level,
    /// How many bytes of each packet.
    pub snaplen: Snaplen,
    /// How much of the log fits in memory while the disk takes nothing.
    pub ring: RingSize,
    /// Whether and how the state of TCP is recorded.
    pub tcp_state: TcpStateMode,
    /// Whether that was asked for, rather than the default.
    pub tcp_state_is_asked: bool,
    /// Whether a run that is not trusted fails.
    pub strict: bool,
    /// What is printed at the end.
    pub report: Report,
}

/// What is printed at the end of a run.
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
    /// The names of the hops, by their index in events.
    pub fn hop_names(&self) -> Vec<String> {
        manifest::hop_names(&self.path)
    }

    /// The names of the states, by their index in events; the first is the beginning.
    pub fn state_names(&self) -> Vec<String> {
        manifest::state_names(&self.path)
    }
}
