// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The choice of a mode by switching levels, computed for the greatest throughput or given.

use std::sync::Arc;

use airpath_core::Probability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::levels::Levels;
use super::{Choose, ForModes, Frames, Modes};
use crate::fading::quantity::Decibels;
use crate::problem::Problem;
use crate::registry::Configured;

/// Switching levels: `{ type = "thresholds" }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdsConfig {
    /// Least predicted signal-to-noise ratio of each mode, in ascending order [default: levels that maximise the
    /// throughput in frames without errors]. Without one for the lowest mode, that mode is used however low the ratio
    /// is; with one, nothing is sent below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Decibels>>,
    /// Least probability that a frame is free of errors; with less, nothing is sent. For computed levels.
    #[serde(default)]
    pub least_success: Probability,
}

impl Configured<Frames> for ThresholdsConfig {
    type Model = Thresholds;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if let Some(levels) = &self.levels {
            if levels.windows(2).any(|pair| pair[0] > pair[1]) {
                problems.push(Problem::new("levels", "must ascend, from the lowest mode to the highest"));
            }
            if let Some(level) = levels.iter().find(|level| !(-100.0..=100.0).contains(&level.0)) {
                problems.push(Problem::new("levels", format!("contains {level}; levels must be within 100 dB")));
            }
            if self.least_success != Probability::ZERO {
                let message = "has no meaning with given `levels`; the first of them is where sending begins";
                problems.push(Problem::new("least_success", message));
            }
        }
        problems
    }

    fn build(&self, frames: Frames) -> Thresholds {
        let given = |given: &Vec<Decibels>| {
            let unbounded = frames.modes.len() - given.len();
            let given = given.iter().map(|level| level.ratio() as f32);
            Levels::given(std::iter::repeat_n(0.0, unbounded).chain(given).collect())
        };
        let levels = self.computed(&frames).or_else(|| self.levels.as_ref().map(given));
        Thresholds { levels: Arc::new(levels.expect("levels are given or computed")) }
    }

    fn examples() -> Vec<ThresholdsConfig> {
        vec![
            ThresholdsConfig::default(),
            ThresholdsConfig { levels: None, least_success: "0.1".parse().expect("a probability") },
        ]
    }
}

impl ForModes for ThresholdsConfig {
    fn problems_with(&self, modes: &Modes) -> Vec<Problem> {
        let count = modes.len();
        match &self.levels {
            Some(levels) if levels.len() != count && levels.len() + 1 != count => {
                let message = format!(
                    "are {}; for {count} modes there must be {count}, or {} to use the lowest mode however low the \
                     ratio is",
                    levels.len(),
                    count - 1
                );
                vec![Problem::new("levels", message)]
            }
            _ => Vec::new(),
        }
    }

    fn computed(&self, frames: &Frames) -> Option<Levels> {
        self.levels.is_none().then(|| Levels::of_greatest_throughput(frames, self.least_success.get()))
    }
}

/// Switching levels.
#[derive(Clone, Debug)]
pub struct Thresholds {
    levels: Arc<Levels>,
}

impl Thresholds {
    /// The levels.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The lowest mode that is ever used.
    pub(super) fn lowest(&self) -> usize {
        let levels = self.levels.ratios();
        levels.iter().filter(|level| **level <= levels[0]).count() - 1
    }
}

impl Choose for Thresholds {
    #[inline]
    fn choose(&self, predicted_snr: f32) -> Option<usize> {
        self.levels.mode(predicted_snr)
    }

    fn look_up(&self, predicted: &[f32], values: &[u32], out: &mut [u32]) {
        self.levels.look_up(predicted, values, out);
    }

    fn take_levels(&mut self, levels: &Arc<Levels>) {
        self.levels = levels.clone();
    }
}
