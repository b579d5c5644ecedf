// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reordering: some packets are held back while those behind them pass.
//!
//! A packet that is held back leaves when its time is over, or when as many packets as its distance
//! says have overtaken it, whichever comes first; only packets that are not held back overtake. With
//! a gap of n a packet may be held back when at least n - 1 have passed since the one before, as in
//! netem (where it is the chosen packet that goes ahead, and all others wait).

use airpath_core::{DrawKey, Probability, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decision::{self, Decision};
use crate::file::{VisitFile, under};
use crate::problem::Problem;
use crate::random::{Random, Sampler};

/// Reordering of packets: `{ probability = 0.01, delay = "20 ms" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReorderConfig {
    /// The probability that a packet is held back.
    pub probability: Probability,
    /// Maximum time for which it is held back; drawn for each. Without it, but with a distance: 1 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Random<Span>>,
    /// Number of packets that overtake it before it leaves; without this only time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub distance: Option<u32>,
    /// Reordering gap: at most one packet in this many is held back.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub gap: u32,
    /// The correlation of neighbouring decisions, from 0 to below 1: what is held back comes in runs.
    #[serde(default)]
    pub correlation: Probability,
}

fn one() -> u32 {
    1
}

/// Default of the maximum time for which a packet waits to be overtaken.
const LONGEST_WAIT: Span = Span::from_secs(1);

impl ReorderConfig {
    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        if let Some(delay) = &mut self.delay {
            delay.files(&mut under("delay", visit));
        }
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = decision::problems(self.correlation);
        match &self.delay {
            Some(delay) => problems.extend(delay.problems().into_iter().map(|problem| problem.under("delay"))),
            None if self.distance.is_none() => {
                let message = "is missing: write how long packets are held back, for example delay = \"20 ms\", or \
                               how many overtake them, for example distance = 3";
                problems.push(Problem::new("delay", message));
            }
            None => {}
        }
        for (key, value) in [("distance", self.distance), ("gap", Some(self.gap))] {
            if value == Some(0) {
                problems.push(Problem::new(key, "is 0; it must be 1 or more"));
            }
        }
        problems
    }

    /// Parameters worth testing.
    pub fn examples() -> Vec<ReorderConfig> {
        let probability = |text: &str| text.parse::<Probability>().expect("an example is valid");
        let plain = |share: &str, delay: Option<Random<Span>>| ReorderConfig {
            probability: probability(share),
            delay,
            distance: None,
            gap: 1,
            correlation: Probability::ZERO,
        };
        let delay = Span::from_millis(15);
        let mut all: Vec<ReorderConfig> =
            Random::examples(delay).into_iter().map(|delay| plain("0.4", Some(delay))).collect();
        all.extend([
            ReorderConfig { distance: Some(1), ..plain("0.5", None) },
            ReorderConfig { distance: Some(3), gap: 4, ..plain("1", Some(delay.into())) },
            ReorderConfig { correlation: probability("0.7"), ..plain("0.3", Some(delay.into())) },
        ]);
        all
    }
}

/// Limits of holding a packet back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HoldBack {
    /// Maximum time.
    pub at_most: Span,
    /// Until how many packets have overtaken it; `None` if only time counts.
    pub overtakers: Option<u32>,
}

/// Decides which packets are held back.
#[derive(Clone, Debug)]
pub(super) struct Reorder {
    config: Option<ReorderConfig>,
    decision: Decision,
    delay: Sampler<Span>,
    /// Number of packets while this was on, and number since one was held back.
    packets: u64,
    passed: u32,
}

fn delay_of(config: Option<&ReorderConfig>) -> Random<Span> {
    config.and_then(|config| config.delay.clone()).unwrap_or(LONGEST_WAIT.into())
}

impl Reorder {
    pub fn new(config: Option<&ReorderConfig>, key: DrawKey) -> Reorder {
        Reorder {
            config: config.cloned(),
            decision: Decision::new(key),
            delay: Sampler::new(&delay_of(config), key.child("delay", 0)),
            packets: 0,
            passed: 0,
        }
    }

    pub fn configure(&mut self, config: Option<&ReorderConfig>) {
        self.config = config.cloned();
        self.delay.configure(&delay_of(config));
    }

    pub fn is_on(&self) -> bool {
        self.config.is_some()
    }

    /// Decides on holding back the next packet, and its limits.
    pub fn hold_back(&mut self) -> Option<HoldBack> {
        let config = self.config.as_ref()?;
        let step = self.packets;
        self.packets += 1;
        let may = self.passed >= config.gap - 1;
        if !may || !self.decision.take(step, config.probability, config.correlation) {
            self.passed = self.passed.saturating_add(1);
            return None;
        }
        self.passed = 0;
        Some(HoldBack { at_most: self.delay.draw(step), overtakers: config.distance })
    }
}
