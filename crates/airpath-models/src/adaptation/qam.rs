// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Uncoded quadrature amplitude modulation: the probability of a symbol error over white Gaussian noise.
//!
//! The modes are those of Alfredsson, Brunstrom and Sternad 2006, section II.B: BPSK and 4- to 256-QAM. The
//! constellations, on a grid of spacing 2 before the mean energy is normalised to one:
//!
//! - BPSK: ±1. Mean energy 1;
//! - 4-, 16-, 64- and 256-QAM: squares of 2, 4, 8 and 16 points a side. Mean energies 2, 10, 42 and 170;
//! - 8-QAM: a rectangle of 4 by 2 points. Mean energy 6. (The paper does not say which 8 points it means.)
//! - 32- and 128-QAM: crosses, that is squares of 6 and 12 points a side without 1 and 4 points at each corner
//!   (Smith 1975). Mean energies 20 and 82.
//!
//! The receiver decides for the nearest point. The signal-to-noise ratio γ is that of a symbol, E_s/N_0. With
//! a = √(2γ/E) for a mean energy of E, half the spacing in standard deviations of the noise in one dimension, and
//! q = Q(a), the tail of the normal distribution, rectangles have the error P = 1 − (1 − c q)(1 − d q), where c and d
//! are 2(1 − 1/m) for m points a side (Proakis, Digital Communications, section 5.2).
//!
//! In a cross, a point beside a missing corner has a decision region that a diagonal bounds. The sum over all points
//! of the 32-QAM cross is 13/4 q − 11/4 q² + J/4, where J is the probability of the wedge that lies beyond the diagonal
//! and would belong to the point if the diagonal were a side. The foot of the perpendicular on the diagonal is the
//! wedge's apex, so that J = (Q(√2 a) − q²)/2 by symmetry. The 128-QAM cross has 29/8 q − 53/16 q² + (J − K + L)/16
//! with two more, narrow wedges, which are integrated numerically.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::Curve;
use super::{ModeTable, symbols_in_error};
use crate::problem::Problem;
use crate::random::standard_normal::beyond;
use crate::registry::Configured;

/// Bits of a symbol of the largest constellation.
const MOST_BITS: u8 = 8;

const NAMES: [&str; MOST_BITS as usize] =
    ["bpsk", "4-qam", "8-qam", "16-qam", "32-qam", "64-qam", "128-qam", "256-qam"];

/// Uncoded modulations: `{ type = "qam" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QamConfig {
    /// Bits of a symbol in each mode, in ascending order: 1 for BPSK, 2 for 4-QAM, up to 8 for 256-QAM.
    #[serde(default = "all")]
    pub bits_per_symbol: Vec<u8>,
}

fn all() -> Vec<u8> {
    (1..=MOST_BITS).collect()
}

impl Default for QamConfig {
    fn default() -> QamConfig {
        QamConfig { bits_per_symbol: all() }
    }
}

impl Configured<()> for QamConfig {
    type Model = Qam;

    fn problems(&self) -> Vec<Problem> {
        let bits = &self.bits_per_symbol;
        let ascends = bits.windows(2).all(|pair| pair[0] < pair[1]);
        if !bits.is_empty() && ascends && bits.iter().all(|bits| (1..=MOST_BITS).contains(bits)) {
            return Vec::new();
        }
        let message = format!("is {bits:?}; it must be a list of ascending numbers from 1 to {MOST_BITS}");
        vec![Problem::new("bits_per_symbol", message)]
    }

    fn build(&self, (): ()) -> Qam {
        Qam { bits: self.bits_per_symbol.clone() }
    }

    fn examples() -> Vec<QamConfig> {
        vec![QamConfig::default(), QamConfig { bits_per_symbol: vec![2, 4, 6] }]
    }
}

/// Uncoded modulations.
#[derive(Clone, Debug)]
pub struct Qam {
    bits: Vec<u8>,
}

/// The tables of all modulations, which every channel shares.
static CURVES: LazyLock<Vec<Curve>> =
    LazyLock::new(|| (1..=MOST_BITS).map(|bits| Curve::of(|snr| symbol_error(bits, snr))).collect());

impl ModeTable for Qam {
    fn len(&self) -> usize {
        self.bits.len()
    }

    fn name(&self, mode: usize) -> String {
        NAMES[usize::from(self.bits[mode]) - 1].to_owned()
    }

    fn bits_per_symbol(&self, mode: usize) -> f64 {
        self.bits[mode].into()
    }

    #[inline]
    fn symbol_error(&self, mode: usize, snr: f32) -> Option<f64> {
        let [error] = CURVES[usize::from(self.bits[mode]) - 1].at(snr);
        Some(error)
    }

    #[inline]
    fn frame_error(&self, mode: usize, snr: f32, symbols: u32) -> f64 {
        let [error] = CURVES[usize::from(self.bits[mode]) - 1].at(snr);
        symbols_in_error(error, symbols)
    }
}

/// Probability of an error in a symbol of `bits` bits at the ratio of powers `snr`, computed exactly.
pub fn symbol_error(bits: u8, snr: f64) -> f64 {
    let half = |energy: f64| libm::sqrt(2.0 * snr / energy);
    match bits {
        1 => beyond(half(1.0)),
        2 => rectangle(half(2.0), 2.0, 2.0),
        3 => rectangle(half(6.0), 4.0, 2.0),
        4 => rectangle(half(10.0), 4.0, 4.0),
        5 => cross_of_32(half(20.0)),
        6 => rectangle(half(42.0), 8.0, 8.0),
        7 => cross_of_128(half(82.0)),
        8 => rectangle(half(170.0), 16.0, 16.0),
        _ => unreachable!("{bits} bits a symbol were refused before"),
    }
}

fn rectangle(half: f64, width: f64, height: f64) -> f64 {
    let tail = beyond(half);
    let (one, other) = (2.0 * (1.0 - 1.0 / width) * tail, 2.0 * (1.0 - 1.0 / height) * tail);
    one + other - one * other
}

/// The wedge beyond the diagonal of a corner point: J above.
fn wedge(half: f64, tail: f64) -> f64 {
    (beyond(std::f64::consts::SQRT_2 * half) - tail * tail) / 2.0
}

fn cross_of_32(half: f64) -> f64 {
    let tail = beyond(half);
    3.25 * tail - 2.75 * tail * tail + wedge(half, tail) / 4.0
}

fn cross_of_128(half: f64) -> f64 {
    let tail = beyond(half);
    3.625 * tail - 3.3125 * tail * tail + (wedge(half, tail) + narrow_wedges(half)) / 16.0
}

/// L − K of the 128-QAM cross for noise (u, v) in standard deviations: L = P(u > −a, v > u + 4a) and
/// K = P(u > a, v > u + 2a), by the rule of Simpson over u.
fn narrow_wedges(half: f64) -> f64 {
    // Both are of the order e^(−5a²) and no more seen in doubles beside q.
    if half > 3.5 {
        return 0.0;
    }
    const STEPS: u32 = 40;
    let integrand = |s: f64| (density(s - half) - density(s + half)) * beyond(s + 3.0 * half);
    let width = 6.0 / f64::from(STEPS);
    let weighted = |step: u32| {
        let weight = match step {
            0 | STEPS => 1.0,
            step if step % 2 == 1 => 4.0,
            _ => 2.0,
        };
        weight * integrand(f64::from(step) * width)
    };
    (0..=STEPS).map(weighted).sum::<f64>() * width / 3.0
}

/// The density of the standard normal distribution.
fn density(value: f64) -> f64 {
    libm::exp(-value * value / 2.0) / libm::sqrt(std::f64::consts::TAU)
}
