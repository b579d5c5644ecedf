// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Settings of single flows.

use airpath_core::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Nominal;
use crate::problem::Problem;
use crate::schedule::{PerBearer, weight_problem};

/// Greatest power factor.
const POWER_FACTOR_LIMIT: f64 = 1e6;

/// Settings of one flow under effort-limited fairness: `{ rate = "350 kbit/s", power_factor = 2.2 }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ElfFlow {
    /// Reserved rate; without it the flow is best effort.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Weight among the best-effort flows [default: 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Factor by which errors may raise the flow's part of the medium at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_factor: Option<f64>,
}

/// Settings of one flow under strict priority: `{ level = 0, rate = "8 kbit/s" }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PriorityFlow {
    /// Level, of which 0 is served first [default: 0 with a reserved rate, 1 without].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Reserved rate, up to which the flow is served on its level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Weight among the flows of its level without a reserved rate [default: 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// Problems of the weights of flows with or without a reserved rate.
pub(super) fn weight_problems<T: Copy>(
    flows: &PerBearer<T>,
    of: impl Fn(T) -> (Option<Rate>, Option<f64>),
) -> Vec<Problem> {
    let check = |flow: T| match of(flow) {
        (Some(_), Some(_)) => Some("has no meaning beside a reserved rate; leave it out".to_string()),
        (None, Some(weight)) => weight_problem(weight),
        _ => None,
    };
    flows.problems_of("flows", "weight", check)
}

/// The problem of a power factor, if it has one.
pub(super) fn power_factor_problem(factor: f64) -> Option<String> {
    let fits = (1.0..=POWER_FACTOR_LIMIT).contains(&factor);
    (!fits).then(|| {
        format!("is {factor}; a power factor must be from 1, which means no more effort than without errors, to 1e6")
    })
}

/// The part of the medium that a rate is.
pub(super) fn part(rate: Rate, nominal: &Nominal) -> f64 {
    rate.bits_per_second() as f64 / nominal.capacity()
}

/// The problem of reservations that exceed the medium without errors, if they do.
pub(super) fn overcommitted(rates: impl Iterator<Item = Rate>, nominal: &Nominal) -> Option<Problem> {
    let sum: f64 = rates.map(|rate| rate.bits_per_second() as f64).sum();
    let capacity = nominal.capacity();
    let exceeds = sum > capacity * (1.0 + 1e-9);
    exceeds.then(|| {
        let (sum, capacity) = (kilobits(sum), kilobits(capacity));
        let message = format!("reserve {sum}, but the medium carries {capacity} without errors; reserve less");
        Problem::new("flows", message)
    })
}

/// A rate in bit/s as it is written, to a tenth of a kilobit.
pub(super) fn kilobits(bits_per_second: f64) -> String {
    let tenths = libm::round(bits_per_second / 100.0) / 10.0;
    format!("{tenths} kbit/s")
}
