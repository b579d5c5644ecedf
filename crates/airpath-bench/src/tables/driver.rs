// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cost of a packet in virtual time: in the models alone, in worlds of endpoints, and in ns-3 on the same link
//! in the same run.

pub(super) mod links;
mod ns3;
mod worlds;

use std::num::NonZeroUsize;

use airpath_core::{LogLevel, Pdu, PortId, Seed, Time};
use airpath_live::clock::thread_processor_ns;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use airpath_virtual::{DriveUntil, TimedInput, VirtualDriver};

use super::Options;
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::Failure;
use ns3::Ns3;
use worlds::{Paths, cost};

const INTERVAL_NS: u64 = 1_050_000;
const ROUNDS: usize = 7;
const ONE: NonZeroUsize = NonZeroUsize::MIN;
const TWO: NonZeroUsize = NonZeroUsize::new(2).expect("two is not zero");
/// Enough to leave every cache.
const MANY: u64 = 10_000;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let columns = ["1500-byte packets, lengths only", "log", "ns a packet", "packets/s"];
    let mut table = Table::new("driver", "virtual time: cost of a packet, medians", &columns);
    let packets = if options.quick { 100_000 } else { 400_000 };
    let links = [("rate and delay", links::plain()?, 8e6), ("4 frames, Gilbert-Elliott", links::fragmented()?, 1e6)];
    for (name, link, aim) in &links {
        models(&mut table, name, link, *aim, packets);
    }
    for (name, link, aim) in &links {
        many_paths(&mut table, name, link, *aim, packets);
    }
    two_threads(&mut table, &links[0].1, packets);
    against_ns3(&mut table, &links[0].1, packets);
    Ok(table)
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Samples::new(values).quantile(0.5)
}

fn row(table: &mut Table, name: impl Into<String>, log: &str, cost_ns: f64) {
    table.row([name.into(), log.to_owned(), short(cost_ns), short((1e9 / cost_ns).round())]);
}

/// Inputs known beforehand into one machine: the models and the plain driver.
fn models(table: &mut Table, name: &str, link: &LinkConfig, aim: f64, packets: u64) {
    for (level, label) in [(LogLevel::Counters, "counters"), (LogLevel::Events, "events")] {
        let cost = median((0..ROUNDS).map(|_| played_ns(link, level, packets)));
        row(table, format!("models, {name}"), label, cost);
        let aim = (level == LogLevel::Counters).then_some(Target::AtLeast(aim));
        table.figure("packets in virtual time", format!("{name}, {label}"), (1e9 / cost).round(), "/s", aim);
    }
}

fn played_ns(link: &LinkConfig, level: LogLevel, packets: u64) -> f64 {
    let hop = HopConfig { name: "radio".into(), uplink: link.clone(), downlink: link.clone() };
    let path = Path::new(&PathConfig { hops: vec![hop], ..PathConfig::default() }, Seed(1));
    let mut driver = VirtualDriver::new(path, level);
    let inputs = (0..packets).map(|id| {
        let pdu = Pdu { id: id + 1, len: 1500, header_len: 40, ..Pdu::default() };
        TimedInput::packet(Time::from_nanos(id * INTERVAL_NS), PortId::CLIENT, pdu)
    });
    let began = thread_processor_ns();
    let outcome = driver.run(inputs, DriveUntil::Idle, |outputs| {
        outputs.emissions.clear();
        outputs.events.clear();
    });
    let elapsed = thread_processor_ns() - began;
    assert!(outcome.is_ok(), "inputs are in order");
    elapsed as f64 / packets as f64
}

/// Source to sink, over one path and over many, round by round in turn.
fn many_paths(table: &mut Table, name: &str, link: &LinkConfig, aim: f64, packets: u64) {
    let many = packets * 5;
    let (mut one, mut apart, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let single = cost(link, 1, Paths::Apart, packets, ONE).processor_ns;
        let of_many = cost(link, MANY, Paths::Apart, many, ONE).processor_ns;
        one.push(single);
        apart.push(of_many);
        ratios.push(single / of_many);
    }
    let together = cost(link, MANY, Paths::Together, many, ONE).processor_ns;
    row(table, format!("world, {name}: 1 path"), "counters", median(one.clone()));
    row(table, format!("world, {name}: {MANY} paths"), "counters", median(apart));
    row(table, format!("world, {name}: {MANY} connected"), "counters", together);
    let rate = (1e9 / median(one)).round();
    table.figure("packets in a world", name, rate, "/s", Some(Target::AtLeast(aim)));
    let third = Some(Target::AtLeast(1.0 / 3.0));
    table.figure(format!("{MANY} paths against one"), name, median(ratios), "of its packets/s", third);
}

/// The same many paths on one thread and on two, by the clock on the wall.
fn two_threads(table: &mut Table, link: &LinkConfig, packets: u64) {
    let wall = |threads| cost(link, MANY, Paths::Apart, packets * 5, threads).wall_ns;
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        one.push(wall(ONE));
        two.push(wall(TWO));
    }
    let speedup = median(one.iter().zip(&two).map(|(one, two)| one / two));
    for (threads, costs) in [("1 thread", one), ("2 threads", two)] {
        row(table, format!("world, {MANY} paths, {threads}, by the wall clock"), "counters", median(costs));
    }
    table.figure("speed of 2 threads against 1", "rate and delay", speedup, "times", None);
}

/// ns-3 and a world in turn: one link, and as many as above.
fn against_ns3(table: &mut Table, link: &LinkConfig, packets: u64) {
    let ns3 = match Ns3::build() {
        Ok(ns3) => ns3,
        Err(why) => return table.notes.push(format!("no comparison with ns-3: {why}")),
    };
    for (count, name) in [(1, "1 link"), (MANY, "10000 links")] {
        let (mut theirs, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let ours = cost(link, count, Paths::Apart, packets, ONE).processor_ns;
            match ns3.cost_ns(packets, count) {
                Ok(cost) => {
                    theirs.push(cost);
                    ratios.push(cost / ours);
                }
                Err(why) => return table.notes.push(format!("no comparison with ns-3: {why}")),
            }
        }
        row(table, format!("ns-3, point to point: {name}"), "none", median(theirs));
        table.figure("cost of ns-3 against a world", name, median(ratios), "times", None);
    }
    table.notes.push(format!(
        "{}; PointToPointNetDevice and DropTailQueue without protocols or traces, the same packets at the same times",
        Ns3::version()
    ));
}
