// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The options of `airpath modes`.

use airpath_models::fading::quantity::Decibels;
use clap::Args;

pub const EXAMPLES: &str = "\
Examples:
  airpath modes
  airpath modes --prediction-error 0.1 --snr '16 dB'
  airpath modes nr_mcs_1 --symbols 840
  airpath modes '{ type = \"coded\", table = \"lte_cqi\", gap = \"2 dB\" }' --json

A level is the least predicted signal-to-noise ratio at which a mode gets most through in frames without errors.";

/// `airpath modes`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ModesArgs {
    /// The modes: qam, a table of a standard such as lte_cqi or nr_mcs_1, or a TOML table of docs/link-adaptation.md.
    #[arg(default_value = "qam")]
    pub modes: String,
    /// Number of symbols of a frame.
    #[arg(long, value_name = "N", default_value_t = 108, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub symbols: u32,
    /// Normalised mean square error of the prediction, from 0 to below 1.
    #[arg(long, value_name = "E", default_value_t = 0.0)]
    pub prediction_error: f64,
    /// Mean signal-to-noise ratio, which the power of the prediction's error depends on, such as '16 dB'.
    #[arg(long, value_name = "SNR", default_value = "16 dB", allow_hyphen_values = true)]
    pub snr: Decibels,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}
