// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Strict priority: levels one above the other, and reservations within them.
//!
//! Source: the priority-based scheduler of Eckhardt and Steenkiste 2002, section 5: reserved flows get what they have
//! reserved, by outcome, whatever effort that takes, and the others share the rest of the time by weight, whatever
//! arrives. A lower level is served only when nobody on those above has anything due.
//!
//! On each level flows with a reserved rate come first, the one that is furthest behind; a flow that has had its rate
//! is not due. Flows without one share what the level gets by time, as under `wfq`. They are always due, and may starve
//! all levels below. If nobody is due, a reserved flow is served early, which is not charged.

use std::collections::BTreeSet;

use airpath_core::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::{Claim, Limits, Reservations, Sharing};
use super::flows::{PriorityFlow, overcommitted, part, weight_problems};
use super::unit::{Meter, ServiceUnit};
use super::{Beginning, Nominal, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{PerBearer, example_of_bearers};

/// Limit of what a reserved flow may be behind, in exchanges of the medium.
const LAG_LIMIT: f64 = 1000.0;

/// Parameters of strict priority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StrictPriorityConfig {
    /// Unit in which exchanges are charged.
    pub unit: ServiceUnit,
    /// Levels, reserved rates and weights of bearers. Others are on level 1 with a weight of 1.
    #[serde(skip_serializing_if = "PerBearer::is_empty")]
    pub flows: PerBearer<PriorityFlow>,
}

impl PriorityFlow {
    fn level_or_default(&self) -> u8 {
        self.level.unwrap_or(u8::from(self.rate.is_none()))
    }
}

impl OnMedium for StrictPriorityConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.flows.names("flows")
    }

    fn problems_on(&self, nominal: &Nominal) -> Vec<Problem> {
        let rates = self.flows.0.values().filter_map(|flow| flow.rate);
        overcommitted(rates, nominal).into_iter().collect()
    }
}

impl Configured<Beginning<'_>> for StrictPriorityConfig {
    type Model = StrictPriority;

    fn problems(&self) -> Vec<Problem> {
        weight_problems(&self.flows, |flow: PriorityFlow| (flow.rate, flow.weight))
    }

    fn build(&self, beginning: Beginning<'_>) -> StrictPriority {
        let nominal = beginning.nominal;
        let flows = self.flows.of(beginning.bearers, PriorityFlow::default());
        let is_reserved: Vec<bool> = flows.iter().map(|flow| flow.rate.is_some()).collect();
        let levels: Vec<u8> = flows.iter().map(PriorityFlow::level_or_default).collect();
        let reserved =
            flows.iter().map(|flow| Claim::new(flow.rate.map_or(1.0, |rate| part(rate, &nominal)), f64::INFINITY));
        let limits = Limits { lag: LAG_LIMIT, effort: LAG_LIMIT };
        let shares = levels.iter().copied().collect::<BTreeSet<u8>>().into_iter().map(|level| {
            let claims = flows.iter().map(|flow| Claim::new(flow.weight.unwrap_or(1.0), 1.0)).collect();
            let is_in = levels.iter().zip(&is_reserved).map(|(own, is_reserved)| *own == level && !is_reserved);
            (level, Sharing::new(claims, is_in.collect(), Limits { lag: 0.0, effort: 0.0 }))
        });
        StrictPriority {
            meter: Meter::new(self.unit, nominal),
            shares: shares.collect(),
            reserved: Reservations::new(reserved.collect(), is_reserved, limits),
            levels,
            is_early: false,
        }
    }

    fn examples() -> Vec<StrictPriorityConfig> {
        let rate = |text: &str| -> Option<Rate> { Some(text.parse().expect("an example is valid")) };
        let flows = [
            PriorityFlow { rate: rate("100 kbit/s"), ..PriorityFlow::default() },
            PriorityFlow { level: Some(3), weight: Some(2.0), ..PriorityFlow::default() },
            PriorityFlow { level: Some(3), rate: rate("20 kbit/s"), ..PriorityFlow::default() },
        ];
        vec![
            StrictPriorityConfig::default(),
            StrictPriorityConfig { unit: ServiceUnit::AirTime, flows: example_of_bearers(&flows) },
        ]
    }
}

/// Bearers by level.
#[derive(Clone, Debug)]
pub struct StrictPriority {
    meter: Meter,
    /// By bearer.
    levels: Vec<u8>,
    reserved: Reservations,
    /// Flows without a reserved rate, by level.
    shares: Vec<(u8, Sharing)>,
    /// True if the exchange that was chosen last is not due yet.
    is_early: bool,
}

impl PacketScheduler for StrictPriority {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        let StrictPriority { levels, reserved, shares, is_early, .. } = self;
        reserved.update(waiting);
        *is_early = false;
        let mut chosen = None;
        for (level, sharing) in shares {
            let due = || reserved.pick(waiting, |bearer| levels[usize::from(bearer)] == *level);
            // Each level is asked, so that it knows who has nothing to send.
            let shared = sharing.pick(waiting);
            chosen = chosen.or_else(due).or(shared);
        }
        *is_early = chosen.is_none();
        chosen.or_else(|| reserved.pick_early(waiting)).unwrap_or(0)
    }

    fn outcome(&mut self, _: Time, bearer: u16, outcome: &Outcome) {
        let mut service = self.meter.of(outcome);
        self.reserved.pass(&service);
        if !self.reserved.is_in(bearer) {
            service.outcome = 0.0;
            let level = self.levels[usize::from(bearer)];
            for (_, sharing) in self.shares.iter_mut().filter(|(own, _)| *own == level) {
                sharing.charge(bearer, &service);
            }
        } else if self.is_early {
            self.reserved.charge_early(bearer, &service);
        } else {
            self.reserved.charge(bearer, &service);
        }
    }
}
