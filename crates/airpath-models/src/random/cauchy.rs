// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The Cauchy distribution between bounds, by inversion: P(X > x) = 1/2 - atan((x - median) / scale) / pi.
//!
//! It has no mean, so that an upper bound is needed; quantities are not negative, so that there is a
//! lower one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inversion::{Bounds, Inversion, Shaped, Tail, drawn_by_inversion};
use super::{Quantity, check_above_zero, share};
use crate::problem::Problem;

/// Parameters of the Cauchy distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cauchy<Q: Quantity> {
    /// The median, before anything is cut off: where the peak is.
    pub median: Q,
    /// The scale: half of the draws are within it of the median, before anything is cut off.
    pub scale: Q,
    /// Bounds and correlation. `most` is needed.
    #[serde(flatten)]
    pub bounds: Bounds<Q>,
}

/// The tail of a Cauchy distribution.
#[derive(Clone, Debug)]
pub(super) struct CauchyTail {
    median: f64,
    scale: f64,
}

pub(super) type Drawer = Inversion<CauchyTail>;

impl Tail for CauchyTail {
    fn beyond(&self, value: f64) -> f64 {
        // The angle of the point (value - median, scale): exact in the far tail, too.
        libm::atan2(self.scale, value - self.median) / std::f64::consts::PI
    }

    fn exceeded_with(&self, probability: f64) -> f64 {
        let angle = std::f64::consts::PI * probability;
        self.median + self.scale * libm::cos(angle) / libm::sin(angle)
    }
}

drawn_by_inversion!(Cauchy);

impl<Q: Quantity> Shaped<Q> for Cauchy<Q> {
    type Tail = CauchyTail;

    fn tail(&self) -> CauchyTail {
        CauchyTail { median: self.median.base() as f64, scale: self.scale.base() as f64 }
    }

    fn bounds(&self) -> &Bounds<Q> {
        &self.bounds
    }

    fn own_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_above_zero("scale", self.scale, &mut problems);
        if self.bounds.most.is_none() {
            let message = "is missing: a Cauchy distribution has no mean unless its tail is cut";
            problems.push(Problem::new("most", message));
        }
        problems
    }

    fn examples(typical: Q) -> Vec<Cauchy<Q>> {
        let bounds = Bounds::new(Q::default(), Some(share(typical, 10.0)));
        vec![Cauchy { median: typical, scale: share(typical, 0.3), bounds }]
    }
}
