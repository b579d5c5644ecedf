// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Losses that repetition leaves: Eckhardt and Steenkiste 2002, Figure 5, for independent losses, and an exact Markov
//! chain for losses in bursts.

use airpath_core::{EventKind, PortId, Seed};
use airpath_models::channel::ErrorsConfig;
use airpath_models::entity::EntityConfig;
use airpath_models::{LinkConfig, Path};
use serde_json::{Value, json};

use crate::common::*;

const PACKETS: u32 = 8_000;

/// Standard deviations within which all 32 cases of a test lie with a probability of 99 %.
const QUANTILE: f64 = 3.6;

/// Number of packets lost of [`PACKETS`], with the entity of this type, so many retransmissions, and these errors.
fn lost(kind: &str, retransmissions: u16, errors: &Value) -> f64 {
    let mut entity = json!({ "type": kind, "retransmissions": retransmissions });
    match kind {
        // Stop and wait, as in the other one: the tries of a packet follow one another.
        "persistent" => entity["window"] = json!(1),
        _ => entity["policy"] = json!("robust"),
    }
    let entity: EntityConfig = serde_json::from_value(entity).unwrap();
    let errors: ErrorsConfig = serde_json::from_value(errors.clone()).unwrap();
    let link =
        LinkConfig { rate: read("1 Mbit/s"), send_buffer: read("unlimited"), entity, errors, ..LinkConfig::default() };
    assert_eq!(link.problems(), []);
    let script = (0..PACKETS).map(|_| offer(ms(0), PortId::CLIENT, 125)).collect();
    let trace = run(Path::new(&one_hop("radio", link.clone(), link), Seed(5)), &script);
    let lost = trace.of_kind(EventKind::Dropped).len();
    assert_eq!(trace.departures.len() + lost, PACKETS as usize);
    lost as f64
}

/// Independent losses of probability p, n retransmissions: p^(n+1) of the packets are lost.
#[test]
fn independent_losses_leave_a_power_of_their_probability() {
    for kind in ["persistent", "blocks"] {
        for p in [0.1f64, 0.3, 0.5, 0.8] {
            for n in [0, 1, 2, 4] {
                let lost = lost(kind, n, &json!({ "type": "bernoulli", "probability": p, "per": "frame" }));
                let residual = p.powi(i32::from(n) + 1);
                let deviation = (f64::from(PACKETS) * residual * (1.0 - residual)).sqrt();
                let bound = QUANTILE * deviation + 0.5;
                assert!((lost - f64::from(PACKETS) * residual).abs() < bound, "{kind}: {lost} lost, p {p}, n {n}");
            }
        }
    }
}

type Matrix = [[f64; 2]; 2];

fn product(a: Matrix, b: Matrix) -> Matrix {
    [0, 1].map(|i| [0, 1].map(|j| a[i][0] * b[0][j] + a[i][1] * b[1][j]))
}

fn sum(a: Matrix, b: Matrix) -> Matrix {
    [0, 1].map(|i| [0, 1].map(|j| a[i][j] + b[i][j]))
}

/// The mean number of packets lost and its standard deviation. The chain of the channel's state at the first try of
/// each packet has two parts, packets that arrive and packets that are lost. A step of the channel is lost or not by
/// its present state, and then changes.
fn theory(n: u16, [to_bad, to_good]: [f64; 2], error: [f64; 2]) -> (f64, f64) {
    let change = [[1.0 - to_bad, to_bad], [to_good, 1.0 - to_good]];
    let weighed = |of: [f64; 2]| [0, 1].map(|i| [0, 1].map(|j| of[i] * change[i][j]));
    let (loses, spares) = (weighed(error), weighed(error.map(|error| 1.0 - error)));
    let (mut losses, mut arrives) = ([[1.0, 0.0], [0.0, 1.0]], [[0.0; 2]; 2]);
    for _ in 0..=n {
        arrives = sum(arrives, product(losses, spares));
        losses = product(losses, loses);
    }
    let packet = sum(arrives, losses);
    let step = |state: [f64; 2], by: &Matrix| [0, 1].map(|j| state[0] * by[0][j] + state[1] * by[1][j]);
    let lose = |state: [f64; 2]| step(state, &losses).iter().sum::<f64>();
    // The channel begins in the good state.
    let (mut state, mut mean, mut variance) = ([1.0, 0.0], 0.0, 0.0);
    for packet_number in 0..PACKETS {
        let chance = lose(state);
        mean += chance;
        variance += chance * (1.0 - chance);
        // Covariance with later packets: the state behind a loss of this one, against that whatever becomes of it.
        let mut behind_loss = step(state, &losses);
        let mut behind = step(state, &packet);
        for _ in packet_number + 1..PACKETS.min(packet_number + 200) {
            variance += 2.0 * (lose(behind_loss) - chance * lose(behind));
            (behind_loss, behind) = (step(behind_loss, &packet), step(behind, &packet));
        }
        state = step(state, &packet);
    }
    (mean, variance.sqrt())
}

/// Losses in bursts leave more packets lost, as many as the chain says.
#[test]
fn losses_in_bursts_leave_what_the_chain_says() {
    let close = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
    let (mean, deviation) = theory(1, [0.3, 0.7], [0.3, 0.3]);
    let independent = f64::from(PACKETS) * 0.09;
    assert!(close(mean, independent) && close(deviation, (independent * 0.91).sqrt()), "{mean} {deviation}");
    for kind in ["persistent", "blocks"] {
        for (chain, error) in [([0.05, 0.25], [0.02, 0.9]), ([0.2, 0.2], [0.0, 1.0]), ([0.01, 0.1], [0.1, 0.7])] {
            for n in [0u16, 1, 3, 7] {
                let errors = json!({
                    "type": "gilbert_elliott", "per": "frame", "good_to_bad": chain[0], "bad_to_good": chain[1],
                    "error_in_good": error[0], "error_in_bad": error[1],
                });
                let (mean, deviation) = theory(n, chain, error);
                let lost = lost(kind, n, &errors);
                let bound = QUANTILE * deviation + 0.5;
                assert!((lost - mean).abs() < bound, "{kind}: {lost} lost, not {mean}, {chain:?}, {error:?}, n {n}");
                let share = chain[0] / (chain[0] + chain[1]);
                let p = share * error[1] + (1.0 - share) * error[0];
                let independent = f64::from(PACKETS) * p.powi(i32::from(n) + 1);
                assert!(n == 0 || mean > independent, "{mean} > {independent}");
            }
        }
    }
}
