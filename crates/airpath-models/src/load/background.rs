// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A background load in a scenario: what is sent, where it enters, and where it leaves.

use airpath_core::{Direction, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LoadConfig;
use crate::file::VisitFile;
use crate::problem::Problem;

/// The greatest DSCP (RFC 2474).
const LAST_DSCP: u8 = 63;

/// Virtual packets that enter a hop, queue, delay and drop like real ones, and leave within the path.
/// States do not change them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Background")]
pub struct BackgroundConfig {
    /// Its name: a letter, then letters, digits, `_` or `-`. It is the key of its random draws.
    pub name: String,
    /// Hop that it enters.
    pub hop: String,
    /// Direction of the load.
    pub direction: Direction,
    /// Last hop that it crosses; without it, the hop that it enters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// DSCP of its packets, for classification.
    #[serde(default)]
    #[schemars(range(max = 63))]
    pub dscp: u8,
    /// Number of its first flow, for fair queues; without it, a number derived from the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// Number of flows over which its packets are spread in turn; each of `users` keeps to one.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub flows: u32,
    /// Start time.
    #[serde(default)]
    pub start: Span,
    /// Stop time; without it, the load never stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Span>,
    /// Model of packet sizes and times.
    #[serde(flatten)]
    pub load: LoadConfig,
}

fn one() -> u32 {
    1
}

impl BackgroundConfig {
    /// A load called `name` of best-effort packets in one flow, through one hop, from the beginning on.
    pub fn new(name: &str, hop: &str, direction: Direction, load: LoadConfig) -> BackgroundConfig {
        BackgroundConfig {
            name: name.into(),
            hop: hop.into(),
            direction,
            until: None,
            dscp: 0,
            flow: None,
            flows: one(),
            start: Span::ZERO,
            stop: None,
            load,
        }
    }

    /// Visits the files that the parameters name, each with its key.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.load.files(visit);
    }

    /// Errors in the parameters in a path of the hops called `hops`, the client's end first, if any.
    pub fn problems(&self, hops: &[&str]) -> Vec<Problem> {
        let mut problems = self.load.problems();
        let known = hops.join(", ");
        let mut place = |key: &str, name: &str| {
            let place = hops.iter().position(|hop| *hop == name);
            if place.is_none() {
                problems.push(Problem::new(key, format!("there is no hop `{name}`; the hops are {known}")));
            }
            place
        };
        let first = place("hop", &self.hop);
        let last = self.until.as_ref().map_or(first, |until| place("until", until));
        if let (Some(first), Some(last), Some(until)) = (first, last, &self.until)
            && match self.direction {
                Direction::Uplink => last < first,
                Direction::Downlink => last > first,
            }
        {
            let direction = self.direction.name();
            let message = format!("`{until}` lies before `{}` in the {direction}, where packets never come", self.hop);
            problems.push(Problem::new("until", message));
        }
        if self.dscp > LAST_DSCP {
            problems.push(Problem::new("dscp", format!("is {}; it may be {LAST_DSCP} at most", self.dscp)));
        }
        if self.flows == 0 {
            problems.push(Problem::new("flows", "is 0; a load has at least one flow"));
        }
        if let Some(stop) = self.stop
            && stop <= self.start
        {
            problems.push(Problem::new("stop", format!("is {stop}, not after `start`, {}", self.start)));
        }
        problems
    }
}
