// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Paths compared, to the nanosecond, with a naïve simulation that shares no code with the models:
//! plain vectors searched from end to end, buffers counted anew at every look, and transmission
//! times from the bits of a whole busy period at once.
//!
//! Errors are certain, absent or alternating, so that the reference needs no draws.

mod simulation;

use airpath_core::{EventKind, PortId, Probability, Seed, Span};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::gilbert_elliott::GilbertElliottConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::queueing::QueueConfig;
use airpath_models::{LinkConfig, Path, PathConfig};
use proptest::prelude::*;
use proptest::sample::select;

use self::simulation::{Packet, simulate};
use crate::common::*;

/// Errors without chance: absent, certain, or every second unit.
fn certain_errors() -> impl Strategy<Value = ErrorsConfig> {
    let probability = |text: &str| read::<Probability>(text);
    let processes = vec![
        ErrorsConfig::default().process,
        ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: probability("1") }),
        ErrorProcessConfig::GilbertElliott(GilbertElliottConfig {
            good_to_bad: probability("1"),
            bad_to_good: probability("1"),
            error_in_good: probability("0"),
            error_in_bad: probability("1"),
        }),
    ];
    let delay = |milliseconds, keep_order| EffectConfig {
        effect: Effect::Delay,
        delay: Some(Span::from_millis(milliseconds).into()),
        keep_order,
        ..EffectConfig::default()
    };
    let effects = vec![
        EffectConfig::default(),
        EffectConfig { effect: Effect::Corrupt, ..EffectConfig::default() },
        delay(35, true),
        delay(35, false),
        delay(0, true),
        delay(0, false),
        delay(500, true),
    ];
    (select(processes), select(vec![Per::Packet, Per::Frame]), select(effects))
        .prop_map(|(process, per, effect)| ErrorsConfig { process, per, effect, ..ErrorsConfig::default() })
}

/// A change of the kind of errors, or of their unit, would restart the alternation.
fn link_with_errors(errors: ErrorsConfig) -> impl Strategy<Value = LinkConfig> {
    let mut queues = QueueConfig::examples();
    queues.retain(|queue| matches!(queue, QueueConfig::TailDrop(_) | QueueConfig::HeadDrop(_)));
    link_with(select(queues), Just(errors)).prop_map(|mut link| {
        link.propagation = link.propagation.least().into();
        (link.reorder, link.duplicate) = (None, None);
        link.allocation_delay = link.allocation_delay.least().into();
        // Rates that vary have a reference of their own.
        link.rate = link.rate.constant().unwrap_or(read("400 kbit/s")).into();
        link
    })
}

/// One direction of a hop: the parameters at the beginning, and after each change.
type Changing = (LinkConfig, Vec<LinkConfig>);

/// One to three hops.
type Hops = Vec<Changing>;

fn any_hops(changes: usize) -> impl Strategy<Value = Hops> {
    let hop = certain_errors().prop_flat_map(move |errors| {
        (link_with_errors(errors.clone()), proptest::collection::vec(link_with_errors(errors), changes))
    });
    proptest::collection::vec(hop, 1..=3)
}

fn any_case() -> impl Strategy<Value = (Hops, Vec<airpath_core::Time>, Script)> {
    proptest::collection::vec(any_time(), 0..4).prop_flat_map(|mut times| {
        times.sort();
        let offers = any_offer().prop_map(|action| match action {
            Action::Offer { len, header_len, .. } => Action::Offer { port: PortId::CLIENT, len, header_len },
            other => other,
        });
        (any_hops(times.len()), Just(times), script_of(offers))
    })
}

/// Compares a path with the reference, hop by hop; `turn` sends everything from the server instead.
fn compare(hops: &Hops, times: &[airpath_core::Time], script: &Script, turn: bool) -> Result<(), TestCaseError> {
    let hop_config = |(index, link): (usize, &LinkConfig)| {
        let mut config = one_hop(&format!("hop{index}"), LinkConfig::default(), link.clone()).hops.remove(0);
        if !turn {
            std::mem::swap(&mut config.uplink, &mut config.downlink);
        }
        config
    };
    let path_of = |pick: &dyn Fn(&Changing) -> LinkConfig| -> Vec<_> {
        let links: Vec<LinkConfig> = hops.iter().map(pick).collect();
        let ordered: Vec<&LinkConfig> = if turn { links.iter().rev().collect() } else { links.iter().collect() };
        ordered.into_iter().enumerate().map(hop_config).collect()
    };
    let states = times.iter().enumerate().map(|(number, at)| airpath_models::StateConfig {
        name: format!("state{number}"),
        at: Some(*at),
        hops: path_of(&|(_, changes)| changes[number].clone()),
        stay: Default::default(),
    });
    let config =
        PathConfig { hops: path_of(&|(link, _)| link.clone()), states: states.collect(), ..PathConfig::default() };
    let (from, to) = if turn { (PortId::SERVER, PortId::CLIENT) } else { (PortId::CLIENT, PortId::SERVER) };
    let mut script = script.clone();
    for (_, action) in &mut script {
        if let Action::Offer { port, .. } = action {
            *port = from;
        }
    }
    let trace = run(Path::new(&config, Seed(1)), &script);

    let mut arrivals: Vec<(u64, Packet)> = Vec::new();
    for (number, (at, action)) in script.iter().enumerate() {
        if let Action::Offer { len, .. } = action {
            arrivals.push((at.nanos(), Packet { id: number as u64 + 1, len: u64::from(*len) }));
        }
    }
    for (index, (link, changes)) in hops.iter().enumerate() {
        let changes: Vec<_> = times.iter().map(|at| at.nanos()).zip(changes.iter().cloned()).collect();
        let mut reference = simulate(link, &changes, &arrivals);
        let place = if turn { hops.len() - 1 - index } else { index } as u16;
        let mut dropped: Vec<_> = trace
            .of_kind(EventKind::Dropped)
            .into_iter()
            .filter(|event| event.hop == place)
            .map(|event| (event.at.nanos(), event.pdu, event.cause))
            .collect();
        dropped.sort_unstable();
        reference.dropped.sort_unstable();
        prop_assert_eq!(&dropped, &reference.dropped, "drops at hop {}", index);
        arrivals = reference.delivered;
        let left: Vec<(u64, u64)> = if index + 1 == hops.len() {
            trace.times(to).into_iter().zip(trace.ids(to)).collect()
        } else {
            let passed = trace.of_kind(EventKind::Passed).into_iter().filter(|event| event.hop == place);
            passed.map(|event| (event.at.nanos(), event.pdu)).collect()
        };
        let expected: Vec<(u64, u64)> = arrivals.iter().map(|(at, packet)| (*at, packet.id)).collect();
        prop_assert_eq!(left, expected, "departures from hop {}", index);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn a_path_does_what_the_reference_does((hops, times, script) in any_case(), turn in any::<bool>()) {
        compare(&hops, &times, &script, turn)?;
    }
}
