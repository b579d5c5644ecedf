// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Path loss: the mean power over the distance from the base station.
//!
//! The station moves along a straight road that passes the base station at the distance `aside`; at the
//! beginning it is `ahead` before the nearest point (below zero: behind it). The mean signal-to-noise ratio of the
//! configuration is that at the distance `reference`.
//!
//! Sources: log-distance, 10 n log₁₀(r / reference), of which n = 2 is free space (Friis 1946); COST231-Hata
//! (COST 231 1999, section 4.4.1), whose slope over the distance is 44.9 − 6.55 log₁₀(height of the base station in m)
//! dB per decade: all its other terms are the same at every distance, and so part of the mean at `reference`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::Distance;
use crate::problem::Problem;

/// Loss over distance: `{ type = "log_distance", exponent = 3.5, reference = "500 m", ahead = "1 km", aside = "50 m" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathLossConfig {
    /// The law.
    #[serde(flatten)]
    pub law: Law,
    /// Distance from the base station at which the mean signal-to-noise ratio holds.
    pub reference: Distance,
    /// Distance along the road to the point nearest to the base station, at the beginning.
    pub ahead: Distance,
    /// Distance of the road from the base station.
    pub aside: Distance,
}

/// A law of path loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Law {
    /// A power of the distance.
    LogDistance {
        /// The power: 2 in free space, about 3.5 in towns.
        exponent: f64,
    },
    /// COST231-Hata, for 1500 to 2000 MHz and 1 to 20 km.
    Cost231Hata {
        /// Height of the base station's antenna.
        height: Distance,
    },
}

impl PathLossConfig {
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match &self.law {
            Law::LogDistance { exponent } if !(0.0..=10.0).contains(exponent) => {
                problems.push(Problem::new("exponent", format!("is {exponent}; it must be from 0 to 10")));
            }
            Law::Cost231Hata { height } if !(30.0..=200.0).contains(&height.0) => {
                problems.push(Problem::new("height", format!("is {height}; the model holds from 30 to 200 m")));
            }
            _ => {}
        }
        for (key, distance) in [("reference", self.reference), ("aside", self.aside)] {
            if !(1.0..=1e5).contains(&distance.0) {
                problems.push(Problem::new(key, format!("is {distance}; it must be from 1 m to 100 km")));
            }
        }
        if !(-1e6..=1e6).contains(&self.ahead.0) {
            problems.push(Problem::new("ahead", format!("is {}; it must be within 1000 km", self.ahead)));
        }
        problems
    }

    /// Gain after `travelled` metres, in decibels; 0 at the reference.
    pub(super) fn decibels(&self, travelled: f64) -> f64 {
        let along = self.ahead.0 - travelled;
        let distance = libm::sqrt(along * along + self.aside.0 * self.aside.0);
        let per_decade = match &self.law {
            Law::LogDistance { exponent } => 10.0 * exponent,
            Law::Cost231Hata { height } => 44.9 - 6.55 * libm::log10(height.0),
        };
        -per_decade * libm::log10(distance / self.reference.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computed_by_hand() {
        let road =
            |law| PathLossConfig { law, reference: Distance(100.0), ahead: Distance(800.0), aside: Distance(600.0) };
        // At 1000 m, ten times the reference: 35 dB; at the nearest point, 600 m: 35 log10 6 = 27.235 dB.
        let log = road(Law::LogDistance { exponent: 3.5 });
        assert!((log.decibels(0.0) + 35.0).abs() < 1e-12);
        assert!((log.decibels(800.0) + 27.235_293_763).abs() < 1e-6);
        // 44.9 - 6.55 log10 100 = 31.8 dB per decade.
        let hata = road(Law::Cost231Hata { height: Distance(100.0) });
        assert!((hata.decibels(0.0) + 31.8).abs() < 1e-12);
    }
}
