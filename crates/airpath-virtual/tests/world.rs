// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Worlds by hand: order, identity, connections, commands, pauses, and how runs end.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use airpath_core::{
    Command, CommandError, Cx, Direction, EventKind, Item, Machine, Origin, Pdu, PortId, Seed, Span, Time,
};
use airpath_models::flow_control::{FlowControlConfig, WindowConfig};
use airpath_models::load::cbr::CbrConfig;
use airpath_models::load::{BackgroundConfig, LoadConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::{LinkConfig, Path, PathConfig};
use airpath_virtual::{Ended, Ending, Endpoint, FinishedMachine, MachineId, Progress, Sent, Until, World, WorldError};

use crate::common::*;

const ONE: NonZeroUsize = NonZeroUsize::MIN;
const DONE: Until = Until::Done { latest: Time::NEVER };
const CLIENT: PortId = PortId::CLIENT;
const SERVER: PortId = PortId::SERVER;

fn run(mut world: World<Watch>, until: Until) -> Vec<FinishedMachine<Watch>> {
    world.run(until, ONE).unwrap();
    world.finish()
}

#[test]
fn questions_and_answers_take_the_round_trips_that_they_take() {
    let mut world = world();
    let machine = world.machine(link(&slow()), Watch::default());
    world.attach(3, machine, CLIENT, ms(5), Box::new(Asker { len: 100, questions: 2 }));
    world.attach(3, machine, SERVER, Time::ZERO, Box::new(Echo { len: 50 }));
    let machines = run(world, DONE);
    // 110 ms there, 60 ms back.
    assert_eq!(departures(&machines), [[(115, 1, 1), (175, 0, 2), (285, 1, 3), (345, 0, 4)]]);
    let [asker, echo] = &machines[0].endpoints[..] else { panic!("two endpoints were attached") };
    assert_eq!((asker.flow, asker.port, asker.progress.clone()), (3, CLIENT, Progress::Done));
    assert_eq!((asker.inactive_since, echo.inactive_since), (Some(ms(345)), Some(Time::ZERO)));
    let ending = Ending { at: ms(345), why: Ended::Done };
    assert_eq!((machines[0].ending, machines[0].held), (Some(ending), 0));
    assert_eq!(machines[0].observer.ending, Some((ending, 0)));
    // Identities count up in order of arrival; the flow is the endpoint's.
    let offered: Vec<_> =
        machines[0].observer.offered.iter().map(|seen| (seen.at, seen.port, seen.id, seen.flow)).collect();
    assert_eq!(
        offered,
        [(ms(5), CLIENT, 1, 3), (ms(115), SERVER, 2, 3), (ms(175), CLIENT, 3, 3), (ms(285), SERVER, 4, 3)]
    );
}

/// Sends at given times and notes every call.
struct Noting {
    name: &'static str,
    notes: Arc<Mutex<Vec<String>>>,
    timers: Vec<Time>,
}

impl Noting {
    fn note(&self, at: Time, what: &str) {
        self.notes.lock().unwrap().push(format!("{} {} {what}", at.nanos() / 1_000_000, self.name));
    }
}

impl Endpoint for Noting {
    fn start(&mut self, at: Time, _: &mut Sent) {
        self.note(at, "start");
    }
    fn receive(&mut self, at: Time, pdu: Pdu, out: &mut Sent) {
        self.note(at, &format!("receive {}", pdu.id));
        out.push(packet(200));
    }
    fn advance(&mut self, at: Time, out: &mut Sent) {
        self.note(at, "timer");
        self.timers.retain(|timer| *timer > at);
        out.push(packet(100));
        out.push(packet(101));
    }
    fn next_deadline(&self) -> Option<Time> {
        self.timers.iter().min().copied()
    }
    fn progress(&self) -> Progress {
        Progress::Active
    }
}

#[test]
fn at_one_instant_arrivals_come_before_timers_and_timers_before_offers() {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noting = |name, timers: &[u64]| {
        Box::new(Noting { name, notes: Arc::clone(&notes), timers: timers.iter().map(|at| ms(*at)).collect() })
    };
    let mut world = world();
    let machine = world.machine(link(&slow()), Watch::default());
    // Packet 1 leaves at 110 ms, when both flows have timers at the server.
    world.attach(9, machine, CLIENT, Time::ZERO, Source::new(Span::ZERO, 100, 1));
    world.attach(2, machine, SERVER, ms(110), noting("late", &[110]));
    world.attach(9, machine, SERVER, Time::ZERO, noting("early", &[110]));
    let machines = run(world, Until::At(ms(150)));
    assert_eq!(
        *notes.lock().unwrap(),
        ["0 early start", "110 early receive 1", "110 late start", "110 late timer", "110 early timer"]
    );
    let offered: Vec<_> = machines[0].observer.offered.iter().map(|seen| (seen.id, seen.flow, seen.len)).collect();
    assert_eq!(offered, [(1, 9, 100), (2, 9, 200), (3, 2, 100), (4, 2, 101), (5, 9, 100), (6, 9, 101)]);
    assert_eq!(machines[0].held, 5);
    assert_eq!(machines[0].ending, Some(Ending { at: ms(150), why: Ended::Time }));
}

/// A chain of two machines delivers when a path of two hops would; each machine has identities of
/// its own.
#[test]
fn a_chain_of_machines_is_a_path_of_hops() {
    let links = [slow(), LinkConfig { rate: read("4 kbit/s"), ..slow() }];
    let source = || Source::new(Span::from_millis(150), 77, 5);
    let mut chain = world();
    let first = chain.machine(path(vec![hop("a", &links[0])]), Watch::default());
    let second = chain.machine(path(vec![hop("b", &links[1])]), Watch::default());
    chain.connect((first, SERVER), (second, CLIENT));
    chain.attach(1, first, CLIENT, Time::ZERO, source());
    chain.attach(1, second, SERVER, ms(40), source());
    let chain = run(chain, DONE);

    let mut whole = world();
    let machine = whole.machine(path(vec![hop("a", &links[0]), hop("b", &links[1])]), Watch::default());
    whole.attach(1, machine, CLIENT, Time::ZERO, source());
    whole.attach(1, machine, SERVER, ms(40), source());
    let whole = run(whole, DONE);

    let times = |machine: &FinishedMachine<Watch>, port| -> Vec<Time> {
        machine.observer.emitted.iter().filter(|seen| seen.port == port).map(|seen| seen.at).collect()
    };
    assert_eq!(times(&whole[0], SERVER).len(), 5);
    assert_eq!(times(&chain[1], SERVER), times(&whole[0], SERVER));
    assert_eq!(times(&chain[0], CLIENT), times(&whole[0], CLIENT));
    // 77 bytes at 8 kbit/s and 10 ms, then at 4 kbit/s and 10 ms.
    assert_eq!(times(&whole[0], SERVER)[0], ms(77 + 10 + 154 + 10));
    for machine in &chain {
        let ids: Vec<u64> = machine.observer.offered.iter().map(|seen| seen.id).collect();
        assert_eq!(ids, (1..=10).collect::<Vec<_>>());
        assert_eq!(machine.ending, whole[0].ending);
    }
}

#[test]
fn an_endpoint_sends_nothing_before_its_start_and_gets_nothing_of_other_flows() {
    let mut world = world();
    let machine = world.machine(link(&LinkConfig::default()), Watch::default());
    world.attach(1, machine, CLIENT, ms(1), Source::new(Span::from_millis(1), 10, 3));
    world.attach(2, machine, CLIENT, ms(1), Source::new(Span::from_millis(1), 20, 1));
    world.attach(1, machine, SERVER, ms(2), Box::new(Echo { len: 7 }));
    let machines = run(world, DONE);
    // At 1 ms the server of flow 1 is not there yet, and flow 2 has none: both packets are lost.
    assert_eq!(machines[0].unclaimed, 2);
    let answers: Vec<_> = machines[0].observer.offered.iter().filter(|seen| seen.port == SERVER).collect();
    assert_eq!(answers.iter().map(|seen| (seen.at, seen.len)).collect::<Vec<_>>(), [(ms(2), 7), (ms(3), 7)]);
}

#[test]
fn commands_come_before_the_offers_of_their_instant_in_the_order_given() {
    let faster = |rate: &str| {
        let link = LinkConfig { rate: read(rate), ..slow() };
        Command::Configure(Arc::new(vec![hop("radio", &link)]))
    };
    let mut world = world();
    let machine = world.machine(link(&slow()), Watch::default());
    world.attach(1, machine, CLIENT, Time::ZERO, Source::new(Span::from_millis(1_000), 100, 2));
    world.attach(1, machine, SERVER, Time::ZERO, sink());
    world.command(machine, ms(1_000), faster("1 kbit/s"));
    world.command(machine, ms(1_000), faster("80 kbit/s"));
    world.command(machine, ms(500), faster("2 kbit/s"));
    let machines = run(world, DONE);
    assert_eq!(departures(&machines), [[(110, 1, 1), (1_020, 1, 2)]]);
    assert_eq!(machines[0].observer.commands, [ms(500), ms(1_000), ms(1_000)]);
}

#[test]
fn a_refused_command_ends_its_own_group_only() {
    let mut world = world();
    let machines: Vec<MachineId> = (0..3).map(|_| world.machine(link(&slow()), Watch::default())).collect();
    for machine in &machines {
        world.attach(1, *machine, CLIENT, Time::ZERO, Source::new(Span::ZERO, 100, 1));
    }
    world.command(machines[1], ms(20), Command::EnterState("tunnel".into()));
    let error = world.run(DONE, NonZeroUsize::new(2).unwrap()).unwrap_err();
    assert!(matches!(&error, WorldError::Command { machine, at, .. } if *machine == machines[1] && *at == ms(20)));
    assert!(error.to_string().contains("there is no state `tunnel`"), "{error}");
    let ended: Vec<_> = world.finish().iter().map(|machine| machine.ending.map(|ending| ending.at)).collect();
    assert_eq!(ended, [Some(ms(110)), None, Some(ms(110))]);
}

#[test]
fn packets_to_and_fro_without_delay_are_no_run() {
    let mut world = world();
    let machine = world.machine(link(&LinkConfig::default()), Watch::default());
    world.attach(1, machine, CLIENT, ms(3), Box::new(Asker { len: 1, questions: u32::MAX }));
    world.attach(1, machine, SERVER, Time::ZERO, Box::new(Echo { len: 1 }));
    let error = world.run(DONE, ONE).unwrap_err();
    assert_eq!(error, WorldError::Standstill { machine, at: ms(3) });
}

#[test]
fn a_run_ends_when_the_work_is_done_or_never_will_be() {
    let world_of = |questions| {
        let mut world = world();
        let machine = world.machine(link(&slow()), Watch::default());
        world.attach(1, machine, CLIENT, Time::ZERO, Box::new(Asker { len: 100, questions }));
        (world, machine)
    };
    let ending = |at, why| Some(Ending { at: ms(at), why });
    // Nobody answers.
    let (world, _) = world_of(1);
    assert_eq!(run(world, DONE)[0].ending, ending(110, Ended::Stalled));
    let (world, _) = world_of(1);
    assert_eq!(run(world, Until::Done { latest: ms(60) })[0].ending, ending(60, Ended::Time));
    // What is inside when the last endpoint is done still comes out.
    let (mut world, machine) = world_of(1);
    world.attach(1, machine, SERVER, Time::ZERO, Box::new(Echo { len: 10 }));
    world.attach(2, machine, CLIENT, Time::ZERO, Source::new(Span::ZERO, 100, 3));
    let machines = run(world, DONE);
    assert_eq!((machines[0].ending, machines[0].held), (ending(410, Ended::Done), 0));
    // Without anything to do a run is over at once, and time passes all the same.
    let mut idle = crate::common::world();
    idle.machine(link(&slow()), Watch::default());
    idle.run(DONE, ONE).unwrap();
    idle.run(Until::At(ms(7)), ONE).unwrap();
    idle.run(Until::At(ms(5)), ONE).unwrap();
    assert_eq!(idle.finish()[0].ending, ending(7, Ended::Time));
}

/// A background load that never stops keeps no run going, and nobody waits for it.
#[test]
fn a_load_without_end_does_not_keep_a_run_from_ending() {
    let cbr = CbrConfig { rate: read("800 bit/s"), packet_size: read("10 bytes") };
    let world_of = |questions| {
        let load = BackgroundConfig::new("others", "radio", Direction::Uplink, LoadConfig::Cbr(cbr.clone()));
        let hops = vec![hop("radio", &slow())];
        let path = PathConfig { hops, background: vec![load], ..PathConfig::default() };
        let mut world = crate::common::world();
        let machine = world.machine(Box::new(Path::new(&path, Seed(1))), Watch::default());
        world.attach(1, machine, CLIENT, ms(5), Box::new(Asker { len: 100, questions }));
        (world, machine)
    };
    let ending = |at, why| Some(Ending { at: ms(at), why });
    // A virtual packet of 10 ms came at 0, and the next one waits for the packet that came at 5.
    let (world, _) = world_of(1);
    let machines = run(world, DONE);
    assert_eq!(departures(&machines), [[(120, 1, 1)]]);
    assert_eq!((machines[0].ending, machines[0].held), (ending(120, Ended::Stalled), 0));
    let (mut world, machine) = world_of(1);
    world.attach(1, machine, SERVER, Time::ZERO, Box::new(Echo { len: 10 }));
    assert_eq!(run(world, DONE)[0].ending, ending(140, Ended::Done));
    let (world, _) = world_of(1);
    let machines = run(world, Until::At(ms(1_000)));
    assert_eq!(machines[0].ending, ending(1_000, Ended::Time));
    let others = machines[0].counters.site(0, Direction::Uplink, Origin::Background);
    assert_eq!(others.kind(EventKind::Generated).count, 11);
}

/// Passes packets at once, but stops its client's port after two until it is told to go on.
#[derive(Default)]
struct Gate {
    taken: u32,
}

impl Machine for Gate {
    fn offer(&mut self, at: Time, port: PortId, item: Item, cx: &mut Cx<'_>) {
        self.taken += 1;
        assert!(self.taken <= 2 || port != CLIENT, "a packet in spite of the pause");
        if self.taken == 2 {
            cx.pause(CLIENT);
        }
        cx.emit(at, SERVER, item);
    }
    fn control(&mut self, _: Time, _: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        self.taken = 0;
        cx.resume(CLIENT);
        Ok(())
    }
    fn advance(&mut self, _: Time, _: &mut Cx<'_>) {}
    fn next_deadline(&self) -> Option<Time> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
}

#[test]
fn a_paused_port_keeps_its_packets_in_order() {
    let mut world = world();
    let machine = world.machine(Box::new(Gate::default()), Watch::default());
    world.attach(1, machine, CLIENT, Time::ZERO, Source::new(Span::from_millis(1), 10, 6));
    world.attach(1, machine, SERVER, Time::ZERO, sink());
    for at in [4, 8] {
        world.command(machine, ms(at), Command::EnterState("open".into()));
    }
    let machines = run(world, Until::At(ms(20)));
    // At 4 ms packets 3 and 4 have waited; 5, of that very instant, has to wait behind them.
    assert_eq!(departures(&machines), [[(0, 1, 1), (1, 1, 2), (4, 1, 3), (4, 1, 4), (8, 1, 5), (8, 1, 6)]]);
    assert_eq!(machines[0].unclaimed, 0);
}

#[test]
#[should_panic(expected = "has an endpoint of flow 1")]
fn a_flow_has_one_endpoint_at_a_port() {
    let mut world = world();
    let machine = world.machine(link(&slow()), Watch::default());
    world.attach(1, machine, CLIENT, Time::ZERO, sink());
    world.attach(1, machine, CLIENT, Time::ZERO, sink());
}

#[test]
#[should_panic(expected = "something stands at")]
fn a_port_has_one_connection() {
    let mut world = world();
    let machines: Vec<MachineId> = (0..3).map(|_| world.machine(link(&slow()), Watch::default())).collect();
    world.connect((machines[0], SERVER), (machines[1], CLIENT));
    world.connect((machines[0], SERVER), (machines[2], CLIENT));
}

/// A queue of two packets, and a window of two before it: of six packets at once the first is on the air, two wait in
/// the queue, and three wait outside until there is room. The last one enters when the fourth leaves the queue.
#[test]
fn a_path_with_a_window_stops_its_endpoint() {
    let window = WindowConfig { packets: Some(2), bytes: None };
    let queue = QueueConfig::TailDrop(TailDropConfig { limit: read("2 packets") });
    let with = LinkConfig { queue: queue.clone(), flow_control: FlowControlConfig::Window(window), ..slow() };
    let machines_of = |link_config: &LinkConfig| {
        let mut world = world();
        let machine = world.machine(link(link_config), Watch::default());
        world.attach(1, machine, CLIENT, Time::ZERO, Source::new(Span::ZERO, 100, 6));
        world.attach(1, machine, SERVER, Time::ZERO, sink());
        run(world, DONE)
    };
    let machines = machines_of(&with);
    let expected: Vec<_> = (1..=6).map(|id| (id * 100 + 10, 1, id)).collect();
    assert_eq!(departures(&machines), [expected]);
    let offered: Vec<_> = machines[0].observer.offered.iter().map(|seen| seen.at).collect();
    assert_eq!(offered, [0, 0, 0, 100, 200, 300].map(ms));
    // Without the window three are dropped.
    assert_eq!(
        machines_of(&LinkConfig { queue, ..slow() })[0].counters.total(Direction::Uplink, EventKind::Dropped),
        3
    );
}
