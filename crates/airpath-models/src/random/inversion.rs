// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Continuous distributions drawn by inversion, between bounds.
//!
//! A distribution gives its tail, S(x) = P(X > x), and the inverse of that. Bounds condition the
//! distribution: what lies outside is drawn again, which inversion does in one draw by taking its
//! uniform from (S(most), S(least)). Nothing piles up at the bounds.

use std::fmt::Debug;

use airpath_core::{DrawKey, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::Draw;
use super::uniforms::{self, Uniforms};
use super::{CEILING, Quantity};
use crate::problem::Problem;

/// Common parameters of most distributions: bounds and correlation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bounds<Q: Quantity> {
    /// Lower bound; lower values are drawn again.
    #[serde(default)]
    pub least: Q,
    /// Upper bound; higher values are drawn again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Q>,
    /// Correlation of consecutive draws, from 0 (independent) to below 1, without any change of the
    /// distribution: the correlation of the normal values from which draws are made.
    #[serde(default)]
    pub correlation: Probability,
}

/// The tail of a continuous distribution of values in base units.
pub(super) trait Tail: Clone + Debug + Send {
    /// The probability that a draw exceeds `value`, which is 0 or more.
    fn beyond(&self, value: f64) -> f64;

    /// The value that a draw exceeds with `probability`, above 0 and below 1.
    fn exceeded_with(&self, probability: f64) -> f64;
}

/// A distribution with a tail and bounds.
pub(super) trait Shaped<Q: Quantity>: Sized {
    type Tail: Tail;
    fn tail(&self) -> Self::Tail;
    fn bounds(&self) -> &Bounds<Q>;
    /// No draw is below this even without bounds.
    fn floor(&self) -> u64 {
        0
    }
    /// Errors in the distribution's own parameters.
    fn own_problems(&self) -> Vec<Problem>;
    fn examples(typical: Q) -> Vec<Self>;
}

/// The least part of a distribution that bounds may leave.
const LEAST_SHARE: f64 = 1e-6;

impl<Q: Quantity> Bounds<Q> {
    /// Bounds without correlation.
    pub fn new(least: Q, most: Option<Q>) -> Bounds<Q> {
        Bounds { least, most, correlation: Probability::ZERO }
    }

    fn share(&self, tail: &impl Tail) -> (f64, f64) {
        let above = self.most.map_or(0.0, |most| tail.beyond(most.base() as f64));
        (above, tail.beyond(self.least.base() as f64) - above)
    }

    /// Says so if the bounds are the wrong way round.
    pub(super) fn check_order(&self) -> Vec<Problem> {
        match self.most {
            Some(most) if most.base() < self.least.base() => {
                vec![Problem::new("most", format!("is {most}, which is less than `least`, {}", self.least))]
            }
            _ => Vec::new(),
        }
    }

    /// Says so if hardly any draw lies between the bounds.
    pub(super) fn check_share(&self, share: f64) -> Vec<Problem> {
        if share >= LEAST_SHARE {
            return Vec::new();
        }
        let (key, bounds) = match self.most {
            Some(most) => ("most", format!("between {} and {most}", self.least)),
            None => ("least", format!("above {}", self.least)),
        };
        vec![Problem::new(key, format!("leaves hardly anything: fewer than one draw in a million lies {bounds}"))]
    }
}

/// No draw of `config` is below this.
pub(super) fn least<Q: Quantity>(config: &impl Shaped<Q>) -> Q {
    Q::from_base(config.bounds().least.base().max(config.floor()))
}

/// Errors in `config`.
pub(super) fn problems<Q: Quantity>(config: &impl Shaped<Q>) -> Vec<Problem> {
    let bounds = config.bounds();
    let mut problems = config.own_problems();
    problems.extend(bounds.check_order());
    if problems.is_empty() {
        problems.extend(bounds.check_share(bounds.share(&config.tail()).1));
    }
    problems.extend(uniforms::problems(bounds.correlation));
    problems
}

/// Makes a distribution with a tail and bounds one that can be drawn from.
macro_rules! drawn_by_inversion {
    ($Name:ident) => {
        impl<Q: Quantity> $crate::random::declare::Configured<Q> for $Name<Q> {
            type Drawer = Drawer;

            fn least(&self) -> Q {
                $crate::random::inversion::least(self)
            }
            fn problems(&self) -> Vec<Problem> {
                $crate::random::inversion::problems(self)
            }
            fn drawer(&self, key: airpath_core::DrawKey) -> Drawer {
                Inversion::new(self, key)
            }
            fn examples(typical: Q) -> Vec<$Name<Q>> {
                Shaped::examples(typical)
            }
        }
    };
}
pub(super) use drawn_by_inversion;

/// Draws by inversion.
#[derive(Clone, Debug)]
pub(super) struct Inversion<T> {
    tail: T,
    uniforms: Uniforms,
    /// The probability of what is above the upper bound, and of what is between both.
    above: f64,
    share: f64,
    least: u64,
    most: u64,
}

impl<T: Tail> Inversion<T> {
    /// Draws from `config`, by `key`.
    pub fn new<Q: Quantity>(config: &impl Shaped<Q, Tail = T>, key: DrawKey) -> Inversion<T> {
        let (tail, bounds) = (config.tail(), config.bounds());
        let (above, share) = bounds.share(&tail);
        let least = least(config).base();
        let most = bounds.most.map_or(CEILING, Quantity::base).max(least);
        Inversion { tail, uniforms: Uniforms::new(bounds.correlation, key), above, share, least, most }
    }
}

impl<T: Tail> Draw for Inversion<T> {
    fn draw(&mut self, step: u64) -> u64 {
        let value = self.tail.exceeded_with(self.above + self.share * self.uniforms.draw(step));
        // A cast from a floating-point number keeps to the range of the integer; the bounds matter
        // only for what rounding has carried over them.
        (libm::round(value) as u64).clamp(self.least, self.most)
    }
}
