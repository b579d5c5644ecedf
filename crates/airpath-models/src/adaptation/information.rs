// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Information that a symbol of square QAM carries through white Gaussian noise when its bits are decoded one by one.
//!
//! Source: Caire, Taricco and Biglieri 1998, "Bit-interleaved coded modulation", for the mean. With a label of m bits
//! by Gray the information density of a received symbol y is Σ_b log₂(2 p(y | bit b) / (p(y | 0) + p(y | 1))), the sum
//! over its bits. Its mean is the capacity C, its variance the dispersion V, both computed in each of the two
//! dimensions alone, where the constellation is a row of amplitudes, by the trapezoidal rule over the noise.

use std::sync::OnceLock;

use super::curve::Curves;

/// Bits of a symbol that have a table: QPSK, 16-, 64- and 256-QAM.
pub const ORDERS: [u8; 4] = [2, 4, 6, 8];

/// Capacity in bits and dispersion in bits², as functions of the signal-to-noise ratio of a symbol.
pub(super) type Information = Curves<2, 3>;

/// The table of a modulation of `order` bits a symbol, made when first asked for: the largest takes some 20 ms.
pub(super) fn of(order: u8) -> &'static Information {
    static TABLES: [OnceLock<Information>; ORDERS.len()] = [const { OnceLock::new() }; ORDERS.len()];
    TABLES[usize::from(order) / 2 - 1].get_or_init(|| Curves::together(|snr| moments(order, snr)))
}

/// Capacity and dispersion of a modulation of `order` bits a symbol at the ratio of powers `snr`.
pub fn moments(order: u8, snr: f64) -> [f64; 2] {
    let bits = u32::from(order) / 2;
    let levels = 1u32 << bits;
    let energy = 2.0 / 3.0 * f64::from(levels * levels - 1);
    // Half the distance of two amplitudes, in standard deviations of the noise.
    let half = libm::sqrt(2.0 * snr / energy);
    // Beyond that no bit is in doubt, to all digits.
    if half > 9.0 {
        return [f64::from(order), 0.0];
    }
    let amplitude = |level: u32| half * (2.0 * f64::from(level) + 1.0 - f64::from(levels));
    let gray = |level: u32| level ^ (level >> 1);
    const REACH: f64 = 7.0;
    const STEP: f64 = 0.25;
    let steps = (2.0 * REACH / STEP) as i32;
    let (mut weights, mut mean, mut square) = (0.0, 0.0, 0.0);
    let mut likelihoods = [0.0; 16];
    // The other half of the amplitudes is the mirror image.
    for sent in 0..levels / 2 {
        for step in 0..=steps {
            let noise = f64::from(step) * STEP - REACH;
            let weight = libm::exp(-noise * noise / 2.0);
            let mut whole = 0.0;
            for level in 0..levels {
                let distance = amplitude(sent) + noise - amplitude(level);
                let likelihood = libm::exp((noise * noise - distance * distance) / 2.0);
                likelihoods[level as usize] = likelihood;
                whole += likelihood;
            }
            let mut density = 0.0;
            for bit in 0..bits {
                let alike = |level: &u32| (gray(*level) ^ gray(sent)) >> bit & 1 == 0;
                let same: f64 = (0..levels).filter(alike).map(|level| likelihoods[level as usize]).sum();
                density += 1.0 - libm::log2(whole / same);
            }
            weights += weight;
            mean += weight * density;
            square += weight * density * density;
        }
    }
    let (mean, square) = (mean / weights, square / weights);
    [2.0 * mean, 2.0 * (square - mean * mean).max(0.0)]
}
