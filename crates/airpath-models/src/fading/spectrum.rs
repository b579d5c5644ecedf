// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Doppler spectra of taps, and the sinusoids that make them.
//!
//! A tap with the classical Doppler spectrum is the model of Zheng and Xiao 2003 (Simulation models with correct
//! statistical properties for Rayleigh fading channels): g(x) = √(2/M) Σ (cos ψₙ + j sin ψₙ) cos(2πx cos αₙ + φₙ),
//! αₙ = (2πn − π + θ)/4M, with θ, φₙ, ψₙ uniform from −π to π. The paper has one φ for all; then all sinusoids are in
//! phase at the beginning, where the channel would not be Rayleigh. The autocorrelation is J₀ over many keys. A tap
//! with another spectrum is a sum of M complex exponentials of random phase, whose Doppler frequencies are one draw
//! from each M-th of the spectrum's power. A direct path is one more exponential.

use airpath_core::DrawKey;
use std::f64::consts::{PI, TAU};

use super::quantity::Decibels;
use crate::random::standard_normal;

/// The Doppler spectrum of a tap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spectrum {
    /// Equal power from all directions.
    Classical,
    /// Two bell curves over the Doppler frequency relative to the greatest: share of the first, then centre and
    /// standard deviation of each.
    Gaussian(f64, [f64; 2], [f64; 2]),
}

/// A tap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tap {
    /// Delay in seconds.
    pub delay: f64,
    /// Power; that of all taps is scaled to one.
    pub power: f64,
    /// The spectrum of its scattered part.
    pub spectrum: Spectrum,
    /// Ratio of the direct path's power to the scattered power, and its Doppler frequency relative to the greatest.
    pub direct: Option<(f64, f64)>,
}

/// A tap without a direct path, of a delay in seconds and a power in decibels.
pub(super) fn scattered(delay: f64, decibels: f64) -> Tap {
    Tap { delay, power: Decibels(decibels).ratio(), spectrum: Spectrum::Classical, direct: None }
}

/// A sinusoid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sinusoid {
    /// Doppler frequency relative to the greatest.
    pub factor: f64,
    /// Phase at the beginning, in turns.
    pub phase: f64,
    /// Parts of the cosine and of the sine in the real and in the imaginary part.
    pub weights: Weights,
}

/// Parts of a sinusoid in the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    pub cos_re: f64,
    pub cos_im: f64,
    pub sin_re: f64,
    pub sin_im: f64,
}

/// The complex exponential of `amplitude`.
pub(super) fn exponential(factor: f64, phase: f64, amplitude: f64) -> Sinusoid {
    Sinusoid { factor, phase, weights: Weights { cos_re: amplitude, cos_im: 0.0, sin_re: 0.0, sin_im: amplitude } }
}

impl Tap {
    /// The sinusoids of the tap, `count` for its scattered part, of mean power one together.
    pub(super) fn sinusoids(&self, key: DrawKey, count: usize) -> Vec<Sinusoid> {
        let k = self.direct.map_or(0.0, |(k, _)| k);
        let mut all = self.spectrum.sinusoids(key, count, 1.0 / (k + 1.0));
        if let Some((k, factor)) = self.direct {
            all.push(exponential(factor, key.unit(0, 5), libm::sqrt(k / (k + 1.0))));
        }
        all
    }
}

impl Spectrum {
    fn sinusoids(self, key: DrawKey, count: usize, power: f64) -> Vec<Sinusoid> {
        let m = count as f64;
        let between = |step, attempt| (2.0 * key.unit(step, attempt) - 1.0) * PI;
        match self {
            Spectrum::Classical => {
                let theta = between(0, 0);
                let amplitude = libm::sqrt(2.0 * power / m);
                let one = |n: usize| {
                    let (sin, cos) = libm::sincos(between(n as u64, 2));
                    Sinusoid {
                        factor: libm::cos((TAU * n as f64 - PI + theta) / (4.0 * m)),
                        phase: key.unit(n as u64, 1),
                        weights: Weights { cos_re: amplitude * cos, cos_im: amplitude * sin, sin_re: 0.0, sin_im: 0.0 },
                    }
                };
                (1..=count).map(one).collect()
            }
            Spectrum::Gaussian(share, first, second) => {
                let amplitude = libm::sqrt(power / m);
                let one = |n: usize| {
                    let place = (n as f64 + key.unit(n as u64, 3)) / m;
                    let (part, [centre, deviation]) =
                        if place < share { (place / share, first) } else { ((place - share) / (1.0 - share), second) };
                    let tail = part.clamp(1e-12, 1.0 - 1e-12);
                    // A Doppler frequency cannot exceed the greatest.
                    let factor = (centre + deviation * standard_normal::quantile(tail)).clamp(-1.0, 1.0);
                    exponential(factor, key.unit(n as u64, 4), amplitude)
                };
                (0..count).map(one).collect()
            }
        }
    }
}
