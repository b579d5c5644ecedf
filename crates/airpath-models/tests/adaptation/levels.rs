// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Switching levels and the throughput behind them.

use std::sync::Arc;

use airpath_models::adaptation::{Frames, Levels, Modes, rayleigh_throughput, throughputs};
use airpath_models::fading::quantity::{Decibels, Speed};
use airpath_models::fading::{Fading, FadingConfig, FadingModelConfig, JakesConfig, SpeedConfig};

use super::{decibels, key, normal_pair, qam, ratio};

/// Error-free frames of 108 symbols: the ratio in dB at which k + 1 bits a symbol get as much through as k bits.
///
/// Solved by bisection in Python from decision regions that are integrated numerically, within 10⁻⁵ dB for rectangles
/// and 10⁻³ dB for crosses. At the first, 2 (1 − P)¹⁰⁸ of 4-QAM, 2 · 0.49684, is that of BPSK, 0.99367.
const PERFECT_DB: [f64; 7] = [8.70142, 14.21950, 16.866_68, 20.1615, 23.5932, 26.6454, 29.9381];

#[test]
fn levels_for_perfect_prediction_are_those_computed_by_hand() {
    let levels = Levels::of_greatest_throughput(&qam(0.0), 0.0);
    assert_eq!(levels.ratios()[0], 0.0);
    for (level, known) in levels.ratios()[1..].iter().zip(PERFECT_DB) {
        assert!((decibels(*level) - known).abs() < 1e-3, "{} for {known}", decibels(*level));
    }
    // The least error has nearly the same levels: the two ways of computing meet.
    let nearly = Levels::of_greatest_throughput(&qam(1e-4), 0.0);
    for (level, other) in levels.ratios()[1..].iter().zip(&nearly.ratios()[1..]) {
        assert!((decibels(*level) - decibels(*other)).abs() < 1e-3);
    }
}

#[test]
fn modes_are_used_from_their_levels_on() {
    let levels = Levels::of_greatest_throughput(&qam(0.0), 0.0);
    assert_eq!(levels.mode(0.0), Some(0));
    assert_eq!(levels.mode(f32::INFINITY), Some(7));
    for (mode, level) in levels.ratios().iter().enumerate().skip(1) {
        assert_eq!(levels.mode(*level), Some(mode));
        assert_eq!(levels.mode(level * 0.999), Some(mode - 1));
    }
}

#[test]
fn nothing_is_sent_where_hardly_any_frame_would_be_received() {
    for error_power in [0.0, 0.1, 1.0] {
        let frames = qam(error_power);
        let free = Levels::of_greatest_throughput(&frames, 0.0);
        let levels = Levels::of_greatest_throughput(&frames, 0.3);
        let begin = levels.ratios()[0];
        assert_eq!(levels.mode(begin * 0.999), None);
        let mode = levels.mode(begin).expect("sent from here");
        let success = throughputs(&frames, begin.into())[mode] / (mode + 1) as f64;
        assert!((success - 0.3).abs() < 1e-3, "{success}");
        assert_eq!(levels.ratios()[mode + 1..], free.ratios()[mode + 1..]);
    }
    // With an error as great as that, the true ratio is often good however low the predicted one is.
    assert_eq!(Levels::of_greatest_throughput(&qam(10.0), 0.3).ratios()[0], 0.0);
}

#[test]
fn frames_succeed_as_expected_of_the_prediction_of_the_fading_model() {
    // Of each channel one slot; in each of five ranges of the predicted ratio the mean difference from the
    // expectation is within 4 standard errors, for all modes at once with a probability of 0.997.
    const CHANNELS: u64 = 6000;
    let (mean, error) = (ratio(16.0), 0.1);
    let model = FadingModelConfig::Jakes(JakesConfig { sinusoids: 32, k_factor: None, angle: None });
    let config = FadingConfig {
        model,
        speed: Some(SpeedConfig::Constant(Speed(20.0))),
        snr: Decibels(16.0),
        resources: 1,
        prediction_error: error,
        ..FadingConfig::examples().remove(0)
    };
    let frames = qam(error * mean);
    let mut sums = [[[0.0; 2]; 8]; 5];
    let mut counts = [0.0; 5];
    for seed in 0..CHANNELS {
        let mut fading = Fading::new(&config, key(seed));
        let (predicted, snr) = (fading.predicted(640)[0], fading.snr(640)[0]);
        let range = [8.0, 12.0, 15.0, 18.0].iter().filter(|level| decibels(predicted) > **level).count();
        counts[range] += 1.0;
        for (mode, expected) in throughputs(&frames, predicted.into()).iter().enumerate() {
            let success = 1.0 - frames.modes.frame_error(mode, snr, 108);
            let difference = success - expected / (mode + 1) as f64;
            sums[range][mode][0] += difference;
            sums[range][mode][1] += difference * difference;
        }
    }
    for (range, (sums, count)) in sums.iter().zip(counts).enumerate() {
        assert!(count > 500.0, "{count} in range {range}");
        for (mode, [sum, squares]) in sums.iter().enumerate() {
            let standard_error = squares.sqrt() / count;
            // Sums of few sinusoids are not quite Gaussian: a hundredth for that.
            let bound = 4.0 * standard_error + 0.003;
            assert!((sum / count).abs() < bound, "range {range} mode {mode}: {} for {bound}", sum / count);
        }
    }
}

#[test]
fn throughput_over_rayleigh_fading_is_that_of_draws() {
    let mean = ratio(16.0);
    for error in [0.0, 0.1] {
        let frames = qam(error * mean);
        let levels = Levels::of_greatest_throughput(&frames, 0.0);
        let key = key(99);
        let (mut sum, mut squares) = (0.0, 0.0);
        const DRAWS: u64 = 100_000;
        for draw in 0..DRAWS {
            let [h, w] = [2 * draw, 2 * draw + 1].map(|step| normal_pair(key, step).map(|part| part / 2f64.sqrt()));
            let of = |place: usize| (1.0 - error) * h[place] + (error * (1.0 - error)).sqrt() * w[place];
            let predicted = (of(0).powi(2) + of(1).powi(2)) * mean;
            let snr = (h[0].powi(2) + h[1].powi(2)) * mean;
            let mode = levels.mode(predicted as f32).expect("there is always a mode");
            let bits = (mode + 1) as f64 * (1.0 - frames.modes.frame_error(mode, snr as f32, 108));
            sum += bits;
            squares += bits * bits;
        }
        let drawn = sum / DRAWS as f64;
        let standard_error = ((squares / DRAWS as f64 - drawn * drawn) / DRAWS as f64).sqrt();
        let computed = rayleigh_throughput(&levels, &frames, mean);
        // Four standard errors: 0.9999.
        assert!((drawn - computed).abs() < 4.0 * standard_error, "{error}: {drawn} for {computed}");
    }
}

#[test]
fn no_other_levels_get_more_through() {
    let (mean, error) = (ratio(16.0), 0.1);
    let frames = qam(error * mean);
    let levels = Levels::of_greatest_throughput(&frames, 0.0);
    let best = rayleigh_throughput(&levels, &frames, mean);
    for factor in [0.8f32, 0.9, 1.1, 1.25] {
        let moved = Levels::given(levels.ratios().iter().map(|level| level * factor).collect());
        let other = rayleigh_throughput(&moved, &frames, mean);
        assert!(other < best, "{factor}: {other} for {best}");
    }
    let perfect = Levels::of_greatest_throughput(&qam(0.0), 0.0);
    assert!(rayleigh_throughput(&perfect, &frames, mean) < best);
}

#[test]
fn prediction_errors_cost_about_as_much_as_in_the_paper() {
    // Sternad and Falahati 2004, abstract: 8 to 12 % of the spectral efficiency for errors of a prediction over a
    // third of a wavelength, which Alfredsson et al. 2006 give as a normalised mean square error of 0.1.
    for mean_db in [10.0, 13.0, 16.0, 19.0, 22.0, 25.0, 28.0] {
        let mean = ratio(mean_db);
        let through = |error: f64| {
            let frames = qam(error * mean);
            rayleigh_throughput(&Levels::of_greatest_throughput(&frames, 0.0), &frames, mean)
        };
        let loss = 1.0 - through(0.1) / through(0.0);
        assert!((0.08..0.13).contains(&loss), "{mean_db} dB: {loss}");
    }
}

#[test]
fn coded_modes_have_levels_near_their_thresholds() {
    // The best mode loses few of its blocks: at its level hardly more than a third, of which the next mode makes up.
    let config = toml::from_str("type = 'coded'\ntable = 'nr_cqi_2'").unwrap();
    let frames = Frames { modes: Arc::new(Modes::new(&config, ())), symbols: 840, error_power: 0.0 };
    let levels = Levels::of_greatest_throughput(&frames, 0.0);
    assert_eq!(levels.ratios()[0], 0.0);
    for (mode, level) in levels.ratios().iter().enumerate().skip(1) {
        assert!(*level > levels.ratios()[mode - 1], "{mode}");
        let loss = frames.modes.frame_error(mode, *level, 840);
        let share = frames.modes.bits_per_symbol(mode - 1) / frames.modes.bits_per_symbol(mode);
        assert!((1.0 - loss - share).abs() < 0.01, "{mode}: {loss} for {share}");
    }
}

#[test]
fn levels_for_another_mean_lose_what_the_documents_state() {
    let nominal = Levels::of_greatest_throughput(&qam(0.1 * ratio(16.0)), 0.0);
    for (mean_db, stated) in [(8.0, 0.15), (12.0, 0.017), (20.0, 0.004)] {
        let mean = ratio(mean_db);
        let frames = qam(0.1 * mean);
        let best = rayleigh_throughput(&Levels::of_greatest_throughput(&frames, 0.0), &frames, mean);
        let loss = 1.0 - rayleigh_throughput(&nominal, &frames, mean) / best;
        assert!((loss / stated - 1.0).abs() < 0.06, "{mean_db} dB: {loss} for {stated}");
    }
    // Half of a step of the grid on which levels follow a local mean.
    for mean_db in [15.0, 17.0] {
        let mean = ratio(mean_db);
        let frames = qam(0.1 * mean);
        let best = rayleigh_throughput(&Levels::of_greatest_throughput(&frames, 0.0), &frames, mean);
        let loss = 1.0 - rayleigh_throughput(&nominal, &frames, mean) / best;
        assert!(loss < 0.001, "{mean_db} dB: {loss}");
    }
}
