// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters by name, plain options, states, and what is printed.

use airpath_core::{Direction, LinkRate};
use airpath_models::{LinkConfig, PathConfig};
use airpath_scenario::{PlainOptions, Scenario};

fn only(scenario: &Scenario) -> PathConfig {
    scenario.paths().unwrap_or_else(|report| panic!("{report}")).remove(0).config
}

fn rates(link: &LinkConfig) -> String {
    link.rate.to_string()
}

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn directions_override_the_link_key_by_key() {
    let scenario = read(
        r#"
        [[hops]]
        [hops.link]
        rate = "1 Mbit/s"
        queue = { type = "head_drop", limit = "7 packets" }
        errors = { type = "bernoulli", probability = 0.1, effect = "corrupt" }
        fragmentation = { frame_payload = "100 bit", frame_header = "8 bit" }
        [hops.uplink]
        queue = { limit = "3 packets" }
        errors = { type = "bernoulli", probability = 0.2 }
        [hops.downlink]
        fragmentation = { frame_payload = "200 bit" }
        [[hops]]
        [hops.uplink]
        fragmentation = "none"
        "#,
    );
    let config = only(&scenario);
    assert_eq!(config.hops.iter().map(|hop| hop.name.as_str()).collect::<Vec<_>>(), ["hop1", "hop2"]);
    let (up, down) = (&config.hops[0].uplink, &config.hops[0].downlink);
    assert_eq!((rates(up), rates(down)), ("1 Mbit/s".into(), "1 Mbit/s".into()));
    // Without a type the table changes single keys; with one it stands for itself.
    assert_eq!(format!("{:?}", up.queue), format!("{:?}", down.queue).replace("Some(7)", "Some(3)"));
    assert!(format!("{:?}", down.queue).contains("HeadDrop"));
    assert!(
        format!("{:?}", up.errors).contains("effect: Drop") && format!("{:?}", down.errors).contains("effect: Corrupt")
    );
    let fragmentation = down.fragmentation.unwrap();
    assert_eq!((fragmentation.frame_payload.get(), fragmentation.frame_header.get()), (200, 8));
    assert_eq!(up.fragmentation.unwrap().frame_payload.get(), 100);
    assert!(config.hops[1].uplink.fragmentation.is_none());
}

#[test]
fn parameters_are_set_by_name() {
    let mut scenario = Scenario::profile("seawind-case").unwrap();
    for assignment in [
        "radio.link.rate=64 kbit/s",
        "radio.uplink.rate=\"32 kbit/s\"",
        "radio.link.errors.probability=5%",
        "radio.downlink.queue.type=head_drop",
        "radio.downlink.fragmentation={frame_payload=\"432 bit\"}",
        "radio.link.propagation = 10 ms",
    ] {
        scenario.set(assignment).unwrap_or_else(|report| panic!("{report}"));
    }
    let config = only(&scenario);
    let hop = &config.hops[0];
    assert_eq!((rates(&hop.uplink), rates(&hop.downlink)), ("32 kbit/s".into(), "64 kbit/s".into()));
    assert!(format!("{:?}", hop.downlink.queue).contains("HeadDrop"));
    assert!(format!("{:?}", hop.downlink.queue).contains("Some(7)"), "the limit is kept");
    assert!(format!("{:?}", hop.uplink.queue).contains("TailDrop"));
    assert_eq!(hop.downlink.fragmentation.unwrap().frame_payload.get(), 432);
    assert_eq!(toml::Table::try_from(&hop.uplink.errors).unwrap()["probability"].as_float(), Some(0.05));
    // A state builds on what was set, and keeps what it sets itself.
    let poor = &config.states[0].hops[0];
    assert_eq!(rates(&poor.uplink), "32 kbit/s");
    assert_eq!(toml::Table::try_from(&poor.uplink.errors).unwrap()["probability"].as_float(), Some(0.1));
}

#[test]
fn a_change_of_type_takes_along_what_fits() {
    let mut scenario = Scenario::profile("wifi-poor").unwrap();
    scenario.set("radio.link.errors.type=bernoulli").unwrap();
    let report = scenario.paths().unwrap_err().to_string();
    assert!(report.contains("radio.link.errors.probability: this key is missing"), "{report}");
    scenario.set("radio.link.errors.probability=0.25").unwrap();
    assert!(format!("{:?}", only(&scenario).hops[0].uplink.errors).contains("Bernoulli"));
    scenario.set("radio.link.errors.type=none").unwrap();
    assert!(format!("{:?}", only(&scenario).hops[0].uplink.errors).contains("None"));
}

#[test]
fn names_that_are_wrong_are_mended() {
    let wrong = [
        ("link.rate=1 Mbit/s", "did you mean `radio.link.rate`?"),
        ("rate=1 Mbit/s", "did you mean `radio.link.rate`?"),
        ("radio.rate=1 Mbit/s", "did you mean `radio.link.rate`?"),
        ("radio.uplnk.rate=1 Mbit/s", "did you mean `radio.uplink.rate`?"),
        ("rdio.link.rate=1 Mbit/s", "did you mean `radio.link.rate`?"),
        ("radio.link.rat=1 Mbit/s", "did you mean `radio.link.rate`?"),
        ("radio.link.queue.limt=5 packets", "did you mean `radio.link.queue.limit`?"),
        ("radio.link.rate=fast", "`fast` is not a rate"),
        ("radio.link.rate=9600", "`9600` has no unit"),
        ("radio.link.rate", "an assignment needs `=`"),
        ("radio.link=5", "this names a direction"),
        ("radio.link.=5", "a part of the name is empty"),
        ("radio.link.errors={type=\"bernoulli\"", "unclosed inline table"),
        ("radio.link.errors.type=bernouli", "did you mean `bernoulli`?"),
    ];
    for (assignment, expected) in wrong {
        let mut scenario = Scenario::transparent();
        let report = match scenario.set(assignment) {
            Err(report) => report,
            Ok(()) => scenario.paths().expect_err(assignment),
        }
        .to_string();
        assert!(report.starts_with(&format!("--set {assignment}: ")), "{report}");
        assert!(report.contains(expected), "{assignment}: {report}");
    }
}

#[test]
fn plain_options_need_no_toml() {
    let mut scenario = Scenario::transparent();
    let some = |text: &str| Some(text.to_string());
    let options = PlainOptions {
        rate: some("384 kbit/s,2 Mbit/s"),
        delay: some("20 ms"),
        loss: some("1%"),
        queue: some("head_drop 100 packets, 64 kB"),
        ..PlainOptions::default()
    };
    scenario.apply_plain(&options).unwrap();
    let hop = &only(&scenario).hops[0];
    assert_eq!(hop.name, "radio");
    assert_eq!((rates(&hop.uplink), rates(&hop.downlink)), ("384 kbit/s".into(), "2 Mbit/s".into()));
    for direction in Direction::ALL {
        let link = hop.link(direction);
        assert_eq!(link.propagation.least().to_string(), "20 ms");
        let errors = toml::Table::try_from(&link.errors).unwrap();
        assert_eq!((errors["type"].as_str(), errors["probability"].as_float()), (Some("bernoulli"), Some(0.01)));
        assert_eq!((errors["per"].as_str(), errors["effect"].as_str()), (Some("packet"), Some("drop")));
    }
    assert!(format!("{:?}", hop.uplink.queue).contains("HeadDrop"));
    assert!(format!("{:?}", hop.downlink.queue).contains("bytes: Some(64000)"));
}

/// Semantics of netem for delay, jitter, reordering and duplication.
#[test]
fn plain_options_of_order_and_jitter() {
    let some = |text: &str| Some(text.to_string());
    let link = |options: &PlainOptions| {
        let mut scenario = Scenario::transparent();
        scenario.apply_plain(options).unwrap_or_else(|report| panic!("{report}"));
        let config = only(&scenario);
        [&config.hops[0].uplink, &config.hops[0].downlink].map(|link| toml::Table::try_from(link).unwrap())
    };
    let toml = |text: &str| text.parse::<toml::Table>().unwrap()["a"].clone();
    let plain = PlainOptions::default;
    let [up, down] = link(&PlainOptions { delay: some("20 ms,30 ms"), jitter: some("5 ms"), ..plain() });
    let normal = |mean| {
        format!("a = {{type = 'normal', mean = '{mean}', deviation = '5 ms', least = '0 s', correlation = 0.0}}")
    };
    assert_eq!(up["propagation"], toml(&normal("20 ms")));
    assert_eq!(down["propagation"], toml(&normal("30 ms")));
    let [up, down] = link(&PlainOptions { delay: some("20 ms"), jitter: some("0 s,5 ms"), ..plain() });
    assert_eq!(up["propagation"], toml("a = '20 ms'"));
    assert_eq!(down["propagation"], toml(&normal("20 ms")));
    // A delay that changes with time; ten deviations where no time is given.
    let wander = |mean, time| format!("a = {{type = 'wander', mean = '{mean}', deviation = '5 ms', time = '{time}'}}");
    let correlated = some("5 ms correlated 80 ms,5 ms correlated");
    let [up, down] = link(&PlainOptions { delay: some("20 ms"), jitter: correlated, ..plain() });
    assert_eq!(up["propagation"], toml(&wander("20 ms", "80 ms")));
    assert_eq!(down["propagation"], toml(&wander("20 ms", "50 ms")));
    let [up, _] = link(&PlainOptions { delay: some("20 ms"), jitter: some("0 s correlated"), ..plain() });
    assert_eq!(up["propagation"], toml("a = '20 ms'"));
    // Either takes the mean of the other.
    let mut scenario = Scenario::transparent();
    for jitter in ["2 ms", "5 ms correlated 80 ms", "5 ms"] {
        let delay = (jitter == "2 ms").then(|| "20 ms".to_string());
        scenario.apply_plain(&PlainOptions { delay, jitter: some(jitter), ..plain() }).unwrap();
    }
    let config = only(&scenario);
    assert_eq!(toml::Table::try_from(&config.hops[0].uplink).unwrap()["propagation"], toml(&normal("20 ms")));
    let options = PlainOptions { reorder: some("1% 20 ms,2% 3 packets"), duplicate: some("0.5%"), ..plain() };
    let [up, down] = link(&options);
    assert_eq!(up["reorder"], toml("a = {probability = 0.01, delay = '20 ms', gap = 1, correlation = 0.0}"));
    assert_eq!(down["reorder"], toml("a = {probability = 0.02, distance = 3, gap = 1, correlation = 0.0}"));
    assert_eq!(up["duplicate"], toml("a = {probability = 0.005, delay = '0 s', copies = 1, correlation = 0.0}"));
    let [up, _] = link(&PlainOptions { reorder: some("25%"), ..plain() });
    assert_eq!(up["reorder"]["distance"].as_integer(), Some(1));
    // A delay that is a distribution is not guessed at.
    let mut scenario = Scenario::transparent();
    scenario.set("radio.uplink.propagation={type=\"uniform\", from=\"1 ms\", to=\"2 ms\"}").unwrap();
    let report = scenario.apply_plain(&PlainOptions { jitter: some("1 ms"), ..plain() }).unwrap_err().to_string();
    assert!(report.contains("radio.uplink.propagation is already a distribution"), "{report}");
}

/// Distributions name files beside the scenario; what is wrong is told where it was written.
#[test]
fn distributions_are_read_with_their_files() {
    let folder = std::env::temp_dir().join(format!("airpath-distributions-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("rtt.txt"), "10\n20\n30\n").unwrap();
    std::fs::write(folder.join("bad.dist"), "1 2 x\n").unwrap();
    let file = folder.join("s.toml");
    let read = |propagation: &str| {
        let text = format!("[[hops]]\n[hops.link]\npropagation = {propagation}\n");
        Scenario::from_toml(&text, file.to_str().unwrap()).map_err(|report| report.to_string())
    };
    let sequence = "{ type = \"sequence\", file = \"rtt.txt\", unit = \"1 ms\" }";
    let nested = format!(
        "{{ type = \"mixture\", of = [{{ weight = 1, value = \"5 ms\" }}, {{ weight = 2, value = {sequence} }}] }}"
    );
    for (text, least) in [(sequence, "10 ms"), (nested.as_str(), "5 ms")] {
        let scenario = read(text).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(only(&scenario).hops[0].uplink.propagation.least().to_string(), least);
    }
    let report = read(&nested.replace("rtt.txt", "none.txt")).unwrap_err();
    assert!(report.contains("radio.link.propagation.of[1].value.file: cannot read"), "{report}");
    let report = read("{ type = \"netem\", file = \"bad.dist\", mean = \"1 ms\", deviation = \"1 ms\" }").unwrap_err();
    assert!(report.contains("propagation.file: `bad.dist` is no table of netem: line 1: `x`"), "{report}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn plain_options_lie_over_a_profile() {
    let mut scenario = Scenario::profile("gprs-cs2-3+1").unwrap();
    let options = PlainOptions {
        rate: Some("unlimited".into()),
        loss: Some("0".into()),
        queue: Some("7 packets".into()),
        ..PlainOptions::default()
    };
    scenario.apply_plain(&options).unwrap();
    let hop = &only(&scenario).hops[0];
    assert_eq!(hop.uplink.rate.constant(), Some(LinkRate::Unlimited));
    assert_eq!(hop.uplink.propagation.least().to_string(), "250 ms");
    assert!(hop.uplink.fragmentation.is_some());
    assert!(format!("{:?}", hop.downlink.queue).contains("Some(7)"));
}

#[test]
fn plain_options_that_are_wrong() {
    let two = "[[hops]]\nname = \"lan\"\n[[hops]]\nname = \"wan\"\n";
    let with = |option: &str, value: &str| {
        let value = Some(value.to_string());
        match option {
            "rate" => PlainOptions { rate: value, ..PlainOptions::default() },
            "delay" => PlainOptions { delay: value, ..PlainOptions::default() },
            "loss" => PlainOptions { loss: value, ..PlainOptions::default() },
            "jitter" => PlainOptions { jitter: value, ..PlainOptions::default() },
            "reorder" => PlainOptions { reorder: value, ..PlainOptions::default() },
            "duplicate" => PlainOptions { duplicate: value, ..PlainOptions::default() },
            _ => PlainOptions { queue: value, ..PlainOptions::default() },
        }
    };
    let wrong = [
        ("rate", "12", "--rate \"12\": radio.link.rate: `12` has no unit"),
        ("rate", "1 Mbit/s,2 Mbit/s,3 Mbit/s", "these are 3 values"),
        ("rate", "1 Mbit/s,", "a value is missing"),
        ("delay", "20", "`20` has no unit"),
        ("loss", "150%", "`150%` is not between 0 and 1"),
        ("jitter", "5", "`5` has no unit"),
        ("jitter", "5 correlated", "`5` has no unit"),
        ("jitter", "5 ms correlated 100", "behind `correlated` `100` has no unit"),
        ("jitter", "5 ms correlated 0 s", "propagation.time: is 0 s; it must be more"),
        ("reorder", "1% often", "`often` is neither a time nor a number of packets"),
        ("reorder", "1% 0 packets", "radio.link.reorder.distance: 0 is out of range"),
        ("reorder", "5 ms", "--reorder \"5 ms\": "),
        ("duplicate", "101%", "`101%` is not between 0 and 1"),
        ("queue", "100", "is not a queue limit"),
        ("queue", "fifo", "`fifo` is neither a type of queue nor a limit"),
        ("queue", "100 packets, 64 kB", "means `100 packets` for uplink and `64 kB` for downlink"),
    ];
    for (option, value, expected) in wrong {
        let mut scenario = Scenario::transparent();
        let result = scenario.apply_plain(&with(option, value));
        let report = result.and_then(|()| scenario.paths().map(|_| ())).expect_err(value).to_string();
        assert!(report.contains(expected), "{option} {value}: {report}");
    }
    let report = read(two).apply_plain(&with("rate", "1 Mbit/s")).unwrap_err().to_string();
    assert!(report.contains("none is called `radio`"), "{report}");
}

#[test]
fn several_paths_have_parameters_of_their_own() {
    let text = r#"
        [[paths]]
        name = "phone"
        [[paths.hops]]
        [[paths]]
        name = "laptop"
        [[paths.hops]]
        [[paths.states]]
        name = "slow"
        set = { "radio.link.rate" = "1 kbit/s" }
        "#;
    let mut scenario = read(text);
    scenario.set("radio.link.rate=1 Mbit/s").unwrap();
    scenario.set("laptop.radio.uplink.rate=2 Mbit/s").unwrap();
    let paths = scenario.paths().unwrap();
    let up = |index: usize| rates(&paths[index].config.hops[0].uplink);
    assert_eq!((up(0), up(1)), ("1 Mbit/s".into(), "2 Mbit/s".into()));
    let again = read(&scenario.to_toml().unwrap());
    assert_eq!(again.paths().unwrap(), paths);
    let report = scenario.set("laptop.wifi.link.rate=1 Mbit/s").unwrap_err().to_string();
    assert!(report.contains("laptop.wifi.link.rate: there is no hop `wifi`"), "{report}");
}

#[test]
fn sets_may_be_nested_tables() {
    let nested = "[[hops]]\n[[states]]\nname = \"s\"\n[states.set.radio]\nlink.rate = \"1 kbit/s\"\ndownlink.rate = \"2 kbit/s\"\n";
    let dotted = "[[hops]]\n[[states]]\nname = \"s\"\nset = { \"radio.downlink.rate\" = \"2 kbit/s\", \"radio.link.rate\" = \"1 kbit/s\" }\n";
    assert_eq!(only(&read(nested)), only(&read(dotted)));
    let state = &only(&read(dotted)).states[0].hops[0];
    assert_eq!((rates(&state.uplink), rates(&state.downlink)), ("1 kbit/s".into(), "2 kbit/s".into()));
}

#[test]
fn what_is_proposed_for_a_typo_can_be_set() {
    let text = "[[hops]]\nname = \"radio\"\n[hops.link]\nrate = \"1 Mbit/s\"\n";
    let told = |name: &str| {
        let mut scenario = read(text);
        let set = scenario.set(&format!("{name}=10 ms"));
        set.and_then(|()| scenario.paths().map(drop)).unwrap_err().to_string()
    };
    for (typed, meant) in [
        ("radio.cell.link.propagation", "radio.link.propagation"),
        ("radio.lnk.link.propagation", "radio.link.propagation"),
        ("radio.lnk.propagation", "radio.link.propagation"),
        ("radio.dwonlink.propagation", "radio.downlink.propagation"),
        ("radio.propagation", "radio.link.propagation"),
        ("radio.propagatoin", "radio.link.propagation"),
        ("radio.latency", "radio.link.propagation"),
        ("radio.uplink.latency", "radio.uplink.propagation"),
        ("radio.link.propagatoin", "radio.link.propagation"),
        ("raido.link.propagatoin", "radio.link.propagation"),
        ("raido.propagation", "radio.link.propagation"),
        ("raido.radio.link.propagation", "radio.link.propagation"),
        ("link.propagation", "radio.link.propagation"),
        ("link.link.propagation", "radio.link.propagation"),
        ("propagation", "radio.link.propagation"),
    ] {
        let message = told(typed);
        assert!(message.contains(&format!("; did you mean `{meant}`?")), "{typed}: {message}");
        let mut scenario = read(text);
        scenario.set(&format!("{meant}=10 ms")).unwrap();
        scenario.paths().unwrap();
    }
    for typed in ["radio.colour", "radio.colour.of.it", "colour.link.propagation"] {
        let message = told(typed);
        assert!(!message.contains("did you mean"), "{typed}: {message}");
    }
}
