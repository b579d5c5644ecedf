// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A mode that is never changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choose, ForModes, Frames, Modes};
use crate::problem::Problem;
use crate::registry::Configured;

/// A fixed mode: `{ type = "fixed", mode = "4-qam" }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedConfig {
    /// Its name.
    pub mode: String,
}

impl Configured<Frames> for FixedConfig {
    type Model = Fixed;

    fn build(&self, frames: Frames) -> Fixed {
        Fixed { mode: frames.modes.named(&self.mode).expect("checked beside the modes") }
    }

    fn examples() -> Vec<FixedConfig> {
        vec![FixedConfig { mode: "4-qam".into() }]
    }
}

impl ForModes for FixedConfig {
    fn problems_with(&self, modes: &Modes) -> Vec<Problem> {
        if modes.named(&self.mode).is_some() {
            return Vec::new();
        }
        let names: Vec<String> = (0..modes.len()).map(|mode| modes.name(mode)).collect();
        vec![Problem::new("mode", format!("is `{}`; it must be one of {}", self.mode, names.join(", ")))]
    }
}

/// A fixed mode.
#[derive(Clone, Debug)]
pub struct Fixed {
    mode: usize,
}

impl Choose for Fixed {
    #[inline]
    fn choose(&self, _: f32) -> Option<usize> {
        Some(self.mode)
    }
}
