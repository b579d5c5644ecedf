// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The true signal-to-noise ratio, given the predicted one.
//!
//! The prediction ĥ of [`crate::fading`] and the channel h are jointly Gaussian, E[h ĥ*] = E|ĥ|² = 1 − e. So
//! h given ĥ has the mean ĥ and the variance 1 − (1 − e)²/(1 − e) = e. With a mean ratio Γ the true ratio
//! γ = Γ|h|² given the predicted γ̂ = Γ|ĥ|² has a noncentral χ² distribution with two degrees of freedom, mean
//! γ̂ + eΓ (Falahati, Svensson, Ekman and Sternad 2004, equation for f(γ|γ̂)), and its root a distribution of Rice. It
//! depends on e and Γ by their product alone, the power of the error.
//!
//! Channels with a direct path, or of few sinusoids, are not Gaussian; for them this is an approximation.

/// Points of the rule, and standard deviations of the noise in one dimension that it covers to each side.
const POINTS: u32 = 128;
const REACH: f64 = 6.0;

/// Visits true ratios and their probabilities, given the `predicted` ratio and the power of the error: the midpoints
/// of equal steps of the amplitude. The error of the rule is that of a density with a corner at 0, 10⁻⁴ at most.
pub(super) fn visit(predicted: f64, error_power: f64, mut see: impl FnMut(f64, f64)) {
    if error_power <= 0.0 {
        return see(predicted, 1.0);
    }
    let (middle, deviation) = (libm::sqrt(predicted), libm::sqrt(error_power / 2.0));
    let least = (middle - REACH * deviation).max(0.0);
    let step = (middle + REACH * deviation - least) / f64::from(POINTS);
    // The density of Rice, but for a factor.
    let weight = |amplitude: f64| {
        let distance = (amplitude - middle) / deviation;
        let product = amplitude * middle / (deviation * deviation);
        amplitude * libm::exp(-distance * distance / 2.0) * scaled_bessel(product)
    };
    let points = || (0..POINTS).map(|point| least + (f64::from(point) + 0.5) * step);
    // What the rule leaves out or rounds is shared by all: the probabilities sum to one.
    let weights: Vec<f64> = points().map(weight).collect();
    let whole: f64 = weights.iter().sum();
    for (amplitude, weight) in points().zip(weights) {
        see(amplitude * amplitude, weight / whole);
    }
}

/// Expectation of `of` the true ratio, given the `predicted` ratio and the power of the error.
pub fn expectation(predicted: f64, error_power: f64, of: impl Fn(f64) -> f64) -> f64 {
    let mut sum = 0.0;
    visit(predicted, error_power, |snr, probability| sum += probability * of(snr));
    sum
}

/// The modified Bessel function I₀ times e^(−x), for x of 0 or more.
///
/// Source: Abramowitz and Stegun 1964, 9.8.1 and 9.8.2; the relative error is below 3·10⁻⁷.
fn scaled_bessel(x: f64) -> f64 {
    const SMALL: [f64; 7] = [1.0, 3.515_622_9, 3.089_942_4, 1.206_749_2, 0.265_973_2, 0.036_076_8, 0.004_581_3];
    const LARGE: [f64; 9] = [
        0.398_942_28,
        0.013_285_92,
        0.002_253_19,
        -0.001_575_65,
        0.009_162_81,
        -0.020_577_06,
        0.026_355_37,
        -0.016_476_33,
        0.003_923_77,
    ];
    let polynomial = |x: f64, coefficients: &[f64]| coefficients.iter().rev().fold(0.0, |sum, next| sum * x + next);
    let ratio = x / 3.75;
    if ratio <= 1.0 {
        polynomial(ratio * ratio, &SMALL) * libm::exp(-x)
    } else {
        polynomial(1.0 / ratio, &LARGE) / libm::sqrt(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bessel_function_is_its_series() {
        for x in [0.0, 0.1, 1.0, 3.7, 3.8, 10.0, 30.0f64] {
            let (mut term, mut sum) = (1.0, 1.0);
            for n in 1..200 {
                term *= (x / 2.0) * (x / 2.0) / f64::from(n * n);
                sum += term;
            }
            assert!((scaled_bessel(x) * x.exp() / sum - 1.0).abs() < 3e-7, "{x}");
        }
    }

    #[test]
    fn moments_are_those_of_the_noncentral_distribution() {
        // Mean γ̂ + s and variance s² + 2 s γ̂ for an error of power s.
        for (predicted, power) in [(0.0, 1.0), (0.5, 2.0), (10.0, 4.0), (1000.0, 0.01), (3.0, 50.0)] {
            let mean = expectation(predicted, power, |snr| snr);
            let square = expectation(predicted, power, |snr| (snr - mean) * (snr - mean));
            let variance = power * power + 2.0 * power * predicted;
            assert!((mean / (predicted + power) - 1.0).abs() < 2e-4, "{predicted} {power}: {mean}");
            assert!((square / variance - 1.0).abs() < 2e-4, "{predicted} {power}: {square} for {variance}");
        }
        assert_eq!(expectation(7.0, 0.0, |snr| snr), 7.0);
    }
}
