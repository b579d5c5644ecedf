// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cost of fading channels: nanoseconds by user and slot, of a channel's construction, and of a jump to a far slot.
//!
//! `cargo run --release -p airpath-models --example fading_cost`: 100 users of 25 resources, each asked in turn for the
//! true and the predicted ratios of every slot, as a medium asks; the least of thirty runs.

use std::hint::black_box;
use std::time::Instant;

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use airpath_models::fading::{Fading, FadingConfig};

const USERS: u64 = 100;
const SLOTS: u64 = 128;

const CHANNELS: [(&str, &str); 6] = [
    ("flat", r#"{ "type": "jakes" }"#),
    ("flat, filtered noise", r#"{ "type": "filtered_noise" }"#),
    ("cdl c", r#"{ "type": "cdl", "profile": "c", "delay_spread": "300 ns" }"#),
    ("tu12_at5_mhz", r#"{ "type": "profile", "profile": "tu12_at5_mhz" }"#),
    ("cost207_tu (12 taps)", r#"{ "type": "profile", "profile": "cost207_tu" }"#),
    (
        "cost207_tu, shadowing",
        r#"{ "type": "profile", "profile": "cost207_tu", "shadowing": { "deviation": "4 dB" } }"#,
    ),
];

fn channel(text: &str, error: f64) -> FadingConfig {
    let mut value: serde_json::Value = serde_json::from_str(text).expect("an example is valid");
    for (key, given) in [("speed", "75 km/h".into()), ("resources", 25.into()), ("prediction_error", error.into())] {
        value[key] = given;
    }
    serde_json::from_value(value).expect("an example is valid")
}

fn key(user: u64) -> DrawKey {
    DrawKey::new(Seed(1), &DrawScope { hop: "cell", direction: Direction::Downlink, role: "fading", instance: user })
}

/// Nanoseconds of the quickest of thirty runs: what else the machine does meets only some of them.
fn least(mut run: impl FnMut(u64)) -> f64 {
    let time = |pass| {
        let begin = Instant::now();
        run(pass);
        begin.elapsed().as_nanos() as f64
    };
    (0..30).map(time).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("{:<24}{:>16}{:>16}{:>16}{:>16}", "ns", "true", "and predicted", "new", "a jump");
    for (name, text) in CHANNELS {
        let mut costs = [0.0; 2];
        for (cost, error) in costs.iter_mut().zip([0.0, 0.1]) {
            let config = channel(text, error);
            let mut users: Vec<Fading> = (0..USERS).map(|user| Fading::new(&config, key(user))).collect();
            let nanos = least(|pass| {
                for slot in pass * SLOTS..(pass + 1) * SLOTS {
                    for user in &mut users {
                        black_box(user.snr(slot)[0]);
                        black_box(user.predicted(slot)[0]);
                    }
                }
            });
            *cost = nanos / (SLOTS * USERS) as f64;
        }
        let config = channel(text, 0.1);
        let new = least(|_| {
            for user in 0..USERS {
                black_box(Fading::new(&config, key(user)));
            }
        });
        let mut fading = Fading::new(&config, key(0));
        let jump = least(|pass| {
            for jump in 0..USERS {
                black_box(fading.snr((pass * USERS + jump) * 1_000_003)[0]);
            }
        });
        let [real, both] = costs;
        println!("{name:<24}{real:>16.0}{both:>16.0}{:>16.0}{:>16.0}", new / USERS as f64, jump / USERS as f64);
    }
}
