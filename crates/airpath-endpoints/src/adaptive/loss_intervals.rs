// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Average interval between losses, in packets (RFC 5348, section 5.4).

use std::collections::VecDeque;

/// Weights of the latest intervals.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Intervals between losses. Packets that are missing one after the other are one loss; one that comes late
/// stays lost.
#[derive(Clone, Debug, Default)]
pub(super) struct LossIntervals {
    /// Lengths in packets, the current one first; empty before the first packet.
    intervals: VecDeque<u64>,
    next: u64,
}

impl LossIntervals {
    /// Takes the packet of a number.
    pub(super) fn arrive(&mut self, number: u64) {
        if self.intervals.is_empty() {
            self.intervals.push_front(0);
        } else if number > self.next {
            self.intervals.push_front(0);
            self.intervals.truncate(WEIGHTS.len() + 1);
        } else if number < self.next {
            return;
        }
        self.intervals[0] += 1;
        self.next = number + 1;
    }

    /// The average interval and the current one; none before the first loss.
    pub(super) fn intervals(&self) -> Option<(f64, f64)> {
        let current = *self.intervals.front()?;
        let past = self.intervals.len() - 1;
        if past == 0 {
            return None;
        }
        let weights = &WEIGHTS[..past];
        let sum = |from: usize| -> f64 {
            weights.iter().zip(self.intervals.iter().skip(from)).map(|(weight, length)| weight * *length as f64).sum()
        };
        let total: f64 = weights.iter().sum();
        // The current interval counts once it makes the average longer.
        Some((sum(0).max(sum(1)) / total, current as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_weighted_and_takes_the_current_interval_when_that_is_longer() {
        let mut losses = LossIntervals::default();
        (0..10).for_each(|number| losses.arrive(number));
        assert_eq!(losses.intervals(), None);
        // 10 and 11 are missing, a loss; 12 to 16, another one, then 18.
        (12..17).for_each(|number| losses.arrive(number));
        assert_eq!(losses.intervals(), Some((10.0, 5.0)));
        losses.arrive(18);
        // Past: 5 and 10, both with weight 1; with the current one: 1 and 5.
        assert_eq!(losses.intervals(), Some((7.5, 1.0)));
        losses.arrive(17);
        assert_eq!(losses.intervals(), Some((7.5, 1.0)));
        (19..60).for_each(|number| losses.arrive(number));
        assert_eq!(losses.intervals(), Some(((42.0 + 5.0) / 2.0, 42.0)));
    }

    #[test]
    fn older_intervals_weigh_less_and_are_forgotten() {
        let mut losses = LossIntervals::default();
        // Ten losses, with as many packets before each as its number.
        let mut number = 0;
        for length in 1..=10 {
            (0..length).for_each(|step| losses.arrive(number + step));
            number += length + 1;
        }
        losses.arrive(number);
        // Past: 10 to 3, by the weights.
        let expected = (10.0 + 9.0 + 8.0 + 7.0 + 0.8 * 6.0 + 0.6 * 5.0 + 0.4 * 4.0 + 0.2 * 3.0) / 6.0;
        assert!((losses.intervals().unwrap().0 - expected).abs() < 1e-12);
    }
}
