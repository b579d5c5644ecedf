//! Distributions of times, kept without allocation: counts in buckets whose width is less than
//! 0.8 % of their value, and the exact mean and maximum.

use airpath_core::{Direction, Span, Time};
use serde::{Deserialize, Serialize};

/// Buckets in each doubling of the value, as a power of two.
const PRECISION: u32 = 7;
/// Values from 2^50 ns (13 days) on share the last bucket.
const LARGEST: u32 = 50;
const BUCKETS: usize = ((LARGEST - PRECISION + 1) as usize) << PRECISION;

/// A histogram of nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u64]>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: vec![0; BUCKETS].into_boxed_slice(), count: 0, sum: 0, max: 0 }
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
    /// Counts `span`.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let value = span.nanos();
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// How many spans were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Histogram) {
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

/// A distribution of times, in nanoseconds; quantiles are exact to 0.8 %.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Distribution {
    /// How many were measured.
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

/// How well the emulator kept its times, and how long packets took.
#[derive(Clone, Debug)]
pub struct Timings {
    delay: [Histogram; 2],
    lateness: Histogram,
    read_delay: Histogram,
    bound: Span,
    late_emissions: u64,
    late_reads: u64,
}

impl Timings {
    /// Nothing measured yet; what comes later than `bound` counts as late.
    pub fn new(bound: Span) -> Timings {
        Timings {
            delay: Default::default(),
            lateness: Histogram::default(),
            read_delay: Histogram::default(),
            bound,
            late_emissions: 0,
            late_reads: 0,
        }
    }

    /// A packet of an endpoint left: it had arrived at `arrived`, was due at `due`, and really went at
    /// `emitted`.
    #[inline]
    pub fn emitted(&mut self, direction: Direction, arrived: Time, due: Time, emitted: Time) {
        self.delay[direction as usize].record(due.since(arrived));
        let late = emitted.since(due);
        self.lateness.record(late);
        self.late_emissions += u64::from(late > self.bound);
    }

    /// A packet with the kernel's stamp `kernel` was read at `read` and offered as of `offered`. It
    /// counts as late if the offer is later than the stamp by more than the bound: only then has the
    /// reading changed what the link does.
    #[inline]
    pub fn read(&mut self, kernel: Time, read: Time, offered: Time) {
        self.read_delay.record(read.since(kernel));
        self.late_reads += u64::from(offered.since(kernel) > self.bound);
    }

    /// The bound beyond which something is late.
    pub fn bound(&self) -> Span {
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

    /// From the kernel's stamp until the packet was read.
    pub fn read_delay(&self) -> Distribution {
        self.read_delay.distribution()
    }

    /// How many packets left later than the bound.
    pub fn late_emissions(&self) -> u64 {
        self.late_emissions
    }

    /// How many packets were offered later than the bound after their stamps.
    pub fn late_reads(&self) -> u64 {
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
    fn only_what_is_beyond_the_bound_is_late() {
        let mut timings = Timings::new(Span::from_millis(1));
        let at = Time::from_nanos;
        timings.emitted(Direction::Uplink, at(0), at(5_000_000), at(6_000_000));
        timings.emitted(Direction::Uplink, at(0), at(5_000_000), at(6_000_001));
        timings.read(at(10), at(3_000_000), at(10));
        timings.read(at(10), at(3_000_000), at(1_000_011));
        assert_eq!((timings.late_emissions(), timings.late_reads()), (1, 1));
        assert_eq!(timings.delay(Direction::Uplink).max_ns, 5_000_000);
        assert_eq!(timings.delay(Direction::Downlink).count, 0);
        assert_eq!(timings.read_delay().max_ns, 2_999_990);
    }
}
