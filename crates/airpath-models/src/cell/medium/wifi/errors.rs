// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Probability that a frame is lost, by mode, length and signal-to-noise ratio of a subcarrier.
//!
//! Source: Pei and Henderson 2010, "Validation of OFDM error rate model in ns-3", after Miller 2003: a convolutional
//! code of constraint length 7 with decisions bit by bit. The bits of a square constellation of M points with Gray
//! mapping are wrong with the probability p = 4/log₂M (1 − 1/√M) Q(√(3γ/(M − 1))), those of BPSK with Q(√(2γ)). With
//! D = √(4p(1 − p)) a decoded bit is the first wrong one with a probability of at most P = 1/(2b) Σ c_d D^d, where c_d
//! are the weights of wrong paths at the distance d (Haccoun and Bégin 1989; Bégin, Haccoun and Paquin 1990) and b the
//! bits of a puncturing period. A frame of L octets is lost with the probability 1 − (1 − P)^(8L).
//!
//! Limits: codes of low density (LDPC), soft decisions and several antennas are some decibels better; what is lost in
//! the receiver is part of the signal-to-noise ratio. All streams have the same ratio.

use super::phy::{Code, Scheme};
use crate::random::standard_normal::beyond;

/// Weights of a code: the least distance, the step from distance to distance, and the bits of a puncturing period.
struct Weights {
    least: u32,
    step: u32,
    period: f64,
    weights: [f64; 9],
}

/// Weights of the code of 802.11 (generators 133 and 171), punctured as in the standard.
const HALF: Weights = Weights {
    least: 10,
    step: 2,
    period: 1.0,
    weights: [36.0, 211.0, 1404.0, 11_633.0, 77_433.0, 502_690.0, 3_322_763.0, 21_292_910.0, 134_365_911.0],
};
const TWO_THIRDS: Weights = Weights {
    least: 6,
    step: 1,
    period: 2.0,
    weights: [3.0, 70.0, 285.0, 1276.0, 6160.0, 27_128.0, 117_019.0, 498_860.0, 2_103_891.0],
};
const THREE_QUARTERS: Weights = Weights {
    least: 5,
    step: 1,
    period: 3.0,
    weights: [42.0, 201.0, 1492.0, 10_469.0, 62_935.0, 379_644.0, 2_253_373.0, 13_073_811.0, 75_152_755.0],
};
const FIVE_SIXTHS: Weights = Weights {
    least: 4,
    step: 1,
    period: 5.0,
    weights: [92.0, 528.0, 8694.0, 79_453.0, 792_114.0, 7_375_573.0, 67_884_974.0, 610_875_423.0, 5_427_275_376.0],
};

fn weights(code: Code) -> &'static Weights {
    match code {
        Code::Half => &HALF,
        Code::TwoThirds => &TWO_THIRDS,
        Code::ThreeQuarters => &THREE_QUARTERS,
        Code::FiveSixths => &FIVE_SIXTHS,
    }
}

/// Probability that a bit of a symbol is wrong before decoding, at the ratio of powers `snr`.
fn bit_error(bits_per_symbol: u8, snr: f64) -> f64 {
    if bits_per_symbol == 1 {
        return beyond(libm::sqrt(2.0 * snr));
    }
    let points = f64::from(1u32 << bits_per_symbol);
    let share = 4.0 / f64::from(bits_per_symbol) * (1.0 - 1.0 / libm::sqrt(points));
    share * beyond(libm::sqrt(3.0 * snr / (points - 1.0)))
}

/// Probability that a decoded bit is the first wrong one.
pub(super) fn decoded_error(scheme: Scheme, snr: f64) -> f64 {
    let wrong = bit_error(scheme.bits_per_symbol, snr).min(0.5);
    let base = libm::sqrt(4.0 * wrong * (1.0 - wrong));
    let Weights { least, step, period, weights } = weights(scheme.code);
    let mut power = libm::pow(base, f64::from(*least));
    let ratio = libm::pow(base, f64::from(*step));
    let mut sum = 0.0;
    for weight in weights {
        sum += weight * power;
        power *= ratio;
    }
    (sum / (2.0 * period)).min(1.0)
}

/// Probability that a frame of `bytes` has an error if each decoded bit is the first wrong one with `decoded`.
pub(super) fn frame_error(decoded: f64, bytes: u64) -> f64 {
    -libm::expm1(8.0 * bytes as f64 * libm::log1p(-decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights found anew: paths of the code that leave the state of zeros and come back, by their distance, each
    /// weighted with its wrong bits, over all phases of the puncturing period.
    fn found(kept: &[[bool; 2]], distances: usize) -> Vec<u64> {
        const STATES: usize = 64;
        // Number of paths, and of wrong bits in them, by phase, state and distance.
        let period = kept.len();
        let mut sums = vec![0u64; distances];
        for begin in 0..period {
            let mut at = vec![vec![(0u64, 0u64); distances]; STATES];
            let step = |phase: usize, state: usize, bit: usize| {
                // The newest bit first: generators 133 and 171 in octal.
                let register = bit << 6 | state;
                let outputs = [0o133, 0o171].map(|generator: usize| (register & generator).count_ones() as usize % 2);
                let weight: usize =
                    outputs.iter().zip(kept[phase]).filter(|(output, is_kept)| **output == 1 && *is_kept).count();
                (register >> 1, weight)
            };
            let (state, weight) = step(begin, 0, 1);
            at[state][weight] = (1, 1);
            let mut phase = (begin + 1) % period;
            // Paths without weight do not go on for ever.
            for _ in 0..60 * distances {
                let mut next = vec![vec![(0u64, 0u64); distances]; STATES];
                for (state, here) in at.iter().enumerate().skip(1) {
                    for bit in 0..2 {
                        let (to, weight) = step(phase, state, bit);
                        let fitting = here.iter().enumerate().take(distances.saturating_sub(weight));
                        for (distance, &(paths, bits)) in fitting {
                            if paths > 0 {
                                let entry = &mut next[to][distance + weight];
                                entry.0 += paths;
                                entry.1 += bits + paths * bit as u64;
                            }
                        }
                    }
                }
                for (sum, (_, bits)) in sums.iter_mut().zip(&next[0]) {
                    *sum += bits;
                }
                next[0].fill((0, 0));
                at = next;
                phase = (phase + 1) % period;
            }
        }
        sums
    }

    #[test]
    fn weights_are_those_of_the_code() {
        let patterns: [(Code, &[[bool; 2]]); 4] = [
            (Code::Half, &[[true, true]]),
            (Code::TwoThirds, &[[true, true], [true, false]]),
            (Code::ThreeQuarters, &[[true, true], [true, false], [false, true]]),
            (Code::FiveSixths, &[[true, true], [true, false], [false, true], [true, false], [false, true]]),
        ];
        for (code, kept) in patterns {
            let Weights { least, step, weights, .. } = weights(code);
            let found = found(kept, *least as usize + 4 * *step as usize);
            assert!(found[..*least as usize].iter().all(|weight| *weight == 0), "{code:?}: {found:?}");
            for (number, weight) in weights.iter().take(4).enumerate() {
                let at = (*least + number as u32 * step) as usize;
                assert_eq!(found[at] as f64, *weight, "{code:?} at {at}: {found:?}");
            }
        }
    }

    /// By hand: QPSK at 4, half of the power in each dimension: Q(2) is 0.02275, D is 0.29821, and D^10 36/2 + … .
    #[test]
    fn errors_by_hand() {
        let scheme = Scheme { bits_per_symbol: 2, code: Code::Half };
        assert!((bit_error(2, 4.0) - 0.022_750).abs() < 1e-6);
        let base: f64 = (4.0f64 * 0.022_750_132 * 0.977_249_868).sqrt();
        let by_hand: f64 =
            [36.0, 211.0, 1404.0, 11_633.0, 77_433.0, 502_690.0, 3_322_763.0, 21_292_910.0, 134_365_911.0]
                .iter()
                .enumerate()
                .map(|(number, weight)| weight * base.powi(10 + 2 * number as i32))
                .sum::<f64>()
                / 2.0;
        assert!((decoded_error(scheme, 4.0) / by_hand - 1.0).abs() < 1e-4);
        assert!((frame_error(1e-4, 125) - (1.0 - (1.0f64 - 1e-4).powi(1000))).abs() < 1e-12);
        assert_eq!(frame_error(0.0, 1500), 0.0);
        assert_eq!(frame_error(1.0, 1), 1.0);
        // 16-QAM: 3/4 Q(√(γ/5)).
        assert!((bit_error(4, 20.0) - 0.75 * 0.022_750).abs() < 1e-6);
    }

    #[test]
    fn a_better_signal_and_a_stronger_code_lose_less() {
        let decibels = |value: f64| 10f64.powf(value / 10.0);
        for code in [Code::Half, Code::TwoThirds, Code::ThreeQuarters, Code::FiveSixths] {
            for bits_per_symbol in [1, 2, 4, 6, 8, 10] {
                let scheme = Scheme { bits_per_symbol, code };
                let errors: Vec<f64> = (0..=500)
                    .map(|tenth| frame_error(decoded_error(scheme, decibels(f64::from(tenth) / 10.0)), 1500))
                    .collect();
                assert!(errors.windows(2).all(|pair| pair[1] <= pair[0]), "{scheme:?}");
                assert!(errors[500] < 1e-6 && (bits_per_symbol == 1 || errors[0] > 0.999), "{scheme:?}");
            }
        }
    }
}
