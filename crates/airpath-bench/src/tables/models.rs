// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cost that each registered model adds to a packet, in processor time, in the virtual driver.
//!
//! Models come from the examples with which their laws are tested, so that a new one is measured by being
//! registered. Of several examples of a type the costliest counts.

use airpath_core::{Bits, Cx, Direction, Ecn, EventKind, FiveTuple, Item, LogLevel, Machine, Origin, Outputs, Pdu};
use airpath_core::{PortId, Seed, Span, Time};
use airpath_live::clock::thread_processor_ns;
use airpath_models::channel::{EffectConfig, ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::EntityConfig;
use airpath_models::load::{BackgroundConfig, LoadConfig};
use airpath_models::medium::VaryingConfig;
use airpath_models::medium::rate::slotted::SlottedConfig;
use airpath_models::queueing::QueueConfig;
use airpath_models::random::Random;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use airpath_virtual::{DriveUntil, TimedInput, VirtualDriver};
use serde::Serialize;

use super::Options;
use super::driver::links;
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::Failure;

/// Target for the cost of a packet on the plain link, and for the cost that a model may add.
const PLAIN_NS: f64 = 333.0;
const ADDED_NS: f64 = 300.0;
/// Target for the cost of a frame of an entity with frames of its own.
const FRAME_NS: f64 = 1_000.0;
const PER_BIT: &str = "per bit";

const ROUNDS: usize = 5;
/// Packets come in bursts, so that queues hold some: a burst lasts as long as the link needs for it.
const BURST: u64 = 8;
const BURST_INTERVAL_NS: u64 = BURST * 1_050_000;
const FLOWS: u64 = 16;
/// A load that has sent fewer packets in so much time cannot be measured.
const FEWEST: u64 = 1_000;
/// Number of packets that show whether a link is fast enough: more than any queue holds.
const PROBE: u64 = 20_000;
const LONGEST: Time = Time::from_nanos(100_000_000_000_000);

/// A path that is measured against the plain one.
struct Case {
    role: &'static str,
    model: String,
    path: PathConfig,
    /// True if packets come from its background load only.
    is_load: bool,
}

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let columns = ["model", "examples", "added ns a packet"];
    let title = "what models add to a packet of the plain link in virtual time, costliest examples";
    let mut table = Table::new("models", title, &columns);
    let packets = if options.quick { 10_000 } else { 100_000 };
    let plain = links::plain()?;
    let base = path_of(&plain);
    let plain_ns = median((0..ROUNDS).map(|_| played_ns(&base, packets)));
    table.row(["plain link".into(), "1".into(), short(plain_ns)]);
    table.figure("plain link", "counters", plain_ns, "ns", Some(Target::AtMost(PLAIN_NS)));
    let mut costs: Vec<(&str, String, Vec<f64>)> = Vec::new();
    for case in cases(&plain) {
        // Both in turn, so that what else the machine does meets both.
        let difference = || {
            let own =
                if case.is_load { generated_ns(&case.path, packets) } else { Some(played_ns(&case.path, packets)) };
            Some(own? - played_ns(&base, packets))
        };
        let Some(added): Option<Vec<f64>> = (0..ROUNDS).map(|_| difference()).collect() else {
            continue;
        };
        let added = median(added);
        match costs.iter_mut().find(|(role, model, _)| *role == case.role && *model == case.model) {
            Some((.., all)) => all.push(added),
            None => costs.push((case.role, case.model, vec![added])),
        }
    }
    for (role, model, all) in costs {
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        table.row([format!("{role} {model}"), all.len().to_string(), short(most)]);
        // A process in steps of bits has thousands of them in a packet.
        let aim = (!model.ends_with(PER_BIT)).then_some(Target::AtMost(ADDED_NS));
        table.figure(format!("added by {role}"), model, most, "ns", aim);
    }
    for entity in EntityConfig::examples().into_iter().filter(EntityConfig::has_own_frames) {
        let model = type_of(&entity);
        let frame_ns = median((0..ROUNDS).map(|_| framed_ns(&entity, packets / 10)));
        table.row([format!("entity {model}, a frame"), "1".into(), short(frame_ns)]);
        table.figure("frame of entity", model, frame_ns, "ns", Some(Target::AtMost(FRAME_NS)));
    }
    table.notes.push("errors per bit have no aim: chains of short stays draw thousands of times in a packet".into());
    table.notes.push("1500-byte packets in bursts of 8, lengths only, counters only; below 0 is below noise".into());
    Ok(table)
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    Samples::new(values).quantile(0.5)
}

/// The word by which a scenario names the type of a configuration.
fn type_of(config: &impl Serialize) -> String {
    let value = serde_json::to_value(config).unwrap_or_default();
    value["type"].as_str().unwrap_or("constant").to_string()
}

/// Text of the value, or the type of a table.
fn word_of(config: &impl Serialize) -> String {
    let value = serde_json::to_value(config).unwrap_or_default();
    value.as_str().map_or_else(|| type_of(config), str::to_string)
}

fn path_of(link: &LinkConfig) -> PathConfig {
    let hop = HopConfig { name: "radio".into(), uplink: link.clone(), downlink: link.clone() };
    PathConfig { hops: vec![hop], ..PathConfig::default() }
}

/// Every registered model on the link `plain`.
fn cases(plain: &LinkConfig) -> Vec<Case> {
    let on_link = |role, model, link: LinkConfig| Case { role, model, path: path_of(&link), is_load: false };
    let queues = QueueConfig::examples().into_iter().map(|queue| {
        let model = type_of(&queue);
        on_link("queue", model, LinkConfig { queue, ..plain.clone() })
    });
    let errors = ErrorProcessConfig::examples().into_iter().flat_map(|process| {
        [(Per::Packet, "packet"), (Per::Frame, "frame"), (Per::Bit, "bit")].map(|(per, word)| {
            let errors = ErrorsConfig {
                process: process.clone(),
                per,
                effect: EffectConfig::default(),
                kept: None,
                only: None,
                block: None,
            };
            on_link("errors", format!("{} per {word}", type_of(&process)), LinkConfig { errors, ..plain.clone() })
        })
    });
    let delays = Random::examples(Span::from_millis(20)).into_iter().map(|propagation| {
        let model = type_of(&propagation);
        on_link("distribution", model, LinkConfig { propagation, ..plain.clone() })
    });
    let others = LinkConfig::examples().into_iter().filter(|example| example.rate != plain.rate);
    let rates = others.filter_map(|example| {
        let case = on_link("rate", word_of(&example.rate), LinkConfig { rate: example.rate, ..plain.clone() });
        // A packet that is dropped for want of a faster link costs little and says nothing.
        carries_all(&case.path).then_some(case)
    });
    let loads = LoadConfig::examples().into_iter().map(|load| {
        let model = type_of(&load);
        let background = vec![BackgroundConfig::new("others", "radio", Direction::Uplink, load)];
        Case { role: "load", model, path: PathConfig { background, ..path_of(plain) }, is_load: true }
    });
    queues.chain(errors).chain(delays).chain(rates).chain(loads).collect()
}

/// True if nothing of some packets is dropped.
fn carries_all(path: &PathConfig) -> bool {
    let mut driver = VirtualDriver::new(Path::new(path, Seed(1)), LogLevel::Counters);
    let outcome = driver.run(packets_of(PROBE), DriveUntil::Idle, |_| ());
    outcome.is_ok() && driver.outputs().emissions.len() as u64 == PROBE
}

/// `count` packets in bursts.
fn packets_of(count: u64) -> impl Iterator<Item = TimedInput> {
    (0..count).map(|id| {
        let flow = (id % FLOWS) as u32;
        let tuple = FiveTuple { source: flow, ..FiveTuple::default() };
        let pdu = Pdu { id: id + 1, len: 1500, header_len: 40, ecn: Ecn::Ect0, flow, tuple, ..Pdu::default() };
        TimedInput::packet(Time::from_nanos(id / BURST * BURST_INTERVAL_NS), PortId::CLIENT, pdu)
    })
}

/// Processor time for each of `packets` packets that are offered to `path`.
fn played_ns(path: &PathConfig, packets: u64) -> f64 {
    let mut driver = VirtualDriver::new(Path::new(path, Seed(1)), LogLevel::Counters);
    let began = thread_processor_ns();
    let outcome = driver.run(packets_of(packets), DriveUntil::Idle, |outputs| outputs.emissions.clear());
    let elapsed = thread_processor_ns() - began;
    assert!(outcome.is_ok(), "inputs are in order");
    elapsed as f64 / packets as f64
}

/// Processor time for each frame that carries `packets` of 200 bytes over radio blocks, both ends' frames together.
fn framed_ns(entity: &EntityConfig, packets: u64) -> f64 {
    let slots = SlottedConfig { slot: Span::from_millis(20), bits: Bits::new(576), period: None, offset: Span::ZERO };
    let link = LinkConfig {
        rate: VaryingConfig::Slotted(slots).into(),
        propagation: Span::from_millis(90).into(),
        entity: entity.clone(),
        ..LinkConfig::default()
    };
    let mut machine = Path::new(&path_of(&link), Seed(1));
    let mut outputs = Outputs::default();
    let began = thread_processor_ns();
    for id in 0..packets {
        let at = Time::from_nanos(id * 200_000_000);
        let pdu = Pdu { id: id + 1, len: 200, header_len: 40, ..Pdu::default() };
        machine.offer(at, PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
        outputs.emissions.clear();
    }
    let elapsed = thread_processor_ns() - began;
    let sent = |direction| {
        let of = |origin| outputs.counters.total_of(direction, origin, EventKind::FrameSent).count;
        of(Origin::User) + of(Origin::Control)
    };
    elapsed as f64 / (sent(Direction::Uplink) + sent(Direction::Downlink)) as f64
}

/// Processor time for each of some `packets` virtual packets; none if there are too few.
fn generated_ns(path: &PathConfig, packets: u64) -> Option<f64> {
    let mut machine = Path::new(path, Seed(1));
    let mut outputs = Outputs::default();
    let generated = |outputs: &Outputs| {
        outputs.counters.total_of(Direction::Uplink, Origin::Background, EventKind::Generated).count
    };
    let began = thread_processor_ns();
    let mut now = Time::ZERO;
    while generated(&outputs) < packets && machine.next_deadline().is_some() && now < LONGEST {
        now += Span::from_secs(1);
        machine.advance(now, &mut Cx::new(&mut outputs));
    }
    let elapsed = thread_processor_ns() - began;
    let generated = generated(&outputs);
    (generated >= FEWEST).then(|| elapsed as f64 / generated as f64)
}
