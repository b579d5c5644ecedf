// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The manifest of a live run.

use airpath_core::End;
use airpath_live::host_port::HostPort;
use airpath_live::host_state::HostState;
use airpath_live::session::ServerEnds;
use airpath_log::manifest::CommandRun;
use airpath_log::{Clock, Manifest};

use super::files::KeptFiles;
use super::manifest::Beginning;
use super::request::RunRequest;
use crate::terminal::say;

/// The manifest of a run that is about to begin.
pub fn first_manifest(request: &RunRequest, files: &KeptFiles) -> Manifest {
    let mut manifest = Beginning {
        scenario: &request.scenario,
        files,
        machine: &request.machine,
        clock: request.clock,
        seed: request.seed,
        level: request.level,
        snaplen: request.snaplen,
        frames: request.frames,
    }
    .manifest();
    let settings = [
        ("mtu_bytes", serde_json::json!(request.mtu_bytes)),
        ("lateness_bound", serde_json::json!(request.lateness_bound.to_string())),
        ("lateness_bound_ns", serde_json::json!(request.lateness_bound.floor().nanos())),
        ("spin", serde_json::json!(request.tuning.spin.to_string())),
        ("economy", serde_json::json!(request.tuning.economy.to_string())),
        ("calibration", request.calibration.clone()),
        ("policy", serde_json::json!(request.tuning.policy.to_string())),
        ("log_buffer_bytes", serde_json::json!(request.ring.bytes())),
        ("tcp_state", serde_json::json!(request.tcp_state.to_string())),
        ("internet", serde_json::json!(request.internet)),
        ("host_ports", request.host_ports.iter().map(host_port).collect()),
    ];
    if request.clock == Clock::Live {
        manifest.host.state = HostState::look().facts();
    }
    manifest.settings.extend(settings.map(|(key, value)| (key.to_string(), value)));
    manifest.commands = commands(request);
    manifest
}

/// A port of the host, as a number where that is all.
fn host_port(port: &HostPort) -> serde_json::Value {
    let text = port.to_string();
    text.parse::<u16>().map_or_else(|_| text.clone().into(), Into::into)
}

/// The commands of the servers' ends, then those of the clients.
fn commands(request: &RunRequest) -> Vec<CommandRun> {
    let users = request.users();
    let run = |end: End, user: Option<&String>, command| CommandRun {
        end: end.name().into(),
        user: user.filter(|name| !name.is_empty()).cloned(),
        command,
        exit_status: None,
        signal: None,
    };
    let of_servers: Vec<Option<&String>> = match request.server_ends {
        ServerEnds::Each => users.iter().map(Some).collect(),
        ServerEnds::One => vec![None],
    };
    let line = request.server.iter();
    let servers = line.flat_map(|line| of_servers.iter().map(|user| run(End::Server, *user, vec![line.clone()])));
    let active = users.iter().zip(&request.clients).filter(|(_, words)| !words.is_empty());
    let clients = active.map(|(user, words)| {
        run(End::Client, Some(user), words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    });
    servers.chain(clients).collect()
}

/// Writes the manifest into the run's folder, if there is one; a disk that refuses is told, and the
/// run goes on.
pub fn write_manifest(request: &RunRequest, manifest: &Manifest) {
    if let Some(folder) = &request.out
        && let Err(error) = manifest.write(folder)
    {
        say!("airpath: {error}");
    }
}
