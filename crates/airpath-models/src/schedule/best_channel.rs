// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Best channel: each bearer in turn takes the free resource that carries most bits for it.
//!
//! Source: Alfredsson, Brunstrom and Sternad, "Transport protocol performance over 4G links: emulation methodology and
//! results" (2006), "best channel": one user, for whom in each slot the one of 25 frequency bins with the best
//! predicted quality is chosen. Resources are compared with one another for one bearer, not bearers with one another
//! as under `max_ci`. With `most = 1` and one bearer it is the scheduler of the paper, which asks for a better one for
//! several users, lest users far from the base station starve. Here they choose in turn, again and again until nothing
//! is left; who chooses first in one slot chooses last in the next. With N bearers nobody waits for more than N − 1
//! slots in which it could have used a resource.
//!
//! Of resources that carry equally many bits a bearer takes the first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turns::Turns;
use super::{Beginning, InCell, NOBODY, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Parameters of the best-channel scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BestChannelConfig {
    /// Largest number of resources that a bearer gets in a slot (1 in the paper); without it, any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u16>,
}

impl InCell for BestChannelConfig {}

impl Configured<Beginning<'_>> for BestChannelConfig {
    type Model = BestChannel;

    fn problems(&self) -> Vec<Problem> {
        let is_none = self.most == Some(0);
        is_none.then(|| Problem::new("most", "is 0; a bearer must get 1 resource or more")).into_iter().collect()
    }

    fn build(&self, beginning: Beginning<'_>) -> BestChannel {
        BestChannel { turns: Turns::new(beginning.bearers.len()), most: self.most }
    }

    fn examples() -> Vec<BestChannelConfig> {
        [None, Some(1), Some(2)].map(|most| BestChannelConfig { most }).into()
    }
}

/// Bearers that choose in turn.
#[derive(Clone, Debug)]
pub struct BestChannel {
    turns: Turns,
    most: Option<u16>,
}

impl Scheduler for BestChannel {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        to.fill(NOBODY);
        self.turns.begin(slot);
        let mut first = None;
        for _ in 0..self.most.map_or(usize::MAX, usize::from) {
            let mut index = 0;
            while let Some(place) = self.turns.waiting().get(index).copied() {
                let free = to.iter().enumerate().filter(|(_, to)| **to == NOBODY);
                let offers = free.map(|(resource, _)| (slot.bits_of(usize::from(place), resource), resource));
                // The first of equals: `max_by_key` would take the last.
                let best = offers.fold((0, 0), |best, offer| if offer.0 > best.0 { offer } else { best });
                match best {
                    (0, _) => self.turns.leave(index),
                    (bits, resource) => {
                        to[resource] = place;
                        first = first.or(Some(place));
                        index += usize::from(self.turns.give(index, bits));
                    }
                }
            }
            if self.turns.waiting().is_empty() {
                break;
            }
        }
        if let Some(first) = first {
            self.turns.note_turn(slot, first);
        }
        self.turns.end();
    }

    fn is_work_conserving(&self) -> bool {
        self.most.is_none()
    }
}
