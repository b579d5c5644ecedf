// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A run in virtual time: this program again, as the live engine of a guest whose time travels.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use airpath_core::Span;
use airpath_live::command::{self, search_path};
use airpath_live::tcp_state::Mode as TcpStateMode;
use airpath_live::{privilege, supervise};
use airpath_log::Manifest;
use airpath_log::manifest::Status;
use airpath_warp::host::{self, GuestOutcome, Plan};
use airpath_warp::job::Job;
use airpath_warp::{WarpError, cache};

use super::{RunRequest, arguments};
use crate::cli::warp::WarpLimits;
use crate::error::{Failure, Result};
use crate::run::request::Report;
use crate::terminal::say;

/// Default limit on a run by the wall clock.
const DEFAULT_WALL_LIMIT: Duration = Duration::from_secs(600);
/// Default limit on a standstill of the virtual time, by the wall clock.
const DEFAULT_STALL_LIMIT: Duration = Duration::from_secs(30);

/// Refuses what a guest cannot have, and a run for which there is no kernel.
///
/// # Errors
/// Names the option, or what to do for a kernel.
pub fn check(request: &RunRequest) -> Result<()> {
    if request.tcp_state == TcpStateMode::Probe {
        return Err(Failure::usage(
            "--tcp-state probe is not available with --clock warp: its kernel has no tracepoints; use --tcp-state '1 \
             ms' to sample every millisecond of virtual time",
        ));
    }
    let refused = match (request.internet, request.host_ports.is_empty()) {
        (true, _) => Some("--internet"),
        (_, false) => Some("--host-port"),
        _ => None,
    };
    if let Some(option) = refused {
        return Err(Failure::usage(format!(
            "{option} is not available with --clock warp: the host's network runs in real time; run both ends behind \
             the link, with --server"
        )));
    }
    cache::find().map(drop).map_err(Failure::warp)
}

/// Carries out `request`, which this process's own arguments mean, in a guest.
///
/// # Errors
/// When there is no kernel, the system refuses, or the guest does not end as it should.
pub fn run(request: &RunRequest, limits: &WarpLimits) -> Result<i32> {
    check(request)?;
    // The guest always finds the folder: what it would do to make one takes time, and so would show in
    // the stamps of everything that follows.
    let folder = request.out.as_deref().map(|folder| (folder, !folder.exists()));
    if let Some((folder, _)) = folder {
        airpath_log::folder::create(folder).map_err(Failure::log)?;
    }
    let status = boot(request, limits);
    if let Some((folder, is_ours)) = folder {
        // Nothing is done to a run that began.
        let _ = airpath_log::folder::take_back(folder, is_ours);
    }
    status
}

fn boot(request: &RunRequest, limits: &WarpLimits) -> Result<i32> {
    let plan = Plan {
        kernel: cache::find().map_err(Failure::warp)?,
        job: job(request)?,
        seed: request.seed,
        wall_limit: limits.wall_limit.map_or(DEFAULT_WALL_LIMIT, duration),
        stall_limit: limits.stall_limit.map_or(DEFAULT_STALL_LIMIT, duration),
    };
    if !plan.kernel.is_seeded() && request.report != Report::Nothing {
        say!("airpath: this kernel does not accept a seed: runs with the same seed will differ");
    }
    privilege::acquire(false).map_err(Failure::live)?;
    supervise::run(|process| {
        let outcome = host::run(&process, &plan, &mut |line| say!("airpath: {line}"));
        match outcome {
            Ok(outcome) => finish(request, &outcome),
            Err(error) => {
                say!("airpath: {error}");
                condemn(request, &error);
                Failure::warp(error).status()
            }
        }
    })
    .map_err(Failure::live)
}

/// The same run inside the guest.
fn job(request: &RunRequest) -> Result<Job> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut arguments = arguments::without(&words, &[("--seed", true), ("--manifest-descriptor", true)]);
    // In the guest every choice of its own would be the same one.
    arguments.splice(1..1, ["--seed".into(), request.seed.to_string().into()]);
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // What the live engine gives its commands; the guest's cannot tell where this program lies.
    let path = search_path().map(|path| ("PATH".into(), path));
    let others = std::env::vars_os().filter(|(name, _)| path.is_none() || name != "PATH");
    Ok(Job {
        arguments,
        environment: others.chain(path.clone()).collect(),
        directory: working_directory(),
        uid: nix::unistd::geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
        umask: mask.bits(),
        merged_output: host::outputs_are_one(),
        manifest: request.manifest.is_some(),
        host_name: name.trim().to_owned(),
    })
}

/// Working directory of the commands: the current one, or as in a live run `/` where this user could not enter
/// it.
fn working_directory() -> OsString {
    let (directory, warning) = command::working_directory();
    match directory {
        Some(directory) if nix::unistd::chdir(&*directory).is_ok() => OsString::from_vec(directory.into_bytes()),
        _ => {
            say!("{}", warning.trim_end());
            "/".into()
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}

fn finish(request: &RunRequest, outcome: &GuestOutcome) -> i32 {
    if request.manifest.is_some()
        && let Some(manifest) = host::manifest()
    {
        hand_over(request, &manifest);
    }
    if request.report == Report::Summary {
        say!(
            "warp: {:.2} s of virtual time in {:.2} s",
            outcome.virtual_time.as_secs_f64(),
            outcome.wall_time.as_secs_f64()
        );
    }
    outcome.status
}

fn hand_over(request: &RunRequest, manifest: &[u8]) {
    if let Some(file) = &request.manifest
        && let Err(error) = (&**file).write_all(manifest)
    {
        say!("airpath: cannot pass on the manifest: {error}");
    }
}

/// Says of a run whose guest was taken down that it is invalid, in its manifest too: that of a guest
/// which ended on being told to says that all went well, that of another that it goes on.
fn condemn(request: &RunRequest, error: &WarpError) {
    if request.report != Report::Nothing {
        say!("airpath: the verdict is invalid, regardless of any summary above: the run was aborted");
    }
    let handed_over = host::manifest().and_then(|text| serde_json::from_slice(&text).ok());
    let recorded = request.out.as_ref().and_then(|folder| Manifest::read(folder).ok());
    let Some(mut manifest) = recorded.or(handed_over) else { return };
    manifest.status = Status::Failed;
    if let Some(results) = &mut manifest.results {
        results.verdict.break_off(&error.reason());
    }
    if let Some(folder) = &request.out
        && let Err(error) = manifest.write(folder)
    {
        say!("airpath: {error}");
    }
    if let Ok(text) = serde_json::to_vec(&manifest) {
        hand_over(request, &text);
    }
}
