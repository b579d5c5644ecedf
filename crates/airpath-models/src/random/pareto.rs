// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The Pareto distribution of type I, by inversion: P(X > x) = (scale / x)^shape for x above the scale.
//!
//! The scale is the least value (often written x_m), the shape the exponent of the tail (often alpha).
//! The mean is scale × shape / (shape - 1), and infinite for a shape of 1 or less unless `most` cuts
//! the tail. (The Lomax distribution, which some tools call Pareto, is this less the scale.)

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inversion::{Bounds, Inversion, Shaped, Tail, drawn_by_inversion};
use super::{Quantity, check_above_zero, check_shape, share};
use crate::problem::Problem;

/// Parameters of the Pareto distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pareto<Q: Quantity> {
    /// The exponent of the tail (alpha).
    pub shape: f64,
    /// The least value (x_m).
    pub scale: Q,
    /// Bounds and correlation.
    #[serde(flatten)]
    pub bounds: Bounds<Q>,
}

/// The tail of a Pareto distribution.
#[derive(Clone, Debug)]
pub(super) struct ParetoTail {
    shape: f64,
    scale: f64,
}

pub(super) type Drawer = Inversion<ParetoTail>;

impl Tail for ParetoTail {
    fn beyond(&self, value: f64) -> f64 {
        if value <= self.scale { 1.0 } else { libm::pow(self.scale / value, self.shape) }
    }

    fn exceeded_with(&self, probability: f64) -> f64 {
        // A power, by functions that take half the time of `pow`.
        self.scale * libm::exp(-libm::log(probability) / self.shape)
    }
}

drawn_by_inversion!(Pareto);

impl<Q: Quantity> Shaped<Q> for Pareto<Q> {
    type Tail = ParetoTail;

    fn tail(&self) -> ParetoTail {
        ParetoTail { shape: self.shape, scale: self.scale.base() as f64 }
    }

    fn bounds(&self) -> &Bounds<Q> {
        &self.bounds
    }

    fn floor(&self) -> u64 {
        self.scale.base()
    }

    fn own_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_shape("shape", self.shape, &mut problems);
        check_above_zero("scale", self.scale, &mut problems);
        problems
    }

    fn examples(typical: Q) -> Vec<Pareto<Q>> {
        let scale = share(typical, 0.4);
        vec![Pareto { shape: 1.2, scale, bounds: Bounds::new(Q::default(), Some(share(typical, 50.0))) }]
    }
}
