// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An error process made by the recipe: hits every step of an odd number.

use airpath_core::{DrawKey, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use crate::registry::{Configured, Reconfigured};

/// No parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OddStepsConfig {}

impl Configured for OddStepsConfig {
    type Model = OddSteps;

    fn build(&self, _key: DrawKey) -> OddSteps {
        OddSteps
    }

    fn examples() -> Vec<OddStepsConfig> {
        vec![OddStepsConfig {}]
    }
}

impl Reconfigured for OddStepsConfig {
    fn configure(&self, _model: &mut OddSteps, _at: Time) {}
}

/// The process.
#[derive(Clone, Copy, Debug)]
pub struct OddSteps;

impl ErrorProcess for OddSteps {
    fn hits(&mut self, step: u64) -> bool {
        step % 2 == 1
    }

    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let hit = (0..bits).filter(|bit| (step + bit) % 2 == 1).map(|bit| bit as u32);
        positions.extend(hit.take(if only_first { 1 } else { usize::MAX }));
    }
}
