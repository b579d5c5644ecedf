// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Server-based fairness: a server that gives bearers a part of the medium for what they have lost.
//!
//! Source: Ramanathan and Agrawal, "Adapting packet fair queueing algorithms to wireless networks" (ACM MobiCom 1998).
//! The bearers and a long-term fairness server share the medium by a fair queueing algorithm, here start-time fair
//! queueing, by time. The server has a part of the medium of its own. Each exchange of a bearer that fails leaves a
//! slot in the server's queue. When it is the server's turn, the bearer of the slot at the head is served and the
//! server charged. A slot that fails goes to the end of the queue.
//!
//! Whose errors are repaid, and how fast, follows from the part of the server and from the errors of all: slots are
//! served in the order of the losses. The lag of a bearer is the number of its slots. A bearer with nothing to send
//! loses them when its turn comes, and the oldest slot of the bearer that fails gives way where the queue is full.

use std::collections::VecDeque;

use airpath_core::{Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claims::{Claim, Limits, Sharing};
use super::unit::{Meter, ServiceUnit};
use super::{Beginning, OnMedium, Outcome, PacketScheduler, Waiting};
use crate::problem::Problem;
use crate::registry::Configured;
use crate::schedule::{PerBearer, example_of_bearers, weight_problem};

/// Greatest number of slots.
const SLOTS_LIMIT: u32 = 1_000_000;

/// Parameters of server-based fairness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerBasedConfig {
    /// Weights of bearers; others have a weight of 1.
    #[serde(skip_serializing_if = "PerBearer::is_empty")]
    pub weights: PerBearer<f64>,
    /// Part of the medium that is the server's, if all bearers have something to send.
    pub server: Probability,
    /// Greatest number of slots that wait in the server's queue.
    pub slots: u32,
}

impl Default for ServerBasedConfig {
    fn default() -> ServerBasedConfig {
        ServerBasedConfig {
            weights: PerBearer::default(),
            server: Probability::new(0.1).unwrap_or(Probability::ZERO),
            slots: 1000,
        }
    }
}

impl OnMedium for ServerBasedConfig {
    fn names(&self) -> Vec<(String, &str)> {
        self.weights.names("weights")
    }
}

impl Configured<Beginning<'_>> for ServerBasedConfig {
    type Model = ServerBased;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = self.weights.problems("weights", weight_problem);
        if self.server == Probability::ZERO || self.server.get() > 0.99 {
            let message = format!("is {}; it must be more than 0 and at most 99 %", self.server);
            problems.push(Problem::new("server", message));
        }
        if !(1..=SLOTS_LIMIT).contains(&self.slots) {
            problems.push(Problem::new("slots", format!("are {}; write 1 to {SLOTS_LIMIT}", self.slots)));
        }
        problems
    }

    fn build(&self, beginning: Beginning<'_>) -> ServerBased {
        let mut weights = self.weights.of(beginning.bearers, 1.0);
        let server = self.server.get();
        weights.push(weights.iter().sum::<f64>() * server / (1.0 - server));
        let claims: Vec<Claim> = weights.into_iter().map(|weight| Claim::new(weight, 1.0)).collect();
        let all = vec![true; claims.len()];
        ServerBased {
            meter: Meter::new(ServiceUnit::AirTime, beginning.nominal),
            server: claims.len() as u16 - 1,
            sharing: Sharing::new(claims, all, Limits { lag: 0.0, effort: 0.0 }),
            slots: VecDeque::new(),
            most: self.slots as usize,
            is_servers: false,
            with_server: Vec::new(),
        }
    }

    fn examples() -> Vec<ServerBasedConfig> {
        let plain = ServerBasedConfig::default();
        let server = Probability::new(0.4).unwrap_or(Probability::ONE);
        vec![plain.clone(), ServerBasedConfig { weights: example_of_bearers(&[4.0, 0.5]), server, slots: 3 }]
    }
}

/// Bearers, and the server behind them.
#[derive(Clone, Debug)]
pub struct ServerBased {
    meter: Meter,
    sharing: Sharing,
    /// Number of the server, behind those of the bearers.
    server: u16,
    /// Bearers of the slots in the server's queue.
    slots: VecDeque<u16>,
    most: usize,
    /// True if the exchange that was chosen last is the server's.
    is_servers: bool,
    /// Scratch of `pick`.
    with_server: Vec<Waiting>,
}

impl PacketScheduler for ServerBased {
    fn pick(&mut self, _: Time, waiting: &[Waiting]) -> usize {
        let place_of = |bearer: &u16| waiting.binary_search_by_key(bearer, |waiting| waiting.bearer).ok();
        let served = self.slots.iter().find_map(place_of);
        self.with_server.clear();
        self.with_server.extend_from_slice(waiting);
        if served.is_some() {
            self.with_server.push(Waiting { bearer: self.server, since: Time::ZERO });
        }
        let place = self.sharing.pick(&self.with_server).unwrap_or(0);
        self.is_servers = place == waiting.len();
        if self.is_servers { served.unwrap_or(0) } else { place }
    }

    fn outcome(&mut self, _: Time, bearer: u16, outcome: &Outcome) {
        let mut service = self.meter.of(outcome);
        service.outcome = 0.0;
        self.sharing.charge(if self.is_servers { self.server } else { bearer }, &service);
        if self.is_servers {
            // Slots before it are of bearers that have nothing to send.
            while self.slots.pop_front().is_some_and(|first| first != bearer) {}
        }
        if outcome.arrived < outcome.frames {
            if self.slots.len() == self.most
                && let Some(oldest) = self.slots.iter().position(|slot| *slot == bearer)
            {
                self.slots.remove(oldest);
            }
            if self.slots.len() < self.most {
                self.slots.push_back(bearer);
            }
        }
    }
}
