// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Switching levels: the predicted signal-to-noise ratios from which a mode is better than those below it.
//!
//! Source: Sternad and Falahati 2004, "Maximizing throughput with adaptive M-QAM based on imperfect channel
//! predictions". The criterion is the throughput in frames without errors. A frame of n symbols in a mode of k bits a
//! symbol and symbol error probability P is free of errors with the probability (1 − P(γ))ⁿ, so that a mode's
//! throughput at a predicted ratio γ̂ is k E[(1 − P(γ))ⁿ | γ̂] bits a symbol, over the true ratios γ. A frame of a
//! coded mode is one block.

use super::{Frames, prediction};

/// Predicted ratios at which the best mode is looked for, in dB.
const LEAST_DB: i32 = -20;
const MOST_DB: i32 = 44;
/// Halvings of 1 dB to a level: it is known within 10⁻⁴ dB.
const HALVINGS: u32 = 14;

/// Switching levels: mode m is used from level m up to level m + 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// Least predicted ratio of each mode. A mode that is never best has the level of the next.
    from: Vec<f32>,
}

pub(super) fn ratio(decibels: f64) -> f64 {
    crate::fading::quantity::Decibels(decibels).ratio()
}

/// Throughput in error-free frames of each mode at a predicted ratio, in bits a symbol.
pub fn throughputs(frames: &Frames, predicted: f64) -> Vec<f64> {
    let Frames { modes, symbols, error_power } = frames;
    let mut sums = vec![0.0; modes.len()];
    prediction::visit(predicted, *error_power, |snr, probability| {
        for (mode, sum) in sums.iter_mut().enumerate() {
            *sum += probability * (1.0 - modes.frame_error(mode, snr as f32, *symbols));
        }
    });
    for (mode, sum) in sums.iter_mut().enumerate() {
        *sum *= modes.bits_per_symbol(mode);
    }
    sums
}

/// Throughput that is none: that of modes with less is rounding.
const NOTHING: f64 = 1e-12;

/// The mode of the greatest throughput; the lowest among equals.
fn best(frames: &Frames, predicted_db: f64) -> usize {
    let throughputs = throughputs(frames, ratio(predicted_db));
    let mut best = 0;
    for (mode, throughput) in throughputs.iter().enumerate() {
        if *throughput > throughputs[best] + NOTHING {
            best = mode;
        }
    }
    best
}

impl Levels {
    /// The levels of the greatest throughput in frames without errors. The lowest mode has the level 0, unless
    /// `least_success` is above 0: then it begins where a frame is free of errors with that probability.
    pub fn of_greatest_throughput(frames: &Frames, least_success: f64) -> Levels {
        let count = frames.modes.len();
        let mut from = vec![f32::INFINITY; count];
        let lowest = best(frames, LEAST_DB.into());
        from[..=lowest].fill(0.0);
        let mut below = lowest;
        for step in LEAST_DB..MOST_DB {
            let above = best(frames, f64::from(step + 1));
            if above > below {
                search(frames, (step.into(), below), (f64::from(step + 1), above), HALVINGS, &mut from);
                below = above;
            }
        }
        let mut levels = Levels { from };
        if least_success > 0.0 {
            levels.begin_at(frames, least_success);
        }
        levels
    }

    /// Levels as they are given, in ratios of powers and in ascending order, one for each mode.
    pub fn given(from: Vec<f32>) -> Levels {
        Levels { from }
    }

    /// The level of each mode, as a ratio of powers.
    pub fn ratios(&self) -> &[f32] {
        &self.from
    }

    /// The mode to use; none below the level of the lowest mode.
    #[inline]
    pub fn mode(&self, predicted_snr: f32) -> Option<usize> {
        // A handful of levels: counting all is quicker than a search that has to guess.
        let reached = self.from.iter().filter(|level| predicted_snr >= **level).count();
        reached.checked_sub(1)
    }

    /// Writes the values of the modes for these ratios: `values` has one for no mode, and one for each mode.
    pub fn look_up(&self, predicted: &[f32], values: &[u32], out: &mut [u32]) {
        // Level by level over many ratios, which a processor does for several at once.
        out.fill(0);
        for level in &self.from {
            for (reached, snr) in out.iter_mut().zip(predicted) {
                *reached += u32::from(*snr >= *level);
            }
        }
        for out in out {
            *out = values[*out as usize];
        }
    }

    fn begin_at(&mut self, frames: &Frames, least_success: f64) {
        let success = |db: f64| {
            let mode = self.mode(ratio(db) as f32).unwrap_or(0);
            throughputs(frames, ratio(db))[mode] / frames.modes.bits_per_symbol(mode)
        };
        let (mut below, mut above) = (f64::from(LEAST_DB), f64::from(MOST_DB));
        if success(below) >= least_success {
            return;
        }
        // The first whole decibel at which it is enough: a step up to the next mode may fall below again.
        if let Some(enough) = (LEAST_DB..=MOST_DB).find(|db| success(f64::from(*db)) >= least_success) {
            (below, above) = (f64::from(enough - 1), enough.into());
        }
        for _ in 0..HALVINGS {
            let middle = (below + above) / 2.0;
            if success(middle) >= least_success {
                above = middle;
            } else {
                below = middle;
            }
        }
        let least = ratio(above) as f32;
        for level in &mut self.from {
            *level = level.max(least);
        }
    }
}

/// Finds the levels between two ratios in dB at which the best modes are known, by halving.
fn search(frames: &Frames, below: (f64, usize), above: (f64, usize), halvings: u32, from: &mut [f32]) {
    if halvings == 0 {
        from[below.1 + 1..=above.1].fill(ratio(above.0) as f32);
        return;
    }
    let middle_db = (below.0 + above.0) / 2.0;
    let middle = (middle_db, best(frames, middle_db).clamp(below.1, above.1));
    for (below, above) in [(below, middle), (middle, above)] {
        if above.1 > below.1 {
            search(frames, below, above, halvings - 1, from);
        }
    }
}

/// Throughput in error-free frames with these levels over a channel of Rayleigh fading, in bits a symbol.
///
/// With the mean ratio Γ, `mean`, and the power of the error s the predicted ratio has an exponential distribution of
/// mean Γ − s. The trapezoidal rule integrates over it, from −30 to 45 dB in steps of 0.05 dB.
pub fn rayleigh_throughput(levels: &Levels, frames: &Frames, mean: f64) -> f64 {
    const STEP_DB: f64 = 0.05;
    let predicted_mean = mean - frames.error_power;
    let at = |step: u32| {
        let predicted = ratio(f64::from(step) * STEP_DB - 30.0);
        let Some(mode) = levels.mode(predicted as f32) else { return 0.0 };
        let share = predicted / predicted_mean;
        share * libm::exp(-share) * throughputs(frames, predicted)[mode]
    };
    (0..=1500).map(at).sum::<f64>() * STEP_DB * std::f64::consts::LN_10 / 10.0
}
