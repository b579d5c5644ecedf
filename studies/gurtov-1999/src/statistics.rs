// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Sample mean and variance with bootstrap intervals, and quantiles (Gurtov 1999, 3.2).

use airpath_core::draw::DrawKey;

use crate::pattern;
use crate::report::{Estimates, Measured, Quantiles};
use crate::series::SeriesOutcome;

/// Number of resamples of a sample for its intervals.
pub const RESAMPLES: u64 = 2_000;
/// The share of resamples inside an interval is 95 %, as thousandths on either side.
const OUTSIDE_THOUSANDTHS: usize = 25;

/// The fewest values that have intervals: resampling fewer holds well below 95 %, most of all for the variance.
pub const LEAST_FOR_INTERVALS: usize = 100;

/// The sample mean, and the sample variance over n − 1; nought for fewer than one, and two values.
pub fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() < 2 { 0.0 } else { squares / (count - 1.0) })
}

/// The least of `sorted` which so many thousandths are at most (nearest rank).
fn quantile<T: Copy>(sorted: &[T], thousandths: usize) -> T {
    sorted[(sorted.len() * thousandths).div_ceil(1_000).max(1) - 1]
}

/// The quantiles of `values`, which are not empty; sorts them.
pub fn quantiles(values: &mut [i64]) -> Quantiles {
    values.sort_unstable();
    Quantiles {
        min: values[0],
        p50: quantile(values, 500),
        p99: quantile(values, 990),
        p999: quantile(values, 999),
        max: values[values.len() - 1],
    }
}

/// Mean and variance of `values`, with percentile bootstrap intervals of 95 %: as many values are drawn
/// from them with replacement, [`RESAMPLES`] times, under `key`. Fewer than [`LEAST_FOR_INTERVALS`] have none.
pub fn estimates(values: &[f64], key: DrawKey) -> Estimates {
    let (mean, variance) = mean_and_variance(values);
    let count = values.len();
    if count < LEAST_FOR_INTERVALS {
        return Estimates { mean, mean_interval: None, variance, variance_interval: None };
    }
    let mut means = Vec::with_capacity(RESAMPLES as usize);
    let mut variances = Vec::with_capacity(RESAMPLES as usize);
    for resample in 0..RESAMPLES {
        // Sums of what is left of the mean: squares of the values themselves would cancel out.
        let (mut sum, mut squares) = (0.0, 0.0);
        for step in 0..count as u64 {
            let value = values[key.below(resample * count as u64 + step, 0, count as u64) as usize] - mean;
            sum += value;
            squares += value * value;
        }
        means.push(mean + sum / count as f64);
        variances.push(((squares - sum * sum / count as f64) / (count - 1) as f64).max(0.0));
    }
    let interval = |values: &mut Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        Some([quantile(values, OUTSIDE_THOUSANDTHS), quantile(values, 1_000 - OUTSIDE_THOUSANDTHS)])
    };
    Estimates { mean, mean_interval: interval(&mut means), variance, variance_interval: interval(&mut variances) }
}

/// Everything that is said of a series of `requested_ns`, of which at least one was slept.
pub fn measured(requested_ns: &[u64], outcome: &SeriesOutcome, seed: u64) -> Measured {
    let actual_ns = &outcome.actual_ns;
    let pairs = || requested_ns.iter().zip(actual_ns).map(|(requested, actual)| (*requested, *actual));
    let mut errors_ns: Vec<i64> = pairs().map(|(requested, actual)| actual as i64 - requested as i64).collect();
    let errors_ms: Vec<f64> = errors_ns.iter().map(|error| *error as f64 / 1e6).collect();
    let relative: Vec<f64> = pairs()
        .filter(|(requested, _)| *requested > 0)
        .map(|(requested, actual)| (actual as f64 - requested as f64) / requested as f64)
        .collect();
    let count = errors_ns.len() as f64;
    Measured {
        requests: errors_ns.len() as u32,
        absolute_error_ms: estimates(&errors_ms, pattern::key(seed, "bootstrap of absolute errors")),
        relative_error: estimates(&relative, pattern::key(seed, "bootstrap of relative errors")),
        drift_ns: errors_ns.iter().sum(),
        error_ns: quantiles(&mut errors_ns),
        requested_total_ns: pairs().map(|(requested, _)| requested).sum(),
        elapsed_ns: outcome.elapsed_ns,
        processor_ns_per_sleep: outcome.processor_ns as f64 / count,
        voluntary_switches_per_sleep: outcome.voluntary_switches as f64 / count,
        involuntary_switches_per_sleep: outcome.involuntary_switches as f64 / count,
        expected_oversleep_ns: outcome.expected_oversleep_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 9+1+1+1+0+0+4+16 = 32, over 7.
        let (mean, variance) = mean_and_variance(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((mean, variance), (5.0, 32.0 / 7.0));
        assert_eq!(mean_and_variance(&[3.0]), (3.0, 0.0));
        assert_eq!(mean_and_variance(&[]), (0.0, 0.0));
    }

    #[test]
    fn quantiles_by_hand() {
        let mut values: Vec<i64> = (1..=1_000).rev().collect();
        assert_eq!(quantiles(&mut values), Quantiles { min: 1, p50: 500, p99: 990, p999: 999, max: 1_000 });
        // Of three, half are at most the second, and 99 in 100 only at most the third.
        assert_eq!(quantiles(&mut [7, -3, 5]), Quantiles { min: -3, p50: 5, p99: 7, p999: 7, max: 7 });
        assert_eq!(quantiles(&mut [4]), Quantiles { min: 4, p50: 4, p99: 4, p999: 4, max: 4 });
    }

    #[test]
    fn the_intervals_are_those_of_theory() {
        // Uniform values: the mean's standard error is sqrt(s²/n), so that the interval is nearly
        // ±1.96 of them; the variance's is sqrt((m4 − s⁴)/n), with m4 = w⁴/80 and s² = w²/12.
        let key = pattern::key(1, "test");
        let values: Vec<f64> = (0..1_000).map(|step| 12.0 * key.unit(step, 0)).collect();
        let estimates = estimates(&values, pattern::key(2, "test"));
        let (mean, variance) = mean_and_variance(&values);
        assert_eq!((estimates.mean, estimates.variance), (mean, variance));
        let near = |interval: Option<[f64; 2]>, middle: f64, error: f64| {
            let interval = interval.unwrap();
            for (bound, expected) in interval.into_iter().zip([middle - 1.96 * error, middle + 1.96 * error]) {
                assert!((bound - expected).abs() < 0.25 * error, "{interval:?} around {middle} ± {error}");
            }
        };
        near(estimates.mean_interval, mean, (variance / 1_000.0).sqrt());
        near(estimates.variance_interval, variance, ((20_736.0 / 80.0 - 144.0) / 1_000.0f64).sqrt());
    }

    /// Share of 300 samples of 100 values whose intervals hold the mean and the variance of their population;
    /// the standard error of a share is 0.013. The variance of a skewed population is held less often, as
    /// documented.
    #[test]
    fn the_least_number_of_values_has_intervals_that_hold() {
        let drawn = |sample: u64, make: &dyn Fn(f64) -> f64| -> Vec<f64> {
            let key = pattern::key(sample, "population");
            (0..LEAST_FOR_INTERVALS as u64).map(|step| make(key.exponential(step, 0))).collect()
        };
        let share = |make: &dyn Fn(f64) -> f64, mean: f64, variance: f64| {
            let (mut means, mut variances) = (0, 0);
            for sample in 0..300 {
                let estimates = estimates(&drawn(sample, make), pattern::key(sample, "resamples"));
                let holds = |[low, high]: [f64; 2], value| low <= value && value <= high;
                means += u32::from(holds(estimates.mean_interval.unwrap(), mean));
                variances += u32::from(holds(estimates.variance_interval.unwrap(), variance));
            }
            [f64::from(means) / 300.0, f64::from(variances) / 300.0]
        };
        // Uniform, by the distribution function of the exponential; and that itself.
        let [mean, variance] = share(&|x| 1.0 - (-x).exp(), 0.5, 1.0 / 12.0);
        assert!(mean > 0.91 && variance > 0.91, "uniform: {mean} {variance}");
        let [mean, variance] = share(&|x| x, 1.0, 1.0);
        assert!(mean > 0.90 && (0.78..0.93).contains(&variance), "exponential: {mean} {variance}");
        let few = estimates(&[1.0; LEAST_FOR_INTERVALS - 1], pattern::key(1, "test"));
        assert_eq!((few.mean, few.mean_interval, few.variance_interval), (1.0, None, None));
    }

    #[test]
    fn equal_values_have_no_spread() {
        let estimates = estimates(&[0.25; LEAST_FOR_INTERVALS], pattern::key(1, "test"));
        assert_eq!(estimates.mean_interval, Some([0.25; 2]));
        assert_eq!((estimates.variance, estimates.variance_interval), (0.0, Some([0.0; 2])));
    }

    #[test]
    fn a_series_by_hand() {
        let outcome = SeriesOutcome {
            actual_ns: vec![3_000_000, 0, 4_000_000],
            elapsed_ns: 8_000_000,
            rested_ns: 0,
            processor_ns: 30_000,
            voluntary_switches: 3,
            involuntary_switches: 0,
            expected_oversleep_ns: None,
        };
        // The fourth request was never slept: the series was broken off.
        let measured = measured(&[1_000_000, 0, 5_000_000, 9], &outcome, 1);
        assert_eq!((measured.requests, measured.drift_ns), (3, 1_000_000));
        // Errors of 2, 0 and −1 ms: mean 1/3, squares 25/9 + 1/9 + 16/9 = 42/9, over 2.
        assert!((measured.absolute_error_ms.mean - 1.0 / 3.0).abs() < 1e-12);
        assert!((measured.absolute_error_ms.variance - 7.0 / 3.0).abs() < 1e-12);
        // Relative: 2 and −0.2, without the request of nothing: mean 0.9, variance 2 · 1.1².
        assert!((measured.relative_error.mean - 0.9).abs() < 1e-12);
        assert!((measured.relative_error.variance - 2.42).abs() < 1e-12);
        assert_eq!((measured.error_ns.min, measured.error_ns.p50, measured.error_ns.max), (-1_000_000, 0, 2_000_000));
        assert_eq!(measured.processor_ns_per_sleep, 10_000.0);
        assert_eq!(measured.voluntary_switches_per_sleep, 1.0);
    }
}
