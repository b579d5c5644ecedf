// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! First come, first served: the bearer whose packet has waited longest, as with one queue for all.

use airpath_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Beginning, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::registry::Configured;

/// Nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstComeConfig {}

impl OnMedium for FirstComeConfig {}

impl Configured<Beginning<'_>> for FirstComeConfig {
    type Model = FirstCome;

    fn build(&self, _: Beginning<'_>) -> FirstCome {
        FirstCome {}
    }

    fn examples() -> Vec<FirstComeConfig> {
        vec![FirstComeConfig {}]
    }
}

/// Bearers by the age of their packets.
#[derive(Clone, Copy, Debug)]
pub struct FirstCome {}

impl PacketScheduler for FirstCome {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        let oldest = waiting.iter().enumerate().min_by_key(|(place, waiting)| (waiting.since, *place));
        oldest.map_or(0, |(place, _)| place)
    }

    fn outcome(&mut self, _: Time, _: u16, _: &Outcome) {}

    fn needs_ages(&self) -> bool {
        true
    }
}
