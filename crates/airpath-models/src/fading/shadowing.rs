// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Shadowing: slow variations of the mean power with the distance travelled, in decibels.
//!
//! Source: Gudmundson 1991, an autoregressive process of the first order over distance. Sample k is
//! x_k = √(1 − a²) σ Σ aⁱ w_(k−i), with w keyed standard normal draws; the sum ends after 100 terms
//! (0.74¹⁰⁰ = 10⁻¹³), so that each sample is a function of its number alone. Between two samples the
//! process is a straight line, divided by its own standard deviation there so that σ is the same everywhere.

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::{Decibels, Distance};
use crate::problem::Problem;
use crate::random::standard_normal;

/// Number of terms of the sum.
const TERMS: u64 = 100;

/// The greatest pole: 0.9¹⁰⁰ = 3·10⁻⁵, of which nothing is seen.
const MOST_POLE: f64 = 0.9;

/// Shadowing: `{ deviation = "4 dB", pole = 0.74, every = "2 m" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShadowingConfig {
    /// Standard deviation.
    pub deviation: Decibels,
    /// Correlation of one sample with the next.
    #[serde(default = "pole")]
    pub pole: f64,
    /// Distance between two samples.
    #[serde(default = "every")]
    pub every: Distance,
}

fn pole() -> f64 {
    0.74
}

fn every() -> Distance {
    Distance(2.0)
}

impl ShadowingConfig {
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !(0.0..=40.0).contains(&self.deviation.0) {
            problems.push(Problem::new("deviation", format!("is {}; it must be from 0 to 40 dB", self.deviation)));
        }
        if !(0.0..=MOST_POLE).contains(&self.pole) {
            let message = format!("is {}; it must be from 0 to {MOST_POLE} (make `every` longer)", self.pole);
            problems.push(Problem::new("pole", message));
        }
        if !(0.01..=1e5).contains(&self.every.0) {
            problems.push(Problem::new("every", format!("is {}; it must be from 0.01 m to 100 km", self.every)));
        }
        problems
    }
}

/// The process.
#[derive(Clone, Debug)]
pub(super) struct Shadowing {
    config: ShadowingConfig,
    key: DrawKey,
    /// Number of the sample to which `draws` belong; a number that there is not at the beginning.
    number: u64,
    /// Its draws, the oldest first from `oldest` on and around.
    draws: Vec<f64>,
    oldest: usize,
    /// A number, and the samples of that number and of the next.
    known: Option<(u64, f64, f64)>,
}

impl Shadowing {
    pub(super) fn new(config: &ShadowingConfig, key: DrawKey) -> Shadowing {
        Shadowing { config: *config, key, number: u64::MAX, draws: Vec::new(), oldest: 0, known: None }
    }

    fn sample(&mut self, number: u64) -> f64 {
        let draw = |number| standard_normal::draw(self.key, number, 0);
        // The oldest draw of sample 0 has number 0.
        if self.number.checked_add(1) == Some(number) {
            self.draws[self.oldest] = draw(number + TERMS - 1);
            self.oldest = (self.oldest + 1) % TERMS as usize;
        } else if self.number != number {
            self.draws = (number..number + TERMS).map(draw).collect();
            self.oldest = 0;
        }
        self.number = number;
        let pole = self.config.pole;
        // From the oldest term, so that small ones come first.
        let (newer, older) = self.draws.split_at(self.oldest);
        let sum = older.iter().chain(newer).fold(0.0, |sum, draw| sum * pole + draw);
        sum * libm::sqrt(1.0 - pole * pole) * self.config.deviation.0
    }

    /// Gain at `distance` in metres, in decibels.
    pub(super) fn decibels(&mut self, distance: f64) -> f64 {
        let place = distance / self.config.every.0;
        let number = place as u64;
        let part = place - number as f64;
        let (before, after) = match self.known {
            Some((known, before, after)) if known == number => (before, after),
            known => {
                let before = match known {
                    Some((known, _, after)) if known + 1 == number => after,
                    _ => self.sample(number),
                };
                let after = self.sample(number + 1);
                self.known = Some((number, before, after));
                (before, after)
            }
        };
        let rest = 1.0 - part;
        let variance = rest * rest + part * part + 2.0 * rest * part * self.config.pole;
        (rest * before + part * after) / libm::sqrt(variance)
    }
}
