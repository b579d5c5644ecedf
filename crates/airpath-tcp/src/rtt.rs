// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Round-trip times and the retransmission timeout.
//!
//! RFC 6298 with what Linux makes of it: the timeout is SRTT + RTTVAR, with an RTTVAR that already has the factor of
//! four, is at least 200 ms, rises at once with the greatest deviation of a round trip and falls by a quarter of the
//! difference once in a round trip. A round-trip time that falls moves the deviation by an eighth of what it would
//! otherwise.

use std::collections::VecDeque;

use airpath_core::Time;

use crate::clock::{microseconds, ticks_of};
use crate::sequence::Position;

/// The least timeout (Linux; RFC 6298 has 1 s).
pub(crate) const LEAST_TIMEOUT_US: u64 = 200_000;
/// The greatest timeout.
pub(crate) const GREATEST_TIMEOUT_MS: u64 = 120_000;
/// The timeout without a measurement (RFC 6298, rule 2.1).
pub(crate) const INITIAL_TIMEOUT_MS: u64 = 1_000;
/// Time for which the least round-trip time is remembered.
const MINIMUM_WINDOW_US: u64 = 300_000_000;
/// Least distance of entries of the minimum filter that does not fall.
const MINIMUM_STEP_US: u64 = 1_000_000;

/// Estimates of one connection; times in microseconds.
#[derive(Debug)]
pub(crate) struct RoundTrip {
    /// Eight times the smoothed round-trip time; 0 before the first measurement.
    smoothed_times_8: i64,
    /// Four times the mean deviation.
    deviation_times_4: i64,
    greatest_deviation: i64,
    variation: i64,
    round_end: Position,
    timeout_ms: u64,
    /// Times and values that rise from the least to the latest.
    minimum: VecDeque<(u64, u64)>,
}

impl RoundTrip {
    pub(crate) fn new() -> RoundTrip {
        RoundTrip {
            smoothed_times_8: 0,
            deviation_times_4: 0,
            greatest_deviation: 0,
            variation: 0,
            round_end: 0,
            timeout_ms: INITIAL_TIMEOUT_MS,
            minimum: VecDeque::new(),
        }
    }

    /// Takes a measurement of an acknowledgement up to `acknowledged`, with `sent` as the end of what was sent.
    pub(crate) fn measure(&mut self, sample_us: u64, acknowledged: Position, sent: Position) {
        let mut error = sample_us.max(1) as i64;
        if self.smoothed_times_8 == 0 {
            self.smoothed_times_8 = error * 8;
            self.deviation_times_4 = error * 2;
            self.variation = self.deviation_times_4.max(LEAST_TIMEOUT_US as i64);
            self.greatest_deviation = self.variation;
            self.round_end = sent;
        } else {
            error -= self.smoothed_times_8 >> 3;
            self.smoothed_times_8 = (self.smoothed_times_8 + error).max(1);
            let mut change = error.abs() - (self.deviation_times_4 >> 2);
            if error < 0 && change > 0 {
                change >>= 3;
            }
            self.deviation_times_4 += change;
            self.greatest_deviation = self.greatest_deviation.max(self.deviation_times_4);
            self.variation = self.variation.max(self.greatest_deviation);
            if acknowledged > self.round_end {
                if self.greatest_deviation < self.variation {
                    self.variation -= (self.variation - self.greatest_deviation) >> 2;
                }
                self.round_end = sent;
                self.greatest_deviation = LEAST_TIMEOUT_US as i64;
            }
        }
        self.timeout_ms =
            ticks_of((self.smoothed_times_8 >> 3) as u64 + self.variation as u64).min(GREATEST_TIMEOUT_MS);
    }

    /// Takes a measurement for the minimum alone.
    pub(crate) fn measure_minimum(&mut self, now: Time, sample_us: u64) {
        let now = microseconds(now);
        let sample = sample_us.max(1);
        while self.minimum.back().is_some_and(|(_, least)| *least >= sample) {
            self.minimum.pop_back();
        }
        if self.minimum.back().is_none_or(|(at, _)| now - at >= MINIMUM_STEP_US) {
            self.minimum.push_back((now, sample));
        }
        while self.minimum.len() > 1 && now - self.minimum[0].0 > MINIMUM_WINDOW_US {
            self.minimum.pop_front();
        }
    }

    /// Doubles the timeout (RFC 6298, rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.timeout_ms = (self.timeout_ms * 2).min(GREATEST_TIMEOUT_MS);
    }

    /// The retransmission timeout in milliseconds.
    pub(crate) fn timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    /// The smoothed round-trip time.
    pub(crate) fn smoothed_us(&self) -> Option<u64> {
        (self.smoothed_times_8 > 0).then_some((self.smoothed_times_8 >> 3) as u64)
    }

    /// Eight times the smoothed round-trip time; 0 before the first measurement.
    pub(crate) fn smoothed_times_8(&self) -> u64 {
        self.smoothed_times_8 as u64
    }

    /// The least round-trip time of the last five minutes.
    pub(crate) fn minimum_us(&self) -> Option<u64> {
        self.minimum.front().map(|(_, least)| *least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_measurements() {
        let mut rtt = RoundTrip::new();
        assert_eq!(rtt.timeout_ms(), 1_000);
        rtt.measure(100_000, 1, 1_000);
        // SRTT 100 ms, four times the deviation 200 ms.
        assert_eq!((rtt.smoothed_us(), rtt.timeout_ms()), (Some(100_000), 300));
        // The error is 100 ms: SRTT + 12.5 ms; four times the deviation: 200 + 100 - 50 ms.
        rtt.measure(200_000, 500, 2_000);
        assert_eq!((rtt.smoothed_us(), rtt.timeout_ms()), (Some(112_500), 363));
        // A fall by 62.5 ms: SRTT - 7.8125 ms; the deviation changes by 62.5 - 62.5 ms, nothing.
        rtt.measure(50_000, 600, 3_000);
        assert_eq!((rtt.smoothed_us(), rtt.timeout_ms()), (Some(104_687), 355));
        // Steady round trips: the variation falls by quarters down to its floor of 200 ms.
        for round in 1..60 {
            rtt.measure(100_000, round * 10_000, round * 10_000 + 5_000);
        }
        assert_eq!(rtt.timeout_ms(), 301);
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout_ms(), 120_000);
    }

    #[test]
    fn the_minimum_forgets_after_five_minutes() {
        let mut rtt = RoundTrip::new();
        let second = |second: u64| Time::from_nanos(second * 1_000_000_000);
        rtt.measure_minimum(second(1), 50);
        for at in 2..300 {
            rtt.measure_minimum(second(at), 80);
            assert_eq!(rtt.minimum_us(), Some(50));
        }
        rtt.measure_minimum(second(302), 90);
        assert_eq!(rtt.minimum_us(), Some(80));
        rtt.measure_minimum(second(303), 20);
        assert_eq!(rtt.minimum_us(), Some(20));
    }
}
