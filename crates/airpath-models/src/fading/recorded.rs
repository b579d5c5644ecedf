// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Signal-to-noise ratios read from a file.
//!
//! A text with a line for each slot and in it a number in decibels for each resource, between commas or blanks; `#`
//! begins a comment. The mean of the configuration is added to each. A file with one number by line holds for all
//! resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

use super::quantity::Decibels;
use super::{BLOCK, Block, Grid, Response};
use crate::file::{AnyFile, FileFormat, FileRef, VisitFile};
use crate::problem::Problem;
use crate::random::AtEnd;
use crate::registry::Configured;

/// A recorded channel: `{ type = "recorded", file = "snr.csv" }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedConfig {
    /// The file.
    pub file: FileRef<SnrTable>,
    /// Ratios after its end.
    #[serde(default)]
    pub at_end: AtEnd,
}

/// The greatest ratio, and below zero the least, of which powers are numbers in single precision.
const MOST_DECIBELS: f64 = 300.0;

/// Signal-to-noise ratios by slot and resource.
#[derive(Clone, Debug, PartialEq)]
pub struct SnrTable {
    width: usize,
    /// √SNR, slot by slot.
    amplitudes: Vec<f32>,
}

impl FileFormat for SnrTable {
    const WHAT: &'static str = "table of signal-to-noise ratios";

    fn parse(bytes: &[u8]) -> Result<SnrTable, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| format!("it is no text: {error}"))?;
        let mut table = SnrTable { width: 0, amplitudes: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let content = line.split('#').next().unwrap_or_default();
            if content.trim().is_empty() {
                continue;
            }
            let mut width = 0;
            for field in content.split([',', ';']) {
                if field.trim().is_empty() {
                    return Err(format!("line {number}, column {}: there is no number", width + 1));
                }
                for word in field.split_whitespace() {
                    width += 1;
                    let decibels = word.parse::<f64>().ok().filter(|decibels| decibels.abs() <= MOST_DECIBELS);
                    let Some(decibels) = decibels else {
                        return Err(format!(
                            "line {number}, column {width}: `{word}` is no number of decibels from -300 to 300"
                        ));
                    };
                    table.amplitudes.push(libm::sqrt(Decibels(decibels).ratio()) as f32);
                }
            }
            if table.width != 0 && width != table.width {
                let message = format!("line {number}: {width} numbers, but {} in the lines before", table.width);
                return Err(message);
            }
            table.width = width;
        }
        if table.width == 0 { Err("there is no number in it".into()) } else { Ok(table) }
    }

    fn advice(name: &str, bytes: &[u8]) -> Option<String> {
        let (_, what) = OTHERS.iter().find(|(beginning, _)| bytes.starts_with(beginning))?;
        let stem = Path::new(name).with_extension("");
        let text = format!("{}.csv", stem.display());
        Some(format!(
            "it is {what}; make a text of it with `airpath fading convert {} {}`, and write file = \"{text}\"",
            quoted(name),
            quoted(&text)
        ))
    }
}

/// Beginnings of files that `airpath fading convert` reads, and what they are.
const OTHERS: [(&[u8], &str); 2] = [(b"PAR1", "a Parquet file"), (b"MATLAB 5.0", "a MAT-file")];

/// `name` as a word of a shell's command.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+".contains(c)) && !name.starts_with('-');
    if is_plain { name.into() } else { format!("'{}'", name.replace('\'', r"'\''")) }
}

impl RecordedConfig {
    /// Errors that depend on the number of resources.
    pub(super) fn problems_of(&self, resources: u16) -> Option<Problem> {
        let width = self.file.loaded()?.width;
        (width != 1 && width < usize::from(resources)).then(|| {
            let message = format!(
                "`{}` has {width} numbers in a line, and there are {resources} resources; a line needs a number for \
                 each resource, or one for all",
                self.file.name()
            );
            Problem::new("file", message)
        })
    }
}

impl Configured<Grid> for RecordedConfig {
    type Model = Recorded;

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        visit("file", &mut self.file);
    }

    fn build(&self, grid: Grid) -> Recorded {
        Recorded { table: self.file.data().clone(), at_end: self.at_end, grid }
    }

    fn examples() -> Vec<RecordedConfig> {
        let table = SnrTable::parse(b"# an example\n3\n-10\n5.5\n").expect("an example is valid");
        vec![RecordedConfig { file: FileRef::with_data("snr.csv", table), at_end: AtEnd::Repeat }]
    }
}

/// The recorded channel.
#[derive(Clone, Debug)]
pub struct Recorded {
    table: Arc<SnrTable>,
    at_end: AtEnd,
    grid: Grid,
}

impl Response for Recorded {
    fn respond(&mut self, block: &Block, re: &mut [f32], im: &mut [f32]) {
        im.fill(0.0);
        let SnrTable { width, amplitudes } = &*self.table;
        let slots = (amplitudes.len() / width) as u64;
        for (slot, out) in (block.index * BLOCK as u64..).zip(re.chunks_exact_mut(self.grid.lanes())) {
            let row = match self.at_end {
                AtEnd::Repeat => slot % slots,
                AtEnd::Hold => slot.min(slots - 1),
            };
            let row = &amplitudes[row as usize * width..][..*width];
            for (resource, out) in out[self.grid.first()..].iter_mut().enumerate() {
                *out = row[if *width == 1 { 0 } else { resource.min(width - 1) }];
            }
        }
    }
}
