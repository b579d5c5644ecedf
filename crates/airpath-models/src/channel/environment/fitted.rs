// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Probabilities of the two states and of the flipped bits, such that an environment has its means.
//!
//! With w the share of packets that are in a state and got so far (not lost; not truncated), a mean p is that of both
//! states if the bad one has p (w_bad + w_good) / (w_bad + s w_good), and the good one s times this, s being the
//! severity of the good state.

use airpath_core::Probability;
use airpath_core::limits::LONGEST_PACKET_BYTES;

use super::EnvironmentConfig;
use super::named::{Numbers, numbers};
use crate::problem::Problem;

/// Bytes of the longest frame for which damage is drawn: the most that IEEE 802.11 carries in an MSDU.
const FRAME_BYTES: u32 = 2304;
/// The largest mean length of a state, mean number of errors in a burst, and mean distance of them.
const LONGEST_MEAN: f64 = 1e9;
const MOST_IN_BURST: f64 = 1e4;

/// Probabilities of a state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StateRates {
    pub loss: Probability,
    pub truncation: Probability,
    /// Of packets that are not truncated within the length: cut between there and the longest frame.
    pub later_truncation: Probability,
    pub corruption: Probability,
    /// The probability that the state ends after a packet.
    pub leaves: Probability,
}

/// An environment as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted {
    /// The good state and the bad one.
    pub states: [StateRates; 2],
    /// The share of the bad state.
    pub bad_share: Probability,
    pub truncated_corruption: Probability,
    /// Bytes of the packets whose means are given, and of the longest frame.
    pub length_bytes: u32,
    pub frame_bytes: u32,
    /// The probability that another burst begins at a bit within the length, and behind it.
    pub burst_within: Probability,
    pub burst_beyond: Probability,
    /// The probability that a burst has another error.
    pub more: Probability,
    /// The probability that the next bit is the next error of a burst.
    pub next: Probability,
}

fn probability(value: f64) -> Probability {
    Probability::new(value.clamp(0.0, 1.0)).unwrap_or(Probability::ZERO)
}

/// The numbers of the named environment with those that are given beside it.
fn given(config: &EnvironmentConfig) -> Numbers {
    let named = numbers(config.environment);
    let or = |own: Option<Probability>, named: f64| own.map_or(named, Probability::get);
    Numbers {
        loss: or(config.loss, named.loss),
        truncation: or(config.truncation, named.truncation),
        corruption: or(config.corruption, named.corruption),
        bit_error_rate: or(config.bit_error_rate, named.bit_error_rate),
        truncated_corruption: config.truncated_corruption.map(Probability::get).or(named.truncated_corruption),
        good_mean: config.good_mean.or(named.good_mean),
        bad_mean: config.bad_mean.or(named.bad_mean),
        good_severity: or(config.good_severity, named.good_severity),
    }
}

/// Probabilities of `mean` in the good and the bad state, whose packets have these weights.
fn split(key: &str, mean: f64, weights: [f64; 2], severity: f64) -> Result<[f64; 2], Problem> {
    let [good, bad] = weights;
    if mean == 0.0 || good + bad == 0.0 {
        return Ok([0.0; 2]);
    }
    let in_bad = mean * (good + bad) / (bad + severity * good);
    // Written so that a severity of 0 and no bad packets left is refused too.
    if in_bad <= 1.0 + 1e-9 {
        return Ok([in_bad * severity, in_bad]);
    }
    let message = format!(
        "is {mean}, so that it would be {in_bad:.3} in the bad state; make `bad_mean` longer, `good_mean` shorter or \
         `good_severity` larger"
    );
    Err(Problem::new(key, message))
}

/// The environment as it is drawn.
///
/// # Errors
/// Errors in the parameters.
pub(super) fn fitted(config: &EnvironmentConfig) -> Result<Fitted, Vec<Problem>> {
    let mut problems = Vec::new();
    let numbers = given(config);
    let within = |key: &str, value: f64, most: f64, problems: &mut Vec<Problem>| {
        if !(1.0..=most).contains(&value) {
            problems.push(Problem::new(key, format!("is {value}; it must be from 1 to {most}")));
        }
    };
    let mut means = [1.0; 2];
    for (index, (key, mean)) in
        [("good_mean", numbers.good_mean), ("bad_mean", numbers.bad_mean)].into_iter().enumerate()
    {
        match mean {
            Some(mean) => {
                within(key, mean, LONGEST_MEAN, &mut problems);
                means[index] = mean;
            }
            None if numbers.good_severity < 1.0 => {
                let message = "is missing: a good state that is milder needs it, for example good_mean = 300 and \
                               bad_mean = 150 packets";
                problems.push(Problem::new(key, message));
            }
            None => {}
        }
    }
    within("burst_errors", config.burst_errors, MOST_IN_BURST, &mut problems);
    within("burst_spacing", config.burst_spacing, MOST_IN_BURST, &mut problems);
    let bits = config.length.get();
    if !bits.is_multiple_of(8) || !(16..=u64::from(LONGEST_PACKET_BYTES) * 8).contains(&bits) {
        let message = format!("is {}; it must be whole bytes, from 2 to {LONGEST_PACKET_BYTES}", config.length);
        problems.push(Problem::new("length", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }

    let severity = numbers.good_severity;
    let bad_share = means[1] / (means[0] + means[1]);
    let shares = [1.0 - bad_share, bad_share];
    let mut left = |weights: [f64; 2], key: &str, mean: f64| {
        let found = split(key, mean, weights, severity).unwrap_or_else(|problem| {
            problems.push(problem);
            [0.0; 2]
        });
        ([weights[0] * (1.0 - found[0]), weights[1] * (1.0 - found[1])], found)
    };
    let (arrived, loss) = left(shares, "loss", numbers.loss);
    let (whole, truncation) = left(arrived, "truncation", numbers.truncation);
    let (_, corruption) = left(whole, "corruption", numbers.corruption);

    let length = bits as f64;
    let frame_bytes = FRAME_BYTES.max((bits / 8) as u32);
    let truncated_corruption = numbers.truncated_corruption.unwrap_or(numbers.corruption);
    // Bits of which a packet that is not lost has on average so many, and so many that a corrupted one has.
    let received = length * (1.0 - numbers.truncation / 2.0);
    let corrupted = (1.0 - numbers.truncation) * numbers.corruption + numbers.truncation / 2.0 * truncated_corruption;
    let errors = if numbers.bit_error_rate == 0.0 { 0.0 } else { numbers.bit_error_rate * received / corrupted };
    if corrupted > 0.0 && errors < 1.0 {
        let least = corrupted / received;
        let message = format!(
            "is {}; a corrupted packet has an error at least, so write at least {least:.3e}, or less `corruption`",
            numbers.bit_error_rate
        );
        problems.push(Problem::new("bit_error_rate", message));
    } else if errors > length / 4.0 {
        let message = match corrupted > 0.0 {
            true => format!(
                "is {}, which is {errors:.0} errors in a corrupted packet of {length} bits; at most a quarter of its \
                 bits may be flipped, so write less, or more `corruption` or `truncated_corruption`",
                numbers.bit_error_rate
            ),
            false => "has no packets in which errors could be; write `corruption` or `truncated_corruption` too".into(),
        };
        problems.push(Problem::new("bit_error_rate", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }

    // Errors of two bursts that meet are one; so many have to be thrown that this many bits are hit.
    let thrown = -length * libm::log1p(-errors / length);
    let in_burst = config.burst_errors.min(thrown).max(1.0);
    let bursts = thrown / in_burst;
    let beyond = f64::from(frame_bytes) * 8.0 / length - 1.0;
    let state = |index: usize| StateRates {
        loss: probability(loss[index]),
        truncation: probability(truncation[index]),
        later_truncation: probability(truncation[index] * beyond),
        corruption: probability(corruption[index]),
        leaves: probability(1.0 / means[index]),
    };
    Ok(Fitted {
        states: [state(0), state(1)],
        bad_share: probability(bad_share),
        truncated_corruption: probability(truncated_corruption),
        length_bytes: (bits / 8) as u32,
        frame_bytes,
        burst_within: probability((bursts - 1.0).max(0.0) / length),
        burst_beyond: probability(bursts / length),
        more: probability(1.0 - 1.0 / in_burst),
        next: probability(1.0 / config.burst_spacing),
    })
}
