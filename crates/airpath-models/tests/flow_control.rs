// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Windows between hops, and between hops and endpoints: a case computed by hand, the laws over chains of hops with
//! windows at any of them, and the window recounted from the events.

use airpath_core::{
    Bits, Cause, Credit, Cx, Direction, Event, EventKind, Item, LogLevel, Machine, Origin, Outputs, Pdu, PortId, Seed,
    Signal, Span, Stage, Time,
};
use airpath_models::cell::{MediumOfCell, SharedMediumConfig, UserConfig};
use airpath_models::flow_control::{FlowControlConfig, WindowConfig};
use airpath_models::medium::MediumChoice;
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::states::Stay;
use airpath_models::{Cell, CellConfig, HopConfig, LinkConfig, Path, PathConfig, StateConfig};
use proptest::prelude::*;

use crate::cells::any_cell;
use crate::common::*;

fn packets(packets: u32) -> FlowControlConfig {
    FlowControlConfig::Window(WindowConfig { packets: Some(packets), bytes: None })
}

fn bytes(bytes: u64) -> FlowControlConfig {
    FlowControlConfig::Window(WindowConfig { packets: None, bytes: Some(Bits::from_bytes(bytes)) })
}

fn queue_of(limit: &str) -> QueueConfig {
    QueueConfig::TailDrop(TailDropConfig { limit: read(limit) })
}

/// 1000 bytes take 8 ms and 10 ms on the way, then 80 ms and 5 ms; four packets may wait for the second hop.
fn chain(flow_control: FlowControlConfig) -> PathConfig {
    let first = LinkConfig { rate: read("1 Mbit/s"), propagation: read("10 ms"), ..LinkConfig::default() };
    let second = LinkConfig {
        rate: read("100 kbit/s"),
        propagation: read("5 ms"),
        queue: queue_of("4 packets"),
        flow_control,
        ..LinkConfig::default()
    };
    let hops = vec![HopConfig::new("first", first.clone(), first), HopConfig::new("second", second.clone(), second)];
    PathConfig { hops, ..PathConfig::default() }
}

fn burst(count: usize, port: PortId) -> Script {
    (0..count).map(|_| offer(Time::ZERO, port, 1000)).collect()
}

/// Times in milliseconds.
fn millis(times: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let whole = |at: u64| {
        assert_eq!(at % 1_000_000, 0);
        at / 1_000_000
    };
    times.into_iter().map(whole).collect()
}

/// Packet 1 reaches the second hop at 18 ms and leaves its queue at once. Packets 2 to 5 are taken at 8, 16, 24 and
/// 32 ms; then four are on the way, until packet 2 leaves the queue at 98 ms and packet 6 is taken at that instant.
/// From there on one goes every 80 ms.
#[test]
fn a_window_of_four_stops_the_hop_before() {
    for window in [packets(4), bytes(4_000), bytes(4_999)] {
        let config = chain(window);
        let trace = check_laws(|| Path::new(&config, Seed(1)), &burst(8, PortId::CLIENT), 1);
        let started = trace.of_kind(EventKind::FrameStarted).into_iter().filter(|event| event.hop == 0);
        assert_eq!(millis(started.map(|event| event.at.nanos())), [0, 8, 16, 24, 32, 98, 178, 258]);
        assert_eq!(millis(trace.times(PortId::SERVER)), [103, 183, 263, 343, 423, 503, 583, 663]);
        assert_eq!(trace.of_kind(EventKind::Dropped), Vec::<&airpath_core::Event>::new());
        let longest = trace.events.iter().filter(|event| event.hop == 1).map(|event| event.queue_packets).max();
        assert_eq!(longest, Some(4));
    }
    // Without it the queue overflows: packets 6 to 8 come at 58, 66 and 74 ms.
    let config = chain(FlowControlConfig::default());
    let trace = run(Path::new(&config, Seed(1)), &burst(8, PortId::CLIENT));
    let dropped: Vec<_> =
        trace.of_kind(EventKind::Dropped).iter().map(|event| (event.pdu, event.at, event.cause)).collect();
    assert_eq!(dropped, [(6, ms(58)), (7, ms(66)), (8, ms(74))].map(|(id, at)| (id, at, Cause::QueuePackets)));
}

/// Of 1000-byte packets a window of 999 bytes lets one pass at a time: packet 2 is taken at 18 ms, when packet 1 leaves
/// the second hop's queue, and packet 3 at 98 ms.
#[test]
fn a_packet_longer_than_the_window_passes_alone() {
    let config = chain(bytes(999));
    let trace = check_laws(|| Path::new(&config, Seed(1)), &burst(4, PortId::CLIENT), 1);
    let started = trace.of_kind(EventKind::FrameStarted).into_iter().filter(|event| event.hop == 0);
    assert_eq!(millis(started.map(|event| event.at.nanos())), [0, 18, 98, 178]);
}

/// The other direction's traffic is not concerned, and a packet of the other direction does not count.
#[test]
fn directions_have_windows_of_their_own() {
    let mut config = chain(packets(1));
    config.hops[1].downlink.flow_control = FlowControlConfig::default();
    let mut both = burst(4, PortId::CLIENT);
    both.extend(burst(4, PortId::SERVER));
    let [one, two] = [burst(4, PortId::CLIENT), both].map(|script| run(Path::new(&config, Seed(1)), &script));
    assert_eq!(one.times(PortId::SERVER), two.times(PortId::SERVER));
    assert_eq!(two.pauses, []);
}

/// A state of 100 ms widens a window of one packet to three: the packets that may go do so as it begins.
#[test]
fn a_state_widens_the_window_at_once() {
    let mut config = chain(packets(1));
    let hops = chain(packets(3)).hops;
    let stay = Stay { duration: Some(read("100 ms")), next: Vec::new() };
    config.states = vec![StateConfig { name: "wide".into(), at: Some(ms(50)), hops, stay }];
    let trace = check_laws(|| Path::new(&config, Seed(1)), &burst(7, PortId::CLIENT), 1);
    let started = trace.of_kind(EventKind::FrameStarted).into_iter().filter(|event| event.hop == 0);
    // Packet 2 waits in the second hop's queue from 36 ms on. At 50 ms packets 3 and 4 may join it: one is in the send
    // buffer until 58 ms. At 98 ms packet 2 leaves the queue and packet 5 goes. At 150 ms the window is one packet
    // again, and three are there: nothing goes until the last of them, packet 5, leaves the queue at 338 ms.
    assert_eq!(millis(started.map(|event| event.at.nanos())), [0, 18, 50, 58, 98, 338, 418]);
    assert_eq!(trace.held, 0);
}

/// A machine driven by hand.
struct Driven {
    path: Path,
    outputs: Outputs,
    next: u64,
}

impl Driven {
    fn new(config: &PathConfig) -> Driven {
        Driven { path: Path::new(config, Seed(1)), outputs: Outputs::default(), next: 1 }
    }
    fn offer(&mut self, at: Time, port: PortId) -> Vec<(PortId, bool)> {
        let pdu = Pdu { id: self.next, len: 1000, ..Pdu::default() };
        self.next += 1;
        self.path.offer(at, port, Item::Pdu(pdu), &mut Cx::new(&mut self.outputs));
        std::mem::take(&mut self.outputs.flow_control)
    }
    fn advance(&mut self, to: Time) -> Vec<(PortId, bool)> {
        self.path.advance(to, &mut Cx::new(&mut self.outputs));
        std::mem::take(&mut self.outputs.flow_control)
    }
}

/// The first packet goes into the send buffer; the next two fill the window, and the port is paused until the second
/// packet leaves the queue at 8 ms. The machine asks for being called then, although nothing leaves before 23 ms.
#[test]
fn a_window_at_the_first_hop_pauses_the_port() {
    let mut config = chain(FlowControlConfig::default());
    config.hops[0].uplink.flow_control = packets(2);
    let mut driven = Driven::new(&config);
    assert!(driven.path.controls_flow(PortId::CLIENT) && !driven.path.controls_flow(PortId::SERVER));
    assert_eq!(driven.offer(Time::ZERO, PortId::CLIENT), []);
    assert_eq!(driven.offer(Time::ZERO, PortId::CLIENT), []);
    assert_eq!(driven.offer(Time::ZERO, PortId::CLIENT), [(PortId::CLIENT, true)]);
    assert_eq!(driven.path.next_emission(), Some(ms(8)));
    assert_eq!(driven.advance(ms(7)), []);
    assert_eq!(driven.advance(ms(8)), [(PortId::CLIENT, false)]);
    assert_eq!(driven.offer(ms(8), PortId::CLIENT), [(PortId::CLIENT, true)]);
    assert_eq!(driven.offer(ms(8), PortId::SERVER), []);
    // A setting without flow control releases the port.
    let command = airpath_core::Command::Configure(std::sync::Arc::new(chain(FlowControlConfig::default()).hops));
    driven.path.control(ms(9), &command, &mut Cx::new(&mut driven.outputs)).unwrap();
    assert_eq!(driven.outputs.flow_control, [(PortId::CLIENT, false)]);
    assert!(!driven.path.controls_flow(PortId::CLIENT));
}

/// A window at any boundary in either direction of half of the hops of each list.
fn add_windows(hops: &mut [HopConfig], dice: &mut Dice) {
    let examples = FlowControlConfig::examples();
    for link in hops.iter_mut().flat_map(|hop| [&mut hop.uplink, &mut hop.downlink]) {
        link.flow_control = examples[dice.below(examples.len() as u64) as usize].clone();
    }
}

fn for_each_hops(config: &mut PathConfig, script: &mut Script, mut change: impl FnMut(&mut [HopConfig])) {
    change(&mut config.hops);
    config.states.iter_mut().for_each(|state| change(&mut state.hops));
    for (_, action) in script {
        match action {
            Action::Configure(hops) => change(hops),
            Action::Set(setting) => {
                let now = setting.in_force.iter_mut().flatten();
                let all = now.chain(&mut setting.states).chain([&mut setting.beginning]);
                all.chain(setting.since.as_mut().map(|(_, hops)| hops)).for_each(|hops| change(hops));
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn chains_with_windows_keep_the_laws((config, script) in any_path_of(2..=5), seed in any::<u64>()) {
        let (mut config, mut script, mut dice) = (config, script, Dice::new(seed));
        for_each_hops(&mut config, &mut script, |hops| add_windows(hops, &mut dice));
        let trace = check_laws(|| Path::new(&config, Seed(seed)), &script, seed);
        // Whatever a window stopped has gone on, and whoever was paused was released.
        prop_assert_eq!(trace.held, 0);
        for port in [PortId::CLIENT, PortId::SERVER] {
            let of_port: Vec<bool> = trace.pauses.iter().filter(|(of, _)| *of == port).map(|(_, pause)| *pause).collect();
            prop_assert!(of_port.iter().enumerate().all(|(index, pause)| *pause == (index % 2 == 0)), "{:?}", of_port);
            prop_assert!(of_port.len().is_multiple_of(2), "{:?} stays paused", port);
        }
    }

    #[test]
    fn windows_that_are_never_full_change_nothing((config, script) in any_path_of(2..=4), seed in any::<u64>()) {
        let without = run(Path::new(&config, Seed(seed)), &script);
        let (mut config, mut script) = (config, script);
        for_each_hops(&mut config, &mut script, |hops| {
            for link in hops.iter_mut().flat_map(|hop| [&mut hop.uplink, &mut hop.downlink]) {
                link.flow_control = packets(1_000_000);
            }
        });
        without.assert_same(&run(Path::new(&config, Seed(seed)), &script), "with windows");
    }

    /// The packets on their way into a hop, counted from the events alone, never outgrow its window; and a queue with as
    /// much room as the window overflows for background loads alone, or for copies.
    #[test]
    fn windows_hold_by_the_events((config, script) in any_path_of(2..=5), seed in any::<u64>()) {
        let mut config = PathConfig { states: Vec::new(), initial: Stay::default(), ..config };
        let script: Script = script.into_iter().filter(|(_, action)| matches!(action, Action::Offer { .. })).collect();
        let mut dice = Dice::new(seed);
        let mut windows = Vec::new();
        for hop in &mut config.hops {
            windows.push(Direction::ALL.map(|_| 1 + dice.below(5)));
            for (link, window) in [&mut hop.uplink, &mut hop.downlink].into_iter().zip(windows.last().unwrap()) {
                link.flow_control = packets(*window as u32);
                link.queue = queue_of(&format!("{window} packets"));
            }
        }
        let has_loads = !config.background.is_empty();
        let trace = run(Path::new(&config, Seed(seed)), &script);
        for direction in Direction::ALL {
            for (into, window) in windows.iter().enumerate() {
                let before = if direction == Direction::Uplink { into.wrapping_sub(1) } else { into + 1 };
                if before >= config.hops.len() {
                    continue;
                }
                let (window, mut on_the_way) = (window[direction as usize] as i64, 0);
                let copies = config.hops[before].link(direction).duplicate.is_some();
                for event in trace.events.iter().filter(|event| event.direction == direction) {
                    let (hop, queue) = (usize::from(event.hop), event.stage == Stage::Queue);
                    match event.kind {
                        EventKind::Dequeued if hop == before => {
                            on_the_way += 1;
                            prop_assert!(on_the_way <= window || on_the_way == 1, "{} of {}", on_the_way, window);
                        }
                        EventKind::Duplicated if hop == before => on_the_way += 1,
                        EventKind::Generated if hop == into => on_the_way += 1,
                        EventKind::Consumed if hop == before => on_the_way -= 1,
                        EventKind::Dropped if hop == before && !queue => on_the_way -= 1,
                        EventKind::Dropped if hop == into && queue => {
                            on_the_way -= 1;
                            prop_assert!(has_loads || copies, "{:?}", event);
                        }
                        EventKind::Dequeued if hop == into => on_the_way -= 1,
                        _ => {}
                    }
                }
                prop_assert_eq!(on_the_way, 0);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Hops of users on a shared medium, with bearers among them, and windows before and behind these.
    #[test]
    fn cells_with_windows_keep_the_laws((config, script) in prop_oneof![any_cell(1), any_cell(3)], seed in any::<u64>()) {
        let (mut config, mut dice) = (config, Dice::new(seed));
        for path in config.users.iter_mut().map(|user| &mut user.path) {
            let states = path.states.iter_mut().map(|state| &mut state.hops);
            for hops in states.chain([&mut path.hops]) {
                add_windows(hops, &mut dice);
                for (place, direction) in PathConfig::windows_behind_bearers(hops) {
                    let hop = &mut hops[place];
                    let link = if direction == Direction::Uplink { &mut hop.uplink } else { &mut hop.downlink };
                    link.flow_control = FlowControlConfig::default();
                }
            }
        }
        check_laws_to(|| Cell::new(&config, Seed(seed)), &script, 1, ms(2_000));
    }
}

/// Each entity with frames of its own, between two hops of a cell of one user and of a path: the window behind it stops
/// its queue, its own window the hops before, and the laws hold.
#[test]
fn entities_with_frames_of_their_own_keep_the_laws_between_windows() {
    let wire = LinkConfig {
        rate: read("2 Mbit/s"),
        propagation: read("3 ms"),
        queue: queue_of("20 packets"),
        flow_control: packets(2),
        ..LinkConfig::default()
    };
    let slow = LinkConfig { rate: read("8 kbit/s"), flow_control: packets(3), ..wire.clone() };
    let mut dice = Dice::new(5);
    let (mut delivered, mut pauses) = (0, 0);
    for (number, link) in LinkConfig::own_frames_examples().into_iter().enumerate() {
        let link = LinkConfig { flow_control: [packets(1), packets(4), bytes(400)][number % 3].clone(), ..link };
        let radio = crate::entities::hop(&link);
        let hops = vec![
            HopConfig::new("lan", wire.clone(), wire.clone()),
            radio,
            HopConfig::new("core", slow.clone(), slow.clone()),
        ];
        let config = PathConfig { hops, ..PathConfig::default() };
        let mut script: Script = (0..40)
            .map(|_| {
                let port = if dice.below(2) == 0 { PortId::CLIENT } else { PortId::SERVER };
                offer(ms(dice.below(20) * 5), port, [16, 40, 125][dice.below(3) as usize])
            })
            .collect();
        script.sort_by_key(|(at, _)| *at);
        let seed = number as u64;
        let trace = check_laws_to(|| Path::new(&config, Seed(seed)), &script, seed, ms(1_500));
        delivered += trace.departures.len();
        pauses += trace.pauses.len();
    }
    assert!(delivered > 1_000 && pauses > 100, "{delivered} delivered, {pauses} pauses and releases");
}

/// A user of a cell whose radio hop, in the middle of three, is on a shared medium: what waits there stops the hops
/// before, and those of other users go on.
#[test]
fn a_shared_medium_stops_the_hops_before_it() {
    let medium = SharedMediumConfig::examples().into_iter().find(|medium| {
        matches!(medium, SharedMediumConfig::Continuous(_)) && Direction::ALL.iter().all(|way| medium.carries(*way))
    });
    let medium = medium.expect("a continuous medium carries both directions");
    let wire = LinkConfig { rate: read("10 Mbit/s"), propagation: read("2 ms"), ..LinkConfig::default() };
    let radio = LinkConfig {
        medium: MediumChoice::Shared("air".into()),
        queue: queue_of("3 packets"),
        flow_control: packets(3),
        ..LinkConfig::default()
    };
    let hops = [("lan", &wire), ("radio", &radio), ("core", &wire)];
    let hops = hops.map(|(name, link)| HopConfig::new(name, link.clone(), link.clone())).to_vec();
    let user = |name: &str| {
        let path = PathConfig { hops: hops.clone(), ..PathConfig::default() };
        UserConfig { name: name.into(), is_unnamed: false, path }
    };
    let config = CellConfig {
        media: vec![MediumOfCell { name: "air".into(), config: medium }],
        users: vec![user("alice"), user("bob")],
    };
    let script: Script = (0..20).map(|index| offer(Time::ZERO, PortId(index % 4), 1000)).collect();
    let end = ms(60_000);
    let trace = check_laws_to(|| Cell::new(&config, Seed(1)), &script, 1, end);
    assert_eq!((trace.departures.len(), trace.held), (20, 0));
    assert_eq!(trace.counters.total(Direction::Uplink, EventKind::Dropped), 0);
    // Without flow control some are dropped.
    let mut without = config.clone();
    for link in without
        .users
        .iter_mut()
        .flat_map(|user| &mut user.path.hops)
        .flat_map(|hop| [&mut hop.uplink, &mut hop.downlink])
    {
        link.flow_control = FlowControlConfig::default();
    }
    let trace = run_to(Cell::new(&without, Seed(1)), &script, end);
    assert!(
        trace.of_kind(EventKind::Dropped).len() > 2 && trace.events.iter().all(|event| event.origin == Origin::User)
    );
    let mut quiet = Runner::new(Cell::new(&config, Seed(1)), LogLevel::Counters);
    quiet.advance(ms(1));
    assert!(!quiet.machine.controls_flow(PortId(0)) && !quiet.machine.controls_flow(PortId(9)));
}

/// The two hops of a path as machines of their own, as on two hosts, with `delay` of the network between them.
struct Apart {
    machines: [Path; 2],
    outputs: [Outputs; 2],
    /// Items on their way: when, to which machine, through which port.
    on_the_way: Vec<(Time, usize, PortId, Item)>,
    delay: Span,
}

impl Apart {
    fn new(config: &PathConfig, delay: Span) -> Apart {
        let of_hop = |hop: usize| PathConfig { hops: vec![config.hops[hop].clone()], ..PathConfig::default() };
        let outputs = || Outputs { level: LogLevel::Events, ..Outputs::default() };
        let machines = [0, 1].map(|hop| Path::new(&of_hop(hop), Seed(1)));
        let mut apart = Apart { machines, outputs: [outputs(), outputs()], on_the_way: Vec::new(), delay };
        let first = |hop: usize, direction| config.hops[hop].link(direction).flow_control.first_credit();
        let [behind, before] = [first(1, Direction::Uplink), first(0, Direction::Downlink)];
        for (machine, port, credit) in [(0, PortId::SERVER, behind), (1, PortId::CLIENT, before)] {
            apart.offer(Time::ZERO, machine, port, Item::Signal(Signal::Credit(credit)));
        }
        apart
    }

    fn offer(&mut self, at: Time, machine: usize, port: PortId, item: Item) {
        self.machines[machine].offer(at, port, item, &mut Cx::new(&mut self.outputs[machine]));
    }

    /// Runs to the end; the times at which packets leave the path, and the events of both hops.
    fn run(mut self) -> (Vec<u64>, [Vec<Event>; 2]) {
        let mut left = Vec::new();
        loop {
            for machine in 0..2 {
                for emission in std::mem::take(&mut self.outputs[machine].emissions) {
                    match (machine, emission.port, emission.item) {
                        (0, PortId::SERVER, item) => {
                            self.on_the_way.push((emission.at + self.delay, 1, PortId::CLIENT, item));
                        }
                        (1, PortId::CLIENT, item) => {
                            self.on_the_way.push((emission.at + self.delay, 0, PortId::SERVER, item));
                        }
                        (_, _, Item::Pdu(_)) => left.push(emission.at.nanos()),
                        (_, _, Item::Signal(signal)) => panic!("an endpoint gets {signal:?}"),
                    }
                }
            }
            let dues = [0, 1].map(|machine| self.machines[machine].next_deadline().unwrap_or(Time::NEVER));
            let came = self.on_the_way.iter().map(|(at, ..)| *at).min().unwrap_or(Time::NEVER);
            let next = came.min(dues[0]).min(dues[1]);
            if next == Time::NEVER {
                break;
            }
            // What is due in a machine comes before what comes to it.
            for (machine, due) in dues.into_iter().enumerate() {
                if due == next {
                    self.machines[machine].advance(next, &mut Cx::new(&mut self.outputs[machine]));
                }
            }
            if dues[0].min(dues[1]) > next {
                let place = self.on_the_way.iter().position(|(at, ..)| *at == next).unwrap();
                let (at, machine, port, item) = self.on_the_way.remove(place);
                self.offer(at, machine, port, item);
            }
        }
        assert_eq!(self.machines.iter().map(Machine::held).sum::<u64>(), 0);
        (left, self.outputs.map(|outputs| outputs.events))
    }
}

/// Without a network between them the machines do what one path does, to the nanosecond.
#[test]
fn a_window_between_machines_is_that_between_hops() {
    for window in [packets(4), packets(1), bytes(4_999), bytes(999)] {
        let mut config = chain(window);
        for port in [PortId::CLIENT, PortId::SERVER] {
            if port == PortId::SERVER {
                // The slow hop comes second in this direction too.
                config.hops.reverse();
            }
            let whole = run(Path::new(&config, Seed(1)), &burst(8, port));
            let mut apart = Apart::new(&config, Span::ZERO);
            let machine = if port == PortId::CLIENT { 0 } else { 1 };
            for id in 1..=8 {
                let pdu = Pdu { id, len: 1000, ..Pdu::default() };
                apart.offer(Time::ZERO, machine, port, Item::Pdu(pdu));
            }
            let (left, _) = apart.run();
            let end = if port == PortId::CLIENT { PortId::SERVER } else { PortId::CLIENT };
            assert_eq!(left, whole.times(end), "{port:?}");
            assert_eq!(left.len(), 8);
        }
    }
}

/// With 7 ms between them a packet counts in the window for 14 ms more, and nothing overflows.
#[test]
fn a_network_between_machines_takes_its_time_and_loses_nothing() {
    let config = chain(packets(4));
    let mut apart = Apart::new(&config, Span::from_millis(7));
    for id in 1..=40 {
        apart.offer(Time::ZERO, 0, PortId::CLIENT, Item::Pdu(Pdu { id, len: 1000, ..Pdu::default() }));
    }
    let (left, [near, far]) = apart.run();
    assert_eq!(left.len(), 40);
    let started = near.iter().filter(|event| event.kind == EventKind::FrameStarted);
    // Packet 1 comes to the second hop at 25 ms and leaves its queue at once, which the first hop knows at 32 ms, as
    // packet 4 is sent; packet 2 leaves it at 105 ms.
    assert_eq!(millis(started.take(7).map(|event| event.at.nanos())), [0, 8, 16, 24, 32, 112, 192]);
    assert!(near.iter().chain(&far).all(|event| event.kind != EventKind::Dropped));
    assert!(far.iter().all(|event| event.queue_packets <= 4));
}

/// Packets that the queue drops make room too, and a credit makes up for those before it.
#[test]
fn credits_count_what_the_queue_drops() {
    let mut config = chain(packets(4));
    let second = &mut config.hops[1];
    for link in [&mut second.uplink, &mut second.downlink] {
        link.queue = queue_of("1 packet");
    }
    let mut apart = Apart::new(&config, Span::from_millis(7));
    for id in 1..=20 {
        apart.offer(Time::ZERO, 0, PortId::CLIENT, Item::Pdu(Pdu { id, len: 1000, ..Pdu::default() }));
    }
    let (left, [_, far]) = apart.run();
    let dropped = far.iter().filter(|event| event.kind == EventKind::Dropped).count();
    assert!(dropped > 0);
    assert_eq!(left.len() + dropped, 20);
}

/// A credit that tells of another window is heeded at once.
#[test]
fn a_credit_may_change_the_window() {
    let config = chain(packets(1));
    let mut apart = Apart::new(&config, Span::ZERO);
    for id in 1..=8 {
        apart.offer(Time::ZERO, 0, PortId::CLIENT, Item::Pdu(Pdu { id, len: 1000, ..Pdu::default() }));
    }
    let started =
        |apart: &Apart| apart.outputs[0].events.iter().filter(|event| event.kind == EventKind::FrameStarted).count();
    apart.machines[0].advance(ms(100), &mut Cx::new(&mut apart.outputs[0]));
    assert_eq!(started(&apart), 1);
    apart.offer(ms(100), 0, PortId::SERVER, Item::Signal(Signal::Credit(Credit::UNLIMITED)));
    apart.machines[0].advance(ms(300), &mut Cx::new(&mut apart.outputs[0]));
    assert_eq!(started(&apart), 8);
}
