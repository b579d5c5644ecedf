// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Channels compared with naïve references that draw for every bit or frame from another generator,
//! and with what theory says. Seeds are fixed; bounds are five standard deviations or wider.

use airpath_core::{Direction, DrawKey, DrawScope, Probability, Seed, Time};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::gilbert_elliott::GilbertElliottConfig;
use airpath_models::channel::{
    Channel, ChannelOutcome, Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Per, Transmission,
};

use crate::common::*;

fn key(role: &str) -> DrawKey {
    DrawKey::new(Seed(11), &DrawScope { hop: "radio", direction: Direction::Uplink, role, instance: 0 })
}

fn channel(errors: &ErrorsConfig) -> Channel {
    Channel::new(errors, key("channel"), key("channel flips"))
}

fn errors(process: ErrorProcessConfig, per: Per, effect: Effect) -> ErrorsConfig {
    ErrorsConfig { process, per, effect: EffectConfig { effect, ..EffectConfig::default() }, ..ErrorsConfig::default() }
}

fn bernoulli(probability: &str) -> ErrorProcessConfig {
    ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read(probability) })
}

fn gilbert_elliott(texts: [&str; 4]) -> ErrorProcessConfig {
    let [good_to_bad, bad_to_good, error_in_good, error_in_bad] = texts.map(read::<Probability>);
    ErrorProcessConfig::GilbertElliott(GilbertElliottConfig { good_to_bad, bad_to_good, error_in_good, error_in_bad })
}

fn whole(bits: u32) -> Transmission {
    Transmission { bits: u64::from(bits), first_bit: 0, packet_bits: bits, header_bits: 0 }
}

/// The flipped bits of each of `count` packets of `bits`.
fn flips(channel: &mut Channel, bits: u32, count: usize) -> Vec<Vec<u32>> {
    let unit = whole(bits);
    let flips = |outcome| match outcome {
        ChannelOutcome::Flipped(positions) => positions,
        ChannelOutcome::Ok => Vec::new(),
        other => panic!("{other:?}"),
    };
    (0..count).map(|_| flips(channel.outcome(Time::ZERO, &unit, Some(&unit)))).collect()
}

/// The errors of every bit, one draw each, of the chain that the parameters describe.
fn naive_chain(process: &ErrorProcessConfig, bits: usize, seed: u64) -> Vec<bool> {
    let mut dice = Dice::new(seed);
    let mut bad = false;
    let mut draw = || match process {
        ErrorProcessConfig::None(_) => false,
        ErrorProcessConfig::Bernoulli(config) => dice.unit() < config.probability.get(),
        ErrorProcessConfig::GilbertElliott(config) => {
            let (error, change) = if bad {
                (config.error_in_bad.get(), config.bad_to_good.get())
            } else {
                (config.error_in_good.get(), config.good_to_bad.get())
            };
            let hit = dice.unit() < error;
            bad ^= dice.unit() < change;
            hit
        }
        other => unreachable!("{other:?} is tested beside its model"),
    };
    (0..bits).map(|_| draw()).collect()
}

/// Error rate, mean gap squared, and the correlation of errors at a few distances.
fn figures(errors: &[bool]) -> Vec<f64> {
    let count = errors.iter().filter(|hit| **hit).count() as f64;
    let mut figures = vec![count / errors.len() as f64];
    for lag in [1, 2, 10, 50] {
        let both = errors.iter().zip(&errors[lag..]).filter(|(a, b)| **a && **b).count() as f64;
        figures.push(both / count);
    }
    figures
}

fn processes() -> Vec<ErrorProcessConfig> {
    vec![
        bernoulli("0.003"),
        bernoulli("0.4"),
        gilbert_elliott(["0.02", "0.3", "0.001", "0.7"]),
        gilbert_elliott(["0.001", "0.02", "0", "0.5"]),
        gilbert_elliott(["0.5", "0.5", "0.1", "0.9"]),
        gilbert_elliott(["0.9", "0.8", "0.05", "1"]),
    ]
}

/// The same figures from many naïve runs give the spread that the model's run must lie in.
#[test]
fn bits_are_hit_as_by_a_draw_for_each() {
    const BITS: usize = 200_000;
    for process in processes() {
        let mut channel = channel(&errors(process.clone(), Per::Bit, Effect::Corrupt));
        // Packets of different lengths: the chain goes on from one to the next.
        let mut hits = Vec::with_capacity(BITS);
        for bits in [1u32, 7, 999, 12_000, 33].into_iter().cycle() {
            let mut packet = vec![false; bits as usize];
            flips(&mut channel, bits, 1)[0].iter().for_each(|position| packet[*position as usize] = true);
            hits.append(&mut packet);
            if hits.len() >= BITS {
                break;
            }
        }
        hits.truncate(BITS);
        let runs: Vec<Vec<f64>> = (0..12).map(|seed| figures(&naive_chain(&process, BITS, seed))).collect();
        for (index, found) in figures(&hits).into_iter().enumerate() {
            let values = || runs.iter().map(|run| run[index]);
            let mean = values().sum::<f64>() / 12.0;
            let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / 11.0).sqrt();
            // Seven, because the deviation is itself an estimate from twelve.
            assert!(
                (found - mean).abs() <= 7.0 * deviation,
                "{process:?}, figure {index}: {found}, {mean}±{deviation}"
            );
        }
    }
}

/// Loss rate of frames of n bits: with independent errors 1 - (1 - p)^n.
#[test]
fn frames_are_lost_as_often_as_one_of_their_bits_is_hit() {
    const FRAMES: usize = 20_000;
    for process in processes() {
        for bits in [16u32, 200] {
            let mut channel = channel(&errors(process.clone(), Per::Bit, Effect::Drop));
            let unit = whole(bits);
            let lost = (0..FRAMES)
                .filter(|_| channel.outcome(Time::ZERO, &unit, Some(&unit)) == ChannelOutcome::Lost)
                .count() as f64;
            let naive = naive_chain(&process, FRAMES * bits as usize, 77);
            let expected = naive.chunks(bits as usize).filter(|frame| frame.contains(&true)).count() as f64;
            // Two estimates of a share, frames correlated over a few: twice the binomial variance each.
            let share = expected / FRAMES as f64;
            let deviation = (4.0 * FRAMES as f64 * share * (1.0 - share)).sqrt();
            assert!((lost - expected).abs() <= 5.0 * deviation.max(3.0), "{process:?} {bits}: {lost} {expected}");
            if let ErrorProcessConfig::Bernoulli(config) = &process {
                let theory = FRAMES as f64 * (1.0 - (1.0 - config.probability.get()).powi(bits as i32));
                assert!((lost - theory).abs() <= 5.0 * (theory.max(1.0)).sqrt(), "{lost} {theory}");
            }
        }
    }
}

/// Frames and packets as units: the chain takes one step for each.
#[test]
fn units_are_hit_as_by_a_draw_for_each() {
    const UNITS: usize = 100_000;
    for process in processes() {
        for per in [Per::Frame, Per::Packet] {
            let mut channel = channel(&errors(process.clone(), per, Effect::Drop));
            let unit = whole(100);
            // A frame that does not end its packet is no step of a chain per packet.
            let mut hit = || {
                if per == Per::Packet {
                    assert_eq!(channel.outcome(Time::ZERO, &unit, None), ChannelOutcome::Ok);
                }
                channel.outcome(Time::ZERO, &unit, Some(&unit)) == ChannelOutcome::Lost
            };
            let found = figures(&(0..UNITS).map(|_| hit()).collect::<Vec<_>>());
            let runs: Vec<Vec<f64>> = (0..12).map(|seed| figures(&naive_chain(&process, UNITS, seed))).collect();
            for (index, found) in found.into_iter().enumerate() {
                let values = || runs.iter().map(|run| run[index]);
                let mean = values().sum::<f64>() / 12.0;
                let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / 11.0).sqrt();
                assert!(
                    (found - mean).abs() <= 7.0 * deviation,
                    "{process:?} {per:?} {index}: {found} {mean}±{deviation}"
                );
            }
        }
    }
}

/// A chain that comes back after a time without errors, or with errors of another kind, does not
/// repeat itself: the lengths of its first stays are as different as any others.
#[test]
fn a_chain_that_comes_back_does_not_repeat_itself() {
    let chain = errors(gilbert_elliott(["0.01", "1", "0", "1"]), Per::Bit, Effect::Corrupt);
    let none = ErrorsConfig { per: Per::Bit, ..ErrorsConfig::default() };
    let mut channel = channel(&chain);
    let mut first = Vec::new();
    for _ in 0..400 {
        first.push(f64::from(flips(&mut channel, 5_000, 1)[0][0]));
        channel.configure(&none, Time::ZERO);
        channel.configure(&chain, Time::ZERO);
    }
    // The first stay is geometric: mean 100, and so is the deviation; its mean over 400 has 5.
    let mean = first.iter().sum::<f64>() / 400.0;
    assert!((mean - 100.0).abs() < 25.0, "{mean}");
    first.sort_by(f64::total_cmp);
    first.dedup();
    assert!(first.len() > 100, "only {} different lengths", first.len());
}

/// A chain that has run per packet knows nothing of how long it would have stayed per bit.
#[test]
fn a_change_of_the_unit_forgets_the_rest_of_a_stay() {
    // Per bit the chain is left in a bad stay of fifty; per packet it runs until it has been good.
    let process = gilbert_elliott(["0.5", "0.02", "0", "1"]);
    let per = |per| errors(process.clone(), per, Effect::Corrupt);
    let mut channel = channel(&per(Per::Bit));
    let mut lengths = Vec::new();
    for _ in 0..4_000 {
        flips(&mut channel, 8, 1);
        channel.configure(&per(Per::Packet), Time::ZERO);
        while !flips(&mut channel, 8, 1)[0].is_empty() {}
        channel.configure(&per(Per::Bit), Time::ZERO);
        let hits = &flips(&mut channel, 64, 1)[0];
        lengths.push(hits.first().map_or(64.0, |first| f64::from(*first)));
    }
    // After a step in the good state the next is bad with 1/2: a first error at 0, 1, 2 … with
    // 1/2, 1/4, 1/8: mean 1, deviation sqrt 2.
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    assert!((mean - 1.0).abs() < 5.0 * 2f64.sqrt() / 4_000f64.sqrt(), "{mean}");
}

/// Chains that change at every bit, over the largest packet of an expanding link: more draws than
/// one step has attempts.
#[test]
fn chains_may_take_more_draws_than_a_step_has() {
    let chain = errors(gilbert_elliott(["1", "1", "0.000001", "0.000001"]), Per::Bit, Effect::Drop);
    let mut channel = channel(&chain);
    let unit = Transmission { bits: 4_000_000, first_bit: 0, packet_bits: 524_280, header_bits: 0 };
    let lost = (0..40).filter(|_| channel.outcome(Time::ZERO, &unit, Some(&unit)) == ChannelOutcome::Lost).count();
    // 1 - exp(-4) of forty: 39.3; all but five at least.
    assert!(lost >= 35, "{lost}");
}

/// The run-length law of the two-state chain, from its matrix: the probability that a run of errors has
/// length 1, 2, … 9, or more; and the stationary error rate.
fn run_law([p, r, good, bad]: [f64; 4]) -> (f64, [f64; 10]) {
    let step = |[g, b]: [f64; 2]| [g * (1.0 - p) + b * r, g * p + b * (1.0 - r)];
    let errors = |[g, b]: [f64; 2]| [g * good, b * bad];
    let stationary = [r / (p + r), p / (p + r)];
    let rate = errors(stationary).iter().sum();
    // A run begins where an error follows a step without one.
    let spared = [stationary[0] * (1.0 - good), stationary[1] * (1.0 - bad)];
    let mut run = errors(step(spared));
    let all: f64 = run.iter().sum();
    let mut law = [0.0; 10];
    for length in &mut law[..9] {
        let longer = errors(step(run));
        *length = (run.iter().sum::<f64>() - longer.iter().sum::<f64>()) / all;
        run = longer;
    }
    law[9] = run.iter().sum::<f64>() / all;
    (rate, law)
}

#[test]
fn runs_of_the_two_state_chain_follow_its_law() {
    const N: usize = 500_000;
    for texts in [["0.02", "0.3", "0", "1"], ["0.05", "0.1", "0.02", "0.7"], ["0.3", "0.2", "0.5", "0.9"]] {
        let (rate, law) = run_law(texts.map(|text| text.parse().unwrap()));
        for per in [Per::Packet, Per::Bit] {
            let bits = if per == Per::Bit { 1_000 } else { 1 };
            let effect = if per == Per::Bit { Effect::Corrupt } else { Effect::Drop };
            let mut channel = channel(&errors(gilbert_elliott(texts), per, effect));
            let mut hits = vec![false; N];
            for from in (0..N).step_by(bits as usize) {
                match channel.outcome(Time::ZERO, &whole(bits), Some(&whole(bits))) {
                    ChannelOutcome::Ok => {}
                    ChannelOutcome::Lost => hits[from] = true,
                    ChannelOutcome::Flipped(positions) => {
                        positions.iter().for_each(|bit| hits[from + *bit as usize] = true)
                    }
                    other => panic!("{other:?}"),
                }
            }
            // The chains forget by a factor of 0.85 a step at most: the standard deviation of the mean is
            // below sqrt(0.25 · 1.85 / 0.15 / N) = 0.0025; four of them.
            let found = hits.iter().filter(|hit| **hit).count() as f64 / N as f64;
            assert!((found - rate).abs() < 0.01, "{texts:?} {per:?}: {found} {rate}");
            let mut counts = [0f64; 10];
            let (mut length, mut complete) = (0usize, false);
            for hit in hits {
                match hit {
                    true => length += 1,
                    // The first run may have begun before the first step.
                    false => {
                        if length > 0 && complete {
                            counts[length.min(10) - 1] += 1.0;
                        }
                        (length, complete) = (0, true);
                    }
                }
            }
            let runs: f64 = counts.iter().sum();
            assert!(runs > 5_000.0, "{runs}");
            // 9 degrees of freedom, level 1e-6: 45; runs of one bad stay depend on each other a little.
            let chi: f64 = counts.iter().zip(law).map(|(n, share)| (n - share * runs).powi(2) / (share * runs)).sum();
            assert!(chi < 60.0, "{texts:?} {per:?}: {chi} {counts:?}");
        }
    }
}
