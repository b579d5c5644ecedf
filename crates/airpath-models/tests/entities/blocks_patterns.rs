// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of Reed-Solomon blocks under every pattern of losses, against a plain model, and under bit errors, against
//! the binomial distribution.

use airpath_core::{EventKind, PortId, Seed};
use airpath_models::Path;
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::blocks::{BlocksConfig, Policy};

use super::blocks::{path, policy};
use crate::common::*;

const PACKETS: [u32; 4] = [100, 1263, 3000, 500];

/// Frames that are lost: bit n for frame n.
const PATTERN_BITS: u32 = 9;

/// Packets that leave, with the time in ms at which they do: a loop over frames. FLEX halves the number of blocks with
/// each loss; four frames in a row add one.
fn expected(policy: Policy, retransmissions: Option<u16>, pattern: u32) -> Vec<(u64, u64)> {
    let (mut blocks, data) = match policy {
        Policy::Bold | Policy::Flex => (5, 255),
        Policy::Light => (5, 255 - 12),
        Policy::Robust => (1, 255 - 74),
        Policy::Custom => (3, 255 - 100),
    };
    let (mut now, mut frame, mut in_a_row) = (0, 0, 0);
    let mut left = Vec::new();
    'packets: for (number, bytes) in (1..).zip(PACKETS) {
        let (mut rest, mut losses) = (bytes, 0);
        while rest > 0 {
            let mut used = blocks;
            while used > 1 && (used - 1) * data >= rest + 12 {
                used -= 1;
            }
            now += u64::from(used);
            let is_lost = frame < PATTERN_BITS && pattern >> frame & 1 == 1;
            frame += 1;
            if is_lost {
                losses += 1;
                if policy == Policy::Flex {
                    (blocks, in_a_row) = ((blocks / 2).max(1), 0);
                }
                now += 1;
                if retransmissions.is_some_and(|most| losses > most) {
                    continue 'packets;
                }
                continue;
            }
            losses = 0;
            rest = rest.saturating_sub(used * data - 12);
            if rest == 0 {
                left.push((number, now));
            }
            now += 1;
            in_a_row += 1;
            if in_a_row == 4 && policy == Policy::Flex {
                (blocks, in_a_row) = ((blocks + 1).min(5), 0);
            }
        }
    }
    left
}

fn config(choice: Policy) -> BlocksConfig {
    let custom = BlocksConfig { blocks: Some(3), parity: Some(100), ..policy(Policy::Custom) };
    if choice == Policy::Custom { custom } else { policy(choice) }
}

#[test]
fn every_pattern_of_losses_ends_as_in_a_plain_model() {
    let mut delivered = 0;
    for choice in [Policy::Bold, Policy::Light, Policy::Robust, Policy::Flex, Policy::Custom] {
        for retransmissions in [None, Some(0), Some(1)] {
            for pattern in 0..1 << PATTERN_BITS {
                let lost: Vec<String> =
                    (0..PATTERN_BITS).filter(|bit| pattern >> bit & 1 == 1).map(|bit| bit.to_string()).collect();
                let process = match lost.is_empty() {
                    true => ErrorsConfig::default().process,
                    false => {
                        let positions = Some(lost.join(", ").parse().unwrap());
                        ErrorProcessConfig::Positions(PositionsConfig { positions, file: None, repeat: None })
                    }
                };
                let errors = ErrorsConfig { process, per: Per::Frame, ..ErrorsConfig::default() };
                let config = path(BlocksConfig { retransmissions, ..config(choice) }, errors);
                let script = PACKETS.iter().map(|len| offer(ms(0), PortId::CLIENT, *len)).collect();
                let trace = run_to(Path::new(&config, Seed(1)), &script, ms(1_000));
                assert_eq!(trace.held, 0);
                let left: Vec<(u64, u64)> =
                    trace.departures.iter().map(|left| (left.id, left.at.nanos() / 1_000_000)).collect();
                let what = format!("{choice:?}, {retransmissions:?}, {pattern:09b}");
                assert_eq!(left, expected(choice, retransmissions, pattern), "{what}");
                assert!(left.is_sorted() && (retransmissions.is_some() || left.len() == PACKETS.len()), "{what}");
                delivered += left.len();
            }
        }
    }
    assert!(delivered > 15_000, "{delivered}");
}

/// Independent errors of bits, p = 0.002: a byte is wrong with 1 - (1 - p)^8, a block of LIGHT is decoded with at most
/// six wrong bytes, and a frame if its five blocks are. The number of frames lies within a 99 % interval.
#[test]
fn bit_errors_cost_as_many_frames_as_the_binomial_distribution_says() {
    const PACKETS: u32 = 2_000;
    let p: f64 = 0.002;
    let wrong = 1.0 - (1.0 - p).powi(8);
    for (choice, correctable, blocks) in [(Policy::Light, 6, 5), (Policy::Custom, 2, 2)] {
        let mut entity = policy(choice);
        if choice == Policy::Custom {
            (entity.blocks, entity.parity) = (Some(2), Some(5));
        }
        let data = 255 - if choice == Policy::Light { 12 } else { 5 };
        let mut term = (1.0 - wrong).powi(255);
        let mut decoded = term;
        for errors in 1..=correctable {
            term *= wrong / (1.0 - wrong) * f64::from(256 - errors) / f64::from(errors);
            decoded += term;
        }
        let success = decoded.powi(blocks);
        let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read(&p.to_string()) });
        let effect = EffectConfig { effect: Effect::Corrupt, ..EffectConfig::default() };
        let errors = ErrorsConfig { process, per: Per::Bit, effect, ..ErrorsConfig::default() };
        let config = path(entity, errors);
        let script = (0..PACKETS).map(|_| offer(ms(0), PortId::CLIENT, blocks as u32 * data - 12)).collect();
        let trace = run(Path::new(&config, Seed(11)), &script);
        assert_eq!(trace.departures.len(), PACKETS as usize);
        let frames = trace.of_kind(EventKind::FrameSent).len() as f64;
        let (mean, deviation) = (1.0 / success, (1.0 - success).sqrt() / success);
        let bound = 2.576 * deviation * f64::from(PACKETS).sqrt();
        assert!((frames - f64::from(PACKETS) * mean).abs() < bound, "{frames} frames, {choice:?}, success {success}");
    }
}
