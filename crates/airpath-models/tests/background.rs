// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Background load: schedules computed by hand, what it does to packets of users, and laws of queueing.

use airpath_core::{Bits, Cause, Direction, DrawKey, DrawScope, EventKind, LogLevel, Origin, PortId, Seed, Span, Time};
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::load::cbr::CbrConfig;
use airpath_models::load::on_off::OnOffConfig;
use airpath_models::load::poisson::PoissonConfig;
use airpath_models::load::trace::{LoadTrace, TraceConfig};
use airpath_models::load::users::UsersConfig;
use airpath_models::load::{BackgroundConfig, Generator, Load, LoadConfig, Packet};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::random::{Distribution, Exponential, Random};
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};

use crate::common::*;

const UP: Direction = Direction::Uplink;
const DOWN: Direction = Direction::Downlink;

fn bytes(bytes: u64) -> Random<Bits> {
    Bits::from_bytes(bytes).into()
}

fn millis(milliseconds: u64) -> Random<Span> {
    Span::from_millis(milliseconds).into()
}

fn exponential<Q: airpath_models::random::Quantity>(mean: Q) -> Random<Q> {
    Random::Drawn(Distribution::Exponential(Exponential { mean, bounds: Default::default() }))
}

fn cbr(rate: &str, size: u64) -> LoadConfig {
    LoadConfig::Cbr(CbrConfig { rate: read(rate), packet_size: bytes(size) })
}

fn poisson(interval: Span, packet_size: Random<Bits>) -> LoadConfig {
    LoadConfig::Poisson(PoissonConfig { rate: None, mean_interval: Some(interval), packet_size })
}

fn trace(text: &str, repeat: Option<Span>) -> LoadConfig {
    let file = FileRef::with_data("load.txt", LoadTrace::parse(text.as_bytes()).unwrap());
    LoadConfig::Trace(TraceConfig { file, repeat })
}

fn key() -> DrawKey {
    DrawKey::new(Seed(1), &DrawScope { hop: "load", direction: UP, role: "background", instance: 0 })
}

/// The first packets of a load: microseconds, bytes, sender.
fn first(count: usize, config: &LoadConfig) -> Vec<(u64, u32, u64)> {
    let mut load = Load::new(config, key());
    let packet = |Packet { after, bytes, sender }| (after.nanos() / 1_000, bytes, sender);
    std::iter::from_fn(|| load.next_packet()).take(count).map(packet).collect()
}

#[test]
fn a_constant_rate_is_exact() {
    assert_eq!(first(3, &cbr("4 kbit/s", 100)), [(0, 100, 0), (200_000, 100, 1), (400_000, 100, 2)]);
    // 1000 bit at 3 kbit/s take a third of a second; three of them take one.
    let mut load = Load::new(&cbr("3 kbit/s", 125), key());
    let times: Vec<u64> = (0..4).filter_map(|_| Some(load.next_packet()?.after.nanos())).collect();
    assert_eq!(times, [0, 333_333_333, 666_666_666, 1_000_000_000]);
}

#[test]
fn on_periods_begin_with_a_packet_and_end_before_the_next() {
    let config = LoadConfig::OnOff(OnOffConfig {
        rate: read("80 kbit/s"),
        packet_size: bytes(100),
        on: millis(25),
        off: millis(40),
    });
    // 100 bytes are 10 ms; at 20 ms the period still lasts, at 30 ms it is over.
    let times: Vec<u64> = first(7, &config).into_iter().map(|(at, ..)| at / 1_000).collect();
    assert_eq!(times, [0, 10, 20, 65, 75, 85, 130]);
    // An end at the very instant of a packet comes before it.
    let LoadConfig::OnOff(config) = config else { unreachable!() };
    let config = LoadConfig::OnOff(OnOffConfig { on: millis(20), off: millis(5), ..config });
    let times: Vec<u64> = first(5, &config).into_iter().map(|(at, ..)| at / 1_000).collect();
    assert_eq!(times, [0, 10, 25, 35, 50]);
}

fn users(interval: u64, volume: u64, rate: Option<&str>, most_users: Option<u32>) -> UsersConfig {
    UsersConfig {
        interval: millis(interval),
        volume: bytes(volume),
        rate: rate.map(read),
        packet_size: bytes(100),
        most_users,
    }
}

#[test]
fn users_send_their_volumes_and_a_limit_turns_some_away() {
    // Each has packets of 100, 100 and 50 bytes, 10 ms and 10 ms apart, and is there for 25 ms.
    let free = first(7, &LoadConfig::Users(users(20, 250, Some("80 kbit/s"), None)));
    let expected = [
        (20_000, 100, 0),
        (30_000, 100, 0),
        (40_000, 50, 0),
        (40_000, 100, 1),
        (50_000, 100, 1),
        (60_000, 50, 1),
        (60_000, 100, 2),
    ];
    assert_eq!(free, expected);
    // The first is there until 45 ms: the second, at 40 ms, is turned away.
    let limited = first(5, &LoadConfig::Users(users(20, 250, Some("80 kbit/s"), Some(1))));
    let expected = [(20_000, 100, 0), (30_000, 100, 0), (40_000, 50, 0), (60_000, 100, 2), (70_000, 100, 2)];
    assert_eq!(limited, expected);
    // One who goes at 45 ms makes room for the one who comes then.
    let exact = first(5, &LoadConfig::Users(users(25, 250, Some("80 kbit/s"), Some(1))));
    assert_eq!(
        exact.iter().map(|(at, _, user)| (at / 1_000, *user)).collect::<Vec<_>>(),
        [(25, 0), (35, 0), (45, 0), (50, 1), (60, 1)]
    );
    let burst = first(4, &LoadConfig::Users(users(20, 250, None, None)));
    assert_eq!(burst, [(20_000, 100, 0), (20_000, 100, 0), (20_000, 50, 0), (40_000, 100, 1)]);
}

#[test]
fn a_trace_is_played_and_begins_anew() {
    let text = "# time bytes\n0.01 100\n\n0.02, 1500 # burst\n0.02\t40\n";
    assert_eq!(first(9, &trace(text, None)), [(10_000, 100, 0), (20_000, 1500, 1), (20_000, 40, 2)]);
    let again: Vec<_> = first(5, &trace(text, Some(Span::from_millis(20)))).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(again, [10_000, 20_000, 20_000, 30_000, 40_000]);
}

#[test]
fn a_trace_says_what_is_wrong_with_it() {
    let wrong = |text: &str| LoadTrace::parse(text.as_bytes()).unwrap_err();
    assert!(wrong("0.1 100\n0.2\n").starts_with("line 2: `0.2` is not a time and a size"));
    assert!(wrong("0.1 100 7\n").starts_with("line 1: "));
    assert!(wrong("0.1 70000\n").contains("from 1 to 65535"));
    assert!(wrong("0.1 0\n").contains("from 1 to 65535"));
    assert!(wrong("one 100\n").contains("not a time in seconds"));
    assert!(wrong("0.2 100\n0.1 100\n").starts_with("line 2: 0.1 s comes before"));
    assert!(wrong("# nothing\n").contains("lists no packet"));
}

#[test]
fn bad_parameters_are_explained() {
    let load = |load| BackgroundConfig::new("load", "radio", UP, load);
    let problem = |config: &BackgroundConfig| {
        let problems = config.problems(&["radio", "core"]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        format!("{}: {}", problems[0].key, problems[0].message)
    };
    let good = load(cbr("1 Mbit/s", 1500));
    assert_eq!(good.problems(&["radio", "core"]), []);
    assert!(problem(&load(cbr("1 Mbit/s", 0))).starts_with("packet_size: is 0 bit; a packet has from 1 to 65535"));
    assert!(problem(&load(cbr("1 Mbit/s", 65_536))).starts_with("packet_size: "));
    assert!(problem(&BackgroundConfig { hop: "air".into(), ..good.clone() }).contains("there is no hop `air`"));
    assert!(problem(&BackgroundConfig { until: Some("air".into()), ..good.clone() }).starts_with("until: there is no"));
    let backwards = BackgroundConfig { direction: DOWN, until: Some("core".into()), ..good.clone() };
    assert!(problem(&backwards).contains("`core` lies before `radio` in the downlink"));
    let empty = BackgroundConfig { start: read("2 s"), stop: Some(read("2 s")), ..good.clone() };
    assert!(problem(&empty).starts_with("stop: is 2 s, not after `start`"));
    let both = PoissonConfig { rate: Some(read("1 Mbit/s")), mean_interval: Some(read("1 s")), packet_size: bytes(9) };
    assert!(problem(&load(LoadConfig::Poisson(both.clone()))).starts_with("mean_interval: says what `rate` says"));
    let random = PoissonConfig { mean_interval: None, packet_size: exponential(Bits::from_bytes(500)), ..both.clone() };
    assert!(problem(&load(LoadConfig::Poisson(random))).contains("where sizes are random, write `mean_interval`"));
    let neither = PoissonConfig { rate: None, mean_interval: None, ..both };
    assert!(problem(&load(LoadConfig::Poisson(neither))).starts_with("rate: is missing"));
    assert!(problem(&load(LoadConfig::Users(users(20, 250, None, Some(1))))).starts_with("most_users: needs a `rate`"));
    let short = trace("0 100\n5 100\n", Some(Span::from_secs(1)));
    assert!(problem(&load(short)).starts_with("repeat: is 1 s, before the last packet"));
}

#[test]
fn every_registered_load_keeps_the_laws() {
    for (seed, load) in LoadConfig::examples().into_iter().enumerate() {
        let hops = ["near", "far"].map(|name| HopConfig {
            name: name.into(),
            uplink: LinkConfig { rate: read("400 kbit/s"), propagation: millis(3), ..LinkConfig::default() },
            downlink: LinkConfig { rate: read("1 Mbit/s"), ..LinkConfig::default() },
        });
        let source = |name: &str, hop: &str, until: &str, direction| BackgroundConfig {
            until: Some(until.into()),
            stop: Some(Span::from_millis(200)),
            ..BackgroundConfig::new(name, hop, direction, load.clone())
        };
        let background = vec![source("one", "near", "far", UP), source("other", "far", "far", DOWN)];
        let config = PathConfig { hops: hops.to_vec(), background, ..PathConfig::default() };
        assert_eq!(config.background[0].problems(&["near", "far"]), [], "{load:?}");
        let port = |step: u64| if step.is_multiple_of(2) { PortId::CLIENT } else { PortId::SERVER };
        let script: Script = (0..40).map(|step| offer(ms(step * 5), port(step / 2), 125)).collect();
        let trace = check_laws(|| Path::new(&config, Seed(seed as u64)), &script, seed as u64);
        let generated = trace.of_kind(EventKind::Generated).len();
        assert!(generated > 0 && trace.of_kind(EventKind::Consumed).len() == generated, "{load:?}");
        assert_eq!((trace.departures.len(), trace.held), (40, 0), "{load:?}");
    }
}

/// One byte takes a millisecond.
fn slow() -> LinkConfig {
    LinkConfig { rate: read("8 kbit/s"), ..LinkConfig::default() }
}

fn loaded(link: LinkConfig, load: BackgroundConfig) -> PathConfig {
    PathConfig { background: vec![load], ..one_hop("radio", link, LinkConfig::default()) }
}

fn play(config: &PathConfig, script: &Script) -> Trace {
    check_laws(|| Path::new(config, Seed(1)), script, 1)
}

/// Virtual packets of 100 ms come at 0, 200 and 400 ms.
#[test]
fn a_load_delays_packets_by_exactly_what_it_sends() {
    let load = BackgroundConfig {
        stop: Some(read("600 ms")),
        ..BackgroundConfig::new("others", "radio", UP, cbr("4 kbit/s", 100))
    };
    let config = loaded(slow(), load);
    let alone = |at| play(&config, &vec![offer(Time::from_nanos(at), PortId::CLIENT, 50)]).times(PortId::SERVER)[0];
    // At the very instant the virtual packet comes first; within its time what is left of it is waited for.
    assert_eq!(alone(200_000_000), 350_000_000);
    assert_eq!(alone(250_000_000), 350_000_000);
    assert_eq!(alone(299_999_999), 350_000_000);
    assert_eq!(alone(300_000_000), 350_000_000);
    assert_eq!(alone(320_000_000), 370_000_000);
    // One that is under way at 400 ms makes the virtual packet wait, and no other.
    let script = vec![offer(ms(380), PortId::CLIENT, 50), offer(ms(390), PortId::CLIENT, 10)];
    let trace = play(&config, &script);
    assert_eq!(trace.times(PortId::SERVER), [430_000_000, 440_000_000]);
    let consumed: Vec<u64> = trace.of_kind(EventKind::Consumed).iter().map(|event| event.at.nanos()).collect();
    assert_eq!(consumed, [100_000_000, 300_000_000, 540_000_000]);
}

#[test]
fn virtual_packets_fill_queues_and_are_counted_apart() {
    let queue = QueueConfig::TailDrop(TailDropConfig { limit: read("2 packets") });
    // Five at once: one under transmission, two queued, two dropped.
    let burst = trace("0 100\n0 100\n0 100\n0 100\n0 100\n", None);
    let config = loaded(LinkConfig { queue, ..slow() }, BackgroundConfig::new("others", "radio", UP, burst));
    let trace = play(&config, &vec![offer(ms(0), PortId::CLIENT, 50), offer(ms(100), PortId::CLIENT, 50)]);
    let [user, others] = [Origin::User, Origin::Background].map(|origin| trace.counters.site(0, UP, origin));
    assert_eq!((others.kind(EventKind::Generated).count, others.kind(EventKind::Consumed).count), (5, 3));
    assert_eq!((others.cause(Cause::QueuePackets).count, user.cause(Cause::QueuePackets).count), (2, 1));
    assert_eq!(trace.counters.drops(UP).len(), 1);
    assert_eq!(trace.counters.total(UP, EventKind::Offered), 2);
    // The packet of 100 ms finds the second place that has just become free.
    assert_eq!(trace.times(PortId::SERVER), [350_000_000]);
}

#[test]
fn a_load_goes_as_far_as_it_is_told() {
    let hop = |name: &str| HopConfig { name: name.into(), uplink: slow(), downlink: slow() };
    let through = |direction, first: &str, last: Option<&str>| {
        let one = trace("0.05 100\n", None);
        let load = BackgroundConfig {
            until: last.map(String::from),
            dscp: 46,
            flow: Some(7),
            ..BackgroundConfig::new("others", first, direction, one)
        };
        let config = PathConfig {
            hops: ["near", "middle", "far"].map(hop).to_vec(),
            background: vec![load],
            ..PathConfig::default()
        };
        let trace = play(&config, &Vec::new());
        assert!(trace.departures.is_empty());
        let wanted = [EventKind::Generated, EventKind::Passed, EventKind::Consumed];
        let events = trace.events.iter().filter(|event| wanted.contains(&event.kind));
        events
            .map(|event| {
                assert_eq!((event.origin, event.flow, event.pdu), (Origin::Background, 7, 1 << 52));
                (event.at.nanos() / 1_000_000, event.hop, event.kind)
            })
            .collect::<Vec<_>>()
    };
    use EventKind::{Consumed, Generated, Passed};
    assert_eq!(through(UP, "middle", None), [(50, 1, Generated), (150, 1, Consumed)]);
    assert_eq!(through(UP, "near", Some("middle")), [(50, 0, Generated), (150, 0, Passed), (250, 1, Consumed)]);
    let whole = [(50, 2, Generated), (150, 2, Passed), (250, 1, Passed), (350, 0, Consumed)];
    assert_eq!(through(DOWN, "far", Some("near")), whole);
}

#[test]
fn flows_take_turns_and_users_keep_theirs() {
    let flows = |load| {
        let load = BackgroundConfig { flow: Some(10), flows: 2, ..BackgroundConfig::new("others", "radio", UP, load) };
        let trace = run(Path::new(&loaded(slow(), load), Seed(1)), &Vec::new());
        trace.of_kind(EventKind::Generated).iter().map(|event| event.flow).collect::<Vec<_>>()
    };
    assert_eq!(flows(trace("0 9\n1 9\n2 9\n", None)), [10, 11, 10]);
    let mut load = Load::new(&LoadConfig::Users(users(20, 250, None, None)), key());
    let senders: Vec<u64> = (0..5).filter_map(|_| Some(load.next_packet()?.sender)).collect();
    assert_eq!(senders, [0, 0, 0, 1, 1]);
}

/// Draws are keyed by the load's name: neither another load nor another hop redraws anything.
#[test]
fn added_loads_redraw_nothing() {
    let load = |name: &str, hop: &str| BackgroundConfig {
        stop: Some(read("1 s")),
        ..BackgroundConfig::new(name, hop, UP, poisson(Span::from_millis(10), exponential(Bits::from_bytes(100))))
    };
    let hop = |name: &str| HopConfig { name: name.into(), uplink: slow(), downlink: slow() };
    let generated = |hops: &[&str], background: Vec<BackgroundConfig>, seed| {
        let hops = hops.iter().map(|name| hop(name)).collect();
        let config = PathConfig { hops, background, ..PathConfig::default() };
        let trace = run(Path::new(&config, Seed(seed)), &Vec::new());
        let flow = trace.of_kind(EventKind::Generated)[0].flow;
        let of_first = trace.of_kind(EventKind::Generated).into_iter().filter(|event| event.flow == flow);
        of_first.map(|event| (event.at, event.bits)).collect::<Vec<_>>()
    };
    let alone = generated(&["radio"], vec![load("one", "radio")], 1);
    assert!(alone.len() > 50);
    let late = BackgroundConfig { start: read("500 ms"), ..load("other", "wire") };
    assert_eq!(generated(&["wire", "radio"], vec![late, load("one", "radio")], 1), alone);
    assert_ne!(generated(&["radio"], vec![load("one", "radio")], 2), alone);
    assert_ne!(generated(&["radio"], vec![load("two", "radio")], 1), alone);
}

/// A machine with nothing but a load sleeps, but not so long that it has much to do afterwards.
#[test]
fn an_idle_link_with_a_load_is_woken_now_and_then() {
    use airpath_core::Machine;
    let with = |propagation: &str| {
        let link = LinkConfig { propagation: read(propagation), ..LinkConfig::default() };
        let path = PathConfig {
            background: vec![BackgroundConfig::new("others", "radio", UP, cbr("80 Mbit/s", 1_000))],
            ..one_hop("radio", link.clone(), link)
        };
        let mut runner = Runner::new(Path::new(&path, Seed(1)), LogLevel::Events);
        let mut wakes = 0;
        while let Some(at) = runner.machine.next_emission().filter(|at| *at < ms(100)) {
            runner.advance(at);
            wakes += 1;
        }
        assert_eq!(runner.machine.held(), 0);
        wakes
    };
    // There are a thousand packets.
    for propagation in ["50 ms", "0 s"] {
        let wakes = with(propagation);
        assert!((90..=110).contains(&wakes), "{wakes} at {propagation}");
    }
}

/// Waiting times of `count` packets of users, which come with share `user_share` of the rate among
/// virtual ones of the same size, in service times of a packet.
fn mean_wait(user_share: f64, background_share: f64, count: u64) -> f64 {
    // 125 bytes are a millisecond.
    let link = LinkConfig {
        rate: read("1 Mbit/s"),
        queue: QueueConfig::TailDrop(TailDropConfig { limit: read("unlimited") }),
        ..LinkConfig::default()
    };
    let interval = Span::from_nanos((1e6 / background_share) as u64);
    let mut dice = Dice::new(7);
    let mut at = 0.0;
    let script: Script = (0..count)
        .map(|_| {
            at += -dice.unit().ln() * 1e6 / user_share;
            offer(Time::from_nanos(at as u64), PortId::CLIENT, 125)
        })
        .collect();
    let load = BackgroundConfig {
        stop: Some(Span::from_nanos(at as u64)),
        ..BackgroundConfig::new("others", "radio", UP, poisson(interval, bytes(125)))
    };
    let config = loaded(link, load);
    let mut machine = Path::new(&config, Seed(3));
    let mut outputs = airpath_core::Outputs::default();
    let cx = &mut airpath_core::Cx::new(&mut outputs);
    use airpath_core::{Item, Machine, Pdu};
    for (id, (at, _)) in script.iter().enumerate() {
        machine.offer(*at, PortId::CLIENT, Item::Pdu(Pdu { id: id as u64, len: 125, ..Pdu::default() }), cx);
    }
    machine.advance(END, cx);
    assert_eq!(outputs.emissions.len() as u64, count);
    let wait = |emission: &airpath_core::Emission| match &emission.item {
        Item::Pdu(pdu) => emission.at.since(pdu.arrived).nanos() as f64 / 1e6 - 1.0,
        Item::Signal(_) => unreachable!(),
    };
    outputs.emissions.iter().map(wait).sum::<f64>() / count as f64
}

/// M/D/1: packets of users meet the wait of the Pollaczek-Khinchine formula, ρ/(2(1-ρ)) service times.
/// The standard error of the mean over 40,000 packets, in correlated stretches of some ten, is about
/// 0.01 at half load and 0.05 at four fifths; the bounds are four of them.
#[test]
fn a_poisson_load_makes_packets_wait_as_in_m_d_1() {
    let half = mean_wait(0.1, 0.4, 40_000);
    assert!((half - 0.5).abs() < 0.04, "{half}");
    let high = mean_wait(0.2, 0.6, 40_000);
    assert!((high - 2.0).abs() < 0.2, "{high}");
}

/// M/M/1/K: a queue of four and the packet under transmission. Of 200,000 packets a share of
/// (1-ρ)ρ^5/(1-ρ^6) = 0.0888 is dropped at ρ = 0.8; the standard error, with losses in clusters of
/// a few, is below 0.0015, and the bound three of them.
#[test]
fn a_load_of_random_sizes_is_blocked_as_in_m_m_1_k() {
    let link = LinkConfig {
        rate: read("8 Mbit/s"),
        queue: QueueConfig::TailDrop(TailDropConfig { limit: read("4 packets") }),
        ..LinkConfig::default()
    };
    let packets = poisson(Span::from_micros(1_250), exponential(Bits::from_bytes(1_000)));
    let stop = Some(Span::from_secs(250));
    let config = loaded(link, BackgroundConfig { stop, ..BackgroundConfig::new("others", "radio", UP, packets) });
    let mut runner = Runner::new(Path::new(&config, Seed(5)), LogLevel::Counters);
    runner.advance(END);
    let counters = runner.trace().counters;
    let others = counters.site(0, UP, Origin::Background);
    let generated = others.kind(EventKind::Generated).count as f64;
    assert!((generated - 200_000.0).abs() < 5.0 * 200_000f64.sqrt(), "{generated}");
    let blocked = others.cause(Cause::QueuePackets).count as f64 / generated;
    let rho = 0.8f64;
    let theory = (1.0 - rho) * rho.powi(5) / (1.0 - rho.powi(6));
    assert!((blocked - theory).abs() < 0.0045, "{blocked} against {theory}");
}

/// Erlang B: at an offered load of 3 Erlang with room for four users, 20.6 % are turned away. Of 50,000
/// users the standard error is about 0.003; the bound is four of them.
#[test]
fn users_are_turned_away_as_erlang_b_says() {
    // 10,000 bytes at 80 kbit/s are a second on average, and three users come in each.
    let mut load = Load::new(
        &LoadConfig::Users(UsersConfig {
            interval: exponential(Span::from_nanos(333_333_333)),
            volume: exponential(Bits::from_bytes(10_000)),
            rate: Some(read("80 kbit/s")),
            packet_size: bytes(1_500),
            most_users: Some(4),
        }),
        key(),
    );
    let (mut admitted, mut last) = (std::collections::HashSet::new(), 0);
    while last < 50_000 {
        let sender = load.next_packet().unwrap().sender;
        admitted.insert(sender);
        last = last.max(sender);
    }
    let turned_away = 1.0 - admitted.len() as f64 / (last + 1) as f64;
    let terms = [1.0, 3.0, 4.5, 4.5, 3.375];
    let theory = terms[4] / terms.iter().sum::<f64>();
    assert!((turned_away - theory).abs() < 0.012, "{turned_away} against {theory}");
}
