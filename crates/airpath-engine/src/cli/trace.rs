// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath trace`.

use std::path::PathBuf;

use airpath_core::{Bits, Direction, Span};
use clap::{Args, Subcommand};

pub const EXAMPLES: &str = "\
Examples:
  airpath trace show up.trace
  airpath trace convert up.trace up.csv --bin '100 ms'
  airpath trace convert train.csv train.trace
  airpath trace convert '5 Mbit/s' 5mbit.trace
  airpath trace plot up.trace down.trace --out rates.svg
  airpath trace show blocks.txt --from errors
  airpath trace convert frames.g192 frames.txt
  airpath trace fit blocks.txt --out fit.png
  airpath trace generate '{ type = \"bernoulli\", probability = 0.0158 }' blocks.txt --units 12000 --seed 1
  airpath trace generate walls walls.trace --units 10000 --seed 1
  airpath trace show walls.trace

Formats of rates are mahimahi (mm-link: one time in milliseconds per line), csv and json (times and rates), and
netem-trace (the JSON of rattan). Formats of errors are errors (records, digits or bytes 0 and 1, or the words of an
error pattern of ITU-T G.191), positions (a list) and g191-compact (a bit for each). The input format is
detected from the content; name positions and g191-compact with --from, and digits that could be times of
mm-link too. The output format of rates is detected from the file name: .csv, .json, .netem.json, anything else
for mm-link; errors are written as records, or with --to positions as a list.";

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
    /// Print the duration and the rates of a trace, or the number and the bursts of its errors.
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
    /// The format of the input: mahimahi, csv, json, netem-trace, errors, positions or g191-compact.
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
    /// Of a list of positions: number of packets, frames, bits or blocks [default: up to the last position].
    #[arg(long, value_name = "N")]
    pub units: Option<u64>,
}

/// `airpath trace show`.
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// A trace.
    pub input: PathBuf,
    /// Its format: mahimahi, csv, json, netem-trace, errors, positions or g191-compact.
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
    /// With --json, of an error trace: include the length of every run without errors and of errors, in turn.
    #[arg(long, requires = "json", conflicts_with = "points")]
    pub runs: bool,
    /// Of an error trace with losses, cuts and flips: length of the packets, by which bit errors are counted; what
    /// the trace does behind it does not count.
    #[arg(long, value_name = "LENGTH", default_value = "1408 bytes")]
    pub length: Bits,
    /// Of a list of positions: number of packets, frames, bits or blocks [default: up to the last position].
    #[arg(long, value_name = "N")]
    pub units: Option<u64>,
}

/// `airpath trace generate`.
#[derive(Args, Debug)]
pub struct GenerateArgs {
    /// The error process, as in a scenario: '{ type = "bernoulli", probability = 0.01 }'; or the name of an
    /// environment: office, walking, adjacent, table or walls.
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
    #[arg(long, value_name = "NAME", default_value = "radio", value_parser = hop)]
    pub hop: String,
    /// Direction whose draws to make: uplink or downlink.
    #[arg(long, value_name = "DIRECTION", default_value = "uplink", value_parser = direction)]
    pub direction: Direction,
    /// Do not print the share of hits.
    #[arg(long, short)]
    pub quiet: bool,
}

fn hop(word: &str) -> Result<String, String> {
    match word.trim().is_empty() {
        true => Err("a hop has a name; leave the option out for \"radio\"".into()),
        false => Ok(word.into()),
    }
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
    /// Errors as records, digits, bytes or words of ITU-T G.191.
    Errors,
    /// Errors by their positions.
    Positions,
    /// Errors as the bits of a compact pattern of ITU-T G.191.
    Compact,
}

impl Format {
    /// All with their names.
    pub const ALL: [(Format, &'static str); 7] = [
        (Format::Mahimahi, "mahimahi"),
        (Format::Csv, "csv"),
        (Format::Json, "json"),
        (Format::NetemTrace, "netem-trace"),
        (Format::Errors, "errors"),
        (Format::Positions, "positions"),
        (Format::Compact, "g191-compact"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Format::ALL[self as usize].1
    }

    /// True if it is one of error traces.
    pub fn is_of_errors(self) -> bool {
        matches!(self, Format::Errors | Format::Positions | Format::Compact)
    }
}

impl std::str::FromStr for Format {
    type Err = String;
    fn from_str(text: &str) -> Result<Format, String> {
        Format::ALL.into_iter().find(|(_, name)| *name == text).map(|(format, _)| format).ok_or_else(|| {
            let names = Format::ALL.map(|(_, name)| name);
            format!("`{text}` is not a trace format; use one of {}", names.join(", "))
        })
    }
}
