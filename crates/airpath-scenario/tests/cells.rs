// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cells in scenarios: media, users, and what is set of either by name.

use airpath_core::{Command, Cx, Direction, EventKind, LogLevel, Machine, Outputs, Seed, StateInForce, Time};
use airpath_models::{CellConfig, MachineConfig, Setting};
use airpath_scenario::{Running, Scenario};

const TWO_USERS: &str = r#"
[[media]]
name = "cell-a"
type = "continuous"
uplink = "2 Mbit/s"
downlink = "10 Mbit/s"
order = "round_robin"

[[paths]]
name = "alice"
[[paths.hops]]
name = "radio"
[paths.hops.link]
medium = "cell-a"
propagation = "10 ms"
[[paths.hops]]
name = "core"
[paths.hops.link]
rate = "100 Mbit/s"

[[paths]]
name = "bob"
[[paths.hops]]
[paths.hops.downlink]
medium = "cell-a"
"#;

const ONE_USER: &str = r#"
[[media]]
name = "cell-a"
type = "continuous"
downlink = "10 Mbit/s"

[[hops]]
[hops.downlink]
medium = "cell-a"
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

/// The rate of a medium, as JSON has it.
fn downlink(scenario: &Scenario, medium: usize) -> serde_json::Value {
    serde_json::to_value(&cell(scenario).media[medium].config).unwrap()["downlink"].clone()
}

#[test]
fn paths_that_share_media_are_users_of_a_cell() {
    let scenario = read(TWO_USERS);
    let cell = cell(&scenario);
    assert_eq!((cell.media.len(), cell.media[0].name.as_str()), (1, "cell-a"));
    assert_eq!(cell.users.iter().map(|user| user.name.as_str()).collect::<Vec<_>>(), ["alice", "bob"]);
    assert!(cell.users.iter().all(|user| !user.is_unnamed));
    let shared = |user: usize, hop: usize| {
        Direction::ALL.map(|way| cell.users[user].path.hops[hop].link(way).medium.name().map(str::to_string))
    };
    assert_eq!(shared(0, 0), [Some("cell-a".into()), Some("cell-a".into())]);
    assert_eq!((shared(0, 1), shared(1, 0)), ([None, None], [None, Some("cell-a".into())]));
    let machine = scenario.machine().unwrap();
    assert_eq!(machine.users().iter().map(|user| user.name).collect::<Vec<_>>(), ["alice", "bob"]);
    assert_eq!(
        (machine.is_unlimited(1, Direction::Downlink), machine.is_unlimited(1, Direction::Uplink)),
        (false, true)
    );
    assert_eq!(scenario.paths().unwrap().len(), 2);
    let _ = machine.build(Seed(1));
}

#[test]
fn a_path_without_a_name_on_a_medium_is_one_unnamed_user() {
    let cell = cell(&read(ONE_USER));
    assert!(cell.users.len() == 1 && cell.users[0].is_unnamed);
    assert_eq!(read(ONE_USER).machine().unwrap().users()[0].name, "");
    // Without media, a path is a path.
    let plain = read("[[hops]]\n[hops.link]\nrate = \"1 Mbit/s\"\n");
    assert!(matches!(plain.machine().unwrap(), MachineConfig::Path(_)) && plain.media().unwrap().is_empty());
}

#[test]
fn several_paths_that_share_nothing_are_no_machine() {
    let text = "[[paths]]\nname = \"a\"\n[[paths.hops]]\n[[paths]]\nname = \"b\"\n[[paths.hops]]\n";
    let report = read(text).machine().unwrap_err().to_string();
    assert!(report.contains("the scenario has 2 paths, but a command uses only one"), "{report}");
}

#[test]
fn parameters_of_media_and_users_are_set_by_name() {
    let mut scenario = read(TWO_USERS);
    for assignment in [
        "media.cell-a.downlink=20 Mbit/s",
        "alice.radio.link.propagation=30 ms",
        "radio.uplink.overhead=80 bit",
        "core.link.rate=1 Gbit/s",
    ] {
        scenario.set(assignment).unwrap_or_else(|report| panic!("{report}"));
    }
    let cell = cell(&scenario);
    assert_eq!(downlink(&scenario, 0), "20 Mbit/s");
    let radio = |user: usize| &cell.users[user].path.hops[0];
    assert_eq!(radio(0).uplink.propagation.constant().unwrap().to_string(), "30 ms");
    assert_eq!(radio(1).uplink.propagation.constant().unwrap().nanos(), 0);
    assert!((0..2).all(|user| radio(user).uplink.overhead.get() == 80));
    let wrong = [
        ("media.cell-b.downlink=1 Mbit/s", "media.cell-b.downlink: there is no such medium; did you mean `cell-a`?"),
        ("media.cell-a.name=cell-b", "media.cell-a.name: a medium keeps its name"),
        ("media.cell-a=1 Mbit/s", "this names a medium, not a parameter; write for example `media.cell-a.downlink`"),
        ("carol.radio.link.rate=1 Mbit/s", "there is no user or hop `carol`"),
    ];
    for (assignment, expected) in wrong {
        let report = scenario.set(assignment).unwrap_err().to_string();
        assert!(report.contains(expected), "{assignment}: {report}");
    }
    scenario.set("media.cell-a.downlink=1 furlong").unwrap();
    let report = scenario.paths().unwrap_err().to_string();
    assert!(report.starts_with("--set media.cell-a.downlink=1 furlong: media.cell-a.downlink: "), "{report}");
}

#[test]
fn the_only_user_may_be_named_or_not() {
    let named =
        ONE_USER.replace("[[hops]]", "[[paths]]\nname = \"alice\"\n[[paths.hops]]").replace("[hops.", "[paths.hops.");
    let mut scenario = read(&named);
    assert!(!cell(&scenario).users[0].is_unnamed);
    scenario.set("alice.radio.uplink.propagation=5 ms").unwrap();
    scenario.set("radio.downlink.propagation=6 ms").unwrap();
    let hop = cell(&scenario).users.remove(0).path.hops.remove(0);
    assert_eq!(hop.uplink.propagation.constant().unwrap().to_string(), "5 ms");
    assert_eq!(hop.downlink.propagation.constant().unwrap().to_string(), "6 ms");
}

#[test]
fn a_cell_survives_printing() {
    for text in [TWO_USERS, ONE_USER] {
        let scenario = read(text);
        let printed = scenario.to_toml().unwrap();
        let again = read(&printed);
        assert_eq!(again.machine().unwrap(), scenario.machine().unwrap(), "{printed}");
        assert_eq!(again.to_toml().unwrap(), printed);
    }
    let printed = read(TWO_USERS).to_toml().unwrap();
    assert!(
        printed.starts_with(
            "[[media]]\nname = \"cell-a\"\ntype = \"continuous\"\nuplink = \"2 Mbit/s\"\ndownlink = \"10 Mbit/s\"\n\
             order = \"round_robin\"\n\n[[paths]]\nname = \"alice\"\n"
        ),
        "{printed}"
    );
    assert!(printed.contains("medium = \"cell-a\"\n"), "{printed}");
    // Of alice's hops only the second has a rate of its own.
    let alice = printed.split("name = \"bob\"").next().unwrap();
    assert_eq!(alice.matches("rate = ").count(), 1, "{printed}");
}

#[test]
fn files_of_media_are_found_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cell.trace"), "1\n3\n").unwrap();
    let text = ONE_USER.replace("\"10 Mbit/s\"", "{ type = \"mahimahi\", file = \"cell.trace\" }");
    let name = folder.path().join("cell.toml").display().to_string();
    let scenario = Scenario::from_toml(&text, &name).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(scenario.files().unwrap(), [folder.path().join("cell.trace")]);
    let kept = scenario.to_toml_with_files(&|_| Some("files/kept.trace".into())).unwrap();
    assert!(kept.contains("file = \"files/kept.trace\""), "{kept}");
    let missing = Scenario::from_toml(&text, "elsewhere/cell.toml").unwrap_err().to_string();
    assert!(missing.contains("media.cell-a.downlink.file: cannot read `elsewhere/cell.trace`"), "{missing}");
}

#[test]
fn a_run_of_one_user_takes_settings_of_hops_and_not_of_media() {
    let named =
        ONE_USER.replace("[[hops]]", "[[paths]]\nname = \"alice\"\n[[paths.hops]]").replace("[hops.", "[paths.hops.");
    let mut running = Running::new(&read(&named));
    for name in ["alice.radio.downlink.propagation", "radio.downlink.propagation"] {
        let settings = running.set(&[format!("{name}=7 ms")]).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(settings[0].1.beginning[0].downlink.propagation.constant().unwrap().to_string(), "7 ms");
        assert!(running.get(name, |_| Default::default()).is_ok());
    }
    let report = running.set(&["media.cell-a.downlink=1 Mbit/s".into()]).unwrap_err().to_string();
    assert!(report.contains("a medium that users share stays as it is during a run"), "{report}");
}

/// Users of whom bob has a state in which his errors have no probability.
const CLEAN: &str = r#"
[paths.hops.uplink]
errors = { type = "bernoulli", probability = 0.1 }
[[paths.states]]
name = "clean"
set = { "radio.uplink.errors" = { type = "none" } }
"#;

fn set(running: &mut Running, texts: &[&str]) -> Vec<(u16, Setting)> {
    let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
    running.set(&texts).unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn a_setting_concerns_one_user_or_all_who_have_the_hop() {
    let mut running = Running::new(&read(TWO_USERS));
    let propagation = |settings: &[(u16, Setting)]| -> Vec<(u16, String)> {
        let of_user = |(user, setting): &(u16, Setting)| {
            (*user, setting.beginning[0].downlink.propagation.constant().unwrap().to_string())
        };
        settings.iter().map(of_user).collect()
    };
    let all = set(&mut running, &["radio.link.propagation=20 ms"]);
    assert_eq!(propagation(&all), [(0, "20 ms".into()), (1, "20 ms".into())]);
    running.took_effect(|_| StateInForce::default());
    let one = set(&mut running, &["bob.radio.downlink.propagation=80 ms"]);
    assert_eq!(propagation(&one), [(1, "80 ms".into())]);
    // Bob's earlier one holds, too.
    assert_eq!(one[0].1.beginning[0].uplink.propagation.constant().unwrap().to_string(), "20 ms");
    running.took_effect(|_| StateInForce::default());
    assert_eq!(set(&mut running, &["core.link.rate=1 Mbit/s"])[0].0, 0);
    let get = |name: &str| running.get(name, |_| StateInForce::default()).unwrap();
    assert_eq!(get("radio.uplink.propagation"), "20 ms");
    assert_eq!(get("radio.downlink.propagation"), serde_json::json!({ "alice": "20 ms", "bob": "80 ms" }));
    assert_eq!(get("alice.radio.downlink.propagation"), "20 ms");
    // One user after all, whatever the order of what is sent.
    let values = ["alice.radio.link.propagation", "radio.downlink.propagation", "radio.link.propagation"];
    let values = values.map(|name| (name.to_string(), serde_json::json!("1 ms")));
    let sorted = running.assignments(values.iter().map(|(name, value)| (name, value)));
    let order = ["radio.link", "radio.downlink", "alice.radio.link"].map(|name| format!("{name}.propagation=1 ms"));
    assert_eq!(sorted, order);
}

#[test]
fn a_setting_that_names_nobody_tells_users_and_hops() {
    let mut running = Running::new(&read(TWO_USERS));
    for (text, parts) in [
        ("carol.radio.link.propagation=1 ms", &["no user or hop `carol`", "core.…, radio.…, alice.…, bob.…"][..]),
        ("alic.radio.link.propagation=1 ms", &["did you mean `alice.radio.link.propagation`"]),
        ("bob.core.link.rate=1 Mbit/s", &["there is no hop `core`", "bob.radio.…"]),
        ("bob.radio.link.propagatio=1 ms", &["bob.radio.link.propagation"]),
        ("radio.link.propagation=1", &["alice.radio.link.propagation", "unit"]),
    ] {
        let report = running.set(&[text.into()]).unwrap_err().to_string();
        assert!(parts.iter().all(|part| report.contains(part)), "{text}: {report}");
    }
    let report = running.get("carol.radio.link.rate", |_| StateInForce::default()).unwrap_err().to_string();
    assert!(report.contains("no user or hop `carol`"), "{report}");
}

#[test]
fn what_does_not_fit_the_state_of_one_user_is_set_for_none() {
    let scenario = read(&format!(
        "{}{CLEAN}",
        TWO_USERS.replace(
            "propagation = \"10 ms\"",
            "propagation = \"10 ms\"\nerrors = { type = \"bernoulli\", probability = 0.1 }"
        )
    ));
    let config = scenario.machine().unwrap();
    let mut machine = config.build(Seed(1));
    let mut outputs = Outputs { level: LogLevel::Events, ..Outputs::default() };
    let mut running = Running::new(&scenario);
    let mut control = |machine: &mut Box<dyn Machine>, at: u64, command: Command| {
        let outcome = machine.control(Time::from_nanos(at), &command, &mut Cx::new(&mut outputs));
        let told = outputs.events.drain(..).filter(|event| event.kind == EventKind::ParameterSet).count();
        outcome.map(|()| told)
    };
    assert!(control(&mut machine, 1, Command::EnterState("clean".into())).is_ok());
    assert_eq!([0, 1].map(|user| machine.state_in_force(user).number), [0, 1]);
    let settings = set(&mut running, &["radio.uplink.errors.probability=0.5"]);
    let refused = control(&mut machine, 2, Command::Configure(config.settings(settings))).unwrap_err().to_string();
    assert!(refused.contains("probability"), "{refused}");
    assert!(control(&mut machine, 3, Command::EnterState("bob.initial".into())).is_ok());
    let settings = set(&mut running, &["radio.uplink.errors.probability=0.5"]);
    // An event for each hop of both.
    assert_eq!(control(&mut machine, 4, Command::Configure(config.settings(settings))).map(|told| told > 1), Ok(true));
    for (name, part) in [
        ("carol.clean", "there is no user `carol`; the users are alice, bob"),
        ("alice.clean", "there is no state `alice.clean`; the states are initial"),
        ("dark", "there is no state `dark`; the states are initial, clean (of bob)"),
    ] {
        let refused = control(&mut machine, 5, Command::EnterState(name.into())).unwrap_err().to_string();
        assert_eq!(refused, part);
    }
}
