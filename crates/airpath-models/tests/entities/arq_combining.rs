// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Hybrid ARQ: the error rate of the second copy of a frame against that of the mode at the combined ratio.

use std::sync::Arc;

use airpath_core::{DrawKey, DrawScope, EventKind, PortId, Seed};
use airpath_models::adaptation::{Modes, ModesConfig};
use airpath_models::channel::ErrorsConfig;
use airpath_models::entity::arq::{ArqConfig, Combining, LastTry, Repeat};
use airpath_models::quality::{Quality, Reception};

use super::arq::{arq_link, over_bins};
use crate::common::*;
use crate::toys::bins::{Conditions, Radio};

const SYMBOLS: u32 = 108;
const FRAMES: u32 = 3_000;

/// Frames of one packet each in `mode` at `snr`, sent twice at most: how many are repeated, and how many are lost.
fn play(modes: &Arc<Modes>, mode: usize, snr: f32, combining: Combining) -> (u32, u32) {
    let bits = u64::from(modes.frame_bits(mode, SYMBOLS)) / 8 * 8;
    let modes = modes.clone();
    let radio: Radio = Arc::new(move |direction, resource, slot| {
        let scope = DrawScope { hop: "cell", direction, role: "symbols", instance: 0 };
        let reception = Reception { modes: modes.clone(), mode, symbols: SYMBOLS, snr };
        let (unit, probability) = reception.errors_at(snr);
        let (key, step) = (DrawKey::new(Seed(11), &scope), slot * 2 + u64::from(resource));
        Conditions { bits, quality: Some(Quality { unit, probability, key, step, reception: Some(reception) }) }
    });
    let config = ArqConfig {
        retransmissions: 1,
        last_try: LastTry::Drop,
        repeat: Repeat::OwnModulation,
        combining,
        ..ArqConfig::default()
    };
    // A few packets at a time, so that the send buffer stays short.
    let len = (bits / 8) as u32;
    let script = (0..FRAMES).map(|number| offer(ms(u64::from(number / 8) * 20), PortId::CLIENT, len)).collect();
    let trace = run(over_bins(&arq_link(&config, ErrorsConfig::default()), span("1 ms"), radio), &script);
    assert_eq!(trace.held, 0);
    (trace.of_kind(EventKind::FrameRepeated).len() as u32, trace.of_kind(EventKind::Dropped).len() as u32)
}

/// The 99.9 % interval of a count of `FRAMES` frames has it. Frames of the last try that are lost are those of which
/// all copies together are not decoded.
fn assert_share(count: u32, share: f64, what: &str) {
    let mean = f64::from(FRAMES) * share;
    let bound = 3.3 * (mean * (1.0 - share)).sqrt() + 1.0;
    assert!((f64::from(count) - mean).abs() < bound, "{what}: {count} of {FRAMES}, {mean} expected");
}

/// Uncoded modes at a ratio of which half of the frames are hit: the second copy doubles the ratio.
#[test]
fn copies_of_uncoded_frames_add_up_symbol_by_symbol() {
    let modes = Arc::new(Modes::new(&ModesConfig::default(), ()));
    for name in ["4-qam", "16-qam", "64-qam"] {
        let mode = modes.named(name).unwrap();
        let error = |snr: f32| modes.frame_error(mode, snr, SYMBOLS);
        // One copy is hit with probability 0.6 or more, and two with 0.02 or more.
        let snr = (1..10_000).map(|step| step as f32 * 0.02).find(|snr| error(2.0 * snr) < 0.2).unwrap();
        let (once, twice) = (error(snr), error(2.0 * snr));
        assert!(once > 0.5 && twice > 0.02, "{name}: {once} {twice}");
        for (combining, lost) in
            [(Combining::None, once * once), (Combining::Chase, twice), (Combining::Incremental, twice)]
        {
            let (repeated, dropped) = play(&modes, mode, snr, combining);
            assert_share(repeated, once, name);
            assert_share(dropped, lost, &format!("{name} {combining:?}"));
        }
    }
}

/// Coded modes at a ratio at which chase combining fails now and then: incremental redundancy has the ratio
/// (1 + γ)² − 1.
#[test]
fn copies_of_coded_frames_add_up_as_ratios_or_as_information() {
    let config: ModesConfig = serde_json::from_str(r#"{ "type": "coded", "table": "lte_mcs" }"#).unwrap();
    let modes = Arc::new(Modes::new(&config, ()));
    let mode = modes.len() / 2;
    let error = |snr: f32| modes.frame_error(mode, snr, SYMBOLS);
    for (target, differs) in [(0.3, false), (0.9, true)] {
        let snr = (1..100_000).map(|step| step as f32 * 0.001).find(|snr| error(2.0 * snr) < target).unwrap();
        let (once, chase, incremental) = (error(snr), error(2.0 * snr), error(2.0 * snr + snr * snr));
        assert!(once > 0.99 && chase > 0.1 && incremental < chase, "{once} {chase} {incremental}");
        assert!(!differs || incremental < chase / 2.0);
        for (combining, lost) in
            [(Combining::None, once * once), (Combining::Chase, chase), (Combining::Incremental, incremental)]
        {
            let (repeated, dropped) = play(&modes, mode, snr, combining);
            assert_share(repeated, once, "repeated");
            assert_share(dropped, lost, &format!("{combining:?} at {snr}"));
        }
    }
}
