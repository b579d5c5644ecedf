// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rates at given times, from a file: CSV, JSON, or the JSON of netem-trace.

use airpath_core::DrawKey;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::{Curve, LONGEST_LINE_NS};
pub use super::piecewise::Piecewise;
pub use super::rate_trace::RateTrace;
use crate::file::{AnyFile, FileRef, VisitFile};
use crate::problem::Problem;
use crate::registry::Configured;

/// Rate between two times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Interpolation {
    /// The rate of the earlier one.
    #[default]
    Step,
    /// A line from one rate to the next.
    Linear,
}

/// Rates from a file: `{ type = "trace", file = "train.csv" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceConfig {
    /// Rates at times that count from the file's first one, which is the beginning of the run.
    pub file: FileRef<RateTrace>,
    /// Rate between two times.
    #[serde(default)]
    pub interpolation: Interpolation,
    /// True: the trace repeats after its end; false: its last rate stays. Without it a trace repeats, unless
    /// the file says that it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<bool>,
}

pub(super) fn yes() -> bool {
    true
}

impl TraceConfig {
    /// The rate over time.
    ///
    /// # Panics
    /// Where nobody has loaded the file.
    pub fn curve(&self) -> Arc<Curve> {
        Arc::clone(self.file.data().curve(self.interpolation == Interpolation::Linear))
    }

    /// True if the trace repeats after its end.
    ///
    /// # Panics
    /// Where nobody has loaded the file.
    pub fn repeats(&self) -> bool {
        self.repeat.unwrap_or(self.file.data().repeats())
    }

    pub(super) fn transmitter(&self) -> Piecewise {
        Piecewise::new(self.curve(), self.repeats())
    }
}

impl Configured for TraceConfig {
    type Model = Piecewise;

    fn problems(&self) -> Vec<Problem> {
        let Some(trace) = self.file.loaded() else { return Vec::new() };
        let far = |pair: &[super::curve::Point]| pair[1].at_ns - pair[0].at_ns > LONGEST_LINE_NS;
        if self.interpolation == Interpolation::Linear && trace.points().windows(2).any(far) {
            let message = "is linear, and the trace has more than an hour between two times; add a point between";
            return vec![Problem::new("interpolation", message)];
        }
        Vec::new()
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn build(&self, _key: DrawKey) -> Piecewise {
        self.transmitter()
    }

    fn examples() -> Vec<TraceConfig> {
        let file = |text: &str| {
            let data = crate::file::FileFormat::parse(text.as_bytes()).expect("an example is valid");
            FileRef::with_data("example.csv", data)
        };
        vec![
            TraceConfig {
                file: file("0,1 Mbit/s\n0.03,2e5\n0.035,0\n0.06,3.5 Mbit/s\n"),
                interpolation: Interpolation::Step,
                repeat: None,
            },
            TraceConfig {
                file: file("time,rate\n10 ms,64 kbit/s\n25 ms,4 Mbit/s\n60 ms,333333 bit/s\n"),
                interpolation: Interpolation::Linear,
                repeat: Some(false),
            },
        ]
    }
}

impl std::fmt::Display for TraceConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "as in {}", self.file.name())
    }
}
