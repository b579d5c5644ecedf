//! The options of `airpath trace`.

use std::path::PathBuf;

use airpath_core::Span;
use clap::{Args, Subcommand};

pub const EXAMPLES: &str = "\
Examples:
  airpath trace show up.trace
  airpath trace convert up.trace up.csv --bin '100 ms'
  airpath trace convert train.csv train.trace
  airpath trace convert '5 Mbit/s' 5mbit.trace
  airpath trace plot up.trace down.trace --out rates.svg

Formats are mahimahi (mm-link: a time in milliseconds a line), csv and json (times and rates), and
netem-trace (JSON of the library of rattan). An input is known by its content, an output by its name:
.csv, .json, .netem.json, and anything else for mm-link.";

/// `airpath trace`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct TraceArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: TraceAction,
}

/// `airpath trace …`.
#[derive(Subcommand, Debug)]
pub enum TraceAction {
    /// Turn a trace, or a constant rate, into another format.
    Convert(ConvertArgs),
    /// Say how long a trace is, and what rates it has.
    Show(ShowArgs),
}

/// `airpath trace convert`.
#[derive(Args, Debug)]
pub struct ConvertArgs {
    /// A trace, or a rate such as '5 Mbit/s'.
    pub input: String,
    /// Where to write it; - for standard output.
    pub output: PathBuf,
    /// The format of the input: mahimahi, csv, json or netem-trace.
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<Format>,
    /// The format of the output.
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<Format>,
    /// Over how long opportunities of mm-link are counted to become a rate.
    #[arg(long, value_name = "TIME", default_value = "1 ms")]
    pub bin: Span,
    /// How much of the input to convert, repeated if it is shorter.
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
    /// Over how long opportunities of mm-link are counted to become a rate.
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub bin: Span,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
    /// With --json: also every time and rate.
    #[arg(long, requires = "json")]
    pub points: bool,
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
        Format::ALL.into_iter().find(|(_, name)| *name == text).map(|(format, _)| format).ok_or_else(|| {
            format!("`{text}` is no format of traces; the formats are mahimahi, csv, json and netem-trace")
        })
    }
}
