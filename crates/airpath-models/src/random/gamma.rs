// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The gamma distribution of a shape and a scale, by rejection.
//!
//! Source: Marsaglia and Tsang 2000, with their lift for shapes below 1 and with normal draws by
//! inversion. A shape of n is the sum of n exponential values of mean `scale`. What lies outside the
//! bounds is drawn again. There is no correlation, as a draw takes several random numbers.

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::{Configured, Draw};
use super::inversion::Bounds;
use super::{CEILING, Quantity, check_above_zero, check_shape, share, standard_normal};
use crate::problem::Problem;

/// Parameters of the gamma distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gamma<Q: Quantity> {
    /// The shape (k).
    pub shape: f64,
    /// The scale (theta); the mean is shape × scale, before anything is cut off.
    pub scale: Q,
    /// Lower bound; lower values are drawn again.
    #[serde(default)]
    pub least: Q,
    /// Upper bound; higher values are drawn again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Q>,
}

/// Maximum number of values drawn for one that lies between the bounds. With one in a hundred between them, as
/// is checked, one draw in 10^17 needs more, and becomes the nearer bound.
const TRIES: u64 = 4_096;

/// Number of test draws of so many that must lie between the bounds.
const TESTED: u64 = 2_000;
/// See there.
const NEEDED: usize = 20;

impl<Q: Quantity> Configured<Q> for Gamma<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        self.least
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Bounds::new(self.least, self.most).check_order();
        check_shape("shape", self.shape, &mut problems);
        check_above_zero("scale", self.scale, &mut problems);
        if !problems.is_empty() {
            return problems;
        }
        let scope = DrawScope { hop: "", direction: Direction::Uplink, role: "check", instance: 0 };
        let drawer = self.drawer(DrawKey::new(Seed(0), &scope));
        if (0..TESTED).filter(|step| drawer.is_within(drawer.gamma(*step, 0))).count() < NEEDED {
            let key = if self.most.is_some() { "most" } else { "least" };
            let message = "leaves hardly anything: fewer than one draw in a hundred lies between the bounds";
            problems.push(Problem::new(key, message));
        }
        problems
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        let lifted = if self.shape < 1.0 { self.shape + 1.0 } else { self.shape };
        let d = lifted - 1.0 / 3.0;
        Drawer {
            key,
            shape: self.shape,
            scale: self.scale.base() as f64,
            d,
            c: 1.0 / libm::sqrt(9.0 * d),
            least: self.least.base(),
            most: self.most.map_or(CEILING, Quantity::base),
        }
    }

    fn examples(typical: Q) -> Vec<Gamma<Q>> {
        let unbounded = |shape, scale| Gamma { shape, scale, least: Q::default(), most: None };
        vec![
            unbounded(0.5, share(typical, 2.0)),
            Gamma {
                least: share(typical, 0.5),
                most: Some(share(typical, 3.0)),
                ..unbounded(4.0, share(typical, 0.25))
            },
        ]
    }
}

/// Draws from the gamma distribution.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    key: DrawKey,
    shape: f64,
    scale: f64,
    d: f64,
    c: f64,
    least: u64,
    most: u64,
}

impl Drawer {
    fn is_within(&self, value: f64) -> bool {
        (self.least as f64..=self.most as f64).contains(&value)
    }

    /// Trial number `trial`: a value of any size, or NaN if it is rejected.
    fn gamma(&self, step: u64, trial: u64) -> f64 {
        // Three random numbers for each trial.
        let attempt = trial * 3;
        let x = standard_normal::draw(self.key, step, attempt);
        let root = 1.0 + self.c * x;
        if root <= 0.0 {
            return f64::NAN;
        }
        let v = root * root * root;
        let u = self.key.unit(step, attempt + 1);
        if libm::log(u) >= 0.5 * x * x + self.d - self.d * v + self.d * libm::log(v) {
            return f64::NAN;
        }
        let lift =
            if self.shape < 1.0 { libm::exp(libm::log(self.key.unit(step, attempt + 2)) / self.shape) } else { 1.0 };
        self.scale * self.d * v * lift
    }
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        let mut last = 0.0;
        for trial in 0..TRIES {
            let value = self.gamma(step, trial);
            if self.is_within(value) {
                last = value;
                break;
            }
            if !value.is_nan() {
                last = value;
            }
        }
        (libm::round(last) as u64).clamp(self.least, self.most)
    }
}
