// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rates that vary, as scenarios write them: tables, files beside the scenario, plain options.

use std::path::PathBuf;

use airpath_core::Direction;
use airpath_models::medium::RateConfig;
use airpath_scenario::{PlainOptions, Scenario};

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("airpath-rates-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A scenario in it whose only hop has this rate, in both directions.
    fn scenario(&self, rate: &str) -> Result<Scenario, String> {
        let text = format!("[[hops]]\nname = \"radio\"\n[hops.link]\nrate = {rate}\n");
        let name = self.write("scenario.toml", &text);
        Scenario::from_toml(&text, &name).map_err(|report| report.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const TABLES: [&str; 7] = [
    r#"{ type = "steps", steps = ["0 s: 1 Mbit/s", "20 s: 0 bit/s", "21.5 s: 64 kbit/s"] }"#,
    r#"{ type = "steps", steps = ["0 s: 1 Mbit/s", "20 s: 64 kbit/s"], interpolation = "linear", period = "30 s" }"#,
    r#"{ type = "trace", file = "train.csv" }"#,
    r#"{ type = "trace", file = "train.csv", interpolation = "linear", repeat = false }"#,
    r#"{ type = "mahimahi", file = "up.trace" }"#,
    r#"{ type = "mahimahi", file = "up.trace", repeat = false, accounting = "tun" }"#,
    r#"{ type = "slotted", slot = "577 us", bits = "114 bit", period = "4.615 ms", offset = "1 ms" }"#,
];

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("train.csv", "time,rate\n0,1e6\n1,2e6\n");
    folder.write("up.trace", "1\n2\n2\n");
    folder
}

#[test]
fn every_table_reads_and_prints_as_it_is_written() {
    let folder = folder("tables");
    for table in TABLES {
        let scenario = folder.scenario(table).unwrap_or_else(|report| panic!("{table}: {report}"));
        let printed = scenario.to_toml().unwrap();
        assert!(printed.contains(&format!("rate = {table}\n")), "{table} became\n{printed}");
        let again = Scenario::from_toml(&printed, &folder.0.join("printed.toml").display().to_string()).unwrap();
        assert_eq!(again.paths().unwrap(), scenario.paths().unwrap());
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let folder = folder("wrong");
    folder.write("bad.csv", "time,rate\n0,1e6\n1,fast\n");
    folder.write("bad.trace", "1\n\n");
    for (table, expected) in [
        (r#"{ type = "mahimahy", file = "up.trace" }"#, "did you mean `mahimahi`"),
        (r#"{ type = "mahimahi" }"#, "radio.link.rate.file: this key is missing"),
        (r#"{ type = "mahimahi", file = "none.trace" }"#, "none.trace`: No such file"),
        (r#"{ type = "mahimahi", file = "bad.trace" }"#, "`bad.trace` is no trace of mm-link: line 2: it is empty"),
        (r#"{ type = "trace", file = "bad.csv" }"#, "`bad.csv` is no rate trace: line 3: `fast` is not"),
        (r#"{ type = "trace", file = "train.csv", interpolation = "curved" }"#, "is not a valid value"),
        (r#"{ type = "steps", steps = ["0 s: 1 Mbit/s", "20: 1 Mbit/s"] }"#, "rate.steps[1]: `20` has no unit"),
        (r#"{ type = "steps", steps = "0 s: 1 Mbit/s" }"#, "radio.link.rate.steps"),
        (r#"{ type = "steps", steps = ["1 s: 1 Mbit/s"] }"#, "radio.link.rate.steps: begins at 1 s"),
        (r#"{ type = "cellreplay", light = "up.trace", heavy = "up.trace" }"#, "`up.trace` is no trace of CellReplay"),
        (r#"{ type = "slotted", slot = "0 s", bits = "1 bit" }"#, "radio.link.rate.slot: is 0 s"),
        (
            r#"{ type = "slotted", slot = "1 ms", bits = "1 bit", file = "x" }"#,
            "one of type \"trace\" or \"mahimahi\" has",
        ),
    ] {
        let report = folder.scenario(table).expect_err(table);
        assert!(report.contains(expected) && report.contains(":4:"), "{table}: {report}");
    }
}

#[test]
fn a_record_names_files_from_anywhere() {
    let folder = folder("record");
    let scenario = folder.scenario(TABLES[4]).unwrap();
    let record = scenario.to_toml_with_files(&|file| Some(file.display().to_string())).unwrap();
    assert!(record.contains(&folder.0.join("up.trace").display().to_string()), "{record}");
    let again = Scenario::from_toml(&record, "elsewhere/run.json").unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(again.to_toml().unwrap(), record);
}

#[test]
fn a_plain_option_names_traces() {
    let folder = folder("plain");
    let (up, down) = (folder.write("up.trace", "1\n2\n"), folder.write("down.csv", "0,5 Mbit/s\n"));
    let mut scenario = Scenario::transparent();
    let with = |rate: String| PlainOptions { rate: Some(rate), ..PlainOptions::default() };
    scenario.apply_plain(&with(format!("mahimahi:{up}, trace:{down}"))).unwrap();
    let path = scenario.paths().unwrap().remove(0).config;
    let printed = |direction| match &path.hops[0].link(direction).rate {
        RateConfig::Varying(config) => toml::Value::try_from(config).unwrap()["type"].to_string(),
        RateConfig::Constant(rate) => rate.to_string(),
    };
    assert_eq!([printed(Direction::Uplink), printed(Direction::Downlink)], ["\"mahimahi\"", "\"trace\""]);
    let report = Scenario::transparent().apply_plain(&with("mahimaho:up".into())).unwrap_err().to_string();
    assert!(
        report.contains("`mahimaho` is not a trace format") && report.contains("did you mean `mahimahi`"),
        "{report}"
    );
}

#[test]
fn a_state_may_change_the_rate_to_a_trace_and_back() {
    let folder = folder("states");
    let text = r#"
        [[hops]]
        name = "radio"
        [hops.link]
        rate = { type = "mahimahi", file = "up.trace" }
        [[states]]
        name = "wire"
        at = "5 s"
        set = { "radio.link.rate" = "1 Mbit/s" }
        [[states]]
        name = "once"
        at = "6 s"
        set = { "radio.link.rate.repeat" = false }
    "#;
    let name = folder.write("scenario.toml", text);
    let scenario = Scenario::from_toml(text, &name).unwrap_or_else(|report| panic!("{report}"));
    let path = scenario.paths().unwrap().remove(0).config;
    assert_eq!(path.states[0].hops[0].uplink.rate.to_string(), "1 Mbit/s");
    assert_ne!(path.states[1].hops[0].uplink.rate, path.hops[0].uplink.rate);
    let printed = scenario.to_toml().unwrap();
    assert!(printed.contains("\"radio.link.rate.repeat\" = false"), "{printed}");
    let again = Scenario::from_toml(&printed, &folder.0.join("printed.toml").display().to_string()).unwrap();
    assert_eq!(again.paths().unwrap(), scenario.paths().unwrap());
}
