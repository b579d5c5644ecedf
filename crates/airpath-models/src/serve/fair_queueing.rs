// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Weighted fair queueing: time on the medium in proportion to weights, whatever arrives in it.
//!
//! Source: Goyal, Vin and Cheng, "Start-time fair queueing" (ACM SIGCOMM 1996), which needs no lengths of packets
//! beforehand: of the bearers that wait, the one with the least start tag v_i is served, and then v_i grows by the time
//! of the exchange divided by the weight. A bearer that had nothing to send begins at the start tag of the exchange
//! that was chosen last. This is the effort-fair scheduler of Eckhardt and Steenkiste 2002, section 5: an exchange in
//! which nothing arrives costs as much as any other.
//!
//! Two bearers that always have something to send differ in time per weight by at most the sum of one exchange of
//! each, divided by their weights.

use airpath_core::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::{Claim, Limits, Sharing};
use super::unit::{Meter, ServiceUnit};
use super::{Beginning, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{PerBearer, example_of_bearers, weight_problem};

/// Parameters of weighted fair queueing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WfqConfig {
    /// Weights of bearers; others have a weight of 1.
    #[serde(default, skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
}

impl OnMedium for WfqConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.weights.names("weights")
    }
}

impl Configured<Beginning<'_>> for WfqConfig {
    type Model = Wfq;

    fn problems(&self) -> Vec<Problem> {
        self.weights.problems("weights", weight_problem)
    }

    fn build(&self, beginning: Beginning<'_>) -> Wfq {
        let claims: Vec<Claim> =
            self.weights.of(beginning.bearers, 1.0).into_iter().map(|weight| Claim::new(weight, 1.0)).collect();
        let all = vec![true; claims.len()];
        // Effort alone counts, so that there is no lag; and none is saved up.
        let limits = Limits { lag: 0.0, effort: 0.0 };
        Wfq { meter: Meter::new(ServiceUnit::AirTime, beginning.nominal), flows: Sharing::new(claims, all, limits) }
    }

    fn examples() -> Vec<WfqConfig> {
        vec![WfqConfig::default(), WfqConfig { weights: example_of_bearers(&[4.0, 0.5]) }]
    }
}

/// Bearers by the time that they have used.
#[derive(Clone, Debug)]
pub struct Wfq {
    meter: Meter,
    flows: Sharing,
}

impl PacketScheduler for Wfq {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        self.flows.pick(waiting).unwrap_or(0)
    }

    fn outcome(&mut self, _: Time, bearer: u16, outcome: &Outcome) {
        let mut service = self.meter.of(outcome);
        service.outcome = 0.0;
        self.flows.charge(bearer, &service);
    }
}
