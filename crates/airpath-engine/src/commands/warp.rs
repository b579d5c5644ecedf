// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath warp`: the kernel for runs in virtual time.

use std::thread::available_parallelism;

use airpath_warp::{WarpError, build, cache};

use crate::cli::warp::{WarpAction, WarpArgs};
use crate::error::{Failure, Result};
use crate::status;
use crate::terminal::{say, show};

/// Builds the kernel, or tells whether there is one.
///
/// # Errors
/// When it cannot be built.
pub fn run(args: &WarpArgs) -> Result<i32> {
    let WarpAction::Setup { check, jobs, source } = &args.action;
    if *check {
        return Ok(match cache::find() {
            Ok(kernel) => {
                show!("{}\n", kernel.path().display());
                0
            }
            Err(error) => {
                say!("airpath: {error}");
                status::UNDONE
            }
        });
    }
    let jobs = jobs.map_or_else(|| available_parallelism().map_or(1, std::num::NonZero::get), usize::from);
    let options = build::Options { jobs, source: source.clone() };
    match build::setup(&options, &mut |line| say!("airpath: {line}")) {
        Ok(kernel) => {
            show!("{}\n", kernel.path().display());
            Ok(0)
        }
        Err(WarpError::Interrupted(signal)) => {
            say!("airpath: aborted; no files were left behind");
            Ok(status::of_signal(signal))
        }
        Err(error) => Err(Failure::warp(error)),
    }
}
