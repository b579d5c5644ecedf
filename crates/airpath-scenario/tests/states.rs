// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! States that last, what follows them, blackouts, and what is set while a run goes on.

use airpath_core::{Probability, Span, StateInForce, Time};
use airpath_models::blackout::{BlackoutConfig, InFlight, Parts, Waiting};
use airpath_models::random::Random;
use airpath_models::{HopConfig, PathConfig, Setting};
use airpath_scenario::{PlainOptions, Report, Running, Scenario};

fn only(scenario: &Scenario) -> PathConfig {
    scenario.paths().unwrap_or_else(|report| panic!("{report}")).remove(0).config
}

fn read(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap_or_else(|report| panic!("{report}"))
}

fn told(states: &str) -> String {
    let text = format!("[[hops]]\nname = \"radio\"\n{states}");
    Scenario::from_toml(&text, "test.toml").map(drop).unwrap_err().to_string()
}

const CHAIN: &str = r#"
    [[hops]]
    name = "radio"
    [hops.link]
    rate = "384 kbit/s"

    [[states]]
    name = "initial"
    duration = { type = "exponential", mean = "60 s" }
    next = { tunnel = 0.25, town = "75%" }

    [[states]]
    name = "tunnel"
    duration = "3 s"
    next = "town"
    set = { "radio.link.blackout" = { in_flight = "drop", arriving = "drop" } }

    [[states]]
    name = "town"
    at = "5 s"
    duration = "20 s"
    set = { "radio.link.rate" = "64 kbit/s", "radio.uplink.blackout" = "store" }
"#;

#[test]
fn states_last_and_are_followed_by_others() {
    let config = only(&read(CHAIN));
    let probability = |text: &str| text.parse::<Probability>().unwrap();
    assert!(matches!(&config.initial.duration, Some(Random::Drawn(_))));
    assert_eq!(config.initial.next, [(1, probability("0.25")), (2, probability("0.75"))]);
    let [tunnel, town] = config.states.as_slice() else { panic!("{:?}", config.states) };
    assert_eq!(tunnel.stay.duration, Some(Random::Constant(Span::from_secs(3))));
    assert_eq!(tunnel.stay.next, [(2, Probability::ONE)]);
    assert_eq!((town.at, town.stay.next.len()), (Some(Time::ZERO + Span::from_secs(5)), 0));
    let parts = Parts { queued: Waiting::Store, in_flight: InFlight::Drop, arriving: Waiting::Drop };
    assert_eq!(tunnel.hops[0].downlink.blackout, BlackoutConfig::Parts(parts));
    assert_eq!(town.hops[0].uplink.blackout, BlackoutConfig::STORE);
    assert_eq!(town.hops[0].downlink.blackout.parts(), None);
    // What is printed says the same.
    let printed = read(CHAIN).to_toml().unwrap();
    assert_eq!(only(&read(&printed)), config, "{printed}");
    assert!(printed.contains("next = { tunnel = 0.25, town = 0.75 }"), "{printed}");
}

#[test]
fn wrong_states_are_told_with_their_places() {
    let cases = [
        (
            "[[states]]\nname = \"a\"\nduration = \"1 s\"\nnext = \"b\"",
            &["there is no state `b`", ":6:8:", "next:", "valid: initial, a"][..],
        ),
        ("[[states]]\nname = \"city\"\nduration = \"1 s\"\nnext = { cty = 1 }", &["there is no state `cty`", "`city`"]),
        (
            "[[states]]\nname = \"a\"\nduration = \"1 s\"\nnext = { a = 0.5, initial = 0.4 }",
            &["sum is 0.9", "states[0].next"],
        ),
        ("[[states]]\nname = \"a\"\nduration = \"1 s\"\nnext = { a = 1.5 }", &["not between 0 and 1", "next.a"]),
        ("[[states]]\nname = \"a\"\nduration = \"1 s\"\nnext = 7", &["expected text", "a bare number"]),
        ("[[states]]\nname = \"a\"\nduration = \"0 s\"", &["always 0 s", "3 s", "states[0].duration"]),
        (
            "[[states]]\nname = \"a\"\nduration = { type = \"uniform\", from = \"0 s\", to = \"0 s\" }\nnext = \"a\"",
            &["always 0 s"],
        ),
        (
            "[[states]]\nname = \"a\"\nduration = { type = \"uniform\", from = \"2 s\", to = \"1 s\" }",
            &["duration.from", "more than `to`"],
        ),
        ("[[states]]\nname = \"a\"\nduration = 3", &["duration", "no unit"]),
        ("[[states]]\nname = \"a\"\nnext = \"a\"", &["no `duration`"]),
        ("[[states]]\nname = \"initial\"\nat = \"3 s\"", &["is the initial state", "at:"]),
        ("[[states]]\nname = \"initial\"", &["give its `duration`"]),
        ("[[states]]\nname = \"a\"\nset = { \"radio.link.blackout\" = \"dropp\" }", &["`drop`", "none, store, drop"]),
        ("[[states]]\nname = \"a\"\nset = { \"radio.link.blackout.inflight\" = \"drop\" }", &["in_flight"]),
        (
            "[[states]]\nname = \"a\"\nset = { \"radio.link.blackout\" = { queued = \"pass\" } }",
            &["`pass`", "store, drop"],
        ),
    ];
    for (states, expected) in cases {
        let message = told(states);
        for part in expected {
            assert!(message.contains(part), "{states}\nlacks `{part}`:\n{message}");
        }
    }
}

#[test]
fn a_blackout_is_one_option() {
    let with = |scenario: &mut Scenario, blackouts: &[&str]| {
        let blackouts = blackouts.iter().map(|text| text.to_string()).collect();
        scenario.apply_plain(&PlainOptions { blackouts, ..PlainOptions::default() })
    };
    let mut scenario = Scenario::transparent();
    with(&mut scenario, &["20 s, 3 s, store", "40 s,500 ms"]).unwrap();
    let config = only(&scenario);
    let blackouts: Vec<_> = config
        .states
        .iter()
        .map(|state| {
            let HopConfig { uplink, downlink, .. } = &state.hops[0];
            assert_eq!(uplink.blackout, downlink.blackout);
            (state.name.as_str(), state.at.unwrap().nanos(), state.stay.duration.clone(), uplink.blackout)
        })
        .collect();
    assert_eq!(
        blackouts,
        [
            ("blackout", 20_000_000_000, Some(Span::from_secs(3).into()), BlackoutConfig::STORE),
            ("blackout2", 40_000_000_000, Some(Span::from_millis(500).into()), BlackoutConfig::DROP),
        ]
    );
    for (text, part) in
        [("20 s", "drop"), ("20 s, 3 s, keep", "`store`"), ("20, 3 s", "20"), ("20 s, 0 s", "always 0 s")]
    {
        let mut scenario = Scenario::transparent();
        let report = with(&mut scenario, &[text]).and_then(|()| scenario.paths().map(drop)).unwrap_err().to_string();
        assert!(report.contains(part) && report.contains("--blackout"), "{report}");
    }
    let report = with(&mut read(CHAIN), &["20 s, 3 s"]).unwrap_err().to_string();
    assert!(report.contains("its own states (`tunnel`)"), "{report}");
}

/// The setting of the only user.
fn of_only_user(settings: Result<Vec<(u16, Setting)>, Report>) -> Setting {
    let mut settings = settings.unwrap_or_else(|report| panic!("{report}"));
    assert_eq!((settings.len(), settings[0].0), (1, 0));
    settings.remove(0).1
}

fn rates(hops: &[HopConfig]) -> (String, String) {
    (hops[0].uplink.rate.to_string(), hops[0].downlink.rate.to_string())
}

#[test]
fn what_is_set_while_a_run_goes_on() {
    let all = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
    let both = |text: &str| (text.to_string(), text.to_string());
    let mut running = Running::new(&read(CHAIN));
    let setting = of_only_user(running.set(&all(&["radio.link.rate=1 Mbit/s", "radio.uplink.rate=\"2 Mbit/s\""])));
    let set = ("2 Mbit/s".to_string(), "1 Mbit/s".to_string());
    assert_eq!(rates(&setting.beginning), set);
    // The tunnel does not say its rate; the town does, but not where it is in force now.
    assert_eq!(setting.states.iter().map(|hops| rates(hops)).collect::<Vec<_>>(), [set.clone(), both("64 kbit/s")]);
    assert!(setting.in_force.iter().all(|hops| rates(hops.as_ref().unwrap()) == set));
    assert_eq!(setting.since, None);
    running.took_effect(|_| StateInForce { number: 2, entries: 5 });
    // In the same stay of the town, what was set before stays; in another state or stay it does not.
    let setting = of_only_user(running.set(&all(&["radio.uplink.rate=9600 bit/s"])));
    let (entries, hops) = setting.since.clone().unwrap();
    assert_eq!((entries, rates(&hops)), (5, ("9.6 kbit/s".into(), "1 Mbit/s".into())));
    assert_eq!(rates(setting.in_force[2].as_ref().unwrap()), ("9.6 kbit/s".into(), "64 kbit/s".into()));
    assert_eq!(rates(&setting.beginning), ("9.6 kbit/s".into(), "1 Mbit/s".into()));
    // One that never took effect is forgotten.
    running.set(&all(&["radio.link.rate=7 bit/s"])).unwrap();
    assert_eq!(
        running.scenario().paths().unwrap()[0].config.hops[0].uplink.rate.to_string(),
        "1 Mbit/s".replace('1', "2")
    );
}

#[test]
fn what_cannot_be_set_is_told() {
    let mut running = Running::new(&read(CHAIN));
    for (text, parts) in [
        ("radio.link.rat=1 Mbit/s", &["rate"][..]),
        ("rdio.link.rate=1 Mbit/s", &["radio.link.rate"]),
        ("radio.link.rate=1", &["rate", "unit"]),
        ("radio.link.rate", &["`=`"]),
        ("radio.link.errors.probability=0.1", &["probability"]),
    ] {
        let report = running.set(&[text.to_string()]).unwrap_err().to_string();
        assert!(parts.iter().all(|part| report.contains(part)), "{text}: {report}");
    }
    // What fits the beginning and not the state in force is refused only if that is in force.
    let mut running = Running::new(&read(
        "[[hops]]\nname = \"radio\"\nlink = { errors = { type = \"bernoulli\", probability = 0.1 } }\n\
         [[states]]\nname = \"clean\"\nset = { \"radio.link.errors\" = { type = \"none\" } }\n",
    ));
    let setting = of_only_user(running.set(&["radio.link.errors.probability=0.2".to_string()]));
    assert!(setting.in_force[0].is_ok());
    assert!(setting.in_force[1].as_ref().unwrap_err().contains("probability"));
}

#[test]
fn blackouts_of_options_do_not_overlap() {
    let with = |blackouts: &[&str]| {
        let blackouts = blackouts.iter().map(|text| text.to_string()).collect();
        let mut scenario = Scenario::transparent();
        scenario.apply_plain(&airpath_scenario::PlainOptions { blackouts, ..Default::default() })
    };
    assert!(with(&["5 s, 3 s", "9 s, 1 s"]).is_ok());
    for second in ["7 s, 9 s", "8 s, 1 s", "1 s, 20 s", "5 s, 1 s"] {
        let report = with(&["5 s, 3 s", second]).unwrap_err().to_string();
        assert!(report.contains("overlaps or touches the blackout at 5 s"), "{report}");
    }
}
