// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath-engine bound`: becomes another program that dies with the process that started it. A runner that is
//! killed cannot end its replications any more; the kernel does it instead.

use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::getppid;

use crate::cli::BoundArgs;
use crate::error::{Failure, Result};

/// Asks for the signal, and becomes the program.
///
/// # Errors
/// A parent that has ended, or a program that cannot be executed.
pub fn run(args: &BoundArgs) -> Result<Infallible> {
    let (name, arguments) = args.command.split_first().ok_or_else(|| Failure::usage("there is no program"))?;
    set_pdeathsig(Signal::SIGKILL).map_err(|errno| Failure::new(format!("cannot be bound: {errno}")))?;
    // Had the parent ended before the request, nobody would ever be told.
    if getppid().as_raw() != args.parent {
        return Err(Failure::new(format!("process {}, which is to end this one, is not its parent", args.parent)));
    }
    let error = Command::new(name).args(arguments).exec();
    Err(Failure::new(format!("cannot start {}: {error}", name.to_string_lossy())))
}
