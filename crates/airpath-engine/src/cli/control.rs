// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath runs`, `airpath state` and `airpath set`.

use clap::Args;

const STATE_EXAMPLES: &str = "\
Examples:
  airpath state tunnel                    # the only active run
  airpath state results/train tunnel
  airpath state 2 initial                 # the initial state; 2 is the number in `airpath runs`
  airpath state alice.tunnel              # one user; `tunnel` is that of all who have it";

const SET_EXAMPLES: &str = "\
Examples:
  airpath set radio.link.rate='64 kbit/s'
  airpath set results/train radio.link.blackout=drop
  airpath set 2 radio.uplink.rate='1 Mbit/s' radio.link.propagation='80 ms'   # simultaneously
  airpath set alice.radio.downlink.propagation='80 ms'   # one user; without `alice.` all users";

/// `airpath runs`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  airpath runs\n\nColumns: number, time, state, folder, command; of a cell, states and commands with their users\nwhere they differ."
)]
pub struct RunsArgs {
    /// Print JSON, one object per line.
    #[arg(long)]
    pub json: bool,
}

/// `airpath state`.
#[derive(Args, Debug)]
#[command(after_help = STATE_EXAMPLES, override_usage = "airpath state [OPTIONS] [RUN] NAME")]
pub struct StateArgs {
    /// The run (its number, directory, or last part of the directory; optional if only one is active), and the state.
    #[arg(required = true, num_args = 1..=2, value_name = "RUN NAME")]
    pub words: Vec<String>,
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `airpath set`.
#[derive(Args, Debug)]
#[command(after_help = SET_EXAMPLES, override_usage = "airpath set [OPTIONS] [RUN] PARAMETER=VALUE...")]
pub struct SetArgs {
    /// The run (its number, directory, or last part of the directory; optional if only one is active), and parameters
    /// with their values, all set simultaneously.
    #[arg(required = true, value_name = "RUN PARAMETER=VALUE")]
    pub words: Vec<String>,
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
}
