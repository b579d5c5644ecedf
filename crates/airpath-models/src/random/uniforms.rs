// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Uniform draws, independent or correlated.
//!
//! Correlated ones are a Gaussian copula (Nelsen 2006): a stationary first-order autoregressive
//! sequence of standard normal values, g(n) = c g(n - 1) + sqrt(1 - c²) e(n), begun in equilibrium
//! and carried to (0, 1) by the normal distribution function. Whatever is made of such a uniform by
//! inversion has exactly the distribution that it has without correlation, and neighbours have a
//! rank correlation (Spearman's) of (6 / pi) asin(c / 2).

use airpath_core::{DrawKey, Probability};

use super::standard_normal;
use crate::problem::Problem;

#[derive(Clone, Debug)]
pub(super) struct Uniforms {
    key: DrawKey,
    correlation: f64,
    /// The last value of the sequence, once there is one.
    last: Option<f64>,
}

impl Uniforms {
    pub fn new(correlation: Probability, key: DrawKey) -> Uniforms {
        Uniforms { key, correlation: correlation.get(), last: None }
    }

    /// True if the draw of a step depends on that step alone.
    pub fn independent(&self) -> bool {
        self.correlation == 0.0
    }

    /// The key of independent draws.
    pub fn key(&self) -> DrawKey {
        self.key
    }

    /// A draw from the open interval (0, 1).
    pub fn draw(&mut self, step: u64) -> f64 {
        if self.independent() {
            return self.key.unit(step, 0);
        }
        let fresh = standard_normal::draw(self.key, step, 0);
        let value = match self.last {
            None => fresh,
            Some(last) => self.correlation * last + libm::sqrt(1.0 - self.correlation * self.correlation) * fresh,
        };
        self.last = Some(value);
        standard_normal::beyond(value)
    }
}

/// Errors in a correlation.
pub(super) fn problems(correlation: Probability) -> Vec<Problem> {
    if correlation == Probability::ONE {
        return vec![Problem::new("correlation", "is 1, so that every draw would be the first one; it must be less")];
    }
    Vec::new()
}
