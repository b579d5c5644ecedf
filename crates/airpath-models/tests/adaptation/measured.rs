// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Modes of the user's own.

use airpath_models::adaptation::{Modes, ModesConfig};

use super::ratio;

const MODES: &str = "
type = 'table'
block_symbols = 100
modes = [
  { name = 'robust', bits_per_symbol = 0.5, block_error = [['0 dB', 0.8], ['2 dB', 0.1], ['3 dB', 0.01]] },
  { bits_per_symbol = 2, block_error = [['8 dB', 1], ['10 dB', 0.001]] },
]";

fn config(text: &str) -> ModesConfig {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn curves_go_through_their_points_and_on() {
    let config = config(MODES);
    assert_eq!(config.problems(), []);
    let modes = Modes::new(&config, ());
    assert_eq!((modes.name(0), modes.name(1)), ("robust".into(), "2".into()));
    let at = |mode, db: f64, symbols| modes.frame_error(mode, ratio(db) as f32, symbols);
    let near = |value: f64, known: f64| assert!((value / known - 1.0).abs() < 0.01, "{value} for {known}");
    assert_eq!(at(0, -1.0, 100), 1.0);
    near(at(0, 2.5, 100), 0.1f64.sqrt() * 0.1);
    near(at(0, 4.0, 100), 0.001);
    near(at(1, 9.0, 100), 0.001f64.sqrt());
    // Two blocks are received if both are, half a block with the root of the probability.
    near(at(0, 2.5, 200), 1.0 - (1.0 - 0.031_62f64).powi(2));
    near(at(0, 2.5, 50), 1.0 - (1.0 - 0.031_62f64).sqrt());
    assert_eq!(modes.frame_bits(0, 101), 50);
}

#[test]
fn wrong_tables_are_refused_with_place_and_remedy() {
    for (from, to, key) in [
        ("bits_per_symbol = 2", "bits_per_symbol = 0", "modes.1.bits_per_symbol"),
        ("['0 dB', 0.8]", "['0 dB', 0]", "modes.0.block_error"),
        ("['2 dB', 0.1]", "['2 dB', 0.9]", "modes.0.block_error"),
        ("['8 dB', 1], ", "", "modes.1.block_error"),
        ("['10 dB', 0.001]", "['8 dB', 0.001]", "modes.1.block_error"),
        ("['10 dB', 0.001]", "['101 dB', 0.001]", "modes.1.block_error"),
        ("bits_per_symbol = 0.5", "bits_per_symbol = 3", "modes"),
        ("'robust'", "'2'", "modes"),
        ("block_symbols = 100", "block_symbols = 0", "block_symbols"),
    ] {
        assert!(MODES.contains(from));
        let problems = config(&MODES.replace(from, to)).problems();
        assert!(problems.iter().any(|problem| problem.key == key), "{from} → {to}: {problems:?}");
    }
    assert_eq!(config("type = 'table'\nmodes = []").problems()[0].key, "modes");
    assert_eq!(config("type = 'coded'\ntable = 'lte_cqi'\ngap = '-1 dB'").problems()[0].key, "gap");
}
