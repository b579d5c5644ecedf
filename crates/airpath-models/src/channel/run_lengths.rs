// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Distributions of the lengths of runs: whole numbers from 1 on.
//!
//! - Geometric: every unit ends the run with the same probability p, P(L = least + n) = p (1 - p)^n with
//!   1 / p = mean - least + 1.
//! - Mixed geometric: a part is drawn by its weight, then a geometric length of that part's mean; the phases of the
//!   extended on/off model (Ji, Liu, Towsley, Ge and Kurose 2004).
//! - Weibull: P(L > n) = exp(-(n / scale)^shape), the discrete Weibull distribution of Nakagawa and Osaki 1975, whose
//!   q is exp(-scale^-shape). A shape of 1 is geometric, a lower one has a heavier tail.
//! - Empirical: one of the lengths of a list, in proportion to its count.
//!
//! The length of run number n is a function of the key and n alone: all draws are by inversion, and logarithms are
//! those of `libm`.

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// Distribution of the lengths of runs, in units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunLengths {
    /// Every unit ends the run with the same probability.
    Geometric(GeometricLengths),
    /// Several geometric distributions, from one of which each length is drawn.
    MixedGeometric(MixedGeometricLengths),
    /// Tails that are heavier or lighter than the geometric one.
    Weibull(WeibullLengths),
    /// The lengths of a list.
    Empirical(EmpiricalLengths),
}

/// Geometric lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeometricLengths {
    /// Mean length in units.
    pub mean: f64,
    /// The shortest length in units.
    #[serde(default = "one")]
    pub least: u64,
}

/// Lengths from a mixture of geometric distributions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixedGeometricLengths {
    /// Parts of the mixture.
    pub of: Vec<LengthPart>,
}

/// A part of a mixture of geometric distributions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LengthPart {
    /// Weight of the part: its share of the runs, in proportion to the weights of the others.
    pub weight: f64,
    /// Mean length of the part in units.
    pub mean: f64,
}

/// Lengths of a discrete Weibull distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WeibullLengths {
    /// The shape (k); 1 is the geometric distribution, below 1 the tail is heavier.
    pub shape: f64,
    /// The scale (lambda) in units: 37 % of the runs are longer.
    pub scale: f64,
}

/// Lengths of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EmpiricalLengths {
    /// Lengths in units.
    pub lengths: Vec<u64>,
    /// Number of runs of each length; without it every length of the list is equally likely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<u64>,
}

fn one() -> u64 {
    1
}

/// The longest mean, shortest length and scale; more would not be told from never.
const LONGEST: f64 = 1e15;
/// The most parts of a mixture, and entries of a list.
const PARTS: usize = 1_000;
const ENTRIES: usize = 1_000_000;

fn check_mean(mean: f64, least: u64, problems: &mut Vec<Problem>) {
    if !(least as f64..=LONGEST).contains(&mean) {
        let shortest = if least == 1 { "a run has at least 1 unit" } else { "it is at least as long as `least`" };
        problems.push(Problem::new("mean", format!("is {mean}; {shortest}, so write from {least} to 1e15")));
    }
}

impl RunLengths {
    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match self {
            RunLengths::Geometric(GeometricLengths { mean, least }) => {
                if *least == 0 || *least as f64 > LONGEST {
                    problems.push(Problem::new("least", format!("is {least}; write from 1 to 1e15")));
                } else {
                    check_mean(*mean, *least, &mut problems);
                }
            }
            RunLengths::MixedGeometric(MixedGeometricLengths { of }) => {
                if !(1..=PARTS).contains(&of.len()) {
                    let message = format!("has {} parts; there may be from 1 to {PARTS}", of.len());
                    return vec![Problem::new("of", message)];
                }
                for (index, part) in of.iter().enumerate() {
                    let mut found = Vec::new();
                    if !(0.0..=1e9).contains(&part.weight) {
                        let message = format!("is {}; it must be from 0 to 1000000000", part.weight);
                        found.push(Problem::new("weight", message));
                    }
                    check_mean(part.mean, 1, &mut found);
                    problems.extend(found.into_iter().map(|problem| problem.under(&format!("of[{index}]"))));
                }
                if problems.is_empty() && of.iter().all(|part| part.weight == 0.0) {
                    problems.push(Problem::new("of", "has no part with a weight above 0"));
                }
            }
            RunLengths::Weibull(WeibullLengths { shape, scale }) => {
                if !(0.01..=1000.0).contains(shape) {
                    problems.push(Problem::new("shape", format!("is {shape}; it must be from 0.01 to 1000")));
                }
                if !(1e-15..=LONGEST).contains(scale) {
                    problems
                        .push(Problem::new("scale", format!("is {scale}; it must be more than 0, and at most 1e15")));
                }
            }
            RunLengths::Empirical(EmpiricalLengths { lengths, counts }) => {
                if !(1..=ENTRIES).contains(&lengths.len()) {
                    let message = format!("has {} entries; there may be from 1 to {ENTRIES}", lengths.len());
                    return vec![Problem::new("lengths", message)];
                }
                if lengths.iter().any(|length| *length == 0 || *length as f64 > LONGEST) {
                    problems.push(Problem::new("lengths", "has an entry that is not from 1 to 1e15"));
                }
                if !counts.is_empty() && counts.len() != lengths.len() {
                    let message =
                        format!("has {} entries beside {} lengths; write one for each", counts.len(), lengths.len());
                    problems.push(Problem::new("counts", message));
                } else if !counts.is_empty() && counts.iter().all(|count| *count == 0) {
                    problems.push(Problem::new("counts", "are all 0, so that no length is left"));
                } else if counts.iter().any(|count| *count as f64 > 1e12) {
                    problems.push(Problem::new("counts", "has an entry above 1e12"));
                }
            }
        }
        problems
    }

    /// Source of these lengths.
    pub(super) fn sampler(&self) -> LengthSampler {
        match self {
            RunLengths::Geometric(GeometricLengths { mean, least }) => {
                LengthSampler::Geometric { least: *least, log_stay: log_stay(mean - *least as f64 + 1.0) }
            }
            RunLengths::MixedGeometric(MixedGeometricLengths { of }) => {
                let total: f64 = of.iter().map(|part| part.weight).sum();
                let mut until = 0.0;
                let parts = of.iter().filter(|part| part.weight > 0.0).map(|part| {
                    until += part.weight / total;
                    (until, log_stay(part.mean))
                });
                LengthSampler::Mixed(parts.collect())
            }
            RunLengths::Weibull(WeibullLengths { shape, scale }) => {
                LengthSampler::Weibull { shape: *shape, scale: *scale }
            }
            RunLengths::Empirical(EmpiricalLengths { lengths, counts }) => {
                let mut until = 0;
                let entries = lengths.iter().enumerate().map(|(index, length)| {
                    until += counts.get(index).copied().unwrap_or(1);
                    (until, *length)
                });
                LengthSampler::Empirical(entries.collect())
            }
        }
    }

    /// Parameters worth testing.
    pub(super) fn examples() -> Vec<RunLengths> {
        let part = |weight, mean| LengthPart { weight, mean };
        vec![
            RunLengths::Geometric(GeometricLengths { mean: 6.0, least: 1 }),
            RunLengths::MixedGeometric(MixedGeometricLengths { of: vec![part(3.0, 1.0), part(1.0, 20.0)] }),
            RunLengths::Weibull(WeibullLengths { shape: 0.6, scale: 5.0 }),
            RunLengths::Empirical(EmpiricalLengths { lengths: vec![1, 2, 30], counts: vec![9, 5, 1] }),
        ]
    }
}

/// The logarithm of the probability that a geometric run from 1 on with this mean goes on.
fn log_stay(mean: f64) -> f64 {
    libm::log1p(-1.0 / mean)
}

/// Source of the lengths of runs.
#[derive(Clone, Debug)]
pub(super) enum LengthSampler {
    Geometric {
        least: u64,
        log_stay: f64,
    },
    /// For each part the probability of it or one before it.
    Mixed(Vec<(f64, f64)>),
    Weibull {
        shape: f64,
        scale: f64,
    },
    /// For each length the number of runs of it or one before it.
    Empirical(Vec<(u64, u64)>),
}

/// Attempts of a run's draws: the part of a mixture or the entry of a list, and the length.
const PART: u64 = 0;
const LENGTH: u64 = 1;

/// A length that `log` of a geometric draw gives, the shortest being 0.
fn beyond(key: DrawKey, run: u64, log_stay: f64) -> u64 {
    // A conversion keeps within the range of the type.
    (libm::log(key.unit(run, LENGTH)) / log_stay).floor() as u64
}

impl LengthSampler {
    /// The length of run number `run`.
    pub(super) fn draw(&self, key: DrawKey, run: u64) -> u64 {
        match self {
            LengthSampler::Geometric { least, log_stay } => beyond(key, run, *log_stay).saturating_add(*least),
            LengthSampler::Mixed(parts) => {
                let draw = key.unit(run, PART);
                let part = parts.iter().find(|(until, _)| draw < *until).or(parts.last());
                beyond(key, run, part.map_or(f64::NEG_INFINITY, |(_, log_stay)| *log_stay)).saturating_add(1)
            }
            LengthSampler::Weibull { shape, scale } => {
                let exceeded = -libm::log(key.unit(run, LENGTH));
                ((scale * libm::exp(libm::log(exceeded) / shape)).ceil() as u64).max(1)
            }
            LengthSampler::Empirical(entries) => {
                let total = entries.last().map_or(1, |(until, _)| *until);
                let draw = key.below(run, PART, total);
                entries.get(entries.partition_point(|(until, _)| *until <= draw)).map_or(1, |(_, length)| *length)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::{Direction, DrawScope, Seed};

    fn key(seed: u64) -> DrawKey {
        DrawKey::new(Seed(seed), &DrawScope { hop: "h", direction: Direction::Uplink, role: "errors", instance: 0 })
    }

    /// P(L > n) of each distribution, written down from its definition.
    fn exceeded(lengths: &RunLengths, n: u64) -> f64 {
        match lengths {
            RunLengths::Geometric(GeometricLengths { mean, least }) => {
                let p = 1.0 / (mean - *least as f64 + 1.0);
                (1.0 - p).powi(n.saturating_sub(*least - 1) as i32)
            }
            RunLengths::MixedGeometric(MixedGeometricLengths { of }) => {
                let total: f64 = of.iter().map(|part| part.weight).sum();
                of.iter().map(|part| part.weight / total * (1.0 - 1.0 / part.mean).powi(n as i32)).sum()
            }
            RunLengths::Weibull(WeibullLengths { shape, scale }) => (-(n as f64 / scale).powf(*shape)).exp(),
            RunLengths::Empirical(EmpiricalLengths { lengths, counts }) => {
                let count = |index: usize| if counts.is_empty() { 1.0 } else { counts[index] as f64 };
                let all: f64 = (0..lengths.len()).map(count).sum();
                (0..lengths.len()).filter(|index| lengths[*index] > n).map(count).sum::<f64>() / all
            }
        }
    }

    #[test]
    fn draws_follow_the_distribution_function() {
        const DRAWS: u64 = 100_000;
        let mut all = RunLengths::examples();
        all.extend([
            RunLengths::Geometric(GeometricLengths { mean: 60.0, least: 12 }),
            RunLengths::Geometric(GeometricLengths { mean: 4.0, least: 4 }),
            RunLengths::Weibull(WeibullLengths { shape: 2.5, scale: 40.0 }),
            RunLengths::Weibull(WeibullLengths { shape: 1.0, scale: 0.1 }),
            RunLengths::Empirical(EmpiricalLengths { lengths: vec![7, 3], counts: Vec::new() }),
        ]);
        for (seed, lengths) in (0..).zip(all) {
            assert_eq!(lengths.problems(), []);
            let sampler = lengths.sampler();
            let mut drawn: Vec<u64> = (0..DRAWS).map(|run| sampler.draw(key(seed), run)).collect();
            drawn.sort_unstable();
            assert!(drawn[0] >= 1, "{lengths:?}");
            // Kolmogorov's statistic of a discrete distribution is below that of a continuous one: above
            // 2.7 / sqrt(n) with a probability of 1e-6 at most.
            for n in 0..=*drawn.last().unwrap() {
                let share = 1.0 - drawn.partition_point(|length| *length <= n) as f64 / DRAWS as f64;
                let expected = exceeded(&lengths, n);
                assert!(
                    (share - expected).abs() < 2.7 / (DRAWS as f64).sqrt(),
                    "{lengths:?} at {n}: {share} {expected}"
                );
            }
        }
    }

    #[test]
    fn extreme_parameters_keep_within_range() {
        for lengths in [
            RunLengths::Geometric(GeometricLengths { mean: 1e15, least: 1 }),
            RunLengths::Weibull(WeibullLengths { shape: 0.01, scale: 1e15 }),
            RunLengths::Weibull(WeibullLengths { shape: 1000.0, scale: 1e-15 }),
        ] {
            let sampler = lengths.sampler();
            assert!((0..1_000).all(|run| sampler.draw(key(1), run) >= 1));
        }
    }

    #[test]
    fn lengths_without_sense_are_refused() {
        let told = |lengths: RunLengths| {
            let problem = lengths.problems().swap_remove(0);
            format!("{}: {}", problem.key, problem.message)
        };
        let geometric = |mean, least| told(RunLengths::Geometric(GeometricLengths { mean, least }));
        assert_eq!(geometric(0.5, 1), "mean: is 0.5; a run has at least 1 unit, so write from 1 to 1e15");
        assert_eq!(geometric(5.0, 6), "mean: is 5; it is at least as long as `least`, so write from 6 to 1e15");
        assert_eq!(geometric(5.0, 0), "least: is 0; write from 1 to 1e15");
        assert!(geometric(f64::NAN, 1).starts_with("mean: is NaN"));
        let mixed = |of| told(RunLengths::MixedGeometric(MixedGeometricLengths { of }));
        assert_eq!(mixed(Vec::new()), "of: has 0 parts; there may be from 1 to 1000");
        assert!(mixed(vec![LengthPart { weight: -1.0, mean: 2.0 }]).starts_with("of[0].weight: is -1;"));
        assert!(mixed(vec![LengthPart { weight: 1.0, mean: 0.0 }]).starts_with("of[0].mean: is 0;"));
        assert!(mixed(vec![LengthPart { weight: 0.0, mean: 2.0 }]).starts_with("of: has no part"));
        let weibull = |shape, scale| told(RunLengths::Weibull(WeibullLengths { shape, scale }));
        assert_eq!(weibull(0.0, 1.0), "shape: is 0; it must be from 0.01 to 1000");
        assert!(weibull(1.0, 0.0).starts_with("scale: is 0;"));
        let empirical = |lengths, counts| told(RunLengths::Empirical(EmpiricalLengths { lengths, counts }));
        assert!(empirical(vec![], vec![]).starts_with("lengths: has 0 entries"));
        assert!(empirical(vec![1, 0], vec![]).starts_with("lengths: has an entry"));
        assert_eq!(empirical(vec![1, 2], vec![1]), "counts: has 1 entries beside 2 lengths; write one for each");
        assert!(empirical(vec![1, 2], vec![0, 0]).starts_with("counts: are all 0"));
    }
}
