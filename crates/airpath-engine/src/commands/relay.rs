// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath relay`: PPP frames between two serial lines, through an emulated link.

use super::exec;
use crate::cli::RelayArgs;
use crate::error::Result;
use crate::link;
use crate::run::from_options::request;
use crate::run::{calibrated, lines};

/// Runs it until a line hangs up, or a signal comes.
///
/// # Errors
/// When the link, a line or the system is not as it should be.
pub fn run(args: &RelayArgs) -> Result<i32> {
    let scenario = link::scenario_to_run(&args.link, args.run.print_scenario, args.run.mtu, args.run.quiet)?;
    let Some(scenario) = scenario else { return Ok(0) };
    link::advise(&args.link, &scenario, args.run.mtu, args.run.quiet)?;
    let mut request = request(&args.run, scenario, Vec::new())?;
    lines::of_relay(&mut request, args)?;
    calibrated::apply(&mut request, &args.run)?;
    exec::start(request, false)
}
