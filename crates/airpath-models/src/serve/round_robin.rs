// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Round robin: one exchange of each bearer in turn, whatever its length and outcome.
//!
//! Source: Nagle, "On packet switches with infinite storage" (RFC 970, 1985).

use airpath_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Beginning, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::registry::Configured;

/// Nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InTurnConfig {}

impl OnMedium for InTurnConfig {}

impl Configured<Beginning<'_>> for InTurnConfig {
    type Model = InTurn;

    fn build(&self, _: Beginning<'_>) -> InTurn {
        InTurn { next: 0 }
    }

    fn examples() -> Vec<InTurnConfig> {
        vec![InTurnConfig {}]
    }
}

/// Bearers in turn.
#[derive(Clone, Copy, Debug)]
pub struct InTurn {
    /// Number behind that of the bearer that was served last.
    next: u16,
}

impl PacketScheduler for InTurn {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        waiting.iter().position(|waiting| waiting.bearer >= self.next).unwrap_or(0)
    }

    fn outcome(&mut self, _: Time, bearer: u16, _: &Outcome) {
        self.next = bearer + 1;
    }
}
