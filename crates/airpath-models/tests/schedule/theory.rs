// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Schedulers against theory: gains by the diversity of users, and shares. Intervals are those of batch means at a
//! confidence of 99 %, with fixed seeds; rates are linear in the signal-to-noise ratio, which is exponentially
//! distributed in Rayleigh fading.

use airpath_core::DrawKey;

use super::{Case, config, key, scheduler};

const BATCHES: usize = 40;
/// Slots of a batch.
const BATCH: usize = 1000;
/// Quantile 0.995 of Student's distribution with 39 degrees of freedom.
const STUDENT: f64 = 2.708;

/// Mean bits of a resource at a mean signal-to-noise ratio of 1.
const SCALE: f64 = 1e6;

/// Mean of batches, and half the width of its interval.
fn interval(batches: &[f64]) -> (f64, f64) {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|batch| (batch - mean) * (batch - mean)).sum::<f64>() / (n - 1.0);
    (mean, STUDENT * (variance / n).sqrt())
}

fn assert_near(batches: &[f64], theory: f64, context: &str) {
    let (mean, half) = interval(batches);
    assert!((mean - theory).abs() <= half, "{context}: {mean} ± {half}, in theory {theory}");
    assert!(half < 0.03 * theory, "{context}: {mean} ± {half} says little");
}

/// Throughputs and shares of slots.
struct Measured {
    /// By bearer and batch: mean bits of a slot, in units of `SCALE`.
    throughput: Vec<Vec<f64>>,
    /// By bearer and batch: share of the slots.
    share: Vec<Vec<f64>>,
}

impl Measured {
    /// Throughput of all bearers by batch.
    fn total(&self) -> Vec<f64> {
        (0..BATCHES).map(|batch| self.throughput.iter().map(|bearer| bearer[batch]).sum()).collect()
    }
}

/// Runs a cell of one resource in which everybody always has something to send, with Rayleigh fading around `means`,
/// and measures after ten batches.
fn rayleigh(toml: &str, seed: u64, means: &[f64]) -> Measured {
    let draws: Vec<DrawKey> = (0..means.len() as u64).map(|bearer| key(seed).child("fading", bearer)).collect();
    let mut scheduler = scheduler(&config(toml), means.len(), 1);
    let zero = || vec![vec![0.0; BATCHES]; means.len()];
    let mut measured = Measured { throughput: zero(), share: zero() };
    for number in 0..(BATCH * (BATCHES + 10)) as u64 {
        let snr = |bearer: usize| draws[bearer].exponential(number, 0) * means[bearer];
        let case = Case::saturated(number, means.len(), 1, |bearer, _| (snr(bearer) * SCALE) as u32 + 1);
        let Some(bearer) = case.assign(&mut scheduler)[0] else { continue };
        if let Some(batch) = (number as usize / BATCH).checked_sub(10) {
            measured.throughput[bearer][batch] += f64::from(case.bits[bearer]) / SCALE / BATCH as f64;
            measured.share[bearer][batch] += 1.0 / BATCH as f64;
        }
    }
    measured
}

fn harmonic(n: usize) -> f64 {
    (1..=n).map(|k| 1.0 / k as f64).sum()
}

const LONG_WINDOW: &str = r#"{ type = "proportional_fair", window = "100000 slots" }"#;

#[test]
fn gains_of_symmetric_rayleigh_users_are_harmonic_numbers() {
    // The greatest of N exponential variables has the mean H_N; round robin has that of one.
    for (seed, users) in [(11, 2), (12, 5), (13, 20)] {
        let means = vec![1.0; users];
        assert_near(&rayleigh(r#"type = "round_robin""#, seed, &means).total(), 1.0, "round robin");
        for toml in [r#"type = "max_ci""#, LONG_WINDOW] {
            assert_near(&rayleigh(toml, seed, &means).total(), harmonic(users), toml);
        }
    }
}

#[test]
fn proportional_fair_gives_equal_shares_and_the_same_gain_to_near_and_far() {
    // Holtzman 2001: shares do not depend on the means, and each user gains H_N over its own round robin.
    let means = [1.0, 4.0, 16.0];
    let measured = rayleigh(LONG_WINDOW, 21, &means);
    for (bearer, mean) in means.iter().enumerate() {
        let context = format!("mean {mean}");
        let share: Vec<f64> = measured.share[bearer].iter().map(|share| share * 3.0).collect();
        assert_near(&share, 1.0, &context);
        let gain: Vec<f64> = measured.throughput[bearer].iter().map(|batch| batch / (mean / 3.0)).collect();
        assert_near(&gain, harmonic(3), &context);
    }
}

#[test]
fn maximum_ci_favours_the_near() {
    // The share of user k among two is m_k / (m_1 + m_2) for exponential qualities of means m.
    let measured = rayleigh(r#"type = "max_ci""#, 22, &[1.0, 4.0]);
    assert_near(&measured.share[1], 0.8, "near");
}

#[test]
fn a_score_gives_equal_shares_whatever_the_distribution() {
    // One resource: alice in Rayleigh fading, bob between two modulations, carol at one quality always.
    let draw = key(23);
    let mut scheduler = scheduler(&config(r#"{ type = "score_based", window = 50 }"#), 3, 1);
    let mut shares = vec![vec![0.0; BATCHES]; 3];
    for number in 0..(BATCH * BATCHES) as u64 {
        let alice = (draw.exponential(number, 0) * 100.0) as u32 + 1;
        let bob = if draw.below(number, 1, 10) == 0 { 1 } else { 864 };
        let case = Case::saturated(number, 3, 1, |bearer, _| [alice, bob, 500][bearer]);
        if let Some(bearer) = case.assign(&mut scheduler)[0] {
            shares[bearer][number as usize / BATCH] += 3.0 / BATCH as f64;
        }
    }
    for (share, name) in shares.iter().zip(["alice", "bob", "carol"]) {
        assert_near(share, 1.0, name);
    }
}

#[test]
fn weights_are_shares_of_slots_at_constant_quality() {
    // w b / T is the same for all in the long run, and T = share · b.
    let toml = r#"{ type = "proportional_fair", window = "1 s", weights = { alice = 4.0, bob = 0.5 } }"#;
    let mut scheduler = scheduler(&config(toml), 3, 1);
    let mut slots = [0u32; 3];
    for number in 0..20_000 {
        let case = Case::saturated(number, 3, 1, |bearer, _| [100, 864, 300][bearer]);
        case.assign(&mut scheduler).into_iter().flatten().for_each(|bearer| slots[bearer] += 1);
    }
    for (slots, weight) in slots.into_iter().zip([4.0, 0.5, 1.0]) {
        // The first slots, in which averages begin at nothing, and one more or less: below 1 % here.
        assert!((f64::from(slots) / 20_000.0 - weight / 5.5).abs() < 0.002, "{slots} {weight}");
    }
}

#[test]
fn deficit_gives_bits_in_proportion_to_weights_within_a_quantum_and_a_resource() {
    for (quantum, quantum_bits) in [("1500 bytes", 12_000.0), ("100 bit", 100.0), ("1 bit", 1.0)] {
        let weights = [4.0, 0.5, 1.0];
        let toml = format!("type = \"deficit\"\nquantum = \"{quantum}\"\nweights = {{ alice = 4.0, bob = 0.5 }}");
        let mut scheduler = scheduler(&config(&toml), 3, 7);
        let mut sums = [0.0; 3];
        for number in 0..2000u64 {
            let draw = |bearer, resource| key(31).below(number, (bearer * 7 + resource) as u64, 1000) as u32 + 1;
            let case = Case::saturated(number, 3, 7, draw);
            for (resource, bearer) in case.assign(&mut scheduler).into_iter().enumerate() {
                let bearer = bearer.expect("everybody has something to send");
                sums[bearer] += f64::from(case.bits[bearer * 7 + resource]) / weights[bearer];
            }
            let (least, most) =
                sums.iter().fold((f64::MAX, 0.0f64), |(least, most), sum| (least.min(*sum), most.max(*sum)));
            assert!(most - least <= quantum_bits + 1000.0 / 0.5, "{quantum}, slot {number}: {sums:?}");
        }
    }
}

#[test]
fn the_best_of_25_channels_of_one_user_gains_the_harmonic_number() {
    // The experiment of Alfredsson et al. with one bin a slot, in Rayleigh fading without correlation.
    let toml = ["{ type = \"static\", owners = [\"alice\"] }", "{ type = \"best_channel\", most = 1 }"];
    for (toml, theory) in toml.into_iter().zip([1.0, harmonic(25)]) {
        let mut scheduler = scheduler(&config(toml), 1, 25);
        let mut batches = vec![0.0; BATCHES];
        for number in 0..(BATCH * BATCHES) as u64 {
            let draw = key(41);
            let snr = |_, resource| (draw.exponential(number, resource as u64) * SCALE) as u32 + 1;
            let case = Case::saturated(number, 1, 25, snr);
            let to = case.assign(&mut scheduler);
            let got: Vec<usize> = (0..25).filter(|resource| to[*resource].is_some()).collect();
            assert_eq!(got.len(), 1);
            batches[number as usize / BATCH] += f64::from(case.bits[got[0]]) / SCALE / BATCH as f64;
        }
        assert_near(&batches, theory, toml);
    }
}
