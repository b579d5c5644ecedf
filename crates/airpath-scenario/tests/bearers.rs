// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Bearers in scenarios: what they have from the link, and mistakes in them.

use airpath_models::{CellConfig, MachineConfig};
use airpath_scenario::Scenario;
use serde_json::{Value, json};

const CELL: &str = r#"
[[media]]
name = "cell"
type = "ofdm"
direction = "both"
scheduler = { type = "proportional_fair", weights = { "alice.voice" = 4, bob = 2 } }

[[paths]]
name = "alice"
[[paths.hops]]
name = "radio"
[paths.hops.link]
medium = "cell"
fading = { type = "jakes", speed = "75 km/h", snr = "16 dB" }
entity = { type = "arq", retransmissions = 10, feedback_delay = "3 ms" }
queue = { type = "head_drop", limit = "60 packets" }
[[paths.hops.link.bearers]]
name = "voice"
match = { dscp = [46] }
queue = { limit = "20 packets" }
entity = { retransmissions = 1 }
[[paths.hops.link.bearers]]
name = "rest"

[[paths]]
name = "bob"
[[paths.hops]]
name = "radio"
[paths.hops.link]
medium = "cell"
fading = { type = "jakes", speed = "75 km/h", snr = "16 dB" }
entity = { type = "arq" }
"#;

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap_or_else(|report| panic!("{report}"))
}

fn cell(scenario: &Scenario) -> CellConfig {
    match scenario.machine().unwrap_or_else(|report| panic!("{report}")) {
        MachineConfig::Cell(cell) => cell,
        MachineConfig::Path(_) => panic!("it is a path"),
    }
}

/// The downlink of a bearer of alice's, as JSON has it.
fn downlink(scenario: &Scenario, bearer: usize) -> Value {
    let bearers = cell(scenario).users[0].path.hops[0].of_bearers();
    serde_json::to_value(&bearers[bearer].downlink).unwrap()
}

#[test]
fn a_bearer_has_the_parameters_of_the_link_but_for_its_own() {
    let scenario = read(CELL);
    let (voice, rest) = (downlink(&scenario, 0), downlink(&scenario, 1));
    assert_eq!(voice["queue"], json!({ "type": "head_drop", "limit": "20 packets" }));
    assert_eq!(rest["queue"], json!({ "type": "head_drop", "limit": "60 packets" }));
    let entity = |link: &Value| (link["entity"]["retransmissions"].clone(), link["entity"]["feedback_delay"].clone());
    assert_eq!(entity(&voice), (json!(1), json!("3 ms")));
    assert_eq!(entity(&rest), (json!(10), json!("3 ms")));
    assert_eq!(voice["fading"], rest["fading"]);
    let alice = &cell(&scenario).users[0].path.hops[0];
    let names: Vec<String> = alice.of_bearers().into_iter().map(|bearer| bearer.name).collect();
    // The last one draws as the hop does.
    assert_eq!(names, ["radio.voice", "radio"]);
}

#[test]
fn parameters_of_bearers_are_set_by_name_and_in_states() {
    let state = "[[paths.states]]\nname = \"late\"\nat = \"1 s\"\nset.\"radio.downlink.bearers.voice.queue.limit\" = \
                 \"5 packets\"\n\n[[paths]]\nname = \"bob\"";
    let mut scenario = read(&CELL.replace("[[paths]]\nname = \"bob\"", state));
    let hops = &cell(&scenario).users[0].path.states[0].hops[0].of_bearers();
    let limit = |link| serde_json::to_value(link).unwrap()["queue"]["limit"].clone();
    assert_eq!([limit(&hops[0].downlink), limit(&hops[0].uplink)], ["5 packets", "20 packets"]);
    scenario.set("alice.radio.link.bearers.rest.queue.limit=7 packets").unwrap();
    assert_eq!(downlink(&scenario, 1)["queue"]["limit"], "7 packets");
    let mut scenario = read(CELL);
    scenario.set("alice.radio.link.bearers=[{ name = \"all\" }]").unwrap();
    // The scheduler still names the other one.
    let report = scenario.machine().unwrap_err().to_string();
    assert!(report.contains("names `alice.voice`, which is not in the cell; it has alice.all, bob"), "{report}");
    let printed = read(CELL).to_toml().unwrap();
    assert_eq!(read(&printed).machine().unwrap(), read(CELL).machine().unwrap(), "{printed}");
    assert_eq!(read(&printed).to_toml().unwrap(), printed);
}

/// Mistakes: what is written instead of what, and what is told.
#[test]
fn mistakes_are_told_with_their_lines_and_how_to_mend_them() {
    let rest = "[[paths.hops.link.bearers]]\nname = \"rest\"\n";
    let cases = [
        (
            "name = \"rest\"",
            "name = \"voice\"",
            "test.toml:23:1: alice.radio.link.bearers.voice.name: another bearer is called `voice`, too",
        ),
        ("name = \"rest\"", "name = \"no.name\"", "alice.radio.link.bearers.no.name.name: `no.name` is no name"),
        (
            "match = { dscp = [46] }\n",
            "",
            "alice.radio.link.bearers.rest: no packet gets here, as bearer `voice` before it takes all",
        ),
        (
            rest,
            "",
            "takes no packet that does not match, and is the last one, so that there would be packets without a bearer",
        ),
        (
            "\"alice.voice\" = 4",
            "\"alice.voicee\" = 4",
            "names `alice.voicee`, which is not in the cell; did you mean `alice.voice`?",
        ),
        ("bob = 2", "alice = 2", "names `alice`, which is not in the cell"),
        ("match = {", "matching = {", "unknown key; did you mean `match`?"),
        ("dscp = [46]", "dscp = [64]", "alice.radio.link.bearers.voice.match.dscp"),
        (
            "entity = { retransmissions = 1 }",
            "entity = { type = \"simple\" }",
            "alice.radio.link.bearers.voice.entity: does not fit its frames to the modes of this medium",
        ),
        ("entity = { retransmissions = 1 }", "send_buffer = \"many\"", "alice.radio.link.bearers.voice.send_buffer"),
        (
            "[paths.hops.link]\nmedium = \"cell\"\nfading = { type = \"jakes\", speed = \"75 km/h\", snr = \"16 dB\" }\nentity = { type = \"arq\", retransmissions = 10",
            "uplink.rate = \"1 Mbit/s\"\ndownlink.medium = \"cell\"\ndownlink.fading = { type = \"jakes\", speed = \"75 km/h\", snr = \"16 dB\" }\n[paths.hops.link]\nentity = { type = \"arq\", retransmissions = 10",
            "bearers: need media that users share, in both directions",
        ),
    ];
    for (what, instead, told) in cases {
        let text = CELL.replacen(what, instead, 1);
        assert_ne!(text, CELL, "{what}");
        let report = Scenario::from_toml(&text, "test.toml").and_then(|scenario| scenario.machine()).unwrap_err();
        let report = report.to_string();
        assert!(report.contains(told), "instead of {what}:\n{report}\nlacks\n{told}");
        assert!(report.starts_with("test.toml:"), "{report}");
    }
    // A state changes parameters, and not which bearers there are.
    let state = |set: &str| {
        let state = format!("[[paths.states]]\nname = \"late\"\nat = \"1 s\"\nset.{set}\n\n[[paths]]\nname = \"bob\"");
        Scenario::from_toml(&CELL.replace("[[paths]]\nname = \"bob\"", &state), "test.toml").unwrap_err().to_string()
    };
    let told = state("\"radio.link.bearers\" = [{ name = \"rest\" }]");
    assert!(told.contains("a state can change their parameters, and not which there are (in state `late`)"), "{told}");
    let told = state("\"radio.link.bearers.voic.queue.limit\" = \"5 packets\"");
    let expected = "there is no `voic` among the bearers (in state `late`); did you mean \
                    `alice.radio.link.bearers.voice.queue.limit`?";
    assert!(told.contains(expected), "{told}");
    // Both directions have the same.
    let uplink = "[[paths.hops.uplink.bearers]]\nname = \"all\"\n[[paths.hops.link.bearers]]\nname = \"voice\"";
    let text = CELL.replacen("[[paths.hops.link.bearers]]\nname = \"voice\"", uplink, 1);
    let report = Scenario::from_toml(&text, "test.toml").unwrap_err().to_string();
    assert!(report.contains("alice.radio.link.bearers: are not the same in both directions"), "{report}");
}

#[test]
fn hops_without_shared_media_have_no_bearers() {
    let text = "[[hops]]\nlink.rate = \"1 Mbit/s\"\n[[hops.link.bearers]]\nname = \"all\"\n";
    let report = Scenario::from_toml(text, "test.toml").unwrap_err().to_string();
    assert!(report.contains("test.toml:3:13: radio.link.bearers: need media that users share"), "{report}");
}
