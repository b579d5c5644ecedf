// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Common parts of the tests of the laws: scripts of inputs, a run that checks the laws at every call, and
//! strategies that mix the registered examples into paths.

mod foresight;
pub mod segment;

use std::collections::HashMap;
use std::sync::Arc;

use airpath_core::{
    Command, Counters, Cx, Damage, Direction, Ecn, Escapes, Event, EventKind, Item, LinkRecord, LogLevel, Machine,
    Matches, Origin, Outputs, Pdu, PortId, Probability, Span, Time,
};
use airpath_models::blackout::BlackoutConfig;
use airpath_models::channel::ErrorsConfig;
use airpath_models::entity::LinkEntity;
use airpath_models::flow_control::FlowControlConfig;
use airpath_models::load::{BackgroundConfig, LoadConfig};
use airpath_models::medium::Medium;
use airpath_models::queueing::QueueConfig;
use airpath_models::random::Random;
use airpath_models::states::Stay;
use airpath_models::{Cell, HopConfig, LinkConfig, Path, PathConfig, Setting, StateConfig};
use foresight::Foresight;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use segment::Segment;

/// Number of cases, from a fixed seed: a test must fail for a reason, not for its luck. PROPTEST_CASES and
/// PROPTEST_RNG_SEED, where set, look further.
pub fn cases(cases: u32) -> ProptestConfig {
    let chosen = ProptestConfig::default();
    let set = |name| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if set("PROPTEST_CASES") { chosen.cases } else { cases },
        rng_seed: if set("PROPTEST_RNG_SEED") { chosen.rng_seed } else { RngSeed::Fixed(0x_a1b2_c3d4) },
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..chosen
    }
}

/// Reads a quantity as a scenario would.
pub fn read<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

pub fn ms(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

/// A small generator of its own (xorshift64*), so that the tests' choices and reference draws have
/// nothing in common with the draws under test.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One input of a script.
#[derive(Clone, Debug)]
pub enum Action {
    Offer { port: PortId, len: u32, header_len: u16 },
    Enter(String),
    Configure(Vec<HopConfig>),
    Set(Setting),
}

/// Inputs in order of time.
pub type Script = Vec<(Time, Action)>;

pub fn offer(at: Time, port: PortId, len: u32) -> (Time, Action) {
    (at, Action::Offer { port, len, header_len: 20 })
}

/// The ECN field of the packets that a script offers, told by their headers.
pub fn ecn_of(header_len: u16) -> Ecn {
    match header_len {
        0 => Ecn::Ect1,
        40 => Ecn::Ect0,
        60 => Ecn::Ce,
        _ => Ecn::NotEct,
    }
}

/// Tells the headers of a TCP segment, of one of three connections at either port.
fn tell_headers(pdu: &mut Pdu, port: PortId) {
    let Some(data) = pdu.len.checked_sub(40) else { return };
    let number = pdu.id as u32;
    let connection = number % 3;
    let own = Segment {
        ports: [port.0 * 3 + connection as u16, 80],
        sequence: number * 500,
        acknowledgement: number / 4,
        identification: number as u16,
        data: data as u16,
        ..Segment::default()
    };
    pdu.headers = own.pdu(pdu.id).headers;
}

/// Does `action` to `machine` at `at`; an offered packet gets the number `next_id`, which counts on.
pub fn perform(machine: &mut impl Machine, at: Time, action: &Action, next_id: &mut u64, cx: &mut Cx<'_>) {
    let mut configure = |parameters| machine.control(at, &Command::Configure(parameters), cx).unwrap();
    match action {
        Action::Configure(hops) => configure(Arc::new(hops.clone())),
        Action::Set(setting) => configure(Arc::new(setting.clone())),
        Action::Enter(name) => machine.control(at, &Command::EnterState(name.as_str().into()), cx).unwrap(),
        Action::Offer { port, len, header_len } => {
            let (len, header_len, ecn) = (*len, *header_len, ecn_of(*header_len));
            // Some packets have contents, and as many escapes as some contents have.
            let escapes = match *next_id % 3 {
                0 => Escapes::UNKNOWN,
                part => Escapes::new(len as usize / part as usize),
            };
            let mut pdu = Pdu { id: *next_id, len, header_len, escapes, ecn, ..Pdu::default() };
            if machine.wants_filters(*port).is_some() {
                pdu.matches = Matches::from_bits(u64::from(pdu.len) % 4);
            }
            if machine.wants_headers(*port) {
                tell_headers(&mut pdu, *port);
            }
            *next_id += 1;
            machine.offer(at, *port, Item::Pdu(pdu), cx);
        }
    }
}

/// A packet that left the machine, all that can be seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    pub at: Time,
    pub port: PortId,
    pub id: u64,
    pub len: u32,
    pub arrived: Time,
    pub flips: Vec<u32>,
    pub kept_bytes: Option<u32>,
}

/// All that a run left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub departures: Vec<Departure>,
    pub events: Vec<Event>,
    pub links: Vec<LinkRecord>,
    pub counters: Counters,
    /// Ports paused (true) and released, in order.
    pub pauses: Vec<(PortId, bool)>,
    pub held: u64,
}

impl Trace {
    /// The times at which packets left through `port`.
    pub fn times(&self, port: PortId) -> Vec<u64> {
        self.departures.iter().filter(|departure| departure.port == port).map(|left| left.at.nanos()).collect()
    }

    pub fn ids(&self, port: PortId) -> Vec<u64> {
        self.departures.iter().filter(|departure| departure.port == port).map(|left| left.id).collect()
    }

    pub fn of_kind(&self, kind: EventKind) -> Vec<&Event> {
        self.events.iter().filter(|event| event.kind == kind).collect()
    }

    /// Fails at the first difference, with what surrounds it.
    pub fn assert_same(&self, other: &Trace, what: &str) {
        fn first<T: PartialEq + std::fmt::Debug>(a: &[T], b: &[T], what: &str, kind: &str) {
            if a == b {
                return;
            }
            let index = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            let near = index.saturating_sub(2);
            panic!(
                "{what}: {kind} differ at index {index}:\n  {:#?}\nagainst\n  {:#?}",
                &a[near..a.len().min(index + 2)],
                &b[near..b.len().min(index + 2)]
            );
        }
        first(&self.events, &other.events, what, "events");
        first(&self.links, &other.links, what, "records of link entities");
        first(&self.departures, &other.departures, what, "departures");
        assert_eq!(self.counters, other.counters, "{what}: counters");
        first(&self.pauses, &other.pauses, what, "pauses of ports");
        assert_eq!(self.held, other.held, "{what}: held");
    }
}

/// A machine that shows how many packets each of its hops holds.
pub trait Hops: Machine {
    /// For each user the place of the first hop, and the packets that each bearer of each hop holds.
    fn held_by_hop(&self, origin: Origin) -> Vec<(u16, Vec<Vec<u64>>)>;
}

impl<E: LinkEntity, M: Medium> Hops for Path<E, M> {
    fn held_by_hop(&self, origin: Origin) -> Vec<(u16, Vec<Vec<u64>>)> {
        vec![(0, self.hops().iter().map(|hop| vec![hop.held_of(origin)]).collect())]
    }
}

impl Hops for Cell {
    fn held_by_hop(&self, origin: Origin) -> Vec<(u16, Vec<Vec<u64>>)> {
        let of_user = |user| {
            let mut held = self.held_of(user, origin).into_iter();
            let hops = self.bearers_of(user).into_iter().map(|bearers| held.by_ref().take(bearers).collect());
            (self.place(user), hops.collect())
        };
        (0..self.users()).map(of_user).collect()
    }
}

/// Drives a machine and checks after every call what must hold at any time.
pub struct Runner<M: Hops> {
    pub machine: M,
    outputs: Outputs,
    now: Time,
    seen_events: usize,
    seen_emissions: usize,
    next_id: u64,
    /// Before this nothing was to be emitted.
    promised: Time,
    /// Before these, the packets of these numbers were not to be emitted, as long as no parameter changes.
    not_before: HashMap<u64, Time>,
    pub foresight: Foresight,
}

impl<M: Hops> Runner<M> {
    pub fn new(machine: M, level: LogLevel) -> Runner<M> {
        let outputs = Outputs { level, keeps_links: true, ..Outputs::default() };
        Runner {
            machine,
            outputs,
            now: Time::ZERO,
            seen_events: 0,
            seen_emissions: 0,
            next_id: 1,
            promised: Time::ZERO,
            not_before: HashMap::new(),
            foresight: Foresight::default(),
        }
    }

    pub fn act(&mut self, at: Time, action: &Action) {
        if !matches!(action, Action::Offer { .. }) {
            self.foresight.commanded(at);
        }
        let id = self.next_id;
        perform(&mut self.machine, at, action, &mut self.next_id, &mut Cx::new(&mut self.outputs));
        if let Action::Offer { port, len, .. } = action {
            let least = self.machine.least_transit_of(at, *port, *len);
            assert!(least >= self.machine.least_transit(), "{least} of {len} bytes is less than of anything");
            self.not_before.insert(id, at + least);
        }
        self.check(at);
    }

    pub fn advance(&mut self, to: Time) {
        self.machine.advance(to, &mut Cx::new(&mut self.outputs));
        let next = self.machine.next_deadline();
        assert!(next.is_none_or(|next| next > to), "after advance({to:?}) the deadline is {next:?}");
        self.check(to);
    }

    /// Time is monotone, and nothing has got lost.
    fn check(&mut self, reached: Time) {
        let mut last = self.now;
        for event in &self.outputs.events[self.seen_events..] {
            assert!(event.at >= last, "time runs backwards from {last:?} to {event:?}");
            assert!(event.at <= reached, "at {reached:?} there is already {event:?}");
            last = event.at;
        }
        last = self.now;
        for emission in &self.outputs.emissions[self.seen_emissions..] {
            assert!(emission.at >= last, "time runs backwards from {last:?} to {:?}", emission.at);
            assert!(emission.at <= reached, "emitted before it is due");
            last = emission.at;
        }
        self.check_promises();
        self.foresight.check(&self.outputs.emissions[self.seen_emissions..], reached);
        self.foresight.ask(&self.machine, reached);
        self.seen_events = self.outputs.events.len();
        self.seen_emissions = self.outputs.emissions.len();
        self.now = reached;
        self.check_conservation();
    }

    /// Nothing has left before the instants that the machine has named for sleeping until.
    fn check_promises(&mut self) {
        let is_change = |event: &&Event| matches!(event.kind, EventKind::StateChanged | EventKind::ParameterSet);
        let changed = self.outputs.events[self.seen_events..].iter().find(is_change).map(|event| event.at);
        for emission in &self.outputs.emissions[self.seen_emissions..] {
            assert!(emission.at >= self.promised, "left at {:?}, promised {:?}", emission.at, self.promised);
            let Item::Pdu(pdu) = &emission.item else { continue };
            if changed.is_none_or(|changed| emission.at < changed)
                && let Some(not_before) = self.not_before.remove(&pdu.id)
            {
                assert!(emission.at >= not_before, "left at {:?}, not before {not_before:?}", emission.at);
            }
        }
        // Changes are told by events, which are not there at the level of counters.
        if changed.is_some() || self.outputs.level < LogLevel::Events {
            self.not_before.clear();
        }
        self.promised = self.machine.next_emission().unwrap_or(Time::NEVER);
    }

    fn check_conservation(&self) {
        let [user, background] = [Origin::User, Origin::Background].map(|origin| self.conservation_of(origin));
        assert_eq!(user.held, self.machine.held(), "the machine counts what is of users at {:?}", self.now);
        assert_eq!((user.generated, user.consumed), (0, 0), "endpoints' packets stay theirs");
        assert_eq!(user.delivered, self.outputs.emissions.len() as u64, "delivered events and emissions");
        assert_eq!((background.offered, background.delivered), (0, 0), "virtual packets never meet an endpoint");
    }

    /// Conservation of the packets of `origin` in every hop and over the path of each user.
    fn conservation_of(&self, origin: Origin) -> Balance {
        let mut all = Balance::default();
        for (place, held) in self.machine.held_by_hop(origin) {
            let of_user = self.conservation_of_user(origin, place, &held);
            all.add(&of_user);
        }
        all
    }

    /// The same for the user whose first hop has this place.
    fn conservation_of_user(&self, origin: Origin, place: u16, held: &[Vec<u64>]) -> Balance {
        let counters = &self.outputs.counters;
        let count = |hop, direction, kind| counters.site(hop, direction, origin).kind(kind).count;
        let path = |direction, kind| count(place.wrapping_sub(1), direction, kind);
        // Bearers of a hop have places side by side: which of them takes a packet is not for conservation.
        let place_of = |hop: usize| place + held[..hop].iter().map(Vec::len).sum::<usize>() as u16;
        let of_hop = |hop: usize, direction, kind| {
            let bearers = (place_of(hop)..).take(held[hop].len());
            bearers.map(|bearer| count(bearer, direction, kind)).sum::<u64>()
        };
        let last = held.len() - 1;
        let mut sum = Balance::default();
        for (hop, held) in held.iter().enumerate() {
            let mut balance = 0i128;
            for (direction, first, end) in [(Direction::Uplink, 0, last), (Direction::Downlink, last, 0)] {
                // Towards the end of the path hop numbers go up in the uplink and down otherwise.
                let before = if direction == Direction::Uplink { hop.wrapping_sub(1) } else { hop + 1 };
                let entered = if hop == first {
                    path(direction, EventKind::Offered)
                } else {
                    of_hop(before, direction, EventKind::Passed)
                };
                let left = if hop == end {
                    path(direction, EventKind::Delivered)
                } else {
                    of_hop(hop, direction, EventKind::Passed)
                };
                let at_hop = |kind| of_hop(hop, direction, kind);
                let lost = at_hop(EventKind::Dropped);
                let copies = at_hop(EventKind::Duplicated);
                let (generated, consumed) = (at_hop(EventKind::Generated), at_hop(EventKind::Consumed));
                balance += i128::from(entered) + i128::from(generated) + i128::from(copies);
                balance -= i128::from(left) + i128::from(lost) + i128::from(consumed);
                sum.dropped += lost;
                sum.generated += generated;
                sum.duplicated += copies;
                sum.consumed += consumed;
            }
            let held: u64 = held.iter().sum();
            assert_eq!(balance, i128::from(held), "hop {hop} at {:?}: {origin:?} in - out ≠ held", self.now);
            sum.held += held;
        }
        for direction in Direction::ALL {
            sum.offered += path(direction, EventKind::Offered);
            sum.delivered += path(direction, EventKind::Delivered);
        }
        // After every call nothing is between two hops: what is handed over is due at once.
        let entered = sum.offered + sum.generated + sum.duplicated;
        let left = sum.delivered + sum.dropped + sum.consumed;
        assert_eq!(entered, left + sum.held, "{origin:?} in the path at {:?}", self.now);
        sum
    }

    pub fn trace(self) -> Trace {
        if self.outputs.level >= LogLevel::Events {
            let mut recount = Counters::default();
            self.outputs.events.iter().for_each(|event| recount.count(event));
            assert_eq!(recount, self.outputs.counters, "counters and events disagree");
        }
        let departures = self.outputs.emissions.into_iter().map(|emission| {
            let Item::Pdu(pdu) = emission.item else { panic!("a path emits packets only") };
            let damage = pdu.damage.as_deref().cloned();
            let Damage { flips, truncated_to: kept_bytes } = damage.unwrap_or_default();
            let (at, port, Pdu { id, len, arrived, .. }) = (emission.at, emission.port, pdu);
            Departure { at, port, id, len, arrived, flips, kept_bytes }
        });
        Trace {
            departures: departures.collect(),
            events: self.outputs.events,
            links: self.outputs.links,
            counters: self.outputs.counters,
            pauses: self.outputs.flow_control,
            held: self.machine.held(),
        }
    }
}

/// Balance of the packets of one origin.
#[derive(Default)]
struct Balance {
    offered: u64,
    generated: u64,
    duplicated: u64,
    delivered: u64,
    dropped: u64,
    consumed: u64,
    held: u64,
}

impl Balance {
    fn add(&mut self, other: &Balance) {
        self.offered += other.offered;
        self.generated += other.generated;
        self.duplicated += other.duplicated;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
        self.consumed += other.consumed;
        self.held += other.held;
    }
}

/// Long after everything that a script causes: 65,535-byte packets take a minute each at 9600 bit/s.
pub const END: Time = Time::from_nanos(3_600_000_000_000_000);

/// Plays `script` and nothing more until the end.
pub fn run<M: Hops>(machine: M, script: &Script) -> Trace {
    run_to(machine, script, END)
}

/// The same until `end`.
pub fn run_to<M: Hops>(machine: M, script: &Script, end: Time) -> Trace {
    let mut runner = Runner::new(machine, LogLevel::Events);
    for (at, action) in script {
        runner.act(*at, action);
    }
    runner.advance(end);
    runner.trace()
}

/// The same with extra wake-ups between any two inputs: at their very instants, at deadlines, just
/// before and behind them, and anywhere else.
pub fn run_woken<M: Hops>(machine: M, script: &Script, seed: u64, end: Time) -> Trace {
    let mut dice = Dice::new(seed);
    let mut runner = Runner::new(machine, LogLevel::Events);
    let mut now = 0;
    let after = script.last().map_or(0, |(at, _)| at.nanos()) + 300_000_000;
    for (at, action) in script.iter().map(|(at, action)| (at.nanos(), Some(action))).chain([(after, None)]) {
        for _ in 0..dice.below(5) {
            let due = runner.machine.next_deadline().map_or(now, Time::nanos);
            let wake = match dice.below(6) {
                0 => at,
                1 => due,
                2 => due.saturating_sub(1),
                3 => due.saturating_add(1),
                4 => now,
                _ => now + dice.below(at - now + 1),
            };
            now = wake.clamp(now, at);
            runner.advance(Time::from_nanos(now));
        }
        now = at;
        if let Some(action) = action {
            runner.act(Time::from_nanos(at), action);
        }
    }
    // One deadline after the other, as a live driver would.
    while let Some(due) = runner.machine.next_deadline().filter(|due| *due <= end) {
        runner.advance(due);
    }
    runner.advance(end);
    runner.trace()
}

/// The same with the work up to each input cut into pieces of a few events.
pub fn run_in_pieces<M: Hops>(machine: M, script: &Script, seed: u64, end: Time) -> Trace {
    let mut dice = Dice::new(seed);
    let mut runner = Runner::new(machine, LogLevel::Events);
    let mut advance = |runner: &mut Runner<M>, to: Time| {
        loop {
            let allowed = 1 + dice.below(6) as u32;
            let mut events = allowed;
            let reached = runner.machine.advance_some(to, &mut events, &mut Cx::new(&mut runner.outputs));
            let due = runner.machine.next_deadline();
            assert!(reached <= to && due.is_none_or(|due| due > reached), "{due:?} is left undone before {reached:?}");
            runner.check(reached);
            if reached == to {
                return;
            }
            assert_eq!(events, 0, "it stops with {events} of {allowed} events left");
        }
    };
    for (at, action) in script {
        advance(&mut runner, *at);
        runner.act(*at, action);
    }
    advance(&mut runner, end);
    runner.advance(end);
    runner.trace()
}

/// All laws that concern one machine and one script.
pub fn check_laws<M: Hops>(machine: impl Fn() -> M, script: &Script, seed: u64) -> Trace {
    check_laws_to(machine, script, seed, END)
}

/// The same until `end`, for machines that are never idle.
pub fn check_laws_to<M: Hops>(machine: impl Fn() -> M, script: &Script, seed: u64, end: Time) -> Trace {
    let plain = run_to(machine(), script, end);
    plain.assert_same(&run_to(machine(), script, end), "the same inputs again");
    for wake in 0..2 {
        plain.assert_same(&run_woken(machine(), script, seed ^ wake << 32, end), "extra wake-ups");
    }
    plain.assert_same(&run_in_pieces(machine(), script, seed, end), "work cut into pieces");
    let mut quiet = Runner::new(machine(), LogLevel::Counters);
    for (at, action) in script {
        quiet.act(*at, action);
    }
    quiet.advance(end);
    let quiet = quiet.trace();
    assert_eq!(quiet.departures, plain.departures, "the log level changes what is delivered");
    assert_eq!(quiet.counters, plain.counters, "the log level changes counters");
    plain
}

/// A link of `queue` and `errors`, whose other parameters are taken from the examples, each from
/// any of them.
pub fn link_with(
    queue: impl Strategy<Value = QueueConfig>,
    errors: impl Strategy<Value = ErrorsConfig>,
) -> impl Strategy<Value = LinkConfig> {
    let any = || select(LinkConfig::examples());
    (queue, errors, any(), any(), any(), any(), any(), any()).prop_map(
        |(queue, errors, time, framing, sender, receiver, delay, impairment)| LinkConfig {
            rate: time.rate,
            propagation: delay.propagation,
            queue,
            flow_control: FlowControlConfig::default(),
            overhead: framing.overhead,
            compression: framing.compression,
            fragmentation: framing.fragmentation,
            send_buffer: sender.send_buffer,
            receive_buffer: receiver.receive_buffer,
            allocation_delay: time.allocation_delay,
            errors,
            reorder: impairment.reorder,
            duplicate: impairment.duplicate,
            blackout: BlackoutConfig::default(),
            entity: framing.entity,
            medium: time.medium,
            fading: None,
            bearers: Vec::new(),
        },
    )
}

pub fn any_link() -> impl Strategy<Value = LinkConfig> {
    link_with(select(QueueConfig::examples()), select(ErrorsConfig::examples()))
}

pub fn any_hop(name: String) -> impl Strategy<Value = HopConfig> {
    (any_link(), any_link()).prop_map(move |(uplink, downlink)| {
        // Both directions have the same kind.
        let kinds = LinkConfig { entity: uplink.entity.clone(), medium: uplink.medium.clone(), ..downlink };
        HopConfig::new(name.clone(), uplink, kinds)
    })
}

/// A strategy for a hop of some name.
type AnyHop = fn(String) -> BoxedStrategy<HopConfig>;

fn any_hops(count: usize, any_hop: AnyHop) -> Vec<BoxedStrategy<HopConfig>> {
    (0..count).map(|index| any_hop(format!("hop{index}"))).collect()
}

/// Times at which things like to coincide: mostly whole multiples of five milliseconds.
pub fn any_time() -> impl Strategy<Value = Time> {
    prop_oneof![4 => (0u64..40).prop_map(|step| ms(step * 5)), 1 => (0u64..200_000_000).prop_map(Time::from_nanos)]
}

pub fn any_offer() -> impl Strategy<Value = Action> {
    let len = prop_oneof![
        // 125 bytes are a millisecond at 1 Mbit/s, 5 bytes 5 ms at 8 kbit/s.
        6 => select(vec![125u32, 5, 250, 625, 40, 296, 1500]),
        1 => 0u32..2_000,
        1 => select(vec![0, 1, 2_999, 3_001, 9_000, 65_535]),
    ];
    let port = select(vec![PortId::CLIENT, PortId::SERVER]);
    (port, len, select(vec![0u16, 20, 40, 60])).prop_map(|(port, len, header_len)| Action::Offer {
        port,
        len,
        header_len,
    })
}

/// Duration of a state: mostly whole multiples of five milliseconds, so that things coincide.
fn any_duration() -> impl Strategy<Value = Random<Span>> {
    let steps = (1u64..20).prop_map(|step| Random::Constant(Span::from_millis(step * 5)));
    prop_oneof![2 => steps, 1 => select(Random::examples(Span::from_millis(30)))]
}

/// Successors of state number `number`: among those behind it, so that the states come to an end.
fn any_next(number: u16, count: u16) -> impl Strategy<Value = Vec<(u16, Probability)>> {
    let later: Vec<u16> = (number + 1..=count).chain([0]).collect();
    let half = read::<Probability>("0.5");
    prop_oneof![
        Just(Vec::new()),
        (select(later.clone()), select(later)).prop_map(move |(one, other)| vec![(one, half), (other, half)])
    ]
}

/// A state that comes at some time or on a command, and lasts, or does not. Only what ends by itself
/// is a blackout in some of its hops and directions.
fn any_state(number: u16, count: u16, hops: usize, any_hop: AnyHop) -> impl Strategy<Value = StateConfig> {
    let dark = proptest::collection::vec(proptest::option::of(select(BlackoutConfig::examples())), 2 * hops);
    let stay = proptest::option::of((any_duration(), any_next(number, count), dark));
    (proptest::option::of(any_time()), any_hops(hops, any_hop), stay).prop_map(move |(at, mut hops, stay)| {
        let mut lasts = Stay::default();
        if let Some((duration, next, dark)) = stay {
            lasts = Stay { duration: Some(duration), next };
            let links = hops.iter_mut().flat_map(|hop| [&mut hop.uplink, &mut hop.downlink]);
            for (link, dark) in links.zip(dark) {
                link.blackout = dark.unwrap_or_default();
            }
        }
        StateConfig { name: format!("state{number}"), at, hops, stay: lasts }
    })
}

/// A path of one to three hops with up to three states, and a script for it.
pub fn any_path() -> impl Strategy<Value = (PathConfig, Script)> {
    any_path_of(1..=3)
}

/// A path of so many hops with up to three states, and a script for it.
pub fn any_path_of(hops: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = (PathConfig, Script)> {
    any_path_of_hops(hops, |name| any_hop(name).boxed())
}

/// The same with hops of `any_hop`.
pub fn any_path_of_hops(
    hops: std::ops::RangeInclusive<usize>,
    any_hop: AnyHop,
) -> impl Strategy<Value = (PathConfig, Script)> {
    (hops, 0u16..=3).prop_flat_map(move |(hops, count)| {
        let states: Vec<_> = (1..=count).map(|number| any_state(number, count, hops, any_hop)).collect();
        let first = proptest::option::of((any_duration(), any_next(0, count)));
        let loads = proptest::collection::vec(any_load(hops), 0..=2).prop_map(named);
        let config =
            (any_hops(hops, any_hop), states, first, loads).prop_map(move |(hops, states, first, background)| {
                // Without a state that lasts, the beginning would follow itself for ever.
                let lasting = states.last().is_some_and(|last| last.stay.duration.is_none());
                let initial = match first {
                    Some((duration, _)) if lasting => {
                        Stay { duration: Some(duration), next: vec![(count, Probability::ONE)] }
                    }
                    _ => Stay::default(),
                };
                PathConfig { hops, states, initial, background }
            });
        (config, any_hops(hops, any_hop)).prop_flat_map(|(config, other)| {
            let names: Vec<String> = config.states.iter().map(|state| state.name.clone()).collect();
            let mut command = vec![Action::Configure(config.hops.clone()), Action::Configure(other.clone())];
            command.extend(names.into_iter().map(Action::Enter));
            command.push(Action::Enter("initial".into()));
            command.push(Action::Set(Setting {
                beginning: other.clone(),
                states: config.states.iter().map(|state| state.hops.clone()).collect(),
                in_force: vec![Ok(config.hops.clone()); config.states.len() + 1],
                since: Some((1, other)),
            }));
            let action = prop_oneof![12 => any_offer(), 1 => select(command)];
            (Just(config), script_of(action))
        })
    })
}

/// A background load of any registered kind through any of `hops` hops, which ends.
fn any_load(hops: usize) -> impl Strategy<Value = BackgroundConfig> {
    let place = (0..hops, 0..hops, select(Direction::ALL.to_vec()));
    (select(LoadConfig::examples()), place, any_time(), 1u64..=150).prop_map(
        |(load, (one, other, direction), start, millis)| {
            let (first, last) = match direction {
                Direction::Uplink => (one.min(other), one.max(other)),
                Direction::Downlink => (one.max(other), one.min(other)),
            };
            let start = start.since(Time::ZERO);
            BackgroundConfig {
                until: Some(format!("hop{last}")),
                flows: 2,
                start,
                stop: Some(start + Span::from_millis(millis)),
                ..BackgroundConfig::new("load", &format!("hop{first}"), direction, load)
            }
        },
    )
}

/// Loads with names of their own.
fn named(mut loads: Vec<BackgroundConfig>) -> Vec<BackgroundConfig> {
    loads.iter_mut().enumerate().for_each(|(number, load)| load.name = format!("load{number}"));
    loads
}

/// Up to sixty inputs, in bursts.
pub fn script_of(action: impl Strategy<Value = Action>) -> impl Strategy<Value = Script> {
    proptest::collection::vec((any_time(), action), 0..60).prop_map(|mut script| {
        script.sort_by_key(|(at, _)| *at);
        script
    })
}

pub fn one_hop(name: &str, uplink: LinkConfig, downlink: LinkConfig) -> PathConfig {
    PathConfig { hops: vec![HopConfig { name: name.into(), uplink, downlink }], ..PathConfig::default() }
}

pub fn span(text: &str) -> Span {
    read(text)
}
