// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Settings of single bearers, by their names.

use std::collections::BTreeMap;

use airpath_core::Span;
use airpath_core::nearest::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// Settings of single bearers, by their names: `{ alice = 2, bob = 0.5 }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PerBearer<T>(pub BTreeMap<String, T>);

impl<T> Default for PerBearer<T> {
    fn default() -> PerBearer<T> {
        PerBearer(BTreeMap::new())
    }
}

impl<T: Copy> PerBearer<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The setting of each of `bearers`: its own, or `default`.
    pub(crate) fn of(&self, bearers: &[&str], default: T) -> Vec<T> {
        bearers.iter().map(|name| self.0.get(*name).copied().unwrap_or(default)).collect()
    }

    /// The names, each with its key below `key`.
    pub(crate) fn names(&self, key: &str) -> Vec<(String, &str)> {
        self.0.keys().map(|name| (format!("{key}.{name}"), name.as_str())).collect()
    }

    /// A problem for each setting whose `part` does not fit: its message, from `check`.
    pub(crate) fn problems_of(&self, key: &str, part: &str, check: impl Fn(T) -> Option<String>) -> Vec<Problem> {
        let problem = |(name, value): (&String, &T)| Some(Problem::new(format!("{key}.{name}.{part}"), check(*value)?));
        self.0.iter().filter_map(problem).collect()
    }

    /// A problem for each setting that does not fit: its message, from `check`.
    pub(crate) fn problems(&self, key: &str, check: impl Fn(T) -> Option<String>) -> Vec<Problem> {
        let problem = |(name, value): (&String, &T)| Some(Problem::new(format!("{key}.{name}"), check(*value)?));
        self.0.iter().filter_map(problem).collect()
    }
}

/// The problem that `key` names a bearer which is not there, as in "in the cell", among `bearers`.
pub(crate) fn unknown_bearer(key: String, name: &str, place: &str, bearers: &[&str]) -> Problem {
    let near = nearest(name, bearers.iter().copied());
    let hint = near.map_or_else(|| format!("it has {}", bearers.join(", ")), |near| format!("did you mean `{near}`?"));
    Problem::new(key, format!("names `{name}`, which is not {place}; {hint}"))
}

/// The problem of a weight, if it has one.
pub(crate) fn weight_problem(weight: f64) -> Option<String> {
    let fits = (1e-3..=1e3).contains(&weight);
    (!fits).then(|| format!("is {weight}; a weight must be from 0.001 to 1000"))
}

/// A budget of the delay of packets, unless said otherwise.
pub(super) fn budget() -> Span {
    Span::from_millis(100)
}

/// Problems of the budgets of delays.
pub(super) fn budget_problems(budget: Span, budgets: &PerBearer<Span>) -> Vec<Problem> {
    let check = |budget| (budget == Span::ZERO).then(|| format!("is {budget}; it must be longer than 0"));
    let common = check(budget).map(|message| Problem::new("budget", message));
    common.into_iter().chain(budgets.problems("budgets", check)).collect()
}

/// Settings of the bearers with the numbers 0, 1 and so on, for the names of [`EXAMPLE_BEARERS`].
pub(crate) fn example<T: Copy>(values: &[T]) -> PerBearer<T> {
    PerBearer(EXAMPLE_BEARERS.iter().zip(values).map(|(name, value)| (name.to_string(), *value)).collect())
}

/// Names of bearers to which the examples of schedulers give settings.
pub const EXAMPLE_BEARERS: [&str; 3] = ["alice", "bob", "carol"];
