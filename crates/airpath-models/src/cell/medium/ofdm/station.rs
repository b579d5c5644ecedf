// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A station on a medium of adaptive OFDM: its radio channel, its choice of modes, and the errors of its frames.

use std::sync::Arc;

use airpath_core::DrawKey;

use super::OfdmConfig;
use super::rates::{Following, Rates};
use crate::adaptation::{Adaptation, Modes};
use crate::fading::{Fading, FadingConfig};
use crate::quality::{Quality, Reception};

/// A station in one direction.
#[derive(Clone, Debug)]
pub(super) struct Station {
    fading: Fading,
    /// The same channel for predictions of later slots, so that it computes each stretch of time once; none where
    /// predictions are for the present slot.
    ahead: Option<Box<Fading>>,
    adaptation: Adaptation,
    /// Levels that follow the local mean.
    following: Option<Following>,
    modes: Arc<Modes>,
    frame_bits: Arc<[u32]>,
    symbols: u32,
    resources: usize,
    /// Number of resources that it can use in a slot: its best ones.
    most_resources: usize,
    key: DrawKey,
    /// Key of the errors of symbols.
    symbols_key: DrawKey,
    /// Scratch: resources by their predicted ratios.
    order: Vec<(f32, u16)>,
}

impl Station {
    pub(super) fn new(
        config: &OfdmConfig,
        fading: &FadingConfig,
        key: DrawKey,
        is_ahead: bool,
        rates: &mut Rates,
    ) -> Station {
        let fading = config.on_grid(fading);
        let (adaptation, following) = rates.of(config, &fading);
        Station {
            adaptation,
            following,
            fading: Fading::new(&fading, key.child("fading", 0)),
            ahead: is_ahead.then(|| Box::new(Fading::new(&fading, key.child("fading", 0)))),
            modes: rates.modes.clone(),
            frame_bits: rates.frame_bits.clone(),
            symbols: config.symbols,
            resources: usize::from(config.resources),
            most_resources: usize::from(config.resources_per_station.unwrap_or(config.resources)),
            key,
            symbols_key: key.child("symbols", 0),
            order: Vec::new(),
        }
    }

    /// Takes other parameters of the channel. The draws stay those of its key.
    pub(super) fn configure(&mut self, config: &OfdmConfig, fading: &FadingConfig, rates: &mut Rates) {
        let fading = config.on_grid(fading);
        (self.adaptation, self.following) = rates.of(config, &fading);
        self.fading = Fading::new(&fading, self.key.child("fading", 0));
        if let Some(ahead) = &mut self.ahead {
            **ahead = self.fading.clone();
        }
    }

    /// Adds the bits that each resource would carry in slot `number`, by the predicted quality.
    pub(super) fn offer(&mut self, number: u64, bits: &mut Vec<u32>) {
        let fading = self.ahead.as_deref_mut().unwrap_or(&mut self.fading);
        if let Some(following) = &mut self.following
            && let Some(levels) = following.changed(fading.mean(number))
        {
            self.adaptation.take_levels(levels);
        }
        let predicted = fading.predicted(number);
        let first = bits.len();
        bits.resize(first + self.resources, 0);
        self.adaptation.look_up(predicted, &self.frame_bits, &mut bits[first..]);
        if self.most_resources < self.resources {
            self.order.clear();
            self.order.extend(predicted.iter().copied().zip(0u16..));
            // The lower number first where two are equally good.
            self.order.sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
            for (_, resource) in &self.order[self.most_resources..] {
                bits[first + usize::from(*resource)] = 0;
            }
        }
    }

    /// Errors of a frame of `bits` in slot `number`, by the true quality. The mode is the lowest that carries the frame.
    pub(super) fn quality(&mut self, number: u64, resource: usize, bits: u64) -> Quality {
        let snr = self.fading.snr(number)[resource];
        let of_modes = &self.frame_bits[1..];
        let mode = of_modes.partition_point(|carries| u64::from(*carries) < bits).min(of_modes.len() - 1);
        let reception = Reception { modes: self.modes.clone(), mode, symbols: self.symbols, snr };
        let (unit, probability) = reception.errors_at(snr);
        let step = number * self.resources as u64 + resource as u64;
        Quality { unit, probability, key: self.symbols_key, step, reception: Some(reception) }
    }

    /// Hears whether a frame was received; `weight` is its share of the station's frames in its slot.
    pub(super) fn heard(&mut self, is_ok: bool, weight: f64) {
        self.adaptation.heard(is_ok, weight);
    }
}
