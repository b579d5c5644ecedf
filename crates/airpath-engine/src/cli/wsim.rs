// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath wsim`.

use std::path::PathBuf;

use clap::Args;

use crate::wsim::{Dropped, Headers, Protocol, THESIS_BLOCK_DATA_BYTES, TraceUnit, Units, Within};

const EXAMPLES: &str = "\
Examples:
  airpath wsim --input mom.263 --trace blocks.txt --adu-size 500 --protocol udp --out damaged.263
  airpath wsim --input mom.263 --units h263 --adu-size 500 --protocol udp-lite --out damaged.263 \\
      --trace blocks.txt --repeat --offset 2000 --dropped zeros --positions damaged.csv
  airpath wsim --input clip.h264 --units h264 --adu-size 1000 --protocol udp-lite --coverage 40 \\
      --errors '{ type = \"bernoulli\", probability = 0.0158 }' --seed 7 --out damaged.h264
  airpath wsim --input - --errors train.toml#radio.downlink --adu-size 200 --protocol udp --out -

Each ADU becomes a packet with 42 bytes of headers (RTP, UDP, IP, PPP), each packet fills radio
blocks of 28 bytes, and each block takes an element of the error trace: the simulator of Singh 2000.
Exit status: 0 if the output was written, 2 if options, input or trace are invalid, 125 if airpath
fails.";

/// `airpath wsim`.
#[derive(Args, Debug, Clone)]
#[command(after_help = EXAMPLES)]
pub struct WsimArgs {
    /// File to send; - for standard input.
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// Output file, which appears whole or not at all; - for standard output.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// List of the output's places that are damaged, zeros or missing, in CSV.
    #[arg(long, value_name = "FILE")]
    pub positions: Option<PathBuf>,
    /// Size of an application data unit (ADU) in bytes; with --units the largest.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Packets")]
    pub adu_size: u32,
    /// Units of the input that become ADUs; larger units are cut.
    #[arg(long, value_name = "UNITS", value_enum, default_value_t = Units::Fixed, help_heading = "Packets")]
    pub units: Units,
    /// Transport protocol.
    #[arg(long, value_name = "PROTOCOL", value_enum, help_heading = "Packets")]
    pub protocol: Protocol,
    /// With udp-lite: checksum coverage, counted from the beginning of the UDP-Lite header (RFC 3828), at least 8; 0 is
    /// the whole datagram [default: the headers].
    #[arg(long, value_name = "BYTES", help_heading = "Packets")]
    pub coverage: Option<u32>,
    /// Sizes of the headers.
    #[arg(long, value_name = "SIZES", value_enum, default_value_t = Headers::Thesis, help_heading = "Packets")]
    pub headers: Headers,
    /// Output in place of an ADU whose packet was dropped.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Dropped::Skip, help_heading = "Packets")]
    pub dropped: Dropped,
    /// Error trace, one element a block: 0 or 1, or records such as `ok 400` (docs/scenario/files.md).
    #[arg(long, value_name = "FILE", required_unless_present = "errors", help_heading = "Radio")]
    pub trace: Option<PathBuf>,
    /// Instead of a trace: an error process, such as '{ type = "bernoulli", probability = 0.0158 }', or that of a
    /// scenario's link, FILE#HOP.uplink.
    #[arg(long, value_name = "TOML|FILE#LINK", conflicts_with_all = ["trace", "offset", "repeat"], help_heading = "Radio")]
    pub errors: Option<String>,
    /// Number of the trace's element with which to begin.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Radio")]
    pub offset: u64,
    /// Begin the trace anew at its end; without this option a trace that is too short is an error.
    #[arg(long, help_heading = "Radio")]
    pub repeat: bool,
    /// Unit that an element of the trace stands for.
    #[arg(long, value_name = "UNIT", value_enum, default_value_t = TraceUnit::Block, help_heading = "Radio")]
    pub trace_unit: TraceUnit,
    /// Data bytes of a radio block. The thesis has 28; GSM data at 9.6 kbit/s carry 24 in the same 20 ms.
    #[arg(long, value_name = "BYTES", default_value_t = THESIS_BLOCK_DATA_BYTES, value_parser = clap::value_parser!(u32).range(1..=65_535), help_heading = "Radio")]
    pub block_data: u32,
    /// Damaged bytes of a block with an error: all, or this share at random. Each becomes another byte at random.
    #[arg(long, value_name = "all|SHARE", default_value_t = Within::All, help_heading = "Radio")]
    pub errors_within: Within,
    /// Random seed of damage and error process [default: chosen and printed].
    #[arg(long, value_name = "N", help_heading = "Radio")]
    pub seed: Option<u64>,
    /// Print no summary.
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the summary as JSON.
    #[arg(long, conflicts_with = "quiet")]
    pub json: bool,
}
