// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Prediction of a channel, with an error of a given size.
//!
//! ĥ = (1 − e) h + √(e (1 − e)) w of the channel h, where e is the normalised mean square error and w an independent
//! channel of the same kind. The error h − ĥ has the power e and no correlation with ĥ, as that of a linear
//! predictor of least mean square error (Sternad and Falahati 2004); ĥ has the power 1 − e.

use super::{Block, FadingModel, Response};

/// The prediction.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    of_channel: f32,
    of_other: f32,
    other: FadingModel,
    pub re: Vec<f32>,
    pub im: Vec<f32>,
    pub snr: Vec<f32>,
}

impl Prediction {
    /// The prediction with the normalised mean square error `error`, made from the channel `other`, in blocks of `values`.
    pub(super) fn new(error: f64, other: FadingModel, values: usize) -> Prediction {
        Prediction {
            of_channel: (1.0 - error) as f32,
            of_other: libm::sqrt(error * (1.0 - error)) as f32,
            other,
            re: vec![0.0; values],
            im: vec![0.0; values],
            snr: vec![0.0; values],
        }
    }

    /// Computes the predicted response in `block`, where the true one is `re` and `im`.
    pub(super) fn compute(&mut self, block: &Block, re: &[f32], im: &[f32]) {
        self.other.respond(block, &mut self.re, &mut self.im);
        let (of_channel, of_other) = (self.of_channel, self.of_other);
        for (part, channel) in [(&mut self.re, re), (&mut self.im, im)] {
            for (part, channel) in part.iter_mut().zip(channel) {
                *part = of_channel * channel + of_other * *part;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Direction, DrawKey, DrawScope, Seed};

    use super::super::{Fading, FadingConfig};

    #[test]
    fn the_complex_error_has_its_power_and_no_correlation_with_the_prediction() {
        // Over 4000 keys: E|h − ĥ|² = e and E|ĥ|² = 1 − e with standard errors of 1/√4000 = 1.6 %, and both parts of
        // E (h − ĥ) ĥ* = 0 with √(e (1 − e) / 2 / 4000) at most 0.0056; bounds are four of them.
        for error in [0.05, 0.1, 0.3] {
            let config = FadingConfig { prediction_error: error, ..FadingConfig::examples().remove(1) };
            let (mut of_error, mut of_guess, mut across, n) = (0.0, 0.0, [0.0; 2], 4000);
            for seed in 0..n {
                let scope = DrawScope { hop: "r", direction: Direction::Downlink, role: "fading", instance: 0 };
                let mut fading = Fading::new(&config, DrawKey::new(Seed(seed), &scope));
                fading.snr(100);
                let prediction = fading.prediction.as_ref().expect("there is an error");
                let place = 36 * fading.grid.lanes() + fading.grid.first();
                let guess = (f64::from(prediction.re[place]), f64::from(prediction.im[place]));
                let difference = (f64::from(fading.re[place]) - guess.0, f64::from(fading.im[place]) - guess.1);
                let parts =
                    [difference.0 * guess.0 + difference.1 * guess.1, difference.1 * guess.0 - difference.0 * guess.1];
                of_error += (difference.0.powi(2) + difference.1.powi(2)) / n as f64;
                of_guess += (guess.0.powi(2) + guess.1.powi(2)) / n as f64;
                across.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part / n as f64);
            }
            assert!((of_error / error - 1.0).abs() < 0.064, "{error}: {of_error}");
            assert!((of_guess / (1.0 - error) - 1.0).abs() < 0.064, "{error}: {of_guess}");
            assert!(across.iter().all(|part| part.abs() < 0.023), "{error}: {across:?}");
        }
    }
}
