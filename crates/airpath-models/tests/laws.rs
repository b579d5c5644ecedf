// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The laws of a machine (see `airpath_core::machine`), over every registered model and over whole
//! paths with states and commands. A model joins by being registered with examples.

use airpath_core::{Command, Direction, Event, EventKind, LogLevel, Machine, PortId, Seed, Span, Time};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig};
use airpath_models::impairment::{DuplicateConfig, ReorderConfig};
use airpath_models::load::LoadConfig;
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::random::Random;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::*;

#[test]
fn examples_are_valid() {
    for link in LinkConfig::examples() {
        assert_eq!(link.problems(), []);
    }
    for queue in QueueConfig::examples() {
        assert_eq!(queue.problems(), [], "{queue:?}");
    }
    for errors in ErrorsConfig::examples() {
        assert_eq!(errors.problems(), [], "{errors:?}");
    }
    for load in LoadConfig::examples() {
        assert_eq!(load.problems(), [], "{load:?}");
    }
}

/// Every queue meets several kinds of errors and every kind of errors several queues, in links mixed
/// from the examples.
#[test]
fn every_registered_model_keeps_the_laws() {
    const EACH: usize = 12;
    let mut runner = TestRunner::new(cases(1));
    let mut tally = Tally::default();
    let (queues, errors) = (QueueConfig::examples(), ErrorsConfig::examples());
    for round in 0..EACH {
        for (number, queue) in queues.iter().enumerate() {
            tally.check(queue, &errors[(number + round * 7) % errors.len()], &mut runner, round as u64);
        }
        for (number, errors) in errors.iter().enumerate() {
            tally.check(&queues[(number + round) % queues.len()], errors, &mut runner, round as u64);
        }
    }
    // The examples must not be so harsh or so mild that they test little.
    let Tally { delivered, dropped, ties } = tally;
    assert!(delivered > 5_000 && dropped > 5_000 && ties > 250, "{delivered} {dropped} {ties}");
}

/// Every distribution in every place in which one may stand.
#[test]
fn every_distribution_keeps_the_laws() {
    let mut runner = TestRunner::new(cases(1));
    let mut seen = [0; 3];
    for (seed, random) in Random::examples(Span::from_millis(12)).into_iter().enumerate() {
        assert_eq!(random.problems(), []);
        let link = || {
            let random = random.clone();
            link_with(select(QueueConfig::examples()), select(ErrorsConfig::examples())).prop_map(move |mut link| {
                link.propagation = random.clone();
                link.allocation_delay = random.clone();
                if let Some(delay) = &mut link.errors.effect.delay {
                    *delay = random.clone();
                }
                let probability = read("0.4");
                link.reorder = Some(ReorderConfig {
                    probability,
                    delay: Some(random.clone()),
                    distance: None,
                    gap: 1,
                    correlation: read("0.2"),
                });
                link.duplicate =
                    Some(DuplicateConfig { probability, delay: random.clone(), copies: 1, correlation: read("0.2") });
                link
            })
        };
        for _ in 0..6 {
            let (uplink, downlink, script) =
                (link(), link(), script_of(any_offer())).new_tree(&mut runner).unwrap().current();
            let config = one_hop("radio", uplink, downlink);
            let seed = seed as u64;
            let trace = check_laws(|| Path::new(&config, Seed(seed)), &script, seed);
            assert_eq!(trace.held, 0, "something never leaves: {config:#?}");
            let kinds = [EventKind::AllocationStarted, EventKind::HeldBack, EventKind::Duplicated];
            kinds.iter().zip(&mut seen).for_each(|(kind, seen)| *seen += trace.of_kind(*kind).len());
        }
    }
    assert!(seen.iter().all(|seen| *seen > 300), "{seen:?}");
}

#[derive(Default)]
struct Tally {
    delivered: usize,
    dropped: usize,
    ties: usize,
}

impl Tally {
    fn check(&mut self, queue: &QueueConfig, errors: &ErrorsConfig, runner: &mut TestRunner, seed: u64) {
        let link = || link_with(Just(queue.clone()), Just(errors.clone()));
        let strategy = (link(), link(), script_of(any_offer()));
        let (uplink, downlink, script) = strategy.new_tree(runner).unwrap().current();
        let config = one_hop("radio", uplink, downlink);
        let result = std::panic::catch_unwind(|| check_laws(|| Path::new(&config, Seed(seed)), &script, seed));
        let trace = result.unwrap_or_else(|_| panic!("broken by {config:#?}\nwith {script:?}"));
        self.delivered += trace.departures.len();
        self.dropped += trace.of_kind(EventKind::Dropped).len();
        self.ties += trace.departures.windows(2).filter(|pair| pair[0].at == pair[1].at).count();
        assert_eq!(trace.held, 0, "something never leaves: {config:#?}\nwith {script:?}");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn paths_of_several_hops_with_states_keep_the_laws((config, script) in any_path(), seed in any::<u64>()) {
        let trace = check_laws(|| Path::new(&config, Seed(seed)), &script, seed);
        prop_assert_eq!(trace.held, 0);
    }

    /// Packets of one port leave in the order in which they came, but for errors that delay
    /// without keeping order, queues that let some overtake others, reordering and duplication.
    #[test]
    fn order_is_kept((config, script) in any_path(), seed in any::<u64>()) {
        let (mut config, mut script) = (config, script);
        let keep = |hops: &mut Vec<HopConfig>| {
            for link in hops.iter_mut().flat_map(|hop| [&mut hop.uplink, &mut hop.downlink]) {
                link.errors.effect.keep_order = true;
                if matches!(link.queue, QueueConfig::Dualpi2(_) | QueueConfig::Classes(_)) {
                    link.queue = QueueConfig::default();
                }
                (link.reorder, link.duplicate) = (None, None);
            }
        };
        keep(&mut config.hops);
        config.states.iter_mut().for_each(|state| keep(&mut state.hops));
        for (_, action) in &mut script {
            match action {
                Action::Configure(hops) => keep(hops),
                Action::Set(setting) => {
                    let now = setting.in_force.iter_mut().flatten();
                    let all = now.chain(&mut setting.states).chain([&mut setting.beginning]);
                    all.chain(setting.since.as_mut().map(|(_, hops)| hops)).for_each(keep);
                }
                _ => {}
            }
        }
        let trace = run(Path::new(&config, Seed(seed)), &script);
        for port in [PortId::CLIENT, PortId::SERVER] {
            let ids = trace.ids(port);
            prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", ids);
        }
    }
}

fn transparent(name: &str) -> HopConfig {
    let link = LinkConfig {
        queue: QueueConfig::TailDrop(TailDropConfig { limit: read("unlimited") }),
        ..LinkConfig::default()
    };
    HopConfig { name: name.into(), uplink: link.clone(), downlink: link }
}

/// Events at the hop called `name`, without its number in the path.
fn at_hop(config: &PathConfig, trace: &Trace, name: &str) -> Vec<Event> {
    let index = config.hops.iter().position(|hop| hop.name == name).unwrap() as u16;
    let events = trace.events.iter().filter(|event| event.hop == index && event.kind != EventKind::Passed);
    events.map(|event| Event { hop: 0, ..*event }).collect()
}

proptest! {
    #![proptest_config(cases(150))]

    /// Draws are keyed by the hop's name: hops before and behind it, with errors of their own in
    /// the other direction of the traffic, change nothing at the hop.
    #[test]
    fn added_hops_redraw_nothing(
        hop in any_hop("radio".into()),
        script in script_of(any_offer()),
        seed in any::<u64>(),
    ) {
        let path = |hops: Vec<HopConfig>| PathConfig { hops, ..PathConfig::default() };
        let alone = path(vec![hop.clone()]);
        let between = path(vec![transparent("first"), hop.clone(), transparent("last")]);
        let behind = path(vec![transparent("last"), hop]);
        let reference = at_hop(&alone, &run(Path::new(&alone, Seed(seed)), &script), "radio");
        for config in [between, behind] {
            let events = at_hop(&config, &run(Path::new(&config, Seed(seed)), &script), "radio");
            prop_assert_eq!(&events, &reference);
        }
    }

    /// Traffic of one direction does not concern the other.
    #[test]
    fn directions_are_independent(
        hop in any_hop("radio".into()),
        script in script_of(any_offer()),
        seed in any::<u64>(),
    ) {
        let config = PathConfig { hops: vec![hop], ..PathConfig::default() };
        let both = run(Path::new(&config, Seed(seed)), &script);
        for (direction, port) in [(Direction::Uplink, PortId::CLIENT), (Direction::Downlink, PortId::SERVER)] {
            let one: Script = script
                .iter()
                .filter(|(_, action)| matches!(action, Action::Offer { port: from, .. } if *from == port))
                .cloned()
                .collect();
            let alone = run(Path::new(&config, Seed(seed)), &one);
            // Numbers of packets differ; everything else is the same.
            let of = |trace: &Trace| -> Vec<Event> {
                let events = trace.events.iter().filter(|event| event.direction == direction);
                events.map(|event| Event { pdu: 0, ..*event }).collect()
            };
            prop_assert_eq!(of(&both), of(&alone));
        }
    }
}

#[test]
fn different_seeds_and_names_draw_differently() {
    let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read("0.2") });
    let errors = ErrorsConfig { process, ..ErrorsConfig::default() };
    let link = LinkConfig { errors, ..LinkConfig::default() };
    let script: Script = (0..200).map(|step| offer(ms(step), PortId::CLIENT, 100)).collect();
    let lost = |name: &str, seed| {
        run(Path::new(&one_hop(name, link.clone(), link.clone()), Seed(seed)), &script).ids(PortId::SERVER)
    };
    assert_eq!(lost("radio", 1), lost("radio", 1));
    assert_ne!(lost("radio", 1), lost("radio", 2));
    assert_ne!(lost("radio", 1), lost("wire", 1));
}

#[test]
fn refused_commands_change_nothing() {
    let config = one_hop("radio", LinkConfig::default(), LinkConfig::default());
    let mut outputs = airpath_core::Outputs { level: LogLevel::Events, ..Default::default() };
    let mut path = Path::new(&config, Seed(1));
    let cx = &mut airpath_core::Cx::new(&mut outputs);
    path.control(Time::ZERO, &Command::EnterState("nowhere".into()), cx).unwrap_err();
    path.control(Time::ZERO, &Command::Configure(std::sync::Arc::new(7u32)), cx).unwrap_err();
    path.control(Time::ZERO, &Command::Configure(std::sync::Arc::new(Vec::<HopConfig>::new())), cx).unwrap_err();
    assert!(outputs.events.is_empty());
}
