// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Radio channels of users, written wrongly: what is said, and where.

use std::fs;

use airpath_models::MachineConfig;
use airpath_scenario::Scenario;

const CELL: &str = r#"
[[media]]
name = "cell"
type = "ofdm"
resources = 3
scheduler = { type = "proportional_fair" }

[[paths]]
name = "alice"
[[paths.hops]]
name = "radio"
link.entity = { type = "arq" }
[paths.hops.uplink]
rate = "1 Mbit/s"
[paths.hops.downlink]
medium = "cell"
fading = { type = "jakes", snr = "16 dB" }
[[paths.states]]
name = "far"
at = "5 s"
set."radio.downlink.fading.snr" = "8 dB"

[[paths]]
name = "bob"
[[paths.hops]]
name = "radio"
link.entity = { type = "arq" }
[paths.hops.uplink]
rate = "1 Mbit/s"
[paths.hops.downlink]
medium = "cell"
fading = { type = "jakes", snr = "16 dB" }
"#;

const CHANNEL: &str = r#"fading = { type = "jakes", snr = "16 dB" }"#;

/// The report about `text`, read as a file beside those of the test.
fn report(folder: &std::path::Path, text: &str) -> String {
    let name = folder.join("cell.toml").display().to_string();
    match Scenario::from_toml(text, &name).and_then(|scenario| scenario.machine()) {
        Ok(_) => String::new(),
        Err(report) => report.to_string(),
    }
}

#[test]
fn channels_that_are_wrong_are_refused_by_key_and_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("short.csv"), "3\n4\n").unwrap();
    fs::write(folder.path().join("wide.csv"), "3,4\n").unwrap();
    fs::write(folder.path().join("letters.csv"), "3,four,5\n").unwrap();
    fs::write(folder.path().join("snr.parquet"), b"PAR1\x15\x04").unwrap();
    fs::write(folder.path().join("my snr.mat"), b"MATLAB 5.0 MAT-file, of a test").unwrap();
    assert_eq!(report(folder.path(), CELL), "", "the cell itself is right");
    let cases: &[(&str, &[&str])] = &[
        // A quantity without a number, or without its unit.
        (r#"fading = { type = "jakes", snr = "NaN dB" }"#, &["alice.radio.downlink.fading.snr: ", "number"]),
        (r#"fading = { type = "jakes", snr = nan }"#, &["alice.radio.downlink.fading.snr: ", "number"]),
        (
            r#"fading = { type = "jakes", snr = 16 }"#,
            &["alice.radio.downlink.fading.snr: ", "its unit must be one of dB"],
        ),
        (r#"fading = { type = "jakes", speed = "75" }"#, &["alice.radio.downlink.fading.speed: ", "m/s, km/h"]),
        (
            r#"fading = { type = "jakes", speed = [["0 s", "10 m/s"], ["1", "20 m/s"]] }"#,
            &["alice.radio.downlink.fading.speed[1][0]: ", "`1` is not a time"],
        ),
        (
            r#"fading = { type = "jakes", speed = [["0 s", "10 m/s", "20 m/s"]] }"#,
            &[
                "alice.radio.downlink.fading.speed[0]: ",
                "expected 2 values in brackets, as in [\"300 ns\", \"75 km/h\"]",
            ],
        ),
        (r#"fading = { type = "jakes", carrier = "1900" }"#, &["alice.radio.downlink.fading.carrier: ", "Hz, kHz"]),
        (r#"fading = { type = "jakes", snr = "200 dB" }"#, &["alice.radio.downlink.fading.snr: ", "within 100 dB"]),
        // Numbers out of their ranges.
        (
            r#"fading = { type = "jakes", prediction_error = 2 }"#,
            &["alice.radio.downlink.fading.prediction_error: ", "from 0 to below 1"],
        ),
        (
            r#"fading = { type = "jakes", prediction_error = nan }"#,
            &["alice.radio.downlink.fading.prediction_error: ", "finite"],
        ),
        (
            r#"fading = { type = "jakes", spacing = "0 Hz" }"#,
            &["alice.radio.downlink.fading.spacing: ", "it must be above 0"],
        ),
        // What belongs to the medium.
        (
            r#"fading = { type = "jakes", resources = 7 }"#,
            &["alice.radio.downlink.fading.resources: ", "is that of the medium; write it there"],
        ),
        // Files.
        (
            r#"fading = { type = "recorded", file = "wide.csv" }"#,
            &["alice.radio.downlink.fading.file: ", "`wide.csv` has 2 numbers in a line, and there are 3 resources"],
        ),
        (
            r#"fading = { type = "recorded", file = "letters.csv" }"#,
            &["alice.radio.downlink.fading.file: ", "line 1, column 2", "`four`"],
        ),
        (
            r#"fading = { type = "recorded", file = "snr.parquet" }"#,
            &[
                "alice.radio.downlink.fading.file: ",
                "it is a Parquet file",
                "`airpath fading convert snr.parquet snr.csv`",
                "file = \"snr.csv\"",
            ],
        ),
        (
            r#"fading = { type = "recorded", file = "my snr.mat" }"#,
            &["alice.radio.downlink.fading.file: ", "`airpath fading convert 'my snr.mat' 'my snr.csv'`"],
        ),
        (
            r#"fading = { type = "recorded", file = "none.csv" }"#,
            &["alice.radio.downlink.fading.file: ", "cannot read"],
        ),
        (
            r#"fading = { type = "recorded", file = "short.csv", prediction_error = 0.1 }"#,
            &["alice.radio.downlink.fading.prediction_error: ", "no meaning for recorded ratios"],
        ),
    ];
    for (channel, expected) in cases {
        let found = report(folder.path(), &CELL.replacen(CHANNEL, channel, 1));
        for part in *expected {
            assert!(found.contains(part), "{channel}: {found}");
        }
    }
}

#[test]
fn cells_that_are_wrong_are_refused_by_key_and_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&str, &str, &[&str])] = &[
        // Two users of one name, a scheduler's user that is not there.
        (r#"name = "bob""#, r#"name = "alice""#, &["paths[1].name: there are two paths called `alice`"]),
        (
            r#"{ type = "proportional_fair" }"#,
            r#"{ type = "static", owners = ["alice", "bobb"] }"#,
            &["media.cell.scheduler.owners", "names `bobb`, which is not in the cell; did you mean `bob`?"],
        ),
        (
            r#"{ type = "proportional_fair" }"#,
            r#"{ type = "proportional_fair", window = "1000" }"#,
            &["media.cell.scheduler.window: ", "`1000` is no number of slots, and no time"],
        ),
        ("resources = 3", "resources = 3\nspacing = \"0 Hz\"", &["media.cell.spacing: ", "it must be above 0"]),
        ("resources = 3", "resources = 3\nspacing = \"wide\"", &["media.cell.spacing: ", "`wide` is not a frequency"]),
        ("resources = 3", "resources = 0", &["media.cell.resources: "]),
        // What a state sets is held against the medium, too.
        (
            r#"set."radio.downlink.fading.snr" = "8 dB""#,
            r#"set."radio.downlink.fading.resources" = 7"#,
            &["alice.radio.downlink.fading.resources: is that of the medium", "(in state `far`)"],
        ),
        (
            r#"set."radio.downlink.fading.snr" = "8 dB""#,
            r#"set."radio.downlink.fading.snr" = "8""#,
            &["alice.radio.downlink.fading.snr: ", "(in state `far`)"],
        ),
    ];
    for (from, to, expected) in cases {
        let found = report(folder.path(), &CELL.replace(from, to));
        for part in *expected {
            assert!(found.contains(part), "{to}: {found}");
        }
    }
}

#[test]
fn media_without_users_and_users_without_channels_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let state = CELL.find("[[paths.states]]").unwrap()..CELL.rfind("[[paths]]").unwrap();
    let plain = [&CELL[..state.start], &CELL[state.end..]].concat().replace(CHANNEL, "");
    let found = report(folder.path(), &plain);
    for user in ["alice", "bob"] {
        let missing = format!("{user}.radio.downlink.fading: is missing; a station on this medium has a radio channel");
        assert!(found.contains(&missing), "{found}");
    }
    let found = report(folder.path(), &plain.replace(r#"medium = "cell""#, r#"rate = "1 Mbit/s""#));
    assert!(found.contains("media.cell: there is no hop on this medium"), "{found}");
}

/// Parameters that look wrong and are not: the documentation says what happens.
#[test]
fn bins_of_nobody_and_records_shorter_than_a_run_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("short.csv"), "3,4,5\n").unwrap();
    // Resources behind the list of owners stay free.
    let free = CELL.replace(r#"{ type = "proportional_fair" }"#, r#"{ type = "static", owners = ["alice"] }"#);
    assert_eq!(report(folder.path(), &free), "");
    for at_end in ["repeat", "hold"] {
        let channel = format!(r#"fading = {{ type = "recorded", file = "short.csv", at_end = "{at_end}" }}"#);
        assert_eq!(report(folder.path(), &CELL.replacen(CHANNEL, &channel, 1)), "", "{at_end}");
    }
}

#[test]
fn a_cell_without_media_to_share_has_no_resources() {
    let scenario = Scenario::from_toml(CELL, "cell.toml").unwrap();
    assert!(scenario.machine().unwrap().has_resources());
    let path = Scenario::from_toml("[[hops]]\n[hops.link]\nrate = \"1 Mbit/s\"\n", "path.toml").unwrap();
    assert!(matches!(path.machine().unwrap(), MachineConfig::Path(_)) && !path.machine().unwrap().has_resources());
    let wired =
        "[[media]]\nname = \"m\"\ntype = \"continuous\"\ndownlink = \"1 Mbit/s\"\n[[hops]]\ndownlink.medium = \"m\"\n";
    assert!(!Scenario::from_toml(wired, "wired.toml").unwrap().machine().unwrap().has_resources());
}
