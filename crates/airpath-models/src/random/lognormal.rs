// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The lognormal distribution, by inversion: the logarithm of a value is normal with mean mu and
//! standard deviation sigma.
//!
//! The median is e^mu and the mean e^(mu + sigma² / 2), before anything is cut off. The quantiles are
//! those of Wichura 1988, algorithm AS 241.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inversion::{Bounds, Inversion, Shaped, Tail, drawn_by_inversion};
use super::{Quantity, check_above_zero, check_shape, share, standard_normal};
use crate::problem::Problem;

/// Parameters of the lognormal distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lognormal<Q: Quantity> {
    /// The median, e^mu; the mean is e^(sigma² / 2) times that. Both before anything is cut off.
    pub median: Q,
    /// The standard deviation of the natural logarithm, sigma.
    pub sigma: f64,
    /// Bounds and correlation.
    #[serde(flatten)]
    pub bounds: Bounds<Q>,
}

/// The tail of a lognormal distribution.
#[derive(Clone, Debug)]
pub(super) struct LognormalTail {
    mu: f64,
    sigma: f64,
}

pub(super) type Drawer = Inversion<LognormalTail>;

impl Tail for LognormalTail {
    fn beyond(&self, value: f64) -> f64 {
        // The logarithm of 0 is minus infinity, beyond which everything lies.
        standard_normal::beyond((libm::log(value) - self.mu) / self.sigma)
    }

    fn exceeded_with(&self, probability: f64) -> f64 {
        libm::exp(self.mu - self.sigma * standard_normal::quantile(probability))
    }
}

drawn_by_inversion!(Lognormal);

impl<Q: Quantity> Shaped<Q> for Lognormal<Q> {
    type Tail = LognormalTail;

    fn tail(&self) -> LognormalTail {
        LognormalTail { mu: libm::log(self.median.base() as f64), sigma: self.sigma }
    }

    fn bounds(&self) -> &Bounds<Q> {
        &self.bounds
    }

    fn own_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_above_zero("median", self.median, &mut problems);
        check_shape("sigma", self.sigma, &mut problems);
        problems
    }

    fn examples(typical: Q) -> Vec<Lognormal<Q>> {
        vec![Lognormal { median: typical, sigma: 0.7, bounds: Bounds::new(Q::default(), Some(share(typical, 8.0))) }]
    }
}
