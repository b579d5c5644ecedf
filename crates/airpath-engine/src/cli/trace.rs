// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath trace`.

use std::path::PathBuf;

use airpath_core::{Direction, Span};
use clap::{Args, Subcommand};

pub const EXAMPLES: &str = "\
Examples:
  airpath trace show up.trace
  airpath trace convert up.trace up.csv --bin '100 ms'
  airpath trace convert train.csv train.trace
  airpath trace convert '5 Mbit/s' 5mbit.trace
  airpath trace plot up.trace down.trace --out rates.svg
  airpath trace generate '{ type = \"bernoulli\", probability = 0.0158 }' blocks.txt --units 12000 --seed 1

Formats of rates are mahimahi (mm-link: one time in milliseconds per line), csv and json (times and rates), and
netem-trace (the JSON of rattan). The input format is detected from the content, the output format from
the file name: .csv, .json, .netem.json, anything else for mm-link.";

/// `airpath trace`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TraceArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// `airpath trace …`.
#[derive(Subcommand, Debug)]
pub enum TraceAction {
    /// Convert a trace, or a constant rate, to another format.
    Convert(ConvertArgs),
    /// Print the duration and the rates of a trace.
    Show(ShowArgs),
    /// Draw a trace of errors from an error process.
    Generate(GenerateArgs),
}

/// `airpath trace convert`.
#[derive(Args, Debug)]
pub struct ConvertArgs {
    /// A trace, or a rate such as '5 Mbit/s'.
    pub input: String,
    /// Output file; - for standard output.
    pub output: PathBuf,
    /// The format of the input: mahimahi, csv, json or netem-trace.
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// The format of the output.
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<Format>,
    /// Bin size for converting mm-link opportunities to a rate.
    #[arg(long, value_name = "TIME", default_value = "1 ms")]
    pub bin: Span,
    /// Duration to convert; a shorter input repeats.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Span>,
}

/// `airpath trace show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// A trace.
    pub input: PathBuf,
    /// Its format: mahimahi, csv, json or netem-trace.
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// Bin size for converting mm-link opportunities to a rate.
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub bin: Span,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
    /// With --json: include every time and rate.
    #[arg(long, requires = "json")]
    pub points: bool,
}

/// `airpath trace generate`.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// The error process, as in a scenario: '{ type = "bernoulli", probability = 0.01 }'.
    pub errors: String,
    /// Output file; - for standard output.
    pub output: PathBuf,
    /// Number of units: packets, frames, bits or blocks, as the scenario says that uses the trace.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub units: u64,
    /// Random seed [default: chosen and recorded in the file].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Name of the hop whose draws to make: a run with the same seed and a hop of this name has the same errors per
    /// packet or frame.
    #[arg(long, value_name = "NAME", default_value = "radio")]
    pub hop: String,
    /// Direction whose draws to make: uplink or downlink.
    #[arg(long, value_name = "DIRECTION", default_value = "uplink", value_parser = direction)]
    pub direction: Direction,
    /// Do not print the share of hits.
    #[arg(long, short)]
    pub quiet: bool,
}

fn direction(word: &str) -> Result<Direction, String> {
    airpath_log::render::parse_direction(word).map_err(|error| error.to_string())
}

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// mm-link's.
    Mahimahi,
    /// Lines of time and rate.
    Csv,
    /// Points of time and rate.
    Json,
    /// The models of netem-trace.
    NetemTrace,
}

impl Format {
    /// All with their names.
    pub const ALL: [(Format, &'static str); 4] = [
        (Format::Mahimahi, "mahimahi"),
        (Format::Csv, "csv"),
        (Format::Json, "json"),
        (Format::NetemTrace, "netem-trace"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Format::ALL[self as usize].1
    }
}

impl std::str::FromStr for Format {
    type Err = String;
    fn from_str(text: &str) -> Result<Format, String> {
        Format::ALL
            .into_iter()
            .find(|(_, name)| *name == text)
            .map(|(format, _)| format)
            .ok_or_else(|| format!("`{text}` is not a trace format; use mahimahi, csv, json or netem-trace"))
    }
}
