// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath record`.

use std::path::PathBuf;

use airpath_clocks::simulated::Error;
use airpath_core::{Rate, Span};
use airpath_load::server::DEFAULT_PORT;
use clap::{Args, ValueEnum};

use super::clocks::divide;
use super::load::bytes;

/// The examples of `airpath record`.
pub const EXAMPLES: &str = "\
Examples:
  airpath recv --listen ::                                             # on the other host
  airpath record --to other.example --out results/path                 # on this one
  airpath record --to other.example --out results/path --mode light --duration '60 s'
  airpath record --to other.example --out results/path --train 10      # as CellReplay does
  airpath record --from results/path --json                            # estimate again, without the network
  airpath exec --scenario results/path/scenario.toml -- ping server    # replay
  airpath exec --rate '5 Mbit/s' --delay '20 ms' --server 'airpath recv --once' -- airpath record --to server --out path

Exit status: 0 if everything was recorded; 1 if it was not, or only a part; 2 if the options are invalid;
128 + N if signal N ended it. What was recorded before is kept in each case.";

/// Loads of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Saturating, then light.
    Both,
    /// Saturating alone: capacity, queue, reordering.
    Saturate,
    /// Light alone: delay, losses.
    Light,
}

/// `airpath record`.
#[derive(Args, Debug)]
pub struct RecordArgs {
    /// The host of `airpath recv`: a name or an address, with a port if it is not 5201.
    #[arg(long, value_name = "HOST[:PORT]", required_unless_present = "from")]
    pub to: Option<Target>,
    /// Directory of the recording: new, or empty.
    #[arg(long, value_name = "DIR", required_unless_present = "from")]
    pub out: Option<PathBuf>,
    /// Estimate the recording in this directory again, without the network.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["to", "out", "mode", "duration", "max_bytes", "rate_limit", "uplink_only", "downlink_only", "length", "light_length", "train", "light_interval", "queue_delay", "synchronised"])]
    pub from: Option<PathBuf>,
    /// Loads: saturating (capacity, queue, reordering), light (delay, losses), or both.
    #[arg(long, value_enum, default_value = "both")]
    pub mode: Mode,
    /// Duration of each phase: saturating uplink, saturating downlink, light.
    #[arg(long, value_name = "TIME", default_value = "10 s")]
    pub duration: Span,
    /// Maximum number of bytes to send, both directions together.
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "500 MB")]
    pub max_bytes: u64,
    /// Maximum rate of sending in a direction.
    #[arg(long, value_name = "RATE", default_value = "200 Mbit/s")]
    pub rate_limit: Rate,
    /// Record the direction to the other host only.
    #[arg(long, conflicts_with = "downlink_only")]
    pub uplink_only: bool,
    /// Record the direction from the other host only.
    #[arg(long)]
    pub downlink_only: bool,
    /// Length of the packets of the saturating load in bytes, with headers [default: what the path carries, at most 1500].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub length: Option<u64>,
    /// Length of the packets of the light load in bytes, with headers [default: 100; with --train that of the saturating
    /// load].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub light_length: Option<u64>,
    /// Packets of each train of the light load; with more than one, the scenario replays the path under light and heavy
    /// load by the rate `cellreplay`.
    #[arg(long, value_name = "PACKETS", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub train: u32,
    /// Interval of the packets of the light load [default: ten times the transmission time, at least 10 ms].
    #[arg(long, value_name = "TIME")]
    pub light_interval: Option<Span>,
    /// Queueing delay up to which the saturating load fills the queue at its end.
    #[arg(long, value_name = "TIME", default_value = "2 s")]
    pub queue_delay: Span,
    /// The clocks of both hosts are synchronised more exactly than the path allows to compare them.
    #[arg(long)]
    pub synchronised: bool,
    /// Print the estimates as JSON.
    #[arg(long)]
    pub json: bool,
    /// Simulated error of this host's clock, OFFSET_NS,DRIFT_PPM[,STEP_NS,STEP_AFTER_NS], for tests.
    #[arg(long, value_name = "ERROR", hide = true, allow_hyphen_values = true)]
    pub simulated_error: Option<Error>,
}

/// A host with `airpath recv`, and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl std::str::FromStr for Target {
    type Err = String;
    fn from_str(text: &str) -> Result<Target, String> {
        let (host, port) = divide(text)?;
        if host.is_empty() {
            return Err("no host is given; write HOST or HOST:PORT".into());
        }
        Ok(Target { host: host.to_owned(), port: port.unwrap_or(DEFAULT_PORT) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_that_of_recv() {
        let parsed = |text: &str| text.parse::<Target>().map(|one| (one.host, one.port));
        assert_eq!(parsed("server"), Ok(("server".into(), DEFAULT_PORT)));
        assert_eq!(parsed("[::1]:99"), Ok(("::1".into(), 99)));
        assert!(parsed(":99").is_err());
    }
}
