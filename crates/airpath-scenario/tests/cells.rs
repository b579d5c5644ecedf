// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cells in scenarios: media, users, and what is set of either by name.

use airpath_core::{Direction, Seed};
use airpath_models::{CellConfig, MachineConfig};
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
        ("media.cell-a=1 Mbit/s", "this names a medium, not a parameter; write for example `media.cell-a.downlink`"),
        ("carol.radio.link.rate=1 Mbit/s", "there is no hop `carol`"),
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
        let setting = running.set(&[format!("{name}=7 ms")]).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(setting.beginning[0].downlink.propagation.constant().unwrap().to_string(), "7 ms");
        assert!(running.get(name, Default::default()).is_ok());
    }
    let report = running.set(&["media.cell-a.downlink=1 Mbit/s".into()]).unwrap_err().to_string();
    assert!(report.contains("a medium that users share stays as it is during a run"), "{report}");
}
