// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Coded modulation of LTE and NR: the probability that a block is lost over white Gaussian noise.
//!
//! This is an idealisation, not a simulation of turbo or LDPC decoders. A block of n symbols in a mode of R bits a symbol
//! is lost with the probability Q((C − R + log₂(n)/(2n)) √(n/V)): the normal approximation for the best code of that
//! length (Polyanskiy, Poor and Verdú 2010, with the term ½ log₂ n), with the capacity C and the dispersion V of bit-interleaved
//! coded modulation ([`super::information`]) at a ratio that is worse by a gap. The gap stands for what real codes,
//! decoders and estimates of the channel lose. With its default, 1.5 dB, the ratios at which a tenth of all blocks is
//! lost are within 0.7 dB of those of link simulations of LTE (a test). Bits of a checksum count as the block's.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ModeTable;
use super::information::{self, Information};
use super::standards::Table;
use crate::fading::quantity::Decibels;
use crate::problem::Problem;
use crate::random::standard_normal::beyond;
use crate::registry::Configured;

/// Modes of a standard: `{ type = "coded", table = "nr_mcs_1" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodedConfig {
    /// The table of the standard.
    pub table: Table,
    /// Loss of the receiver against the best code of the block's length.
    #[serde(default = "gap")]
    pub gap: Decibels,
}

fn gap() -> Decibels {
    Decibels(1.5)
}

impl Configured<()> for CodedConfig {
    type Model = Coded;

    fn problems(&self) -> Vec<Problem> {
        if (0.0..=20.0).contains(&self.gap.0) {
            return Vec::new();
        }
        vec![Problem::new("gap", format!("is {}; it must be from 0 to 20 dB", self.gap))]
    }

    fn build(&self, (): ()) -> Coded {
        let mode =
            |(order, rate): (u8, f64)| Mode { information: information::of(order), bits: f64::from(order) * rate };
        Coded {
            table: self.table,
            modes: self.table.modes().into_iter().map(mode).collect(),
            gain: Decibels(-self.gap.0).ratio() as f32,
        }
    }

    fn examples() -> Vec<CodedConfig> {
        Table::ALL.into_iter().map(|table| CodedConfig { table, gap: gap() }).collect()
    }
}

#[derive(Clone)]
struct Mode {
    information: &'static Information,
    /// Bits of a symbol, without those of the code.
    bits: f64,
}

/// Modes of a standard.
#[derive(Clone)]
pub struct Coded {
    table: Table,
    modes: Vec<Mode>,
    /// The ratio of powers that the gap leaves.
    gain: f32,
}

impl std::fmt::Debug for Coded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coded").field("table", &self.table).field("gain", &self.gain).finish_non_exhaustive()
    }
}

impl ModeTable for Coded {
    fn len(&self) -> usize {
        self.modes.len()
    }

    fn name(&self, mode: usize) -> String {
        let (word, first) = self.table.numbering();
        format!("{word}-{}", first + mode)
    }

    fn bits_per_symbol(&self, mode: usize) -> f64 {
        self.modes[mode].bits
    }

    #[inline]
    fn symbol_error(&self, _: usize, _: f32) -> Option<f64> {
        None
    }

    #[inline]
    fn frame_error(&self, mode: usize, snr: f32, symbols: u32) -> f64 {
        let Mode { information, bits } = &self.modes[mode];
        let [capacity, dispersion] = information.at(snr * self.gain);
        tail(margin(capacity, dispersion, *bits, symbols.max(1)))
    }
}

/// The term log₂(n)/(2n) of blocks of up to 1024 symbols.
static TERMS: LazyLock<[f64; 1025]> = LazyLock::new(|| std::array::from_fn(|symbols| term(symbols.max(1) as f64)));

fn term(symbols: f64) -> f64 {
    libm::log2(symbols) / (2.0 * symbols)
}

/// The argument of Q.
#[inline]
fn margin(capacity: f64, dispersion: f64, bits: f64, symbols: u32) -> f64 {
    let number = f64::from(symbols);
    let term = TERMS.get(symbols as usize).copied().unwrap_or_else(|| term(number));
    // Without any dispersion the block is received or lost for certain.
    (capacity - bits + term) * (number / dispersion.max(1e-9)).sqrt()
}

/// Probability that a block of `symbols` symbols is lost in a mode of the modulation of `order` bits a symbol that
/// carries `bits` bits a symbol, at a ratio of powers without any gap, computed without tables.
pub fn block_error(order: u8, bits: f64, snr: f64, symbols: u32) -> f64 {
    let [capacity, dispersion] = information::moments(order, snr);
    beyond(margin(capacity, dispersion, bits, symbols))
}

/// Greatest argument of the table of Q.
const REACH: f64 = 8.0;
const STEPS_OF_ONE: f64 = 16.0;

/// Q and its slope times the step, at each step from −8 to 8.
static TAIL: LazyLock<Vec<[f64; 2]>> = LazyLock::new(|| {
    let node = |step: i32| {
        let value = f64::from(step) / STEPS_OF_ONE - REACH;
        let density = libm::exp(-value * value / 2.0) / libm::sqrt(std::f64::consts::TAU);
        [beyond(value), -density / STEPS_OF_ONE]
    };
    (0..=(2.0 * REACH * STEPS_OF_ONE) as i32).map(node).collect()
});

/// The tail Q of the normal distribution from a table: within 10⁻⁴ of its value where that is above 10⁻⁸.
#[inline]
fn tail(value: f64) -> f64 {
    if value.abs() >= REACH {
        // Certain, to all digits: what were left of a loss would decide between modes that are all useless.
        return f64::from(u8::from(value < 0.0));
    }
    let place = (value + REACH) * STEPS_OF_ONE;
    let step = place as usize;
    let part = place - step as f64;
    let ([below, first], [above, last]) = (TAIL[step], TAIL[step + 1]);
    let rise = above - below;
    let (square, cube) = (3.0 * rise - 2.0 * first - last, first + last - 2.0 * rise);
    below + part * (first + part * (square + part * cube))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_tail_is_as_exact_as_it_states() {
        for step in -9000..9000 {
            let value = f64::from(step) * 0.001;
            let exact = beyond(value);
            assert!((tail(value) - exact).abs() < exact.max(1e-8) * 1e-4, "{value}: {} for {exact}", tail(value));
        }
    }
}
