// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Background loads in scenarios: what is read, what is printed, what is set by name.

use airpath_core::Direction;
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::load::trace::{LoadTrace, TraceConfig};
use airpath_models::load::{BackgroundConfig, LoadConfig};
use airpath_scenario::Scenario;

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap_or_else(|report| panic!("{report}"))
}

fn loads(scenario: &Scenario) -> Vec<BackgroundConfig> {
    scenario.paths().unwrap_or_else(|report| panic!("{report}")).remove(0).config.background
}

const TWO: &str = r#"
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"

[[hops]]
name = "core"

[[background]]
name = "voice"
hop = "core"
direction = "downlink"
until = "radio"
dscp = 46
flows = 3
start = "1 s"
stop = "1 min"
type = "cbr"
rate = "64 kbit/s"
packet_size = "200 bytes"

[[background]]
name = "browsing"
hop = "radio"
direction = "uplink"
type = "users"
interval = { type = "exponential", mean = "2 s" }
volume = { type = "uniform", from = "1 kB", to = "100 kB" }
rate = "200 kbit/s"
packet_size = "1500 bytes"
most_users = 5
"#;

#[test]
fn what_is_written_is_read_and_printed() {
    let scenario = read(TWO);
    let [voice, browsing] = &loads(&scenario)[..] else { panic!("two loads") };
    assert_eq!((voice.name.as_str(), voice.hop.as_str(), voice.direction), ("voice", "core", Direction::Downlink));
    assert_eq!((voice.until.as_deref(), voice.dscp, voice.flow, voice.flows), (Some("radio"), 46, None, 3));
    assert!(matches!(&voice.load, LoadConfig::Cbr(cbr) if cbr.rate.bits_per_second() == 64_000));
    assert!(matches!(&browsing.load, LoadConfig::Users(users) if users.most_users == Some(5)));
    let printed = scenario.to_toml().unwrap();
    let expected = "\n[[background]]\nname = \"voice\"\nhop = \"core\"\ndirection = \"downlink\"\nuntil = \"radio\"\n\
                    dscp = 46\nflows = 3\nstart = \"1 s\"\nstop = \"1 min\"\ntype = \"cbr\"\nrate = \"64 kbit/s\"\n\
                    packet_size = \"1600 bit\"\n\n[[background]]\nname = \"browsing\"\nhop = \"radio\"\n\
                    direction = \"uplink\"\ntype = \"users\"\ninterval = { type = \"exponential\", mean = \"2 s\"";
    assert!(printed.contains(expected), "{printed}");
    assert_eq!(loads(&read(&printed)), loads(&scenario));
    assert_eq!(read(&printed).to_toml().unwrap(), printed);
}

#[test]
fn every_registered_load_survives_printing() {
    let folder = std::env::temp_dir().join(format!("airpath-loads-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let list = "0.5 1500\n0.75 40\n";
    std::fs::write(folder.join("list.txt"), list).unwrap();
    let origin = folder.join("scenario.toml");
    for mut load in LoadConfig::examples() {
        if let LoadConfig::Trace(TraceConfig { file, repeat }) = &mut load {
            *file = FileRef::with_data("list.txt", LoadTrace::parse(list.as_bytes()).unwrap());
            *repeat = repeat.map(|_| "1 s".parse().unwrap());
        }
        let is_trace = matches!(load, LoadConfig::Trace(_));
        let mut one = BackgroundConfig::new("one", "radio", Direction::Uplink, load);
        let mut files = 0;
        one.files(&mut |_, _| files += 1);
        if files > 0 && !is_trace {
            // Distributions from files, which are not there.
            continue;
        }
        let text = format!("background = [{}]\n[[hops]]\n", toml::Value::try_from(one).unwrap());
        let parse = |text: &str| Scenario::from_toml(text, &origin.to_string_lossy());
        let scenario = parse(&text).unwrap_or_else(|report| panic!("{report}\n{text}"));
        let printed = scenario.to_toml().unwrap();
        let again = parse(&printed).unwrap_or_else(|report| panic!("{report}\n{printed}"));
        assert_eq!(loads(&again), loads(&scenario), "{printed}");
        assert_eq!(again.to_toml().unwrap(), printed);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn several_paths_have_loads_of_their_own() {
    let scenario = read(
        r#"
        [[paths]]
        name = "one"
        [[paths.hops]]
        [[paths.background]]
        name = "others"
        hop = "radio"
        direction = "uplink"
        type = "poisson"
        rate = "1 Mbit/s"
        packet_size = "1500 bytes"
        [[paths]]
        name = "two"
        [[paths.hops]]
        "#,
    );
    let paths = scenario.paths().unwrap();
    assert_eq!(paths.iter().map(|path| path.config.background.len()).collect::<Vec<_>>(), [1, 0]);
    let printed = scenario.to_toml().unwrap();
    assert_eq!(read(&printed).paths().unwrap(), paths, "{printed}");
}

#[test]
fn parameters_of_loads_are_set_by_name() {
    let mut scenario = read(TWO);
    for assignment in
        ["background.voice.rate=32 kbit/s", "background.voice.dscp=0", "background.browsing.interval.mean=1 s"]
    {
        scenario.set(assignment).unwrap_or_else(|report| panic!("{report}"));
    }
    let [voice, browsing] = &loads(&scenario)[..] else { panic!("two loads") };
    assert_eq!(voice.dscp, 0);
    assert!(matches!(&voice.load, LoadConfig::Cbr(cbr) if cbr.rate.bits_per_second() == 32_000));
    let table = toml::Table::try_from(browsing).unwrap();
    assert_eq!(table["interval"]["mean"].as_str(), Some("1 s"));
    let error = |assignment: &str| {
        let mut scenario = read(TWO);
        let outcome = scenario.set(assignment).and_then(|()| scenario.paths().map(|_| ()));
        outcome.unwrap_err().to_string()
    };
    assert!(error("background.voise.rate=1 Mbit/s").contains("there is no such load; did you mean `voice`?"));
    assert!(error("background.voice=1").contains("write for example `background.voice.rate`"));
    assert!(error("background.voice.rat=1").contains("background.voice.rat: a table of type \"cbr\" has no such key"));
    assert!(error("background.voice.rate=fast").contains("background.voice.rate: "));
    let mut without = Scenario::transparent();
    let report = without.set("background.voice.rate=1 Mbit/s").unwrap_err().to_string();
    assert!(report.contains("the scenario has no background load"), "{report}");
}
