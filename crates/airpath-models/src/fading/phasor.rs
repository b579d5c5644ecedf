// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cosine and sine of a number of turns, without branches, so that a compiler computes several at a time.
//!
//! The turns are brought within half a turn of zero by adding and subtracting 1.5·2⁵², which rounds to the nearest
//! whole number. Cosine and sine of half the angle, within a quarter turn, are their Taylor polynomials up to
//! degrees 16 and 17; the whole angle follows from sin 2x = 2 sin x cos x and cos 2x = 1 − 2 sin² x. The error
//! is below 2·10⁻¹¹, far below the last digit of single precision. Only additions, subtractions and multiplications
//! in a fixed order: the values are the same bit for bit on every machine.

use std::f64::consts::PI;

/// Adding this number leaves no binary places after the point.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// (−1)ᵏ πⁿ / n! for n = first, first + 2, …
const fn taylor(first: u32) -> [f64; 9] {
    let mut terms = [0.0; 9];
    let mut term = if first == 1 { PI } else { 1.0 };
    let (mut place, mut n) = (0, first);
    while place < terms.len() {
        terms[place] = term;
        term = -term * PI * PI / ((n + 1) * (n + 2)) as f64;
        n += 2;
        place += 1;
    }
    terms
}

const COS: [f64; 9] = taylor(0);
const SIN: [f64; 9] = taylor(1);

#[inline(always)]
fn polynomial(square: f64, terms: [f64; 9]) -> f64 {
    let mut sum = terms[8];
    let mut place = 8;
    while place > 0 {
        place -= 1;
        sum = sum * square + terms[place];
    }
    sum
}

/// Cosine and sine of `turns`, whose size is below 2⁵¹.
#[inline(always)]
pub(super) fn phasor(turns: f64) -> (f32, f32) {
    let rest = turns - ((turns + ROUNDER) - ROUNDER);
    // Half the angle is π times `rest`.
    let square = rest * rest;
    let sin = rest * polynomial(square, SIN);
    let cos = polynomial(square, COS);
    ((1.0 - 2.0 * sin * sin) as f32, (2.0 * sin * cos) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_the_library_everywhere() {
        for step in -4000..=4000 {
            let turns = f64::from(step) / 1000.0 * 1.000_37;
            let (cos, sin) = phasor(turns);
            let angle = (turns - turns.floor()) * 2.0 * PI;
            assert!((f64::from(cos) - angle.cos()).abs() < 7e-8, "{turns}: {cos}");
            assert!((f64::from(sin) - angle.sin()).abs() < 7e-8, "{turns}: {sin}");
        }
        assert_eq!(phasor(1e12), (1.0, 0.0));
        assert_eq!(phasor(1e12 + 0.5).0, -1.0);
    }
}
