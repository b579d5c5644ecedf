// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Duplication: some packets are sent on more than once.

use airpath_core::{DrawKey, Probability, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decision::{self, Decision};
use crate::file::{VisitFile, under};
use crate::problem::Problem;
use crate::random::{Random, Sampler};

/// Duplication of packets: `{ probability = 0.01 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DuplicateConfig {
    /// The probability that a packet is duplicated.
    pub probability: Probability,
    /// Delay of a copy behind its packet; drawn for each copy.
    #[serde(default)]
    pub delay: Random<Span>,
    /// Number of copies.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub copies: u32,
    /// The correlation of neighbouring decisions, from 0 to below 1: what is duplicated comes in runs.
    #[serde(default)]
    pub correlation: Probability,
}

fn one() -> u32 {
    1
}

/// The most copies of a packet: more would be an attack.
const COPIES: u32 = 100;

impl DuplicateConfig {
    /// Visits the files that the parameters name.
    pub fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.delay.files(&mut under("delay", visit));
    }

    /// Errors in the parameters, if any.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = decision::problems(self.correlation);
        problems.extend(self.delay.problems().into_iter().map(|problem| problem.under("delay")));
        if !(1..=COPIES).contains(&self.copies) {
            problems.push(Problem::new("copies", format!("is {}; it must be from 1 to {COPIES}", self.copies)));
        }
        problems
    }

    /// Parameters worth testing.
    pub fn examples() -> Vec<DuplicateConfig> {
        let probability = |text: &str| text.parse::<Probability>().expect("an example is valid");
        let plain = |share: &str, delay: Random<Span>| DuplicateConfig {
            probability: probability(share),
            delay,
            copies: 1,
            correlation: Probability::ZERO,
        };
        let delays = Random::examples(Span::from_millis(10));
        let mut all: Vec<DuplicateConfig> = delays.into_iter().map(|delay| plain("0.3", delay)).collect();
        all.extend([
            plain("1", Random::default()),
            DuplicateConfig { copies: 3, correlation: probability("0.5"), ..plain("0.2", Random::default()) },
        ]);
        all
    }
}

/// Decides which packets are duplicated.
#[derive(Clone, Debug)]
pub(super) struct Duplicate {
    config: Option<DuplicateConfig>,
    decision: Decision,
    delay: Sampler<Span>,
    /// Number of packets while this was on, and number of copies made.
    packets: u64,
    copies: u64,
}

fn delay_of(config: Option<&DuplicateConfig>) -> Random<Span> {
    config.map(|config| config.delay.clone()).unwrap_or_default()
}

impl Duplicate {
    pub fn new(config: Option<&DuplicateConfig>, key: DrawKey) -> Duplicate {
        Duplicate {
            config: config.cloned(),
            decision: Decision::new(key),
            delay: Sampler::new(&delay_of(config), key.child("delay", 0)),
            packets: 0,
            copies: 0,
        }
    }

    pub fn configure(&mut self, config: Option<&DuplicateConfig>) {
        self.config = config.cloned();
        self.delay.configure(&delay_of(config));
    }

    pub fn is_on(&self) -> bool {
        self.config.is_some()
    }

    /// Number of copies of the next packet.
    pub fn copies(&mut self) -> u32 {
        let Some(config) = &self.config else { return 0 };
        let step = self.packets;
        self.packets += 1;
        if self.decision.take(step, config.probability, config.correlation) { config.copies } else { 0 }
    }

    /// Delay of the next copy behind its packet.
    pub fn delay(&mut self) -> Span {
        let step = self.copies;
        self.copies += 1;
        self.delay.draw(step)
    }
}
