// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors of a frame on a radio channel whose quality its medium knows: a medium with fading and link adaptation
//! hands them over with the frame, so that the sending end cannot know them beforehand.
//!
//! A draw belongs to the resource and the slot of a frame, not to the number of frames before it: what others send
//! changes nothing.

use std::sync::Arc;

use airpath_core::DrawKey;

use crate::adaptation::Modes;
use crate::channel::{ChannelOutcome, ErrorPositions};

/// Probability of errors in one frame, and the stream and step of their draws.
#[derive(Clone, Debug)]
pub struct Quality {
    /// Unit that errors hit.
    pub unit: ErrorUnit,
    /// Probability that an error hits a unit.
    pub probability: f64,
    /// Key of the draws.
    pub key: DrawKey,
    /// Step of the draws, one for each resource of each slot.
    pub step: u64,
    /// Mode and ratio from which `probability` follows, for a receiver that combines the copies of a frame; none where
    /// copies cannot be combined.
    pub reception: Option<Reception>,
}

/// Mode and signal-to-noise ratio of one frame.
#[derive(Clone, Debug)]
pub struct Reception {
    /// The modes of the medium.
    pub modes: Arc<Modes>,
    /// Mode of the frame.
    pub mode: usize,
    /// Number of its symbols.
    pub symbols: u32,
    /// True signal-to-noise ratio, as a ratio of powers.
    pub snr: f32,
}

impl Reception {
    /// Unit that errors hit, and the probability of that at the signal-to-noise ratio `snr`.
    pub fn errors_at(&self, snr: f32) -> (ErrorUnit, f64) {
        match self.modes.symbol_error(self.mode, snr) {
            Some(error) => (ErrorUnit::Symbol(self.modes.bits_per_symbol(self.mode) as u8), error),
            None => (ErrorUnit::Frame, self.modes.frame_error(self.mode, snr, self.symbols)),
        }
    }
}

/// Unit of a transmission that an error hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorUnit {
    /// A symbol of so many bits. An error takes the symbol for a neighbour, which by Gray mapping differs in one bit.
    Symbol(u8),
    /// The frame as a whole, as where a channel code corrects all errors or fails.
    Frame,
}

impl Quality {
    /// Outcome of a frame of `bits` if errors hit it. `positions` says what the entity wants to know of them.
    pub(crate) fn outcome(&self, bits: u64, positions: ErrorPositions) -> Option<ChannelOutcome> {
        let bits_per_symbol = match self.unit {
            ErrorUnit::Frame => {
                let hit = self.key.unit(self.step, 0) < self.probability;
                return hit.then_some(ChannelOutcome::Lost);
            }
            ErrorUnit::Symbol(bits) => u64::from(bits.max(1)),
        };
        let symbols = bits.div_ceil(bits_per_symbol);
        if self.spares(symbols) {
            return None;
        }
        let mut wrong = self.runs(symbols);
        let first = wrong.next()?;
        if positions == ErrorPositions::OfPacket {
            return Some(ChannelOutcome::Lost);
        }
        let flips = std::iter::once(first).chain(wrong).map(|symbol| {
            let bit = self.key.child("bit", symbol).below(self.step, 0, bits_per_symbol);
            // The last symbol may be longer than what is left of the frame.
            (symbol * bits_per_symbol + bit).min(bits - 1) as u32
        });
        Some(ChannelOutcome::Flipped(flips.collect()))
    }

    /// Errors of a frame that are left of those `before` if each of them stays with probability `stays`.
    pub(crate) fn left_of(&self, before: &ChannelOutcome, stays: f64) -> Option<ChannelOutcome> {
        let ChannelOutcome::Flipped(flips) = before else {
            return (self.key.unit(self.step, 0) < stays).then(|| before.clone());
        };
        let is_left = |flip: &&u32| self.key.child("again", u64::from(**flip)).unit(self.step, 0) < stays;
        let flips: Vec<u32> = flips.iter().filter(is_left).copied().collect();
        (!flips.is_empty()).then_some(ChannelOutcome::Flipped(flips))
    }

    /// True if [`Quality::runs`] finds no wrong symbol among `symbols`, as far as that can be told without logarithms,
    /// which take longer than all the rest. The first is beyond them if the draw u is below (1 − p)ⁿ, which is at least
    /// 1 − np; the margin is far above what logarithms and their quotient round.
    fn spares(&self, symbols: u64) -> bool {
        let expected = symbols as f64 * self.probability;
        self.key.unit(self.step, 0) < 1.0 - expected * (1.0 + 1e-9) - 1e-12
    }

    /// Numbers of the wrong symbols among `symbols`: the runs of right ones between them are geometric.
    fn runs(&self, symbols: u64) -> impl Iterator<Item = u64> {
        let Quality { probability, key, step, .. } = *self;
        let right = libm::log1p(-probability.clamp(0.0, 1.0));
        let (mut next, mut attempt) = (0u64, 0u64);
        std::iter::from_fn(move || {
            if probability <= 0.0 {
                return None;
            }
            // 0 where each symbol is wrong: the logarithm of nothing is minus infinity.
            let run = libm::log(key.unit(step, attempt)) / right;
            attempt += 1;
            if run >= (symbols - next.min(symbols)) as f64 {
                return None;
            }
            let wrong = next + run as u64;
            next = wrong + 1;
            (wrong < symbols).then_some(wrong)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    fn quality(unit: ErrorUnit, probability: f64, step: u64) -> Quality {
        let scope = DrawScope { hop: "h", direction: Direction::Downlink, role: "symbols", instance: 0 };
        Quality { unit, probability, key: DrawKey::new(Seed(7), &scope), step, reception: None }
    }

    fn flips(probability: f64, step: u64) -> Vec<u32> {
        match quality(ErrorUnit::Symbol(3), probability, step).outcome(324, ErrorPositions::OfFrame) {
            Some(ChannelOutcome::Flipped(flips)) => flips,
            Some(other) => panic!("{other:?}"),
            None => Vec::new(),
        }
    }

    #[test]
    fn certain_errors_hit_every_symbol_once_and_impossible_ones_none() {
        let all = flips(1.0, 3);
        assert_eq!(all.iter().map(|bit| bit / 3).collect::<Vec<_>>(), (0..108).collect::<Vec<_>>());
        assert!(flips(0.0, 3).is_empty());
        let lost = quality(ErrorUnit::Frame, 1.0, 0).outcome(8, ErrorPositions::OfFrame);
        assert_eq!(lost, Some(ChannelOutcome::Lost));
        assert_eq!(quality(ErrorUnit::Frame, 0.0, 0).outcome(8, ErrorPositions::OfFrame), None);
    }

    #[test]
    fn symbols_are_wrong_with_their_probability_and_each_bit_of_them_alike() {
        // 4000 frames of 108 symbols: 99.99 % of the counts are within 3.9 standard deviations.
        let (mut wrong, mut bits, mut hit) = (0u64, [0u64; 3], 0u64);
        for step in 0..4000 {
            let flips = flips(0.02, step);
            hit += u64::from(!flips.is_empty());
            wrong += flips.len() as u64;
            flips.iter().for_each(|bit| bits[(bit % 3) as usize] += 1);
        }
        let near = |count: u64, of: f64, p: f64| {
            let deviation = (of * p * (1.0 - p)).sqrt();
            assert!((count as f64 - of * p).abs() < 3.9 * deviation, "{count} of {of} at {p}");
        };
        near(wrong, 4000.0 * 108.0, 0.02);
        near(hit, 4000.0, 1.0 - 0.98f64.powi(108));
        bits.iter().for_each(|bit| near(*bit, wrong as f64, 1.0 / 3.0));
    }

    #[test]
    fn frames_that_are_spared_without_logarithms_have_no_wrong_symbol() {
        let (mut spared, mut whole) = (0, 0);
        for step in 0..20_000 {
            let probability = [1e-15, 1e-6, 1e-4, 2e-3, 0.01, 0.3][step as usize % 6];
            let quality = quality(ErrorUnit::Symbol(2), probability, step);
            let is_whole = quality.runs(108).next().is_none();
            assert!(is_whole || !quality.spares(108), "step {step}");
            spared += u64::from(quality.spares(108));
            whole += u64::from(is_whole);
        }
        assert!(spared <= whole && spared * 10 > whole * 9, "{spared} of {whole}");
    }

    #[test]
    fn an_entity_without_check_of_its_own_loses_a_frame_with_a_wrong_symbol() {
        let hits = |step| quality(ErrorUnit::Symbol(2), 0.5, step).outcome(200, ErrorPositions::OfPacket);
        assert!((0..50).all(|step| hits(step) == Some(ChannelOutcome::Lost)));
    }
}
