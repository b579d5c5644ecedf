//! Drawing from a distribution.

use airpath_core::DrawKey;

use super::{Distribution, Quantity, Random};

/// Draws from a [`Random`], by steps of the model's own.
#[derive(Clone, Debug)]
pub struct Sampler<Q: Quantity> {
    random: Random<Q>,
    key: DrawKey,
}

impl<Q: Quantity> Sampler<Q> {
    /// A sampler whose draws are those of `key`.
    pub fn new(random: &Random<Q>, key: DrawKey) -> Sampler<Q> {
        Sampler { random: random.clone(), key }
    }

    /// Draws from another distribution from now on.
    pub fn configure(&mut self, random: &Random<Q>) {
        self.random = random.clone();
    }

    /// The value, if it is always the same.
    #[inline]
    pub fn constant(&self) -> Option<Q> {
        self.random.constant()
    }

    /// No draw is below this.
    pub fn least(&self) -> Q {
        self.random.least()
    }

    /// The draw of step number `step`; steps are asked for in ascending order, each once.
    #[inline]
    pub fn draw(&mut self, step: u64) -> Q {
        match &self.random {
            Random::Constant(value) => *value,
            Random::Drawn(distribution) => Q::from_base(match distribution {
                Distribution::Uniform(uniform) => uniform.draw(self.key, step),
                Distribution::Exponential(exponential) => exponential.draw(self.key, step),
            }),
        }
    }
}
