// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Weighted deficit round robin: bits in proportion to weights, whatever the qualities.
//!
//! Source: Shreedhar and Varghese, "Efficient fair queuing using deficit round-robin" (IEEE/ACM Transactions on
//! Networking, 1996), with the bits of a resource in the place of a packet's length. A bearer whose turn begins gets a
//! credit of its quantum Q_k = w_k Q. It takes resources as long as its credit suffices for all of their bits; then
//! its turn ends, and the rest of the credit remains for the next. A bearer with nothing left to send loses its
//! credit.
//!
//! Bearers that always have something to send, and can use all resources, differ in bits per weight by at most Q plus
//! the bits of one resource divided by the least weight. A resource that is useless to the bearer whose turn it is
//! goes to the next one that can use and pay it; that bearer loses neither turn nor credit. Bearers with bad qualities
//! therefore get more slots than others, and the throughput of the cell suffers.

use airpath_core::Bits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bearers::{self, PerBearer};
use super::turns::Turns;
use super::{Beginning, InCell, NOBODY, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

const LARGEST_QUANTUM: Bits = Bits::from_bytes(1_000_000_000);

/// Parameters of the deficit scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeficitConfig {
    /// Credit of a turn for a weight of 1.
    #[serde(default = "quantum")]
    pub quantum: Bits,
    /// Weights of bearers; others have a weight of 1.
    #[serde(default, skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
}

fn quantum() -> Bits {
    Bits::from_bytes(1500)
}

impl InCell for DeficitConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.weights.names("weights")
    }
}

impl Configured<Beginning<'_>> for DeficitConfig {
    type Model = Deficit;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.weights.problems("weights", bearers::weight_problem);
        if self.quantum == Bits::ZERO || self.quantum > LARGEST_QUANTUM {
            let range = format!("it must be longer than 0 and at most {LARGEST_QUANTUM}");
            problems.push(Problem::new("quantum", format!("is {}; {range}", self.quantum)));
        }
        problems
    }

    fn build(&self, beginning: Beginning<'_>) -> Deficit {
        let weights = self.weights.of(beginning.bearers, 1.0);
        let quanta: Vec<f64> = weights.iter().map(|weight| weight * self.quantum.get() as f64).collect();
        Deficit { turns: Turns::new(quanta.len()), credits: quanta.clone(), quanta, next_slot: 0 }
    }

    fn examples() -> Vec<DeficitConfig> {
        let plain = DeficitConfig { quantum: quantum(), weights: PerBearer::default() };
        vec![
            plain.clone(),
            DeficitConfig { weights: bearers::example(&[4.0, 0.5]), ..plain },
            // Many turns for a resource.
            DeficitConfig { quantum: Bits::new(1), weights: bearers::example(&[1.0, 0.001]) },
        ]
    }
}

/// Bearers with credits.
#[derive(Clone, Debug)]
pub struct Deficit {
    turns: Turns,
    quanta: Vec<f64>,
    /// By bearer: the credit, with the quantum of the present turn or, between turns, of the next.
    credits: Vec<f64>,
    /// Number of the slot behind the last in which somebody had something to send.
    next_slot: u64,
}

impl Deficit {
    /// Takes the credits of all who have, or have had since the last slot, nothing to send.
    fn forget_idle(&mut self, number: u64) {
        let is_gap = number > self.next_slot;
        self.next_slot = number + 1;
        for (bearer, (credit, quantum)) in self.credits.iter_mut().zip(&self.quanta).enumerate() {
            if is_gap || !self.turns.contends(bearer as u16) {
                *credit = *quantum;
            }
        }
    }

    /// Gives `resource` away: the place of the contender that gets it.
    fn give(&mut self, slot: &Slot<'_>, resource: usize) -> u16 {
        loop {
            let mut index = 0;
            let mut rounds = f64::INFINITY;
            for _ in 0..self.turns.waiting().len() {
                let place = self.turns.waiting()[index];
                let bits = slot.bits_of(usize::from(place), resource);
                if bits == 0 {
                    index += 1;
                    continue;
                }
                let bearer = usize::from(slot.contenders[usize::from(place)].bearer);
                let missing = self.turns.left(place).min(bits.into()) as f64 - self.credits[bearer];
                if missing > 0.0 {
                    self.credits[bearer] += self.quanta[bearer];
                    self.turns.pass(slot, index);
                    rounds = rounds.min((missing / self.quanta[bearer]).ceil());
                    continue;
                }
                self.credits[bearer] -= f64::from(bits);
                if !self.turns.give(index, bits) {
                    self.turns.note_turn(slot, place);
                    self.credits[bearer] = self.quanta[bearer];
                }
                return place;
            }
            if rounds == f64::INFINITY {
                return NOBODY;
            }
            // Everybody who can use the resource has had a turn. Further rounds would find the same until somebody's
            // credit suffices.
            for place in self.turns.waiting().iter().map(|place| usize::from(*place)) {
                if slot.bits_of(place, resource) > 0 {
                    let bearer = usize::from(slot.contenders[place].bearer);
                    self.credits[bearer] += (rounds - 1.0) * self.quanta[bearer];
                }
            }
        }
    }
}

impl Scheduler for Deficit {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        if slot.is_empty() {
            return to.fill(NOBODY);
        }
        self.turns.begin(slot);
        self.forget_idle(slot.number);
        for (resource, to) in to.iter_mut().enumerate() {
            *to = self.give(slot, resource);
        }
        self.turns.end();
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
