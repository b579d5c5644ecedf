//! `airpath timing`.

use clap::{Args, Subcommand};

/// `airpath timing`.
#[derive(Args, Debug)]
pub struct TimingArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: TimingAction,
}

/// `airpath timing …`.
#[derive(Subcommand, Debug)]
pub enum TimingAction {
    /// Tell what of this machine bears on timing: clocks, idle states, frequencies, limits.
    #[command(after_help = HOST_EXAMPLES)]
    Host(HostArgs),
}

/// `airpath timing host`.
#[derive(Args, Debug)]
pub struct HostArgs {
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

const HOST_EXAMPLES: &str = "\
Examples:
  airpath timing host
  airpath timing host --json | jq .idle.states";
