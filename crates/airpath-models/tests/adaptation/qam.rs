// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Symbol errors of uncoded modulation: a receiver of the nearest point, over drawn noise.

use airpath_models::adaptation::qam::symbol_error;

use super::{key, normal_pair, qam, ratio};

/// The points of a constellation, on a grid of spacing 2.
fn constellation(bits: u8) -> Vec<[f64; 2]> {
    // Points a side, and how many of them each corner lacks in either dimension.
    let (width, height, missing) = match bits {
        1 => (2, 1, 0),
        2 => (2, 2, 0),
        3 => (4, 2, 0),
        4 => (4, 4, 0),
        5 => (6, 6, 1),
        6 => (8, 8, 0),
        7 => (12, 12, 2),
        _ => (16, 16, 0),
    };
    let is_cut = |place: i32, side: i32| place < missing || place >= side - missing;
    let mut points = Vec::new();
    for x in 0..width {
        for y in 0..height {
            if !(is_cut(x, width) && is_cut(y, height)) {
                points.push([f64::from(2 * x + 1 - width), f64::from(2 * y + 1 - height)]);
            }
        }
    }
    points
}

#[test]
fn errors_are_those_of_a_receiver_of_the_nearest_point() {
    // 24 proportions of 30,000 draws, each within 4 standard errors: all are with a probability of 0.998.
    const DRAWS: u64 = 30_000;
    for bits in 1..=8u8 {
        let points = constellation(bits);
        assert_eq!(points.len(), 1 << bits);
        let energy = points.iter().map(|[x, y]| x * x + y * y).sum::<f64>() / points.len() as f64;
        for (place, above_db) in [0.0, 4.0, 7.0].into_iter().enumerate() {
            let snr = ratio(above_db) * energy / 2.0;
            let exact = symbol_error(bits, snr);
            let deviation = (energy / (2.0 * snr)).sqrt();
            let key = key(u64::from(bits) * 10 + place as u64);
            let mut errors = 0;
            for draw in 0..DRAWS {
                let sent = points[(draw as usize * 7 + 3) % points.len()];
                let noise = normal_pair(key, draw);
                let received = [sent[0] + deviation * noise[0], sent[1] + deviation * noise[1]];
                let distance = |point: &[f64; 2]| (received[0] - point[0]).powi(2) + (received[1] - point[1]).powi(2);
                let own = distance(&sent);
                errors += u64::from(points.iter().any(|point| distance(point) < own));
            }
            let share = errors as f64 / DRAWS as f64;
            let standard_error = (exact * (1.0 - exact) / DRAWS as f64).sqrt();
            assert!((share - exact).abs() < 4.0 * standard_error, "{bits} bits, {snr}: {share} for {exact}");
        }
    }
}

#[test]
fn crosses_have_the_errors_of_their_decision_regions() {
    // The decision regions of all points, integrated numerically from the distances alone, by the rule of
    // Gauss and Legendre with 24 points between whole numbers (numpy).
    let known = [
        (5, 3.0, 0.789_057_718_2),
        (5, 10.0, 0.453_092_743_1),
        (5, 15.0, 0.119_119_289_7),
        (7, 8.0, 0.865_189_706_3),
        (7, 15.0, 0.571_184_927_0),
        (7, 21.0, 0.139_390_460_1),
    ];
    for (bits, db, error) in known {
        let ours = symbol_error(bits, ratio(db));
        assert!((ours - error).abs() < 5e-8, "{bits} bits, {db} dB: {ours} for {error}");
    }
}

#[test]
fn closed_forms_of_textbooks_are_met() {
    // Proakis: BPSK Q(√2γ) = 7.727e-4 at 7 dB; 4-QAM 1 − (1 − Q(√γ))² at 10 dB, Q(√10) = 7.827e-4.
    assert!((symbol_error(1, ratio(7.0)) / 7.7267e-4 - 1.0).abs() < 1e-4);
    let q = 7.8270e-4;
    assert!((symbol_error(2, 10.0) / (2.0 * q - q * q) - 1.0).abs() < 1e-4);
    // Without any signal the receiver guesses.
    for bits in 1..=8 {
        let guess = 1.0 - 0.5f64.powi(i32::from(bits));
        assert!((symbol_error(bits, 0.0) - guess).abs() < 1e-9, "{bits}");
    }
}

#[test]
fn tables_are_as_exact_as_they_state() {
    let modes = qam(0.0).modes;
    for mode in 0..modes.len() {
        assert_eq!(modes.bits_per_symbol(mode), (mode + 1) as f64);
        for step in 0..3000 {
            let snr = ratio(f64::from(step) * 0.02 - 18.0) as f32;
            let exact = symbol_error(mode as u8 + 1, f64::from(snr));
            let table = modes.symbol_error(mode, snr).expect("an uncoded mode");
            if exact > 1e-10 {
                assert!((table / exact - 1.0).abs() < 1e-3, "{mode} {snr}: {table} for {exact}");
            } else {
                assert!((0.0..2e-10).contains(&table), "{mode} {snr}: {table}");
            }
        }
    }
}

#[test]
fn a_frame_is_free_of_errors_if_all_its_symbols_are() {
    let modes = qam(0.0).modes;
    for mode in 0..modes.len() {
        let snr = ratio(6.0 + 3.0 * mode as f64) as f32;
        let symbol = modes.symbol_error(mode, snr).expect("an uncoded mode");
        let frame = modes.frame_error(mode, snr, 108);
        assert!((1.0 - frame - (1.0 - symbol).powi(108)).abs() < 1e-12, "{mode}");
        assert_eq!(modes.frame_bits(mode, 108), 108 * (mode as u32 + 1));
    }
}
