// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! CIF-Q: leads and lags against a medium without errors.
//!
//! Source: Ng, Stoica and Zhang, "Packet fair queueing algorithms for wireless networks with location-dependent errors"
//! (IEEE INFOCOM 1998). Start-time fair queueing runs beside the real medium as if there were no errors: the bearer i
//! with the least virtual time v_i is chosen, and v_i grows by the time of the exchange over the weight r_i. Its lag
//! grows by that time, and the lag of the bearer j that is really served falls by it; a lag below 0 is a lead.
//!
//! - A chosen bearer that can send and does not lead is served.
//! - One that leads keeps the part α of its service: as long as s_i ≤ α v_i, with s_i = α v_i when it begins to lead,
//!   and s_i growing as v_i does with what it keeps. The rest goes to the bearer with the greatest lag per weight that
//!   can send, and stays where there is none.
//! - The service of one that cannot send goes to the bearer with the greatest lag per weight, and without any to all
//!   that can send, by start-time fair queueing of its own (virtual times c_j).
//! - A bearer that lags and has nothing more to send leaves its lag to the others by their weights. One that leads stays
//!   until it has given its lead back.
//!
//! The paper knows who can send. Here that is an estimate from acknowledgements: a bearer whose last exchange failed
//! cannot, until `probe_interval` has passed; if nobody can, the chosen one is served nevertheless. Exchanges fail in
//! spite of the estimate, which the paper does not have: the lag of the chosen bearer grows then, and nobody's falls,
//! so that the medium as a whole falls behind; lags have a limit.

use airpath_core::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::unit::{Meter, ServiceUnit};
use super::{Beginning, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{PerBearer, example_of_bearers, weight_problem};

/// Greatest number of exchanges of the medium that a lag stands for.
const LAG_LIMIT: f64 = 1000.0;

/// Parameters of CIF-Q.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CifQConfig {
    /// Weights of bearers; others have a weight of 1.
    #[serde(skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
    /// Part α of its service that a bearer with a lead keeps, from 0 to 1.
    pub kept: f64,
    /// Time after a failure for which a bearer is thought unable to send.
    pub probe_interval: Span,
}

impl Default for CifQConfig {
    fn default() -> CifQConfig {
        CifQConfig { weights: PerBearer::default(), kept: 0.9, probe_interval: Span::from_millis(100) }
    }
}

impl OnMedium for CifQConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.weights.names("weights")
    }
}

impl Configured<Beginning<'_>> for CifQConfig {
    type Model = CifQ;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.weights.problems("weights", weight_problem);
        if !(0.0..=1.0).contains(&self.kept) {
            problems.push(Problem::new("kept", format!("is {}; it must be 0 to 1", self.kept)));
        }
        problems
    }

    fn build(&self, beginning: Beginning<'_>) -> CifQ {
        let weights = self.weights.of(beginning.bearers, 1.0);
        let sum: f64 = weights.iter().sum();
        let flow = |weight: f64| Flow { weight, most_lag: LAG_LIMIT * weight / sum, ..Flow::default() };
        CifQ {
            meter: Meter::new(ServiceUnit::AirTime, beginning.nominal),
            flows: weights.into_iter().map(flow).collect(),
            alpha: self.kept,
            probe_interval: self.probe_interval,
            excess_clock: 0.0,
            choice: Choice::default(),
        }
    }

    fn examples() -> Vec<CifQConfig> {
        let plain = CifQConfig::default();
        vec![
            plain.clone(),
            CifQConfig { weights: example_of_bearers(&[4.0, 0.5]), kept: 0.0, ..plain.clone() },
            CifQConfig { kept: 1.0, probe_interval: Span::ZERO, ..plain },
        ]
    }
}

/// Account of a bearer.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    weight: f64,
    most_lag: f64,
    /// Virtual time v.
    virtual_time: f64,
    /// Service that it has missed, in nominal exchanges; below 0 a lead.
    lag: f64,
    /// Service s that it has kept since it leads.
    kept: f64,
    /// Virtual time c of service that others could not use.
    excess: f64,
    /// True while it takes part.
    is_active: bool,
    /// True if it has something to send.
    waits: bool,
    /// End of the time for which it is thought unable to send.
    silent_until: Time,
}

/// The last choice.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    /// The bearer that is charged.
    charged: usize,
    /// True if that bearer leads and keeps the service.
    keeps: bool,
    /// True if the service is one that others could not use.
    is_excess: bool,
}

/// Bearers by their virtual times.
#[derive(Clone, Debug)]
pub struct CifQ {
    meter: Meter,
    flows: Vec<Flow>,
    alpha: f64,
    probe_interval: Span,
    /// Virtual time of the last service that others could not use.
    excess_clock: f64,
    choice: Choice,
}

/// Number of the flow that `fits` with the least `key`; the first of equals.
fn least(flows: &[Flow], fits: impl Fn(&Flow) -> bool, key: impl Fn(&Flow) -> f64) -> Option<usize> {
    let fitting = flows.iter().enumerate().filter(|(_, flow)| fits(flow));
    fitting.min_by(|(_, one), (_, other)| key(one).total_cmp(&key(other))).map(|(number, _)| number)
}

impl CifQ {
    /// Notes who has something to send, and who takes part.
    fn update(&mut self, waiting: &[Waiting]) {
        let mut waits = waiting.iter().peekable();
        for (bearer, flow) in self.flows.iter_mut().enumerate() {
            flow.waits = waits.next_if(|waiting| usize::from(waiting.bearer) == bearer).is_some();
        }
        // A lag that is left to the others may end a lead, with which a flow leaves, too.
        while let Some(number) = self.flows.iter().position(|flow| flow.is_active && !flow.waits && flow.lag >= 0.0) {
            let lag = self.flows[number].lag;
            self.flows[number].is_active = false;
            self.flows[number].lag = 0.0;
            let sum: f64 = self.flows.iter().filter(|flow| flow.is_active).map(|flow| flow.weight).sum();
            for flow in self.flows.iter_mut().filter(|flow| flow.is_active) {
                flow.lag = (flow.lag + lag * flow.weight / sum).min(flow.most_lag);
            }
        }
        let first = least(&self.flows, |flow| flow.is_active, |flow| flow.virtual_time);
        let first = first.map_or(0.0, |number| self.flows[number].virtual_time);
        for flow in self.flows.iter_mut().filter(|flow| flow.waits && !flow.is_active) {
            flow.is_active = true;
            flow.lag = 0.0;
            flow.virtual_time = flow.virtual_time.max(first);
        }
    }

    /// The bearer that is served, of those that wait.
    fn choose(&mut self, at: Time) -> usize {
        let can_send = |flow: &Flow| flow.waits && flow.silent_until <= at;
        let Some(chosen) = least(&self.flows, |flow| flow.is_active, |flow| flow.virtual_time) else { return 0 };
        self.choice = Choice { charged: chosen, keeps: false, is_excess: false };
        let flow = &self.flows[chosen];
        if can_send(flow) && flow.lag >= 0.0 {
            return chosen;
        }
        if can_send(flow) && flow.kept <= self.alpha * flow.virtual_time {
            self.choice.keeps = true;
            return chosen;
        }
        let lagging = least(&self.flows, |flow| can_send(flow) && flow.lag > 0.0, |flow| -flow.lag / flow.weight);
        if let Some(lagging) = lagging {
            return lagging;
        }
        if can_send(flow) {
            return chosen;
        }
        for flow in self.flows.iter_mut().filter(|flow| !can_send(flow)) {
            // Who comes back begins with the others.
            flow.excess = flow.excess.max(self.excess_clock);
        }
        if let Some(other) = least(&self.flows, can_send, |flow| flow.excess) {
            self.choice.is_excess = true;
            return other;
        }
        let waiting = least(&self.flows, |flow| flow.waits, |flow| flow.virtual_time).unwrap_or(chosen);
        if self.flows[chosen].waits { chosen } else { waiting }
    }
}

impl PacketScheduler for CifQ {
    fn pick(&mut self, at: Time, waiting: &[Waiting]) -> usize {
        self.update(waiting);
        let bearer = self.choose(at);
        waiting.binary_search_by_key(&bearer, |waiting| usize::from(waiting.bearer)).unwrap_or(0)
    }

    fn outcome(&mut self, at: Time, bearer: u16, outcome: &Outcome) {
        let CifQ { flows, choice, alpha, .. } = self;
        let service = self.meter.of(outcome);
        let bearer = usize::from(bearer);
        let charged = &mut flows[choice.charged];
        charged.virtual_time += service.effort / charged.weight;
        charged.kept += if choice.keeps { service.effort / charged.weight } else { 0.0 };
        charged.lag = (charged.lag + service.effort).min(charged.most_lag);
        let arrived = f64::from(outcome.arrived) / f64::from(outcome.frames.max(1));
        let served = &mut flows[bearer];
        let before = served.lag - if bearer == choice.charged { service.effort } else { 0.0 };
        served.lag -= service.effort * arrived;
        if before >= 0.0 && served.lag < 0.0 {
            served.kept = *alpha * served.virtual_time;
        }
        if choice.is_excess {
            self.excess_clock = self.excess_clock.max(served.excess);
            served.excess += service.effort / served.weight;
        }
        served.silent_until = if outcome.arrived == 0 { at + self.probe_interval } else { Time::ZERO };
    }
}
