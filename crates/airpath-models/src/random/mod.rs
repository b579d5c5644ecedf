//! Random durations and sizes: how they are written, and how they are drawn.
//!
//! A parameter of type [`Random`] is a plain quantity (`"200 ms"`) or a table that names a
//! distribution (`{ type = "exponential", mean = "200 ms" }`). A [`Sampler`] draws from it, by the
//! model's own steps: draws of one step do not depend on how often others were asked for, except
//! in distributions that say they have a memory.
//!
//! All arithmetic is in double precision with functions of the `libm` crate, and is rounded to a
//! whole number of base units (nanoseconds, bits) at the end, so that a draw is the same everywhere.

mod exponential;
mod quantity;
mod sampler;
mod uniform;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Problem;
use crate::file::VisitFile;

pub use exponential::Exponential;
pub use quantity::Quantity;
pub use sampler::Sampler;
pub use uniform::Uniform;

/// A quantity, or the distribution from which it is drawn each time that it is needed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Random<Q: Quantity> {
    /// Always the same.
    Constant(Q),
    /// Drawn.
    Drawn(Distribution<Q>),
}

/// A distribution by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Distribution<Q: Quantity> {
    /// Every value in a range is equally likely.
    Uniform(Uniform<Q>),
    /// Intervals without memory.
    Exponential(Exponential<Q>),
}

impl<Q: Quantity> Random<Q> {
    /// The value, if it is always the same.
    pub fn constant(&self) -> Option<Q> {
        match self {
            Random::Constant(value) => Some(*value),
            Random::Drawn(_) => None,
        }
    }

    /// No draw is below this.
    pub fn least(&self) -> Q {
        match self {
            Random::Constant(value) => *value,
            Random::Drawn(Distribution::Uniform(uniform)) => uniform.from,
            Random::Drawn(Distribution::Exponential(exponential)) => exponential.least,
        }
    }

    /// What is wrong with the parameters, if anything.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            Random::Constant(_) => Vec::new(),
            Random::Drawn(Distribution::Uniform(uniform)) => uniform.problems(),
            Random::Drawn(Distribution::Exponential(exponential)) => exponential.problems(),
        }
    }

    /// Visits the files that the parameters name.
    pub fn files(&mut self, _visit: &mut VisitFile<'_>) {}

    /// Every distribution; the laws are tested with each of them, `typical` being a value that
    /// matters where they are used.
    pub fn examples(typical: Q) -> Vec<Random<Q>> {
        let of = |share: f64| Q::from_base((typical.base() as f64 * share) as u64);
        vec![
            Random::Constant(typical),
            Random::Drawn(Distribution::Uniform(Uniform { from: of(0.0), to: of(2.0) })),
            Random::Drawn(Distribution::Exponential(Exponential { mean: typical, least: of(0.0), most: None })),
        ]
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
