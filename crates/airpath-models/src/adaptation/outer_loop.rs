// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Switching levels that an outer loop shifts until a given share of all frames is lost.
//!
//! Source: Sampath, Kumar and Holtzman 1997, "On setting reverse link power control", for the steps; Pedersen et al.
//! 2007, "Frequency domain scheduling for OFDMA with limited and noisy channel feedback", for link adaptation. An
//! offset in dB is added to the predicted ratio. A lost frame lowers it by the step s, a received one raises it by
//! s t/(1 − t). After N frames the share of lost ones is within (1 − t) d/(s N) of the target t, where d is the
//! distance that the offset has moved: whatever the channel is, unless the offset meets its limit. It does where even
//! the lowest mode loses more, or the highest less.

use std::sync::Arc;

use airpath_core::Probability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::levels::Levels;
use super::thresholds::{Thresholds, ThresholdsConfig};
use super::{Choose, ForModes, Frames, Modes};
use crate::fading::quantity::Decibels;
use crate::problem::Problem;
use crate::registry::Configured;

/// Switching levels with an outer loop: `{ type = "outer_loop", target = "10%" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OuterLoopConfig {
    /// Share of frames that is lost.
    #[serde(default = "target")]
    pub target: Probability,
    /// Step of the offset after a lost frame.
    #[serde(default = "step")]
    pub step: Decibels,
    /// Greatest offset, up or down.
    #[serde(default = "limit")]
    pub limit: Decibels,
    /// Levels without any offset.
    #[serde(flatten)]
    pub thresholds: ThresholdsConfig,
}

fn target() -> Probability {
    "10%".parse().expect("a probability")
}

fn step() -> Decibels {
    Decibels(0.5)
}

fn limit() -> Decibels {
    Decibels(20.0)
}

impl Configured<Frames> for OuterLoopConfig {
    type Model = OuterLoop;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.thresholds.problems();
        if !(1e-6..=0.9).contains(&self.target.get()) {
            problems.push(Problem::new("target", format!("is {}; it must be from 0.0001% to 90%", self.target)));
        }
        if !(0.001..=10.0).contains(&self.step.0) {
            problems.push(Problem::new("step", format!("is {}; it must be from 0.001 to 10 dB", self.step)));
        }
        if !(0.0..=60.0).contains(&self.limit.0) {
            problems.push(Problem::new("limit", format!("is {}; it must be from 0 to 60 dB", self.limit)));
        }
        problems
    }

    fn build(&self, frames: Frames) -> OuterLoop {
        let target = self.target.get();
        OuterLoop {
            thresholds: self.thresholds.build(frames),
            down_db: self.step.0,
            up_db: self.step.0 * target / (1.0 - target),
            limit_db: self.limit.0,
            offset_db: 0.0,
            gain: 1.0,
        }
    }

    fn examples() -> Vec<OuterLoopConfig> {
        let thresholds = ThresholdsConfig::examples();
        thresholds.into_iter().map(|thresholds| OuterLoopConfig { thresholds, ..OuterLoopConfig::default() }).collect()
    }
}

impl Default for OuterLoopConfig {
    fn default() -> OuterLoopConfig {
        OuterLoopConfig { target: target(), step: step(), limit: limit(), thresholds: ThresholdsConfig::default() }
    }
}

impl ForModes for OuterLoopConfig {
    fn problems_with(&self, modes: &Modes) -> Vec<Problem> {
        self.thresholds.problems_with(modes)
    }

    fn computed(&self, frames: &Frames) -> Option<Levels> {
        self.thresholds.computed(frames)
    }
}

/// Switching levels with an outer loop.
#[derive(Clone, Debug)]
pub struct OuterLoop {
    thresholds: Thresholds,
    down_db: f64,
    up_db: f64,
    limit_db: f64,
    offset_db: f64,
    /// The offset as a ratio of powers.
    gain: f32,
}

impl Choose for OuterLoop {
    #[inline]
    fn choose(&self, predicted_snr: f32) -> Option<usize> {
        // The offset never decides whether anything is sent: what is not sent is not heard of, and the loop would
        // stay where it is for ever.
        self.thresholds.choose(predicted_snr)?;
        Some(self.thresholds.choose(predicted_snr * self.gain).unwrap_or(self.thresholds.lowest()))
    }

    fn take_levels(&mut self, levels: &Arc<Levels>) {
        self.thresholds.take_levels(levels);
    }

    fn heard(&mut self, received: bool, weight: f64) {
        let step = weight * if received { self.up_db } else { -self.down_db };
        self.offset_db = (self.offset_db + step).clamp(-self.limit_db, self.limit_db);
        self.gain = Decibels(self.offset_db).ratio() as f32;
    }
}
