// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath replay`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  airpath replay results/train
  airpath replay results/train --out results/train-again

The run needs a complete log of its events (--log events or packets, the default with --out).
The comparison covers every event with all decisions of the link, the positions of flipped bits, and the
lengths of truncated packets. It leaves out the real departure times of a live run.
Exit status: 0 if the traces are identical, 1 if they differ, 2 if the run cannot be replayed, 125 if
airpath fails.";

/// `airpath replay`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// The directory of a run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Write the replay to this directory, as a run of its own. Its packets have lengths but no contents.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}
