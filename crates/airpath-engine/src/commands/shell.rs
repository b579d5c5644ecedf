// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath shell`: the user's shell behind an emulated link.

use airpath_log::Clock;

use super::exec;
use crate::cli::ShellArgs;
use crate::error::{Failure, Result};
use crate::link;
use crate::run::from_options::request_of_links;
use crate::run::{calibrated, commands, greeting, lines};

/// Runs it; the exit status is the shell's.
///
/// # Errors
/// When the link or the system is not as it should be.
pub fn run(args: &ShellArgs) -> Result<i32> {
    let scenario = link::scenario_to_run(&args.link, args.run.print_scenario, args.run.mtu, args.run.quiet)?;
    let Some(scenario) = scenario else { return Ok(0) };
    link::advise(&args.link, &scenario, args.run.mtu, args.run.quiet)?;
    let command = if args.command.is_empty() {
        vec![std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())]
    } else {
        args.command.clone()
    };
    let name = scenario.name.clone();
    let mut request = request_of_links(&args.run, scenario, command)?;
    if args.command.is_empty() && !args.no_banner && !args.run.quiet {
        request.environment = greeting::greet(&args.link, name.as_deref(), &request.machine, &request.clients[0][0]);
    }
    commands::of_shell(&mut request, args)?;
    if let Some(line) = &args.lines.client_ppp {
        return Err(Failure::usage(format!(
            "--client-ppp {line}: the shell would have no link; use `airpath exec --client-ppp`, or --server-ppp"
        )));
    }
    lines::of_command(&mut request, &args.lines, Clock::Live)?;
    calibrated::apply(&mut request, &args.run)?;
    request.enclosing |= args.lines.server_ppp.is_none() && exec::nested()?;
    exec::start(request, args.run.install_engine)
}
