// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Modified largest weighted delay first: each resource by quality relative to the mean, delay and weight.
//!
//! Source: Andrews et al., "Providing quality of service over a shared wireless link" (IEEE Communications Magazine,
//! 2001): k(r) = arg max a_k W_k b_k(r) / B_k, with the delay W_k of the oldest packet, the bits b_k(r) that resource r
//! carries, their mean B_k, and a_k = w_k / T_k, with the budget T_k of the delay. For a probability δ_k of a delay
//! above the budget the paper has w_k = −ln δ_k: 3 for 5 %, 4.6 for 1 %.
//!
//! The mean B_k is taken over the usable resources of the last 1000 slots in which the bearer had something to send,
//! exponentially weighted (equally, at the beginning): it is a property of the channel, and does not decay in silence.
//! A bearer with a usable resource does not starve, as its delay grows without bound.

use airpath_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bearers::{self, PerBearer};
use super::turns::Turns;
use super::{Beginning, InCell, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Slots over which the mean of bits is taken.
const WINDOW: u32 = 1000;

/// Parameters of the scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModifiedLargestWeightedDelayFirstConfig {
    /// Budget T of the delay of packets.
    #[serde(default = "bearers::budget")]
    pub budget: Span,
    /// The same for single bearers.
    #[serde(default, skip_serializing_if = "PerBearer::is_empty")]
    pub budgets: PerBearer<Span>,
    /// Weights of bearers; others have a weight of 1.
    #[serde(default, skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
}

impl InCell for ModifiedLargestWeightedDelayFirstConfig {
    fn names(&self) -> Vec<(String, &str)> {
        [self.budgets.names("budgets"), self.weights.names("weights")].concat()
    }
}

impl Configured<Beginning<'_>> for ModifiedLargestWeightedDelayFirstConfig {
    type Model = ModifiedLargestWeightedDelayFirst;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = bearers::budget_problems(self.budget, &self.budgets);
        problems.extend(self.weights.problems("weights", bearers::weight_problem));
        problems
    }

    fn build(&self, beginning: Beginning<'_>) -> ModifiedLargestWeightedDelayFirst {
        let bearers = beginning.bearers.len();
        let budgets = self.budgets.of(beginning.bearers, self.budget);
        let urgency = |(weight, budget): (f64, Span)| weight / budget.as_secs_f64();
        ModifiedLargestWeightedDelayFirst {
            turns: Turns::new(bearers),
            urgencies: self.weights.of(beginning.bearers, 1.0).into_iter().zip(budgets).map(urgency).collect(),
            means: vec![Mean::default(); bearers],
            factors: Vec::with_capacity(bearers),
        }
    }

    fn examples() -> Vec<ModifiedLargestWeightedDelayFirstConfig> {
        let plain = ModifiedLargestWeightedDelayFirstConfig {
            budget: bearers::budget(),
            budgets: PerBearer::default(),
            weights: PerBearer::default(),
        };
        vec![
            plain.clone(),
            ModifiedLargestWeightedDelayFirstConfig {
                budgets: bearers::example(&[Span::from_millis(20)]),
                weights: bearers::example(&[4.6, 3.0]),
                ..plain
            },
        ]
    }
}

/// A mean of the bits of a usable resource.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    bits: f64,
    /// Number of slots in it, up to the window.
    slots: u32,
}

impl Mean {
    fn add(&mut self, bits: &[u32]) {
        let usable = bits.iter().filter(|bits| **bits > 0).count();
        if usable == 0 {
            return;
        }
        let sum: u64 = bits.iter().map(|bits| u64::from(*bits)).sum();
        self.slots = (self.slots + 1).min(WINDOW);
        self.bits += (sum as f64 / usable as f64 - self.bits) / f64::from(self.slots);
    }
}

/// Bearers by quality and delay.
#[derive(Clone, Debug)]
pub struct ModifiedLargestWeightedDelayFirst {
    turns: Turns,
    /// By bearer: weight divided by budget.
    urgencies: Vec<f64>,
    means: Vec<Mean>,
    /// By place: everything but the bits.
    factors: Vec<f64>,
}

impl Scheduler for ModifiedLargestWeightedDelayFirst {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        let ModifiedLargestWeightedDelayFirst { turns, urgencies, means, factors } = self;
        factors.clear();
        for (place, contender) in slot.contenders.iter().enumerate() {
            let mean = &mut means[usize::from(contender.bearer)];
            if contender.backlog_bits > 0 {
                mean.add(&slot.bits[place * slot.resources..][..slot.resources]);
            }
            // A packet of this instant has a delay all the same: a metric of 0 is that of an unusable resource.
            let delay = slot.start.since(contender.since).as_secs_f64().max(1e-9);
            // A mean of zero is that of a bearer that has never been able to use a resource.
            factors.push(urgencies[usize::from(contender.bearer)] * delay / mean.bits.max(1.0));
        }
        turns.give_best(slot, to, |place, _, bits| factors[place] * f64::from(bits));
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
