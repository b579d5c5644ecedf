// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The fast path and the general way: nobody can tell which of them packets take.

use airpath_core::{EventKind, LogLevel, Machine, PortId, Seed, Time};
use airpath_models::channel::{Effect, ErrorsConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::{HopConfig, LinkConfig, Path};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::*;

/// A link that takes the fast path, unless its rate varies or its queue has a limit in time.
fn plain_link() -> impl Strategy<Value = LinkConfig> {
    let queues = QueueConfig::examples().into_iter();
    let queues = queues.filter(|queue| matches!(queue, QueueConfig::TailDrop(_) | QueueConfig::Infinite(_)));
    let losses = ErrorsConfig::examples().into_iter();
    let losses = losses.filter(|errors| errors.effect.effect == Effect::Drop);
    let errors = prop_oneof![1 => Just(ErrorsConfig::default()), 2 => select(losses.collect::<Vec<_>>())];
    let rate = select(vec![read("8 kbit/s"), read("1 Mbit/s"), read("7 Mbit/s"), read("unlimited")]);
    (link_with(select(queues.collect::<Vec<_>>()), errors), rate).prop_map(|(link, rate)| LinkConfig {
        rate,
        propagation: link.propagation,
        queue: link.queue,
        overhead: link.overhead,
        compression: link.compression,
        errors: link.errors,
        ..LinkConfig::default()
    })
}

/// Hops that take the fast path mostly, and others.
fn mixed_hop(name: String) -> BoxedStrategy<HopConfig> {
    let plain_name = name.clone();
    let plain = (plain_link(), plain_link())
        .prop_map(move |(uplink, downlink)| HopConfig::new(plain_name.clone(), uplink, downlink));
    prop_oneof![6 => plain, 1 => any_hop(name)].boxed()
}

/// All that a driver is told of a machine between two calls.
#[derive(Debug, PartialEq)]
struct Told {
    next_deadline: Option<Time>,
    next_emission: Option<Time>,
    held: u64,
    foretold: Vec<(Time, PortId, u64)>,
    nothing_else_before: Time,
}

fn told(path: &Path, until: Time) -> Told {
    let mut foretold = Vec::new();
    let nothing_else_before = path.foresee(until, &mut |at, port, pdu| foretold.push((at, port, pdu.id)));
    let (next_deadline, next_emission, held) = (path.next_deadline(), path.next_emission(), path.held());
    Told { next_deadline, next_emission, held, foretold, nothing_else_before }
}

#[test]
fn nobody_can_tell_the_fast_path_from_the_general_way() {
    let mut runner = TestRunner::new(cases(1));
    let strategy = any_path_of_hops(1..=3, mixed_hop);
    let (mut fast, mut left, mut delivered, mut lost) = (0, 0, 0, 0);
    for seed in 0..400 {
        let (config, script) = strategy.new_tree(&mut runner).unwrap().current();
        let mut dice = Dice::new(seed);
        let mut paths = [Path::new(&config, Seed(seed)), Path::on_general_way(&config, Seed(seed))]
            .map(|path| Runner::new(path, LogLevel::Events));
        let mut now = Time::ZERO;
        let mut was_fast = 0;
        for (at, action) in &script {
            for _ in 0..dice.below(3) {
                now = Time::from_nanos(now.nanos() + dice.below(at.since(now).nanos() + 1));
                paths.iter_mut().for_each(|runner| runner.advance(now));
            }
            paths.iter_mut().for_each(|runner| runner.act(*at, action));
            now = *at;
            let until = Time::from_nanos(now.nanos() + dice.below(200_000_000));
            let [one, other] = [0, 1].map(|index| told(&paths[index].machine, until));
            assert_eq!(one, other, "at {now:?} after {action:?} of {config:#?}\nwith {script:?}");
            assert!(paths[1].machine.hops().iter().all(|hop| !hop.is_fast()));
            let is_fast = paths[0].machine.hops().iter().filter(|hop| hop.is_fast()).count();
            fast += is_fast;
            left += usize::from(is_fast < was_fast);
            was_fast = is_fast;
        }
        paths.iter_mut().for_each(|runner| runner.advance(END));
        let [one, other] = paths.map(Runner::trace);
        one.assert_same(&other, &format!("{config:#?}\nwith {script:?}"));
        delivered += one.departures.len();
        lost += one.of_kind(EventKind::FrameLost).len();
    }
    // Hops take it, and leave it with packets on them.
    assert!(fast > 2_500 && left > 200 && delivered > 3_000 && lost > 1_000, "{fast} {left} {delivered} {lost}");
}
