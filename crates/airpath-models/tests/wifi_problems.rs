// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Errors in the parameters of a wireless LAN: which key they name, and how to mend it.

use airpath_core::Direction;
use airpath_models::HopConfig;
use airpath_models::LinkConfig;
use airpath_models::cell::SharedMediumConfig;
use serde_json::{Value, json};

fn medium(own: &Value) -> SharedMediumConfig {
    let mut medium = json!({ "type": "wifi", "standard": "802.11a" });
    medium.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    serde_json::from_value(medium).unwrap()
}

/// Each medium has one problem, of that key, which says that.
#[test]
fn bad_parameters_are_told_by_key() {
    let voice = |own: Value| json!({ "edca": { "stations": { "voice": own } } });
    let cases = [
        (json!({ "access_categories": { "alice": "voice" } }), "access_categories", "write edca = {}"),
        (voice(json!({ "aifsn": 0 })), "edca.stations.voice.aifsn", "it must be 1 to 15"),
        (voice(json!({ "txop_limit": "20 us" })), "edca.stations.voice.txop_limit", "shortest exchange"),
        (voice(json!({ "txop_limit": "3 s" })), "edca.stations.voice.txop_limit", "one exchange of any length"),
        (
            voice(json!({ "least_contention_window": 31, "greatest_contention_window": 15 })),
            "edca.stations.voice.greatest_contention_window",
            "it must be 31, the least, to 32767",
        ),
        (json!({ "rate": "54 Mbit/s", "rate_control": { "type": "minstrel_ht" } }), "rate", "leave one of them out"),
        (
            json!({ "rates": { "alice": "54 Mbit/s" }, "rate_control": { "type": "minstrel_ht" } }),
            "rates",
            "leave one of them out",
        ),
        (json!({ "rate_control": { "type": "minstrel_ht", "weight": 1.0 } }), "rate_control.weight", "below 1"),
        (json!({ "rate_control": { "type": "minstrel_ht", "interval": "0 s" } }), "rate_control.interval", "50 ms"),
        (json!({ "hidden": [["alice", "alice"]] }), "hidden", "two that do not hear each other"),
    ];
    for (own, key, words) in cases {
        let problems = medium(&own).problems();
        let found: Vec<(&str, &str)> =
            problems.iter().map(|problem| (problem.key.as_str(), problem.message.as_str())).collect();
        assert_eq!(found.len(), 1, "{own}: {found:?}");
        assert!(found[0].0 == key && found[0].1.contains(words), "{own}: {found:?}");
    }
    for own in [json!({ "edca": {} }), voice(json!({ "txop_limit": "0 us" })), json!({ "hidden": [["alice", "bob"]] })]
    {
        assert!(medium(&own).problems().is_empty(), "{own}");
    }
}

#[test]
fn unknown_users_are_told_with_the_nearest_name() {
    let bearers = ["alice.voice", "alice.rest", "bob"];
    let told = |own: Value| -> Vec<(String, String)> {
        let problems = medium(&own).bearer_problems(&bearers);
        problems.into_iter().map(|problem| (problem.key, problem.message)).collect()
    };
    assert!(
        told(json!({ "hidden": [["alice", "bob"]], "edca": {}, "access_categories": { "alice.voice": "video" } }))
            .is_empty()
    );
    let hidden = told(json!({ "hidden": [["alice", "bobby"]] }));
    assert!(hidden.len() == 1 && hidden[0].0 == "hidden" && hidden[0].1.contains("did you mean `bob`"), "{hidden:?}");
    let category = told(json!({ "edca": {}, "access_categories": { "carol": "voice" } }));
    assert!(category.len() == 1 && category[0].0 == "access_categories.carol", "{category:?}");
    let unknown = json!({ "type": "wifi", "edca": {}, "access_categories": { "alice": "gold" } });
    let error = serde_json::from_value::<SharedMediumConfig>(unknown).unwrap_err().to_string();
    assert!(error.contains("gold") && error.contains("best_effort"), "{error}");
}

#[test]
fn channels_that_the_medium_cannot_have_are_told() {
    let of = |own: Value, fading: Value| -> Vec<String> {
        let link: LinkConfig =
            LinkConfig { fading: Some(serde_json::from_value(fading).unwrap()), ..LinkConfig::default() };
        let hop = HopConfig::new("radio", link.clone(), link);
        medium(&own).hop_problems(&hop, Direction::Uplink).into_iter().map(|problem| problem.key).collect()
    };
    let constant = json!({ "type": "constant", "snr": "20 dB" });
    assert!(of(json!({}), constant.clone()).is_empty());
    assert_eq!(of(json!({ "standard": "802.11b" }), constant), ["fading"]);
    let many = json!({ "type": "constant", "snr": "20 dB", "resources": 3, "prediction_error": 0.1 });
    assert_eq!(of(json!({}), many), ["fading.resources", "fading.prediction_error"]);
}
