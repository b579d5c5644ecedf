// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Choices of modes: what parameters say, and what they refuse.

use airpath_models::adaptation::{Adaptation, AdaptationConfig, Modes, ModesConfig};

use super::{qam, ratio};

fn adaptation(text: &str) -> AdaptationConfig {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    let config = adaptation(text);
    let problems = [config.problems(), config.problems_with(&qam(0.0).modes)].concat();
    assert_eq!(problems.len(), 1, "{problems:?}");
    format!("{} {}", problems[0].key, problems[0].message)
}

#[test]
fn examples_have_no_problems_and_are_read_as_written() {
    for config in ModesConfig::examples() {
        assert_eq!(config.problems(), [], "{config:?}");
        assert_eq!(toml::from_str::<ModesConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        let modes = Modes::new(&config, ());
        assert!(modes.len() > 0);
        for mode in 0..modes.len() {
            assert_eq!(modes.named(&modes.name(mode)), Some(mode), "names differ: {config:?}");
        }
    }
    for config in AdaptationConfig::examples() {
        assert_eq!([config.problems(), config.problems_with(&qam(0.0).modes)].concat(), [], "{config:?}");
        assert_eq!(toml::from_str::<AdaptationConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
    }
}

#[test]
fn a_fixed_mode_is_chosen_however_good_the_channel_is() {
    let config = adaptation("type = 'fixed'\nmode = '8-qam'");
    let mut adaptation = Adaptation::new(&config, qam(0.0));
    for snr in [0.0, 1.0, 1e6] {
        assert_eq!(adaptation.choose(snr), Some(2));
        adaptation.heard(false, 1.0);
    }
}

#[test]
fn given_levels_are_kept_to() {
    let eight = "levels = ['3 dB', '8 dB', '12 dB', '15 dB', '19 dB', '22 dB', '25 dB', '28 dB']";
    let seven = eight.replace("'3 dB', ", "");
    for (levels, lowest) in [(eight, None), (seven.as_str(), Some(0))] {
        let config = adaptation(&format!("type = 'thresholds'\n{levels}"));
        assert_eq!([config.problems(), config.problems_with(&qam(0.0).modes)].concat(), []);
        let adaptation = Adaptation::new(&config, qam(0.0));
        assert_eq!(adaptation.choose(ratio(2.9) as f32), lowest);
        assert_eq!(adaptation.choose(ratio(7.9) as f32), Some(0));
        assert_eq!(adaptation.choose(ratio(12.1) as f32), Some(2));
        assert_eq!(adaptation.choose(ratio(40.0) as f32), Some(7));
    }
}

#[test]
fn wrong_parameters_are_refused_with_a_remedy() {
    assert!(refusal("type = 'fixed'\nmode = 'qpsk'").starts_with("mode is `qpsk`; it must be one of bpsk, 4-qam,"));
    assert!(refusal("type = 'thresholds'\nlevels = ['1 dB']").starts_with("levels are 1; for 8 modes there must be 8"));
    let falling = "type = 'thresholds'\nlevels = ['1 dB', '2 dB', '3 dB', '5 dB', '4 dB', '6 dB', '7 dB']";
    assert!(refusal(falling).starts_with("levels must ascend"));
    let both = "type = 'thresholds'\nleast_success = '10%'\n\
                levels = ['1 dB', '2 dB', '3 dB', '4 dB', '5 dB', '6 dB', '7 dB']";
    assert!(refusal(both).starts_with("least_success has no meaning with given `levels`"));
    for bits in ["[]", "[2, 1]", "[9]", "[2, 2]"] {
        let config: ModesConfig = toml::from_str(&format!("type = 'qam'\nbits_per_symbol = {bits}")).unwrap();
        assert_eq!(config.problems()[0].key, "bits_per_symbol", "{bits}");
    }
}
