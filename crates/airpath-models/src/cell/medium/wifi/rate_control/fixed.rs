// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! No rate control: `rate` and `rates` of the medium say which rates there are.

use airpath_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Choose, RateBeginning};
use crate::registry::Configured;

/// Rates that are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedConfig {}

impl Configured<RateBeginning<'_>> for FixedConfig {
    type Model = Fixed;

    fn build(&self, beginning: RateBeginning<'_>) -> Fixed {
        Fixed { mode: beginning.usual }
    }

    fn examples() -> Vec<FixedConfig> {
        vec![FixedConfig {}]
    }
}

/// One mode.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    mode: usize,
}

impl Choose for Fixed {
    fn choose(&mut self) -> usize {
        self.mode
    }

    fn heard(&mut self, _at: Time, _sent: u32, _received: u32) {}
}
