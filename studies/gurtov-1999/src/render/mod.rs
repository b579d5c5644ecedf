// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A measurement as people read it.

mod grid;
mod paper;
mod series;

pub use paper::table_one;
pub use series::{line_rates, series};

/// A number of whatever size in few characters.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if size < 0.000_1 => format!("{value:.1e}"),
        size if size < 1.0 => format!("{value:.4}"),
        size if size < 100.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// Microseconds with a tenth, of ns.
fn microseconds(nanos: f64) -> String {
    format!("{:.1}", nanos / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 14.5, -0.09, 0.000_012, 12_345.6].map(number), ["0", "14.50", "-0.0900", "1.2e-5", "12346"]);
        assert_eq!(microseconds(1_234.0), "1.2");
    }
}
