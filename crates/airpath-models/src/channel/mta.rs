// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors by the model of Markov-based trace analysis: error-free and lossy states that alternate, and a Markov chain
//! of a higher order within the lossy ones.
//!
//! Source: Konrad, Zhao, Joseph and Ludwig 2003, "A Markov-based channel model algorithm for wireless networks". The
//! lengths of both kinds of states are drawn from their distributions. A lossy state begins with an error; each
//! later unit of it is hit with a probability that depends on the last k units, the order of the chain, whatever
//! states they were in (before the first unit there was no error). The table has 2^k probabilities: entry i is for
//! the k units whose errors are the bits of i, the last unit being the lowest bit. The process begins with a whole
//! error-free state.
//!
//! The length of state number n is a function of the key and n, and the draws within a lossy state are those of its
//! number and the place in it. Over an idle time the process therefore leaves out the inside of lossy states that
//! nobody sees, without changing what comes later: a lossy state is passed over whole if the error-free state behind
//! it is at least k long and passed too, because then nothing of it is left in the last k units.

use airpath_core::{DrawKey, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use super::run_lengths::{EmpiricalLengths, GeometricLengths, LengthSampler, RunLengths};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

/// Parameters of error-free and lossy states, per packet, frame, bit, millisecond or block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MtaConfig {
    /// Lengths of the error-free states.
    pub error_free: RunLengths,
    /// Lengths of the lossy states.
    pub lossy: RunLengths,
    /// Error probabilities within a lossy state, 2^k of them for the order k: entry i, from 0 on, is for the last
    /// k units whose errors are the bits of i, the last unit being the lowest bit.
    pub error_after: Vec<Probability>,
}

/// The highest order of the chain.
const HIGHEST_ORDER: u32 = 12;

impl Configured for MtaConfig {
    type Model = Mta;

    fn problems(&self) -> Vec<Problem> {
        let under = |lengths: &RunLengths, key: &str| {
            lengths.problems().into_iter().map(|problem| problem.under(key)).collect::<Vec<_>>()
        };
        let mut problems = [under(&self.error_free, "error_free"), under(&self.lossy, "lossy")].concat();
        let entries = self.error_after.len();
        if !entries.is_power_of_two() || !(2..=1 << HIGHEST_ORDER).contains(&entries) {
            let message = format!(
                "has {entries} probabilities; a chain of order k needs 2^k of them: 2, 4, 8 and so on up to {}",
                1 << HIGHEST_ORDER
            );
            problems.push(Problem::new("error_after", message));
        }
        problems
    }

    fn build(&self, key: DrawKey) -> Mta {
        Mta::new(self, key)
    }

    fn examples() -> Vec<MtaConfig> {
        let table = |texts: &[&str]| texts.iter().map(|text| text.parse().expect("an example is valid")).collect();
        let geometric = |mean, least| RunLengths::Geometric(GeometricLengths { mean, least });
        vec![
            MtaConfig {
                error_free: geometric(30.0, 4),
                lossy: geometric(12.0, 1),
                error_after: table(&["0.2", "0.5", "0.3", "0.9", "0.1", "0.7", "1", "0.6"]),
            },
            // Short error-free states: what one lossy state ends with counts in the next.
            MtaConfig {
                error_free: RunLengths::Empirical(EmpiricalLengths { lengths: vec![1, 2, 9], counts: Vec::new() }),
                lossy: geometric(5.0, 1),
                error_after: table(&["0.1", "0.9", "0.4", "0.8", "0", "0.7", "1", "0.6"].repeat(2)),
            },
        ]
    }
}

impl Reconfigured for MtaConfig {
    fn configure(&self, model: &mut Mta, _at: Time) {
        model.configure(self);
    }
}

/// The process of error-free and lossy states.
#[derive(Clone, Debug)]
pub struct Mta {
    error_free: LengthSampler,
    lossy: LengthSampler,
    error_after: Vec<Probability>,
    key: DrawKey,
    /// Number of states drawn so far; the last of them is under way, and lossy ones have even numbers.
    drawn: u64,
    /// Units that it still has.
    left: u64,
    /// Units of it that have passed.
    passed: u64,
    /// Key of the draws within it.
    within: DrawKey,
    /// Errors of the last units, the last one being the lowest bit.
    history: usize,
}

impl Mta {
    pub(super) fn new(config: &MtaConfig, key: DrawKey) -> Mta {
        Mta {
            error_free: config.error_free.sampler(),
            lossy: config.lossy.sampler(),
            error_after: config.error_after.clone(),
            key,
            drawn: 0,
            left: 0,
            passed: 0,
            within: key,
            history: 0,
        }
    }

    pub(super) fn configure(&mut self, config: &MtaConfig) {
        (self.error_free, self.lossy) = (config.error_free.sampler(), config.lossy.sampler());
        self.error_after.clone_from(&config.error_after);
        self.history &= self.mask();
    }

    fn mask(&self) -> usize {
        self.error_after.len() - 1
    }

    fn is_lossy(&self) -> bool {
        self.drawn.is_multiple_of(2)
    }

    /// The length of state number `state`, the first being 0 and error-free.
    fn length(&self, state: u64) -> u64 {
        let lengths = if state.is_multiple_of(2) { &self.error_free } else { &self.lossy };
        lengths.draw(self.key, state)
    }

    fn enter_next(&mut self) {
        self.left = self.length(self.drawn);
        self.drawn += 1;
        self.passed = 0;
        if self.is_lossy() {
            self.within = self.key.child("lossy", self.drawn);
        }
    }

    /// Takes the next unit, which is of a lossy state.
    fn take_lossy(&mut self) -> bool {
        let hit = self.passed == 0 || self.within.hit(self.passed, 0, self.error_after[self.history]);
        self.history = (self.history << 1 | usize::from(hit)) & self.mask();
        self.left -= 1;
        self.passed += 1;
        hit
    }

    /// Takes up to `most` units of an error-free state; says how many.
    fn take_error_free(&mut self, most: u64) -> u64 {
        let taken = self.left.min(most);
        self.left -= taken;
        self.history = if taken < usize::BITS.into() { self.history << taken & self.mask() } else { 0 };
        taken
    }

    /// True if nobody will know what is inside the rest of the lossy state, of which and of what follows `most`
    /// units pass unseen.
    fn is_forgotten(&self, most: u64) -> bool {
        let order = u64::from(self.error_after.len().ilog2());
        self.left.saturating_add(order) <= most && self.length(self.drawn) >= order
    }
}

impl ErrorProcess for Mta {
    fn hits(&mut self, _: u64) -> bool {
        if self.left == 0 {
            self.enter_next();
        }
        if self.is_lossy() {
            return self.take_lossy();
        }
        self.take_error_free(1);
        false
    }

    fn hit_bits(&mut self, _: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let mut passed = 0;
        let mut done = false;
        while passed < bits {
            if self.left == 0 {
                self.enter_next();
            }
            if !self.is_lossy() {
                passed += self.take_error_free(bits - passed);
            } else if done && self.is_forgotten(bits - passed) {
                passed += self.left;
                self.left = 0;
            } else {
                if self.take_lossy() && !done {
                    positions.push(passed as u32);
                    done = only_first;
                }
                passed += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::as_units::assert_bits_are_as_units;
    use airpath_core::{Direction, DrawScope, Seed};

    fn config(error_free: RunLengths, lossy: RunLengths, texts: &[&str]) -> MtaConfig {
        MtaConfig { error_free, lossy, error_after: texts.iter().map(|text| text.parse().unwrap()).collect() }
    }

    fn process(config: &MtaConfig) -> Mta {
        let key =
            DrawKey::new(Seed(4), &DrawScope { hop: "h", direction: Direction::Uplink, role: "errors", instance: 0 });
        assert_eq!(config.problems(), []);
        Mta::new(config, key)
    }

    fn always(length: u64) -> RunLengths {
        RunLengths::Empirical(EmpiricalLengths { lengths: vec![length], counts: Vec::new() })
    }

    fn geometric(mean: f64) -> RunLengths {
        RunLengths::Geometric(GeometricLengths { mean, least: 1 })
    }

    #[test]
    fn certain_states_by_hand() {
        // Order 2: an error after 10, none after 01 and 11, an error after 00.
        let mut mta = process(&config(always(4), always(6), &["1", "0", "1", "0"]));
        let text: String = (0..20).map(|step| if mta.hits(step) { '1' } else { '0' }).collect();
        // The first unit of a lossy state is hit; then 01 gives none, 10 an error.
        assert_eq!(text, "00001010100000101010");
        // An error-free state of one: the last lossy unit still counts. After 1,0 and the error that
        // begins the state the last three are 101.
        let table: Vec<&str> = (0..8).map(|history| if history == 0b101 { "1" } else { "0" }).collect();
        let mut mta = process(&config(always(1), always(2), &table));
        let text: String = (0..9).map(|step| if mta.hits(step) { '1' } else { '0' }).collect();
        assert_eq!(text, "010010010");
        let table: Vec<&str> = (0..8).map(|history| if history == 0b001 { "1" } else { "0" }).collect();
        let mut mta = process(&config(always(1), always(2), &table));
        let text: String = (0..9).map(|step| if mta.hits(step) { '1' } else { '0' }).collect();
        assert_eq!(text, "011010011");
    }

    /// Bits are as units, however they are cut into transmissions, and what is passed over changes nothing.
    #[test]
    fn bits_are_as_units() {
        for config in MtaConfig::examples() {
            assert_bits_are_as_units(|| process(&config), &[1, 3, 64, 1_000], &format!("{config:?}"));
        }
    }

    #[test]
    fn passing_over_states_leaves_the_chain_where_it_would_be() {
        for config in MtaConfig::examples() {
            for ahead in [5, 17, 100, 1_000] {
                let (mut walked, mut passed) = (process(&config), process(&config));
                for _ in 0..200 {
                    for step in 0..ahead {
                        walked.hits(step);
                    }
                    passed.hit_bits(0, ahead, true, &mut Vec::new());
                    let state = |mta: &Mta| (mta.drawn, mta.left, mta.history);
                    assert_eq!(state(&walked), state(&passed), "{config:?} by {ahead}");
                }
            }
        }
    }

    #[test]
    fn errors_follow_the_table() {
        // One lossy state without end: the share of errors after every history is that of the table, within five
        // standard deviations.
        let table = ["0.2", "0.5", "0.3", "0.9", "0.1", "0.7", "0.4", "0.6"];
        let mut mta = process(&config(always(1), always(1_000_000), &table));
        let mut history = 0;
        let mut seen = [(0u32, 0u32); 8];
        for step in 0..400_000 {
            let hit = mta.hits(step);
            if step > 1 {
                seen[history].0 += 1;
                seen[history].1 += u32::from(hit);
            }
            history = (history << 1 | usize::from(hit)) & 7;
        }
        for ((visits, hits), text) in seen.into_iter().zip(table) {
            let (n, p) = (f64::from(visits), text.parse::<f64>().unwrap());
            assert!(visits > 5_000, "{seen:?}");
            assert!((f64::from(hits) / n - p).abs() < 5.0 * (p * (1.0 - p) / n).sqrt(), "{seen:?}");
        }
    }

    #[test]
    fn the_share_of_errors_is_that_of_the_means() {
        // With one probability p for all histories a lossy state of length l has 1 + (l - 1) p errors.
        let (free, lossy, p) = (40.0, 10.0, 0.4);
        let mut mta = process(&config(geometric(free), geometric(lossy), &["0.4"; 4]));
        let n = 1_000_000;
        let rate = (0..n).filter(|step| mta.hits(*step)).count() as f64 / n as f64;
        let errors = 1.0 + (lossy - 1.0) * p;
        let expected = errors / (free + lossy);
        // A cycle has the length c and e errors; the variance of the share is var(e - expected c) / mean c / n. Of
        // geometric lengths the variance is mean (mean - 1), and of errors within a state of l it is (l - 1) p (1 - p).
        let variance = (lossy - 1.0) * p * (1.0 - p)
            + (p - expected).powi(2) * lossy * (lossy - 1.0)
            + expected.powi(2) * free * (free - 1.0);
        let deviation = (variance / (free + lossy) / n as f64).sqrt();
        assert!((rate - expected).abs() < 5.0 * deviation, "{rate} {expected} {deviation}");
    }

    #[test]
    fn tables_of_no_order_are_refused() {
        let told = |texts: &[&str]| config(always(1), always(0), texts).problems();
        assert_eq!(told(&["0.5"; 3])[0].key, "lossy.lengths");
        let problem = &told(&["0.5"; 3])[1];
        assert_eq!(problem.key, "error_after");
        assert!(problem.message.starts_with("has 3 probabilities; a chain of order k needs 2^k"), "{problem:?}");
        assert_eq!(told(&["0.5"]).len(), 2);
        assert_eq!(told(&["0.5"; 64]).len(), 1);
    }
}
