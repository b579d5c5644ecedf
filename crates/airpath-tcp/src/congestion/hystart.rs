// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! HyStart (Ha and Rhee 2011): the end of slow start before the first loss.
//!
//! Slow start ends when acknowledgements that follow each other closely last for half of the least round-trip time
//! since the round began, or when the least of eight round-trip times of a round is an eighth longer than the least of
//! all (by 4 ms at least, 16 ms at most). This is what CUBIC has in Linux; RFC 9406 calls its own variant HyStart++.

use std::ops::ControlFlow;

use airpath_core::Time;

use super::Sample;
use crate::clock::microseconds;
use crate::sequence::Position;

/// The window from which on it looks.
const LEAST_WINDOW: u64 = 16;
/// The greatest distance of acknowledgements that make a train.
const TRAIN_GAP_US: u64 = 2_000;
/// Number of samples of a round before their least counts.
const SAMPLES: u32 = 8;
const LEAST_THRESHOLD_US: u64 = 4_000;
const GREATEST_THRESHOLD_US: u64 = 16_000;

/// State of HyStart.
#[derive(Debug)]
pub(super) struct HyStart {
    found: bool,
    round_begin_us: u64,
    round_end: Position,
    last_of_train_us: u64,
    least_of_round_us: u64,
    samples: u32,
}

impl HyStart {
    pub(super) fn new() -> HyStart {
        HyStart {
            found: false,
            round_begin_us: 0,
            round_end: 0,
            last_of_train_us: 0,
            least_of_round_us: u64::MAX,
            samples: 0,
        }
    }

    pub(super) fn begin_round(&mut self, now: Time, sent: Position) {
        let now = microseconds(now);
        self.round_begin_us = now;
        self.last_of_train_us = now;
        self.round_end = sent;
        self.least_of_round_us = u64::MAX;
        self.samples = 0;
    }

    /// Takes a measurement in slow start; breaks if slow start is to end.
    pub(super) fn sample(&mut self, sample: &Sample, window: u64, least_us: u64) -> ControlFlow<()> {
        if self.found {
            return ControlFlow::Continue(());
        }
        if sample.acknowledged > self.round_end {
            self.begin_round(sample.now, sample.sent);
        }
        if window < LEAST_WINDOW {
            return ControlFlow::Continue(());
        }
        let now = microseconds(sample.now);
        if now - self.last_of_train_us <= TRAIN_GAP_US {
            self.last_of_train_us = now;
            self.found |= now - self.round_begin_us > (least_us + sample.burst_us) / 2;
        }
        self.least_of_round_us = self.least_of_round_us.min(sample.round_trip_us.max(1));
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let threshold = (least_us >> 3).clamp(LEAST_THRESHOLD_US, GREATEST_THRESHOLD_US);
            self.found |= self.least_of_round_us > least_us + threshold;
        }
        if self.found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(now_us: u64, round_trip_us: u64, acknowledged: Position) -> Sample {
        Sample { now: Time::from_nanos(now_us * 1_000), round_trip_us, acknowledged, sent: 1_000_000, burst_us: 0 }
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let mut hystart = HyStart::new();
        hystart.begin_round(Time::from_nanos(0), 1_000);
        for step in 1..=50 {
            assert!(hystart.sample(&sample(step * 1_000, 100_000, 1), 20, 100_000).is_continue(), "{step}");
        }
        assert!(hystart.sample(&sample(51_000, 100_000, 1), 20, 100_000).is_break());
        // A gap breaks the train.
        let mut hystart = HyStart::new();
        hystart.begin_round(Time::from_nanos(0), 1_000);
        assert!(hystart.sample(&sample(2_001, 100_000, 1), 20, 100_000).is_continue());
        assert!(hystart.sample(&sample(60_000, 100_000, 1), 20, 100_000).is_continue());
    }

    #[test]
    fn a_longer_round_trip_ends_slow_start() {
        let mut hystart = HyStart::new();
        hystart.begin_round(Time::from_nanos(0), 1_000);
        // The threshold is 100 ms / 8 = 12.5 ms.
        for step in 1..=8 {
            let delayed = sample(step * 5_000, 112_501, 1);
            assert!(hystart.sample(&delayed, 20, 100_000).is_continue(), "{step}");
        }
        assert!(hystart.sample(&sample(45_000, 112_501, 1), 20, 100_000).is_break());
        // Below 16 segments it does not look.
        let mut hystart = HyStart::new();
        hystart.begin_round(Time::from_nanos(0), 1_000);
        assert!((1..=20).all(|step| hystart.sample(&sample(step * 5_000, 200_000, 1), 15, 100_000).is_continue()));
    }
}
