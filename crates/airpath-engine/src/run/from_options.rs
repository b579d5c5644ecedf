// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! From the options of a command to the request of a run.

use std::ffi::OsString;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use airpath_live::addressing::Nesting;
use airpath_live::engine_loop::SpinPolicy;
use airpath_live::scheduling;
use airpath_live::session::ServerEnds;
use airpath_live::supervise;
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::tuning::Tuning;
use airpath_log::{Clock, Level, show};
use airpath_models::{MachineConfig, MachineUser};
use airpath_scenario::Scenario;
use airpath_warp::guest::is_guest;

use super::lines::Lines;
use super::request::Report;
use super::{RunRequest, commands, links};
use crate::cli::{FramesArg, RunArgs};
use crate::defaults::{DEFAULT_MTU_BYTES, SERVER_GRACE, SERVER_TIMEOUT};
use crate::error::{Failure, Result};
use crate::link;
use crate::seed::fresh_seed;
use crate::server_ready::ServerReady;
use crate::terminal::say;

/// The request that the common options mean.
///
/// # Errors
/// When they contradict each other or the scenario.
pub fn request(args: &RunArgs, scenario: Scenario, client: Vec<OsString>) -> Result<RunRequest> {
    let machine = link::machine(&scenario)?;
    request_of(args, scenario, machine, client)
}

/// The same, where the scenario may have several links that share nothing: a request of all of their users.
///
/// # Errors
/// As [`request`].
pub fn request_of_links(args: &RunArgs, scenario: Scenario, client: Vec<OsString>) -> Result<RunRequest> {
    if links::of(&scenario)?.is_none() {
        return request(args, scenario, client);
    }
    let (scenario, machine) = scenario.together().map_err(link::usage)?;
    request_of(args, scenario, machine, client)
}

/// Checks that loops that poll all the time leave a processor to the programs.
fn room_to_poll(loops: usize) -> Result<()> {
    let processors = scheduling::allowed_processors().map_or(usize::MAX, |processors| processors.len());
    if loops < processors {
        return Ok(());
    }
    let may_use = show::counted(u64::try_from(processors).unwrap_or(u64::MAX), "processor");
    Err(Failure::usage(format!(
        "--spin always takes one processor for each loop and leaves none for the programs: this run may use {may_use}; \
         use --spin auto, or fewer --loops"
    )))
}

fn request_of(args: &RunArgs, scenario: Scenario, machine: MachineConfig, client: Vec<OsString>) -> Result<RunRequest> {
    let level = level(args.log, args.out.as_deref())?;
    if !args.quiet
        && let Some(warning) = Nesting::misleading().map_err(Failure::live)?
    {
        say!("airpath: {warning}");
    }
    let guest = is_guest();
    if !args.quiet && !guest {
        let too_much = |user: &MachineUser<'_>| airpath_models::load::too_much(&user.path.background);
        machine.users().iter().filter_map(too_much).for_each(|warning| say!("airpath: {warning}"));
    }
    if guest {
        // The host has looked at the folder, and knows whose it is.
        airpath_log::place::ignore_owners();
    }
    let tuning =
        if guest { Tuning::with_frozen_clock() } else { args.tuned(Tuning::usual(args.spin.unwrap_or_default())) };
    if !guest && tuning.spin == SpinPolicy::Always {
        room_to_poll(args.loops.map_or(1, NonZeroUsize::get))?;
    }
    let is_root = nix::unistd::geteuid().is_root();
    if args.no_confine && !is_root && !args.quiet {
        say!("airpath: --no-confine changes nothing: the kernel confines the commands of an ordinary user");
    }
    let users = machine.users().len();
    for port in &args.host_port {
        if let Some(user) = &port.user {
            commands::user_called(&machine, user, "--host-port")?;
        }
    }
    if !args.quiet && !guest {
        for port in args.host_port.iter().filter(|port| port.has_listener().is_ok_and(|there| !there)) {
            say!(
                "airpath: --host-port {port}: nothing listens at port {} of this host yet; until something does, \
                 connections end at once",
                port.host_port
            );
        }
    }
    let frames = frames(args.frames, &machine);
    let mtu_bytes = args.mtu.or(scenario.mtu).unwrap_or(DEFAULT_MTU_BYTES);
    Ok(RunRequest {
        machine,
        scenario,
        clock: if guest { Clock::Warp } else { Clock::Live },
        seed: args.seed.unwrap_or_else(fresh_seed),
        clients: vec![client; users],
        foreground: None,
        server: None,
        server_ends: ServerEnds::default(),
        server_ready: ServerReady::default(),
        server_timeout: SERVER_TIMEOUT,
        server_grace: SERVER_GRACE,
        enclosing: false,
        internet: args.internet,
        host_ports: args.host_port.clone(),
        lines: Lines::None,
        as_root: args.as_root,
        confine: args.confine && is_root,
        congestion_control: args.cc.clone(),
        mtu_bytes,
        port_kind: args.port,
        tuning,
        calibration: "none: the clock is not the host's".into(),
        calibration_facts: None,
        asked_policy: args.policy.filter(|_| !guest),
        ring: args.log_buffer,
        lateness_bound: args.lateness_bound,
        out: args.out.clone(),
        out_is_ours: false,
        manifest: args.manifest_descriptor.map(adopt).transpose()?,
        level,
        snaplen: args.snaplen,
        frames,
        tcp_state: tcp_state(args.tcp_state, level, args.out.as_deref())?,
        tcp_state_is_asked: args.tcp_state.is_some(),
        gateway: None,
        strict: args.strict,
        environment: Vec::new(),
        report: match (args.quiet, &args.json) {
            (true, _) => Report::Nothing,
            (_, Some(None)) => Report::Json,
            _ => Report::Summary,
        },
        json_file: args.json.clone().flatten(),
        json: None,
        part_of: None,
        place: None,
        loops: args.loops,
    })
}

/// Level of recording where `asked` was asked for, into `folder`.
///
/// # Errors
/// When there is something to write and no folder for it.
pub fn level(asked: Option<Level>, folder: Option<&Path>) -> Result<Level> {
    let level = asked.unwrap_or(if folder.is_some() { Level::Packets } else { Level::Counters });
    if folder.is_none() && level >= Level::Events {
        return Err(Failure::usage(format!("--log {level} needs a folder to write to: add --out DIR")));
    }
    Ok(level)
}

/// True if single frames of `machine` are recorded where `asked` was asked for.
pub fn frames(asked: Option<FramesArg>, machine: &MachineConfig) -> bool {
    asked.map_or(!machine.has_resources(), |asked| asked == FramesArg::On)
}

/// Mode of recording the TCP state where `asked` was asked for, at `level` into `folder`.
///
/// # Errors
/// When there is something to write and no folder for it.
fn tcp_state(asked: Option<TcpStateMode>, level: Level, folder: Option<&Path>) -> Result<TcpStateMode> {
    match (asked, folder) {
        (Some(TcpStateMode::Off), _) => Ok(TcpStateMode::Off),
        (Some(mode), None) => {
            Err(Failure::usage(format!("--tcp-state '{mode}' needs a folder to write to: add --out DIR")))
        }
        (Some(mode), Some(_)) => Ok(mode),
        (None, _) if level == Level::Packets => Ok(TcpStateMode::Every(TcpStateMode::DEFAULT_INTERVAL)),
        (None, _) => Ok(TcpStateMode::Off),
    }
}

fn adopt(number: i32) -> Result<Arc<File>> {
    supervise::adopt_descriptor(number)
        .map(Arc::new)
        .map_err(|error| Failure::usage(format!("--manifest-descriptor {number} was not inherited: {error}")))
}
