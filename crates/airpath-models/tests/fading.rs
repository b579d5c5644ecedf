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
    let speed = SpeedConfig::Constant(Speed(doppler_hz * LIGHT / config.carrier.0));
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
fn slots_are_a_grid_by_number() {
    let fading = Fading::new(&jakes(10.0, None), key(1));
    let starts: Vec<u64> = (0..4).map(|slot| fading.slot_start(slot).nanos()).collect();
    assert_eq!(starts, [0, 666_666, 1_333_333, 2_000_000]);
}

#[test]
fn power_is_correlated_as_the_square_of_j0() {
    // The correlation of |h|² is J0² for a Gaussian h; finite sums of sinusoids come near. A correlation of 1000
    // independent pairs has a standard error of about 2/√1000 = 0.06 for powers, which have heavy tails; pairs from
    // four far places of each key halve it to 0.03. The bound is four of them.
    for doppler in [20.0, 70.0, 132.0] {
        for lag in [2u64, 6, 12] {
            let (mut product, mut square, mut mean, mut n) = (0.0, 0.0, 0.0, 0.0);
            for seed in 0..1000 {
                let mut fading = Fading::new(&jakes(doppler, None), key(seed));
                for first in [0u64, 320, 640, 960] {
                    let (one, two) = (f64::from(fading.snr(first)[0]), f64::from(fading.snr(first + lag)[0]));
                    product += one * two;
                    square += (one * one + two * two) / 2.0;
                    mean += (one + two) / 2.0;
                    n += 1.0;
                }
            }
            let (product, square, mean) = (product / n, square / n, mean / n);
            let correlation = (product - mean * mean) / (square - mean * mean);
            let j0 = libm::j0(TAU * doppler * lag as f64 / 1500.0);
            assert!((correlation - j0 * j0).abs() < 0.12, "{doppler} Hz, {lag}: {correlation} for {}", j0 * j0);
        }
    }
}

#[test]
fn levels_are_crossed_and_fades_last_as_in_theory() {
    // Rice 1948: N = √(2π) f_d ρ e^(−ρ²), mean fade (e^(ρ²) − 1)/(ρ f_d √(2π)). 200 keys of 20 s have some 69,000 fades
    // at the lowest level; the rates of single keys differ by some 15 %, so the mean by 1 %. The bound leaves 4 % for
    // that and as much for fades that begin and end between two slots.
    let doppler = 25.0;
    for rho in [0.3f64, 0.6, 1.0] {
        let (mut crossings, mut below, mut slots) = (0.0, 0.0, 0.0);
        for seed in 0..200 {
            let mut fading = Fading::new(&jakes(doppler, None), key(seed));
            let mut before = false;
            for slot in 0..30_000 {
                let faded = f64::from(fading.snr(slot)[0]) < rho * rho;
                crossings += f64::from(u8::from(faded && !before && slot > 0));
                below += f64::from(u8::from(faded));
                slots += 1.0;
                before = faded;
            }
        }
        let rate = crossings / slots * 1500.0;
        let fade = below / 1500.0 / crossings;
        let theory = (TAU).sqrt() * doppler * rho * (-rho * rho).exp();
        let mean_fade = ((rho * rho).exp() - 1.0) / (rho * doppler * TAU.sqrt());
        assert!((rate / theory - 1.0).abs() < 0.08, "level {rho}: {rate} for {theory}");
        assert!((fade / mean_fade - 1.0).abs() < 0.08, "level {rho}: {fade} for {mean_fade}");
    }
}

#[test]
fn marginals_are_rayleigh_and_rice() {
    let powers = |k: Option<f64>| -> Vec<f64> {
        let config = jakes(50.0, k.map(|k| Decibels(10.0 * k.log10())));
        (0..1000).map(|seed| Fading::new(&config, key(seed)).snr(1234)[0].into()).collect()
    };
    let rayleigh = kolmogorov(powers(None), |power| 1.0 - (-power).exp());
    assert!(rayleigh < 1.95, "{rayleigh}");
    // The power of Rice with K: a Poisson mixture of gamma distributions, of which the tail is summed.
    let k = 4.0;
    let rice = |power: f64| {
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
    let distance = kolmogorov(powers(Some(k)), rice);
    assert!(distance < 1.95, "{distance}");
    // The test tells the two apart.
    assert!(kolmogorov(powers(Some(k)), |power| 1.0 - (-power).exp()) > 4.0);
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
        speed: SpeedConfig::Constant(Speed(10.0)),
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
    let wrong: [(&[u8], &str); 4] =
        [(b"", "no number"), (b"1 2\n3", "line 2: 1 numbers"), (b"1\nx", "line 2"), (b"NaN", "line 1")];
    for (text, says) in wrong {
        assert!(SnrTable::parse(text).unwrap_err().contains(says), "{says}");
    }
}
