// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Every whole number of base units from one value to another, each equally likely.

use airpath_core::{DrawKey, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::{Configured, Draw};
use super::uniforms::{self, Uniforms};
use super::{Quantity, share};
use crate::problem::Problem;

/// Parameters of the uniform distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Uniform<Q: Quantity> {
    /// The least value.
    pub from: Q,
    /// The greatest value.
    pub to: Q,
    /// Correlation of consecutive draws, from 0 to below 1.
    #[serde(default)]
    pub correlation: Probability,
}

impl<Q: Quantity> Configured<Q> for Uniform<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        self.from
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = uniforms::problems(self.correlation);
        if self.from.base() > self.to.base() {
            problems.push(Problem::new("from", format!("is {}, which is more than `to`, {}", self.from, self.to)));
        }
        problems
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        let (from, to) = (self.from.base(), self.to.base());
        Drawer { from, count: (to - from).saturating_add(1), uniforms: Uniforms::new(self.correlation, key) }
    }

    fn examples(typical: Q) -> Vec<Uniform<Q>> {
        let correlation = "0.8".parse().expect("an example is valid");
        vec![
            Uniform { from: share(typical, 0.0), to: share(typical, 2.0), correlation: Probability::ZERO },
            Uniform { from: share(typical, 0.5), to: share(typical, 1.5), correlation },
        ]
    }
}

/// Draws from the uniform distribution.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    from: u64,
    count: u64,
    uniforms: Uniforms,
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        if self.uniforms.independent() {
            return self.from + self.uniforms.key().below(step, 0, self.count);
        }
        let part = (self.uniforms.draw(step) * self.count as f64) as u64;
        self.from + part.min(self.count - 1)
    }
}
