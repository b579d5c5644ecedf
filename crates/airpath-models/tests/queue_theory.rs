// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Queues against queueing theory, in virtual time: waits and losses of M/D/1 and M/M/1/K, and which
//! packet a random drop hits. Seeds are fixed, so that a test fails for a reason.

use airpath_core::counters::Site;
use airpath_core::{Cx, Direction, Item, Machine, Origin, Outputs, Pdu, PortId, Seed, Stage, Time};
use airpath_core::{DrawKey, DrawScope, EventKind};
use airpath_models::queueing::infinite::InfiniteConfig;
use airpath_models::queueing::random_drop::RandomDropConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::queueing::{Queue, QueueConfig, Queueing};
use airpath_models::stage::StageCx;
use airpath_models::{LinkConfig, Path};

use crate::common::{Dice, one_hop, read};

/// The link's rate is 8 Mbit/s: a byte takes a microsecond, a packet of mean length a millisecond.
const MEAN_BYTES: f64 = 1000.0;
const PACKETS: usize = 400_000;

/// Result of a run of Poisson arrivals: the time in the system of each packet that left, in milliseconds, in
/// their order, and for each that arrived 1 if it was dropped and 0 if not.
struct Run {
    times_ms: Vec<f64>,
    dropped: Vec<f64>,
}

fn exponential(dice: &mut Dice) -> f64 {
    -(1.0 - dice.unit()).ln()
}

fn run(queue: QueueConfig, load: f64, seed: u64, mut length: impl FnMut(&mut Dice) -> u32) -> Run {
    let link = LinkConfig { rate: read("8 Mbit/s"), queue, ..LinkConfig::default() };
    let mut path = Path::new(&one_hop("radio", link.clone(), link), Seed(seed));
    let mut dice = Dice::new(seed);
    let mut outputs = Outputs::default();
    let (mut now, mut times_ms, mut dropped, mut drops) = (0.0, Vec::new(), Vec::new(), 0);
    for id in 1..=PACKETS as u64 {
        now += exponential(&mut dice) * MEAN_BYTES * 1_000.0 / load;
        let pdu = Pdu { id, len: length(&mut dice), ..Pdu::default() };
        path.offer(Time::from_nanos(now as u64), PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
        // The drop of a packet that arrives is recorded with its offer.
        let counters = outputs.counters.site(0, Direction::Uplink, Origin::User);
        let before = std::mem::replace(&mut drops, counters.kind(EventKind::Dropped).count);
        dropped.push((drops - before) as f64);
        for emission in outputs.emissions.drain(..) {
            let Item::Pdu(pdu) = emission.item else { unreachable!() };
            times_ms.push(emission.at.since(pdu.arrived).nanos() as f64 / 1e6);
        }
    }
    Run { times_ms, dropped }
}

/// The mean of `values`, and the half width of its confidence interval at 99.9 %, from the means of 40
/// batches, which are long enough to be nearly independent (Student's t with 39 degrees of freedom:
/// 3.558).
fn mean_of(values: &[f64]) -> (f64, f64) {
    const BATCHES: usize = 40;
    let size = values.len() / BATCHES;
    let means: Vec<f64> =
        values.chunks_exact(size).take(BATCHES).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let variance = means.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
    (mean, 3.558 * (variance / BATCHES as f64).sqrt())
}

fn assert_mean(values: &[f64], theory: f64, what: &str) {
    let (mean, half) = mean_of(values);
    assert!((mean - theory).abs() < half, "{what}: {mean} ± {half}, and theory says {theory}");
    assert!(half < 0.08 * theory, "{what}: ± {half} tells nothing of {theory}");
}

/// M/D/1: the mean wait before transmission is ρ / (2 (1 − ρ)) transmission times (Pollaczek and
/// Khinchine).
#[test]
fn waits_of_m_d_1() {
    let queues =
        [QueueConfig::Infinite(InfiniteConfig {}), QueueConfig::TailDrop(TailDropConfig { limit: read("unlimited") })];
    for (queue, load, seed) in [(&queues[0], 0.5, 11), (&queues[0], 0.8, 12), (&queues[1], 0.7, 13)] {
        let Run { times_ms, .. } = run(queue.clone(), load, seed, |_| 1000);
        let waits: Vec<f64> = times_ms.iter().map(|time| time - 1.0).collect();
        assert_mean(&waits, load / (2.0 * (1.0 - load)), &format!("M/D/1 at {load}"));
    }
}

/// M/M/1/K: with p_n = (1 − ρ) ρⁿ / (1 − ρ^(K+1)) packets in the system the share of arrivals that is
/// dropped is p_K, and the mean time in the system is Σ n p_n / (λ (1 − p_K)) (Little). K is the queue's
/// limit and the packet under transmission.
#[test]
fn losses_and_times_of_m_m_1_k() {
    for (limit, load, seed) in [("9 packets", 0.9, 21), ("4 packets", 1.3, 22)] {
        let queue = QueueConfig::TailDrop(TailDropConfig { limit: read(limit) });
        let Run { times_ms, dropped } = run(queue, load, seed, |dice| {
            // Whole bytes: 1000.5 on the mean rather than 1000, a difference far below the confidence.
            (exponential(dice) * MEAN_BYTES).ceil().max(1.0) as u32
        });
        let k: u32 = limit.split(' ').next().unwrap().parse::<u32>().unwrap() + 1;
        let weights: Vec<f64> = (0..=k).map(|n| load.powi(n as i32)).collect();
        let total: f64 = weights.iter().sum();
        let blocking = weights[k as usize] / total;
        let in_system: f64 = weights.iter().enumerate().map(|(n, weight)| n as f64 * weight / total).sum();
        // Arrivals per millisecond are the load.
        assert_mean(&times_ms, in_system / (load * (1.0 - blocking)), &format!("time of M/M/1/{k} at {load}"));

        assert_mean(&dropped, blocking, &format!("blocking of M/M/1/{k} at {load}"));
    }
}

/// A full queue of seven and the packet that arrives: each of the eight is hit with the same
/// probability.
#[test]
fn a_random_drop_hits_each_packet_alike() {
    let key =
        DrawKey::new(Seed(3), &DrawScope { hop: "radio", direction: Direction::Uplink, role: "queue", instance: 0 });
    let config = QueueConfig::RandomDrop(RandomDropConfig { limit: read("7 packets") });
    let mut queue = Queue::new(&config, key);
    let mut outputs = Outputs { level: airpath_core::LogLevel::Events, ..Outputs::default() };
    let (mut hits, mut held) = ([0u32; 8], Vec::new());
    for id in 0..40_007u64 {
        let site = Site { hop: 0, direction: Direction::Uplink, state: 0, stage: Stage::Queue };
        let mut cx = Cx::new(&mut outputs);
        queue.enqueue(Pdu { id, len: 100, ..Pdu::default() }, &mut StageCx::new(site, Time::ZERO, &mut cx));
        held.push(id);
        let dropped = outputs.events.drain(..).find(|event| event.kind == EventKind::Dropped);
        if let Some(event) = dropped {
            let place = held.iter().position(|id| *id == event.pdu).unwrap();
            held.remove(place);
            hits[place] += 1;
        }
    }
    assert_eq!(hits.iter().sum::<u32>(), 40_000);
    let chi: f64 = hits.iter().map(|count| (f64::from(*count) - 5_000.0).powi(2) / 5_000.0).sum();
    // 7 degrees of freedom at a level of 1e-4: 29.9.
    assert!(chi < 29.9, "{chi} {hits:?}");
}
