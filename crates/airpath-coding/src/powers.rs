// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Vectors of powers of field elements, and their multiples: a sum of them evaluates a polynomial at all points at once.
//!
//! Row d has the powers 2^(0 d), 2^(1 d), and so on. A coefficient c of degree d adds c times row d to the values of a
//! polynomial at 2^0, 2^1, …. Multiples are kept for the two halves of a byte, so that adding one takes two rows: sums
//! of rows, which a compiler turns into vector instructions, in place of a product for each point.

use std::sync::LazyLock;

use crate::field::{power, product};

/// Points at which polynomials are evaluated: the 255 powers of 2, and a place that fills up the last vector.
pub const POINTS: usize = 256;

/// The values of a polynomial at all points.
pub type Values = [u8; POINTS];

/// Multiples of one row by what the lower half of a byte may be, and by what the upper half may be.
type Multiples = [[Values; 16]; 2];

/// The multiples of all rows, 2 MB, for every code.
static ROWS: LazyLock<Box<[Multiples]>> = LazyLock::new(|| (0..255).map(multiples).collect());

fn multiples(degree: usize) -> Multiples {
    let mut all = [[[0; POINTS]; 16]; 2];
    for (half, rows) in all.iter_mut().enumerate() {
        for (factor, row) in rows.iter_mut().enumerate() {
            for (point, value) in row.iter_mut().enumerate().take(255) {
                *value = product((factor << (4 * half)) as u8, power(degree * point));
            }
        }
    }
    all
}

/// Rows by degree.
pub fn rows() -> &'static [impl AddTo] {
    &ROWS
}

/// Multiples of a row that can be added to values.
pub trait AddTo {
    /// Adds `coefficient` times the row to the first `points` of `values`.
    fn add_to(&self, values: &mut Values, coefficient: u8, points: usize);
}

impl AddTo for Multiples {
    #[inline]
    fn add_to(&self, values: &mut Values, coefficient: u8, points: usize) {
        let low = &self[0][usize::from(coefficient & 15)][..points];
        let high = &self[1][usize::from(coefficient >> 4)][..points];
        for (value, (low, high)) in values[..points].iter_mut().zip(low.iter().zip(high)) {
            *value ^= low ^ high;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_rows_is_the_value_of_the_polynomial() {
        let coefficients = [3u8, 0, 255, 16, 1, 129];
        let mut values = [0; POINTS];
        for (degree, coefficient) in coefficients.iter().enumerate() {
            rows()[degree].add_to(&mut values, *coefficient, POINTS);
        }
        for (point, value) in values.iter().enumerate().take(255) {
            let horner = coefficients.iter().rev().fold(0, |sum, next| product(sum, power(point)) ^ next);
            assert_eq!(*value, horner, "at 2^{point}");
        }
    }
}
