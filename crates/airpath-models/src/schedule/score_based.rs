// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Score-based: each resource for the bearer whose quality is best relative to its own recent past.
//!
//! Source: Bonald, "A score-based opportunistic scheduler for fading radio channels" (European Wireless 2004). The
//! score of bearer k is the rank of its present bits among the last W values, which include the present one: s_k(n) =
//! 1 + Σ 1{b_k(n) < b_k(n − l)} + E_k(n) for l = 1 … W − 1. The lowest score wins. Of the m values that are equal to
//! the present one the paper counts each with a probability of one half. Here E_k(n) is uniform over 0 … m, so that
//! ranks are uniform whatever the distribution, also that of few modulations: each bearer wins an equal share of the
//! resources, and nobody starves.
//!
//! A bearer has a history for each resource. It holds the values of slots in which the bearer had something to send,
//! because the scheduler need not be told of others. While a history is shorter than W, ranks are compared in relation
//! to its length, as (s − 1/2) / length. The work grows with W.

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turns::Turns;
use super::{Beginning, InCell, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Most slots of a history.
const MOST_WINDOW: u16 = 1000;

/// Parameters of the score-based scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreBasedConfig {
    /// Number W of slots in which the bearer had something to send, the present one included.
    #[serde(default = "window")]
    pub window: u16,
}

fn window() -> u16 {
    100
}

impl InCell for ScoreBasedConfig {}

impl Configured<Beginning<'_>> for ScoreBasedConfig {
    type Model = ScoreBased;

    fn problems(&self) -> Vec<Problem> {
        if (1..=MOST_WINDOW).contains(&self.window) {
            return Vec::new();
        }
        vec![Problem::new("window", format!("is {}; it must be from 1 to {MOST_WINDOW} slots", self.window))]
    }

    fn build(&self, beginning: Beginning<'_>) -> ScoreBased {
        let Beginning { bearers, resources, key, .. } = beginning;
        let before = usize::from(self.window) - 1;
        let history =
            |bearer| History { values: vec![0; resources * before], slots: 0, key: key.child("score", bearer as u64) };
        ScoreBased { turns: Turns::new(bearers.len()), histories: (0..bearers.len()).map(history).collect(), before }
    }

    fn examples() -> Vec<ScoreBasedConfig> {
        [window(), 1, 8].map(|window| ScoreBasedConfig { window }).into()
    }
}

/// Past values of one bearer.
#[derive(Clone, Debug)]
struct History {
    /// The ring of each resource, one after the other.
    values: Vec<u32>,
    /// Number of slots seen.
    slots: u64,
    key: DrawKey,
}

impl History {
    /// The rank of `bits` among the values of `resource`, above 0 for the best and below 1.
    fn rank(&self, number: u64, resource: usize, bits: u32, before: usize) -> f64 {
        let known = self.slots.min(before as u64) as usize;
        let values = &self.values[resource * before..][..known];
        let count = |(greater, equal): (u32, u32), value: &u32| {
            (greater + u32::from(*value > bits), equal + u32::from(*value == bits))
        };
        let (greater, equal) = values.iter().fold((0, 0), count);
        let score = 1 + greater + self.key.below(number, resource as u64, u64::from(equal) + 1) as u32;
        (f64::from(score) - 0.5) / (known + 1) as f64
    }

    fn push(&mut self, bits: &[u32], before: usize) {
        if before > 0 {
            let at = (self.slots % before as u64) as usize;
            for (value, bits) in self.values[at..].iter_mut().step_by(before).zip(bits) {
                *value = *bits;
            }
        }
        self.slots += 1;
    }
}

/// Bearers by the rank of their qualities.
#[derive(Clone, Debug)]
pub struct ScoreBased {
    turns: Turns,
    /// By bearer.
    histories: Vec<History>,
    /// Length of a full history without the present value.
    before: usize,
}

impl Scheduler for ScoreBased {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        let ScoreBased { turns, histories, before } = self;
        turns.give_best(slot, to, |place, resource, bits| {
            let history = &histories[usize::from(slot.contenders[place].bearer)];
            if bits == 0 { 0.0 } else { 1.0 - history.rank(slot.number, resource, bits, *before) }
        });
        for (place, contender) in slot.contenders.iter().enumerate().filter(|(_, it)| it.backlog_bits > 0) {
            let bits = &slot.bits[place * slot.resources..][..slot.resources];
            histories[usize::from(contender.bearer)].push(bits, *before);
        }
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
