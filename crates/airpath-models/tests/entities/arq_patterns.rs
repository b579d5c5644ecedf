// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! ARQ under every pattern of losses, against a plain model of its own, and the number of tries against theory.

use std::sync::Arc;

use airpath_core::{EventKind, PortId, Seed};
use airpath_models::LinkConfig;
use airpath_models::Path;
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::arq::{ArqConfig, LastTry};

use super::arq::{arq_link, over_bins, quality};
use crate::common::*;
use crate::toys::bins::{Conditions, Radio};

/// Packets of 1, 2, 1 and 2 frames of 1000 bits.
const PACKETS: [u32; 4] = [1, 2, 1, 2];

/// Slots from the end of a slot to the answer.
const ANSWER: u64 = 2;

/// A small world: bins side by side, tries after the first, order, and the frames that are lost, a bit for each
/// (slot, bin) in this order.
#[derive(Clone, Copy, Debug)]
struct World {
    bins: u64,
    retransmissions: u16,
    in_order: bool,
    pattern: u64,
}

/// Packets that leave, with the number of the slot before which they do: frame by frame, without pieces, positions or
/// buffers.
fn expected(world: World) -> Vec<(u64, u64)> {
    let owner: Vec<usize> = PACKETS.iter().enumerate().flat_map(|(k, frames)| vec![k; *frames as usize]).collect();
    let (mut tries, mut settled) = (vec![0; owner.len()], vec![None; owner.len()]);
    // Slot from which each frame may be sent; none while it is on the air.
    let mut ready: Vec<Option<u64>> = vec![Some(0); owner.len()];
    let mut slot = 0;
    while settled.iter().any(Option::is_none) {
        for bin in 0..world.bins {
            let may = |frame: &usize| settled[*frame].is_none() && ready[*frame].is_some_and(|from| from <= slot);
            let repeated = (0..owner.len()).filter(may).find(|frame| tries[*frame] > 0);
            let Some(frame) = repeated.or_else(|| (0..owner.len()).find(may)) else { continue };
            tries[frame] += 1;
            let place = slot * world.bins + bin;
            let is_hit = place < 64 && world.pattern >> place & 1 == 1;
            if !is_hit || tries[frame] > world.retransmissions {
                settled[frame] = Some((slot + 1, is_hit));
            } else {
                ready[frame] = Some(slot + 1 + ANSWER);
            }
        }
        slot += 1;
    }
    let mut left = Vec::new();
    let mut before = 0;
    for (packet, _) in PACKETS.iter().enumerate() {
        let own = || (0..owner.len()).filter(|frame| owner[*frame] == packet).filter_map(|frame| settled[frame]);
        let complete = own().map(|(slot, _)| slot).max().unwrap_or(0);
        before = before.max(complete);
        if own().all(|(_, is_lost)| !is_lost) {
            left.push((if world.in_order { before } else { complete }, packet as u64 + 1));
        }
    }
    left.sort_unstable();
    left
}

fn played(world: World) -> Vec<(u64, u64)> {
    let World { bins, pattern, retransmissions, in_order } = world;
    let radio: Radio = Arc::new(move |_, resource, slot| {
        let place = slot * bins + u64::from(resource);
        let bits = if u64::from(resource) < bins { 1000 } else { 0 };
        Conditions { bits, quality: quality(place < 64 && pattern >> place & 1 == 1, resource, slot) }
    });
    let config = ArqConfig { retransmissions, in_order, last_try: LastTry::Drop, ..ArqConfig::default() };
    let script = PACKETS.iter().map(|frames| offer(ms(0), PortId::CLIENT, 125 * frames)).collect();
    let trace = run(over_bins(&arq_link(&config, ErrorsConfig::default()), span("1 ms"), radio), &script);
    assert_eq!(trace.held, 0);
    let mut left: Vec<_> = trace.departures.iter().map(|left| (left.at.nanos() / 1_000_000, left.id)).collect();
    assert!(!in_order || left.is_sorted());
    left.sort_unstable();
    left
}

/// All losses in the first slots: what leaves, and when, is what the plain model says.
#[test]
fn every_pattern_of_losses_ends_as_in_a_plain_model() {
    for bins in [1, 2] {
        for retransmissions in [0, 1, 2, 100] {
            for in_order in [false, true] {
                for pattern in 0..1 << 9 {
                    let world = World { bins, retransmissions, in_order, pattern };
                    let expected = expected(world);
                    assert_eq!(played(world), expected, "{world:?}");
                    assert!(retransmissions < 100 || expected.len() == PACKETS.len());
                }
            }
        }
    }
}

/// Independent losses of probability p, n retransmissions: a frame is sent (1 - p^(n+1)) / (1 - p) times and lost with
/// probability p^(n+1). Both are within 99 % intervals.
#[test]
fn tries_and_losses_are_those_of_theory() {
    const FRAMES: u32 = 8_000;
    const QUANTILE: f64 = 2.576;
    for (p, n) in [(0.3f64, 3u16), (0.5, 1), (0.1, 0)] {
        let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read(&p.to_string()) });
        let errors = ErrorsConfig { process, per: Per::Frame, ..ErrorsConfig::default() };
        let config = ArqConfig { retransmissions: n, last_try: LastTry::Drop, ..ArqConfig::default() };
        let link = LinkConfig { rate: read("1 Mbit/s"), ..arq_link(&config, errors) };
        assert_eq!(link.problems(), []);
        let script: Script = (0..FRAMES).map(|_| offer(ms(0), PortId::CLIENT, 125)).collect();
        let trace = run(Path::new(&one_hop("radio", link.clone(), link), Seed(7)), &script);
        let residual = p.powi(i32::from(n) + 1);
        let lost = trace.of_kind(EventKind::Dropped).len() as f64;
        let deviation = (f64::from(FRAMES) * residual * (1.0 - residual)).sqrt();
        assert!((lost - f64::from(FRAMES) * residual).abs() < QUANTILE * deviation, "{lost} lost, p {p}, n {n}");
        let tries = trace.of_kind(EventKind::FrameSent).len() as f64;
        let probability = |k: i32| if k <= i32::from(n) { p.powi(k - 1) * (1.0 - p) } else { p.powi(i32::from(n)) };
        let mean = (1.0 - residual) / (1.0 - p);
        let square: f64 = (1..=i32::from(n) + 1).map(|k| probability(k) * f64::from(k * k)).sum();
        let deviation = (f64::from(FRAMES) * (square - mean * mean)).sqrt();
        let bound = QUANTILE * deviation + 1e-9;
        assert!((tries - f64::from(FRAMES) * mean).abs() < bound, "{tries} tries, p {p}, n {n}");
    }
}
