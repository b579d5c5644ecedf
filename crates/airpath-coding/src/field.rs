// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The field of 256 elements, by the polynomial x^8 + x^4 + x^3 + x^2 + 1.

/// The polynomial of the field.
const POLYNOMIAL: u16 = 0x11d;

/// Logarithm that stands for that of 0: the sum of it and any other has the power 0.
const LOG_OF_ZERO: u16 = 510;

const TABLES: ([u8; 1024], [u16; 256]) = tables();

/// Powers of the primitive element 2, and logarithms. Powers go on beyond the sum of two logarithms.
static EXP: [u8; 1024] = TABLES.0;
static LOG: [u16; 256] = TABLES.1;

const fn tables() -> ([u8; 1024], [u16; 256]) {
    let (mut exp, mut log) = ([0; 1024], [LOG_OF_ZERO; 256]);
    let (mut value, mut power) = (1u16, 0);
    while power < 255 {
        exp[power] = value as u8;
        exp[power + 255] = value as u8;
        log[value as usize] = power as u16;
        value <<= 1;
        if value > 255 {
            value ^= POLYNOMIAL;
        }
        power += 1;
    }
    (exp, log)
}

/// Logarithm of an element.
#[inline]
pub fn log(a: u8) -> u16 {
    LOG[usize::from(a)]
}

/// The element whose logarithm is the sum of two logarithms.
#[inline]
pub fn exp(sum: u16) -> u8 {
    EXP[usize::from(sum) & 1023]
}

/// Product of two elements.
#[inline]
pub fn product(a: u8, b: u8) -> u8 {
    exp(log(a) + log(b))
}

/// Quotient of two elements, the second not 0.
#[inline]
pub fn quotient(a: u8, b: u8) -> u8 {
    if a == 0 { 0 } else { exp(log(a) + 255 - log(b)) }
}

/// The primitive element to `power`.
pub fn power(power: usize) -> u8 {
    exp((power % 255) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Product by shifts and the polynomial, bit by bit.
    fn slow(a: u8, b: u8) -> u8 {
        let wide = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0u16, |sum, bit| sum ^ u16::from(a) << bit);
        let reduced =
            (8..16).rev().fold(wide, |sum, bit| if sum >> bit & 1 == 1 { sum ^ POLYNOMIAL << (bit - 8) } else { sum });
        reduced as u8
    }

    #[test]
    fn products_and_quotients_are_those_of_polynomials() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(product(a, b), slow(a, b), "{a} {b}");
                if b != 0 {
                    assert_eq!(product(quotient(a, b), b), a, "{a} {b}");
                }
            }
        }
    }
}
