// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Environments of a wireless LAN against table 1 of Eckhardt and Steenkiste 2002, and against the law of their runs.

use airpath_core::{Bits, Direction, DrawKey, DrawScope, Seed};
use airpath_models::channel::environment::{Environment, EnvironmentConfig};
use airpath_models::channel::trace_file::Record;
use airpath_models::channel::{ErrorProcess, ErrorProcessConfig, ErrorProcessModel};

/// Half widths of intervals in standard deviations: 99 %, and one chance in 15,000.
const Z_99: f64 = 2.576;
const Z_RARE: f64 = 4.0;

/// Loss, truncation, corruption and bit error rate as the paper prints them, trivial being 0.1 % and the office's bit
/// error rate 3e-7; mean lengths of the states, severity of the good one, and corruption of truncated packets.
struct Row {
    environment: Environment,
    means: [f64; 4],
    stays: [f64; 2],
    severity: f64,
    truncated_corruption: f64,
}

const fn row(environment: Environment, means: [f64; 4], stays: [f64; 2], severity: f64, truncated: f64) -> Row {
    Row { environment, means, stays, severity, truncated_corruption: truncated }
}

const TABLE: [Row; 5] = [
    row(Environment::Office, [0.0, 0.0, 0.001, 3e-7], [1.0, 1.0], 1.0, 0.001),
    row(Environment::Walking, [0.001, 0.001, 0.05, 1.6e-4], [640.0, 160.0], 0.02, 0.05),
    row(Environment::Adjacent, [0.31, 0.23, 0.001, 1e-3], [220.0, 330.0], 0.0, 0.8),
    row(Environment::Table, [0.05, 0.02, 0.94, 4.9e-3], [160.0, 320.0], 0.9, 0.94),
    row(Environment::Walls, [0.01, 0.02, 0.27, 3.8e-4], [320.0, 160.0], 0.1, 0.27),
];

/// A packet as a receiver sees it.
#[derive(Clone, Default)]
struct Packet {
    lost: bool,
    kept_bytes: Option<u32>,
    flips: Vec<u32>,
}

/// Fates of `count` packets of `bytes`, for which the shares of the environment hold.
fn packets(config: EnvironmentConfig, bytes: u32, count: u64, seed: u64) -> Vec<Packet> {
    let scope = DrawScope { hop: "radio", direction: Direction::Uplink, role: "channel", instance: 0 };
    let config = ErrorProcessConfig::Environment(config);
    assert_eq!(config.problems(), []);
    let mut process = ErrorProcessModel::new(&config, DrawKey::new(Seed(seed), &scope));
    let packet = |step| match process.record(step) {
        Record::Ok => Packet::default(),
        Record::Lost => Packet { lost: true, ..Packet::default() },
        Record::Hit => panic!("an environment knows what happens"),
        Record::Damaged { kept_bytes, flips } => {
            let kept_bytes = kept_bytes.filter(|kept| *kept < bytes);
            let bits = kept_bytes.unwrap_or(bytes) * 8;
            assert!(flips.is_sorted_by(|one, other| one < other), "{flips:?}");
            Packet { lost: false, kept_bytes, flips: flips.iter().copied().filter(|bit| *bit < bits).collect() }
        }
    };
    (0..count).map(packet).collect()
}

fn of_length(environment: Environment, bytes: u32) -> EnvironmentConfig {
    EnvironmentConfig { length: Bits::from_bytes(u64::from(bytes)), ..EnvironmentConfig::named(environment) }
}

/// The probability of the bad state by which both states together have `mean`, found by halving.
fn in_bad(mean: f64, weights: [f64; 2], severity: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle: f64 = (low + high) / 2.0;
        let found = (weights[0] * severity * middle + weights[1] * middle) / (weights[0] + weights[1]);
        if found < mean { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Loss, truncation and corruption in each state.
fn by_state(row: &Row) -> [[f64; 3]; 2] {
    let bad_share = row.stays[1] / (row.stays[0] + row.stays[1]);
    let mut weights = [1.0 - bad_share, bad_share];
    let mut found = [[0.0; 3]; 2];
    for (column, mean) in row.means.iter().enumerate().take(3) {
        let bad = in_bad(*mean, weights, row.severity);
        found[0][column] = bad * row.severity;
        found[1][column] = bad;
        weights = [weights[0] * (1.0 - found[0][column]), weights[1] * (1.0 - bad)];
    }
    found
}

/// The standard deviation of a ratio of sums over `count` packets, from the mean of (numerator - ratio · denominator)
/// in each state, the mean square of it, and the mean denominator. States forget by `keeps` a packet.
fn deviation(row: &Row, by_state: [f64; 2], square: f64, denominator: f64, count: usize) -> f64 {
    let bad_share = row.stays[1] / (row.stays[0] + row.stays[1]);
    let keeps = 1.0 - 1.0 / row.stays[0] - 1.0 / row.stays[1];
    let between = bad_share * (1.0 - bad_share) * (by_state[1] - by_state[0]).powi(2);
    ((square + between * 2.0 * keeps / (1.0 - keeps)) / count as f64).sqrt() / denominator
}

/// All four columns of all five environments are within the 99 % intervals of the table, for packets of the traces'
/// length and of five Reed-Solomon blocks, as the paper's.
#[test]
fn environments_have_the_shares_of_the_table() {
    for (row, (bytes, seed)) in TABLE.iter().flat_map(|row| [(row, (1408, 11)), (row, (1275, 12))]) {
        let found = packets(of_length(row.environment, bytes), bytes, 300_000, seed);
        let states = by_state(row);
        let arrived = |packet: &&Packet| !packet.lost;
        let whole = |packet: &&Packet| !packet.lost && packet.kept_bytes.is_none();
        let counts = [
            (found.len(), found.iter().filter(|packet| packet.lost).count()),
            (found.iter().filter(arrived).count(), found.iter().filter(|packet| packet.kept_bytes.is_some()).count()),
            (
                found.iter().filter(whole).count(),
                found.iter().filter(whole).filter(|packet| !packet.flips.is_empty()).count(),
            ),
        ];
        // Shares of packets that reach each column, by state.
        let mut reach = [1.0; 2];
        for (column, (of, hit)) in counts.into_iter().enumerate() {
            let ratio = row.means[column];
            let means = [0, 1].map(|state| reach[state] * (states[state][column] - ratio));
            let denominator = of as f64 / found.len() as f64;
            let square = denominator * ratio * (1.0 - ratio);
            let deviation = deviation(row, means, square, denominator, found.len());
            let share = hit as f64 / of as f64;
            assert!(
                (share - ratio).abs() <= Z_99 * deviation,
                "{:?} of {bytes} bytes, column {column}: {share} {ratio} {deviation}",
                row.environment
            );
            reach = [0, 1].map(|state| reach[state] * (1.0 - states[state][column]));
        }
        // Flipped bits.
        let length = f64::from(bytes) * 8.0;
        let rate = row.means[3];
        let corrupted = |truncation: f64, corruption: f64| {
            (1.0 - truncation) * corruption + truncation / 2.0 * row.truncated_corruption
        };
        let received = length * (1.0 - row.means[1] / 2.0);
        let errors = rate * received / corrupted(row.means[1], row.means[2]);
        let means = states.map(|[loss, truncation, corruption]| {
            let bits = length * (1.0 - truncation / 2.0);
            (1.0 - loss) * (corrupted(truncation, corruption) * errors - rate * bits)
        });
        let bits = |packet: &Packet| match packet.lost {
            true => 0.0,
            false => f64::from(packet.kept_bytes.unwrap_or(bytes)) * 8.0,
        };
        let all: f64 = found.iter().map(bits).sum();
        let flipped = found.iter().map(|packet| packet.flips.len() as f64).sum::<f64>();
        let square = found.iter().map(|one| (one.flips.len() as f64 - rate * bits(one)).powi(2)).sum::<f64>();
        let count = found.len() as f64;
        let deviation = deviation(row, means, square / count, all / count, found.len());
        assert!(
            (flipped / all - rate).abs() <= Z_99 * deviation,
            "{:?} of {bytes} bytes, bits: {} {rate} {deviation}",
            row.environment,
            flipped / all
        );
    }
}

/// Lengths of runs of losses by the law of a hidden Markov chain: after a packet that arrived, a first loss; then
/// losses as long as the run is. Every loss of this environment is in the bad state, so that runs are independent.
#[test]
fn runs_of_losses_follow_their_law() {
    let row = &TABLE[2];
    let states = by_state(row);
    let loss = [states[0][0], states[1][0]];
    let stay = [1.0 - 1.0 / row.stays[0], 1.0 - 1.0 / row.stays[1]];
    let step = |at: [f64; 2]| [at[0] * stay[0] + at[1] * (1.0 - stay[1]), at[1] * stay[1] + at[0] * (1.0 - stay[0])];
    let bad_share = row.stays[1] / (row.stays[0] + row.stays[1]);
    let arrived = step([(1.0 - bad_share) * (1.0 - loss[0]), bad_share * (1.0 - loss[1])]);
    let mut run = [arrived[0] * loss[0], arrived[1] * loss[1]];
    let begun = run[0] + run[1];
    let mut law = [0.0; 8];
    for entry in &mut law[..7] {
        let next = step(run);
        *entry = (next[0] * (1.0 - loss[0]) + next[1] * (1.0 - loss[1])) / begun;
        run = [next[0] * loss[0], next[1] * loss[1]];
    }
    law[7] = (run[0] + run[1]) / begun;

    let found = packets(of_length(row.environment, 1408), 1408, 200_000, 3);
    let mut counts = [0.0; 8];
    for run in found.chunk_by(|one, other| one.lost == other.lost).filter(|run| run[0].lost) {
        counts[run.len().min(8) - 1] += 1.0;
    }
    let runs: f64 = counts.iter().sum();
    // 7 degrees of freedom, level 1 %: 18.5.
    let chi: f64 = counts.iter().zip(law).map(|(n, share)| (n - share * runs).powi(2) / (share * runs)).sum();
    assert!(chi < 18.5, "{chi} {counts:?} {law:?}");
}

/// The share of packets in error keeps for seconds: at a distance of d packets the correlation is that of the chain.
#[test]
fn severity_lasts() {
    let row = &TABLE[4];
    let found = packets(of_length(row.environment, 1408), 1408, 400_000, 5);
    let damaged: Vec<f64> =
        found.iter().map(|one| f64::from(one.lost || one.kept_bytes.is_some() || !one.flips.is_empty())).collect();
    let mean = damaged.iter().sum::<f64>() / damaged.len() as f64;
    let hurt = by_state(row).map(|[loss, cut, flip]| 1.0 - (1.0 - loss) * (1.0 - cut) * (1.0 - flip));
    let share = row.stays[1] / (row.stays[0] + row.stays[1]);
    let between = share * (1.0 - share) * (hurt[1] - hurt[0]).powi(2) / (mean * (1.0 - mean));
    let keeps: f64 = 1.0 - 1.0 / row.stays[0] - 1.0 / row.stays[1];
    for lag in [1usize, 10, 100, 300] {
        let pairs = damaged.iter().zip(&damaged[lag..]);
        let covariance = pairs.map(|(one, other)| (one - mean) * (other - mean)).sum::<f64>();
        let correlation = covariance / (damaged.len() - lag) as f64 / (mean * (1.0 - mean));
        // 400,000 packets are some 830 pairs of stays: the correlation is known to some 0.02.
        let expected = between * keeps.powi(lag as i32);
        assert!((correlation - expected).abs() < 0.06, "{lag}: {correlation} {expected}");
    }
}

/// Bits of every part of a packet are flipped alike, also behind the length for which the shares hold.
#[test]
fn errors_are_anywhere_in_a_packet_and_in_bursts() {
    let found = packets(of_length(Environment::Walls, 1408), 2304, 200_000, 7);
    // 18 parts of 128 bytes; 11 of them are within the length.
    let mut sums = [[0.0f64; 2]; 18];
    for packet in found.iter().filter(|packet| !packet.lost && packet.kept_bytes.is_none()) {
        let mut parts = [0.0; 18];
        packet.flips.iter().for_each(|bit| parts[(bit / 1024) as usize] += 1.0);
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum = [sum[0] + part, sum[1] + part * part];
        }
    }
    let mean = sums.iter().map(|sum| sum[0]).sum::<f64>() / 18.0;
    for [flips, squares] in sums {
        // Packets are independent but for the state, which is the same for all parts; the mean of 18 parts moves with
        // each of them.
        assert!((flips - mean).abs() < Z_RARE * squares.sqrt(), "{flips} {mean} {}", squares.sqrt());
    }
    // The next bit behind a flipped one is flipped too with 2/3 · 1/3.5, and sometimes by another burst.
    let pairs = found.iter().flat_map(|packet| packet.flips.windows(2)).filter(|pair| pair[1] == pair[0] + 1).count();
    let flips = found.iter().map(|packet| packet.flips.len()).sum::<usize>() as f64;
    let (expected, found) = (2.0 / 3.0 / 3.5, pairs as f64 / flips);
    assert!((found - expected).abs() < 0.004 + Z_RARE * (expected / flips).sqrt(), "{found} {expected}");
}

/// Packets that are cut are cut at any byte alike.
#[test]
fn cuts_are_anywhere_in_a_packet() {
    let found = packets(of_length(Environment::Adjacent, 1408), 1408, 200_000, 9);
    let mut counts = [0f64; 16];
    let kept: Vec<u32> = found.iter().filter_map(|packet| packet.kept_bytes).collect();
    assert!(kept.iter().all(|bytes| (1..1408).contains(bytes)));
    kept.iter().for_each(|bytes| counts[(bytes / 88) as usize] += 1.0);
    // The first part has 87 bytes of 1407, the others 88. 15 degrees of freedom, level 1 %: 30.6.
    let expected = |part: usize| kept.len() as f64 * if part == 0 { 87.0 } else { 88.0 } / 1407.0;
    let chi: f64 = counts.iter().enumerate().map(|(part, n)| (n - expected(part)).powi(2) / expected(part)).sum();
    assert!(chi < 30.6, "{chi} {counts:?}");
}
