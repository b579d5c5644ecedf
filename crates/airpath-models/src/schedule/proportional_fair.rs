// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Proportional fair: each resource for the bearer whose quality is best relative to its own throughput.
//!
//! Source: Jalali, Padovani and Pankaj, "Data throughput of CDMA-HDR" (IEEE VTC 2000), for the rule of Tse: resource
//! r goes to k(r) = arg max w_k b_k(r) / T_k, with the bits b_k(r) that it carries for bearer k and the average
//! T_k(n) = (1 − 1/W) T_k(n − 1) + R_k(n) / W of the bits R_k(n) that k was given in slot n (no more than it had
//! waiting). The limit of long windows maximises Σ w_k log T_k (Kelly 1997).
//!
//! Averages change once a slot, after all of its resources are given: within one slot a bearer is not held to what the
//! slot has already brought. The average of a bearer that has nothing to send decays too. Averages below
//! 10⁻⁶ bits a slot count as that, so that bearers which are new, or have been silent for long, are equal.
//! No bearer with a usable resource starves, as its average decays until its turn comes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bearers::{self, PerBearer};
use super::turns::Turns;
use super::window::{Averages, Window};
use super::{Beginning, InCell, NOBODY, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Least average, in bits a slot.
const LEAST_AVERAGE: f64 = 1e-6;

/// Parameters of the proportional fair scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProportionalFairConfig {
    /// Window W of the averages: a number of slots, or a time.
    #[serde(default = "window")]
    pub window: Window,
    /// Weights of bearers; others have a weight of 1.
    #[serde(default, skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
}

/// The window of Jalali et al.
fn window() -> Window {
    Window::Slots(1000)
}

impl InCell for ProportionalFairConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.weights.names("weights")
    }
}

impl Configured<Beginning<'_>> for ProportionalFairConfig {
    type Model = ProportionalFair;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.window.problems();
        problems.extend(self.weights.problems("weights", bearers::weight_problem));
        problems
    }

    fn build(&self, beginning: Beginning<'_>) -> ProportionalFair {
        let bearers = beginning.bearers.len();
        ProportionalFair {
            turns: Turns::new(bearers),
            averages: Averages::new(self.window, beginning.slots_per_second, bearers),
            weights: self.weights.of(beginning.bearers, 1.0),
            factors: Vec::with_capacity(bearers),
            given: Vec::with_capacity(bearers),
        }
    }

    fn examples() -> Vec<ProportionalFairConfig> {
        let plain = ProportionalFairConfig { window: window(), weights: PerBearer::default() };
        let time = Window::Time(airpath_core::Span::from_millis(100));
        vec![
            plain.clone(),
            ProportionalFairConfig { window: time, weights: bearers::example(&[4.0, 0.5]) },
            ProportionalFairConfig { window: Window::Slots(1), ..plain },
        ]
    }
}

/// Bearers by their quality relative to their averages.
#[derive(Clone, Debug)]
pub struct ProportionalFair {
    turns: Turns,
    averages: Averages,
    weights: Vec<f64>,
    /// By place: the weight divided by the average, and the bits given in this slot.
    factors: Vec<f64>,
    given: Vec<u64>,
}

impl Scheduler for ProportionalFair {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        let ProportionalFair { turns, averages, weights, factors, given } = self;
        if slot.is_empty() {
            return to.fill(NOBODY);
        }
        averages.decay(slot.number);
        let factor = |bearer: u16| weights[usize::from(bearer)] / averages.of(bearer).max(LEAST_AVERAGE);
        factors.clear();
        factors.extend(slot.contenders.iter().map(|contender| factor(contender.bearer)));
        turns.give_best(slot, to, |place, _, bits| factors[place] * f64::from(bits));

        given.clear();
        given.resize(slot.contenders.len(), 0);
        for (resource, place) in to.iter().enumerate().filter(|(_, place)| **place != NOBODY) {
            given[usize::from(*place)] += u64::from(slot.bits_of(usize::from(*place), resource));
        }
        for (contender, given) in slot.contenders.iter().zip(given) {
            averages.add(contender.bearer, (*given).min(contender.backlog_bits) as f64);
        }
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
