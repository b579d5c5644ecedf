// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cost of the loop while it carries 100 Mbit/s, and while it carries nothing.

use std::time::Duration;

use airpath_core::Span;
use airpath_live::engine_loop::SpinPolicy;
use airpath_live::ports::PortKind;
use airpath_live::tuning::REAL_TIME_PRIORITY;
use airpath_live::{clock, scheduling};
use airpath_load::clock::sleep_until;
use airpath_log::{Economy, Level};
use airpath_models::LinkConfig;

use super::{Options, ports, ports_and_levels};
use crate::carrier::{Writing, carry};
use crate::report::{Table, Target, short};
use crate::sockets::{Receiver, Sender};
use crate::statistics::Samples;
use crate::testbed::{BareVeth, Departures, Emulation, Failure, Link, Setting, port_name};
use crate::traffic::{self, Pace, UDP_HEADERS_BYTES};

const PACKETS_PER_SECOND: f64 = 8_333.0;
const IP_BYTES: usize = 1500;
/// Names of what costs the least: for links that wake for each packet, and for those that wake for several.
const CARRIER_OF_EACH: &str = "bare carrier, a wake-up a packet";
const CARRIER_OF_SEVERAL: &str = "bare carrier, a wake-up every 750 µs, written as one";
/// Ways to carry packets without a model, by name: wake-ups as often as those of a link, and what is written at once.
const CARRIERS: [(&str, u64, Writing); 3] = [
    (CARRIER_OF_EACH, 120_000, Writing::Singly),
    ("bare carrier, a wake-up every 750 µs, written singly", 750_000, Writing::Singly),
    (CARRIER_OF_SEVERAL, 750_000, Writing::AsOne),
];
/// Rounds in which links and carriers take turns.
const ROUNDS: usize = 5;
/// An idle link is watched for this long and for twice as long: what the kernel says by itself on a
/// new interface is over by then, and the difference is the link's.
const IDLE_SECONDS: f64 = 3.0;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let title = "processor time of the loop, 8333 packets/s of 1500 bytes over 120 Mbit/s and 20 ms, spin off";
    let columns = ["between the ends", "log", "µs a packet", "wake-ups a packet", "lateness p50 µs", "p99", "lost"];
    let mut table = Table::new("processor", title, &columns);
    let pace = Pace { ip_bytes: IP_BYTES, packets_per_second: PACKETS_PER_SECOND, seconds: options.seconds(4.0) };
    let config =
        LinkConfig { rate: "120 Mbit/s".parse()?, propagation: Span::from_millis(20).into(), ..LinkConfig::default() };
    let pass = ports().into_iter().map(|port| (Link::Pass, port, Level::Counters));
    let model = ports_and_levels().into_iter().map(|(port, level)| (Link::hop(config.clone()), port, level));
    let usual = Setting::new(PortKind::Packet, Level::Counters);
    let off = |(link, port, level)| (link, Setting { port, level, spin: SpinPolicy::Off, ..usual });
    let others = [
        Setting { spin: SpinPolicy::Batch, ..usual },
        Setting { departures: Departures::Single, spin: SpinPolicy::Off, ..usual },
        Setting { departures: Departures::Within(Economy::On), ..usual },
    ];
    let others = others.map(|setting| (Link::hop(config.clone()), setting));
    for (link, setting) in pass.chain(model).map(off).chain(others) {
        let Setting { port, level, spin, departures, .. } = setting;
        let emulation = Emulation::start(&link, setting)?;
        let [client, server] = emulation.ends(0);
        let received = traffic::run(&client, &server, pace, Duration::from_millis(200))?;
        let outcome = emulation.stop()?;
        let packets = received.sent as f64;
        let cost = outcome.processor_ns() as f64 / 1e3 / packets;
        let is_model = matches!(link, Link::Hop(_));
        let what = format!("{}, {}", if is_model { "link" } else { "pass-through" }, port_name(port));
        let how = match (departures, spin) {
            (Departures::Within(Economy::Off), SpinPolicy::Off) => String::new(),
            (Departures::Within(Economy::Off), spin) => format!(", spin {spin}"),
            (Departures::Single, _) => ", single departures".to_owned(),
            (Departures::Within(economy), _) => format!(", economy {economy}"),
        };
        let what = format!("{what}{how}");
        let lateness = [outcome.lateness.p50_ns, outcome.lateness.p99_ns].map(|ns| short(ns as f64 / 1e3));
        let costs = [short(cost), short(outcome.wake_ups() as f64 / packets)];
        let cells = costs.into_iter().chain(lateness).chain([received.lost().to_string()]);
        table.row([what.clone(), level.to_string()].into_iter().chain(cells));
        let target = (is_model && level == Level::Counters).then_some(Target::AtMost(6.0));
        table.figure("processor time", format!("{what}, {level}"), cost, "µs a packet", target);
    }
    compare(&mut table, &config, pace, if options.quick { ROUNDS / 2 } else { ROUNDS })?;
    let send = cost_of_a_sleep_and_send_ns(pace)?;
    table.row(["bare timed sleep and send".to_owned(), "-".to_owned(), short(send / 1e3), "1".to_owned()]);
    table.figure("processor time of a bare timed sleep and send", "120 µs", send / 1e3, "µs a packet", None);
    let sleep = cost_of_a_sleep_ns();
    table.row(["bare clock_nanosleep of 100 µs".to_owned(), "-".to_owned(), short(sleep / 1e3), "1".to_owned()]);
    table.figure("processor time of a bare timed sleep", "100 µs", sleep / 1e3, "µs", None);
    for port in ports() {
        let mut wake_ups = Vec::new();
        for seconds in [IDLE_SECONDS, 2.0 * IDLE_SECONDS] {
            let emulation = Emulation::start(&Link::hop(config.clone()), Setting::new(port, Level::Counters))?;
            std::thread::sleep(Duration::from_secs_f64(seconds));
            wake_ups.push(emulation.stop()?.wake_ups());
        }
        let more = wake_ups[1].saturating_sub(wake_ups[0]);
        let what = format!("idle link, {}", port_name(port));
        let cells = ["-".to_owned(), format!("{more} in {IDLE_SECONDS} s")];
        table.row([what.clone(), "counters".to_owned()].into_iter().chain(cells));
        table.figure("wake-ups of an idle link", what, more as f64, "wake-ups", Some(Target::AtMost(0.0)));
    }
    table.notes.push(
        "the loop's thread also pays for the receiving kernel's stack, which runs within the call that writes a packet"
            .into(),
    );
    Ok(table)
}

/// Compares a link that wakes for each packet, and one that wakes for several, with carriers that model nothing.
fn compare(table: &mut Table, config: &LinkConfig, pace: Pace, rounds: usize) -> Result<(), Failure> {
    let usual = Setting::new(PortKind::Packet, Level::Counters);
    let links = [
        ("link, each packet", Setting { spin: SpinPolicy::Off, ..usual }, CARRIER_OF_EACH, 1.2),
        ("link, economy", Setting { departures: Departures::Within(Economy::On), ..usual }, CARRIER_OF_SEVERAL, 1.2),
    ];
    let mut of_carriers: [Vec<f64>; CARRIERS.len()] = Default::default();
    let mut of_links: [Vec<f64>; 2] = Default::default();
    // Ways take turns, so that a busy moment of the machine meets all of them.
    for _ in 0..rounds {
        for (values, (name, interval_ns, writing)) in of_carriers.iter_mut().zip(CARRIERS) {
            let carried = carry(pace, interval_ns, writing)?;
            values.push(carried.processor_ns / 1e3);
            if carried.lost > 0 {
                table.notes.push(format!("{name}: {} packets lost", carried.lost));
            }
        }
        for (values, (_, setting, ..)) in of_links.iter_mut().zip(&links) {
            let emulation = Emulation::start(&Link::hop(config.clone()), *setting)?;
            let [client, server] = emulation.ends(0);
            let received = traffic::run(&client, &server, pace, Duration::from_millis(200))?;
            values.push(emulation.stop()?.processor_ns() as f64 / 1e3 / received.sent as f64);
        }
    }
    let mut median = |what: &str, values: &[f64]| {
        let samples = Samples::new(values.iter().copied());
        let range =
            format!("{} ({} to {})", short(samples.quantile(0.5)), short(samples.quantile(0.0)), short(samples.max()));
        table.row([format!("{what}, in turns"), "counters".to_owned(), range]);
        table.figure("processor time, in turns", what, samples.quantile(0.5), "µs a packet", None);
        samples.quantile(0.5)
    };
    let floors: Vec<(&str, f64)> =
        CARRIERS.iter().zip(&of_carriers).map(|((name, ..), values)| (*name, median(name, values))).collect();
    let costs: Vec<f64> = links.iter().zip(&of_links).map(|((name, ..), values)| median(name, values)).collect();
    for ((name, _, floor, most), cost) in links.iter().zip(costs) {
        let of_floor = floors.iter().find(|(carrier, _)| carrier == floor).map_or(f64::NAN, |(_, cost)| *cost);
        table.figure("processor time over its bare carrier", *name, cost / of_floor, "", Some(Target::AtMost(*most)));
    }
    table.notes.push("bare carrier: reads and writes the same packets through the same ports, without a model".into());
    Ok(())
}

/// Processor time of a thread that sleeps until a packet is due and sends it through a bare veth pair: what any
/// emulator pays that sends each packet at its time.
fn cost_of_a_sleep_and_send_ns(pace: Pace) -> Result<f64, Failure> {
    let bare = BareVeth::create()?;
    let [client, server] = bare.ends();
    let (sending, receiving) = traffic::pair(&client, &server)?;
    let packets = (pace.packets_per_second * pace.seconds) as u64;
    let measured = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| -> std::io::Result<()> {
            let mut receiver = Receiver::new(&receiving);
            let mut arrivals = Vec::new();
            // The socket's timeout ends it.
            while receiver.receive(true, &mut arrivals)? > 0 {}
            Ok(())
        });
        let sender = scope.spawn(|| -> std::io::Result<u64> {
            scheduling::timer_slack(1);
            scheduling::real_time(REAL_TIME_PRIORITY);
            let mut sender = Sender::new(&sending, pace.ip_bytes - UDP_HEADERS_BYTES);
            let (start_ns, before_ns) = (clock::monotonic_ns(), clock::thread_processor_ns());
            for packet in 0..packets {
                sleep_until(start_ns + (packet as f64 * 1e9 / pace.packets_per_second) as u64)?;
                sender.send(1)?;
            }
            Ok(clock::thread_processor_ns() - before_ns)
        });
        let measured = sender.join().map_err(|_| "the sender panicked")??;
        receiver.join().map_err(|_| "the receiver panicked")??;
        Ok::<u64, Failure>(measured)
    })?;
    Ok(measured as f64 / packets as f64)
}

/// Processor time of a thread that sleeps for 100 µs and wakes as the loop does: what the machine's
/// timer costs before anything is done with it.
fn cost_of_a_sleep_ns() -> f64 {
    const SLEEPS: u32 = 2_000;
    let measured = std::thread::spawn(|| -> std::io::Result<u64> {
        scheduling::timer_slack(1);
        scheduling::real_time(10);
        let before_ns = clock::thread_processor_ns();
        for _ in 0..SLEEPS {
            sleep_until(clock::monotonic_ns() + 100_000)?;
        }
        Ok(clock::thread_processor_ns() - before_ns)
    });
    let nanoseconds = measured.join().ok().and_then(Result::ok);
    nanoseconds.map_or(f64::NAN, |nanoseconds| nanoseconds as f64 / f64::from(SLEEPS))
}
