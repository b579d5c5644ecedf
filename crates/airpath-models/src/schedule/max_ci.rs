// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Maximum C/I: each resource for the bearer for which it carries most bits.
//!
//! Source: Knopp and Humblet, "Information capacity and power control in single-cell multiuser communications"
//! (IEEE ICC 1995): k(r) = arg max b_k(r), with the bits b_k(r) that resource r carries for bearer k.
//!
//! It has the highest throughput of the cell and starves bearers far from the base station, as long as nearer ones have
//! something to send. Qualities that allow the same modulation are equals, which
//! are served slot by slot in turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turns::Turns;
use super::{Beginning, InCell, Scheduler, Slot};
use crate::registry::Configured;

/// Nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MaxCiConfig {}

impl InCell for MaxCiConfig {}

impl Configured<Beginning<'_>> for MaxCiConfig {
    type Model = MaxCi;

    fn build(&self, beginning: Beginning<'_>) -> MaxCi {
        MaxCi { turns: Turns::new(beginning.bearers.len()) }
    }

    fn examples() -> Vec<MaxCiConfig> {
        vec![MaxCiConfig {}]
    }
}

/// The best for each resource.
#[derive(Clone, Debug)]
pub struct MaxCi {
    turns: Turns,
}

impl Scheduler for MaxCi {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        self.turns.give_best(slot, to, |_, _, bits| f64::from(bits));
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
