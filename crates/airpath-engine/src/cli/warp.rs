// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath warp` and the options of runs in virtual time.

use std::path::PathBuf;

use airpath_core::Span;
use clap::{Args, Subcommand};

/// The examples of `airpath warp`.
pub const EXAMPLES: &str = "\
Examples:
  airpath warp setup            # once, some minutes
  airpath exec --clock warp --profile gsm-data-9.6k -- ping -c 100 server";

/// `airpath warp`.
#[derive(Args, Debug)]
pub struct WarpArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub action: WarpAction,
}

/// `airpath warp …`.
#[derive(Subcommand, Debug)]
pub enum WarpAction {
    /// Build the virtual-time kernel, if there is none yet.
    #[command(after_help = "Example:\n  airpath warp setup --jobs 4")]
    Setup {
        /// Only check for the kernel: exit status 0 if it exists, else 1.
        #[arg(long)]
        check: bool,
        /// Number of parallel compiler processes [default: one per CPU].
        #[arg(long, short, value_name = "J", value_parser = clap::value_parser!(u16).range(1..=256))]
        jobs: Option<u16>,
        /// Source tarball of Linux 6.12 to use instead of the distribution's package.
        #[arg(long, value_name = "FILE")]
        source: Option<PathBuf>,
    },
}

/// Limits of a run in virtual time.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Virtual time")]
pub struct WarpLimits {
    /// With --clock warp: limit on the real time of a run [default: 10 min].
    #[arg(long, value_name = "TIME")]
    pub wall_limit: Option<Span>,
    /// With --clock warp: limit on the real time without progress of virtual time [default: 30 s].
    #[arg(long, value_name = "TIME")]
    pub stall_limit: Option<Span>,
}

impl WarpLimits {
    /// The name of an option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let options = [("--wall-limit", self.wall_limit), ("--stall-limit", self.stall_limit)];
        options.into_iter().find_map(|(name, value)| value.map(|_| name))
    }
}
