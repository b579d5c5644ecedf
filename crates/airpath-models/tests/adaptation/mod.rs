// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Link adaptation: modes, switching levels and choices, against closed forms, brute force and Monte Carlo.

mod choices;
mod coded;
mod levels;
mod measured;
mod outer_loop;
mod qam;

use std::sync::Arc;

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use airpath_models::adaptation::{Frames, Modes, ModesConfig};

fn key(seed: u64) -> DrawKey {
    DrawKey::new(Seed(seed), &DrawScope { hop: "radio", direction: Direction::Downlink, role: "test", instance: 0 })
}

/// A pair of independent draws of the standard normal distribution (Box and Muller 1958).
fn normal_pair(key: DrawKey, step: u64) -> [f64; 2] {
    let radius = (-2.0 * key.unit(step, 0).ln()).sqrt();
    let (sin, cos) = (std::f64::consts::TAU * key.unit(step, 1)).sin_cos();
    [radius * cos, radius * sin]
}

fn ratio(db: f64) -> f64 {
    10f64.powf(db / 10.0)
}

fn decibels(ratio: f32) -> f64 {
    10.0 * f64::from(ratio).log10()
}

fn qam(error_power: f64) -> Frames {
    Frames { modes: Arc::new(Modes::new(&ModesConfig::default(), ())), symbols: 108, error_power }
}
