//! `airpath timing`: how well this machine keeps time.

use clap::{Args, Subcommand};

use super::calibrate::{self, CalibrateArgs};

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
    /// Find the settings by which live runs meet a bound on lateness at the least cost on this machine.
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(CalibrateArgs),
}
