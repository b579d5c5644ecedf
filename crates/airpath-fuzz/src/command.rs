// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The commands of the engine that inputs go through.

use crate::targets::Target;

/// A command of the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Command {
    /// `check` of a scenario.
    Check,
    /// `--print-scenario`.
    PrintScenario,
    /// `sim` over a scenario.
    Sim,
    /// `trace show` and `trace convert`.
    Trace,
    /// `sim` with a capture as workload.
    Pcap,
    /// `log` of a run, as a table, as packets, and as the state of TCP.
    Log,
    /// `replay` of a run.
    Replay,
}

impl Command {
    /// All of them.
    pub const ALL: [Command; 7] = [
        Command::Check,
        Command::PrintScenario,
        Command::Sim,
        Command::Trace,
        Command::Pcap,
        Command::Log,
        Command::Replay,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Command::Check => "check",
            Command::PrintScenario => "print-scenario",
            Command::Sim => "sim",
            Command::Trace => "trace",
            Command::Pcap => "pcap",
            Command::Log => "log",
            Command::Replay => "replay",
        }
    }

    /// Target whose seeds the command gets.
    pub fn target(self) -> Target {
        match self {
            Command::Check | Command::PrintScenario | Command::Sim => Target::Scenario,
            Command::Trace | Command::Pcap => Target::Traces,
            Command::Log | Command::Replay => Target::Runs,
        }
    }
}
