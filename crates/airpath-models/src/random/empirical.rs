// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The distribution of values in a file, by inversion.
//!
//! A file with one number on each line holds samples, of which each is equally likely. One with two
//! holds points of the cumulative distribution, value and probability, both going up and ending with
//! probability 1: between two points values are equally likely, the probability of the first is that
//! of its value alone, and a value written twice has the probability between them to itself.

use airpath_core::{DrawKey, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantity;
use super::declare::{Configured, Draw};
use super::numbers::{self, Numbers};
use super::uniforms::{self, Uniforms};
use crate::file::{FileRef, VisitFile};
use crate::problem::Problem;

/// Parameters of an empirical distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Empirical<Q: Quantity> {
    /// A file with a plain number on each line (samples), or with a number and the probability of
    /// values up to it (points of the cumulative distribution).
    pub file: FileRef<Numbers>,
    /// Value of 1 in the file, such as "1 ms".
    pub unit: Q,
    /// Correlation of consecutive draws, from 0 to below 1.
    #[serde(default)]
    pub correlation: Probability,
}

impl<Q: Quantity> Empirical<Q> {
    fn values(&self) -> Vec<f64> {
        match &**self.file.data() {
            Numbers::Values(values) => values.clone(),
            Numbers::Cumulative(points) => points.iter().map(|(value, _)| *value).collect(),
        }
    }
}

impl<Q: Quantity> Configured<Q> for Empirical<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        let values = self.values().into_iter().map(|value| numbers::scaled(value, self.unit));
        Q::from_base(values.min().unwrap_or(0))
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = numbers::problems(&self.file, &self.values(), self.unit);
        problems.extend(uniforms::problems(self.correlation));
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        let law = match &**self.file.data() {
            Numbers::Values(values) => {
                let mut values: Vec<u64> = values.iter().map(|value| numbers::scaled(*value, self.unit)).collect();
                values.sort_unstable();
                Law::Samples(values)
            }
            Numbers::Cumulative(points) => {
                let unit = self.unit.base() as f64;
                Law::Points(points.iter().map(|(value, probability)| (value * unit, *probability)).collect())
            }
        };
        Drawer { law, uniforms: Uniforms::new(self.correlation, key) }
    }

    fn examples(typical: Q) -> Vec<Empirical<Q>> {
        let of = |name, numbers| FileRef::with_data(name, numbers);
        let samples = Numbers::Values(vec![0.1, 0.5, 0.5, 1.0, 2.5]);
        let points = Numbers::Cumulative(vec![(0.2, 0.3), (1.0, 0.5), (1.0, 0.8), (4.0, 1.0)]);
        let correlation = "0.9".parse().expect("an example is valid");
        vec![
            Empirical { file: of("samples.txt", samples), unit: typical, correlation: Probability::ZERO },
            Empirical { file: of("cdf.txt", points), unit: typical, correlation },
        ]
    }
}

/// Draws from an empirical distribution.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    law: Law,
    uniforms: Uniforms,
}

#[derive(Clone, Debug)]
enum Law {
    /// In ascending order.
    Samples(Vec<u64>),
    /// Value and probability, both ascending.
    Points(Vec<(f64, f64)>),
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        let probability = self.uniforms.draw(step);
        match &self.law {
            Law::Samples(values) => {
                let index = (probability * values.len() as f64) as usize;
                values[index.min(values.len() - 1)]
            }
            Law::Points(points) => {
                let index = points.partition_point(|(_, until)| *until < probability).min(points.len() - 1);
                let (value, until) = points[index];
                let value = match index.checked_sub(1).map(|before| points[before]) {
                    None => value,
                    Some((from, since)) if until > since => {
                        from + (value - from) * ((probability - since) / (until - since)).min(1.0)
                    }
                    Some(_) => value,
                };
                libm::round(value) as u64
            }
        }
    }
}
