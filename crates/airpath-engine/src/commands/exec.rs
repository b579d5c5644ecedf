//! `airpath exec`: a command behind an emulated link.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpath_live::addressing::Nesting;
use airpath_live::presence::Presence;
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::tuning::Tuning;
use airpath_live::{privilege, supervise};
use airpath_log::{Clock, Level};
use airpath_scenario::Scenario;
use airpath_warp::guest::is_guest;

use super::link;
use crate::cli::{ExecArgs, RunArgs};
use crate::error::{Failure, Result};
use crate::run::request::{DEFAULT_MTU_BYTES, Report, SERVER_GRACE, SERVER_TIMEOUT};
use crate::run::{RunRequest, calibrated, conclude, live, replications, warp};
use crate::terminal::{say, show};

/// Runs it once, or as often as asked; the exit status is the command's.
///
/// # Errors
/// When the link, the folder or the system is not as it should be.
pub fn run(args: &ExecArgs) -> Result<i32> {
    let scenario = link::scenario(&args.link)?;
    if args.run.print_scenario {
        show!("{}", scenario.to_toml().map_err(link::usage)?);
        return Ok(0);
    }
    if args.clock == Clock::Virtual {
        return Err(Failure::usage(
            "programs run by the clocks live and warp; `airpath sim` runs workloads of its own in virtual time",
        ));
    }
    if args.clock != Clock::Warp
        && let Some(option) = args.limits.given()
    {
        return Err(Failure::usage(format!(
            "{option} is for --clock warp, whose real time is not the run's; to limit a live run, put \
             `timeout SECONDS` before the command"
        )));
    }
    if !is_guest() {
        link::advise(&scenario, args.run.mtu, args.run.quiet)?;
    }
    if args.replications > 1 {
        return replications::run(args, &scenario);
    }
    let mut request = request(&args.run, scenario, args.command.clone())?;
    request.server.clone_from(&args.server);
    request.server_timeout = args.server_timeout;
    request.server_grace = args.server_grace;
    if args.clock == Clock::Warp && !is_guest() {
        return warp::run(&request, &args.limits);
    }
    if !is_guest() {
        calibrated::apply(&mut request, &args.run)?;
    }
    // Inside another link, a run without a server of its own leads on to what is around it.
    request.enclosing |= args.server.is_none() && nested()?;
    start(request)
}

/// Whether this process is already behind an emulated link.
///
/// # Errors
/// When the environment tells a bad depth.
pub fn nested() -> Result<bool> {
    Ok(Nesting::from_environment().map_err(Failure::live)?.is_nested())
}

/// The request that the common options mean.
///
/// # Errors
/// When they contradict each other or the scenario.
pub fn request(args: &RunArgs, scenario: Scenario, client: Vec<OsString>) -> Result<RunRequest> {
    let path = link::only_path(&scenario)?;
    let level = level(args.log, args.out.as_deref())?;
    if !args.quiet
        && let Some(warning) = Nesting::misleading().map_err(Failure::live)?
    {
        say!("airpath: {warning}");
    }
    let guest = is_guest();
    if !args.quiet
        && !guest
        && let Some(warning) = airpath_models::load::too_much(&path.background)
    {
        say!("airpath: {warning}");
    }
    if guest {
        // The host has looked at the folder, and knows whose it is.
        airpath_log::place::ignore_owners();
    }
    let tuning = if guest {
        Tuning::where_work_takes_no_time()
    } else {
        args.tuned(Tuning::usual(args.spin.unwrap_or_default()))
    };
    let is_root = nix::unistd::geteuid().is_root();
    if args.no_confine && !is_root && !args.quiet {
        say!("airpath: --no-confine changes nothing: the kernel confines the commands of an ordinary user");
    }
    let mtu_bytes = args.mtu.or(scenario.mtu).unwrap_or(DEFAULT_MTU_BYTES);
    Ok(RunRequest {
        path,
        scenario,
        clock: if guest { Clock::Warp } else { Clock::Live },
        seed: args.seed.unwrap_or_else(fresh_seed),
        client,
        server: None,
        server_timeout: SERVER_TIMEOUT,
        server_grace: SERVER_GRACE,
        enclosing: false,
        internet: args.internet,
        host_ports: args.host_port.clone(),
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
        tcp_state: tcp_state(args.tcp_state, level, args.out.as_deref())?,
        tcp_state_is_asked: args.tcp_state.is_some(),
        strict: args.strict,
        report: match (args.quiet, args.json) {
            (true, _) => Report::Nothing,
            (_, true) => Report::Json,
            _ => Report::Summary,
        },
    })
}

/// How much is recorded where `asked` was asked for, into `folder`.
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

/// How the state of TCP is recorded where `asked` was asked for, at `level` into `folder`.
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

/// A seed that differs from run to run, small enough to be typed again.
pub fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(32)) % 1_000_000_000
}

/// Runs `request` in an engine process of its own.
///
/// # Errors
/// When the run cannot be set up.
pub fn start(mut request: RunRequest) -> Result<i32> {
    if let Some(folder) = &request.out {
        request.out_is_ours = !folder.exists();
        airpath_log::folder::create(folder).map_err(|error| Failure::new(error.to_string()))?;
        // The engine's process may be moved about; what it writes to is not.
        request.out = Some(absolute(folder)?);
    }
    let taken_back = |failure| {
        if let Some(folder) = &request.out {
            let _ = airpath_log::folder::take_back(folder, request.out_is_ours);
        }
        Failure::live(failure)
    };
    privilege::acquire(request.as_root).map_err(taken_back)?;
    // In a guest nobody is there to be told.
    let _presence = if airpath_warp::guest::is_guest() { None } else { Presence::announce() };
    supervise::run(|process| {
        let finished = live::run(&process, &request).and_then(|outcome| conclude::conclude(&request, outcome));
        finished.unwrap_or_else(|failure| {
            say!("airpath: {failure}");
            failure.status()
        })
    })
    .map_err(taken_back)
}

fn absolute(folder: &PathBuf) -> Result<PathBuf> {
    std::fs::canonicalize(folder).map_err(|error| Failure::new(format!("cannot find {}: {error}", folder.display())))
}
