//! The options of `airpath replay`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  airpath replay results/train
  airpath replay results/train --out results/train-again

The run needs a complete log of its events (--log events or packets, the default with --out).
Compared are every event, with all that the link decides, the positions of flipped bits, and what is
left of packets that were cut short; when packets really left a live run is not the link's doing.
Exit status: 0 if the traces are identical, 1 if they differ, 2 if the run cannot be replayed, 125 if
airpath fails.";

/// `airpath replay`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// The folder of a run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Write the replay into this folder, as a run of its own whose packets have a length only.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the outcome as JSON.
    #[arg(long)]
    pub json: bool,
}
