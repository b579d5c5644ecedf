// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::command::Command;
use crate::targets::Target;

/// Give mutated inputs to everything in Rust that reads what somebody else wrote.
#[derive(Parser, Clone, Debug)]
#[command(name = "airpath-fuzz")]
pub struct Arguments {
    /// Only these targets (separated by commas) [default: all].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TARGET")]
    pub target: Vec<Target>,
    /// Give inputs to the commands of this engine instead, each to a process of its own.
    #[arg(long, value_name = "ENGINE")]
    pub through: Option<PathBuf>,
    /// With --through: only these commands (separated by commas) [default: all].
    #[arg(long, value_enum, value_delimiter = ',', value_name = "COMMAND", requires = "through")]
    pub command: Vec<Command>,
    /// Stop each target after so many inputs [default: 20000, unless --seconds is given].
    #[arg(long, value_name = "N")]
    pub inputs: Option<u64>,
    /// Stop each target after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<f64>,
    /// The seed of all inputs; drawn and printed if not given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Begin with this input of the seed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// Give this file to the target and do nothing else.
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Number of parallel workers [default: as many as there are processors].
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Memory limit of a worker, or a command, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 2_000)]
    pub memory: u64,
    /// Time limit of one input, in seconds [default: 10; with --through 12].
    #[arg(long, value_name = "SECONDS")]
    pub limit: Option<f64>,
    /// The folder of seeds, with one folder for each target.
    #[arg(long, value_name = "DIR", default_value = "fuzz/corpus")]
    pub corpus: PathBuf,
    /// Directory for inputs that break something.
    #[arg(long, value_name = "DIR", default_value = "fuzz/findings")]
    pub findings: PathBuf,
    /// Be worker N of --jobs, and note in this file which input is at work.
    #[arg(long, hide = true, num_args = 1, requires = "progress")]
    pub worker: Option<usize>,
    /// See --worker.
    #[arg(long, hide = true)]
    pub progress: Option<PathBuf>,
}

/// Inputs of a target, unless something else is asked for.
const INPUTS: u64 = 20_000;

impl Arguments {
    /// Number of workers.
    pub fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
    }

    /// The number behind that of the last input.
    pub fn end(&self) -> u64 {
        match (self.inputs, self.seconds) {
            (Some(inputs), _) => self.first.saturating_add(inputs),
            (None, Some(_)) => u64::MAX,
            (None, None) => self.first + INPUTS,
        }
    }

    /// Time limit of one input.
    pub fn limit(&self) -> Duration {
        let default = if self.through.is_some() { 12.0 } else { 10.0 };
        Duration::from_secs_f64(self.limit.unwrap_or(default).clamp(0.001, 86_400.0))
    }

    /// The targets asked for.
    pub fn targets(&self) -> Vec<Target> {
        if self.target.is_empty() { Target::ALL.to_vec() } else { self.target.clone() }
    }

    /// The commands asked for.
    pub fn commands(&self) -> Vec<Command> {
        if self.command.is_empty() { Command::ALL.to_vec() } else { self.command.clone() }
    }
}
