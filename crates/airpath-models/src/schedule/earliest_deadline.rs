// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Earliest deadline first: all resources for the bearer whose oldest packet is due first.
//!
//! Source: Liu and Layland, "Scheduling algorithms for multiprogramming in a hard-real-time environment" (Journal of the
//! ACM, 1973), with the deadline D = arrival of the oldest packet + budget of its bearer.
//!
//! Quality counts only where a resource is unusable: the next deadline gets it then. Packets that are late are not
//! given up; the latest goes first. Bearers with equal deadlines share the resources in turn. A bearer with a usable
//! resource does not starve: sooner or later nobody's packets are older.

use std::cmp::Reverse;

use airpath_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::turns::Turns;
use super::users::{self, PerUser};
use super::{Beginning, InCell, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Parameters of the earliest-deadline scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarliestDeadlineConfig {
    /// Time after its arrival at which a packet is due.
    #[serde(default = "users::budget")]
    pub budget: Span,
    /// The same for single bearers.
    #[serde(default, skip_serializing_if = "PerUser::is_empty")]
    pub budgets: PerUser<Span>,
}

impl InCell for EarliestDeadlineConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.budgets.names("budgets")
    }
}

impl Configured<Beginning<'_>> for EarliestDeadlineConfig {
    type Model = EarliestDeadline;

    fn problems(&self) -> Vec<Problem> {
        users::budget_problems(self.budget, &self.budgets)
    }

    fn build(&self, beginning: Beginning<'_>) -> EarliestDeadline {
        let bearers = beginning.bearers.len();
        EarliestDeadline {
            turns: Turns::new(bearers),
            budgets: self.budgets.of(beginning.bearers, self.budget),
            deadlines: Vec::with_capacity(bearers),
        }
    }

    fn examples() -> Vec<EarliestDeadlineConfig> {
        let budgets = users::example(&[Span::from_millis(20), Span::from_secs(2)]);
        let plain = EarliestDeadlineConfig { budget: users::budget(), budgets: PerUser::default() };
        vec![plain.clone(), EarliestDeadlineConfig { budgets, ..plain }]
    }
}

/// Bearers by deadline.
#[derive(Clone, Debug)]
pub struct EarliestDeadline {
    turns: Turns,
    budgets: Vec<Span>,
    /// By place.
    deadlines: Vec<u64>,
}

impl Scheduler for EarliestDeadline {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        let EarliestDeadline { turns, budgets, deadlines } = self;
        deadlines.clear();
        let budget = |bearer: u16| budgets[usize::from(bearer)].nanos();
        deadlines.extend(slot.contenders.iter().map(|it| it.since.nanos().saturating_add(budget(it.bearer))));
        turns.give_best(slot, to, |place, _, _| Reverse(deadlines[place]));
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
