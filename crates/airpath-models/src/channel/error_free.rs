// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! No errors at all.

use airpath_core::{DrawKey, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use crate::registry::{Configured, Reconfigured};

/// The absence of errors has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorFreeConfig {}

impl Configured for ErrorFreeConfig {
    type Model = ErrorFree;

    fn build(&self, _key: DrawKey) -> ErrorFree {
        ErrorFree::new(self)
    }

    fn examples() -> Vec<ErrorFreeConfig> {
        vec![ErrorFreeConfig {}]
    }
}

impl Reconfigured for ErrorFreeConfig {
    fn configure(&self, _model: &mut ErrorFree, _at: Time) {
        // It has no parameters.
    }
}

/// The process that never hits.
#[derive(Clone, Copy, Debug)]
pub struct ErrorFree;

impl ErrorFree {
    pub(super) fn new(_: &ErrorFreeConfig) -> ErrorFree {
        ErrorFree
    }
}

impl ErrorProcess for ErrorFree {
    fn hits(&mut self, _: u64) -> bool {
        false
    }
    fn hit_bits(&mut self, _: u64, _: u64, _: bool, _: &mut Vec<u32>) {}
}
