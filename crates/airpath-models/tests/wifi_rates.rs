// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Radio channels and rate control of a wireless LAN: losses against the equations of the error model, and the rates that
//! Minstrel-HT finds against all rates that could be given.

use airpath_core::{End, EventKind, PortId, Seed};
use airpath_models::Cell;
use airpath_models::cell::CellConfig;
use airpath_models::fading::FadingConfig;
use serde_json::{Value, json};

use crate::common::*;
use crate::wifi::{from, lan, saturate, us};

/// Users with radio channels of these parameters in both directions.
fn with_channels(medium: &Value, fading: &[Value]) -> CellConfig {
    let mut config = lan(medium, fading.len(), &json!({ "type": "none" }));
    for (user, fading) in config.users.iter_mut().zip(fading) {
        let fading: FadingConfig = serde_json::from_value(fading.clone()).unwrap();
        let hop = &mut user.path.hops[0];
        hop.uplink.fading = Some(Box::new(fading.clone()));
        hop.downlink.fading = Some(Box::new(fading));
    }
    config
}

fn constant(snr: &str) -> Value {
    json!({ "type": "constant", "snr": snr })
}

/// The tail of the normal distribution, by the rule of Simpson.
fn tail(from: f64) -> f64 {
    let (steps, width) = (2000, 10.0 / 2000.0);
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let weight = |step: i32| {
        if step == 0 || step == steps {
            1.0
        } else if step % 2 == 1 {
            4.0
        } else {
            2.0
        }
    };
    (0..=steps).map(|step| weight(step) * density(from + f64::from(step) * width)).sum::<f64>() * width / 3.0
}

/// At 54 Mbit/s, 64-QAM with rate 3/4 at 22.5 dB: bits are wrong with 7/12 Q(√(γ/21)).
#[test]
fn losses_are_those_of_the_error_model() {
    let medium = json!({ "standard": "802.11a", "rate": "54 Mbit/s" });
    let each = saturate(&with_channels(&medium, &[constant("22.5 dB")]), 4);
    let wrong = 7.0 / 12.0 * tail((10f64.powf(2.25) / 21.0).sqrt());
    let base = (4.0 * wrong * (1.0 - wrong)).sqrt();
    let weights = [42.0, 201.0, 1492.0, 10_469.0, 62_935.0, 379_644.0, 2_253_373.0, 13_073_811.0, 75_152_755.0];
    let sum: f64 = weights.iter().zip(5..).map(|(weight, distance)| weight * base.powi(distance)).sum();
    let expected = 1.0 - (1.0 - sum / 6.0).powi(1536 * 8);
    let (sent, lost) = (each[0].sent, each[0].lost);
    let share = lost / sent;
    println!("{share:.4} of {expected:.4}");
    assert!(expected > 0.05 && expected < 0.95, "{expected} tells nothing");
    // 99.99 % of the shares.
    let deviation = (expected * (1.0 - expected) / sent).sqrt();
    assert!((share - expected).abs() < 3.9 * deviation, "{share} of {expected}");
}

/// With a constant channel Minstrel-HT brings at least 85 % of what the best of all rates brings, which is not the
/// highest.
#[test]
fn minstrel_comes_near_to_the_best_rate() {
    let rates = [6, 9, 12, 18, 24, 36, 48, 54];
    let mut best_rates = Vec::new();
    for snr in ["5 dB", "11 dB", "18 dB", "22 dB", "30 dB"] {
        let goodput = |medium: &Value| saturate(&with_channels(medium, &[constant(snr)]), 3)[0].goodput;
        let given = rates.map(|rate| goodput(&json!({ "standard": "802.11a", "rate": format!("{rate} Mbit/s") })));
        let (best, most) = given.iter().enumerate().max_by(|one, other| one.1.total_cmp(other.1)).unwrap();
        let found = goodput(&json!({ "standard": "802.11a", "rate_control": { "type": "minstrel_ht" } }));
        println!("{snr}: {found:.2} of {most:.2} Mbit/s at {} Mbit/s", rates[best]);
        assert!(found > 0.85 * most && found < 1.02 * most, "{snr}: {found} of {most} Mbit/s");
        best_rates.push(rates[best]);
    }
    assert!(best_rates.windows(2).all(|pair| pair[0] <= pair[1]) && best_rates[0] < 18 && best_rates[4] == 54);
}

/// Stations have controls of their own, and one that is far away does not lower the rate of the others.
#[test]
fn stations_find_rates_of_their_own() {
    let medium =
        json!({ "standard": "802.11n", "aggregation": { "packets": 8 }, "rate_control": { "type": "minstrel_ht" } });
    let far = saturate(&with_channels(&medium, &[constant("4 dB"), constant("4 dB")]), 2);
    let both = saturate(&with_channels(&medium, &[constant("35 dB"), constant("4 dB")]), 2);
    let near = saturate(&with_channels(&medium, &[constant("35 dB"), constant("35 dB")]), 2);
    let sum = |each: &[crate::wifi::Saturated]| each.iter().map(|station| station.goodput).sum::<f64>();
    println!("{:.2} {:.2} {:.2} Mbit/s", sum(&far), sum(&both), sum(&near));
    assert!(sum(&near) > 4.0 * sum(&far));
    assert!(sum(&both) > 1.3 * sum(&far) && sum(&both) < 0.9 * sum(&near));
}

/// The laws hold with a channel that fades, rate control, aggregates and categories.
#[test]
fn the_laws_hold_with_fading_channels_and_rate_control() {
    let medium = json!({
        "standard": "802.11n", "aggregation": {}, "rate_control": { "type": "minstrel_ht", "interval": "7 ms" },
        "edca": {}, "access_categories": { "user1": "video" },
    });
    let fading = json!({ "type": "jakes", "snr": "18 dB", "speed": "5 km/h", "carrier": "5.2 GHz" });
    let config = with_channels(&medium, &[fading.clone(), fading, constant("25 dB")]);
    let script: Script = (0..600)
        .map(|packet: u64| {
            let end = if packet.is_multiple_of(5) { End::Client } else { End::Server };
            from((packet % 3) as u16, end, us(packet * 300), 300 + (packet * 37 % 1200) as u32)
        })
        .collect();
    let trace = check_laws_to(|| Cell::new(&config, Seed(4)), &script, 1, ms(3000));
    assert!(trace.of_kind(EventKind::FrameRepeated).len() > 20);
    for user in 0..3 {
        assert!(trace.ids(PortId::of(user, End::Client)).windows(2).all(|pair| pair[0] < pair[1]));
    }
}
