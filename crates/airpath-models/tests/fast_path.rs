// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The fast path and the general way: nobody can tell which of them packets take.

use airpath_core::{Credit, Cx, EventKind, Item, LogLevel, Machine, Origin, Outputs, PortId, Seed, Signal, Span, Time};
use airpath_models::channel::{Effect, ErrorsConfig};
use airpath_models::flow_control::FlowControlConfig;
use airpath_models::queueing::QueueConfig;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::common::*;

/// A link that takes the fast path, unless its queue has a limit in time.
fn plain_link() -> impl Strategy<Value = LinkConfig> {
    let queues = QueueConfig::examples().into_iter();
    let queues = queues.filter(|queue| matches!(queue, QueueConfig::TailDrop(_) | QueueConfig::Infinite(_)));
    let losses = ErrorsConfig::examples().into_iter();
    let losses = losses.filter(|errors| errors.effect.effect == Effect::Drop);
    let errors = prop_oneof![1 => Just(ErrorsConfig::default()), 2 => select(losses.collect::<Vec<_>>())];
    let rate = select(vec![read("8 kbit/s"), read("1 Mbit/s"), read("7 Mbit/s"), read("unlimited")]);
    let is_delayed = prop_oneof![1 => Just(false), 2 => Just(true)];
    (link_with(select(queues.collect::<Vec<_>>()), errors), rate, is_delayed).prop_map(|(link, rate, is_delayed)| {
        let plain = LinkConfig::default();
        LinkConfig {
            rate,
            propagation: if is_delayed { link.propagation } else { plain.propagation },
            queue: link.queue,
            overhead: link.overhead,
            compression: link.compression,
            errors: link.errors,
            ..plain
        }
    })
}

/// A plain link with one property, or two, of links that are not.
fn near_link() -> impl Strategy<Value = LinkConfig> {
    let queues_and_errors = (select(QueueConfig::examples()), select(ErrorsConfig::examples()));
    let windows = select(FlowControlConfig::examples());
    (plain_link(), select(LinkConfig::examples()), queues_and_errors, windows, 0..11).prop_map(
        |(mut link, other, (queue, errors), window, property)| {
            match property {
                0 => link.rate = other.rate,
                1 => link.queue = queue,
                2 => link.fragmentation = other.fragmentation,
                3 => link.send_buffer = other.send_buffer,
                4 => link.receive_buffer = other.receive_buffer,
                5 => link.allocation_delay = other.allocation_delay,
                6 => link.errors = errors,
                7 => link.reorder = other.reorder,
                8 => link.duplicate = other.duplicate,
                9 => link.flow_control = window,
                _ => (link.send_buffer, link.allocation_delay) = (other.send_buffer, other.allocation_delay),
            }
            link
        },
    )
}

/// Hops that take the fast path, hops that nearly do, and others.
fn mixed_hop(name: String) -> BoxedStrategy<HopConfig> {
    let named = |links: BoxedStrategy<(LinkConfig, LinkConfig)>| {
        let name = name.clone();
        links.prop_map(move |(uplink, downlink)| HopConfig::new(name.clone(), uplink, downlink))
    };
    let plain = named((plain_link(), plain_link()).boxed());
    let near = named(prop_oneof![(near_link(), plain_link()), (plain_link(), near_link())].boxed());
    prop_oneof![6 => plain, 2 => near, 1 => any_hop(name)].boxed()
}

/// All that a driver is told of a machine between two calls.
#[derive(Debug, PartialEq)]
struct Told {
    next_deadline: Option<Time>,
    next_emission: Option<Time>,
    least_transit: Span,
    held: u64,
    held_by_hop: Vec<[u64; 2]>,
    foretold: Vec<(Time, PortId, u64)>,
    nothing_else_before: Time,
    events: usize,
}

/// A path and what it has left behind.
struct Played {
    path: Path,
    outputs: Outputs,
    next_id: u64,
}

impl Played {
    fn new(path: Path) -> Played {
        Played { path, outputs: Outputs { level: LogLevel::Events, ..Outputs::default() }, next_id: 1 }
    }

    fn told(&self, until: Time) -> Told {
        let path = &self.path;
        let mut foretold = Vec::new();
        let nothing_else_before = path.foresee(until, &mut |at, port, pdu| foretold.push((at, port, pdu.id)));
        let of_both =
            |origin_a, origin_b| path.hops().iter().map(move |hop| [origin_a, origin_b].map(|of| hop.held_of(of)));
        Told {
            next_deadline: path.next_deadline(),
            next_emission: path.next_emission(),
            least_transit: path.least_transit(),
            held: path.held(),
            held_by_hop: of_both(Origin::User, Origin::Background).collect(),
            foretold,
            nothing_else_before,
            events: self.outputs.events.len(),
        }
    }

    fn advance(&mut self, to: Time) {
        self.path.advance(to, &mut Cx::new(&mut self.outputs));
    }

    fn advance_some(&mut self, to: Time, mut events: u32) -> Time {
        self.path.advance_some(to, &mut events, &mut Cx::new(&mut self.outputs))
    }

    fn give(&mut self, at: Time, port: PortId, credit: Credit) {
        self.path.offer(at, port, Item::Signal(Signal::Credit(credit)), &mut Cx::new(&mut self.outputs));
    }

    fn act(&mut self, at: Time, action: &Action) {
        perform(&mut self.path, at, action, &mut self.next_id, &mut Cx::new(&mut self.outputs));
    }
}

/// A credit of a machine behind the path, or the end of its window.
fn any_credit(dice: &mut Dice) -> Credit {
    if dice.below(4) == 0 {
        return Credit { taken_packets: dice.below(20), ..Credit::UNLIMITED };
    }
    Credit {
        taken_packets: dice.below(20),
        taken_bytes: dice.below(8_000),
        window_packets: 1 + dice.below(6) as u32,
        window_bytes: if dice.below(2) == 0 { u64::MAX } else { 1 + dice.below(4_000) },
    }
}

/// A path played on both ways at once.
struct Pair {
    ways: [Played; 2],
    now: Time,
    dice: Dice,
    /// Number of hops on the fast path, after all calls; and of times that one left it.
    fast: usize,
    left: usize,
    were_fast: usize,
}

impl Pair {
    fn new(config: &PathConfig, seed: u64) -> Pair {
        let ways = [Path::new(config, Seed(seed)), Path::on_general_way(config, Seed(seed))].map(Played::new);
        Pair { ways, now: Time::ZERO, dice: Dice::new(seed), fast: 0, left: 0, were_fast: 0 }
    }

    /// Makes a call of both at `at`, after which nobody can tell them apart.
    fn call(&mut self, at: Time, call: impl Fn(&mut Played), what: &dyn std::fmt::Debug) {
        self.now = at;
        self.ways.iter_mut().for_each(call);
        let until = Time::from_nanos(at.nanos() + self.dice.below(200_000_000));
        let [fast, general] = self.ways.each_ref().map(|way| way.told(until));
        assert_eq!(fast, general, "at {at:?} after {what:?}");
        assert!(self.ways[1].path.hops().iter().all(|hop| !hop.is_fast()));
        let are_fast = self.ways[0].path.hops().iter().filter(|hop| hop.is_fast()).count();
        self.fast += are_fast;
        self.left += usize::from(are_fast < self.were_fast);
        self.were_fast = are_fast;
    }

    /// Wakes both up some times before `at`, at deadlines and at other instants, now and then for a few events only.
    fn wake_before(&mut self, at: Time) {
        for _ in 0..self.dice.below(3) {
            let due = self.ways[0].path.next_deadline().filter(|due| self.dice.below(3) == 0 && *due <= at);
            let to = due.unwrap_or_else(|| {
                Time::from_nanos(self.now.nanos() + self.dice.below(at.since(self.now).nanos() + 1))
            });
            if self.dice.below(4) == 0 {
                let events = 1 + self.dice.below(4) as u32;
                let [one, other] = self.ways.each_mut().map(|way| way.advance_some(to, events));
                // The same events may be one more or less to the two.
                let reached = one.max(other);
                self.call(reached, |way| way.advance(reached), &"a few events");
            } else {
                self.call(to, |way| way.advance(to), &"a wake-up");
            }
        }
    }

    fn play(&mut self, script: &Script, credits: bool) {
        for (at, action) in script {
            self.wake_before(*at);
            if credits && self.dice.below(6) == 0 {
                let port = [PortId::CLIENT, PortId::SERVER][self.dice.below(2) as usize];
                let credit = any_credit(&mut self.dice);
                self.call(*at, |way| way.give(*at, port, credit), &credit);
            }
            self.call(*at, |way| way.act(*at, action), action);
        }
        for _ in 0..20 {
            let Some(due) = self.ways[0].path.next_deadline() else { break };
            self.call(due, |way| way.advance(due), &"a deadline");
        }
        self.ways.iter_mut().for_each(|way| way.advance(END));
        let [fast, general] = &self.ways;
        assert_eq!(fast.outputs.events, general.outputs.events);
        assert_eq!(fast.outputs.counters, general.outputs.counters);
        assert_eq!(fast.outputs.flow_control, general.outputs.flow_control);
        let left = |way: &Played| format!("{:?}", way.outputs.emissions);
        assert_eq!(left(fast), left(general));
    }
}

#[test]
fn nobody_can_tell_the_fast_path_from_the_general_way() {
    let mut runner = TestRunner::new(cases(1));
    let strategy = any_path_of_hops(1..=3, mixed_hop);
    let (mut fast, mut left, mut lost) = (0, 0, 0);
    for seed in 0..400 {
        let (config, script) = strategy.new_tree(&mut runner).unwrap().current();
        let played = std::panic::catch_unwind(|| {
            let mut pair = Pair::new(&config, seed);
            pair.play(&script, seed % 4 == 0);
            pair
        });
        let pair = played.unwrap_or_else(|_| panic!("told apart with seed {seed} by {config:#?}\nwith {script:?}"));
        fast += pair.fast;
        left += pair.left;
        let events = &pair.ways[0].outputs.events;
        lost += events.iter().filter(|event| event.kind == EventKind::FrameLost).count();
    }
    // Hops take it, leave it with packets on them, and lose some.
    assert!(fast > 4_000 && left > 200 && lost > 1_000, "{fast} {left} {lost}");
}
