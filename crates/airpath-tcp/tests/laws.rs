// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Mathis' law, conservation of bytes under every kind of trouble, and equal runs.

use airpath_core::{Span, Time};
use airpath_tcp::{CongestionControl, State};

use crate::common::{Line, Verdict, config, transfer};

/// No stall.
const NEVER: (Time, Time) = (Time::ZERO, Time::ZERO);
const FOREVER: Time = Time::from_nanos(100_000_000_000_000);

/// Numbers that look random (SplitMix64, Steele et al. 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, share: f64) -> bool {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as f64 / ((1_u64 << 53) as f64) < share
    }
}

/// Mathis et al. 1997: MSS / RTT · sqrt(3 / 2 b p), with b = 2 segments for an acknowledgement where that adds a
/// segment for two; Linux counts segments, so that b is 1.
#[test]
fn reno_follows_the_law_of_mathis() {
    for loss in [0.003, 0.01] {
        let line =
            Line { rate_bits_per_second: 1_000_000_000, delay: Span::from_millis(50), queue: 10_000, stall: NEVER };
        let configs = (config(CongestionControl::Reno), config(CongestionControl::Reno));
        let bytes = 20_000_000;
        let mut rates = Vec::new();
        for seed in 1..=12 {
            let mut random = Random(seed);
            let run = transfer(&line, configs, bytes, FOREVER, &mut |by_sender, _, segment, _| {
                if by_sender && segment.data_bytes > 0 && random.below(loss) { Verdict::Lost } else { Verdict::Passes }
            });
            assert_eq!(run.got, bytes);
            rates.push(bytes as f64 / (run.last.nanos() as f64 / 1e9));
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let deviation = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / (rates.len() - 1) as f64).sqrt();
        let law = 1_448.0 / 0.1 * (1.5 / loss).sqrt();
        // The mean of twelve runs is within 10 % of the law, and its 95 % interval (2.2 standard errors) is narrow.
        let interval = 2.2 * deviation / (rates.len() as f64).sqrt();
        assert!((mean / law - 1.0).abs() < 0.1 + interval / law, "{loss}: {mean} instead of {law} ± {interval}");
        assert!(interval / law < 0.1, "{interval} of {law}");
    }
}

#[test]
fn every_byte_arrives_once_whatever_happens() {
    let line = Line { rate_bits_per_second: 2_000_000, delay: Span::from_millis(30), queue: 15, stall: NEVER };
    for seed in 0..40 {
        let control = if seed % 2 == 0 { CongestionControl::Reno } else { CongestionControl::Cubic };
        let mut random = Random(seed);
        let bytes = 150_000 + seed * 777;
        let run = transfer(&line, (config(control), config(control)), bytes, FOREVER, &mut |_, _, _, _| {
            if random.below(0.08) {
                Verdict::Lost
            } else if random.below(0.1) {
                Verdict::Late(Span::from_millis(60))
            } else {
                Verdict::Passes
            }
        });
        assert_eq!((run.got, run.sender.state()), (bytes, State::Finished), "seed {seed}");
        assert_eq!(run.sender.measurements().in_flight, 0, "seed {seed}");
    }
}

#[test]
fn equal_runs_are_equal_and_initial_numbers_change_no_time() {
    let line = Line { rate_bits_per_second: 5_000_000, delay: Span::from_millis(20), queue: 20, stall: NEVER };
    let times = |initial_sequence: u32| {
        let one = airpath_tcp::Config { initial_sequence, ..config(CongestionControl::Cubic) };
        let mut random = Random(5);
        let run = transfer(&line, (one, one), 400_000, FOREVER, &mut |_, _, _, _| {
            if random.below(0.02) { Verdict::Lost } else { Verdict::Passes }
        });
        run.passed.iter().map(|passed| (passed.at, passed.segment.data_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(times(1), times(1));
    assert_eq!(times(1), times(u32::MAX - 5_000));
}
