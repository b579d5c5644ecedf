//! Every whole number of base units from one value to another, each equally likely.

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantity;
use crate::config::Problem;

/// Parameters of the uniform distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Uniform<Q: Quantity> {
    /// The least value.
    pub from: Q,
    /// The greatest value.
    pub to: Q,
}

impl<Q: Quantity> Uniform<Q> {
    pub(super) fn problems(&self) -> Vec<Problem> {
        if self.from.base() <= self.to.base() {
            return Vec::new();
        }
        vec![Problem::new("from", format!("is {}, which is more than `to`, {}", self.from, self.to))]
    }

    pub(super) fn draw(&self, key: DrawKey, step: u64) -> u64 {
        let (from, to) = (self.from.base(), self.to.base());
        from + key.below(step, 0, (to - from).saturating_add(1))
    }
}
