// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Random durations and sizes: how they are written, and how they are drawn.
//!
//! A parameter of type [`Random`] is a plain quantity (`"200 ms"`) or a table that names a
//! distribution (`{ type = "exponential", mean = "200 ms" }`). A [`Sampler`] draws from it, by the
//! model's own steps: draws of one step do not depend on how often others were asked for, except
//! in distributions with a memory (Markov, sequence, and any that is correlated), which go on by one
//! with each draw. A draw that belongs to an instant is given that, too, for distributions that change with
//! time (wander).
//!
//! All arithmetic is in double precision with functions of the `libm` crate, and is rounded to a
//! whole number of base units (nanoseconds, bits) at the end, so that a draw is the same everywhere.
//! The algorithms are part of the file format and do not change: what a seed draws today it draws in
//! every release.

mod cauchy;
mod declare;
mod empirical;
mod exponential;
mod gamma;
mod inversion;
mod lognormal;
mod markov;
mod mixture;
mod netem;
mod normal;
mod numbers;
mod pareto;
mod quantity;
mod sampler;
mod sequence;
pub(crate) mod standard_normal;
mod uniform;
mod uniforms;
mod wander;
mod weibull;

use airpath_core::{DrawKey, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::file::VisitFile;
use crate::problem::Problem;
use declare::{Configured, Draw, distributions};

pub use cauchy::Cauchy;
pub use empirical::Empirical;
pub use exponential::Exponential;
pub use gamma::Gamma;
pub use inversion::Bounds;
pub use lognormal::Lognormal;
pub use markov::Markov;
pub use mixture::{Mixture, Part};
pub use netem::{Netem, NetemTable};
pub use normal::Normal;
pub use numbers::Numbers;
pub use pareto::Pareto;
pub use quantity::Quantity;
pub use sampler::Sampler;
pub use sequence::{AtEnd, Sequence};
pub use uniform::Uniform;
pub use wander::Wander;
pub use weibull::Weibull;

/// A quantity, or the distribution from which it is drawn each time that it is needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Random<Q: Quantity> {
    /// Always the same.
    Constant(Q),
    /// Drawn.
    Drawn(Distribution<Q>),
}

distributions! {
    /// Every value in a range is equally likely.
    Uniform = uniform,
    /// The bell curve around a mean.
    Normal = normal,
    /// Values whose logarithm is normal: many small ones, few large ones.
    Lognormal = lognormal,
    /// Intervals without memory.
    Exponential = exponential,
    /// Sums of exponential values, and what lies between.
    Gamma = gamma,
    /// Heavy tails: a power law from a least value on.
    Pareto = pareto,
    /// Tails between the exponential and the power law, or thinner than both.
    Weibull = weibull,
    /// A peak with tails so heavy that they have to be cut.
    Cauchy = cauchy,
    /// Two states with a distribution each, and a chance to change the state after each draw.
    Markov = markov,
    /// Several distributions, each drawn from with a probability.
    Mixture = mixture,
    /// The distribution of values in a file: samples, or points of a cumulative distribution.
    Empirical = empirical,
    /// A table of netem (`.dist`), scaled by a mean and a deviation.
    Netem = netem,
    /// The values of a file, one after the other.
    Sequence = sequence,
    /// A normal value that changes with time, whatever the rate of draws.
    Wander = wander,
}

impl<Q: Quantity> Random<Q> {
    /// The value, if it is always the same.
    #[inline]
    pub fn constant(&self) -> Option<Q> {
        match self {
            Random::Constant(value) => Some(*value),
            Random::Drawn(_) => None,
        }
    }

    /// True if the value follows from the time, whatever was drawn before.
    pub fn is_timed(&self) -> bool {
        matches!(self, Random::Drawn(distribution) if distribution.is_timed())
    }

    /// No draw is below this. Files are loaded.
    pub fn least(&self) -> Q {
        match self {
            Random::Constant(value) => *value,
            Random::Drawn(distribution) => distribution.least(),
        }
    }

    /// Errors in the parameters, if any. Files are loaded.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            Random::Constant(_) => Vec::new(),
            Random::Drawn(distribution) => distribution.problems(),
        }
    }

    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        if let Random::Drawn(distribution) = self {
            distribution.files(visit);
        }
    }

    /// A constant and every distribution; the laws are tested with each of them, `typical` being a
    /// value that matters where they are used.
    pub fn examples(typical: Q) -> Vec<Random<Q>> {
        let drawn = Distribution::examples(typical).into_iter().map(Random::Drawn);
        std::iter::once(Random::Constant(typical)).chain(drawn).collect()
    }

    fn source(&self, key: DrawKey) -> Source {
        match self {
            Random::Constant(value) => Source::Constant(value.base()),
            Random::Drawn(distribution) => Source::Drawn(Box::new(distribution.drawer(key))),
        }
    }
}

/// No draw is above this many base units (146 years in nanoseconds), so that sums stay in range
/// however heavy a tail is.
const CEILING: u64 = 1 << 62;

/// Source of values, in base units.
#[derive(Clone, Debug)]
enum Source {
    Constant(u64),
    Drawn(Box<Drawer>),
}

impl Source {
    #[inline]
    fn draw(&mut self, step: u64) -> u64 {
        match self {
            Source::Constant(value) => *value,
            Source::Drawn(drawer) => drawer.draw(step).min(CEILING),
        }
    }

    #[inline]
    fn draw_at(&mut self, step: u64, at: Time) -> u64 {
        match self {
            Source::Constant(value) => *value,
            Source::Drawn(drawer) => drawer.draw_at(step, at).min(CEILING),
        }
    }
}

/// A share of `typical`, for examples.
fn share<Q: Quantity>(typical: Q, share: f64) -> Q {
    Q::from_base((typical.base() as f64 * share) as u64)
}

/// Says so if `shape` is no sensible shape.
fn check_shape(key: &str, shape: f64, problems: &mut Vec<Problem>) {
    if !(0.01..=1000.0).contains(&shape) {
        problems.push(Problem::new(key, format!("is {shape}; it must be from 0.01 to 1000")));
    }
}

/// Says so if `value` is nothing at all.
fn check_above_zero<Q: Quantity>(key: &str, value: Q, problems: &mut Vec<Problem>) {
    if value.base() == 0 {
        let message = format!("is {value}; it must be more (what is always the same is written as a plain quantity)");
        problems.push(Problem::new(key, message));
    }
}

impl<Q: Quantity> From<Q> for Random<Q> {
    fn from(value: Q) -> Random<Q> {
        Random::Constant(value)
    }
}

impl<Q: Quantity + std::str::FromStr> std::str::FromStr for Random<Q> {
    type Err = Q::Err;
    fn from_str(text: &str) -> Result<Random<Q>, Q::Err> {
        text.parse().map(Random::Constant)
    }
}

impl<Q: Quantity> Default for Random<Q> {
    fn default() -> Random<Q> {
        Random::Constant(Q::default())
    }
}
