// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Random decision on a packet: with a probability, and in runs where decisions are correlated.
//!
//! With the probability `correlation` a decision repeats the one before it, otherwise it is drawn
//! afresh. So the share of packets is the probability whatever the correlation, which is also that
//! of neighbouring decisions; a run of hits has a mean length of 1 / ((1 - probability) × (1 -
//! correlation)). (netem averages uniform draws instead, which changes the probability.)

use airpath_core::{DrawKey, Probability};

use crate::problem::Problem;

#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    key: DrawKey,
    /// The decision about the packet before this one, once there is one.
    last: Option<bool>,
}

impl Decision {
    pub fn new(key: DrawKey) -> Decision {
        Decision { key, last: None }
    }

    /// The decision of step number `step`.
    pub fn take(&mut self, step: u64, probability: Probability, correlation: Probability) -> bool {
        let repeated = self.last.filter(|_| self.key.hit(step, 1, correlation));
        let hit = repeated.unwrap_or_else(|| self.key.hit(step, 0, probability));
        self.last = Some(hit);
        hit
    }
}

/// Errors in a correlation of decisions.
pub(super) fn problems(correlation: Probability) -> Vec<Problem> {
    if correlation == Probability::ONE {
        let message = "is 1, so that every decision would be the first one; it must be less";
        return vec![Problem::new("correlation", message)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    #[test]
    fn correlation_makes_runs_and_keeps_the_probability() {
        const COUNT: u64 = 200_000;
        let (probability, correlation): (Probability, Probability) = ("0.2".parse().unwrap(), "0.6".parse().unwrap());
        let scope = DrawScope { hop: "h", direction: Direction::Uplink, role: "reorder", instance: 0 };
        let mut decision = Decision::new(DrawKey::new(Seed(3), &scope));
        let hits: Vec<bool> = (0..COUNT).map(|step| decision.take(step, probability, correlation)).collect();
        // Correlation 0.6 makes the variance of the mean (1 + 0.6) / (1 - 0.6) = 4 fold; five standard errors.
        let share = hits.iter().filter(|hit| **hit).count() as f64 / COUNT as f64;
        assert!((share - 0.2).abs() < 5.0 * (4.0 * 0.16 / COUNT as f64).sqrt(), "{share}");
        // Runs are geometric with mean 1 / (0.8 × 0.4) = 3.125 and variance 6.64.
        let runs: Vec<usize> = hits.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).collect();
        let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        assert!((mean - 3.125).abs() < 5.0 * (6.64 / runs.len() as f64).sqrt(), "{mean}");
    }
}
