// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use super::*;
use airpath_core::{Direction, DrawScope, Seed};

fn key() -> DrawKey {
    DrawKey::new(Seed(4), &DrawScope { hop: "h", direction: Direction::Uplink, role: "errors", instance: 0 })
}

fn read<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.max(1e-3), "{found} {expected}");
}

/// Walls, by hand. Shares of the states: 2/3 and 1/3. Loss: 0.01 / (1/3 + 0.1 · 2/3) = 0.025. Of 0.665 and 0.325
/// packets that are left: 0.02 · 0.99 / (0.325 + 0.0665) = 0.0505747. Of 0.6616367 and 0.3085632:
/// 0.27 · 0.9702 / (0.3085632 + 0.0661637) = 0.6990531.
#[test]
fn states_have_the_means_of_the_environment() {
    let fitted = fitted(&EnvironmentConfig::named(Environment::Walls)).unwrap();
    let [good, bad] = fitted.states;
    near(fitted.bad_share.get(), 1.0 / 3.0);
    for (found, expected) in
        [(bad.loss, 0.025), (bad.truncation, 0.0505747), (bad.corruption, 0.6990531), (bad.leaves, 1.0 / 160.0)]
    {
        near(found.get(), expected);
    }
    for (found, expected) in
        [(good.loss, 0.0025), (good.truncation, 0.00505747), (good.corruption, 0.06990531), (good.leaves, 1.0 / 320.0)]
    {
        near(found.get(), expected);
    }
    // Of 1408 bytes 99 % arrive: 11,151.36 bits with 4.2375168 errors, in 0.98 · 0.27 + 0.01 · 0.27 corrupted packets:
    // 15.8530370 each. -11264 ln(1 - 15.853 / 11264) = 15.8642037 have to be thrown, in bursts of 3.
    near(fitted.burst_within.get(), (15.8642037 / 3.0 - 1.0) / 11_264.0);
    near(fitted.burst_beyond.get(), 15.8642037 / 3.0 / 11_264.0);
    near(bad.later_truncation.get(), 0.0505747 * 896.0 / 1408.0);
}

/// States of one packet each, and a good one without errors: every second packet is cut, of two bytes always to one.
#[test]
fn an_alternating_environment_by_hand() {
    let config = EnvironmentConfig {
        truncation: Some(read("0.5")),
        length: Bits::from_bytes(2),
        good_mean: Some(1.0),
        bad_mean: Some(1.0),
        good_severity: Some(Probability::ZERO),
        ..EnvironmentConfig::default()
    };
    assert_eq!(config.problems(), []);
    let mut process = Environments::new(&config, key());
    let cut = |record: Record<'_>| match record {
        Record::Ok => false,
        Record::Damaged { kept_bytes: Some(1), flips: [] } => true,
        other => panic!("{other:?}"),
    };
    let found: Vec<bool> = (0..8).map(|step| cut(process.record(step))).collect();
    assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "{found:?}");
    // What an interval does to its frames: the same state, and the chain goes on behind it.
    let bad = process.bad;
    process.hit_bits(8, 7, true, &mut Vec::new());
    assert_eq!((0..3).map(|frame| cut(process.frame_record(frame).unwrap())).collect::<Vec<_>>(), [bad; 3]);
    assert_eq!(process.bad, !bad);
}

/// Steps that are taken one by one and all at once lead to the same state, and a change that changes nothing does so.
#[test]
fn passing_is_as_drawing() {
    let config = EnvironmentConfig::named(Environment::Walls);
    let (mut one, mut all) = (Environments::new(&config, key()), Environments::new(&config, key()));
    let mut hits = Vec::new();
    for step in 0..5_000 {
        if one.hits(step) {
            hits.push(step as u32);
        }
        one.configure(&config);
    }
    let mut found = Vec::new();
    all.hit_bits(0, 5_000, false, &mut found);
    assert_eq!(found, hits);
    let mut first = Environments::new(&config, key());
    first.hit_bits(0, 5_000, true, &mut found);
    assert_eq!(found.last(), hits.first());
    assert_eq!((one.bad, one.left, one.stay), (first.bad, first.left, first.stay));
    assert_eq!((all.bad, all.left, all.stay, all.last), (first.bad, first.left, first.stay, first.last));
}

#[test]
fn every_named_environment_can_be_drawn() {
    for environment in
        [Environment::Office, Environment::Walking, Environment::Adjacent, Environment::Table, Environment::Walls]
    {
        for bytes in [500, 1275, 1408, 2304, 4095] {
            let config = EnvironmentConfig { length: Bits::from_bytes(bytes), ..EnvironmentConfig::named(environment) };
            assert_eq!(config.problems(), [], "{environment:?}");
        }
    }
}

#[test]
fn what_cannot_be_is_told() {
    let named = EnvironmentConfig::named;
    let own = EnvironmentConfig::default();
    for (config, key, words) in [
        (
            EnvironmentConfig { loss: Some(read("0.7")), ..named(Environment::Adjacent) },
            "loss",
            "is 0.7, so that it would be 1.167 in the bad state; make `bad_mean` longer",
        ),
        (
            EnvironmentConfig { good_severity: Some(read("0.5")), ..own },
            "good_mean",
            "is missing: a good state that is milder needs it",
        ),
        (EnvironmentConfig { bad_mean: Some(0.5), ..own }, "bad_mean", "is 0.5; it must be from 1 to 1000000000"),
        (EnvironmentConfig { burst_errors: f64::NAN, ..own }, "burst_errors", "is NaN; it must be from 1"),
        (EnvironmentConfig { burst_spacing: 0.0, ..own }, "burst_spacing", "is 0; it must be from 1"),
        (EnvironmentConfig { length: Bits::new(81), ..own }, "length", "is 81 bit; it must be whole bytes"),
        (
            EnvironmentConfig { corruption: Some(read("0.5")), ..own },
            "bit_error_rate",
            "is 0; a corrupted packet has an error at least, so write at least 4.439e-5",
        ),
        (
            EnvironmentConfig { bit_error_rate: Some(read("0.01")), ..own },
            "bit_error_rate",
            "has no packets in which errors could be",
        ),
        (
            EnvironmentConfig { bit_error_rate: Some(read("0.2")), ..named(Environment::Walls) },
            "bit_error_rate",
            "is 0.2, which is 8344 errors in a corrupted packet of 11264 bits",
        ),
    ] {
        let problems = config.problems();
        let problem = problems.first().unwrap_or_else(|| panic!("{config:?} is not refused"));
        assert_eq!(problem.key, key, "{problem:?}");
        assert!(problem.message.starts_with(words), "{problem:?}");
    }
}
