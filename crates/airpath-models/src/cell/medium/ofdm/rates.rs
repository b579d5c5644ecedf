// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Choices of modes for the stations of a medium, computed once for all.
//!
//! Computed switching levels depend on the power of the error of the prediction, which is its normalised mean square
//! error times the mean signal-to-noise ratio. Shadowing and path loss move the mean, and the receiver knows it: the
//! prediction of a slot is a multiple of it. Levels are therefore computed on a grid of powers, and a station uses those
//! of its local mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use airpath_core::Probability;

use super::config::{LevelsFor, OfdmConfig};
use crate::adaptation::{Adaptation, Frames, Levels, Modes};
use crate::fading::FadingConfig;
use crate::fading::quantity::Decibels;

/// Step of the grid, in dB. Levels for a mean that is 1 dB off cost less than 0.1 % of the throughput.
const STEP_DB: i32 = 2;
/// Powers of errors beyond which levels do not change any more, in steps of the grid.
const LEAST_STEP: i32 = -15;
const MOST_STEP: i32 = 22;
/// Standard deviations of shadowing that the grid covers.
const DEVIATIONS: f64 = 3.0;

/// Choices of modes, computed once for all stations.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    pub(super) modes: Arc<Modes>,
    /// Bits of a frame in no mode, and in each.
    pub(super) frame_bits: Arc<[u32]>,
    known: Vec<(f64, Adaptation)>,
    /// Levels by the step of the grid.
    grid: BTreeMap<i32, Arc<Levels>>,
}

/// Switching levels that follow the local mean of a station.
#[derive(Clone, Debug)]
pub(super) struct Following {
    /// Power of the error, over the mean.
    error: f32,
    /// Number of the first step, and the levels of it and the following ones.
    first: i32,
    levels: Vec<Arc<Levels>>,
    /// The step in force, and the powers between which it stays so.
    step: Option<(usize, f32, f32)>,
}

fn power(step: f64) -> f64 {
    Decibels(step * f64::from(STEP_DB)).ratio()
}

impl Rates {
    pub(super) fn new(config: &OfdmConfig) -> Rates {
        let modes = Arc::new(Modes::new(&config.modes, ()));
        let of_modes = (0..modes.len()).map(|mode| modes.frame_bits(mode, config.symbols));
        let frame_bits = std::iter::once(0).chain(of_modes).collect();
        Rates { modes, frame_bits, known: Vec::new(), grid: BTreeMap::new() }
    }

    fn frames(&self, config: &OfdmConfig, error_power: f64) -> Frames {
        Frames { modes: self.modes.clone(), symbols: config.symbols, error_power }
    }

    /// The choice of a station with this channel, and what makes it follow the local mean, if anything does.
    pub(super) fn of(&mut self, config: &OfdmConfig, fading: &FadingConfig) -> (Adaptation, Option<Following>) {
        let error = config.assumed_prediction_error.map_or(fading.prediction_error, Probability::get);
        let error_power = error * fading.snr.ratio();
        let following = self.following(config, fading, error);
        if let Some((_, adaptation)) = self.known.iter().find(|(known, _)| *known == error_power) {
            return (adaptation.clone(), following);
        }
        let adaptation = Adaptation::new(&config.adaptation, self.frames(config, error_power));
        self.known.push((error_power, adaptation.clone()));
        (adaptation, following)
    }

    fn following(&mut self, config: &OfdmConfig, fading: &FadingConfig, error: f64) -> Option<Following> {
        let is_steady = fading.shadowing.is_none() && fading.path_loss.is_none();
        if is_steady || error <= 0.0 || config.levels_for == LevelsFor::NominalMean {
            return None;
        }
        let middle = 10.0 * libm::log10(error) + fading.snr.0;
        let reach = match (&fading.path_loss, &fading.shadowing) {
            (None, Some(shadowing)) => DEVIATIONS * shadowing.deviation.0,
            _ => f64::INFINITY,
        };
        let step = |decibels: f64| (decibels / f64::from(STEP_DB)).clamp(LEAST_STEP.into(), MOST_STEP.into());
        let (first, last) = (libm::floor(step(middle - reach)) as i32, libm::ceil(step(middle + reach)) as i32);
        let levels = (first..=last).map(|step| self.levels(config, step)).collect::<Option<Vec<_>>>()?;
        Some(Following { error: error as f32, first, levels, step: None })
    }

    fn levels(&mut self, config: &OfdmConfig, step: i32) -> Option<Arc<Levels>> {
        if let Some(known) = self.grid.get(&step) {
            return Some(known.clone());
        }
        let levels = Arc::new(config.adaptation.computed_levels(&self.frames(config, power(step.into())))?);
        self.grid.insert(step, levels.clone());
        Some(levels)
    }
}

impl Following {
    /// Levels for the local mean `mean`, if they are others than those in force.
    #[inline]
    pub(super) fn changed(&mut self, mean: f32) -> Option<&Arc<Levels>> {
        let power = mean * self.error;
        match self.step {
            Some((_, from, to)) if from <= power && power < to => None,
            _ => self.look_up(power),
        }
    }

    #[cold]
    fn look_up(&mut self, now: f32) -> Option<&Arc<Levels>> {
        let last = self.levels.len() - 1;
        // The nearest step in decibels; at the ends of the grid everything beyond, too.
        let edge = |step: usize| power(f64::from(self.first) + step as f64 + 0.5) as f32;
        let step = (0..last).find(|step| now < edge(*step)).unwrap_or(last);
        let from = if step == 0 { f32::NEG_INFINITY } else { edge(step - 1) };
        let to = if step == last { f32::INFINITY } else { edge(step) };
        let before = self.step.replace((step, from, to));
        (before.map(|(before, ..)| before) != Some(step)).then(|| &self.levels[step])
    }
}
