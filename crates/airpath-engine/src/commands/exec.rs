// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath exec`: a command behind an emulated link.

use airpath_live::addressing::Nesting;
use airpath_live::session::ServerEnds;
use airpath_log::Clock;
use airpath_warp::guest::is_guest;

use super::launch::launch;
use super::near;
use crate::cli::ExecArgs;
use crate::error::{Failure, Result};
use crate::link;
use crate::run::from_options::request_of_links;
use crate::run::{
    RunRequest, calibrated, commands, conclude, lines, links, live, replications, summary_of_links, warp,
};
use crate::terminal::say;

/// Runs it once, or as often as asked; the exit status is the command's.
///
/// # Errors
/// When the link, the folder or the system is not as it should be.
pub fn run(args: &ExecArgs) -> Result<i32> {
    let scenario = link::scenario_to_run(&args.link, args.run.print_scenario, args.run.mtu, args.run.quiet)?;
    let Some(scenario) = scenario else { return Ok(0) };
    if args.clock == Clock::Virtual {
        return Err(Failure::usage(
            "programs need --clock live or warp; `airpath sim` runs built-in workloads in virtual time",
        ));
    }
    if args.clock != Clock::Warp
        && let Some(option) = args.limits.given()
    {
        return Err(Failure::usage(format!(
            "{option} needs --clock warp; to limit a live run, put `timeout SECONDS` before the command"
        )));
    }
    if !is_guest() {
        link::advise(&args.link, &scenario, args.run.mtu, args.run.quiet)?;
    }
    if args.replications > 1 && matches!(args.run.json, Some(Some(_))) {
        return Err(Failure::usage(
            "--json FILE is for one run; of --replications each has a run.json below the folder of --out",
        ));
    }
    if args.replications > 1 {
        links::refuse(&scenario, "--replications")?;
        return replications::run(args, &scenario);
    }
    let mut request = request_of_links(&args.run, scenario, args.command.clone())?;
    commands::of_exec(&mut request, args)?;
    lines::of_command(&mut request, &args.lines, args.clock)?;
    if args.clock == Clock::Warp && !is_guest() {
        return warp::run(&request, &args.limits);
    }
    if !is_guest() {
        calibrated::apply(&mut request, &args.run)?;
    }
    // Inside another link, a run without a server of its own leads on to what is around it.
    request.enclosing |= args.server.is_none() && args.lines.server_ppp.is_none() && nested()?;
    if request.enclosing && request.server_ends == ServerEnds::Each {
        return Err(Failure::usage(
            "--server-ends each needs servers of the run's own; inside another link add --server, or leave it out",
        ));
    }
    start(request, args.run.install_engine)
}

/// True if this process is already behind an emulated link.
///
/// # Errors
/// When the environment tells a bad depth.
pub fn nested() -> Result<bool> {
    Ok(Nesting::from_environment().map_err(Failure::live)?.is_nested())
}

/// Runs `request` in an engine process of its own, or in one on each host of its hops.
///
/// # Errors
/// When the run cannot be set up.
pub fn start(request: RunRequest, install_engine: bool) -> Result<i32> {
    if request.clock == Clock::Live && request.scenario.is_placed() {
        return near::start(request, install_engine);
    }
    launch(request, |process, request| {
        let finished = match request.links() {
            Ok(links) if links.len() > 1 => {
                live::run_links(&process, request, &links, links.iter().map(|_| None).collect())
                    .and_then(|outcomes| summary_of_links::conclude_links(request, &links, outcomes))
            }
            _ => live::run(&process, request, None).and_then(|outcome| conclude::conclude(request, outcome)),
        };
        finished.unwrap_or_else(|failure| {
            say!("airpath: {failure}");
            failure.status()
        })
    })
}
