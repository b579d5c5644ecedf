// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Coded modes: information against draws, tables of standards, thresholds against link simulations.

use airpath_models::adaptation::{CodedConfig, Modes, ModesConfig, Table, coded, information};
use airpath_models::fading::quantity::Decibels;

use super::{key, normal_pair, ratio};

fn modes(table: Table, gap_db: f64) -> Modes {
    Modes::new(&ModesConfig::Coded(CodedConfig { table, gap: Decibels(gap_db) }), ())
}

/// The ratio in dB at which a tenth of all blocks is lost.
fn threshold_db(block_error: impl Fn(f64) -> f64) -> f64 {
    let (mut below, mut above) = (-20.0, 40.0);
    for _ in 0..40 {
        let middle = (below + above) / 2.0;
        if block_error(ratio(middle)) > 0.1 {
            below = middle;
        } else {
            above = middle;
        }
    }
    above
}

#[test]
fn information_is_that_of_a_receiver_that_looks_at_the_whole_plane() {
    // Mean and variance of the density over 20,000 drawn symbols, each within 4 standard errors.
    const DRAWS: u64 = 20_000;
    for (order, db) in [(2u8, 0.0), (2, 5.0), (4, 3.0), (4, 9.0), (6, 6.0), (6, 14.0)] {
        let side = 1u32 << (order / 2);
        let gray = |place: u32| place ^ (place >> 1);
        let place = |place: u32| f64::from(2 * place + 1) - f64::from(side);
        // Points with labels: bits of the column above those of the row.
        let points: Vec<(f64, f64, u32)> = (0..side * side)
            .map(|n| (place(n / side), place(n % side), gray(n / side) << (order / 2) | gray(n % side)))
            .collect();
        let energy = points.iter().map(|(x, y, _)| x * x + y * y).sum::<f64>() / points.len() as f64;
        let variance = energy / (2.0 * ratio(db));
        let key = key(u64::from(order) * 100 + db as u64);
        let mut sums = [0.0; 4];
        for draw in 0..DRAWS {
            let (x, y, label) = points[(draw % points.len() as u64) as usize];
            let noise = normal_pair(key, draw).map(|part| part * variance.sqrt());
            let likelihood = |(px, py, _): &(f64, f64, u32)| {
                (-((x + noise[0] - px).powi(2) + (y + noise[1] - py).powi(2)) / (2.0 * variance)).exp()
            };
            let all: f64 = points.iter().map(likelihood).sum();
            let mut density = 0.0;
            for bit in 0..order {
                let alike = points.iter().filter(|point| (point.2 ^ label) >> bit & 1 == 0);
                density += (2.0 * alike.map(likelihood).sum::<f64>() / all).log2();
            }
            for (power, sum) in sums.iter_mut().enumerate() {
                *sum += density.powi(power as i32 + 1);
            }
        }
        let [mean, square, cube, fourth] = sums.map(|sum| sum / DRAWS as f64);
        let variance = square - mean * mean;
        let fourth = fourth - 4.0 * mean * cube + 6.0 * mean * mean * square - 3.0 * mean.powi(4);
        let error = |variance: f64| 4.0 * (variance / DRAWS as f64).sqrt();
        let [capacity, dispersion] = information::moments(order, ratio(db));
        assert!((mean - capacity).abs() < error(variance), "{order} {db}: {mean} for {capacity}");
        let bound = error(fourth - variance * variance);
        assert!((variance - dispersion).abs() < bound, "{order} {db}: {variance} for {dispersion}");
    }
}

#[test]
fn limits_of_the_literature_are_met() {
    // BPSK of rate 1/2 needs E_b/N_0 = 0.187 dB (Caire, Taricco and Biglieri 1998 and every textbook): QPSK carries a
    // bit at E_s/N_0 of 0.187 dB.
    let [capacity, _] = information::moments(2, ratio(0.187));
    assert!((capacity - 1.0).abs() < 2e-4, "{capacity}");
    for order in information::ORDERS {
        let [capacity, dispersion] = information::moments(order, ratio(45.0));
        assert_eq!([capacity, dispersion], [f64::from(order), 0.0]);
        let [capacity, dispersion] = information::moments(order, ratio(-20.0));
        // Hardly above the noise any constellation comes near to log₂(1 + γ), and V near to 2 γ log₂²e; decoding bit
        // by bit costs a part of that for large ones.
        let ideal = (1.01f64).log2();
        assert!(capacity < ideal && capacity > 0.7 * ideal, "{order}: {capacity} for {ideal}");
        assert!(dispersion > 0.0 && dispersion < 0.05);
    }
}

#[test]
fn tables_of_information_give_the_thresholds_of_exact_computation() {
    for table in [Table::NrMcs2, Table::NrCqi3] {
        let ours = modes(table, 0.0);
        for (mode, (order, rate)) in table.modes().into_iter().enumerate() {
            let bits = ours.bits_per_symbol(mode);
            assert!((bits - f64::from(order) * rate).abs() < 1e-12);
            if mode % 3 == 0 {
                let exact = threshold_db(|snr| coded::block_error(order, bits, snr, 800));
                let quick = threshold_db(|snr| ours.frame_error(mode, snr as f32, 800));
                assert!((exact - quick).abs() < 0.01, "{table:?} {mode}: {quick} for {exact}");
            }
        }
    }
}

#[test]
fn a_gap_shifts_the_curve_and_longer_blocks_have_steeper_ones() {
    let (best, worse) = (modes(Table::NrMcs1, 0.0), modes(Table::NrMcs1, 3.0));
    for mode in 0..best.len() {
        let of = |modes: &Modes, symbols| threshold_db(|snr| modes.frame_error(mode, snr as f32, symbols));
        assert!((of(&worse, 1000) - of(&best, 1000) - 3.0).abs() < 1e-3);
        assert!(of(&best, 10_000) < of(&best, 1000));
        assert!(of(&best, 1000) < of(&best, 100));
        assert_eq!(best.symbol_error(mode, 10.0), None);
    }
}

#[test]
fn thresholds_are_near_those_of_link_simulations_of_lte() {
    // Ratios at which a tenth of all blocks of CQI 1 to 15 is lost, read from the curves of the simulator LTE-Sim
    // (Politecnico di Bari), which are simulations of turbo codes over white Gaussian noise. Blocks of 1.4 MHz have
    // some 840 symbols.
    let simulated =
        [-6.75, -4.97, -2.97, -1.02, 0.94, 2.83, 4.87, 6.66, 8.69, 10.51, 12.40, 14.30, 16.04, 17.81, 19.94];
    let modes = modes(Table::LteCqi, 1.5);
    assert_eq!(modes.len(), simulated.len());
    for (mode, simulated) in simulated.into_iter().enumerate() {
        let threshold = threshold_db(|snr| modes.frame_error(mode, snr as f32, 840));
        assert!((threshold - simulated).abs() < 0.7, "{}: {threshold} for {simulated}", modes.name(mode));
    }
}

/// The columns of efficiencies, which the standards print beside modulation and rate, and which come from there.
const EFFICIENCIES: [(Table, &[f64]); 6] = [
    (
        Table::LteCqi,
        &[
            0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234,
            5.1152, 5.5547,
        ],
    ),
    (
        Table::NrCqi2,
        &[
            0.1523, 0.3770, 0.8770, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223, 3.9023, 4.5234, 5.1152, 5.5547, 6.2266,
            6.9141, 7.4063,
        ],
    ),
    (
        Table::NrCqi3,
        &[
            0.0586, 0.0977, 0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223,
            3.9023, 4.5234,
        ],
    ),
    (
        Table::NrMcs1,
        &[
            0.2344, 0.3066, 0.3770, 0.4902, 0.6016, 0.7402, 0.8770, 1.0273, 1.1758, 1.3262, 1.3281, 1.4766, 1.6953,
            1.9141, 2.1602, 2.4063, 2.5703, 2.5664, 2.7305, 3.0293, 3.3223, 3.6094, 3.9023, 4.2129, 4.5234, 4.8164,
            5.1152, 5.3320, 5.5547,
        ],
    ),
    (
        Table::NrMcs2,
        &[
            0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.6953, 1.9141, 2.1602, 2.4063, 2.5703, 2.7305, 3.0293,
            3.3223, 3.6094, 3.9023, 4.2129, 4.5234, 4.8164, 5.1152, 5.3320, 5.5547, 5.8906, 6.2266, 6.5703, 6.9141,
            7.1602, 7.4063,
        ],
    ),
    (
        Table::NrMcs3,
        &[
            0.0586, 0.0781, 0.0977, 0.1250, 0.1523, 0.1934, 0.2344, 0.3066, 0.3770, 0.4902, 0.6016, 0.7402, 0.8770,
            1.0273, 1.1758, 1.3281, 1.4766, 1.6953, 1.9141, 2.1602, 2.4063, 2.5664, 2.7305, 3.0293, 3.3223, 3.6094,
            3.9023, 4.2129, 4.5234,
        ],
    ),
];

#[test]
fn modulation_and_rate_give_the_efficiencies_of_the_standards() {
    for (table, efficiencies) in EFFICIENCIES {
        let modes = modes(table, 0.0);
        assert_eq!(modes.len(), efficiencies.len());
        for (mode, efficiency) in efficiencies.iter().enumerate() {
            let bits = modes.bits_per_symbol(mode);
            assert!((bits - efficiency).abs() < 0.5001e-4, "{table:?} {mode}: {bits} for {efficiency}");
        }
    }
    assert_eq!(Table::NrCqi1.modes(), Table::LteCqi.modes());
    assert_eq!(
        (modes(Table::LteCqi, 0.0).name(0), modes(Table::NrMcs2, 0.0).name(27)),
        ("cqi-1".into(), "mcs-27".into())
    );
}

#[test]
fn mcs_of_lte_carry_their_transport_blocks() {
    let modes = modes(Table::LteMcs, 0.0);
    assert_eq!(modes.len(), 29);
    // A subframe of 50 pairs of resource blocks with 144 elements each.
    let blocks = [(0, 1384), (9, 7992), (10, 7992), (16, 15264), (17, 15264), (27, 31704), (28, 36696)];
    for (mode, bits) in blocks {
        assert_eq!(modes.frame_bits(mode, 50 * 144), bits, "{mode}");
    }
    let orders: Vec<u8> = Table::LteMcs.modes().into_iter().map(|(order, _)| order).collect();
    assert_eq!([orders[9], orders[10], orders[16], orders[17]], [2, 4, 4, 6]);
    // A terminal need not decode above a rate of 0.931 (TS 36.213, section 7.1.7).
    assert!(Table::LteMcs.modes().iter().all(|(_, rate)| *rate < 0.931));
}
