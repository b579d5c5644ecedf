// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Independent errors of one probability.
//!
//! Source: Kojo et al. 2001, section 4.3 (probability per packet or per bit). Per bit, the gaps
//! between hit bits are drawn from the geometric distribution instead of drawing every bit.

use airpath_core::{DrawKey, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use crate::registry::{Configured, Reconfigured};

/// Parameters of independent errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BernoulliConfig {
    /// The probability that a packet, frame or bit is hit.
    pub probability: Probability,
}

impl Configured for BernoulliConfig {
    type Model = Bernoulli;

    fn build(&self, key: DrawKey) -> Bernoulli {
        Bernoulli::new(self, key)
    }

    fn examples() -> Vec<BernoulliConfig> {
        ["0", "0.0005", "0.2", "1"]
            .into_iter()
            .map(|text| BernoulliConfig { probability: text.parse().expect("an example is valid") })
            .collect()
    }
}

impl Reconfigured for BernoulliConfig {
    fn configure(&self, model: &mut Bernoulli, _at: Time) {
        model.configure(self);
    }
}

/// The process of independent errors.
#[derive(Clone, Copy, Debug)]
pub struct Bernoulli {
    probability: Probability,
    key: DrawKey,
}

impl Bernoulli {
    pub(super) fn new(config: &BernoulliConfig, key: DrawKey) -> Bernoulli {
        Bernoulli { probability: config.probability, key }
    }

    pub(super) fn configure(&mut self, config: &BernoulliConfig) {
        self.probability = config.probability;
    }
}

impl ErrorProcess for Bernoulli {
    fn hits(&mut self, step: u64) -> bool {
        self.key.hit(step, 0, self.probability)
    }

    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        if self.probability == Probability::ZERO {
            return;
        }
        let mut next = self.key.failures_before_success(step, 0, self.probability);
        let mut attempt = 0;
        while next < bits {
            positions.push(next as u32);
            if only_first {
                return;
            }
            attempt += 1;
            next = next.saturating_add(1).saturating_add(self.key.failures_before_success(
                step,
                attempt,
                self.probability,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    fn process(probability: &str) -> Bernoulli {
        let key =
            DrawKey::new(Seed(9), &DrawScope { hop: "h", direction: Direction::Uplink, role: "errors", instance: 0 });
        Bernoulli::new(&BernoulliConfig { probability: probability.parse().unwrap() }, key)
    }

    #[test]
    fn certainty_hits_every_bit_and_never_none() {
        let mut positions = Vec::new();
        process("1").hit_bits(0, 5, false, &mut positions);
        assert_eq!(positions, [0, 1, 2, 3, 4]);
        positions.clear();
        process("0").hit_bits(0, 1 << 19, false, &mut positions);
        assert!(positions.is_empty());
    }

    #[test]
    fn rates_per_unit_and_per_bit() {
        let (mut hits, mut bits) = (0u64, Vec::new());
        let mut process = process("0.01");
        for step in 0..100_000 {
            hits += u64::from(process.hits(step));
        }
        // Standard deviation sqrt(n p q) = 31.5; five of them.
        assert!(hits.abs_diff(1_000) < 158, "{hits}");
        for step in 0..1_000 {
            process.hit_bits(step, 1_000, false, &mut bits);
        }
        // 10^6 bits at 0.01: 10,000, standard deviation 99.5.
        assert!((bits.len() as u64).abs_diff(10_000) < 498, "{}", bits.len());
    }
}
