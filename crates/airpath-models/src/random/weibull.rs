// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The Weibull distribution, by inversion: P(X > x) = exp(-(x / scale)^shape).
//!
//! A shape of 1 is the exponential distribution, below 1 the tail is heavier. The mean is
//! scale × Gamma(1 + 1 / shape), before anything is cut off.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inversion::{Bounds, Inversion, Shaped, Tail, drawn_by_inversion};
use super::{Quantity, check_above_zero, check_shape, share};
use crate::problem::Problem;

/// Parameters of the Weibull distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Weibull<Q: Quantity> {
    /// The shape (k).
    pub shape: f64,
    /// The scale (lambda): 63% of the draws are below it.
    pub scale: Q,
    /// Bounds and correlation.
    #[serde(flatten)]
    pub bounds: Bounds<Q>,
}

/// The tail of a Weibull distribution.
#[derive(Clone, Debug)]
pub(super) struct WeibullTail {
    shape: f64,
    scale: f64,
}

pub(super) type Drawer = Inversion<WeibullTail>;

impl Tail for WeibullTail {
    fn beyond(&self, value: f64) -> f64 {
        libm::exp(-libm::pow(value / self.scale, self.shape))
    }

    fn exceeded_with(&self, probability: f64) -> f64 {
        // A power, by functions that take half the time of `pow`.
        self.scale * libm::exp(libm::log(-libm::log(probability)) / self.shape)
    }
}

drawn_by_inversion!(Weibull);

impl<Q: Quantity> Shaped<Q> for Weibull<Q> {
    type Tail = WeibullTail;

    fn tail(&self) -> WeibullTail {
        WeibullTail { shape: self.shape, scale: self.scale.base() as f64 }
    }

    fn bounds(&self) -> &Bounds<Q> {
        &self.bounds
    }

    fn own_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_shape("shape", self.shape, &mut problems);
        check_above_zero("scale", self.scale, &mut problems);
        problems
    }

    fn examples(typical: Q) -> Vec<Weibull<Q>> {
        vec![
            Weibull { shape: 0.6, scale: typical, bounds: Bounds::new(Q::default(), Some(share(typical, 20.0))) },
            Weibull { shape: 3.0, scale: typical, bounds: Bounds::default() },
        ]
    }
}
