// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Distributions of times, kept without allocation unless asked for: counts in buckets whose width is less than
//! 0.8 % of their value, and the exact mean and maximum.

use airpath_core::{Direction, Span, Time};
use serde::{Deserialize, Serialize};

use crate::bound::LatenessBound;

/// Buckets in each doubling of the value, as a power of two.
const PRECISION: u32 = 7;
/// Values from 2^50 ns (13 days) on share the last bucket.
const LARGEST: u32 = 50;
const BUCKETS: usize = ((LARGEST - PRECISION + 1) as usize) << PRECISION;

/// A histogram of nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// All of them, or as many as were needed so far.
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }
}

fn bucket(value: u64) -> usize {
    let value = value.min((1 << LARGEST) - 1);
    let octave = (63 - (value | 1).leading_zeros()).saturating_sub(PRECISION);
    // Below 2^(PRECISION + 1) each value has a bucket of its own.
    ((octave as usize) << PRECISION) + (value >> octave) as usize
}

/// The largest value of bucket `index`.
fn upper(index: usize) -> u64 {
    let octave = (index >> PRECISION).saturating_sub(1);
    let mantissa = (index - (octave << PRECISION)) as u64;
    ((mantissa + 1) << octave) - 1
}

impl Histogram {
    /// A histogram whose memory comes as it is needed, for a run in virtual time: of thousands of short ones, each would
    /// clear and search 45 kB.
    pub fn growing() -> Histogram {
        Histogram { buckets: Vec::new(), count: 0, sum: 0, max: 0 }
    }

    /// Counts `span`.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let value = span.nanos();
        let index = bucket(value);
        match self.buckets.get_mut(index) {
            Some(count) => *count += 1,
            None => self.grow(index),
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Makes the buckets of one more doubling, and counts one in bucket `index`, the first there.
    #[cold]
    fn grow(&mut self, index: usize) {
        self.buckets.resize((index | ((1 << PRECISION) - 1)) + 1, 0);
        self.buckets[index] = 1;
    }

    /// Number of spans counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        for (mine, other) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += other;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The value in nanoseconds that `share` (0 to 1) of all spans do not exceed; 0 without spans.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper(index).min(self.max);
            }
        }
        self.max
    }

    /// The numbers that go into the manifest.
    pub fn distribution(&self) -> Distribution {
        Distribution {
            count: self.count,
            mean_ns: if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 },
            p50_ns: self.quantile_ns(0.5),
            p99_ns: self.quantile_ns(0.99),
            p999_ns: self.quantile_ns(0.999),
            max_ns: self.max,
        }
    }
}

/// A distribution of times, in nanoseconds; quantiles are rounded up by less than 0.8 %.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of measurements.
    pub count: u64,
    /// Their mean, exact.
    pub mean_ns: f64,
    /// Half of them are not above this.
    pub p50_ns: u64,
    /// 99 % are not above this.
    pub p99_ns: u64,
    /// 99.9 % are not above this.
    pub p999_ns: u64,
    /// The largest, exact.
    pub max_ns: u64,
}

/// A packet that was later than its bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Excess {
    /// Lateness of the packet.
    pub late_ns: u64,
    /// Lateness bound of the packet.
    pub bound_ns: u64,
}

/// Packets that were later than their bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Late {
    /// Number of late packets.
    pub packets: u64,
    /// The one that was later by most.
    pub worst: Excess,
}

impl Late {
    /// Increments since `start`; the worst is of the whole time.
    #[must_use]
    pub fn since(self, start: Late) -> Late {
        Late { packets: self.packets.saturating_sub(start.packets), ..self }
    }

    /// Looks at a packet that is late by `late`. Its least transit is asked for only where that matters, which
    /// is seldom.
    #[inline]
    fn look(&mut self, late: Span, bound: LatenessBound, least_transit: impl FnOnce() -> Span) {
        if late > bound.floor() {
            self.look_closely(late, bound.of(least_transit()));
        }
    }

    #[cold]
    fn look_closely(&mut self, late: Span, bound: Span) {
        if late <= bound {
            return;
        }
        self.packets += 1;
        let excess = Excess { late_ns: late.nanos(), bound_ns: bound.nanos() };
        if excess.late_ns - excess.bound_ns > self.worst.late_ns - self.worst.bound_ns {
            self.worst = excess;
        }
    }
}

/// Lateness of the emulator, and delays of packets.
#[derive(Clone, Debug)]
pub struct Timings {
    delay: [Histogram; 2],
    lateness: Histogram,
    entries: Histogram,
    read_delay: Histogram,
    bound: LatenessBound,
    late_emissions: Late,
    late_reads: Late,
    quantum: Span,
}

/// One-way delays in both directions, from arrival to due time.
#[derive(Clone, Debug, Default)]
pub struct Delays([Histogram; 2]);

impl Delays {
    /// None yet, with memory that comes as it is needed: see [`Histogram::growing`].
    pub fn growing() -> Delays {
        Delays([Histogram::growing(), Histogram::growing()])
    }

    /// A packet of an endpoint that arrived at `arrived` was due at `due`.
    pub fn emitted(&mut self, direction: Direction, arrived: Time, due: Time) {
        self.0[direction as usize].record(due.since(arrived));
    }

    /// The delays in one direction.
    pub fn of(&self, direction: Direction) -> Distribution {
        self.0[direction as usize].distribution()
    }
}

impl Timings {
    /// Nothing measured yet; what comes later than `bound` counts as late.
    pub fn new(bound: LatenessBound) -> Timings {
        Timings::with(Histogram::default, bound)
    }

    /// The same with memory that comes as it is needed: see [`Histogram::growing`].
    pub fn growing(bound: LatenessBound) -> Timings {
        Timings::with(Histogram::growing, bound)
    }

    fn with(histogram: fn() -> Histogram, bound: LatenessBound) -> Timings {
        Timings {
            delay: [histogram(), histogram()],
            lateness: histogram(),
            entries: histogram(),
            read_delay: histogram(),
            bound,
            late_emissions: Late::default(),
            late_reads: Late::default(),
            quantum: Span::ZERO,
        }
    }

    /// Packets that are due within `quantum` may leave together.
    #[inline]
    pub fn departures_within(&mut self, quantum: Span) {
        self.quantum = self.quantum.max(quantum);
    }

    /// Longest time within which packets due one after the other were to leave together: the part of their lateness
    /// that is chosen.
    pub fn quantum(&self) -> Span {
        self.quantum
    }

    /// A packet of an endpoint left: it had arrived at `arrived`, was due at `due`, and really went at
    /// `emitted`. A packet of its length takes `least_transit` at least.
    #[inline]
    pub fn emitted(
        &mut self,
        direction: Direction,
        arrived: Time,
        due: Time,
        emitted: Time,
        least_transit: impl FnOnce() -> Span,
    ) {
        let delay = due.since(arrived);
        self.delay[direction as usize].record(delay);
        let late = emitted.since(due);
        self.lateness.record(late);
        // The parameters of a link may have changed since the packet came; it has taken no longer than it has.
        self.late_emissions.look(late, self.bound, || least_transit().min(delay));
    }

    /// A packet with the kernel's stamp `kernel` was read at `read` and offered as of `offered`. It
    /// counts as late if the offer is later than the stamp by more than the bound: only then has the
    /// reading changed what the link does.
    #[inline]
    pub fn read(&mut self, kernel: Time, read: Time, offered: Time, least_transit: impl FnOnce() -> Span) {
        self.read_delay.record(read.since(kernel));
        let late = offered.since(kernel);
        self.entries.record(late);
        self.late_reads.look(late, self.bound, least_transit);
    }

    /// A packet without a stamp was read after nobody had looked for `unwatched`: it may have come so much
    /// earlier.
    #[inline]
    pub fn read_unstamped(&mut self, unwatched: Span, least_transit: impl FnOnce() -> Span) {
        self.entries.record(unwatched);
        self.late_reads.look(unwatched, self.bound, least_transit);
    }

    /// The bound of a packet that takes the median one-way delay, of the direction in which that is less: the
    /// time scale of whatever else the run did.
    pub fn usual_bound(&self) -> Span {
        self.bound.of(self.median_delay())
    }

    /// The median one-way delay, of the direction in which that is less; zero where nothing left.
    pub fn median_delay(&self) -> Span {
        let medians = self.delay.iter().filter(|delay| delay.count() > 0).map(|delay| delay.quantile_ns(0.5));
        Span::from_nanos(medians.min().unwrap_or(0))
    }

    /// The bound beyond which something is late.
    pub fn bound(&self) -> LatenessBound {
        self.bound
    }

    /// One-way delay, arrival to due time, in one direction.
    pub fn delay(&self, direction: Direction) -> Distribution {
        self.delay[direction as usize].distribution()
    }

    /// Lateness of the emulator: real departure after the due time.
    pub fn lateness(&self) -> Distribution {
        self.lateness.distribution()
    }

    /// Lateness of packets at the entry of the link: by their stamps, or an upper bound, where there are none.
    pub fn entries(&self) -> Distribution {
        self.entries.distribution()
    }

    /// Maximum error of the delays of all but `share` (0 to 1) of the packets, in ns. Whichever packets entered
    /// late and whichever left late: half of the share is given to either.
    pub fn late_by_in_all_but(&self, share: f64) -> u64 {
        [&self.entries, &self.lateness].map(|histogram| histogram.quantile_ns(1.0 - share / 2.0)).iter().sum()
    }

    /// From the kernel's stamp until the packet was read.
    pub fn read_delay(&self) -> Distribution {
        self.read_delay.distribution()
    }

    /// Packets that left later than their bounds.
    pub fn late_emissions(&self) -> Late {
        self.late_emissions
    }

    /// Packets that were offered later than their bounds after they came, or may have been.
    pub fn late_reads(&self) -> Late {
        self.late_reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        let mut last = 0;
        for shift in 0..LARGEST {
            for value in [1u64 << shift, (1 << shift) + (1 << shift) / 3, (2 << shift) - 1] {
                let index = bucket(value);
                assert!(index >= last && index < BUCKETS, "{value}");
                assert!(
                    upper(index) >= value && upper(index) as f64 <= value as f64 * 1.008,
                    "{value} {}",
                    upper(index)
                );
                if index > 0 {
                    assert!(upper(index - 1) < value);
                }
                last = index;
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_of_known_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.distribution(), Distribution::default());
        for micros in (1..=1_000).rev() {
            histogram.record(Span::from_micros(micros));
        }
        let distribution = histogram.distribution();
        assert_eq!((distribution.count, distribution.mean_ns, distribution.max_ns), (1_000, 500_500.0, 1_000_000));
        for (quantile, exact) in
            [(distribution.p50_ns, 500_000.0), (distribution.p99_ns, 990_000.0), (distribution.p999_ns, 999_000.0)]
        {
            let error = quantile as f64 / exact - 1.0;
            assert!((0.0..0.008).contains(&error), "{quantile} for {exact}");
        }
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        assert_eq!((twice.count(), twice.quantile_ns(0.5)), (2_000, histogram.quantile_ns(0.5)));
    }

    #[test]
    fn a_histogram_that_grows_counts_the_same() {
        let (mut whole, mut growing) = (Histogram::default(), Histogram::growing());
        assert_eq!(growing.distribution(), whole.distribution());
        for value in [0, 0, 127, 128, 255, 256, 1_000_000, 999, (1 << LARGEST) - 1, 1 << LARGEST, u64::MAX] {
            for histogram in [&mut whole, &mut growing] {
                histogram.record(Span::from_nanos(value));
            }
            assert_eq!(growing.distribution(), whole.distribution());
        }
        let mut merged = Histogram::growing();
        merged.merge(&growing);
        assert_eq!(merged.distribution(), whole.distribution());
    }

    #[test]
    fn only_what_is_beyond_the_bound_is_late() {
        let mut timings = Timings::new(LatenessBound::absolute(Span::from_millis(1)));
        let at = Time::from_nanos;
        let nobody_asks = || unreachable!("a bound that is a time needs no transit");
        let any = || Span::ZERO;
        timings.emitted(Direction::Uplink, at(0), at(5_000_000), at(6_000_000), nobody_asks);
        timings.emitted(Direction::Uplink, at(0), at(5_000_000), at(6_000_001), any);
        timings.read(at(10), at(3_000_000), at(10), nobody_asks);
        timings.read(at(10), at(3_000_000), at(1_000_011), any);
        let late = |late_ns| Late { packets: 1, worst: Excess { late_ns, bound_ns: 1_000_000 } };
        assert_eq!((timings.late_emissions(), timings.late_reads()), (late(1_000_001), late(1_000_001)));
        assert_eq!(timings.delay(Direction::Uplink).max_ns, 5_000_000);
        assert_eq!(timings.delay(Direction::Downlink).count, 0);
        assert_eq!(timings.read_delay().max_ns, 2_999_990);
    }

    #[test]
    fn each_packet_has_a_bound_of_its_own() {
        let mut timings = Timings::new(LatenessBound::USUAL);
        let at = |micros| Time::ZERO + Span::from_micros(micros);
        let transit = |micros| move || Span::from_micros(micros);
        // 150 us late: too much at a transit of 2 ms, and not of 4 ms.
        timings.emitted(Direction::Uplink, at(0), at(4_000), at(4_150), transit(4_000));
        assert_eq!(timings.late_emissions().packets, 0);
        timings.emitted(Direction::Uplink, at(0), at(4_000), at(4_150), transit(2_000));
        timings.read(at(0), at(9_000), at(150), transit(2_000));
        timings.read_unstamped(Span::from_micros(150), transit(4_000));
        timings.read_unstamped(Span::from_micros(260), transit(4_000));
        let worst = |late_ns, bound_ns| Excess { late_ns, bound_ns };
        assert_eq!(timings.late_emissions(), Late { packets: 1, worst: worst(150_000, 100_000) });
        assert_eq!(timings.late_reads(), Late { packets: 2, worst: worst(260_000, 200_000) });
        // A link that has become slower since does not excuse a packet that was fast.
        timings.emitted(Direction::Uplink, at(0), at(1_000), at(1_150), transit(1_000_000));
        assert_eq!(timings.late_emissions().packets, 2);
        assert_eq!(timings.entries().max_ns, 260_000);
    }
}
