// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The radio channel of a station: fast fading with everything that moves its mean, block by block.
//!
//! Nothing is computed before a slot is asked for; then the slot's block is.

use airpath_core::{DrawKey, Time};

use super::motion::Motion;
use super::path_loss::PathLoss;
use super::prediction::Prediction;
use super::quantity::Decibels;
use super::shadowing::Shadowing;
use super::{BLOCK, FadingConfig, FadingModel, Grid, LIGHT_METRES_PER_SECOND, Response};

/// The radio channel of a station.
#[derive(Clone, Debug)]
pub struct Fading {
    model: FadingModel,
    motion: Motion,
    mean: f64,
    shadowing: Option<Shadowing>,
    path_loss: Option<PathLoss>,
    pub(super) prediction: Option<Prediction>,
    pub(super) grid: Grid,
    slots_per_second: u32,
    /// Number of the block that is computed.
    block: Option<u64>,
    pub(super) re: Vec<f32>,
    pub(super) im: Vec<f32>,
    snr: Vec<f32>,
    /// Mean ratios of the block, by slot.
    means: [f32; BLOCK],
}

impl Fading {
    /// The channel that `config` describes, without problems; its draws are those of `key`.
    pub fn new(config: &FadingConfig, key: DrawKey) -> Fading {
        let grid = |role| Grid {
            key: key.child(role, 0),
            resources: config.resources,
            spacing_hz: config.spacing.0,
            wavelength: LIGHT_METRES_PER_SECOND / config.carrier.0,
        };
        let own = grid("channel");
        let values = own.lanes() * BLOCK;
        let error = config.prediction_error;
        let other = || FadingModel::new(&config.model, grid("prediction"));
        Fading {
            model: FadingModel::new(&config.model, own),
            motion: match &config.route {
                Some(route) => Motion::along(route.data(), config.slots_per_second),
                None => Motion::new(&config.speed.clone().unwrap_or_default(), config.slots_per_second),
            },
            mean: config.snr.0,
            shadowing: config.shadowing.as_ref().map(|config| Shadowing::new(config, key.child("shadowing", 0))),
            path_loss: config.path_loss.as_ref().map(|path_loss| PathLoss::new(path_loss, config.carrier.0)),
            prediction: (error > 0.0).then(|| Prediction::new(error, other(), values)),
            grid: own,
            slots_per_second: config.slots_per_second,
            block: None,
            re: vec![0.0; values],
            im: vec![0.0; values],
            snr: vec![0.0; values],
            means: [0.0; BLOCK],
        }
    }

    /// Beginning of slot number `slot`.
    pub fn slot_start(&self, slot: u64) -> Time {
        let nanos = u128::from(slot) * 1_000_000_000 / u128::from(self.slots_per_second);
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Number of the slot that begins at `at` or was the last to begin before.
    pub fn slot_at(&self, at: Time) -> u64 {
        // Slot n begins at or before t if n·10⁹ < (t + 1)·f.
        let scaled = (u128::from(at.nanos()) + 1) * u128::from(self.slots_per_second);
        ((scaled - 1) / 1_000_000_000) as u64
    }

    /// Number of resources.
    pub fn resources(&self) -> u16 {
        self.grid.resources
    }

    /// Signal-to-noise ratios of all resources in slot number `slot`, as ratios of powers.
    #[inline]
    pub fn snr(&mut self, slot: u64) -> &[f32] {
        let places = self.at(slot);
        &self.snr[places]
    }

    /// The same, as the receiver predicted them.
    #[inline]
    pub fn predicted(&mut self, slot: u64) -> &[f32] {
        let places = self.at(slot);
        self.prediction.as_ref().map_or(&self.snr[..], |prediction| &prediction.snr)[places].as_ref()
    }

    /// Mean of the true ratios over fast fading in slot number `slot`: with shadowing and path loss.
    #[inline]
    pub fn mean(&mut self, slot: u64) -> f32 {
        self.at(slot);
        self.means[(slot % BLOCK as u64) as usize]
    }

    #[inline]
    fn at(&mut self, slot: u64) -> std::ops::Range<usize> {
        let block = slot / BLOCK as u64;
        if self.block != Some(block) {
            self.compute(block);
        }
        let first = (slot % BLOCK as u64) as usize * self.grid.lanes() + self.grid.first();
        first..first + usize::from(self.grid.resources)
    }

    fn compute(&mut self, index: u64) {
        let block = self.motion.block(index);
        self.block = Some(index);
        self.model.respond(&block, &mut self.re, &mut self.im);
        let mut means = [0.0f32; BLOCK];
        let changes = self.shadowing.is_some() || self.path_loss.is_some();
        for (slot, mean) in means.iter_mut().enumerate() {
            if slot > 0 && !changes {
                break;
            }
            let distance = block.distance + block.step * slot as f64;
            let shadowing = self.shadowing.as_mut().map_or(0.0, |shadowing| shadowing.decibels(distance));
            let number = index * BLOCK as u64 + slot as u64;
            let path = self
                .path_loss
                .as_ref()
                .map_or(0.0, |path_loss| path_loss.decibels(distance, self.motion.position(number)));
            *mean = Decibels(self.mean + shadowing + path).ratio() as f32;
        }
        if !changes {
            means = [means[0]; BLOCK];
        }
        self.means = means;
        powers(&self.re, &self.im, &means, &mut self.snr);
        if let Some(prediction) = &mut self.prediction {
            prediction.compute(&block, &self.re, &self.im);
            powers(&prediction.re, &prediction.im, &means, &mut prediction.snr);
        }
    }
}

fn powers(re: &[f32], im: &[f32], means: &[f32; BLOCK], snr: &mut [f32]) {
    let lanes = snr.len() / BLOCK;
    let slots = snr.chunks_exact_mut(lanes).zip(re.chunks_exact(lanes).zip(im.chunks_exact(lanes)));
    for ((snr, (re, im)), mean) in slots.zip(means) {
        for ((snr, re), im) in snr.iter_mut().zip(re).zip(im) {
            *snr = (re * re + im * im) * mean;
        }
    }
}
