// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Weighted round robin: exchanges in proportion to weights, whatever their lengths and outcomes.
//!
//! Source: Katevenis, Sidiropoulos and Courcoubetis, "Weighted round-robin cell multiplexing in a general-purpose ATM
//! switch chip" (IEEE JSAC, 1991); the "packet weighted round-robin" of Eckhardt and Steenkiste 2002, section 7. In
//! each round a bearer gets the credit w_i / max w, and is served for each whole exchange that its credit pays. What is
//! left of the credit remains for the next round, so that weights need not be whole numbers, and no bearer has more
//! than one exchange in a row while others wait that have a credit of one. A bearer with nothing to send loses its
//! credit.
//!
//! Bearers that always have something to send differ in exchanges per weight, w_i / max w, by at most 2.

use airpath_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Beginning, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{PerBearer, example_of_bearers, weight_problem};

/// Parameters of weighted round robin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrrConfig {
    /// Weights of bearers; others have a weight of 1.
    #[serde(default, skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
}

impl OnMedium for WrrConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.weights.names("weights")
    }
}

impl Configured<Beginning<'_>> for WrrConfig {
    type Model = Wrr;

    fn problems(&self) -> Vec<Problem> {
        self.weights.problems("weights", weight_problem)
    }

    fn build(&self, beginning: Beginning<'_>) -> Wrr {
        let weights = self.weights.of(beginning.bearers, 1.0);
        let most = weights.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let quanta: Vec<f64> = weights.iter().map(|weight| weight / most).collect();
        Wrr { credits: quanta.iter().map(|_| 0.0).collect(), quanta, turn: 0, has_turn: false }
    }

    fn examples() -> Vec<WrrConfig> {
        vec![WrrConfig::default(), WrrConfig { weights: example_of_bearers(&[44.0, 1.0, 27.5]) }]
    }
}

/// Bearers with credits.
#[derive(Clone, Debug)]
pub struct Wrr {
    /// By bearer: the credit of a round.
    quanta: Vec<f64>,
    credits: Vec<f64>,
    /// Bearer whose turn it is.
    turn: usize,
    /// True if that bearer has had the credit of the round.
    has_turn: bool,
}

/// Least credit that pays an exchange: sums of quanta are not exact.
const ONE: f64 = 1.0 - 1e-9;

impl PacketScheduler for Wrr {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        let count = self.credits.len();
        let mut waits = waiting.iter().peekable();
        for (bearer, credit) in self.credits.iter_mut().enumerate() {
            if waits.next_if(|waiting| usize::from(waiting.bearer) == bearer).is_none() {
                *credit = 0.0;
            }
        }
        loop {
            for _ in 0..=count {
                if let Some(place) = self.turn_of(waiting) {
                    return place;
                }
                self.turn = (self.turn + 1) % count;
                self.has_turn = false;
            }
            // Everybody who waits has had a turn. Rounds in which nobody's credit suffices pass at once.
            let bearers = || waiting.iter().map(|waiting| usize::from(waiting.bearer));
            let missing = |bearer: usize| libm::ceil((ONE - self.credits[bearer]) / self.quanta[bearer]);
            let rounds = bearers().map(missing).fold(f64::INFINITY, f64::min) - 1.0;
            for bearer in bearers().filter(|_| rounds > 0.0) {
                self.credits[bearer] += rounds * self.quanta[bearer];
            }
        }
    }

    fn outcome(&mut self, _: Time, bearer: u16, _: &Outcome) {
        self.credits[usize::from(bearer)] -= 1.0;
    }
}

impl Wrr {
    /// Place of the bearer whose turn it is, with the credit of the turn, if it waits and the credit suffices.
    fn turn_of(&mut self, waiting: &[Waiting]) -> Option<usize> {
        let place = waiting.binary_search_by_key(&self.turn, |waiting| usize::from(waiting.bearer)).ok()?;
        let credit = &mut self.credits[self.turn];
        if !std::mem::replace(&mut self.has_turn, true) {
            *credit += self.quanta[self.turn];
        }
        (*credit >= ONE).then_some(place)
    }
}
