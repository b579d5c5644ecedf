// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rates at given times, written in the scenario.

use std::sync::Arc;

use airpath_core::{DrawKey, RateStep, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::{Curve, HIGHEST_RATE, LONGEST_LINE_NS, Point};
pub use super::piecewise::Piecewise;
use super::trace::Interpolation;
use crate::problem::Problem;
use crate::registry::Configured;

/// Rates at given times: `{ type = "steps", steps = ["0 s: 1 Mbit/s", "20 s: 64 kbit/s"] }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepsConfig {
    /// Times since the run began, the first 0, and the rates that hold from then on; 0 bit/s is an
    /// outage.
    pub steps: Vec<RateStep>,
    /// Rate between two times.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// Period after which the steps repeat; without it the last rate stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
}

impl StepsConfig {
    fn points(&self) -> Vec<Point> {
        self.steps.iter().map(|step| Point { at_ns: step.at.nanos(), rate: step.bits_per_second }).collect()
    }

    /// The rate over time.
    pub fn curve(&self) -> Curve {
        let points = self.points();
        let last = points.last().map_or(0, |point| point.at_ns);
        let period = self.period.map_or(last + 1, Span::nanos);
        Curve::new(&points, period, self.interpolation == Interpolation::Linear)
    }

    pub(super) fn transmitter(&self) -> Piecewise {
        Piecewise::new(Arc::new(self.curve()), self.period.is_some())
    }
}

impl Configured for StepsConfig {
    type Model = Piecewise;

    fn problems(&self) -> Vec<Problem> {
        let problem = |key: &str, message: String| vec![Problem::new(key, message)];
        let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) else {
            return problem("steps", "is empty; write for example [\"0 s: 1 Mbit/s\", \"20 s: 64 kbit/s\"]".into());
        };
        if first.at != Span::ZERO {
            return problem("steps", format!("begins at {}; the first step is at 0 s", first.at));
        }
        for pair in self.steps.windows(2) {
            if pair[1].at <= pair[0].at {
                return problem("steps", format!("has {} after {}; times go up", pair[1].at, pair[0].at));
            }
            if self.interpolation == Interpolation::Linear && pair[1].at.nanos() - pair[0].at.nanos() > LONGEST_LINE_NS
            {
                let message =
                    format!("has more than an hour from {} to {}; add a step between", pair[0].at, pair[1].at);
                return problem("steps", message);
            }
        }
        if let Some(step) = self.steps.iter().find(|step| step.bits_per_second > HIGHEST_RATE) {
            return problem("steps", format!("has {step}; the highest rate is 1000 Gbit/s"));
        }
        if self.steps.iter().all(|step| step.bits_per_second == 0) {
            return problem("steps", "has no rate above 0, so that nothing would ever arrive".into());
        }
        match self.period {
            Some(period) if period <= last.at => {
                problem("period", format!("is {period}, and the last step is at {}; it must be later", last.at))
            }
            _ => Vec::new(),
        }
    }

    fn build(&self, _key: DrawKey) -> Piecewise {
        self.transmitter()
    }

    fn examples() -> Vec<StepsConfig> {
        let steps = |steps: &[&str], interpolation, period: Option<&str>| StepsConfig {
            steps: steps.iter().map(|step| step.parse().expect("an example is valid")).collect(),
            interpolation,
            period: period.map(|period| period.parse().expect("an example is valid")),
        };
        vec![
            steps(
                &["0 s: 1 Mbit/s", "50 ms: 64 kbit/s", "100 ms: 0 bit/s", "120 ms: 7777777 bit/s"],
                Interpolation::Step,
                None,
            ),
            steps(&["0 s: 2 Mbit/s", "30 ms: 0 bit/s", "40 ms: 300 kbit/s"], Interpolation::Step, Some("70 ms")),
            steps(&["0 s: 0 bit/s", "20 ms: 4 Mbit/s", "33 ms: 100 kbit/s"], Interpolation::Linear, Some("50 ms")),
        ]
    }
}

impl std::fmt::Display for StepsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("in steps")
    }
}
