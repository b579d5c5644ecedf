// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Files of plain numbers: a value on each line, or a value and a probability.
//!
//! Columns are separated by blanks, tabs, commas or semicolons. Empty lines and what follows a `#` do
//! not count.

use crate::file::{AnyFile, FileFormat, FileRef};
use crate::problem::Problem;

use super::{CEILING, Quantity};

/// Contents of a file of numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers {
    /// One value on each line, in the file's order.
    Values(Vec<f64>),
    /// A value and the probability of values up to it on each line.
    Cumulative(Vec<(f64, f64)>),
}

impl FileFormat for Numbers {
    const WHAT: &'static str = "file of numbers";

    fn parse(bytes: &[u8]) -> Result<Numbers, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_string())?;
        let (mut values, mut points) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let columns = columns(line).map_err(|problem| format!("line {number}: {problem}"))?;
            match columns.as_slice() {
                [] => {}
                [value] => values.push(*value),
                [value, probability] => {
                    check_point(points.last(), (*value, *probability))
                        .map_err(|problem| format!("line {number}: {problem}"))?;
                    points.push((*value, *probability));
                }
                more => {
                    return Err(format!(
                        "line {number}: there are {} columns; there may be a value, or a value and a probability",
                        more.len()
                    ));
                }
            }
            if !values.is_empty() && !points.is_empty() {
                return Err(format!("line {number}: all lines must have as many columns as the first"));
            }
        }
        match points.last() {
            Some((_, last)) if (last - 1.0).abs() > 1e-9 => {
                Err(format!("the probability of the last line is {last}; it must be 1"))
            }
            Some(_) => Ok(Numbers::Cumulative(points)),
            None if values.is_empty() => Err("there is no number in it".into()),
            None => Ok(Numbers::Values(values)),
        }
    }
}

/// The numbers of a line.
pub(super) fn columns(line: &str) -> Result<Vec<f64>, String> {
    let content = line.split_once('#').map_or(line, |(content, _)| content);
    let words = content.split(|c: char| c.is_whitespace() || c == ',' || c == ';').filter(|word| !word.is_empty());
    words
        .map(|word| match word.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("`{word}` is no plain number (the unit of the values is a key of its own)")),
        })
        .collect()
}

fn check_point(before: Option<&(f64, f64)>, (value, probability): (f64, f64)) -> Result<(), String> {
    if !(0.0..=1.0).contains(&probability) {
        return Err(format!("the probability is {probability}; it must be from 0 to 1"));
    }
    match before {
        Some((least, _)) if value < *least => Err(format!("values must go up, but {value} follows {least}")),
        Some((_, least)) if probability < *least => {
            Err(format!("probabilities must go up, but {probability} follows {least}"))
        }
        _ => Ok(()),
    }
}

/// Errors in `values` of `file` as multiples of `unit`.
pub(super) fn problems<Q: Quantity>(file: &FileRef<Numbers>, values: &[f64], unit: Q) -> Vec<Problem> {
    if unit.base() == 0 {
        return vec![Problem::new("unit", format!("is {unit}; write for example what 1 in the file stands for"))];
    }
    let most = CEILING as f64 / unit.base() as f64;
    match values.iter().find(|value| !(0.0..=most).contains(*value)) {
        Some(value) if *value < 0.0 => {
            vec![Problem::new("file", format!("`{}` holds {value}, but values are not negative", file.name()))]
        }
        Some(value) => vec![Problem::new("unit", format!("is too large for {value}, which `{}` holds", file.name()))],
        None => Vec::new(),
    }
}

/// A value of a file in base units.
pub(super) fn scaled<Q: Quantity>(value: f64, unit: Q) -> u64 {
    libm::round(value * unit.base() as f64) as u64
}
