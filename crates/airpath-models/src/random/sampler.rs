// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Drawing from a distribution.

use airpath_core::{DrawKey, Time};

use super::{Quantity, Random, Source};

/// Draws from a [`Random`], by steps of the model's own.
#[derive(Clone, Debug)]
pub struct Sampler<Q: Quantity> {
    source: Source,
    least: Q,
    random: Random<Q>,
    key: DrawKey,
}

impl<Q: Quantity> Sampler<Q> {
    /// A sampler whose draws are those of `key`.
    pub fn new(random: &Random<Q>, key: DrawKey) -> Sampler<Q> {
        Sampler { source: random.source(key), least: random.least(), random: random.clone(), key }
    }

    /// Draws from `random` from now on. A memory begins anew if anything about the distribution has
    /// changed, and otherwise goes on; whether it has.
    pub fn configure(&mut self, random: &Random<Q>) -> bool {
        let changed = self.random != *random;
        if changed {
            *self = Sampler::new(random, self.key);
        }
        changed
    }

    /// The value, if it is always the same.
    #[inline]
    pub fn constant(&self) -> Option<Q> {
        match self.source {
            Source::Constant(value) => Some(Q::from_base(value)),
            Source::Drawn(_) => None,
        }
    }

    /// No draw is below this.
    #[inline]
    pub fn least(&self) -> Q {
        self.least
    }

    /// The draw of step number `step`; steps are asked for in ascending order, each at most once.
    #[inline]
    pub fn draw(&mut self, step: u64) -> Q {
        Q::from_base(self.source.draw(step))
    }

    /// The same for something that belongs to the instant `at`; instants do not descend.
    #[inline]
    pub fn draw_at(&mut self, step: u64, at: Time) -> Q {
        Q::from_base(self.source.draw_at(step, at))
    }
}
