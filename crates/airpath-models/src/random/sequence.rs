// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The values of a file in its order, one for each draw: a replay.

use std::sync::Arc;

use airpath_core::DrawKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Quantity;
use super::declare::{Configured, Draw};
use super::numbers::{self, Numbers};
use crate::file::{AnyFile, FileRef, VisitFile};
use crate::problem::Problem;

/// Behaviour after the last value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// Repeats from the first value.
    #[default]
    Repeat,
    /// Keeps the last value.
    Hold,
}

/// Parameters of a sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sequence<Q: Quantity> {
    /// A file with a plain number on each line.
    pub file: FileRef<Numbers>,
    /// Value of 1 in the file, such as "1 ms".
    pub unit: Q,
    /// Behaviour after the last value.
    #[serde(default)]
    pub at_end: AtEnd,
}

impl<Q: Quantity> Sequence<Q> {
    fn values(&self) -> &[f64] {
        match &**self.file.data() {
            Numbers::Values(values) => values,
            Numbers::Cumulative(_) => &[],
        }
    }
}

impl<Q: Quantity> Configured<Q> for Sequence<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        Q::from_base(self.values().iter().map(|value| numbers::scaled(*value, self.unit)).min().unwrap_or(0))
    }

    fn problems(&self) -> Vec<Problem> {
        if self.values().is_empty() {
            let message = format!("`{}` has two columns; a sequence has a value on each line", self.file.name());
            return vec![Problem::new("file", message)];
        }
        numbers::problems(&self.file, self.values(), self.unit)
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn drawer(&self, _: DrawKey) -> Drawer {
        let values = self.values().iter().map(|value| numbers::scaled(*value, self.unit)).collect();
        Drawer { values, at_end: self.at_end, next: 0 }
    }

    fn examples(typical: Q) -> Vec<Sequence<Q>> {
        let file = FileRef::with_data("sequence.txt", Numbers::Values(vec![1.0, 0.0, 3.0, 0.5]));
        vec![
            Sequence { file: file.clone(), unit: typical, at_end: AtEnd::Repeat },
            Sequence { file, unit: typical, at_end: AtEnd::Hold },
        ]
    }
}

/// Goes through the values.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    values: Arc<[u64]>,
    at_end: AtEnd,
    next: usize,
}

impl Draw for Drawer {
    fn draw(&mut self, _: u64) -> u64 {
        let Some(value) = self.values.get(self.next) else { return 0 };
        let value = *value;
        self.next = match self.at_end {
            _ if self.next + 1 < self.values.len() => self.next + 1,
            AtEnd::Repeat => 0,
            AtEnd::Hold => self.next,
        };
        value
    }
}
