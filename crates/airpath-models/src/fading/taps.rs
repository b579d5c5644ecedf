// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Echoes of given delays and powers, with classical Doppler spectra.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use super::multipath::Multipath;
use super::quantity::{Decibels, Seconds};
use super::spectrum::{Tap, scattered};
use super::{Grid, check_sinusoids, tap_sinusoids};
use crate::problem::Problem;
use crate::registry::Configured;

/// Taps: `{ type = "taps", taps = [["0 ns", "0 dB"], ["300 ns", "-6 dB"]] }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TapsConfig {
    /// Delays and powers; the powers are scaled to a sum of one.
    pub taps: Vec<(Seconds, Decibels)>,
    /// Number of sinusoids of each tap.
    #[serde(default = "tap_sinusoids")]
    pub sinusoids: u32,
}

impl TapsConfig {
    pub(super) fn taps(&self) -> Vec<Tap> {
        self.taps.iter().map(|(delay, power)| scattered(delay.0, power.0)).collect()
    }
}

impl Configured<Grid> for TapsConfig {
    type Model = Multipath;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = check_sinusoids(self.sinusoids);
        if !(1..=100).contains(&self.taps.len()) {
            problems.push(Problem::new("taps", format!("are {}; there must be 1 to 100", self.taps.len())));
        }
        for (delay, power) in &self.taps {
            if !(0.0..=1e-3).contains(&delay.0) || !(-200.0..=200.0).contains(&power.0) {
                let message = format!("have one of {delay} and {power}; delays are up to 1 ms, powers within 200 dB");
                problems.push(Problem::new("taps", message));
            }
        }
        problems
    }

    fn build(&self, grid: Grid) -> Multipath {
        Multipath::new(&self.taps(), self.sinusoids as usize, &grid)
    }

    fn examples() -> Vec<TapsConfig> {
        let taps = vec![(Seconds(0.0), Decibels(0.0)), (Seconds(1e-6), Decibels(-3.0))];
        vec![TapsConfig { taps, sinusoids: 9 }]
    }
}
