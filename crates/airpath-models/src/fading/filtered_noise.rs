// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Flat Rayleigh fading by filtered noise: white complex Gaussian draws through a filter of the classical spectrum.
//!
//! Source: Jakes 1974, section 1.7; the filter's response is the root of the spectrum (Young and Beaulieu 2000). Draws
//! lie on a grid of a quarter wavelength travelled, number by number, and the filter is a function of
//! the distance: the value at a place x is Σ wₙ g(x − n/4) over the 128 draws within 16 wavelengths. The grid is finer than
//! half a wavelength, so that the sum's correlation is that of the integral at every place, and a value is a function
//! of the key and the place alone.
//!
//! The root of Clarke's spectrum has poles, so that its filter decays as x^(−3/4) and no length is enough. Therefore
//! the autocorrelation is J₀(2πx) e^(−x²/(2·8²)), whose spectrum is smooth: it differs from J₀ by at most 0.002 within one
//! wavelength, 0.006 within two and 0.017 within four. Cutting the filter at 16 wavelengths adds less than 0.001.
//! g is computed by the midpoint rule over 240 frequencies of the spectrum up to 1.5 times the greatest Doppler frequency,
//! which itself is computed by the trapezoidal rule over 48 wavelengths of the autocorrelation, and looked up between
//! places 1/32 of a wavelength apart by cubic interpolation (error below 10⁻⁴).

use std::f64::consts::TAU;
use std::sync::LazyLock;

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Block, Grid, Response};
use crate::random::standard_normal;
use crate::registry::Configured;

/// Draws in a wavelength.
const DENSITY: f64 = 4.0;
/// Draws of a value.
const DRAWS: usize = 128;
/// Places of the filter's table from one draw to the next.
const FINENESS: usize = 8;
/// Distance in wavelengths over which the correlation is less than that of Clarke by e^(−1/2).
const COHERENCE: f64 = 8.0;

/// g at place − 1 − `DRAWS`·`FINENESS`/2, scaled so that the sum of draws has the mean power one.
static FILTER: LazyLock<Vec<f32>> = LazyLock::new(filter);

fn filter() -> Vec<f32> {
    const FREQUENCIES: usize = 240;
    const PER_WAVELENGTH: usize = 8;
    let correlation = |step: usize| {
        let x = step as f64 / PER_WAVELENGTH as f64;
        let half = if step == 0 { 0.5 } else { 1.0 };
        half * libm::j0(TAU * x) * libm::exp(-0.5 * (x / COHERENCE) * (x / COHERENCE))
    };
    let correlations: Vec<f64> = (0..48 * PER_WAVELENGTH).map(correlation).collect();
    let frequency = |number: usize| (number as f64 + 0.5) * 1.5 / FREQUENCIES as f64;
    let amplitude = |number: usize| {
        let terms = correlations.iter().enumerate();
        let turn = TAU * frequency(number) / PER_WAVELENGTH as f64;
        let sum = terms.fold(0.0, |sum, (step, value)| sum + value * libm::cos(turn * step as f64));
        libm::sqrt(sum.max(0.0))
    };
    let amplitudes: Vec<f64> = (0..FREQUENCIES).map(amplitude).collect();
    let middle = (DRAWS * FINENESS / 2) as i64;
    let value = |place: i64| {
        let x = place as f64 / (DENSITY * FINENESS as f64);
        let terms = amplitudes.iter().enumerate();
        terms.fold(0.0, |sum, (number, amplitude)| sum + amplitude * libm::cos(TAU * frequency(number) * x))
    };
    let values: Vec<f64> = (-1 - middle..=middle + 1).map(value).collect();
    let power = values.iter().fold(0.0, |sum, value| sum + value * value) / FINENESS as f64;
    values.iter().map(|value| (value / libm::sqrt(power)) as f32).collect()
}

/// Parameters of filtered noise: there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilteredNoiseConfig {}

impl Configured<Grid> for FilteredNoiseConfig {
    type Model = FilteredNoise;

    fn build(&self, grid: Grid) -> FilteredNoise {
        FilteredNoise { grid, first: None, draws: vec![(0.0, 0.0); DRAWS] }
    }

    fn examples() -> Vec<FilteredNoiseConfig> {
        vec![FilteredNoiseConfig {}]
    }
}

/// The channel, and the draws around its last place.
#[derive(Clone, Debug)]
pub struct FilteredNoise {
    grid: Grid,
    /// Number of the first draw.
    first: Option<u64>,
    draws: Vec<(f32, f32)>,
}

fn draw(key: DrawKey, number: u64) -> (f32, f32) {
    let part = |attempt| (standard_normal::draw(key, number, attempt) * std::f64::consts::FRAC_1_SQRT_2) as f32;
    (part(0), part(1))
}

impl FilteredNoise {
    /// Moves the draws to `first`.
    fn fetch(&mut self, first: u64) {
        let known = match self.first {
            Some(before) if before <= first && first - before < DRAWS as u64 => {
                let past = (first - before) as usize;
                self.draws.rotate_left(past);
                DRAWS - past
            }
            _ => 0,
        };
        for (place, value) in self.draws.iter_mut().enumerate().skip(known) {
            *value = draw(self.grid.key, first + place as u64);
        }
        self.first = Some(first);
    }

    /// The value at a distance of `x` wavelengths.
    fn value(&mut self, x: f64) -> (f32, f32) {
        let place = x * DENSITY;
        let number = place as u64;
        // Draw 0 is as far behind the beginning as the filter reaches.
        self.fetch(number);
        let fine = (place - number as f64) * FINENESS as f64;
        let (whole, part) = (fine as usize, (fine - libm::floor(fine)) as f32);
        // Cubic interpolation (Lagrange) between the middle two of four values.
        let [before, after, past] = [part + 1.0, part - 1.0, part - 2.0];
        let weights = [
            -part * after * past / 6.0,
            before * after * past / 2.0,
            -before * part * past / 2.0,
            before * part * after / 6.0,
        ];
        let (mut re, mut im) = (0.0, 0.0);
        for ((draw_re, draw_im), place) in self.draws.iter().zip((0..DRAWS).rev()) {
            let values = &FILTER[whole + place * FINENESS..][..4];
            let gain =
                values[0] * weights[0] + values[1] * weights[1] + values[2] * weights[2] + values[3] * weights[3];
            re += gain * draw_re;
            im += gain * draw_im;
        }
        (re, im)
    }
}

impl Response for FilteredNoise {
    fn respond(&mut self, block: &Block, re: &mut [f32], im: &mut [f32]) {
        let lanes = self.grid.lanes();
        for (slot, (re, im)) in re.chunks_exact_mut(lanes).zip(im.chunks_exact_mut(lanes)).enumerate() {
            let distance = block.distance + block.step * slot as f64;
            let (value_re, value_im) = self.value(distance / self.grid.wavelength);
            re.fill(value_re);
            im.fill(value_im);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_makes_the_correlation_of_clarke() {
        let correlation = |lag: usize| {
            let pairs = FILTER.iter().zip(&FILTER[lag..]);
            pairs.map(|(one, two)| f64::from(*one) * f64::from(*two)).sum::<f64>() / FINENESS as f64
        };
        for lag in 0..128 {
            let x = lag as f64 / 32.0;
            let bound = if x <= 1.0 {
                0.002
            } else if x <= 2.0 {
                0.006
            } else {
                0.017
            };
            let difference = correlation(lag) - libm::j0(TAU * x);
            assert!(difference.abs() < bound, "{x}: {difference}");
            let smooth = libm::j0(TAU * x) * libm::exp(-x * x / 128.0);
            assert!((correlation(lag) - smooth).abs() < 0.001, "{x}: {}", correlation(lag) - smooth);
        }
    }

    #[test]
    fn power_is_the_same_at_every_place() {
        // The sum of squared gains, by unit draws one at a time, at places on and between the grid and the table.
        for x in [0.0, 0.25, 0.1, 0.123_456, 7.99] {
            let key = DrawKey::new(
                airpath_core::Seed(1),
                &airpath_core::DrawScope {
                    hop: "r",
                    direction: airpath_core::Direction::Downlink,
                    role: "fading",
                    instance: 0,
                },
            );
            let grid = Grid { key, resources: 1, spacing_hz: 0.0, wavelength: 1.0 };
            let mut noise = FilteredNoiseConfig {}.build(grid);
            noise.value(x);
            let mut power = 0.0;
            for one in 0..DRAWS {
                noise.draws.fill((0.0, 0.0));
                noise.draws[one] = (1.0, 0.0);
                power += f64::from(noise.value(x).0).powi(2);
            }
            assert!((power - 1.0).abs() < 1e-4, "{x}: {power}");
        }
    }
}
