//! A run in virtual time: this program again, as the live engine of a guest whose time travels.

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use airpath_core::Span;
use airpath_live::command::search_path;
use airpath_live::{privilege, supervise};
use airpath_log::Manifest;
use airpath_log::manifest::Status;
use airpath_warp::host::{self, Outcome, Plan};
use airpath_warp::job::Job;
use airpath_warp::{WarpError, cache};

use super::{FAILED_STATUS, RunRequest, arguments};
use crate::cli::warp::WarpLimits;
use crate::error::{Failure, Result};
use crate::run::request::Report;
use crate::terminal::say;

/// Refuses what a guest cannot have, and a run for which there is no kernel.
///
/// # Errors
/// Names the option, or what to do for a kernel.
pub fn check(request: &RunRequest) -> Result<()> {
    let refused = match (request.internet, request.host_ports.is_empty()) {
        (true, _) => Some("--internet"),
        (_, false) => Some("--host-port"),
        _ => None,
    };
    if let Some(option) = refused {
        return Err(Failure::usage(format!(
            "{option} does not go with --clock warp: the host's network lives in real time; run both ends behind the \
             link, with --server"
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
        airpath_log::folder::create(folder).map_err(|error| Failure::new(error.to_string()))?;
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
        wall_limit: duration(limits.wall_limit),
        stall_limit: duration(limits.stall_limit),
    };
    if !plan.kernel.is_seeded() && request.report != Report::Nothing {
        say!("airpath: this kernel takes no seed: a run with the same seed will not be the same");
    }
    privilege::acquire(false).map_err(Failure::live)?;
    supervise::run(|process| {
        let outcome = host::run(&process, &plan, &mut |line| say!("airpath: {line}"));
        match outcome {
            Ok(outcome) => finish(request, &outcome),
            Err(error) => {
                mark_failed(request);
                match error {
                    WarpError::Interrupted(signal) => 128 + signal,
                    error => {
                        say!("airpath: {error}");
                        FAILED_STATUS
                    }
                }
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
    let directory =
        std::env::current_dir().map_err(|error| Failure::new(format!("cannot tell the working directory: {error}")))?;
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // What the live engine gives its commands; the guest's cannot tell where this program lies.
    let path = search_path().map(|path| ("PATH".into(), path));
    let others = std::env::vars_os().filter(|(name, _)| path.is_none() || name != "PATH");
    Ok(Job {
        arguments,
        environment: others.chain(path.clone()).collect(),
        directory: directory.into(),
        uid: nix::unistd::geteuid().as_raw(),
        gid: nix::unistd::getegid().as_raw(),
        umask: mask.bits(),
        merged_output: host::outputs_are_one(),
        manifest: request.manifest.is_some(),
        host_name: name.trim().to_owned(),
    })
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.nanos())
}

fn finish(request: &RunRequest, outcome: &Outcome) -> i32 {
    if let (Some(file), Some(manifest)) = (&request.manifest, &outcome.manifest)
        && let Err(error) = (&**file).write_all(manifest)
    {
        say!("airpath: cannot hand the manifest over: {error}");
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

/// The manifest of a run whose guest was taken down still says that it goes on.
fn mark_failed(request: &RunRequest) {
    if let Some(folder) = &request.out
        && let Ok(manifest) = Manifest::read(folder)
        && manifest.status == Status::Running
        && let Err(error) = (Manifest { status: Status::Failed, ..manifest }).write(folder)
    {
        say!("airpath: {error}");
    }
}
