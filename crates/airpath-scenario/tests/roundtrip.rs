// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Printed scenarios read back as the same, and reading never panics.

use airpath_core::{BufferLimit, QueueLimit, Span};
use airpath_models::blackout::BlackoutConfig;
use airpath_models::channel::ErrorsConfig;
use airpath_models::impairment::{DuplicateConfig, ReorderConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::random::Random;
use airpath_models::{Fragmentation, LastFrame, LinkConfig};
use airpath_scenario::{PlainOptions, Scenario, profiles};
use proptest::prelude::*;

fn check(scenario: &Scenario) {
    let printed = scenario.to_toml().unwrap_or_else(|report| panic!("{report}"));
    let again = Scenario::from_toml(&printed, "printed").unwrap_or_else(|report| panic!("{report}\n{printed}"));
    assert_eq!(again.paths().unwrap(), scenario.paths().unwrap(), "{printed}");
    assert_eq!((&again.name, &again.description, again.mtu), (&scenario.name, &scenario.description, scenario.mtu));
    assert_eq!(again.source, scenario.source);
    assert_eq!(again.to_toml().unwrap(), printed);
}

#[test]
fn every_profile_survives_printing() {
    for profile in profiles() {
        check(&Scenario::profile(profile.name).unwrap());
    }
    check(&Scenario::transparent());
}

#[test]
fn equal_directions_are_printed_once() {
    let mut scenario = Scenario::transparent();
    let options =
        PlainOptions { rate: Some("1 Mbit/s,2 Mbit/s".into()), delay: Some("20 ms".into()), ..PlainOptions::default() };
    scenario.apply_plain(&options).unwrap();
    let printed = scenario.to_toml().unwrap();
    let expected = "[[hops]]\nname = \"radio\"\n\n[hops.link]\npropagation = \"20 ms\"\n\
                    queue = { type = \"tail_drop\", limit = \"1000 packets\" }\n\
                    # flow_control = { type = \"none\" }\n# overhead = \"0 bit\"\n";
    assert!(printed.starts_with(expected), "{printed}");
    assert!(
        printed.contains("\n[hops.uplink]\nrate = \"1 Mbit/s\"\n\n[hops.downlink]\nrate = \"2 Mbit/s\"\n"),
        "{printed}"
    );
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        Just(Span::ZERO),
        (0u64..10_000).prop_map(Span::from_micros),
        (0u64..u64::MAX / 2).prop_map(Span::from_nanos)
    ]
}

/// A quantity or a distribution; no files, which are not there.
fn random() -> impl Strategy<Value = Random<Span>> {
    let without_files = |random: &Random<Span>| {
        let mut files = 0;
        random.clone().files(&mut |_, _| files += 1);
        files == 0
    };
    let drawn: Vec<_> = Random::examples(Span::from_millis(20)).into_iter().filter(without_files).collect();
    prop_oneof![span().prop_map(Random::Constant), prop::sample::select(drawn)]
}

fn reorder() -> impl Strategy<Value = ReorderConfig> {
    (prop::sample::select(ReorderConfig::examples()), random(), 1u32..9, any::<bool>()).prop_map(
        |(example, delay, distance, timed)| {
            let distance = (distance < 5 || !timed).then_some(distance);
            ReorderConfig { delay: timed.then_some(delay), distance, ..example }
        },
    )
}

fn duplicate() -> impl Strategy<Value = DuplicateConfig> {
    (prop::sample::select(DuplicateConfig::examples()), random())
        .prop_map(|(example, delay)| DuplicateConfig { delay, ..example })
}

fn buffer() -> impl Strategy<Value = BufferLimit> {
    prop_oneof![
        Just(BufferLimit::Unlimited),
        (1u32..5_000).prop_map(BufferLimit::Packets),
        (1u32..5_000).prop_map(BufferLimit::Frames),
        (1u64..10_000_000).prop_map(BufferLimit::Bytes),
    ]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let limit =
        (prop::option::of(1u32..=u32::MAX), prop::option::of(6_000u64..=u64::MAX / 2), prop::option::of(span()))
            .prop_map(|(packets, bytes, age)| QueueLimit { packets, bytes, age });
    (prop::sample::select(QueueConfig::examples()), limit).prop_map(|(mut queue, limit)| {
        match &mut queue {
            QueueConfig::TailDrop(config) => config.limit = limit,
            QueueConfig::HeadDrop(config) => config.limit = limit,
            _ => {}
        }
        queue
    })
}

fn fragmentation() -> impl Strategy<Value = Option<Fragmentation>> {
    prop::option::of((6_000u64..8_000, 0u64..500, any::<bool>()).prop_map(|(payload, header, padded)| Fragmentation {
        frame_payload: airpath_core::Bits::new(payload),
        frame_header: airpath_core::Bits::new(header),
        last_frame: if padded { LastFrame::Padded } else { LastFrame::Short },
    }))
}

fn link() -> impl Strategy<Value = LinkConfig> {
    let rate = prop_oneof![Just("unlimited".to_string()), (1u64..u64::MAX).prop_map(|rate| format!("{rate} bit/s"))];
    let errors = prop::sample::select(ErrorsConfig::examples());
    let blackout = prop::sample::select(BlackoutConfig::examples());
    let compression = (1u64..1_000_000_000_000_000)
        .prop_map(|parts| format!("{}.{:012}", parts / 1_000_000_000_000, parts % 1_000_000_000_000));
    let impairment = (prop::option::of(reorder()), prop::option::of(duplicate()));
    (
        (rate, random(), queue(), 0u64..10_000),
        (compression, fragmentation(), buffer(), buffer(), random(), errors, blackout),
        impairment,
    )
        .prop_map(
            |(
                (rate, propagation, queue, overhead),
                (compression, fragmentation, send_buffer, receive_buffer, allocation_delay, errors, blackout),
                (reorder, duplicate),
            )| {
                LinkConfig {
                    rate: rate.parse().unwrap(),
                    propagation,
                    queue,
                    overhead: airpath_core::Bits::new(overhead),
                    compression: compression.parse().unwrap(),
                    fragmentation,
                    send_buffer,
                    receive_buffer,
                    allocation_delay,
                    errors,
                    blackout,
                    reorder,
                    duplicate,
                    ..LinkConfig::default()
                }
            },
        )
        .prop_filter("files of examples are not there to be read", |link| {
            let mut files = 0;
            link.clone().files(&mut |_, _| files += 1);
            files == 0
        })
}

fn write(link: &LinkConfig) -> String {
    toml::Value::try_from(link).unwrap().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_configuration_survives_printing(
        base in prop::collection::vec((link(), link(), any::<bool>()), 1..4),
        changed in prop::collection::vec((link(), prop::option::of(span())), 0..3),
        description in prop::option::of(any::<String>()),
        mtu in prop::option::of(68u32..65_535),
    ) {
        let hops: Vec<String> = base
            .iter()
            .map(|(up, down, equal)| format!("{{ uplink = {}, downlink = {} }}", write(up), write(if *equal { up } else { down })))
            .collect();
        let mut text = String::new();
        if let Some(description) = &description {
            text += &format!("description = {}\n", toml::Value::String(description.clone()));
        }
        if let Some(mtu) = mtu {
            text += &format!("mtu = {mtu}\n");
        }
        text += &format!("hops = [{}]\n", hops.join(", "));
        let name = if base.len() == 1 { "radio" } else { "hop1" };
        for (index, (link, at)) in changed.iter().enumerate() {
            text += &format!("[[states]]\nname = \"s{index}\"\n");
            if let Some(at) = at.filter(|at| changed[..index].iter().all(|(_, other)| *other != Some(*at))) {
                text += &format!("at = \"{at}\"\n");
            }
            let side = ["link", "uplink", "downlink"][index % 3];
            if let Some(duration) = at.filter(|duration| *duration > Span::ZERO) {
                text += &format!("duration = \"{duration}\"\n");
                text += ["", "next = \"initial\"\n", "next = { s0 = 0.25, initial = \"75%\" }\n"][index % 3];
            }
            text += &format!("set = {{ \"{name}.{side}\" = {} }}\n", write(link));
        }
        let scenario = Scenario::from_toml(&text, "generated").map_err(|report| TestCaseError::fail(format!("{report}\n{text}")))?;
        let paths = scenario.paths().unwrap();
        for (hop, (up, down, equal)) in paths[0].config.hops.iter().zip(&base) {
            prop_assert_eq!(&hop.uplink, up);
            prop_assert_eq!(&hop.downlink, if *equal { up } else { down });
        }
        prop_assert_eq!(&scenario.description, &description);
        check(&scenario);
    }

    #[test]
    fn reading_never_panics(text in any::<String>()) {
        let _ = Scenario::from_toml(&text, "noise").map_err(|report| report.to_string());
    }

    #[test]
    fn damaged_scenarios_never_panic(
        profile in prop::sample::select(profiles().to_vec()),
        at in any::<prop::sample::Index>(),
        length in 0usize..30,
        insert in prop_oneof![any::<String>(), "[\\[\\]{}=\"\\.,#\n a-z0-9-]{0,12}"],
    ) {
        let characters: Vec<char> = profile.text.chars().collect();
        let from = at.index(characters.len());
        let to = (from + length).min(characters.len());
        let damaged: String = characters[..from].iter().copied().chain(insert.chars()).chain(characters[to..].iter().copied()).collect();
        match Scenario::from_toml(&damaged, "damaged") {
            Ok(scenario) => check(&scenario),
            Err(report) => {
                prop_assert!(!report.problems().is_empty());
                prop_assert!(report.problems().iter().all(|problem| problem.line.is_some()));
                let _ = report.to_string();
            }
        }
    }

    #[test]
    fn assignments_never_panic(path in "(radio|hop1|)(\\.(link|uplink|rate|queue|errors|type|limit|)){0,4}", value in any::<String>()) {
        let mut scenario = Scenario::transparent();
        if scenario.set(&format!("{path}={value}")).is_ok() {
            let _ = scenario.paths().map_err(|report| report.to_string());
        }
        let options = PlainOptions { rate: Some(value.clone()), delay: Some(path), loss: Some(value.clone()), queue: Some(value.clone()), jitter: Some(value.clone()), reorder: Some(value.clone()), duplicate: Some(value.clone()), blackouts: vec![value] };
        let _ = scenario.apply_plain(&options);
        let _ = scenario.paths();
    }
}
