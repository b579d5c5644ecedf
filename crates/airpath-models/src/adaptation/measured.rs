// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Modes of the user's own: bits of a symbol, and losses of blocks that were measured or simulated elsewhere.
//!
//! Between two points of a curve the logarithm of the block error rate is linear in decibels. Below the first point
//! every block is lost. Beyond the last the line through the last two continues. A curve holds for blocks of a number
//! of symbols; with another number n the blocks are taken for n parts that are each received independently.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ModeTable;
use super::curve::Curve;
use crate::fading::quantity::Decibels;
use crate::problem::Problem;
use crate::registry::Configured;

/// A table of modes: `{ type = "table", modes = [{ bits_per_symbol = 1.5, block_error = [["4 dB", 0.9], ["6 dB", 0.01]]
/// }] }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredConfig {
    /// The modes, in ascending order of their bits.
    pub modes: Vec<MeasuredMode>,
    /// Number of symbols of the blocks for which the curves hold [default: any].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_symbols: Option<u32>,
}

/// A mode of the user's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredMode {
    /// Its name [default: its number, from 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Bits that a symbol carries, without those of the code.
    pub bits_per_symbol: f64,
    /// Signal-to-noise ratios of a symbol, ascending, each with the block error rate at it, falling.
    pub block_error: Vec<(Decibels, f64)>,
}

impl MeasuredMode {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !(self.bits_per_symbol > 0.0 && self.bits_per_symbol <= 32.0) {
            let message = format!("is {}; it must be above 0 and at most 32", self.bits_per_symbol);
            problems.push(Problem::new("bits_per_symbol", message));
        }
        let points = &self.block_error;
        if points.len() < 2 {
            problems.push(Problem::new("block_error", "needs two points or more, such as [\"4 dB\", 0.9]"));
        }
        if let Some((snr, rate)) = points.iter().find(|(_, rate)| !(*rate > 0.0 && *rate <= 1.0)) {
            let message = format!("is {rate} at {snr}; block error rates are above 0 and at most 1");
            problems.push(Problem::new("block_error", message));
        }
        if points.windows(2).any(|pair| !(pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1)) {
            problems.push(Problem::new("block_error", "must have ascending ratios and error rates that fall"));
        }
        if points.iter().any(|(snr, _)| snr.0.abs() > 100.0) {
            problems.push(Problem::new("block_error", "has a ratio beyond 100 dB"));
        }
        problems
    }

    /// The block error rate at a ratio in dB.
    fn rate(&self, db: f64) -> f64 {
        let points = &self.block_error;
        if db < points[0].0.0 {
            return 1.0;
        }
        let after = points.partition_point(|(snr, _)| snr.0 <= db).clamp(1, points.len() - 1);
        let ((from, first), (to, last)) = (points[after - 1], points[after]);
        let part = (db - from.0) / (to.0 - from.0);
        libm::exp(libm::log(first) + part * (libm::log(last) - libm::log(first))).min(1.0)
    }
}

impl Configured<()> for MeasuredConfig {
    type Model = Measured;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.modes.is_empty() {
            problems.push(Problem::new("modes", "is empty; there must be at least one mode"));
        }
        for (number, mode) in self.modes.iter().enumerate() {
            problems.extend(mode.problems().into_iter().map(|problem| problem.under(&format!("modes.{number}"))));
        }
        if self.modes.windows(2).any(|pair| pair[0].bits_per_symbol > pair[1].bits_per_symbol) {
            problems.push(Problem::new("modes", "must be in ascending order of `bits_per_symbol`"));
        }
        let name = |number: usize| self.name(number);
        if let Some(number) =
            (0..self.modes.len()).find(|number| (0..*number).any(|other| name(other) == name(*number)))
        {
            problems.push(Problem::new("modes", format!("has two modes named `{}`", name(number))));
        }
        if self.block_symbols == Some(0) {
            problems.push(Problem::new("block_symbols", "is 0; it must be at least 1"));
        }
        problems
    }

    fn build(&self, (): ()) -> Measured {
        let curve = |mode: &MeasuredMode| Curve::of(|snr| mode.rate(10.0 * libm::log10(snr)));
        Measured { curves: self.modes.iter().map(curve).collect(), config: self.clone() }
    }

    fn examples() -> Vec<MeasuredConfig> {
        let mode = |bits_per_symbol: f64, from_db: f64| MeasuredMode {
            name: None,
            bits_per_symbol,
            block_error: vec![
                (Decibels(from_db), 1.0),
                (Decibels(from_db + 1.0), 0.1),
                (Decibels(from_db + 2.0), 0.001),
            ],
        };
        let named = MeasuredMode { name: Some("robust".into()), ..mode(0.5, -2.0) };
        vec![
            MeasuredConfig { modes: vec![mode(1.0, 2.0), mode(2.5, 8.0)], block_symbols: None },
            MeasuredConfig { modes: vec![named, mode(1.5, 4.0)], block_symbols: Some(100) },
        ]
    }
}

impl MeasuredConfig {
    fn name(&self, mode: usize) -> String {
        self.modes[mode].name.clone().unwrap_or_else(|| (mode + 1).to_string())
    }
}

/// Modes of the user's own.
#[derive(Clone, Debug)]
pub struct Measured {
    config: MeasuredConfig,
    curves: Vec<Curve>,
}

impl ModeTable for Measured {
    fn len(&self) -> usize {
        self.curves.len()
    }

    fn name(&self, mode: usize) -> String {
        self.config.name(mode)
    }

    fn bits_per_symbol(&self, mode: usize) -> f64 {
        self.config.modes[mode].bits_per_symbol
    }

    #[inline]
    fn symbol_error(&self, _: usize, _: f32) -> Option<f64> {
        None
    }

    #[inline]
    fn frame_error(&self, mode: usize, snr: f32, symbols: u32) -> f64 {
        let rate = self.curves[mode].at(snr)[0].min(1.0);
        match self.config.block_symbols {
            Some(of_curve) if of_curve != symbols => {
                let parts = f64::from(symbols) / f64::from(of_curve);
                -libm::expm1(parts * libm::log1p(-rate))
            }
            _ => rate,
        }
    }
}
