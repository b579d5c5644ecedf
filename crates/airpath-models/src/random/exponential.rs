// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The exponential distribution, by inversion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inversion::{Bounds, Inversion, Shaped, Tail, drawn_by_inversion};
use super::{Quantity, check_above_zero, share};
use crate::problem::Problem;

/// Parameters of the exponential distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exponential<Q: Quantity> {
    /// The mean, before anything is cut off.
    pub mean: Q,
    /// Bounds and correlation.
    #[serde(flatten)]
    pub bounds: Bounds<Q>,
}

/// The tail of an exponential distribution.
#[derive(Clone, Debug)]
pub(super) struct ExponentialTail {
    mean: f64,
}

pub(super) type Drawer = Inversion<ExponentialTail>;

impl Tail for ExponentialTail {
    fn beyond(&self, value: f64) -> f64 {
        libm::exp(-value / self.mean)
    }

    fn exceeded_with(&self, probability: f64) -> f64 {
        -self.mean * libm::log(probability)
    }
}

drawn_by_inversion!(Exponential);

impl<Q: Quantity> Shaped<Q> for Exponential<Q> {
    type Tail = ExponentialTail;

    fn tail(&self) -> ExponentialTail {
        ExponentialTail { mean: self.mean.base() as f64 }
    }

    fn bounds(&self) -> &Bounds<Q> {
        &self.bounds
    }

    fn own_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_above_zero("mean", self.mean, &mut problems);
        problems
    }

    fn examples(typical: Q) -> Vec<Exponential<Q>> {
        vec![
            Exponential { mean: typical, bounds: Bounds::default() },
            Exponential { mean: typical, bounds: Bounds::new(share(typical, 0.5), Some(share(typical, 4.0))) },
        ]
    }
}
