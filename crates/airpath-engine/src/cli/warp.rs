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
    /// What to do.
    #[command(subcommand)]
    pub action: WarpAction,
}

/// `airpath warp …`.
#[derive(Subcommand, Debug)]
pub enum WarpAction {
    /// Build the kernel that travels in time, unless it is there.
    #[command(after_help = "Example:\n  airpath warp setup --jobs 4")]
    Setup {
        /// Only tell whether there is a kernel: exit status 0 if so, else 1.
        #[arg(long)]
        check: bool,
        /// How many compilers at a time [default: one for each processor].
        #[arg(long, short, value_name = "J", value_parser = clap::value_parser!(u16).range(1..=256))]
        jobs: Option<u16>,
        /// A packed source of Linux 6.12 instead of the distribution's package.
        #[arg(long, value_name = "FILE")]
        source: Option<PathBuf>,
    },
}

/// How long a run in virtual time may take.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Virtual time")]
pub struct WarpLimits {
    /// With --clock warp: how long a run may take in real time [default: 10 min].
    #[arg(long, value_name = "TIME")]
    pub wall_limit: Option<Span>,
    /// With --clock warp: for how long of real time the virtual time may stand still [default: 30 s].
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
