// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A naïve link of one packet at a time, and how a model is compared with what stands before it.

use airpath_core::{Cause, Direction, DrawKey, DrawScope, Ecn, EventKind, PortId, Seed};
use airpath_models::queueing::QueueConfig;
use airpath_models::{LinkConfig, Path};

use crate::common::{Action, Dice, Script, Trace, check_laws, ecn_of, one_hop, read};

/// A packet in a reference.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    pub id: u64,
    pub len: u64,
    pub ecn: Ecn,
    pub arrived: u64,
}

/// Actions of a reference, each with its time in nanoseconds and the packet's number.
#[derive(Debug, Default, PartialEq)]
pub struct Deeds {
    pub dropped: Vec<(u64, u64)>,
    pub marked: Vec<(u64, u64)>,
    pub left: Vec<(u64, u64)>,
}

impl Deeds {
    /// Marks `packet`, which is ECN-capable.
    pub fn mark(&mut self, now: u64, packet: &mut Packet) {
        if packet.ecn != Ecn::Ce {
            self.marked.push((now, packet.id));
            packet.ecn = Ecn::Ce;
        }
    }
}

/// A queue as its RFC writes it.
pub trait Discipline {
    fn enqueue(&mut self, now: u64, packet: Packet, deeds: &mut Deeds);
    fn dequeue(&mut self, now: u64, deeds: &mut Deeds) -> Option<Packet>;
}

/// 8 Mbit/s: a byte takes a microsecond.
const BYTE_NS: u64 = 1_000;

fn reference(mut queue: impl Discipline, arrivals: &[Packet]) -> Deeds {
    let mut deeds = Deeds::default();
    let mut on_air: Option<(u64, Packet)> = None;
    let end = Packet { id: 0, len: 0, ecn: Ecn::NotEct, arrived: u64::MAX };
    for arrival in arrivals.iter().chain([&end]) {
        while let Some((done, packet)) = on_air.filter(|(done, _)| *done <= arrival.arrived) {
            deeds.left.push((done, packet.id));
            on_air = queue.dequeue(done, &mut deeds).map(|next| (done + next.len * BYTE_NS, next));
        }
        if arrival.id > 0 {
            queue.enqueue(arrival.arrived, *arrival, &mut deeds);
            if on_air.is_none() {
                let next = queue.dequeue(arrival.arrived, &mut deeds);
                on_air = next.map(|next| (arrival.arrived + next.len * BYTE_NS, next));
            }
        }
    }
    deeds
}

/// Arrivals for `seconds`, in phases of light load, overload and silence.
pub fn arrivals(seed: u64, seconds: f64) -> Script {
    let mut dice = Dice::new(seed);
    let mut script = Script::new();
    let (mut now, end) = (0.0, seconds * 1e9);
    while now < end {
        let phase = now + 5e7 + dice.unit() * 1.5e9;
        let load = [0.0, 0.4, 0.9, 1.1, 1.5, 2.5][dice.below(6) as usize];
        if load == 0.0 {
            now = phase;
        }
        while now < phase.min(end) {
            let len = [40, 125, 576, 1500, 1500][dice.below(5) as usize];
            let header_len = [20, 20, 40, 40, 0, 60][dice.below(6) as usize];
            let burst = if dice.below(20) == 0 { 1 + dice.below(30) } else { 1 };
            for _ in 0..burst {
                let action = Action::Offer { port: PortId::CLIENT, len, header_len };
                script.push((airpath_core::Time::from_nanos(now as u64), action));
            }
            let mean = f64::from(len) * BYTE_NS as f64 * burst as f64 / load;
            now += -(1.0 - dice.unit()).ln() * mean;
        }
    }
    script
}

/// Actions of the model.
fn deeds_of(trace: &Trace) -> Deeds {
    let of = |kind: EventKind| -> Vec<(u64, u64)> {
        trace.of_kind(kind).into_iter().map(|event| (event.at.nanos(), event.pdu)).collect()
    };
    let left = trace.departures.iter().map(|departure| (departure.at.nanos(), departure.id)).collect();
    Deeds { dropped: of(EventKind::Dropped), marked: of(EventKind::Marked), left }
}

/// The seed of every run of a model here.
pub const SEED: Seed = Seed(7);

/// The key of the queue's draws.
pub fn key() -> DrawKey {
    let scope = DrawScope { hop: "radio", direction: Direction::Uplink, role: "queue", instance: 0 };
    DrawKey::new(SEED, &scope)
}

/// Runs `queue` before a link of 8 Mbit/s, holding it to the laws.
pub fn run(queue: QueueConfig, script: &Script) -> Trace {
    let link = LinkConfig { rate: read("8 Mbit/s"), queue, ..LinkConfig::default() };
    check_laws(|| Path::new(&one_hop("radio", link.clone(), LinkConfig::default()), SEED), script, 1)
}

/// Compares a model with its reference, and returns what both did.
pub fn compare(queue: QueueConfig, reference_queue: impl Discipline, script: &Script) -> (Trace, Deeds) {
    let mut packets = Vec::new();
    for (at, action) in script {
        let Action::Offer { len, header_len, .. } = action else { continue };
        let (id, len, ecn) = (packets.len() as u64 + 1, u64::from(*len), ecn_of(*header_len));
        packets.push(Packet { id, len, ecn, arrived: at.nanos() });
    }
    let expected = reference(reference_queue, &packets);
    let trace = run(queue, script);
    let deeds = deeds_of(&trace);
    let first = |one: &[(u64, u64)], other: &[(u64, u64)], what: &str| {
        let index = one.iter().zip(other).take_while(|(one, other)| one == other).count();
        let near = |all: &[(u64, u64)]| all[index.saturating_sub(1)..all.len().min(index + 3)].to_vec();
        assert!(one == other, "{what} differ at index {index}: {:?} against {:?}", near(one), near(other));
    };
    first(&deeds.dropped, &expected.dropped, "drops");
    first(&deeds.marked, &expected.marked, "marks");
    first(&deeds.left, &expected.left, "departures");
    (trace, deeds)
}

/// Number of packets that management dropped.
pub fn managed(trace: &Trace) -> usize {
    trace.of_kind(EventKind::Dropped).iter().filter(|event| event.cause == Cause::QueueManagement).count()
}
