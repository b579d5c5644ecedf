// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors in runs: an alternating renewal process. Runs without errors and runs of errors follow each other, and
//! the length of each is drawn from the distribution of its kind, independently of all others.
//!
//! Source: the extended on/off model of Ji, Liu, Towsley, Ge and Kurose 2004 with mixed geometric lengths; renewal
//! processes with Weibull lengths as in Karner, Nemethova, Svoboda and Rupp 2007. The share of errors in the long run
//! is mean bad / (mean good + mean bad). The process begins with a whole run without errors.
//!
//! The length of run number n is a function of the key and n, so that a run takes one draw, however many units it
//! has. Over an idle time the process walks from run to run, so that the fate of a unit does not depend on what was sent
//! before; an hour of milliseconds in the shortest runs takes some tenths of a second, in runs of a hundred some
//! milliseconds. A change of parameters leaves the run that is under way
//! as it is.

use airpath_core::{DrawKey, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use super::run_lengths::{LengthSampler, RunLengths};
use crate::problem::Problem;
use crate::registry::{Configured, Reconfigured};

/// Distributions of the lengths of runs, per packet, frame, bit, millisecond or block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunsConfig {
    /// Lengths of the runs without errors.
    pub good: RunLengths,
    /// Lengths of the runs of errors.
    pub bad: RunLengths,
}

impl Configured for RunsConfig {
    type Model = Runs;

    fn problems(&self) -> Vec<Problem> {
        let of = |lengths: &RunLengths, key: &str| {
            lengths.problems().into_iter().map(|problem| problem.under(key)).collect::<Vec<_>>()
        };
        [of(&self.good, "good"), of(&self.bad, "bad")].concat()
    }

    fn build(&self, key: DrawKey) -> Runs {
        Runs::new(self, key)
    }

    fn examples() -> Vec<RunsConfig> {
        let all = RunLengths::examples();
        all.chunks_exact(2).map(|pair| RunsConfig { good: pair[0].clone(), bad: pair[1].clone() }).collect()
    }
}

impl Reconfigured for RunsConfig {
    fn configure(&self, model: &mut Runs, _at: Time) {
        model.configure(self);
    }
}

/// The process of errors in runs.
#[derive(Clone, Debug)]
pub struct Runs {
    good: LengthSampler,
    bad: LengthSampler,
    key: DrawKey,
    /// Number of runs drawn so far; the last of them is under way, and those of errors have even numbers.
    drawn: u64,
    /// Units that it still has.
    left: u64,
}

impl Runs {
    pub(super) fn new(config: &RunsConfig, key: DrawKey) -> Runs {
        Runs { good: config.good.sampler(), bad: config.bad.sampler(), key, drawn: 0, left: 0 }
    }

    pub(super) fn configure(&mut self, config: &RunsConfig) {
        (self.good, self.bad) = (config.good.sampler(), config.bad.sampler());
    }

    /// Takes up to `most` units of one run; says how many, and whether they are hit.
    fn take(&mut self, most: u64) -> (u64, bool) {
        if self.left == 0 {
            let lengths = if self.drawn.is_multiple_of(2) { &self.good } else { &self.bad };
            self.left = lengths.draw(self.key, self.drawn);
            self.drawn += 1;
        }
        let taken = self.left.min(most);
        self.left -= taken;
        (taken, self.drawn.is_multiple_of(2))
    }
}

impl ErrorProcess for Runs {
    fn hits(&mut self, _: u64) -> bool {
        self.take(1).1
    }

    fn hit_bits(&mut self, _: u64, bits: u64, only_first: bool, positions: &mut Vec<u32>) {
        let mut passed = 0;
        let mut done = false;
        while passed < bits {
            let (here, hit) = self.take(bits - passed);
            if hit && !done {
                let told = if only_first { 1 } else { here };
                positions.extend((passed..passed + told).map(|position| position as u32));
                done = only_first;
            }
            passed += here;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::as_units::assert_bits_are_as_units;
    use crate::channel::run_lengths::{EmpiricalLengths, GeometricLengths, WeibullLengths};
    use airpath_core::{Direction, DrawScope, Seed};

    fn process(config: &RunsConfig) -> Runs {
        let key =
            DrawKey::new(Seed(4), &DrawScope { hop: "h", direction: Direction::Uplink, role: "errors", instance: 0 });
        assert_eq!(config.problems(), []);
        Runs::new(config, key)
    }

    fn always(length: u64) -> RunLengths {
        RunLengths::Empirical(EmpiricalLengths { lengths: vec![length], counts: Vec::new() })
    }

    #[test]
    fn certain_lengths_by_hand() {
        let mut runs = process(&RunsConfig { good: always(3), bad: always(2) });
        let hit: Vec<u64> = (0..15).filter(|step| runs.hits(*step)).collect();
        assert_eq!(hit, [3, 4, 8, 9, 13, 14]);
        // The third run is under way, two of its three units are gone: it ends before the change shows.
        let mut runs = process(&RunsConfig { good: always(3), bad: always(2) });
        (0..7).for_each(|step| assert_eq!(runs.hits(step), step == 3 || step == 4));
        runs.configure(&RunsConfig { good: always(1), bad: always(4) });
        let hit: Vec<u64> = (7..17).filter(|step| runs.hits(*step)).collect();
        assert_eq!(hit, [8, 9, 10, 11, 13, 14, 15, 16]);
    }

    /// Bits are as units, however they are cut into transmissions.
    #[test]
    fn bits_are_as_units() {
        for config in RunsConfig::examples() {
            assert_bits_are_as_units(|| process(&config), &[1, 3, 64, 1_000], &format!("{config:?}"));
        }
    }

    #[test]
    fn an_idle_time_takes_a_draw_for_each_run() {
        // A day of milliseconds in runs of a million on average: less than a thousand draws.
        let long = RunLengths::Geometric(GeometricLengths { mean: 1e6, least: 1 });
        let mut runs = process(&RunsConfig { good: long.clone(), bad: long });
        let mut positions = Vec::new();
        runs.hit_bits(0, 86_400_000, true, &mut positions);
        assert_eq!(positions.len(), 1);
        assert!((40..160).contains(&runs.drawn), "{}", runs.drawn);
    }

    #[test]
    fn the_share_of_errors_is_that_of_the_means() {
        // Weibull lengths: the mean is the sum of P(L > n) over n from 0 on.
        let weibull = |shape: f64, scale: f64| RunLengths::Weibull(WeibullLengths { shape, scale });
        let mean = |shape: f64, scale: f64| (0..5_000).map(|n| (-(n as f64 / scale).powf(shape)).exp()).sum::<f64>();
        let square = |shape: f64, scale: f64| {
            (0..5_000).map(|n| (2 * n + 1) as f64 * (-(n as f64 / scale).powf(shape)).exp()).sum::<f64>()
        };
        let (good, bad) = ((0.7, 20.0), (1.8, 6.0));
        let mut runs = process(&RunsConfig { good: weibull(good.0, good.1), bad: weibull(bad.0, bad.1) });
        let n = 400_000;
        let rate = (0..n).filter(|step| runs.hits(*step)).count() as f64 / n as f64;
        let (g, b) = (mean(good.0, good.1), mean(bad.0, bad.1));
        let (var_g, var_b) = (square(good.0, good.1) - g * g, square(bad.0, bad.1) - b * b);
        // The central limit theorem of renewal rewards: the variance of the share is
        // (g^2 var_b + b^2 var_g) / (g + b)^3 / n; five standard deviations.
        let deviation = ((g * g * var_b + b * b * var_g) / (g + b).powi(3) / n as f64).sqrt();
        assert!((rate - b / (g + b)).abs() < 5.0 * deviation, "{rate} {} {deviation}", b / (g + b));
    }

    #[test]
    fn problems_say_of_which_runs_they_are() {
        let config = RunsConfig { good: always(0), bad: always(1) };
        assert_eq!(config.problems()[0].key, "good.lengths");
    }
}
