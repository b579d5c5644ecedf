// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Keyed random draws: every draw is a function of who draws and for which step, so that added
//! models, threads and wake-ups redraw nothing.
//!
//! Source: Widynski, "Squares: a fast counter-based RNG" (arXiv:2004.06278, 2020), the 64-bit
//! variant with five rounds; keys come from SplitMix64 (Steele, Lea and Flood 2014) over an FNV-1a
//! hash (RFC 9923) of the scope's words. Written out here because the stream may never change between releases.

use crate::length::Probability;
use crate::pdu::Direction;

/// The seed of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// The seed of the user of this name among several: what one user draws does not depend on the others.
    pub fn of_user(self, name: &str) -> Seed {
        let hash = fnv1a(fnv1a(0xcbf2_9ce4_8422_2325, b"user"), name.as_bytes());
        Seed(splitmix64(splitmix64(self.0) ^ splitmix64(hash)))
    }
}

/// Identity of the drawing model: the words and numbers that name a stream.
#[derive(Clone, Copy, Debug)]
pub struct DrawScope<'a> {
    /// The hop's name.
    pub hop: &'a str,
    /// The direction of the traffic.
    pub direction: Direction,
    /// The role of the model in the hop, such as "channel".
    pub role: &'a str,
    /// Number of the model among those of the same role, or of the user or flow.
    pub instance: u64,
}

/// The key of one stream of draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DrawKey(u64);

/// Steps must stay below this (44 bits); attempts below 2^20.
const STEP_LIMIT: u64 = 1 << 44;
const ATTEMPT_BITS: u32 = 20;

const fn splitmix64(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl DrawKey {
    /// The key of `scope` under `seed`.
    pub fn new(seed: Seed, scope: &DrawScope<'_>) -> DrawKey {
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for part in [scope.hop.as_bytes(), &[scope.direction as u8], scope.role.as_bytes()] {
            hash = fnv1a(hash, &(part.len() as u64).to_le_bytes());
            hash = fnv1a(hash, part);
        }
        hash = fnv1a(hash, &scope.instance.to_le_bytes());
        // The seed is hashed before it meets the words, so that neighbouring seeds share nothing;
        // Squares wants an odd key with irregular digits, which a hash gives.
        DrawKey(splitmix64(splitmix64(seed.0) ^ splitmix64(hash)) | 1)
    }

    /// The key of a stream of its own, numbered `index`, under the word `role`.
    pub fn child(self, role: &str, index: u64) -> DrawKey {
        let hash = fnv1a(fnv1a(0xcbf2_9ce4_8422_2325, role.as_bytes()), &index.to_le_bytes());
        DrawKey(splitmix64(splitmix64(self.0) ^ splitmix64(hash)) | 1)
    }

    /// A uniform 64-bit draw for the model's own `step` (below 2^44) and, within it, `attempt`
    /// (below 2^20).
    #[inline]
    pub fn bits(self, step: u64, attempt: u64) -> u64 {
        debug_assert!(step < STEP_LIMIT && attempt < 1 << ATTEMPT_BITS);
        let counter = step << ATTEMPT_BITS | attempt;
        let y = counter.wrapping_mul(self.0);
        let z = y.wrapping_add(self.0);
        let mut x = y;
        x = x.wrapping_mul(x).wrapping_add(y).rotate_left(32);
        x = x.wrapping_mul(x).wrapping_add(z).rotate_left(32);
        x = x.wrapping_mul(x).wrapping_add(y).rotate_left(32);
        x = x.wrapping_mul(x).wrapping_add(z);
        let t = x;
        x = x.rotate_left(32);
        t ^ (x.wrapping_mul(x).wrapping_add(y) >> 32)
    }

    /// Draws true with `probability`.
    #[inline]
    pub fn hit(self, step: u64, attempt: u64, probability: Probability) -> bool {
        probability != Probability::ZERO && probability.is_hit_by(self.bits(step, attempt))
    }

    /// A uniform draw from the open interval (0, 1), 53 bits wide.
    #[inline]
    pub fn unit(self, step: u64, attempt: u64) -> f64 {
        ((self.bits(step, attempt) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A uniform whole number below `bound` (at least 1), by multiplication (Lemire 2019, without
    /// the rejection step: the bias is below bound / 2^64).
    #[inline]
    pub fn below(self, step: u64, attempt: u64, bound: u64) -> u64 {
        ((u128::from(self.bits(step, attempt)) * u128::from(bound)) >> 64) as u64
    }

    /// An exponentially distributed draw of mean 1, by inversion.
    #[inline]
    pub fn exponential(self, step: u64, attempt: u64) -> f64 {
        -libm::log(self.unit(step, attempt))
    }

    /// Number of failures before the first success of `probability` (above zero): geometric, by inversion.
    #[inline]
    pub fn failures_before_success(self, step: u64, attempt: u64, probability: Probability) -> u64 {
        if probability == Probability::ONE {
            return 0;
        }
        // Logarithms of a library of our own choice: those of the system differ in the last digit from
        // one C library to the next, and a trace must not.
        let failures = (libm::log(self.unit(step, attempt)) / libm::log1p(-probability.get())).floor();
        if failures >= u64::MAX as f64 { u64::MAX } else { failures as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u64, role: &str) -> DrawKey {
        DrawKey::new(Seed(seed), &DrawScope { hop: "radio", direction: Direction::Uplink, role, instance: 0 })
    }

    #[test]
    fn squares_reference_values() {
        // Computed from the paper's formula with 128-bit integers in another language.
        let key = DrawKey(0x548c_9dec_bce6_5297);
        assert_eq!(
            [key.bits(0, 0), key.bits(0, 1), key.bits(1, 0)],
            [0x36d8_8366_cee6_33a5, 0x9447_16e0_0e60_dfaa, 0x8b07_0aaa_4906_c87c]
        );
    }

    #[test]
    fn streams_of_neighbouring_seeds_and_roles_share_nothing() {
        let draws = |key: DrawKey| (0..64).map(move |step| key.bits(step, 0)).collect::<Vec<_>>();
        let one = key(1, "channel");
        let children = [draws(one.child("a", 0)), draws(one.child("a", 1)), draws(one.child("b", 0))].concat();
        let all = [draws(one), draws(key(2, "channel")), draws(key(1, "queue")), children].concat();
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn uniformity_by_chi_square() {
        // 256 cells of the top byte and of the bottom byte, 2^18 draws, level 1e-6 (255 degrees of
        // freedom: 375); the seeds are fixed, so this cannot flake.
        for seed in 0..8 {
            for shift in [0, 28, 56] {
                let key = key(seed, "channel");
                let mut cells = [0f64; 256];
                for step in 0..1u64 << 18 {
                    cells[(key.bits(step, 0) >> shift & 255) as usize] += 1.0;
                }
                let expected = (1u64 << 18) as f64 / 256.0;
                let chi: f64 = cells.iter().map(|count| (count - expected).powi(2) / expected).sum();
                assert!(chi < 375.0, "seed {seed} shift {shift}: {chi}");
            }
        }
    }

    #[test]
    fn exponential_has_its_mean_and_its_deviation() {
        let key = key(4, "source");
        let n = 100_000u32;
        let draws: Vec<f64> = (0..u64::from(n)).map(|step| key.exponential(step, 0)).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let square = draws.iter().map(|draw| draw * draw).sum::<f64>() / f64::from(n);
        // Both moments' standard errors are sqrt(1/n) = 0.0032 and sqrt(20/n) = 0.014; five of them.
        assert!((mean - 1.0).abs() < 0.016, "{mean}");
        assert!((square - 2.0).abs() < 0.071, "{square}");
    }

    #[test]
    fn geometric_has_its_mean() {
        let key = key(3, "channel");
        let p: Probability = "0.1".parse().unwrap();
        let n = 100_000;
        let mean = (0..n).map(|step| key.failures_before_success(step, 0, p) as f64).sum::<f64>() / n as f64;
        // Mean (1-p)/p = 9, standard error sqrt(90/n) = 0.03; five of them.
        assert!((mean - 9.0).abs() < 0.15, "{mean}");
    }
}
