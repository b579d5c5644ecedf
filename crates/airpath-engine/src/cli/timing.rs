// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath timing`.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::calibrate::{self, CalibrateArgs};
use super::clocks::{CORRECT_EXAMPLES, CorrectArgs, SYNC_EXAMPLES, SyncArgs};

/// Examples of all of `airpath timing`; those of the study work where it is built.
pub const EXAMPLES: &str = "\
Examples:
  airpath timing calibrate                 # once, while the machine is quiet
  airpath timing host
  airpath timing sync --status

The study of sleep methods (studies/gurtov-1999) measures how exactly programs wake. It is built with
  cargo build --release -p airpath-sleep-study
and then answers all other options of `airpath timing`:
  airpath timing --quick                   # a first look, half a minute
  airpath timing methods --help            # which sleep methods there are
  airpath timing --out results/timing --help   # all options of a measurement
  airpath timing plot results/timing       # pictures; airpath timing table: the same as Markdown";

/// `airpath timing`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct TimingArgs {
    /// Subcommand.
    #[command(subcommand)]
    pub action: Option<TimingAction>,
    /// A measurement by the study of sleep methods, with these options.
    #[arg(value_name = "OPTIONS OF THE STUDY", trailing_var_arg = true, allow_hyphen_values = true)]
    pub study: Vec<OsString>,
}

/// `airpath timing …`.
#[derive(Subcommand, Debug)]
pub enum TimingAction {
    /// Find and store the best timer settings for live runs on this machine.
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(CalibrateArgs),
    /// Print the facts about this machine that affect timing: clocks, idle states, frequencies, limits.
    #[command(after_help = HOST_EXAMPLES)]
    Host(HostArgs),
    /// Compare the clocks of this host and another.
    #[command(after_help = SYNC_EXAMPLES)]
    Sync(SyncArgs),
    /// Convert the timestamps of a run or capture to the clock of the other host.
    #[command(after_help = CORRECT_EXAMPLES)]
    Correct(CorrectArgs),
    /// List the sleep methods of the study, their requirements, and their availability here.
    #[command(disable_help_flag = true)]
    Methods(StudyArgs),
}

/// `airpath timing host`.
#[derive(Args, Debug)]
pub struct HostArgs {
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A command of the study.
#[derive(Args, Debug)]
pub struct StudyArgs {
    /// Its options.
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub options: Vec<OsString>,
}

const HOST_EXAMPLES: &str = "\
Examples:
  airpath timing host
  airpath timing host --json | jq .idle.states";
