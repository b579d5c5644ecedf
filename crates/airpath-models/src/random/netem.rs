// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tables of netem's distributions, as tc-netem(8) uses them.
//!
//! A table (`normal.dist`, `pareto.dist` and so on, or one made by netem's `maketable`) holds whole
//! numbers from -32768 to 32767: the deviation from the mean in units of 1/8192 of the standard deviation,
//! each entry equally likely. A draw is mean + deviation × entry / 8192, computed as the kernel does it:
//! the deviation's multiple of 8192 ns apart from its rest, whose product is rounded to the nearest. What
//! would be negative is 0, as a packet that netem should send in the past goes at once. The entry is
//! chosen by a draw of this link, and `correlation` keeps the table's distribution, which netem's does not.

use airpath_core::{DrawKey, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::{Configured, Draw};
use super::numbers;
use super::uniforms::{self, Uniforms};
use super::{CEILING, Quantity, share};
use crate::file::{FileFormat, FileRef, VisitFile};
use crate::problem::Problem;

/// Entry of one deviation.
const SCALE: i128 = 8_192;
/// The longest table that tc takes.
const LONGEST: usize = 16_384;

/// A table of netem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetemTable(Vec<i16>);

impl NetemTable {
    /// A table of these entries; none if there are none.
    pub fn new(entries: Vec<i16>) -> Option<NetemTable> {
        (!entries.is_empty()).then_some(NetemTable(entries))
    }
}

impl FileFormat for NetemTable {
    const WHAT: &'static str = "table of netem";

    fn parse(bytes: &[u8]) -> Result<NetemTable, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_string())?;
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let at = |problem: String| format!("line {}: {problem}", index + 1);
            for entry in numbers::columns(line).map_err(at)? {
                if !(f64::from(i16::MIN)..=f64::from(i16::MAX)).contains(&entry) {
                    return Err(at(format!("{entry} is out of range; entries are from -32768 to 32767")));
                }
                // A fraction is cut off, as tc does.
                entries.push(entry as i16);
            }
        }
        if entries.len() > LONGEST {
            return Err(format!("it has {} entries; there may be {LONGEST}", entries.len()));
        }
        NetemTable::new(entries).ok_or_else(|| "there is no entry in it".into())
    }
}

/// Parameters of a distribution by a table of netem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netem<Q: Quantity> {
    /// The table, such as `pareto.dist`.
    pub file: FileRef<NetemTable>,
    /// Value of an entry of 0.
    pub mean: Q,
    /// Difference between the values of entries 8192 and 0.
    pub deviation: Q,
    /// Correlation of consecutive draws, from 0 to below 1.
    #[serde(default)]
    pub correlation: Probability,
}

impl<Q: Quantity> Netem<Q> {
    fn value(&self, entry: i16) -> u64 {
        let (mean, deviation, entry) =
            (i128::from(self.mean.base()), i128::from(self.deviation.base()), i128::from(entry));
        let rest = (deviation % SCALE) * entry;
        let rounded = if rest >= 0 { rest + SCALE / 2 } else { rest - SCALE / 2 };
        let value = rounded / SCALE + (deviation / SCALE) * entry + mean;
        value.clamp(0, i128::from(CEILING)) as u64
    }
}

impl<Q: Quantity> Configured<Q> for Netem<Q> {
    type Drawer = Drawer;

    fn least(&self) -> Q {
        let lowest = self.file.data().0.iter().min().copied().unwrap_or(0);
        Q::from_base(self.value(lowest))
    }

    fn problems(&self) -> Vec<Problem> {
        uniforms::problems(self.correlation)
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        let mut values: Vec<u64> = self.file.data().0.iter().map(|entry| self.value(*entry)).collect();
        values.sort_unstable();
        Drawer { values, uniforms: Uniforms::new(self.correlation, key) }
    }

    fn examples(typical: Q) -> Vec<Netem<Q>> {
        let entries = vec![-20_000, -8_192, -3_000, -1, 0, 1, 3_000, 8_192, 30_000];
        let file = FileRef::with_data("example.dist", NetemTable(entries));
        vec![Netem { file, mean: typical, deviation: share(typical, 0.5), correlation: Probability::ZERO }]
    }
}

/// Draws from a table of netem.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    /// Values of the entries, in ascending order.
    values: Vec<u64>,
    uniforms: Uniforms,
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        let index = (self.uniforms.draw(step) * self.values.len() as f64) as usize;
        self.values[index.min(self.values.len() - 1)]
    }
}
