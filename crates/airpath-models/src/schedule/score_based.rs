// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Score-based: each resource for the bearer whose quality is best relative to its own recent past.
//!
//! Source: Bonald, "A score-based opportunistic scheduler for fading radio channels" (European Wireless 2004). The score
//! of bearer k is the rank of its present bits among the last W values, which include the present one:
//! s_k(n) = 1 + Σ 1{b_k(n) < b_k(n − l)} + Σ 1{b_k(n) = b_k(n − l)} X_l for l = 1 … W − 1, with X_l 0 or 1 with equal
//! probabilities. The lowest score wins.
//!
//! A bearer has a history for each resource. It holds the values of slots in which the bearer had something to send, because
//! the scheduler need not be told of others. While a history is shorter than W, ranks are compared in relation to
//! its length, as (s − 1/2) / length. Each bearer wins an equal share of the resources, however its quality is
//! distributed, so that nobody starves. The work grows with W.

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turns::Turns;
use super::{Beginning, InCell, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Most slots of a history.
const MOST_WINDOW: u16 = 1000;

/// Draws for the ties of one resource: 64 ties each.
const DRAWS: u64 = MOST_WINDOW as u64 / 64 + 1;

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
    /// The rank of `bits` among the values of `resource`, from 0 for the best to below 1.
    fn rank(&self, number: u64, resource: usize, bits: u32, before: usize) -> f32 {
        let known = self.slots.min(before as u64) as usize;
        let values = &self.values[resource * before..][..known];
        let greater: u32 = values.iter().map(|value| u32::from(*value > bits)).sum();
        let equal: u32 = values.iter().map(|value| u32::from(*value == bits)).sum();
        let score = 1 + greater + self.heads(number, resource, equal);
        (score as f32 - 0.5) / (known + 1) as f32
    }

    /// Number of heads in `coins` tosses.
    fn heads(&self, number: u64, resource: usize, coins: u32) -> u32 {
        let draw = |part: u32| self.key.bits(number, resource as u64 * DRAWS + u64::from(part));
        let whole: u32 = (0..coins / 64).map(|part| draw(part).count_ones()).sum();
        let rest = coins % 64;
        if rest == 0 { whole } else { whole + (draw(coins / 64) >> (64 - rest)).count_ones() }
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
            -history.rank(slot.number, resource, bits, *before)
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
