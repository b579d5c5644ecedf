// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath sim`.

use std::path::PathBuf;

use airpath_core::Span;
use airpath_log::{Level, Snaplen};
use clap::Args;

use super::{FramesArg, LinkArgs, mtu_bytes};

const EXAMPLES: &str = "\
Examples:
  airpath sim --profile gsm-data-9.6k --workload 'tcp bytes=102400 from=server cc=reno'
  airpath sim --scenario train.toml --workload 'quic bytes=1MB' --replications 100 --jobs 2
  airpath sim --scenario cell.toml --workload 'tcp bytes=1MB' --workload 'media user=alice bitrate=\"1 Mbit/s\" frames=250'
  airpath sim --rate '1 Mbit/s' --delay '50 ms' --duration '60 s' --out results/mixed \\
      --workload 'tcp' --workload 'cbr rate=\"64 kbit/s\" size=200 from=client start=\"10 s\"'

A workload is KIND key=value …; `from` names the sending end, `user` the user of a cell. Without
`user`, every user has such a workload, with a flow of its own. The kinds are tcp, request, quic, cbr,
poisson, on-off, saturate, media, adaptive-media and pcap. An unknown key produces an error that lists the valid keys.
Exit status: 0 if every workload completed, 1 if one did not, 2 if the options, the scenario or a
workload are invalid, 125 if airpath fails.";

/// `airpath sim`.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct SimArgs {
    #[command(flatten)]
    pub link: LinkArgs,
    /// Traffic between the two ends; may be given several times.
    #[arg(long, value_name = "WORKLOAD", help_heading = "Ends")]
    pub workload: Vec<String>,
    /// MTU of both ends in bytes.
    #[arg(long, value_name = "BYTES", value_parser = mtu_bytes(), help_heading = "Ends")]
    pub mtu: Option<u32>,
    /// End the run at this time [default: when every workload has ended].
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    pub duration: Option<Span>,
    /// Random seed [default: chosen and recorded].
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Number of runs, each with the next seed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Run")]
    pub replications: u32,
    /// Number of parallel replications, each in its own thread.
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256), help_heading = "Run")]
    pub jobs: u32,
    /// Write the files of the run to this directory.
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub out: Option<PathBuf>,
    /// Level of recording: none, counters, events or packets [default: packets with --out, else counters].
    #[arg(long, value_name = "LEVEL", help_heading = "Run")]
    pub log: Option<Level>,
    /// Bytes of each packet to record, or full.
    #[arg(long, value_name = "BYTES", default_value = "128", help_heading = "Run")]
    pub snaplen: Snaplen,
    /// Records of single frames: on, or off. They are counted in any case [default: off in a cell with a medium of
    /// resources, which has 100 000 of them a second, else on].
    #[arg(long, value_name = "HOW", value_enum, help_heading = "Run")]
    pub frames: Option<FramesArg>,
    /// Print no summary.
    #[arg(long, short, help_heading = "Run")]
    pub quiet: bool,
    /// Print the summary as JSON, to standard output.
    #[arg(long, help_heading = "Run", conflicts_with = "quiet")]
    pub json: bool,
    /// Print the resulting scenario and exit.
    #[arg(long, help_heading = "Run")]
    pub print_scenario: bool,
}
