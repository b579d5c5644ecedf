// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Several distributions, from one of which each draw comes, with probabilities in proportion to
//! their weights.

use airpath_core::{DrawKey, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::{Configured, Draw};
use super::{Distribution, Quantity, Random, Source, Uniform, share};
use crate::file::{VisitFile, under};
use crate::problem::Problem;

/// Parameters of a mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mixture<Q: Quantity> {
    /// Parts of the mixture.
    pub of: Vec<Part<Q>>,
}

/// A part of a mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part<Q: Quantity> {
    /// Weight of the part: its share of the draws, in proportion to the weights of the others.
    pub weight: f64,
    /// Distribution of the part.
    pub value: Random<Q>,
}

/// The most parts of a mixture.
const PARTS: usize = 1_000;

impl<Q: Quantity> Configured<Q> for Mixture<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        let parts = self.of.iter().filter(|part| part.weight > 0.0);
        Q::from_base(parts.map(|part| part.value.least().base()).min().unwrap_or(0))
    }

    fn problems(&self) -> Vec<Problem> {
        if !(1..=PARTS).contains(&self.of.len()) {
            return vec![Problem::new("of", format!("has {} parts; there may be from 1 to {PARTS}", self.of.len()))];
        }
        let mut problems = Vec::new();
        for (index, part) in self.of.iter().enumerate() {
            let place = format!("of[{index}]");
            if !(0.0..=1e9).contains(&part.weight) {
                let message = format!("is {}; it must be from 0 to 1000000000", part.weight);
                problems.push(Problem::new("weight", message).under(&place));
            }
            let value = format!("{place}.value");
            problems.extend(part.value.problems().into_iter().map(|problem| problem.under(&value)));
        }
        if problems.is_empty() && self.of.iter().all(|part| part.weight == 0.0) {
            problems.push(Problem::new("of", "has no part with a weight above 0"));
        }
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        for (index, part) in self.of.iter_mut().enumerate() {
            part.value.files(&mut under(&format!("of[{index}].value"), visit));
        }
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        let mut until = 0.0;
        let drawn = self.of.iter().enumerate().filter(|(_, part)| part.weight > 0.0);
        let parts = drawn.map(|(index, part)| {
            until += part.weight;
            (until, part.value.source(key.child("part", index as u64)))
        });
        let parts: Vec<(f64, Source)> = parts.collect();
        Drawer { key, parts, total: until }
    }

    fn examples(typical: Q) -> Vec<Mixture<Q>> {
        let spread = Uniform { from: typical, to: share(typical, 4.0), correlation: Probability::ZERO };
        vec![Mixture {
            of: vec![
                Part { weight: 3.0, value: Random::Constant(share(typical, 0.5)) },
                Part { weight: 1.0, value: Random::Drawn(Distribution::Uniform(spread)) },
            ],
        }]
    }
}

/// Draws from the parts.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    key: DrawKey,
    /// The sum of the weights up to each part, and what it draws from.
    parts: Vec<(f64, Source)>,
    total: f64,
}

impl Drawer {
    /// Source of draw number `step`.
    fn part(&mut self, step: u64) -> &mut Source {
        let place = self.key.unit(step, 0) * self.total;
        let last = self.parts.len() - 1;
        let index = self.parts.partition_point(|(until, _)| *until <= place).min(last);
        &mut self.parts[index].1
    }
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        self.part(step).draw(step)
    }

    fn draw_at(&mut self, step: u64, at: Time) -> u64 {
        self.part(step).draw_at(step, at)
    }
}
