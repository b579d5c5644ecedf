// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The normal distribution, without what is negative, by inversion.
//!
//! Source of the quantiles: Wichura 1988, algorithm AS 241. `mean` and `deviation` are those before
//! anything is cut off: quantities are not negative, so that a mean of less than about three deviations
//! is raised by the cut.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inversion::{Bounds, Inversion, Shaped, Tail, drawn_by_inversion};
use super::{Quantity, check_above_zero, share, standard_normal};
use crate::problem::Problem;

/// Parameters of the normal distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Normal<Q: Quantity> {
    /// The mean, before anything is cut off.
    pub mean: Q,
    /// The standard deviation, before anything is cut off.
    pub deviation: Q,
    /// Bounds and correlation.
    #[serde(flatten)]
    pub bounds: Bounds<Q>,
}

/// The tail of a normal distribution.
#[derive(Clone, Debug)]
pub(super) struct NormalTail {
    mean: f64,
    deviation: f64,
}

pub(super) type Drawer = Inversion<NormalTail>;

impl Tail for NormalTail {
    fn beyond(&self, value: f64) -> f64 {
        standard_normal::beyond((value - self.mean) / self.deviation)
    }

    fn exceeded_with(&self, probability: f64) -> f64 {
        self.mean - self.deviation * standard_normal::quantile(probability)
    }
}

drawn_by_inversion!(Normal);

impl<Q: Quantity> Shaped<Q> for Normal<Q> {
    type Tail = NormalTail;

    fn tail(&self) -> NormalTail {
        NormalTail { mean: self.mean.base() as f64, deviation: self.deviation.base() as f64 }
    }

    fn bounds(&self) -> &Bounds<Q> {
        &self.bounds
    }

    fn own_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_above_zero("deviation", self.deviation, &mut problems);
        problems
    }

    fn examples(typical: Q) -> Vec<Normal<Q>> {
        let correlation = "0.5".parse().expect("an example is valid");
        vec![
            Normal { mean: typical, deviation: share(typical, 0.5), bounds: Bounds::default() },
            Normal {
                mean: typical,
                deviation: typical,
                bounds: Bounds { least: share(typical, 0.5), most: Some(share(typical, 3.0)), correlation },
            },
        ]
    }
}
