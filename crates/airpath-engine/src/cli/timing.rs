//! The options of `airpath timing`.

use clap::{Args, Subcommand};

use super::clocks::{CORRECT_EXAMPLES, CorrectArgs, SYNC_EXAMPLES, SyncArgs};

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
    /// Compare the clock of this host with that of another.
    #[command(after_help = SYNC_EXAMPLES)]
    Sync(SyncArgs),
    /// Bring a run or a capture onto the clock of the other host.
    #[command(after_help = CORRECT_EXAMPLES)]
    Correct(CorrectArgs),
}
