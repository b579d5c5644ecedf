// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Every distribution against what is known of it: moments, its distribution function (computed here, by
//! formulas other than those of the samplers where there are any), bounds, memories, files.
//!
//! Seeds are fixed, so nothing here can flake; the levels say how unlikely a right sampler was to fail.

use airpath_core::{Bits, Direction, DrawKey, DrawScope, Seed, Span};
use airpath_models::file::{AnyData, AnyFile, FileSource, ParseFile};
use airpath_models::random::{Distribution, Quantity, Random, Sampler};
use std::any::TypeId;
use std::collections::HashMap;

fn key(seed: u64) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: "radio", direction: Direction::Uplink, role: "test", instance: 0 })
}

/// Files by their names.
struct Files(HashMap<&'static str, String>);

impl FileSource for Files {
    fn load(&mut self, name: &str, _: TypeId, parse: ParseFile<'_>) -> Result<AnyData, String> {
        parse(self.0.get(name).ok_or("no such file")?.as_bytes())
    }
}

/// Parses a table in JSON (as easily written as TOML, and read by the same types).
fn random(table: serde_json::Value) -> Random<Span> {
    serde_json::from_value(table).unwrap()
}

fn with_file(table: serde_json::Value, text: &str) -> Result<Random<Span>, String> {
    let mut random = random(table);
    let mut files = Files(HashMap::from([("file", text.to_string())]));
    let mut result = Ok(());
    random.files(&mut |_, file: &mut dyn AnyFile| result = file.load(&mut files));
    result.map(|()| random)
}

/// `count` draws in milliseconds.
fn draws(random: &Random<Span>, count: u64, seed: u64) -> Vec<f64> {
    assert_eq!(random.problems(), []);
    let mut sampler = Sampler::new(random, key(seed));
    let least = random.least();
    (0..count)
        .map(|step| {
            let drawn = sampler.draw(step);
            assert!(drawn >= least, "{drawn} is less than {least}");
            drawn.nanos() as f64 / 1e6
        })
        .collect()
}

/// The largest distance between the draws' distribution and `below` (Kolmogorov and Smirnov), times the
/// root of their number: below 2.23 with probability 1 - 1e-4, as 2 exp(-2 d²) is then 1e-4.
fn distance(mut draws: Vec<f64>, below: impl Fn(f64) -> f64) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let worst = draws.iter().enumerate().fold(0.0f64, |worst, (index, value)| {
        let expected = below(*value);
        worst.max((expected - index as f64 / n).abs()).max((expected - (index + 1) as f64 / n).abs())
    });
    worst * n.sqrt()
}

/// The integral of `f` from `a` to `b` by Simpson's rule.
fn integral(f: impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
    const PARTS: usize = 2_000;
    let h = (b - a) / PARTS as f64;
    let weight = |index| if index == 0 || index == PARTS { 1.0 } else { 2.0 + 2.0 * (index % 2) as f64 };
    (0..=PARTS).map(|index| weight(index) * f(a + h * index as f64)).sum::<f64>() * h / 3.0
}

/// The distribution function of a density known up to a factor, by integrals in short steps.
fn from_density(density: impl Fn(f64) -> f64, from: f64, to: f64) -> impl Fn(f64) -> f64 {
    const STEPS: usize = 4_000;
    let h = (to - from) / STEPS as f64;
    let mut sums = vec![0.0];
    for index in 0..STEPS {
        let a = from + h * index as f64;
        // Simpson's rule in each step, open at its ends: a density may be infinite at 0.
        let inner = (density(a + h / 6.0) + density(a + h / 2.0) + density(a + h * 5.0 / 6.0)) * h / 3.0;
        sums.push(sums[index] + inner);
    }
    let total = sums[STEPS];
    move |x| {
        let place = ((x - from) / h).clamp(0.0, STEPS as f64 - 1e-9);
        let index = place as usize;
        (sums[index] + (place - index as f64) * (sums[index + 1] - sums[index])) / total
    }
}

struct Case {
    table: serde_json::Value,
    /// The density in milliseconds, up to a factor, and where it ends.
    density: Box<dyn Fn(f64) -> f64>,
    from: f64,
    to: f64,
}

fn case(table: serde_json::Value, from: f64, to: f64, density: impl Fn(f64) -> f64 + 'static) -> Case {
    Case { table, density: Box::new(density), from, to }
}

/// Densities as textbooks have them; the samplers know tails and quantiles only (and rejection).
fn cases() -> Vec<Case> {
    use serde_json::json;
    let normal = |mean: f64, deviation: f64| move |x: f64| (-((x - mean) / deviation).powi(2) / 2.0).exp();
    let gamma = |shape: f64, scale: f64| move |x: f64| x.powf(shape - 1.0) * (-x / scale).exp();
    let weibull = |k: f64, scale: f64| move |x: f64| (x / scale).powf(k - 1.0) * (-(x / scale).powf(k)).exp();
    vec![
        case(json!({"type": "uniform", "from": "3 ms", "to": "8 ms"}), 3.0, 8.0, |_| 1.0),
        case(json!({"type": "normal", "mean": "50 ms", "deviation": "5 ms"}), 10.0, 90.0, normal(50.0, 5.0)),
        // Cut at both sides, and at 0 only.
        case(
            json!({"type": "normal", "mean": "5 ms", "deviation": "4 ms", "least": "4 ms", "most": "12 ms"}),
            4.0,
            12.0,
            normal(5.0, 4.0),
        ),
        case(json!({"type": "normal", "mean": "1 ms", "deviation": "4 ms"}), 0.0, 30.0, normal(1.0, 4.0)),
        case(json!({"type": "lognormal", "median": "10 ms", "sigma": 0.5}), 0.0, 120.0, |x: f64| {
            (-((x / 10.0).ln() / 0.5).powi(2) / 2.0).exp() / x
        }),
        case(json!({"type": "exponential", "mean": "20 ms"}), 0.0, 500.0, |x: f64| (-x / 20.0).exp()),
        case(
            json!({"type": "exponential", "mean": "20 ms", "least": "30 ms", "most": "50 ms"}),
            30.0,
            50.0,
            |x: f64| (-x / 20.0).exp(),
        ),
        case(json!({"type": "gamma", "shape": 3.5, "scale": "4 ms"}), 0.0, 150.0, gamma(3.5, 4.0)),
        case(json!({"type": "gamma", "shape": 1, "scale": "4 ms"}), 0.0, 120.0, gamma(1.0, 4.0)),
        case(
            json!({"type": "gamma", "shape": 0.7, "scale": "10 ms", "least": "2 ms", "most": "40 ms"}),
            2.0,
            40.0,
            gamma(0.7, 10.0),
        ),
        case(json!({"type": "pareto", "shape": 1.5, "scale": "2 ms", "most": "40 ms"}), 2.0, 40.0, |x: f64| {
            x.powf(-2.5)
        }),
        case(json!({"type": "weibull", "shape": 2.5, "scale": "10 ms"}), 0.0, 40.0, weibull(2.5, 10.0)),
        case(
            json!({"type": "weibull", "shape": 0.7, "scale": "10 ms", "least": "1 ms", "most": "200 ms"}),
            1.0,
            200.0,
            weibull(0.7, 10.0),
        ),
        case(json!({"type": "cauchy", "median": "10 ms", "scale": "3 ms", "most": "60 ms"}), 0.0, 60.0, |x: f64| {
            1.0 / (1.0 + ((x - 10.0) / 3.0).powi(2))
        }),
    ]
}

/// Distribution, mean and deviation; 40,000 draws each, KS level 1e-4, moments within five standard
/// errors.
#[test]
fn draws_have_their_distribution() {
    const COUNT: u64 = 40_000;
    for (seed, Case { table, density, from, to }) in cases().into_iter().enumerate() {
        let values = draws(&random(table.clone()), COUNT, seed as u64);
        assert!(values.iter().all(|value| (from..=to).contains(value)), "{table}");
        let open = |x: f64| density(x.max(1e-9));
        let total = from_density(open, from, to);
        let found = distance(values.clone(), total);
        assert!(found < 2.23, "{table}: {found}");

        // Densities that are infinite at 0 begin at a bound above it, so that Simpson's rule will do.
        let mass = integral(open, from, to);
        let moment = |power: i32| integral(|x| x.powi(power) * open(x), from, to) / mass;
        let (mean, square) = (moment(1), moment(2));
        let variance = square - mean * mean;
        let n = COUNT as f64;
        let drawn = values.iter().sum::<f64>() / n;
        assert!((drawn - mean).abs() < 5.0 * (variance / n).sqrt() + 1e-3, "{table}: mean {drawn}, not {mean}");
        let fourth = integral(|x| (x - mean).powi(4) * open(x), from, to) / mass;
        let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        let error = ((fourth - variance * variance) / n).sqrt();
        assert!((spread - variance).abs() < 5.0 * error + 1e-2, "{table}: variance {spread}, not {variance}");
    }
}

/// Correlation leaves the distribution as it is, and makes neighbours alike as its definition says: a
/// rank correlation of 6 / pi × asin(c / 2) one draw apart, and of c² in c's place two draws apart.
#[test]
fn correlation_keeps_the_distribution() {
    const COUNT: u64 = 40_000;
    for (seed, Case { table, density, from, to }) in cases().into_iter().enumerate() {
        if table["type"] == "gamma" {
            continue;
        }
        let mut table = table;
        table["correlation"] = "60%".into();
        let values = draws(&random(table.clone()), COUNT, 100 + seed as u64);
        let total = from_density(|x: f64| density(x.max(1e-9)), from, to);
        let ranks: Vec<f64> = values.iter().map(|value| total(*value)).collect();
        // Uniform values have mean 1/2 and variance 1/12. The sum of correlations over all distances is
        // below (1 + 0.6) / (1 - 0.6) = 4, so that a standard error is at most twice that of independent draws.
        let n = COUNT as f64;
        let mean = ranks.iter().sum::<f64>() / n;
        assert!((mean - 0.5).abs() < 5.0 * 2.0 * (1.0 / 12.0 / n).sqrt(), "{table}: {mean}");
        let thinned: Vec<f64> = values.iter().copied().step_by(20).collect();
        // 0.6^20 is nothing: what is left is independent.
        let found = distance(thinned, &total);
        assert!(found < 2.23, "{table}: {found}");
        for lag in [1, 2] {
            let product: f64 = ranks.iter().zip(&ranks[lag..]).map(|(a, b)| (a - 0.5) * (b - 0.5)).sum();
            let correlation = product / (n - lag as f64) * 12.0;
            let expected = 6.0 / std::f64::consts::PI * (0.6f64.powi(lag as i32) / 2.0).asin();
            // Five standard errors of about 1.5 / sqrt(n).
            assert!((correlation - expected).abs() < 0.0375, "{table}: {correlation}, not {expected}");
        }
    }
}

/// The stream of every distribution, to the bit: these numbers are part of what a seed means, and may never
/// change. (That they are right is shown by the other tests.)
#[test]
fn draws_are_stable_for_ever() {
    let pinned =
        PINNED.iter().map(|(table, values)| (serde_json::from_str::<serde_json::Value>(table).unwrap(), values));
    let mut wrong = String::new();
    for (table, values) in pinned {
        let random = with_file(table.clone(), "5\n1.25\n40\n").unwrap();
        let mut sampler = Sampler::new(&random, key(2001));
        let drawn: Vec<u64> = (0..4).map(|step| sampler.draw(step).nanos()).collect();
        if drawn != values.as_slice() {
            wrong += &format!("\n    (r#\"{table}\"#, {drawn:?}),");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

const PINNED: &[(&str, [u64; 4])] = &[
    (r#"{"type":"uniform","from":"3 ms","to":"8 ms"}"#, [4_105_397, 3_437_729, 7_017_152, 7_162_472]),
    (r#"{"type":"uniform","from":"3 ms","to":"8 ms","correlation":0.5}"#, [6_894_603, 7_702_289, 5_579_331, 4_037_655]),
    (r#"{"type":"normal","mean":"5 ms","deviation":"4 ms"}"#, [8_399_139, 10_666_489, 2_685_864, 2_370_358]),
    (r#"{"type":"lognormal","median":"5 ms","sigma":0.7}"#, [8_562_781, 12_918_418, 2_750_220, 2_546_168]),
    (r#"{"type":"exponential","mean":"5 ms"}"#, [7_546_168, 12_177_959, 1_094_323, 916_644]),
    (r#"{"type":"gamma","shape":2.5,"scale":"5 ms"}"#, [6_104_280, 3_604_240, 18_411_842, 19_590_468]),
    (
        r#"{"type":"gamma","shape":0.5,"scale":"5 ms","least":"3 ms","most":"6 ms"}"#,
        [3_617_362, 4_906_898, 3_597_597, 3_945_635],
    ),
    (r#"{"type":"pareto","shape":1.3,"scale":"5 ms"}"#, [15_964_808, 32_556_274, 5_916_798, 5_757_251]),
    (r#"{"type":"weibull","shape":0.6,"scale":"5 ms"}"#, [9_928_815, 22_045_038, 397_432, 295_816]),
    (r#"{"type":"cauchy","median":"5 ms","scale":"1 ms","most":"1 s"}"#, [6_310_848, 8_779_327, 3_980_897, 3_789_351]),
    (r#"{"type":"empirical","file":"file","unit":"1 ms"}"#, [1_250_000, 1_250_000, 40_000_000, 40_000_000]),
    (
        r#"{"type":"netem","file":"file","mean":"5 ms","deviation":"5 s"}"#,
        [5_610_352, 5_610_352, 29_414_063, 29_414_063],
    ),
    (r#"{"type":"sequence","file":"file","unit":"1 ms"}"#, [5_000_000, 1_250_000, 40_000_000, 5_000_000]),
    (
        r#"{"type":"markov","first":"1 ms","second":{"type":"exponential","mean":"5 ms"},"first_to_second":0.5,"second_to_first":0.5}"#,
        [1_000_000, 27_354, 1_000_000, 1_000_000],
    ),
    (
        r#"{"type":"mixture","of":[{"weight":1,"value":"1 ms"},{"weight":2,"value":{"type":"exponential","mean":"5 ms"}}]}"#,
        [1_000_000, 1_000_000, 2_231_115, 2_625_962],
    ),
];

/// Stays of the chain are geometric, the share of the second state is stationary, and each state draws
/// from its own distribution.
#[test]
fn a_chain_stays_as_long_as_it_should() {
    let chain = serde_json::json!({
        "type": "markov", "first": "1 ms", "first_to_second": 0.1, "second_to_first": 0.25,
        "second": {"type": "uniform", "from": "10 ms", "to": "20 ms"},
    });
    let values = draws(&random(chain), 200_000, 5);
    let mut stays: [Vec<usize>; 2] = Default::default();
    let second = |value: &f64| *value > 5.0;
    for stay in values.chunk_by(|one, other| second(one) == second(other)) {
        stays[usize::from(second(&stay[0]))].push(stay.len());
    }
    // The last stay was cut off by the end.
    let last = second(&values[values.len() - 1]);
    stays[usize::from(last)].pop();
    for (state, leaving) in [(0, 0.1f64), (1, 0.25)] {
        let n = stays[state].len() as f64;
        assert!(n > 14_000.0);
        for length in 1..20 {
            let expected = (1.0 - leaving).powi(length - 1) * leaving;
            let found = stays[state].iter().filter(|stay| **stay == length as usize).count() as f64 / n;
            // Five standard errors of a binomial share.
            assert!((found - expected).abs() < 5.0 * (expected / n).sqrt(), "state {state}, {length}: {found}");
        }
    }
    // 0.1 / 0.35; correlation 0.65 from draw to draw makes the variance (1 + 0.65) / (1 - 0.65) = 4.7 fold.
    let share = values.iter().filter(|value| second(value)).count() as f64 / 200_000.0;
    assert!((share - 2.0 / 7.0).abs() < 5.0 * (4.7 * 0.204 / 200_000f64).sqrt(), "{share}");
    let of_second: Vec<f64> = values.into_iter().filter(second).collect();
    assert!(distance(of_second, |x| (x - 10.0) / 10.0) < 2.23);
}

/// A mixture is its parts, weighted.
#[test]
fn a_mixture_is_the_sum_of_its_parts() {
    let mixture = serde_json::json!({"type": "mixture", "of": [
        {"weight": 3, "value": {"type": "uniform", "from": "0 ms", "to": "10 ms"}},
        {"weight": 0, "value": "77 ms"},
        {"weight": 1, "value": {"type": "exponential", "mean": "5 ms", "least": "20 ms"}},
    ]});
    let values = draws(&random(mixture), 40_000, 6);
    let below = |x: f64| 0.75 * (x / 10.0).clamp(0.0, 1.0) + 0.25 * (1.0 - (-(x - 20.0).max(0.0) / 5.0).exp());
    assert!(distance(values, below) < 2.23);
}

#[test]
fn samples_are_equally_likely() {
    let table = serde_json::json!({"type": "empirical", "file": "file", "unit": "1 ms"});
    let samples = with_file(table, "# measured\n2.5\n10 # twice\n10\n\n0.000001\n").unwrap();
    assert_eq!(samples.least().nanos(), 1);
    let values = draws(&samples, 40_000, 7);
    for (value, share) in [(0.000001, 0.25), (2.5, 0.25), (10.0, 0.5)] {
        let found = values.iter().filter(|one| **one == value).count() as f64 / 40_000.0;
        assert!((found - share).abs() < 5.0 * (share * (1.0 - share) / 40_000f64).sqrt(), "{value}: {found}");
    }
    assert!(values.iter().all(|value| [0.000001, 2.5, 10.0].contains(value)));
}

/// Points of a distribution function come back as that function: a first value with a probability of its
/// own, a slope, a gap, a jump.
#[test]
fn points_come_back_as_the_distribution_that_they_are() {
    let table = serde_json::json!({"type": "empirical", "file": "file", "unit": "10 ms"});
    let points = with_file(table, "1, 0.2\n2, 0.5\n3, 0.5\n4, 0.6\n4, 0.9\n5, 1\n").unwrap();
    assert_eq!(points.least().to_string(), "10 ms");
    let values = draws(&points, 100_000, 8);
    let share = |from: f64, to: f64| values.iter().filter(|one| (from..=to).contains(*one)).count() as f64 / 1e5;
    for (from, to, expected) in [
        (10.0, 10.0, 0.2),
        (10.000_001, 15.0, 0.15),
        (15.0, 20.0, 0.15),
        (20.000_001, 29.999_999, 0.0),
        (30.0, 39.999_999, 0.1),
        (40.0, 40.0, 0.3),
        (40.000_001, 45.0, 0.05),
        (45.0, 50.0, 0.05),
    ] {
        let found = share(from, to);
        assert!((found - expected).abs() <= 5.0 * (expected / 1e5f64).sqrt(), "{from} to {to}: {found}");
    }
}

/// The kernel's arithmetic, ported: sch_netem's `tabledist`, whose divisions cut towards 0.
fn tabledist(mu: i64, sigma: i64, t: i64) -> i64 {
    let mut x = (sigma % 8192) * t;
    if x >= 0 {
        x += 8192 / 2;
    } else {
        x -= 8192 / 2;
    }
    x / 8192 + (sigma / 8192) * t + mu
}

/// A table of netem is scaled as netem scales it, and each entry comes as often as any other.
#[test]
fn tables_of_netem_are_scaled_as_netem_does() {
    let entries = [-32768i64, -16384, -8192, -5000, -3, 0, 0, 7, 4095, 8192, 12345, 32767];
    let text = format!("# a table\n{}\n", entries.map(|entry| entry.to_string()).join(" "));
    for (mean, deviation) in
        [(100_000_000, 20_000_000), (100_000_000, 19_999_999), (50_000_000, 40_000_001), (9, 4_097)]
    {
        let table = serde_json::json!({
            "type": "netem", "file": "file", "mean": format!("{mean} ns"), "deviation": format!("{deviation} ns"),
        });
        let random = with_file(table, &text).unwrap();
        let mut expected: Vec<u64> =
            entries.iter().map(|entry| tabledist(mean, deviation, *entry).max(0) as u64).collect();
        expected.sort_unstable();
        assert_eq!(random.least().nanos(), expected[0]);
        let mut sampler = Sampler::new(&random, key(9));
        let mut counts: HashMap<u64, u64> = HashMap::new();
        (0..60_000).for_each(|step| *counts.entry(sampler.draw(step).nanos()).or_default() += 1);
        assert!(counts.keys().all(|value| expected.contains(value)), "{counts:?}");
        for value in &expected {
            let share = expected.iter().filter(|other| *other == value).count() as f64 / 12.0;
            let found = counts[value] as f64 / 60_000.0;
            assert!((found - share).abs() < 5.0 * (share / 60_000f64).sqrt(), "{value}: {found}");
        }
    }
}

#[test]
fn a_sequence_keeps_its_order() {
    let drawn = |at_end: &str| -> Vec<f64> {
        let table = serde_json::json!({"type": "sequence", "file": "file", "unit": "1 ms", "at_end": at_end});
        draws(&with_file(table, "5\n0.5\n40\n").unwrap(), 7, 1)
    };
    assert_eq!(drawn("repeat"), [5.0, 0.5, 40.0, 5.0, 0.5, 40.0, 5.0]);
    assert_eq!(drawn("hold"), [5.0, 0.5, 40.0, 40.0, 40.0, 40.0, 40.0]);
}

/// An unchanged distribution goes on where it was; a changed one begins anew.
#[test]
fn memories_outlive_changes_of_other_parameters() {
    let table = serde_json::json!({"type": "sequence", "file": "file", "unit": "1 ms"});
    let random = with_file(table, "5\n0.5\n40\n").unwrap();
    let mut sampler = Sampler::new(&random, key(1));
    let next = |sampler: &mut Sampler<Span>, step| sampler.draw(step).nanos() / 100_000;
    assert_eq!(next(&mut sampler, 0), 50);
    sampler.configure(&random.clone());
    assert_eq!(next(&mut sampler, 1), 5);
    sampler.configure(&Span::from_millis(7).into());
    assert_eq!(sampler.constant(), Some(Span::from_millis(7)));
    assert_eq!(next(&mut sampler, 2), 70);
    sampler.configure(&random);
    assert_eq!(next(&mut sampler, 3), 50);
}

/// Draws of a step are what they are, whichever steps were asked for before, without a memory.
#[test]
fn draws_depend_on_their_step_alone() {
    for example in Random::examples(Span::from_millis(20)) {
        let memory = format!("{example:?}");
        let remembers = ["Sequence", "Markov"].iter().any(|word| memory.contains(word))
            || (memory.contains("correlation") && !memory.contains("correlation: 0"));
        if remembers {
            continue;
        }
        let (mut all, mut some) = (Sampler::new(&example, key(3)), Sampler::new(&example, key(3)));
        for step in 0..300 {
            let drawn = all.draw(step);
            if step % 7 == 3 {
                assert_eq!(some.draw(step), drawn, "{example:?}");
            }
        }
    }
}

/// Lengths are drawn like durations.
#[test]
fn lengths_can_be_random() {
    for example in Distribution::examples(Bits::new(12_000)) {
        let random = Random::Drawn(example);
        assert_eq!(random.problems(), []);
        let mut sampler = Sampler::new(&random, key(4));
        let values: Vec<u64> = (0..500).map(|step| sampler.draw(step).get()).collect();
        assert!(values.iter().all(|value| *value >= random.least().base()), "{random:?}");
        assert!(values.iter().any(|value| *value != values[0]), "{random:?}");
    }
}

#[test]
fn senseless_parameters_are_named() {
    use serde_json::json;
    let wrong = [
        (json!({"type": "uniform", "from": "2 ms", "to": "1 ms"}), "from", "is 2 ms, which is more than `to`, 1 ms"),
        (json!({"type": "normal", "mean": "2 ms", "deviation": "0 s"}), "deviation", "is 0 s; it must be more"),
        (
            json!({"type": "normal", "mean": "2 ms", "deviation": "1 ms", "least": "3 ms", "most": "2 ms"}),
            "most",
            "is 2 ms, which is less than `least`, 3 ms",
        ),
        (
            json!({"type": "normal", "mean": "2 ms", "deviation": "1 ms", "least": "1 s"}),
            "least",
            "fewer than one draw in a million lies above 1 s",
        ),
        (
            json!({"type": "exponential", "mean": "1 s", "most": "1 ns"}),
            "most",
            "fewer than one draw in a million lies between 0 s and 1 ns",
        ),
        (json!({"type": "exponential", "mean": "1 s", "correlation": 1}), "correlation", "it must be less"),
        (json!({"type": "pareto", "shape": 0, "scale": "1 ms"}), "shape", "is 0; it must be from 0.01 to 1000"),
        (json!({"type": "weibull", "shape": -1, "scale": "1 ms"}), "shape", "is -1; it must be"),
        (json!({"type": "cauchy", "median": "1 ms", "scale": "1 ms"}), "most", "is missing"),
        (
            json!({"type": "gamma", "shape": 2, "scale": "1 ms", "least": "1 s"}),
            "least",
            "fewer than one draw in a hundred",
        ),
        (
            json!({"type": "markov", "first": "1 ms", "second": "2 ms", "first_to_second": 0, "second_to_first": 1}),
            "first_to_second",
            "never reached",
        ),
        (
            json!({"type": "mixture", "of": [{"weight": -1, "value": "1 ms"}]}),
            "of[0].weight",
            "is -1; it must be from 0",
        ),
        (json!({"type": "mixture", "of": []}), "of", "has 0 parts"),
        (
            json!({"type": "mixture", "of": [{"weight": 1, "value": {"type": "exponential", "mean": "0 s"}}]}),
            "of[0].value.mean",
            "is 0 s",
        ),
    ];
    for (table, key, message) in wrong {
        let problems = random(table.clone()).problems();
        let found = problems.iter().any(|problem| problem.key == key && problem.message.contains(message));
        assert!(found, "{table}: {problems:?}");
    }
}

#[test]
fn files_that_are_none_are_explained() {
    use serde_json::json;
    let empirical = || json!({"type": "empirical", "file": "file", "unit": "1 ms"});
    let netem = || json!({"type": "netem", "file": "file", "mean": "1 ms", "deviation": "1 ms"});
    let wrong = [
        (empirical(), "", "`file` is no file of numbers: there is no number in it"),
        (empirical(), "1\n2 ms\n", "line 2: `ms` is no plain number"),
        (empirical(), "1\n2 0.5\n", "line 2: all lines must have as many columns"),
        (empirical(), "1 2 3\n", "line 1: there are 3 columns"),
        (empirical(), "1 0.5\n0.5 1\n", "line 2: values must go up, but 0.5 follows 1"),
        (empirical(), "1 0.5\n2 0.4\n", "line 2: probabilities must go up, but 0.4 follows 0.5"),
        (empirical(), "1 0.5\n2 0.9\n", "the probability of the last line is 0.9; it must be 1"),
        (netem(), "1 2 40000\n", "`file` is no table of netem: line 1: 40000 is out of range"),
        (netem(), "# nothing\n", "there is no entry in it"),
    ];
    for (table, text, message) in wrong {
        let error = with_file(table, text).unwrap_err();
        assert!(error.contains(message), "{text:?}: {error}");
    }
    let problems = with_file(empirical(), "1\n-2\n").unwrap().problems();
    assert!(problems[0].message.contains("`file` holds -2, but values are not negative"), "{problems:?}");
    let sequence = json!({"type": "sequence", "file": "file", "unit": "1 ms"});
    let problems = with_file(sequence, "1 1\n").unwrap().problems();
    assert!(problems[0].message.contains("has two columns"), "{problems:?}");
}
