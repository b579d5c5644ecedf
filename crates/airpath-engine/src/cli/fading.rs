// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath fading`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub const EXAMPLES: &str = "\
Examples:
  airpath fading generate '{ type = \"jakes\", speed = \"75 km/h\", snr = \"16 dB\" }' snr.csv --slots 15000 --seed 1
  airpath fading generate channel.toml snr.csv --slots 1500 --predicted
  airpath fading show channel.toml --out channel.png
  airpath fading convert snr.csv snr.parquet

The channel is a table of docs/fading.md, in a file or on the command line. The output has a line for each slot and in
it the signal-to-noise ratio of each resource in decibels; airpath fading convert makes Parquet and .mat files of it,
and reads them.";

/// `airpath fading`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FadingArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub action: FadingAction,
}

/// `airpath fading …`.
#[derive(Subcommand, Debug)]
pub enum FadingAction {
    /// Draw the signal-to-noise ratios of a radio channel.
    Generate(GenerateArgs),
}

/// `airpath fading generate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct GenerateArgs {
    /// The channel: a TOML file, or a table such as '{ type = "jakes", speed = "75 km/h" }'.
    pub channel: String,
    /// Output file; - for standard output.
    pub output: PathBuf,
    /// Number of slots.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1500, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub slots: u64,
    /// Random seed [default: chosen and recorded in the file].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write the predicted ratios instead of the true ones.
    #[arg(long)]
    pub predicted: bool,
    /// Do not print the mean.
    #[arg(long, short)]
    pub quiet: bool,
}
