// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Outcome fairness: what arrives in proportion to weights, whatever time that takes.
//!
//! Source: Eckhardt and Steenkiste 2002, section 5.2: the limit of effort-limited fairness for infinite power factors.
//! A flow with the error rate E gets the part W / (1 − E) of the medium, relative to the others: one from which nothing
//! arrives takes all of it, and starves the rest.

use airpath_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::{Claim, Limits, Sharing};
use super::unit::{Meter, ServiceUnit};
use super::{Beginning, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{PerBearer, example_of_bearers, weight_problem};

/// Parameters of outcome fairness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutcomeFairConfig {
    /// Unit in which exchanges are charged.
    pub unit: ServiceUnit,
    /// Weights of bearers; others have a weight of 1.
    #[serde(skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
}

impl OnMedium for OutcomeFairConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.weights.names("weights")
    }
}

impl Configured<Beginning<'_>> for OutcomeFairConfig {
    type Model = OutcomeFair;

    fn problems(&self) -> Vec<Problem> {
        self.weights.problems("weights", weight_problem)
    }

    fn build(&self, beginning: Beginning<'_>) -> OutcomeFair {
        let weights = self.weights.of(beginning.bearers, 1.0);
        let claims: Vec<Claim> = weights.into_iter().map(|weight| Claim::new(weight, f64::INFINITY)).collect();
        let all = vec![true; claims.len()];
        // Nobody lags behind the others.
        let limits = Limits { lag: 0.0, effort: 0.0 };
        OutcomeFair { meter: Meter::new(self.unit, beginning.nominal), flows: Sharing::new(claims, all, limits) }
    }

    fn examples() -> Vec<OutcomeFairConfig> {
        vec![
            OutcomeFairConfig::default(),
            OutcomeFairConfig { unit: ServiceUnit::AirTime, weights: example_of_bearers(&[4.0, 0.5]) },
        ]
    }
}

/// Bearers by what has arrived.
#[derive(Clone, Debug)]
pub struct OutcomeFair {
    meter: Meter,
    flows: Sharing,
}

impl PacketScheduler for OutcomeFair {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        self.flows.pick(waiting).unwrap_or(0)
    }

    fn outcome(&mut self, _: Time, bearer: u16, outcome: &Outcome) {
        self.flows.charge(bearer, &self.meter.of(outcome));
    }
}
