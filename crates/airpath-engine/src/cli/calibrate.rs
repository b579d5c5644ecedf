// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `airpath timing calibrate`.

use airpath_core::Span;
use airpath_live::engine_loop::share_of_a_core;
use clap::Args;

/// The examples of `airpath timing calibrate`.
pub const EXAMPLES: &str = "\
Examples:
  airpath timing calibrate                            # some seconds
  airpath timing calibrate --bound '50 us' --budget 3%
  airpath timing calibrate --dry-run --json
  airpath timing calibrate --forget

Calibrate while the machine is idle. A disturbed measurement is not stored, except with --force. A stored
calibration is replaced only by a better one, except with --replace.
Exit status: 0 even if the bound cannot be met (the table shows it); 1 if the measurement was disturbed.";

/// `airpath timing calibrate`.
#[derive(Args, Debug, Clone)]
pub struct CalibrateArgs {
    /// Lateness bound that 99 % of packets must meet.
    #[arg(long, value_name = "TIME", default_value = "20 us")]
    pub bound: Span,
    /// CPU budget for busy-waiting, as a share of a core.
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = share_of_a_core)]
    pub budget: u64,
    /// Duration of the measurement in seconds.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=600))]
    pub seconds: u32,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
    /// Only check for a valid calibration: print its file and exit with 0, else with 1.
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    pub check: bool,
    /// Measure, but store nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Store the result even if the measurement was disturbed.
    #[arg(long, conflicts_with = "dry_run")]
    pub force: bool,
    /// Store the result even if the stored calibration is better.
    #[arg(long, conflicts_with = "dry_run")]
    pub replace: bool,
    /// Remove the calibration of this machine and user, and exit.
    #[arg(long, conflicts_with_all = ["check", "dry_run", "json", "force", "replace"])]
    pub forget: bool,
}
