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
const OCTAVES: u32 = 22;
const MANTISSA: u32 = f32::MANTISSA_DIGITS - 1;

/// `N` functions of the signal-to-noise ratio that are never negative, with 2^`BITS` nodes to an octave.
#[derive(Clone, Debug)]
pub(super) struct Curves<const N: usize, const BITS: u32> {
    /// Value and slope of each function at each node.
    nodes: Vec<[[f64; 2]; N]>,
}

/// A function of the signal-to-noise ratio that is never negative, with 32 nodes to an octave.
pub(super) type Curve = Curves<1, 5>;

impl Curve {
    /// The table of `exact`.
    pub fn of(exact: impl Fn(f64) -> f64) -> Curve {
        Curves::together(|snr| [exact(snr)])
    }
}

impl<const N: usize, const BITS: u32> Curves<N, BITS> {
    /// Bits of the mantissa below those that number the nodes of an octave.
    const REST: u32 = MANTISSA - BITS;

    /// The table of `exact`, whose functions are smooth. Outside the table they stay as they are at the end.
    pub fn together(exact: impl Fn(f64) -> [f64; N]) -> Curves<N, BITS> {
        let node = |place: u32| {
            let snr = f64::from(f32::from_bits(LEAST.to_bits() + (place << Self::REST)));
            let step = snr * 1e-4;
            let (values, below, above) = (exact(snr), exact(snr - step), exact(snr + step));
            std::array::from_fn(|number| [values[number], (above[number] - below[number]) / (2.0 * step)])
        };
        Curves { nodes: (0..=OCTAVES << BITS).map(node).collect() }
    }

    /// The values at a ratio of powers.
    #[inline]
    pub fn at(&self, snr: f32) -> [f64; N] {
        if snr >= MOST {
            return self.nodes[self.nodes.len() - 1].map(|[value, _]| value);
        }
        // Of a number and of no number this is the number.
        let number = snr.max(LEAST).to_bits();
        let place = ((number - LEAST.to_bits()) >> Self::REST) as usize;
        let part = f64::from(number & ((1 << Self::REST) - 1)) * const { 1.0 / (1u32 << (MANTISSA - BITS)) as f64 };
        // The distance of two nodes of this octave.
        let width = f64::from(f32::from_bits(number & 0x7f80_0000)) * const { 1.0 / (1u32 << BITS) as f64 };
        let (below, above) = (&self.nodes[place], &self.nodes[place + 1]);
        std::array::from_fn(|function| {
            let ([below, first], [above, last]) = (below[function], above[function]);
            let (rise, first, last) = (above - below, first * width, last * width);
            let (square, cube) = (3.0 * rise - 2.0 * first - last, first + last - 2.0 * rise);
            // Far below the stated error the polynomial may swing below zero.
            (below + part * (first + part * (square + part * cube))).max(0.0)
        })
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
                    let error = (curve.at(snr)[0] / exact - 1.0).abs();
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
        assert!((curve.at(MOST)[0] - 1.0 / (1.0 + f64::from(MOST))).abs() < 1e-15);
    }
}
