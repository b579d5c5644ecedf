//! No errors at all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ErrorProcess;
use crate::config::Problem;

/// The absence of errors has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorFreeConfig {}

impl ErrorFreeConfig {
    pub(super) fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }
}

pub(super) fn examples() -> Vec<ErrorFreeConfig> {
    vec![ErrorFreeConfig {}]
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
