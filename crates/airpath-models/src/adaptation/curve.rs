// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Functions of the signal-to-noise ratio as tables, for whoever asks for each frame.
//!
//! Nodes are 2ⁿ to an octave, from −21 to 45 dB. The number of a node is the upper part of the floating-point number of
//! the ratio, so that no logarithm is needed. Between two nodes the function is the cubic polynomial with the values
//! and slopes of both (Hermite). With 32 to an octave, 0.09 to 0.14 dB apart, the relative error for a function e^(−cγ)
//! is (cΔ)⁴/384 with Δ = γ/32 at most: below 10⁻³ down to error rates of 10⁻¹⁰.

/// The least ratio of the table, 2⁻⁷, and the greatest, 2¹⁵.
const LEAST: f32 = 1.0 / 128.0;
const MOST: f32 = 32768.0;
const OCTAVES: usize = 22;
const MANTISSA: u32 = f32::MANTISSA_DIGITS - 1;

/// A function of the signal-to-noise ratio that is never negative.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// Bits of the mantissa that number the nodes of an octave.
    bits: u32,
    /// Value and slope at each node.
    nodes: Vec<[f64; 2]>,
}

impl Curve {
    /// The table of `exact`, which is smooth, with 32 nodes to an octave. Outside the table it stays as it is at the
    /// end.
    pub fn of(exact: impl Fn(f64) -> f64) -> Curve {
        let [curve] = Curve::together(5, |snr| [exact(snr)]);
        curve
    }

    /// Tables of functions that are computed together, with 2^`bits` nodes to an octave.
    pub fn together<const N: usize>(bits: u32, exact: impl Fn(f64) -> [f64; N]) -> [Curve; N] {
        let count = OCTAVES << bits;
        let mut curves = [(); N].map(|()| Curve { bits, nodes: Vec::with_capacity(count + 1) });
        for place in 0..=count {
            let snr = f64::from(f32::from_bits(LEAST.to_bits() + ((place as u32) << (MANTISSA - bits))));
            let step = snr * 1e-4;
            let (values, below, above) = (exact(snr), exact(snr - step), exact(snr + step));
            for (number, curve) in curves.iter_mut().enumerate() {
                curve.nodes.push([values[number], (above[number] - below[number]) / (2.0 * step)]);
            }
        }
        curves
    }

    /// The value at a ratio of powers.
    #[inline]
    pub fn at(&self, snr: f32) -> f64 {
        if snr >= MOST {
            return self.nodes[self.nodes.len() - 1][0];
        }
        // Of a number and of no number this is the number.
        let number = snr.max(LEAST).to_bits();
        let rest = MANTISSA - self.bits;
        let place = ((number - LEAST.to_bits()) >> rest) as usize;
        let part = f64::from(number & ((1 << rest) - 1)) / f64::from(1u32 << rest);
        // The distance of two nodes of this octave.
        let width = f64::from(f32::from_bits(number & 0x7f80_0000)) / f64::from(1u32 << self.bits);
        let ([below, slope_below], [above, slope_above]) = (self.nodes[place], self.nodes[place + 1]);
        let (rise, first, last) = (above - below, slope_below * width, slope_above * width);
        let (square, cube) = (3.0 * rise - 2.0 * first - last, first + last - 2.0 * rise);
        // Far below the stated error the polynomial may swing below zero.
        (below + part * (first + part * (square + part * cube))).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_met_within_the_stated_error() {
        for scale in [0.01, 0.3, 2.0, 50.0] {
            let curve = Curve::of(|snr| libm::exp(-snr / scale));
            let mut snr = LEAST;
            while snr < MOST {
                let exact = libm::exp(-f64::from(snr) / scale);
                if exact > 1e-10 {
                    let error = (curve.at(snr) / exact - 1.0).abs();
                    assert!(error < 1e-3, "{scale} {snr}: {error}");
                }
                snr *= 1.0037;
            }
        }
    }

    #[test]
    fn ends_stay_and_no_number_is_the_least() {
        let curve = Curve::of(|snr| 1.0 / (1.0 + snr));
        assert_eq!(curve.at(0.0), curve.at(LEAST));
        assert_eq!(curve.at(f32::NAN), curve.at(LEAST));
        assert_eq!(curve.at(f32::INFINITY), curve.at(MOST));
        assert!((curve.at(MOST) - 1.0 / (1.0 + f64::from(MOST))).abs() < 1e-15);
    }
}
