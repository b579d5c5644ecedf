// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Link adaptation: the modes of transmission of a radio link, and the choice between them.
//!
//! [`Modes`] is a table of modes, each with its bits of a symbol and its probability of error as a function of the
//! signal-to-noise ratio of a symbol. [`Adaptation`] chooses a mode for a frame from a predicted ratio. Ratios are
//! ratios of powers, as [`crate::fading::Fading`] gives them. Nothing here draws.

pub mod coded;
mod curve;
mod fixed;
pub mod information;
mod levels;
mod measured;
mod outer_loop;
mod prediction;
pub mod qam;
mod standards;
mod thresholds;

use std::sync::Arc;

pub use coded::{Coded, CodedConfig};
pub use fixed::{Fixed, FixedConfig};
pub use levels::{Levels, rayleigh_throughput, throughputs};
pub use measured::{Measured, MeasuredConfig, MeasuredMode};
pub use outer_loop::{OuterLoop, OuterLoopConfig};
pub use prediction::expectation;
pub use qam::{Qam, QamConfig};
pub use standards::Table;
pub use thresholds::{Thresholds, ThresholdsConfig};

use crate::problem::Problem;
use crate::registry::registry;

registry! {
    /// The modes of a link.
    config ModesConfig,
    /// A table of modes of any registered kind.
    model Modes,
    dispatch dispatch_modes, dispatch_modes_config,
    built from (),
    reconfigured no,
    /// Uncoded modulation, BPSK to 256-QAM.
    /// Source: Alfredsson et al. 2006, section II-B; Proakis, section 5.2.
    Qam = qam::{QamConfig, Qam},
    /// Coded modulation of LTE or NR.
    /// Source: 3GPP TS 36.213 and 38.214; Polyanskiy et al. 2010.
    Coded = coded::{CodedConfig, Coded},
    /// Modes of the user's own.
    Table = measured::{MeasuredConfig, Measured},
}

impl Default for ModesConfig {
    fn default() -> ModesConfig {
        ModesConfig::Qam(QamConfig::default())
    }
}

/// A table of modes, in ascending order of bits of a symbol but for modes of two modulations that carry nearly as much.
trait ModeTable {
    fn len(&self) -> usize;
    fn name(&self, mode: usize) -> String;
    fn bits_per_symbol(&self, mode: usize) -> f64;
    fn symbol_error(&self, mode: usize, snr: f32) -> Option<f64>;
    fn frame_error(&self, mode: usize, snr: f32, symbols: u32) -> f64;
}

#[expect(clippy::len_without_is_empty, reason = "there is always a mode")]
impl Modes {
    /// Number of modes, at least one.
    pub fn len(&self) -> usize {
        dispatch_modes!(self, modes => modes.len())
    }

    /// Name of a mode, such as `16-qam`.
    pub fn name(&self, mode: usize) -> String {
        dispatch_modes!(self, modes => modes.name(mode))
    }

    /// The mode of that name.
    pub fn named(&self, name: &str) -> Option<usize> {
        (0..self.len()).find(|mode| self.name(*mode) == name)
    }

    /// Bits that a symbol carries in a mode, without those of the code.
    pub fn bits_per_symbol(&self, mode: usize) -> f64 {
        dispatch_modes!(self, modes => modes.bits_per_symbol(mode))
    }

    /// Bits that a frame of `symbols` symbols carries in a mode: whole bits only.
    pub fn frame_bits(&self, mode: usize, symbols: u32) -> u32 {
        // Rates of codes are given in 1024ths, of which products are exact.
        (self.bits_per_symbol(mode) * f64::from(symbols)) as u32
    }

    /// Probability that a symbol is in error in an uncoded mode at the true signal-to-noise ratio `snr`. Coded modes
    /// have none: their blocks are received or lost as a whole.
    #[inline]
    pub fn symbol_error(&self, mode: usize, snr: f32) -> Option<f64> {
        dispatch_modes!(self, modes => modes.symbol_error(mode, snr))
    }

    /// Probability that a frame of `symbols` symbols in a mode has an error at the true signal-to-noise ratio `snr`.
    #[inline]
    pub fn frame_error(&self, mode: usize, snr: f32, symbols: u32) -> f64 {
        dispatch_modes!(self, modes => modes.frame_error(mode, snr, symbols))
    }
}

/// Probability that at least one of `symbols` symbols is in error, each independently with the probability `error`.
#[inline]
fn symbols_in_error(error: f64, mut symbols: u32) -> f64 {
    // A power by squares, in a fifth of the time of a logarithm and an exponential.
    let (mut square, mut power) = (1.0 - error, 1.0);
    while symbols > 0 {
        if symbols & 1 == 1 {
            power *= square;
        }
        square *= square;
        symbols >>= 1;
    }
    1.0 - power
}

/// Surroundings of an adaptation at its beginning.
#[derive(Clone, Debug)]
pub struct Frames {
    /// The modes between which it chooses.
    pub modes: Arc<Modes>,
    /// Number of symbols of a frame.
    pub symbols: u32,
    /// Mean power of the error of the predicted channel, as a signal-to-noise ratio: its normalised mean square error
    /// times the mean signal-to-noise ratio. 0 for a perfect prediction.
    pub error_power: f64,
}

registry! {
    /// The choice of a mode for each frame.
    config AdaptationConfig,
    /// An adaptation of any registered kind.
    model Adaptation,
    dispatch dispatch_adaptation, dispatch_adaptation_config,
    built from crate::adaptation::Frames,
    reconfigured no,
    /// The same mode always.
    Fixed = fixed::{FixedConfig, Fixed},
    /// Switching levels.
    /// Source: Sternad and Falahati 2004.
    Thresholds = thresholds::{ThresholdsConfig, Thresholds},
    /// Switching levels that follow the share of lost frames.
    /// Source: Sampath et al. 1997; Pedersen et al. 2007.
    OuterLoop = outer_loop::{OuterLoopConfig, OuterLoop},
}

impl Default for AdaptationConfig {
    fn default() -> AdaptationConfig {
        AdaptationConfig::Thresholds(ThresholdsConfig::default())
    }
}

/// A choice of modes.
trait Choose {
    fn choose(&self, predicted_snr: f32) -> Option<usize>;

    /// Writes the values of the modes for these ratios: `values` has one for no mode, and one for each mode.
    fn look_up(&self, predicted: &[f32], values: &[u32], out: &mut [u32]) {
        for (out, snr) in out.iter_mut().zip(predicted) {
            *out = values[self.choose(*snr).map_or(0, |mode| mode + 1)];
        }
    }

    fn take_levels(&mut self, _levels: &Arc<Levels>) {}

    fn heard(&mut self, _received: bool, _weight: f64) {}
}

/// Parameters of a choice of modes, seen beside the modes.
trait ForModes {
    fn problems_with(&self, modes: &Modes) -> Vec<Problem>;

    /// Levels that are best for these frames; none where nothing is computed.
    fn computed(&self, _frames: &Frames) -> Option<Levels> {
        None
    }
}

impl AdaptationConfig {
    /// Errors in the parameters beside these modes, if any. The parameters have no problems of their own.
    pub fn problems_with(&self, modes: &Modes) -> Vec<Problem> {
        dispatch_adaptation_config!(self, config => config.problems_with(modes))
    }

    /// Switching levels that are best for these frames; none of a choice that computes none.
    pub fn computed_levels(&self, frames: &Frames) -> Option<Levels> {
        dispatch_adaptation_config!(self, config => config.computed(frames))
    }
}

impl Adaptation {
    /// The mode for a frame of which the signal-to-noise ratio is predicted; none if nothing is to be sent.
    #[inline]
    pub fn choose(&self, predicted_snr: f32) -> Option<usize> {
        dispatch_adaptation!(self, adaptation => adaptation.choose(predicted_snr))
    }

    /// Writes what belongs to the modes for frames with these predicted ratios: `values` has one value for no mode, and
    /// one for each mode.
    pub fn look_up(&self, predicted: &[f32], values: &[u32], out: &mut [u32]) {
        dispatch_adaptation!(self, adaptation => adaptation.look_up(predicted, values, out));
    }

    /// Puts computed switching levels in force; what an outer loop has learnt stays.
    pub fn take_levels(&mut self, levels: &Arc<Levels>) {
        dispatch_adaptation!(self, adaptation => adaptation.take_levels(levels));
    }

    /// Hears whether a frame, in the mode that was chosen for it, was received. Frames that were sent side by side share
    /// a weight of 1: none of them could know of the others, and their errors come together.
    #[inline]
    pub fn heard(&mut self, received: bool, weight: f64) {
        dispatch_adaptation!(self, adaptation => adaptation.heard(received, weight));
    }
}
