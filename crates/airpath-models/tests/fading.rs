// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Fading channels against theory, with fixed seeds; and the same value whatever is asked before.

use std::f64::consts::TAU;

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use airpath_models::fading::quantity::{Decibels, Distance, Seconds, Speed};
use airpath_models::fading::*;
use airpath_models::random::AtEnd;

const LIGHT: f64 = 299_792_458.0;

fn key(seed: u64) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: "radio", direction: Direction::Downlink, role: "fading", instance: 0 })
}

fn jakes(doppler_hz: f64, k_factor: Option<Decibels>) -> FadingConfig {
    let model = FadingModelConfig::Jakes(JakesConfig { sinusoids: 16, k_factor, angle: None });
    let config = FadingConfig::examples().remove(0);
    let speed = Some(SpeedConfig::Constant(Speed(doppler_hz * LIGHT / config.carrier.0)));
    FadingConfig { model, speed, snr: Decibels(0.0), resources: 1, ..config }
}

/// Greatest distance between the distribution of `values` and `theory`, times the root of their number: below 1.95
/// with a probability of 0.999 if they are the same (Kolmogorov and Smirnov).
fn kolmogorov(mut values: Vec<f64>, theory: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = |(place, value): (usize, &f64)| {
        let theory = theory(*value);
        (theory - place as f64 / n).abs().max((theory - (place + 1) as f64 / n).abs())
    };
    values.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn examples_have_no_problems_and_any_order_gives_the_same_bits() {
    for config in FadingConfig::examples() {
        assert_eq!(config.problems(), [], "{config:?}");
        let mut whole = Fading::new(&config, key(7));
        let values = |fading: &mut Fading, slot: u64| -> Vec<u32> {
            let snr: Vec<f32> = fading.snr(slot).to_vec();
            snr.iter().chain(fading.predicted(slot)).map(|value| value.to_bits()).collect()
        };
        let all: Vec<Vec<u32>> = (0..1000).map(|slot| values(&mut whole, slot)).collect();
        assert_eq!(all[0].len(), usize::from(config.resources) * 2);
        let mut other = Fading::new(&config, key(7));
        for step in 0..500 {
            let slot = step * 617 % 1000;
            assert_eq!(values(&mut other, slot), all[slot as usize], "{slot} {config:?}");
        }
    }
}

#[test]
fn values_are_the_same_bits_on_every_machine() {
    // FNV-1a over the bits of all examples. A trace is a function of the seed and the scenario, so that a change of
    // this number is a change of every recorded run with fading.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for config in FadingConfig::examples() {
        let mut fading = Fading::new(&config, key(11));
        for slot in (0..300).chain(1_000_000..1_000_100) {
            let snr: Vec<f32> = fading.snr(slot).to_vec();
            for value in snr.iter().chain(fading.predicted(slot)) {
                hash = (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    assert_eq!(hash, 0x1923_b5aa_3116_0fa3, "{hash:#x}");
}

#[test]
fn slots_are_a_grid_by_number() {
    let fading = Fading::new(&jakes(10.0, None), key(1));
    let starts: Vec<u64> = (0..4).map(|slot| fading.slot_start(slot).nanos()).collect();
    assert_eq!(starts, [0, 666_666, 1_333_333, 2_000_000]);
}

/// Flat Rayleigh fading by both models.
fn rayleigh(doppler_hz: f64) -> [FadingConfig; 2] {
    let noise = FadingModelConfig::FilteredNoise(FilteredNoiseConfig {});
    [jakes(doppler_hz, None), FadingConfig { model: noise, ..jakes(doppler_hz, None) }]
}

#[test]
fn power_is_correlated_as_the_square_of_j0() {
    // The correlation of |h|² is J0² for a Gaussian h; finite sums of sinusoids come near. A correlation of 1000
    // independent pairs has a standard error of about 2/√1000 = 0.06 for powers, which have heavy tails; pairs from
    // four far places of each key halve it to 0.03. The bound is four of them.
    const LAGS: [u64; 3] = [2, 6, 12];
    for doppler in [20.0, 70.0, 132.0] {
        for config in rayleigh(doppler) {
            let (mut products, mut squares, mut means, n) = ([0.0; 3], [0.0; 3], [0.0; 3], 4000.0);
            for seed in 0..1000 {
                let mut fading = Fading::new(&config, key(seed));
                for first in [0u64, 320, 640, 960] {
                    let one = f64::from(fading.snr(first)[0]);
                    for (place, lag) in LAGS.iter().enumerate() {
                        let two = f64::from(fading.snr(first + lag)[0]);
                        products[place] += one * two / n;
                        squares[place] += (one * one + two * two) / 2.0 / n;
                        means[place] += (one + two) / 2.0 / n;
                    }
                }
            }
            for (place, lag) in LAGS.iter().enumerate() {
                let mean = means[place] * means[place];
                let correlation = (products[place] - mean) / (squares[place] - mean);
                let j0 = libm::j0(TAU * doppler * *lag as f64 / 1500.0);
                let model = &config.model;
                assert!(
                    (correlation - j0 * j0).abs() < 0.12,
                    "{model:?} {doppler} Hz, {lag}: {correlation} {}",
                    j0 * j0
                );
            }
        }
    }
}

#[test]
fn levels_are_crossed_and_fades_last_as_in_theory() {
    // Rice 1948: N = √(2π) f_d ρ e^(−ρ²), mean fade (e^(ρ²) − 1)/(ρ f_d √(2π)). 60 slots in a period of the Doppler
    // frequency. 120 keys of 500 periods have some 41,000 fades at the lowest level; the rates of single keys differ by
    // some 15 %, so the mean by 1.4 %. The bound leaves three times that, and as much for fades that begin and end
    // between two slots.
    const SLOTS: u64 = 30_000;
    for (doppler, first_key) in [(10.0, 0), (30.0, 1000), (100.0, 2000)] {
        // Filtered noise takes longer, and is ergodic: fewer keys at one frequency tell as much.
        let [sinusoids, noise] = rayleigh(doppler);
        for (config, keys) in [(sinusoids, 120), (noise, if doppler == 30.0 { 40 } else { 0 })] {
            if keys == 0 {
                continue;
            }
            let config = FadingConfig { slots_per_second: (60.0 * doppler) as u32, ..config };
            let (mut crossings, mut below) = ([0.0; 3], [0.0; 3]);
            for seed in first_key..first_key + keys {
                let mut fading = Fading::new(&config, key(seed));
                let mut before = [true; 3];
                for slot in 0..SLOTS {
                    let snr = f64::from(fading.snr(slot)[0]);
                    for (place, rho) in [0.3f64, 0.6, 1.0].into_iter().enumerate() {
                        let faded = snr < rho * rho;
                        crossings[place] += f64::from(u8::from(faded && !before[place]));
                        below[place] += f64::from(u8::from(faded));
                        before[place] = faded;
                    }
                }
            }
            let seconds = (keys * SLOTS) as f64 / (60.0 * doppler);
            for (place, rho) in [0.3f64, 0.6, 1.0].into_iter().enumerate() {
                let rate = crossings[place] / seconds;
                let fade = below[place] / (60.0 * doppler) / crossings[place];
                let theory = TAU.sqrt() * doppler * rho * (-rho * rho).exp();
                let mean_fade = ((rho * rho).exp() - 1.0) / (rho * doppler * TAU.sqrt());
                let model = &config.model;
                assert!((rate / theory - 1.0).abs() < 0.08, "{model:?} {doppler} {rho}: {rate} for {theory}");
                assert!((fade / mean_fade - 1.0).abs() < 0.08, "{model:?} {doppler} {rho}: {fade} for {mean_fade}");
            }
        }
    }
}

#[test]
fn marginals_are_rayleigh_and_rice() {
    let powers = |config: &FadingConfig| -> Vec<f64> {
        (0..1000).map(|seed| Fading::new(config, key(seed)).snr(1234)[0].into()).collect()
    };
    // The power of Rice with K: a Poisson mixture of gamma distributions, of which the tail is summed.
    let rice = |k: f64, power: f64| {
        let x = (k + 1.0) * power;
        let (mut poisson, mut term, mut upper, mut sum) = ((-k).exp(), (-x).exp(), (-x).exp(), 0.0);
        for n in 0..80 {
            sum += poisson * (1.0 - upper);
            poisson *= k / f64::from(n + 1);
            term *= x / f64::from(n + 1);
            upper += term;
        }
        sum
    };
    for (doppler, k) in [(20.0, 1.0), (70.0, 4.0), (132.0, 10.0)] {
        for config in rayleigh(doppler) {
            let distance = kolmogorov(powers(&config), |power| 1.0 - (-power).exp());
            assert!(distance < 1.95, "{:?} {doppler} Hz: {distance}", config.model);
        }
        let config = jakes(doppler, Some(Decibels(10.0 * libm::log10(k))));
        let distance = kolmogorov(powers(&config), |power| rice(k, power));
        assert!(distance < 1.95, "{doppler} Hz, K = {k}: {distance}");
        // The test tells the two apart, but for a K near 0.
        let other = kolmogorov(powers(&config), |power| 1.0 - (-power).exp());
        assert!(k < 2.0 || other > 4.0, "{doppler} Hz, K = {k}: {other}");
    }
}

#[test]
fn a_route_moves_the_mean_over_the_distance_from_the_base_station() {
    // From 1 km north of the base station to it in 100 s, past 500 m, the reference: 0 dB at 500 m, −20·log10 2 =
    // −6.02 dB at the beginning, 20·log10 5 = 13.98 dB at 100 m.
    use airpath_models::file::FileRef;
    let degrees = 1000.0 / 111_195.080_2;
    let at = |time, latitude| (time, Position { latitude, longitude: 24.0 });
    let track = Track { points: vec![at(0.0, 60.0 + degrees), at(100.0, 60.0)] };
    let config = FadingConfig {
        model: FadingModelConfig::Constant(ConstantConfig {}),
        speed: None,
        route: Some(FileRef::with_data("drive.gpx", track)),
        path_loss: Some(PathLossConfig {
            law: Law::LogDistance { exponent: 2.0 },
            reference: Distance(500.0),
            ahead: None,
            aside: None,
            latitude: Some(60.0),
            longitude: Some(24.0),
        }),
        ..jakes(0.0, None)
    };
    assert_eq!(config.problems(), []);
    let mut fading = Fading::new(&config, key(1));
    for (slot, decibels) in [(0, -6.0206), (75_000, 0.0), (135_000, 13.9794)] {
        let found = 10.0 * f64::from(fading.snr(slot)[0]).log10();
        assert!((found - decibels).abs() < 0.001, "{slot}: {found}");
    }
    let both = FadingConfig { speed: Some(SpeedConfig::default()), ..config };
    assert_eq!(both.problems()[0].key, "speed");
}

#[test]
fn resources_are_correlated_as_the_taps_say() {
    // For Gaussian taps the correlation of powers is |Σ p e^(−j2πΔfτ)|². 3000 keys: standard error below 0.03; four.
    let taps = vec![(Seconds(0.0), Decibels(0.0)), (Seconds(500e-9), Decibels(-3.0)), (Seconds(2e-6), Decibels(-6.0))];
    let model = FadingModelConfig::Taps(TapsConfig { taps: taps.clone(), sinusoids: 8 });
    let config = FadingConfig { model, resources: 25, ..jakes(132.0, None) };
    let draws: Vec<Vec<f64>> = (0..3000)
        .map(|seed| Fading::new(&config, key(seed)).snr(0).iter().map(|snr| f64::from(*snr)).collect())
        .collect();
    let n = draws.len() as f64;
    let mean = |place: usize| draws.iter().map(|snr| snr[place]).sum::<f64>() / n;
    let covariance =
        |one: usize, two: usize| draws.iter().map(|snr| snr[one] * snr[two]).sum::<f64>() / n - mean(one) * mean(two);
    let all: f64 = taps.iter().map(|(_, power)| power.ratio()).sum();
    for apart in [1usize, 3, 5, 10, 20] {
        let angle = |delay: f64| TAU * apart as f64 * 200e3 * delay;
        let re: f64 = taps.iter().map(|(delay, power)| power.ratio() / all * angle(delay.0).cos()).sum();
        let im: f64 = taps.iter().map(|(delay, power)| power.ratio() / all * angle(delay.0).sin()).sum();
        let measured = covariance(2, 2 + apart) / (covariance(2, 2) * covariance(2 + apart, 2 + apart)).sqrt();
        assert!((measured - (re * re + im * im)).abs() < 0.1, "{apart}: {measured} for {}", re * re + im * im);
    }
    assert!((mean(0) - 1.0).abs() < 0.08 && (mean(24) - 1.0).abs() < 0.08);
}

#[test]
fn shadowing_has_its_deviation_and_its_correlation() {
    let shadowing = ShadowingConfig { deviation: Decibels(4.0), pole: 0.74, every: Distance(2.0) };
    let config = FadingConfig {
        model: FadingModelConfig::Constant(ConstantConfig {}),
        speed: Some(SpeedConfig::Constant(Speed(10.0))),
        slots_per_second: 10,
        shadowing: Some(shadowing),
        ..jakes(0.0, None)
    };
    let mut fading = Fading::new(&config, key(3));
    // A metre a slot: 40 km are 20,000 samples, of which (1 − a²)/(1 + a²) = 0.29 are independent: standard error
    // of the deviation 4/√(2·5800) = 0.037 dB, of a correlation below 0.015; four of them.
    let decibels: Vec<f64> = (0..40_000).map(|slot| 10.0 * f64::from(fading.snr(slot)[0]).log10()).collect();
    let samples = |odd: usize| -> Vec<f64> { decibels.iter().skip(odd).step_by(2).copied().collect() };
    for odd in [0, 1] {
        let samples = samples(odd);
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let at = |lag: usize| {
            samples.iter().zip(&samples[lag..]).map(|(one, two)| (one - mean) * (two - mean)).sum::<f64>() / n
        };
        assert!((at(0).sqrt() - 4.0).abs() < 0.15, "{odd}: {}", at(0).sqrt());
        if odd == 0 {
            for (lag, theory) in [(1, 0.74), (2, 0.74 * 0.74), (5, 0.74f64.powi(5))] {
                assert!((at(lag) / at(0) - theory).abs() < 0.06, "{lag}: {} for {theory}", at(lag) / at(0));
            }
        }
    }
}

#[test]
fn predictions_err_as_much_as_asked() {
    // Powers show E|ĥ|² = 1 − e, and a correlation of |h|² and |ĥ|² that is that of h and ĥ squared, 1 − e. A mean of
    // 4000 exponential powers has a standard error of 1/√4000 = 0.016; the bound is four of them.
    for error in [0.0, 0.1, 0.5] {
        let config = FadingConfig { prediction_error: error, ..jakes(132.0, None) };
        let (mut sums, n) = ([0.0f64; 5], 4000.0);
        for seed in 0..4000 {
            let mut fading = Fading::new(&config, key(seed));
            let (real, predicted) = (f64::from(fading.snr(100)[0]), f64::from(fading.predicted(100)[0]));
            let terms = [real, predicted, real * real, predicted * predicted, real * predicted];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term / n);
        }
        let [real, predicted, real2, predicted2, both] = sums;
        let correlation =
            (both - real * predicted) / ((real2 - real * real) * (predicted2 - predicted * predicted)).sqrt();
        assert!((predicted - (1.0 - error)).abs() < 0.07, "{error}: {predicted}");
        assert!((correlation - (1.0 - error)).abs() < 0.07, "{error}: {correlation}");
    }
    for error in [1.0, 2.0, -0.1, f64::NAN] {
        let config = FadingConfig { prediction_error: error, ..jakes(132.0, None) };
        assert_eq!(config.problems()[0].key, "prediction_error", "{error}");
    }
}

#[test]
fn recorded_ratios_come_back() {
    use airpath_models::file::{FileFormat, FileRef};
    let table = || FileRef::with_data("snr.csv", SnrTable::parse(b"0, 10 # first\n\n3,-3\n20 7\n").unwrap());
    let given = [[0.0, 10.0], [3.0, -3.0], [20.0, 7.0]];
    for (at_end, last) in [(AtEnd::Repeat, 1), (AtEnd::Hold, 2)] {
        let model = FadingModelConfig::Recorded(RecordedConfig { file: table(), at_end });
        let mut fading =
            Fading::new(&FadingConfig { model, resources: 2, snr: Decibels(1.0), ..jakes(5.0, None) }, key(1));
        for (slot, row) in [(0, 0), (1, 1), (2, 2), (100, last)] {
            for resource in [0, 1] {
                let decibels = 10.0 * f64::from(fading.snr(slot)[resource]).log10();
                assert!((decibels - given[row][resource] - 1.0).abs() < 1e-5, "{slot} {resource} {decibels}");
            }
        }
    }
    let wrong: [(&[u8], &str); 8] = [
        (b"", "no number"),
        (b"# only a comment\n\n", "no number"),
        (b"1 2\n3", "line 2: 1 numbers"),
        (b"1\nx", "line 2, column 1: `x`"),
        (b"1,2\n3,NaN", "line 2, column 2: `NaN`"),
        (b"1\n\ninf", "line 3, column 1: `inf`"),
        (b"1,,2", "line 1, column 2: there is no number"),
        (b"\xff", "no text"),
    ];
    for (text, says) in wrong {
        assert!(SnrTable::parse(text).unwrap_err().contains(says), "{says}");
    }
}
