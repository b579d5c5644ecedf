// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The estimate of two clocks against exchanges of which the truth is known.

use airpath_clocks::segments::{HostSide, Step};
use airpath_clocks::{ClockError, Estimate, Exchange};

const SECOND: i128 = 1_000_000_000;
const START: i128 = 1_700_000_000 * SECOND;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Draws(u64);

impl Draws {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

/// Two clocks and the way between them. Times are in ns.
#[derive(Clone, Copy)]
struct Truth {
    offset: i128,
    drift_ppm: f64,
    base: [f64; 2],
    queue: [f64; 2],
    loss: f64,
    seconds: f64,
    interval: f64,
    /// The remote clock is set by so much after so many ns.
    step: Option<(i128, i128)>,
}

const PLAIN: Truth = Truth {
    offset: 1_234_567_891,
    drift_ppm: 23.5,
    base: [20e6, 20e6],
    queue: [1e6, 1e6],
    loss: 0.0,
    seconds: 30.0,
    interval: 50e6,
    step: None,
};

impl Truth {
    /// Remote less local clock at this local time.
    fn offset_at(&self, local: i128) -> i128 {
        let drift = ((local - START) as f64 * self.drift_ppm / 1e6).round() as i128;
        self.offset + drift + self.stepped(local)
    }

    fn stepped(&self, local: i128) -> i128 {
        self.step.map_or(0, |(after, by)| if local - START >= after { by } else { 0 })
    }

    fn exchanges(&self, seed: u64) -> Vec<Exchange> {
        let mut draws = Draws(seed);
        let mut exchanges = Vec::new();
        for number in 0..(self.seconds * 1e9 / self.interval) as i128 {
            let origin = START + number * self.interval as i128;
            let receive = origin + (self.base[0] + draws.exponential(self.queue[0])) as i128;
            let transmit = receive + 10_000;
            let destination = transmit + (self.base[1] + draws.exponential(self.queue[1])) as i128;
            if draws.unit() < self.loss {
                continue;
            }
            exchanges.push(Exchange {
                origin_ns: origin as u64,
                receive_ns: (receive + self.offset_at(receive)) as u64,
                transmit_ns: (transmit + self.offset_at(transmit)) as u64,
                destination_ns: destination as u64,
                origin_ahead_ns: 1_000,
                destination_ahead_ns: 1_000,
                remote_ahead_ns: 5_000 + self.stepped(transmit) as i64,
            });
        }
        exchanges
    }

    /// The estimate over `seed`, after checking that the truth is within everything that it claims for certain.
    fn estimate(&self, seed: u64) -> Estimate {
        let estimate = Estimate::of(&self.exchanges(seed)).unwrap();
        let [least, greatest] = estimate.drift_bound_ppm;
        assert!((least - 1e-6..=greatest + 1e-6).contains(&self.drift_ppm), "seed {seed}: {estimate:?}");
        for share in 0..=10 {
            let (from, to) = (i128::from(estimate.from_unix_ns), i128::from(estimate.to_unix_ns));
            let at = from + (to - from) * share / 10;
            let error = (estimate.offset_at_ns(at as u64) - self.offset_at(at)).unsigned_abs();
            let bound = u128::from(estimate.bound_at_ns(at as u64)) + 2;
            assert!(error <= bound, "seed {seed}, {share}/10: {error} > {bound} ns");
        }
        estimate
    }
}

#[test]
fn a_symmetric_way_gives_offset_and_drift() {
    for seed in 0..20 {
        let estimate = PLAIN.estimate(seed);
        let error = estimate.offset_at_ns(estimate.at_unix_ns) - PLAIN.offset_at(i128::from(estimate.at_unix_ns));
        // Far better than the bound of half of the round trip, as both directions are alike.
        assert!(error.abs() < 200_000, "seed {seed}: {error} ns");
        assert!((estimate.drift_ppm - 23.5).abs() < 20.0, "seed {seed}: {} ppm", estimate.drift_ppm);
        assert!((19_000_000..22_000_000).contains(&estimate.bound_ns), "{}", estimate.bound_ns);
        assert_eq!((estimate.wander_ns, &estimate.steps[..], &estimate.warnings[..]), (0, &[][..], &[][..]));
    }
}

#[test]
fn longer_measurements_find_the_drift_more_exactly() {
    let long = Truth { seconds: 600.0, interval: 250e6, ..PLAIN };
    for seed in 0..10 {
        let estimate = long.estimate(seed);
        assert!((estimate.drift_ppm - 23.5).abs() < 1.0, "seed {seed}: {} ppm", estimate.drift_ppm);
    }
}

#[test]
fn the_interval_of_the_drift_holds_the_truth_nearly_always() {
    let hits = (0..100).filter(|seed| {
        let [low, high] = PLAIN.estimate(*seed).drift_interval_ppm;
        (low..=high).contains(&PLAIN.drift_ppm)
    });
    let hits = hits.count();
    assert!(hits >= 90, "{hits} of 100");
}

#[test]
fn unequal_delays_stay_within_the_bound() {
    let truth = Truth { base: [5e6, 300e6], ..PLAIN };
    for seed in 0..10 {
        let estimate = truth.estimate(seed);
        let error = estimate.offset_at_ns(estimate.at_unix_ns) - truth.offset_at(i128::from(estimate.at_unix_ns));
        // Nothing can tell a slow way back from a clock that is ahead; the bound says so.
        assert!((error.abs() - 147_500_000).abs() < 2_000_000, "{error}");
        assert!(estimate.bound_ns >= 147_500_000, "{}", estimate.bound_ns);
    }
}

#[test]
fn queues_in_one_direction_and_loss_do_no_harm() {
    let truth = Truth { queue: [40e6, 0.2e6], loss: 0.3, seconds: 60.0, ..PLAIN };
    for seed in 0..10 {
        let estimate = truth.estimate(seed);
        let error = estimate.offset_at_ns(estimate.at_unix_ns) - truth.offset_at(i128::from(estimate.at_unix_ns));
        assert!(error.abs() < 5_000_000, "seed {seed}: {error} ns");
        assert!((estimate.drift_ppm - 23.5).abs() < 150.0, "seed {seed}: {} ppm", estimate.drift_ppm);
    }
}

#[test]
fn a_step_is_told_and_the_longer_part_is_used() {
    let truth = Truth { step: Some((20 * SECOND, -3 * SECOND)), ..PLAIN };
    for seed in 0..10 {
        let estimate = truth.estimate(seed);
        let [Step { host: HostSide::Remote, at_unix_ns, by_ns: -3_000_000_000 }] = estimate.steps[..] else {
            panic!("{:?}", estimate.steps);
        };
        assert!((i128::from(at_unix_ns) - START - 20 * SECOND).abs() < SECOND / 10, "{at_unix_ns}");
        assert!(i128::from(estimate.to_unix_ns) <= START + 20 * SECOND + 40_000_000);
        assert!(estimate.warnings[0].contains("the remote clock was set by -3.000000 s"), "{:?}", estimate.warnings);
    }
}

#[test]
fn a_clock_that_is_bent_is_told() {
    let mut exchanges = Truth { base: [50e3, 50e3], queue: [1e3, 1e3], ..PLAIN }.exchanges(1);
    // 200 ppm more in the second half, as while a clock is slewed.
    let half = START + 15 * SECOND;
    for exchange in &mut exchanges {
        for stamp in [&mut exchange.receive_ns, &mut exchange.transmit_ns] {
            *stamp += (i128::from(exchange.origin_ns) - half).max(0) as u64 / 5_000;
        }
    }
    let estimate = Estimate::of(&exchanges).unwrap();
    assert!(estimate.wander_ns > 300_000, "{}", estimate.wander_ns);
    assert!(estimate.warnings[0].contains("did not keep one rate"), "{:?}", estimate.warnings);
}

#[test]
fn too_few_exchanges_are_no_estimate() {
    let few = Truth { seconds: 0.3, ..PLAIN }.exchanges(1);
    let error = Estimate::of(&few).unwrap_err();
    assert!(matches!(error, ClockError::TooFew { used: 6, least: 8, steps: 0 }), "{error}");
    assert!(error.to_string().contains("--seconds"));
    assert!(Estimate::of(&[]).is_err());
}

#[test]
fn clocks_that_are_decades_apart_are_no_trouble() {
    let truth = Truth { offset: -START + 400 * SECOND, drift_ppm: -480.0, ..PLAIN };
    let estimate = truth.estimate(3);
    assert!(estimate.offset_ns < -1_600_000_000 * 1_000_000_000);
}

#[test]
fn from_one_clock_to_the_other_and_back() {
    let estimate = Truth { seconds: 100.0, drift_ppm: -400.0, ..PLAIN }.estimate(5);
    for after in [-SECOND, 0, 50 * SECOND, 100 * SECOND, 500 * SECOND] {
        let local = (START + after) as u64;
        let back = estimate.local_ns(estimate.remote_ns(local).unwrap()).unwrap();
        assert!(back.abs_diff(local) <= 1, "{after}: {back} {local}");
    }
    assert!(!estimate.covers((START - SECOND) as u64) && estimate.covers((START + SECOND) as u64));
    let far = estimate.bound_at_ns((START + 1_000 * SECOND) as u64);
    assert!(far > 5 * estimate.bound_ns, "{far}");
}

#[test]
fn an_estimate_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clocks.json");
    let estimate = PLAIN.estimate(1);
    std::fs::write(&path, serde_json::to_vec(&estimate).unwrap()).unwrap();
    assert_eq!(Estimate::read(&path).unwrap(), estimate);
    for (text, expected) in [
        ("{}", "is no estimate of two clocks"),
        ("nonsense", "is no estimate of two clocks"),
        (r#"{"format_version": 7}"#, "has format 7"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Estimate::read(&path).unwrap_err().to_string();
        assert!(error.contains("clocks.json") && error.contains(expected), "{error}");
    }
    let contradiction = Estimate { at_unix_ns: 5, ..estimate };
    std::fs::write(&path, serde_json::to_vec(&contradiction).unwrap()).unwrap();
    assert!(Estimate::read(&path).unwrap_err().to_string().contains("contradicts itself"));
    assert!(Estimate::read(&folder.path().join("none")).unwrap_err().to_string().contains("check the name"));
}
