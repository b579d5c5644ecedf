// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A distribution made by the recipe: one of two values.

use airpath_core::{DrawKey, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::{Configured, Draw};
use super::{Quantity, share};
use crate::problem::Problem;

/// The two values, equally likely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Either<Q: Quantity> {
    /// One of them.
    pub low: Q,
    /// The other.
    pub high: Q,
}

impl<Q: Quantity> Configured<Q> for Either<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        Q::from_base(self.low.base().min(self.high.base()))
    }

    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        Drawer { key, values: [self.low.base(), self.high.base()] }
    }

    fn examples(typical: Q) -> Vec<Either<Q>> {
        vec![Either { low: share(typical, 0.5), high: typical }]
    }
}

/// A drawer.
#[derive(Clone, Debug)]
pub struct Drawer {
    key: DrawKey,
    values: [u64; 2],
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        let half: Probability = "50%".parse().expect("it is a probability");
        self.values[usize::from(self.key.hit(step, 0, half))]
    }
}
