// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Earliest deadline first: all resources for the bearer whose oldest packet is due first.
//!
//! Source: Liu and Layland, "Scheduling algorithms for multiprogramming in a hard-real-time environment" (Journal of
//! the ACM, 1973), with the deadline D = arrival of the oldest packet + budget of its bearer.
//!
//! Quality counts only where a resource is unusable: the next deadline gets it then. Packets that are late are not
//! given up; the latest goes first. Of bearers with equal deadlines one gets the slot, another the next. A bearer with
//! a usable resource does not starve: sooner or later nobody's packets are older.

use airpath_core::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bearers::{self, PerBearer};
use super::turns::Turns;
use super::{Beginning, Contender, InCell, NOBODY, Scheduler, Slot};
use crate::problem::Problem;
use crate::registry::Configured;

/// Parameters of the earliest-deadline scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarliestDeadlineConfig {
    /// Time after its arrival at which a packet is due.
    #[serde(default = "bearers::budget")]
    pub budget: Span,
    /// The same for single bearers.
    #[serde(default, skip_serializing_if = "PerBearer::is_empty")]
    pub budgets: PerBearer<Span>,
}

impl InCell for EarliestDeadlineConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.budgets.names("budgets")
    }
}

impl Configured<Beginning<'_>> for EarliestDeadlineConfig {
    type Model = EarliestDeadline;

    fn problems(&self) -> Vec<Problem> {
        bearers::budget_problems(self.budget, &self.budgets)
    }

    fn build(&self, beginning: Beginning<'_>) -> EarliestDeadline {
        let budgets = self.budgets.of(beginning.bearers, self.budget);
        EarliestDeadline { turns: Turns::new(budgets.len()), budgets }
    }

    fn examples() -> Vec<EarliestDeadlineConfig> {
        let budgets = bearers::example(&[Span::from_millis(20), Span::from_secs(2)]);
        let plain = EarliestDeadlineConfig { budget: bearers::budget(), budgets: PerBearer::default() };
        vec![plain.clone(), EarliestDeadlineConfig { budgets, ..plain }]
    }
}

/// Bearers by deadline.
#[derive(Clone, Debug)]
pub struct EarliestDeadline {
    turns: Turns,
    budgets: Vec<Span>,
}

impl Scheduler for EarliestDeadline {
    fn assign(&mut self, slot: &Slot<'_>, to: &mut [u16]) {
        let EarliestDeadline { turns, budgets } = self;
        turns.begin(slot);
        turns.sort_by_key(|place| {
            let Contender { bearer, since, .. } = slot.contenders[usize::from(place)];
            since.nanos().saturating_add(budgets[usize::from(bearer)].nanos())
        });
        for (resource, to) in to.iter_mut().enumerate() {
            let next = turns.first_for(slot, resource);
            *to = next.map_or(NOBODY, |index| turns.waiting()[index]);
            if let Some(index) = next {
                turns.note_turn(slot, *to);
                turns.give(index, slot.bits_of(usize::from(*to), resource));
            }
        }
        turns.end();
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}
