// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Round robin: one resource for each bearer in turn, whatever its quality.
//!
//! Source: Nagle, "On packet switches with infinite storage" (RFC 970, 1985), with resources in the place of packets.
//!
//! Bearers that can use all resources get equal numbers of them: at any time two bearers that always have something to
//! send differ by one at most. A bearer that cannot use a resource keeps its place in the order, so that with N
//! bearers it waits for N − 1 slots at most in which it could have used one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turns::Turns;
use super::{Beginning, InCell, NOBODY, Scheduler, Slot};
use crate::registry::Configured;

/// Nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundRobinConfig {}

impl InCell for RoundRobinConfig {}

impl Configured<Beginning<'_>> for RoundRobinConfig {
    type Model = RoundRobin;

    fn build(&self, beginning: Beginning<'_>) -> RoundRobin {
        RoundRobin { turns: Turns::new(beginning.bearers.len()) }
    }

    fn examples() -> Vec<RoundRobinConfig> {
        vec![RoundRobinConfig {}]
    }
}

/// Bearers in turn.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    turns: Turns,
}

impl Scheduler for RoundRobin {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        self.turns.begin(slot);
        for (resource, to) in to.iter_mut().enumerate() {
            let next = self.turns.first_for(slot, resource);
            *to = next.map_or(NOBODY, |index| self.turns.waiting()[index]);
            if let Some(index) = next {
                self.turns.give_turn(slot, index, slot.bits_of(usize::from(*to), resource));
            }
        }
        self.turns.end();
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
