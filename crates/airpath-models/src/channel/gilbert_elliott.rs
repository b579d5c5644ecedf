// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors in bursts: a chain of a good and a bad state, each with an error probability of its own.
//!
//! Source: Gilbert 1960; Elliott 1963; parameters named as in Haßlinger and Hohlfeld 2008 (p, r,
//! 1-k, 1-h). At every step the error is drawn with the probability of the present state, then the
//! chain may change its state for the next step, as with netem's `gemodel`. It begins in the good state, so
//! that short runs see fewer errors than the stationary chain has. The stationary
//! probability of the bad state is p / (p + r), the mean burst of bad steps 1 / r.
//!
//! Per bit, the lengths of stays and the gaps between errors are drawn from geometric distributions
//! instead of drawing every bit.

use airpath_core::{DrawKey, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

/// Parameters of the two-state chain, per packet, frame or bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GilbertElliottConfig {
    /// The probability of a change from good to bad after a step (p).
    pub good_to_bad: Probability,
    /// The probability of a change from bad to good after a step (r).
    pub bad_to_good: Probability,
    /// The error probability in the good state (1 - k).
    #[serde(default)]
    pub error_in_good: Probability,
    /// The error probability in the bad state (1 - h).
    #[serde(default = "certain")]
    pub error_in_bad: Probability,
}

fn certain() -> Probability {
    Probability::ONE
}

impl Configured for GilbertElliottConfig {
    type Model = GilbertElliott;

    fn problems(&self) -> Vec<Problem> {
        if self.good_to_bad == Probability::ZERO && self.bad_to_good == Probability::ZERO {
            return vec![Problem::new(
                "good_to_bad",
                "and bad_to_good are both 0, so that the chain never changes its state",
            )];
        }
        Vec::new()
    }

    fn build(&self, key: DrawKey) -> GilbertElliott {
        GilbertElliott::new(self, key)
    }

    fn examples() -> Vec<GilbertElliottConfig> {
        [["0.02", "0.3", "0.001", "0.7"], ["0.0001", "0.01", "0", "0.5"], ["1", "1", "0", "1"]]
            .into_iter()
            .map(|texts| {
                let [good_to_bad, bad_to_good, error_in_good, error_in_bad] =
                    texts.map(|text| text.parse().expect("an example is valid"));
                GilbertElliottConfig { good_to_bad, bad_to_good, error_in_good, error_in_bad }
            })
            .collect()
    }
}

impl Reconfigured for GilbertElliottConfig {
    fn configure(&self, model: &mut GilbertElliott, _at: Time) {
        model.configure(self);
    }
}

/// The process of errors in bursts.
#[derive(Clone, Copy, Debug)]
pub struct GilbertElliott {
    config: GilbertElliottConfig,
    key: DrawKey,
    bad: bool,
    /// Per bit: steps left in the present state, this one included; 0 where not drawn yet.
    left: u64,
    /// Per bit: the index of the present stay, the step of the draw of its length.
    stay: u64,
}

/// Attempts are shared out so that no two draws of a step meet: errors per bit count up from 2, in
/// blocks with a key each, and the lengths of stays have a counter of their own at the top of the
/// range.
const ERROR: u64 = 0;
const CHANGE: u64 = 1;
const STAY: u64 = (1 << 20) - 1;
const BLOCK_BITS: u32 = 19;

impl GilbertElliott {
    pub(super) fn new(config: &GilbertElliottConfig, key: DrawKey) -> GilbertElliott {
        GilbertElliott { config: *config, key, bad: false, left: 0, stay: 0 }
    }

    pub(super) fn configure(&mut self, config: &GilbertElliottConfig) {
        if self.config != *config {
            // A stay is memoryless, so that the rest of it may be drawn anew.
            self.config = *config;
            self.left = 0;
        }
    }

    fn error_probability(&self) -> Probability {
        if self.bad { self.config.error_in_bad } else { self.config.error_in_good }
    }

    fn change_probability(&self) -> Probability {
        if self.bad { self.config.bad_to_good } else { self.config.good_to_bad }
    }

    /// The bits that pass before the next error. A long frame on a chain that changes at every bit
    /// takes more draws than a step has attempts.
    fn draw_gap(&self, step: u64, attempt: u64, error: Probability) -> u64 {
        let (block, attempt) = (attempt >> BLOCK_BITS, attempt & ((1 << BLOCK_BITS) - 1));
        let key = if block == 0 { self.key } else { self.key.child("block", block) };
        key.failures_before_success(step, attempt, error)
    }

    fn draw_stay(&mut self) {
        let change = self.change_probability();
        self.left = if change == Probability::ZERO {
            u64::MAX
        } else {
            self.key.failures_before_success(self.stay, STAY, change).saturating_add(1)
        };
        self.stay += 1;
    }

    /// Lets `steps` bits pass; true when the state changes.
    fn pass(&mut self, steps: u64) {
        if self.left != u64::MAX {
            self.left -= steps;
            if self.left == 0 {
                self.bad = !self.bad;
            }
        }
    }
}

impl ErrorProcess for GilbertElliott {
    fn hits(&mut self, step: u64) -> bool {
        let hit = self.key.hit(step, ERROR, self.error_probability());
        if self.key.hit(step, CHANGE, self.change_probability()) {
            self.bad = !self.bad;
        }
        // Were the chain to go on per bit, the length of its stay would have to be drawn anew.
        self.left = 0;
        hit
    }

    fn hit_bits(&mut self, step: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let mut passed = 0;
        let mut attempt = 2;
        let mut done = false;
        while passed < bits {
            if self.left == 0 {
                self.draw_stay();
            }
            let here = self.left.min(bits - passed);
            let error = self.error_probability();
            let mut next = 0u64;
            while !done && error != Probability::ZERO {
                next = next.saturating_add(self.draw_gap(step, attempt, error));
                attempt += 1;
                if next >= here {
                    break;
                }
                positions.push((passed + next) as u32);
                next += 1;
                done = only_first;
            }
            passed += here;
            self.pass(here);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    fn process(texts: [&str; 4]) -> GilbertElliott {
        let [good_to_bad, bad_to_good, error_in_good, error_in_bad] = texts.map(|text| text.parse().unwrap());
        let key =
            DrawKey::new(Seed(4), &DrawScope { hop: "h", direction: Direction::Uplink, role: "errors", instance: 0 });
        GilbertElliott::new(&GilbertElliottConfig { good_to_bad, bad_to_good, error_in_good, error_in_bad }, key)
    }

    #[test]
    fn an_alternating_chain_by_hand() {
        // p = r = 1: good, bad, good, bad, …; errors exactly in the bad steps.
        let mut alternating = process(["1", "1", "0", "1"]);
        assert_eq!(
            (0..6).map(|step| alternating.hits(step)).collect::<Vec<_>>(),
            [false, true, false, true, false, true]
        );
        let mut positions = Vec::new();
        let mut alternating = process(["1", "1", "0", "1"]);
        alternating.hit_bits(0, 3, false, &mut positions);
        assert_eq!(positions, [1]);
        alternating.hit_bits(1, 4, false, &mut positions);
        assert_eq!(positions, [1, 0, 2]);
    }

    /// Stationary rate and mean run of errors for p = 0.02, r = 0.3, errors exactly in the bad state.
    fn check(errors: &[bool]) {
        let n = errors.len() as f64;
        let rate = errors.iter().filter(|hit| **hit).count() as f64 / n;
        let runs = errors.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let mean_run = rate * n / runs;
        // pi_B = 0.02 / 0.32 = 0.0625; the variance of the mean of the chain is
        // pi_G pi_B (1 + l) / (1 - l) / n with l = 1 - p - r = 0.68: standard deviation 0.00125 for
        // n = 200,000; five of them. The mean run is 1 / r; runs are about 3,750, so that its
        // standard deviation is sqrt(1 - r) / r / sqrt(3,750) = 0.0455; five of them.
        assert!((rate - 0.0625).abs() < 0.0063, "{rate}");
        assert!((mean_run - 1.0 / 0.3).abs() < 0.23, "{mean_run}");
    }

    #[test]
    fn stationary_rate_and_run_length_per_unit() {
        let mut chain = process(["0.02", "0.3", "0", "1"]);
        check(&(0..200_000).map(|step| chain.hits(step)).collect::<Vec<_>>());
    }

    #[test]
    fn stationary_rate_and_run_length_per_bit() {
        let mut chain = process(["0.02", "0.3", "0", "1"]);
        let mut errors = vec![false; 200_000];
        for step in 0..200 {
            let mut positions = Vec::new();
            chain.hit_bits(step, 1_000, false, &mut positions);
            positions.iter().for_each(|position| errors[step as usize * 1_000 + *position as usize] = true);
        }
        check(&errors);
    }

    #[test]
    fn stopping_at_the_first_error_leaves_the_chain_where_it_would_be() {
        let (mut all, mut first) = (process(["0.02", "0.3", "0.01", "0.7"]), process(["0.02", "0.3", "0.01", "0.7"]));
        for step in 0..500 {
            let (mut a, mut f) = (Vec::new(), Vec::new());
            all.hit_bits(step, 777, false, &mut a);
            first.hit_bits(step, 777, true, &mut f);
            assert_eq!(a.first(), f.first());
            assert_eq!((all.bad, all.left, all.stay), (first.bad, first.left, first.stay));
        }
    }
}
