//! The exponential distribution, by inversion.

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantity;
use crate::config::Problem;

/// Parameters of the exponential distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exponential<Q: Quantity> {
    /// The mean, before values are cut off.
    pub mean: Q,
    /// Lower draws become this.
    #[serde(default)]
    pub least: Q,
    /// Higher draws become this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Q>,
}

impl<Q: Quantity> Exponential<Q> {
    pub(super) fn problems(&self) -> Vec<Problem> {
        match self.most {
            Some(most) if most.base() < self.least.base() => {
                vec![Problem::new("most", format!("is {most}, which is less than `least`, {}", self.least))]
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn draw(&self, key: DrawKey, step: u64) -> u64 {
        let drawn = libm::round(self.mean.base() as f64 * key.exponential(step, 0));
        // A cast from a floating-point number keeps to the range of the integer.
        (drawn as u64).clamp(self.least.base(), self.most.map_or(u64::MAX, Quantity::base))
    }
}
