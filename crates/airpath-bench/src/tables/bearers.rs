// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Processor time of radio bearers in virtual time: of each frame, on one link and on ten thousand in one world.

use std::num::NonZeroUsize;

use airpath_core::{Direction, EventKind, Origin, Pdu, PortId, Seed, Span, Time};
use airpath_live::clock::thread_processor_ns;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use airpath_virtual::{Endpoint, MachineId, Progress, Sent, Until, World};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Options;
use crate::report::{Table, Target, short};
use crate::statistics::Samples;
use crate::testbed::Failure;

const ROUNDS: usize = 5;
const MANY: u64 = 10_000;
/// Greatest processor time of a frame of RLP.
const OF_A_FRAME_NS: f64 = 1_000.0;
/// A packet of 200 bytes in this time takes most of 9.6 kbit/s.
const INTERVAL: Span = Span::from_millis(200);
const PACKET: u32 = 200;

pub fn measure(options: &Options) -> Result<Table, Failure> {
    let columns = ["bearer", "links", "errors", "frames", "ns a frame", "links in real time, one core"];
    let mut table = Table::new("bearers", "radio bearers in virtual time: cost of a frame, medians", &columns);
    let bearers = [("rlp", 240, json!({ "type": "rlp" })), ("gprs", 456, json!({ "type": "gprs" }))];
    for (name, bits, entity) in bearers {
        for (errors, probability) in [("none", 0.0), ("5 % of frames", 0.05)] {
            let link = link(bits, &entity, probability)?;
            for count in [1, MANY] {
                // As many frames on one link as on all.
                let seconds = options.seconds(if count == 1 { 4_000.0 } else { 8.0 });
                let rounds: Vec<(f64, u64)> = (0..ROUNDS).map(|_| play(&link, count, seconds)).collect();
                let cost = Samples::new(rounds.iter().map(|(cost, _)| *cost)).quantile(0.5);
                let frames = rounds[0].1;
                let fits = seconds * 1e9 * count as f64 / (cost * frames as f64);
                let words = [name.into(), count.to_string(), errors.into(), frames.to_string(), short(cost)];
                table.row(words.into_iter().chain([short(fits.round())]));
                let aim = (name == "rlp").then_some(Target::AtMost(OF_A_FRAME_NS));
                table.figure(
                    "frame of a radio bearer",
                    format!("{name}, {count} links, errors: {errors}"),
                    cost,
                    "ns",
                    aim,
                );
            }
        }
    }
    table.notes.push(format!("a packet of {PACKET} bytes in {INTERVAL} in either direction; counters only"));
    Ok(table)
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::from(format!("an example is wrong: {error}")))
}

fn link(bits: u32, entity: &Value, probability: f64) -> Result<LinkConfig, Failure> {
    Ok(LinkConfig {
        rate: read(json!({ "type": "slotted", "slot": "20 ms", "bits": format!("{bits} bit") }))?,
        propagation: Span::from_millis(90).into(),
        send_buffer: read(json!("4 packets"))?,
        errors: read(json!({ "type": "bernoulli", "probability": probability, "per": "frame" }))?,
        entity: read(entity.clone())?,
        ..LinkConfig::default()
    })
}

/// Sends a packet in every interval, and takes what comes.
struct Talker {
    next: Time,
}

impl Endpoint for Talker {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.advance(at, out);
    }
    fn receive(&mut self, _: Time, _: Pdu, _: &mut Sent) {}
    fn advance(&mut self, at: Time, out: &mut Sent) {
        out.push(Pdu { len: PACKET, header_len: 40, ..Pdu::default() });
        self.next = at + INTERVAL;
    }
    fn next_deadline(&self) -> Option<Time> {
        Some(self.next)
    }
    fn progress(&self) -> Progress {
        Progress::Active
    }
}

/// Processor time of a frame in nanoseconds, and the number of frames, in so many virtual seconds over `count` links.
fn play(link: &LinkConfig, count: u64, seconds: f64) -> (f64, u64) {
    let hop = HopConfig { name: "radio".into(), uplink: link.clone(), downlink: link.clone() };
    let config = PathConfig { hops: vec![hop], ..PathConfig::default() };
    let mut world: World = World::new();
    for index in 0..count {
        let machine: MachineId = world.machine(Box::new(Path::new(&config, Seed(index))), ());
        for port in [PortId::CLIENT, PortId::SERVER] {
            world.attach(1, machine, port, Time::ZERO, Box::new(Talker { next: Time::ZERO }));
        }
    }
    let began = thread_processor_ns();
    let outcome = world.run(Until::At(Time::from_nanos((seconds * 1e9) as u64)), NonZeroUsize::MIN);
    let elapsed = thread_processor_ns() - began;
    assert!(outcome.is_ok(), "no command is refused and every link has a delay");
    let mut frames = 0;
    for machine in world.finish() {
        for direction in Direction::ALL {
            for origin in [Origin::User, Origin::Control] {
                frames += machine.counters.total_of(direction, origin, EventKind::FrameSent).count;
            }
        }
    }
    (elapsed as f64 / frames as f64, frames)
}
