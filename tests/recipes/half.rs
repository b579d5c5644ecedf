// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A varying rate made by the recipe: a rate that halves once.

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use airpath_core::{DrawKey, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve::{Curve, Point};
pub use super::piecewise::Piecewise;
use crate::registry::Configured;

/// Time at which the rate halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HalfConfig {
    /// Since the run began.
    pub at: Span,
}

impl Configured for HalfConfig {
    type Model = Piecewise;

    fn build(&self, _key: DrawKey) -> Piecewise {
        let points = [Point { at_ns: 0, rate: 64_000 }, Point { at_ns: self.at.nanos(), rate: 32_000 }];
        Piecewise::new(Arc::new(Curve::new(&points, self.at.nanos() + 1, false)), false)
    }

    fn examples() -> Vec<HalfConfig> {
        vec![HalfConfig { at: Span::from_millis(500) }]
    }
}

impl Display for HalfConfig {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("as it halves")
    }
}
