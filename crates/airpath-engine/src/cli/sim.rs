//! The options of `airpath sim`.

use std::path::PathBuf;

use airpath_core::Span;
use airpath_log::{Level, Snaplen};
use clap::Args;

use super::{LinkArgs, mtu_bytes};

const EXAMPLES: &str = "\
Examples:
  airpath sim --profile gsm-data-9.6k --workload 'tcp bytes=102400 from=server cc=reno'
  airpath sim --scenario train.toml --workload 'quic bytes=1MB' --replications 100 --jobs 2
  airpath sim --rate '1 Mbit/s' --delay '50 ms' --duration '60 s' --out results/mixed \\
      --workload 'tcp' --workload 'cbr rate=\"64 kbit/s\" size=200 from=client start=\"10 s\"'

A workload is KIND key=value …; `from` names the end that sends. The kinds are tcp, request, quic,
cbr, poisson, on-off, saturate, media and pcap; a word that fits none of their keys is answered by a
list of those that do.
Exit status: 0 if every workload did what it was to do, 1 if one did not, 2 if the options, the
scenario or a workload are wrong, 125 if airpath fails.";

/// `airpath sim`.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct SimArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    /// What runs between the two ends; may be given several times.
    #[arg(long, value_name = "WORKLOAD", help_heading = "The ends")]
    pub workload: Vec<String>,
    /// The MTU of both ends in bytes.
    #[arg(long, value_name = "BYTES", value_parser = mtu_bytes(), help_heading = "The ends")]
    pub mtu: Option<u32>,
    /// End the run at this time; without it, it ends when every workload has.
    #[arg(long, value_name = "TIME", help_heading = "The run")]
    pub duration: Option<Span>,
    /// The seed of all random draws; chosen and recorded if not given.
    #[arg(long, value_name = "N", help_heading = "The run")]
    pub seed: Option<u64>,
    /// How often to run it, each time with the next seed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "The run")]
    pub replications: u32,
    /// How many replications at a time, each in a thread of its own.
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "The run")]
    pub jobs: u32,
    /// Write the run into this folder.
    #[arg(long, value_name = "DIR", help_heading = "The run")]
    pub out: Option<PathBuf>,
    /// What to record: none, counters, events or packets [default: packets with --out, else counters].
    #[arg(long, value_name = "LEVEL", help_heading = "The run")]
    pub log: Option<Level>,
    /// How many bytes of each packet to record, or full.
    #[arg(long, value_name = "BYTES", default_value = "128", help_heading = "The run")]
    pub snaplen: Snaplen,
    /// Print no summary.
    #[arg(long, short, help_heading = "The run")]
    pub quiet: bool,
    /// Print the summary as JSON.
    #[arg(long, help_heading = "The run", conflicts_with = "quiet")]
    pub json: bool,
    /// Print the scenario that the options mean, and do nothing else.
    #[arg(long, help_heading = "The run")]
    pub print_scenario: bool,
}
