// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Worlds of sources and sinks: what a packet costs from one endpoint to the other.

use std::num::NonZeroUsize;
use std::time::Instant;

use airpath_core::{Pdu, PortId, Seed, Span, Time};
use airpath_live::clock::thread_processor_ns;
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use airpath_virtual::{Endpoint, MachineId, Progress, Sent, Until, World};

/// The time between two packets of a source: 1500 bytes take one of 1.05 ms at 12 Mbit/s, so that the
/// link is busy and nothing is dropped.
const INTERVAL: Span = Span::from_micros(1_050);

/// Sends 1500 bytes in every interval.
struct Source {
    left: u64,
    next: Time,
}

impl Endpoint for Source {
    fn start(&mut self, at: Time, out: &mut Sent) {
        self.advance(at, out);
    }
    fn receive(&mut self, _: Time, _: Pdu, _: &mut Sent) {}
    fn advance(&mut self, at: Time, out: &mut Sent) {
        out.push(Pdu { len: 1500, header_len: 40, ..Pdu::default() });
        self.left -= 1;
        self.next = at + INTERVAL;
    }
    fn next_deadline(&self) -> Option<Time> {
        (self.left > 0).then_some(self.next)
    }
    fn progress(&self) -> Progress {
        if self.left > 0 { Progress::Active } else { Progress::Done }
    }
}

/// Takes what comes.
struct Sink;

impl Endpoint for Sink {
    fn start(&mut self, _: Time, _: &mut Sent) {}
    fn receive(&mut self, _: Time, _: Pdu, _: &mut Sent) {}
    fn advance(&mut self, _: Time, _: &mut Sent) {}
    fn next_deadline(&self) -> Option<Time> {
        None
    }
    fn progress(&self) -> Progress {
        Progress::Done
    }
}

/// Arrangement of the paths of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paths {
    /// Each by itself.
    Apart,
    /// All connected, through ports that carry nothing, so that one order of events rules them all.
    Together,
}

/// Nanoseconds for a packet.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// By the clock on the wall.
    pub wall_ns: f64,
    /// Of the calling thread's processor, which is all there is with one thread.
    pub processor_ns: f64,
}

/// Runs `packets` packets in all over `count` paths of `link`.
pub fn cost(link: &LinkConfig, count: u64, paths: Paths, packets: u64, threads: NonZeroUsize) -> Cost {
    let mut world: World = World::new();
    let machine = |index: u64| {
        let hop = HopConfig { name: "radio".into(), uplink: link.clone(), downlink: link.clone() };
        Box::new(Path::new(&PathConfig { hops: vec![hop], ..PathConfig::default() }, Seed(index)))
    };
    let machines: Vec<MachineId> = (0..count).map(|index| world.machine(machine(index), ())).collect();
    for id in &machines {
        let source = Source { left: packets / count, next: Time::ZERO };
        world.attach(1, *id, PortId::CLIENT, Time::ZERO, Box::new(source));
        world.attach(1, *id, PortId::SERVER, Time::ZERO, Box::new(Sink));
    }
    if paths == Paths::Together {
        for pair in machines.windows(2) {
            world.connect((pair[0], PortId(2)), (pair[1], PortId(3)));
        }
    }
    let (began, processor) = (Instant::now(), thread_processor_ns());
    let outcome = world.run(Until::Done { latest: Time::NEVER }, threads);
    let (wall, processor) = (began.elapsed().as_nanos(), thread_processor_ns() - processor);
    assert!(outcome.is_ok(), "no command is refused and every link has a delay");
    let sent = (packets / count * count) as f64;
    Cost { wall_ns: wall as f64 / sent, processor_ns: processor as f64 / sent }
}
