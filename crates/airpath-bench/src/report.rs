// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tables for people and the same figures as JSON.

use std::fmt::Write as _;

use serde::Serialize;

/// Target of a figure.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Not above.
    AtMost(f64),
    /// Not below.
    AtLeast(f64),
}

impl Target {
    fn is_met_by(self, value: f64) -> bool {
        match self {
            Target::AtMost(limit) => value <= limit,
            Target::AtLeast(limit) => value >= limit,
        }
    }
}

/// One number that was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Name of the figure.
    pub name: String,
    /// Setting of the measurement: parameters, port, log level.
    pub setting: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Target, if there is one.
    pub target: Option<Target>,
    /// True if the target is met.
    pub met: Option<bool>,
}

/// One table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The word by which `--only` names it.
    pub name: &'static str,
    /// Title.
    pub title: String,
    /// Headings.
    pub columns: Vec<&'static str>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
    /// The numbers that have targets, and others worth comparing between runs.
    pub figures: Vec<Figure>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

impl Table {
    /// An empty table.
    pub fn new(name: &'static str, title: impl Into<String>, columns: &[&'static str]) -> Table {
        Table {
            name,
            title: title.into(),
            columns: columns.to_vec(),
            rows: Vec::new(),
            figures: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a figure.
    pub fn figure(
        &mut self,
        name: impl Into<String>,
        setting: impl Into<String>,
        value: f64,
        unit: &'static str,
        target: Option<Target>,
    ) {
        let met = target.map(|target| target.is_met_by(value));
        self.figures.push(Figure { name: name.into(), setting: setting.into(), value, unit, target, met });
    }

    /// The table as text.
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.title);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([self.columns[column].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut line = |cells: Vec<&str>| {
            let mut row = String::new();
            for (index, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                // The first column names the row, the others hold numbers.
                let _ = if index == 0 { write!(row, "  {cell:<width$}") } else { write!(row, "  {cell:>width$}") };
            }
            text.push_str(row.trim_end());
            text.push('\n');
        };
        line(self.columns.clone());
        for row in &self.rows {
            line(row.iter().map(String::as_str).collect());
        }
        for figure in &self.figures {
            let Some(target) = figure.target else { continue };
            let (sign, limit) = match target {
                Target::AtMost(limit) => ("≤", limit),
                Target::AtLeast(limit) => ("≥", limit),
            };
            let verdict = if figure.met == Some(true) { "met   " } else { "MISSED" };
            let (value, limit) = (short(figure.value), short(limit));
            let (name, setting, unit) = (&figure.name, &figure.setting, figure.unit);
            let _ = writeln!(text, "  {verdict} {name} [{setting}]: {value} {unit} (target {sign} {limit})");
        }
        for note in &self.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        text
    }
}

/// A number with as many digits as anyone reads.
pub fn short(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 10_000.0 && magnitude.fract() == 0.0 {
        format!("{value}")
    } else if magnitude >= 100.0 {
        format!("{value:.0}")
    } else if magnitude >= 10.0 {
        format!("{value:.1}")
    } else if magnitude >= 0.01 || magnitude == 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.5}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_columns() {
        let mut table = Table::new("delay", "one-way delay", &["setting", "mean"]);
        table.row(["10 ms".to_string(), "4.0".to_string()]);
        table.figure("mean error", "10 ms", 4.0, "µs", Some(Target::AtMost(15.0)));
        table.figure("rate", "10 ms", 4.0, "Gbit/s", Some(Target::AtLeast(15.0)));
        let text = table.text();
        assert!(text.contains("  10 ms     4.0\n"), "{text}");
        assert!(text.contains("met    mean error [10 ms]: 4.00 µs (target ≤ 15.0)"), "{text}");
        assert!(text.contains("MISSED rate"), "{text}");
    }
}
