// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Two states with a distribution each: a value is drawn from that of the present state, then the
//! state may change for the next draw. It begins in the first state.
//!
//! The stationary probability of the second state is first_to_second / (first_to_second +
//! second_to_first); a stay in the first lasts 1 / first_to_second draws in the mean, and has a
//! geometric distribution.

use airpath_core::{DrawKey, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::{Configured, Draw};
use super::{Distribution, Quantity, Random, Source, Uniform, share};
use crate::file::{VisitFile, under};
use crate::problem::Problem;

/// Parameters of the two-state chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Markov<Q: Quantity> {
    /// Distribution in the first state.
    pub first: Box<Random<Q>>,
    /// Distribution in the second state.
    pub second: Box<Random<Q>>,
    /// The probability of a change from the first state to the second after a draw.
    pub first_to_second: Probability,
    /// The probability of a change from the second state to the first after a draw.
    pub second_to_first: Probability,
}

impl<Q: Quantity> Configured<Q> for Markov<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        Q::from_base(self.first.least().base().min(self.second.least().base()))
    }

    fn problems(&self) -> Vec<Problem> {
        let first = self.first.problems().into_iter().map(|problem| problem.under("first"));
        let second = self.second.problems().into_iter().map(|problem| problem.under("second"));
        let mut problems: Vec<Problem> = first.chain(second).collect();
        if self.first_to_second == Probability::ZERO {
            problems.push(Problem::new("first_to_second", "is 0, so that the second state is never reached"));
        }
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.first.files(&mut under("first", visit));
        self.second.files(&mut under("second", visit));
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        Drawer {
            key,
            states: [self.first.source(key.child("first", 0)), self.second.source(key.child("second", 0))],
            changes: [self.first_to_second, self.second_to_first],
            state: 0,
        }
    }

    fn examples(typical: Q) -> Vec<Markov<Q>> {
        let calm = Uniform { from: Q::default(), to: share(typical, 0.5), correlation: Probability::ZERO };
        vec![Markov {
            first: Box::new(Random::Drawn(Distribution::Uniform(calm))),
            second: Box::new(Random::Constant(share(typical, 3.0))),
            first_to_second: "0.1".parse().expect("an example is valid"),
            second_to_first: "0.4".parse().expect("an example is valid"),
        }]
    }
}

/// Draws from the chain.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    key: DrawKey,
    states: [Source; 2],
    changes: [Probability; 2],
    state: usize,
}

impl Drawer {
    /// Changes the state behind draw number `step`, if it is to change.
    fn pass(&mut self, step: u64) {
        if self.key.hit(step, 0, self.changes[self.state]) {
            self.state = 1 - self.state;
        }
    }
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        let value = self.states[self.state].draw(step);
        self.pass(step);
        value
    }

    fn draw_at(&mut self, step: u64, at: Time) -> u64 {
        let value = self.states[self.state].draw_at(step, at);
        self.pass(step);
        value
    }
}
