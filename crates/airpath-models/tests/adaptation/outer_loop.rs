// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The outer loop over fading channels of which the prediction has an error.

use std::sync::Arc;

use airpath_models::adaptation::{Adaptation, AdaptationConfig, Frames, Modes, ModesConfig};
use airpath_models::fading::quantity::{Decibels, Speed};
use airpath_models::fading::{Fading, FadingConfig, FadingModelConfig, JakesConfig, SpeedConfig};

use super::{key, qam, ratio};

/// Share of lost frames, and mean bits a symbol of the received ones, over 40,000 slots of a Rayleigh channel at
/// 30 km/h and the mean ratio `mean_db`.
fn run(adaptation: &str, frames: Frames, mean_db: f64) -> (f64, f64) {
    const SLOTS: u64 = 40_000;
    let modes = Arc::clone(&frames.modes);
    let config: AdaptationConfig = toml::from_str(adaptation).unwrap();
    assert_eq!([config.problems(), config.problems_with(&modes)].concat(), []);
    let mut adaptation = Adaptation::new(&config, frames);
    let mut fading = Fading::new(
        &FadingConfig {
            model: FadingModelConfig::Jakes(JakesConfig { sinusoids: 16, k_factor: None, angle: None }),
            speed: Some(SpeedConfig::Constant(Speed(30.0 / 3.6))),
            snr: Decibels(mean_db),
            resources: 1,
            prediction_error: 0.1,
            ..FadingConfig::examples().remove(0)
        },
        key(5),
    );
    let draws = key(6);
    let (mut sent, mut lost, mut bits) = (0.0, 0.0, 0.0);
    for slot in 0..SLOTS {
        let Some(mode) = adaptation.choose(fading.predicted(slot)[0]) else { continue };
        let received = draws.unit(slot, 0) >= modes.frame_error(mode, fading.snr(slot)[0], 108);
        adaptation.heard(received, 1.0);
        sent += 1.0;
        lost += f64::from(u8::from(!received));
        bits += if received { modes.bits_per_symbol(mode) } else { 0.0 };
    }
    (lost / sent, bits / SLOTS as f64)
}

fn coded() -> Frames {
    let config: ModesConfig = toml::from_str("type = 'coded'\ntable = 'nr_mcs_1'").unwrap();
    Frames { modes: Arc::new(Modes::new(&config, ())), symbols: 108, error_power: 0.0 }
}

#[test]
fn the_share_of_lost_frames_is_the_target() {
    // Certain rather than likely: over 40,000 frames a step of 0.5 dB and offsets within 20 dB leave a difference of
    // at most 20/(0.5 · 40,000) = 0.001. With nothing done the share is elsewhere.
    for (frames, mean_db) in [(qam(0.0), 30.0), (coded(), 25.0)] {
        for (text, target) in [("10%", 0.1), ("1%", 0.01)] {
            let loop_text = format!("type = 'outer_loop'\ntarget = '{text}'");
            let (lost, bits) = run(&loop_text, frames.clone(), mean_db);
            let (without, _) = run("type = 'thresholds'", frames.clone(), mean_db);
            assert!((lost - target).abs() <= 0.001, "{text}: {lost}");
            assert!((without - target).abs() > 0.005, "{text}: {without}");
            assert!(bits > 1.0, "{bits}");
        }
    }
}

#[test]
fn a_target_out_of_reach_ends_at_the_limit_and_is_left_again() {
    let frames = qam(0.0);
    let config: AdaptationConfig = toml::from_str("type = 'outer_loop'\nlimit = '3 dB'").unwrap();
    let mut adaptation = Adaptation::new(&config, frames);
    let snr = ratio(12.0) as f32;
    assert_eq!(adaptation.choose(snr), Some(1));
    for _ in 0..1000 {
        adaptation.heard(false, 1.0);
    }
    // 12 − 3 dB is still above the level of 4-QAM at 8.7 dB, 11 − 3 dB is not.
    assert_eq!((adaptation.choose(snr), adaptation.choose(ratio(11.0) as f32)), (Some(1), Some(0)));
    // Up again by 0.5/9 dB for each received frame: 3 dB in 54.
    for _ in 0..54 {
        adaptation.heard(true, 1.0);
    }
    assert_eq!(adaptation.choose(ratio(8.7015) as f32), Some(1));
}

#[test]
fn an_outer_loop_never_stops_sending() {
    // What is sent at all the levels alone say: after any number of losses the lowest mode is still tried.
    let config: AdaptationConfig = toml::from_str("type = 'outer_loop'\nleast_success = '30%'").unwrap();
    let mut adaptation = Adaptation::new(&config, qam(0.0));
    assert_eq!(adaptation.choose(ratio(0.0) as f32), None);
    for _ in 0..1000 {
        adaptation.heard(false, 1.0);
    }
    assert_eq!((adaptation.choose(ratio(0.0) as f32), adaptation.choose(ratio(6.0) as f32)), (None, Some(0)));
}

#[test]
fn wrong_parameters_are_refused() {
    for (text, key) in [
        ("target = '0'", "target"),
        ("target = '95%'", "target"),
        ("step = '0 dB'", "step"),
        ("limit = '99 dB'", "limit"),
    ] {
        let config: AdaptationConfig = toml::from_str(&format!("type = 'outer_loop'\n{text}")).unwrap();
        assert_eq!(config.problems()[0].key, key);
    }
}
