// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Several queues in a scenario: what can be written, how their parameters are named, what is said
//! when something is wrong, and what is printed.

use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::classes::{ClassConfig, ClassesConfig, Order};
use airpath_models::{LinkConfig, PathConfig};
use airpath_scenario::Scenario;

const TEXT: &str = r#"
[[hops]]
name = "radio"
[hops.link]
rate = "1 Mbit/s"
[hops.link.queue]
type = "classes"
order = "deficit_round_robin"
limit = "200 packets"
[[hops.link.queue.classes]]
name = "voice"
match = { dscp = [46, 44], protocol = "udp", client_port = "5000-5010, 6000", origin = "user" }
quantum = "300 bytes"
queue = { type = "head_drop", limit = "20 packets" }
[[hops.link.queue.classes]]
name = "web"
match = { protocol = 6, server_address = "fd00::1", server_port = 443, shortest = "100 bytes", longest = "1500 bytes" }
[[hops.link.queue.classes]]
name = "half"
match = { flow_buckets = 2, bucket = 1 }
[[hops.link.queue.classes]]
name = "rest"

[[states]]
name = "narrow"
at = "5 s"
set = { "radio.link.queue.classes.voice.queue.limit" = "3 packets", "radio.uplink.queue.classes.web.weight" = 4 }
"#;

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap_or_else(|report| panic!("{report}"))
}

fn only(scenario: &Scenario) -> PathConfig {
    scenario.paths().unwrap_or_else(|report| panic!("{report}")).remove(0).config
}

fn classes(link: &LinkConfig) -> &ClassesConfig {
    match &link.queue {
        QueueConfig::Classes(config) => config,
        other => panic!("{other:?}"),
    }
}

fn class<'a>(link: &'a LinkConfig, name: &str) -> &'a ClassConfig {
    classes(link).classes.iter().find(|class| class.name == name).unwrap()
}

fn limit(class: &ClassConfig) -> String {
    match &class.queue {
        QueueConfig::HeadDrop(config) => config.limit.to_string(),
        QueueConfig::TailDrop(config) => config.limit.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn classes_are_read() {
    let config = only(&read(TEXT));
    let link = &config.hops[0].uplink;
    assert_eq!(classes(link).order, Order::DeficitRoundRobin);
    assert_eq!(classes(link).limit.packets, Some(200));
    let voice = class(link, "voice");
    assert_eq!((voice.quantum.get(), limit(voice).as_str()), (2_400, "20 packets"));
    assert_eq!(voice.matching.dscp, [46, 44]);
    assert_eq!(voice.matching.client_port.as_ref().unwrap().to_string(), "5000-5010, 6000");
    let web = class(link, "web");
    assert_eq!(web.matching.protocol.unwrap().to_string(), "tcp");
    assert_eq!((limit(web).as_str(), web.weight, web.quantum.get()), ("1000 packets", 1, 12_000));
    assert!(class(link, "rest").matching.is_any());
}

#[test]
fn parameters_of_a_class_are_named_by_it() {
    let mut scenario = read(TEXT);
    for assignment in [
        "radio.link.queue.classes.rest.queue.limit=7 packets",
        "radio.downlink.queue.classes.web.match.server_port=80",
        "radio.link.queue.classes.half={ weight = 9, queue = { type = \"tail_drop\", limit = \"1 kB\" } }",
        "radio.link.queue.classes.voice.queue.type=tail_drop",
        "radio.link.queue.order=strict",
    ] {
        scenario.set(assignment).unwrap_or_else(|report| panic!("{report}"));
    }
    let config = only(&scenario);
    let (up, down) = (&config.hops[0].uplink, &config.hops[0].downlink);
    assert_eq!(limit(class(up, "rest")), "7 packets");
    assert_eq!(limit(class(down, "rest")), "7 packets");
    let port = |link| class(link, "web").matching.server_port.as_ref().unwrap().to_string();
    assert_eq!((port(up), port(down)), ("443".into(), "80".into()));
    assert_eq!((class(up, "half").weight, limit(class(up, "half"))), (9, "1 kB".into()));
    assert_eq!(class(up, "half").matching.bucket, Some(1));
    assert!(matches!(class(up, "voice").queue, QueueConfig::TailDrop(_)));
    assert_eq!(limit(class(up, "voice")), "20 packets");
    assert_eq!(classes(up).order, Order::Strict);
    // The state changes what was set, and only that.
    let narrow = &config.states[0].hops[0];
    assert_eq!(limit(class(&narrow.uplink, "voice")), "3 packets");
    assert_eq!((class(&narrow.uplink, "web").weight, class(&narrow.downlink, "web").weight), (4, 1));
    assert_eq!(limit(class(&narrow.uplink, "rest")), "7 packets");
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    let nested = r#"
        [[hops]]
        [hops.uplink]
        queue = { type = "classes", classes = [ { name = "a", match = { longest = "100 bytes" }, queue = { type = "classes", order = "weighted_round_robin", classes = [{ name = "b", match = { origin = "background" }, weight = 2 }, { name = "c" }] } }, { name = "d" }] }
        [[states]]
        name = "s"
        set = { "radio.uplink.queue.classes.a.queue.classes.b.weight" = 5 }
        "#;
    for text in [TEXT, nested] {
        let scenario = read(text);
        let printed = scenario.to_toml().unwrap();
        let again = read(&printed);
        assert_eq!(again.paths().unwrap(), scenario.paths().unwrap(), "{printed}");
        assert_eq!(again.to_toml().unwrap(), printed);
    }
    let config = only(&read(nested));
    let inner = |hops: &[airpath_models::HopConfig]| match &class(&hops[0].uplink, "a").queue {
        QueueConfig::Classes(config) => config.classes[0].weight,
        other => panic!("{other:?}"),
    };
    assert_eq!((inner(&config.hops), inner(&config.states[0].hops)), (2, 5));
}

/// Errors name the key and its line.
#[test]
fn wrong_classes_are_mended() {
    let wrong = [
        (
            "protocol = \"udp\"",
            "protocol = \"upd\"",
            "radio.link.queue.classes.voice.match.protocol: `upd` is no protocol; did you mean `udp`?",
        ),
        (
            "\"5000-5010, 6000\"",
            "\"5010-5000\"",
            "classes.voice.match.client_port: `5010-5000` is no port or range of ports: it ends",
        ),
        ("\"5000-5010, 6000\"", "70000", "classes.voice.match.client_port: `70000` is no port"),
        ("\"fd00::1\"", "\"fd00::g\"", "classes.web.match.server_address: `fd00::g` is no IP address"),
        ("dscp = [46, 44]", "dscp = 46", "classes.voice.match.dscp: expected a list in brackets, not a bare number"),
        ("dscp = [46, 44]", "dscp = [64]", "classes.voice.match.dscp[0]: 64 is out of range; it must be from 0 to 63"),
        ("dscp = [46, 44]", "dcsp = [46]", "did you mean `dscp`?"),
        ("bucket = 1 }", "bucket = 2 }", "classes.half.match.bucket: is 2; 2 buckets are counted from 0 to 1"),
        (", bucket = 1 }", " }", "classes.half.match.flow_buckets: needs `bucket`"),
        (
            "shortest = \"100 bytes\"",
            "shortest = \"2 kB\"",
            "classes.web.match.shortest: is 16000 bit, which is more than `longest`",
        ),
        (
            "protocol = 6",
            "protocol = \"icmp\"",
            "classes.web.match.server_port: names a port, and packets of protocol icmp have none",
        ),
        (
            "quantum = \"300 bytes\"",
            "quantum = \"10 bytes\"",
            "classes.voice.quantum: is 80 bit; it must be from 512 bit",
        ),
        ("quantum = \"300 bytes\"", "weight = 0", "classes.voice.weight: 0 is out of range"),
        ("name = \"web\"", "name = \"voice\"", "classes.voice.name: another class is called `voice`, too"),
        ("name = \"web\"", "name = \"2web\"", "`2web` is no name"),
        ("name = \"web\"\n", "", "this key is missing"),
        (
            "match = { flow_buckets = 2, bucket = 1 }",
            "",
            "classes.rest: no packet gets here, as class `half` before it takes all",
        ),
        ("limit = \"200 packets\"", "limit = \"200 ms\"", "queue.limit: has a limit in time"),
        (
            "limit = \"20 packets\"",
            "limt = \"20 packets\"",
            "radio.link.queue.classes.voice.queue.limt: a table of type \"head_drop\" has no such key; did you mean `limit`?",
        ),
        ("order = \"deficit_round_robin\"", "order = \"deficit\"", "queue.order: `deficit` is not a valid value"),
        (
            "classes.voice.queue.limit",
            "classes.vioce.queue.limit",
            "there is no `vioce` among the classes (in state `narrow`); did you mean `radio.link.queue.classes.voice.queue.limit`?",
        ),
    ];
    for (from, to, expected) in wrong {
        assert!(TEXT.contains(from), "{from}");
        let text = TEXT.replacen(from, to, 1);
        let report = Scenario::from_toml(&text, "test.toml").map(|_| ()).expect_err(expected).to_string();
        assert!(report.contains(expected), "{expected}\n\n{report}");
        assert!(report.starts_with("test.toml:"), "{report}");
    }
    let report = |text: &str, assignment: &str| {
        let mut scenario = read(text);
        match scenario.set(assignment) {
            Err(report) => report.to_string(),
            Ok(()) => scenario.paths().expect_err(assignment).to_string(),
        }
    };
    let unknown = report(TEXT, "radio.link.queue.classes.wbe.weight=2");
    assert!(unknown.contains("did you mean `radio.link.queue.classes.web.weight`?"), "{unknown}");
    assert!(unknown.contains("valid: voice, web, half, rest"), "{unknown}");
    let plain = report("[[hops]]\n", "radio.link.queue.classes.web.weight=2");
    assert!(
        plain.contains("a table of type \"tail_drop\" has no such key, but one of type \"classes\" has"),
        "{plain}"
    );
    let key = report(TEXT, "radio.link.queue.classes.web.wieght=2");
    assert!(key.contains("did you mean `radio.link.queue.classes.web.weight`?"), "{key}");
    let value = report(TEXT, "radio.link.queue.classes.web=2");
    assert!(value.contains("expected a table"), "{value}");
    let empty = "[[hops]]\n[hops.link]\nqueue = { type = \"classes\" }\n";
    let none = Scenario::from_toml(empty, "test.toml").unwrap_err().to_string();
    assert!(none.contains("radio.link.queue.classes: this key is missing"), "{none}");
    let table = report(
        "[[hops]]\n[hops.link]\nqueue = { type = \"classes\", classes = [{ name = \"a\" }] }\n",
        "radio.link.queue.classes={ name = \"a\" }",
    );
    assert!(table.contains("there are no classes here to change"), "{table}");
}

#[test]
fn filters_are_read_changed_and_printed() {
    let text = TEXT.replace("match = { flow_buckets = 2, bucket = 1 }", "match = { filter = \"rtp ssrc 0x10\" }");
    let text = text.replace("weight\" = 4", "match.filter\" = \"port 80\"").replace("classes.web", "classes.half");
    let scenario = read(&text);
    let config = only(&scenario);
    let text_of = |link: &LinkConfig| class(link, "half").matching.filter.as_ref().unwrap().text().to_string();
    assert_eq!(text_of(&config.hops[0].downlink), "rtp ssrc 0x10");
    assert_eq!(text_of(&config.states[0].hops[0].uplink), "port 80");
    assert_eq!(only(&read(&scenario.to_toml().unwrap())), config);
}

#[test]
fn a_filter_that_is_none_is_told_with_its_place() {
    let errors = "[[hops]]\nname = \"radio\"\n[hops.link]\nerrors = { type = \"bernoulli\", probability = 1, \
                  only = { filter = \"udp port\" } }\n";
    let told = Scenario::from_toml(errors, "test.toml").unwrap_err().to_string();
    for part in ["test.toml:4", "radio.link.errors.only.filter", "character 9", "udp and port 5004"] {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    let matching = TEXT.replace("match = { flow_buckets = 2, bucket = 1 }", "match = { filter = \"prot 80\" }");
    let told = Scenario::from_toml(&matching, "test.toml").unwrap_err().to_string();
    assert!(told.contains("radio.link.queue.classes.half.match.filter") && told.contains("`port`"), "{told}");
}

#[test]
fn a_scenario_has_a_limited_number_of_filters() {
    let class = |number: usize| {
        format!("[[hops.link.queue.classes]]\nname = \"c{number}\"\nmatch = {{ filter = \"port {}\" }}\n", number + 1)
    };
    let text = |count: usize| {
        let classes: String = (0..count).map(class).collect();
        // Classes are 64 at most; the other direction has filters of its own.
        let text = format!("[[hops]]\n[hops.link.queue]\ntype = \"classes\"\n{classes}[hops.uplink.errors]\n");
        text + "type = \"bernoulli\"\nprobability = 0.1\nonly = { filter = \"tcp\" }\n"
    };
    assert!(read(&text(63)).paths().is_ok());
    let told = Scenario::from_toml(&text(64), "test.toml").unwrap_err().to_string();
    assert!(told.contains("more than 64 different filters"), "{told}");
}
