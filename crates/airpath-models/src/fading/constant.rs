// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! No fading: the mean signal-to-noise ratio, with shadowing and path loss if there are any.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Block, Grid, Response};
use crate::registry::Configured;

/// Nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConstantConfig {}

impl Configured<Grid> for ConstantConfig {
    type Model = Constant;

    fn build(&self, _: Grid) -> Constant {
        Constant
    }

    fn examples() -> Vec<ConstantConfig> {
        vec![ConstantConfig {}]
    }
}

/// A response of one everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Constant;

impl Response for Constant {
    fn respond(&mut self, _: &Block, re: &mut [f32], im: &mut [f32]) {
        re.fill(1.0);
        im.fill(0.0);
    }
}
