// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Numbers from samples.

/// Samples in ascending order.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Sorts `values`.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Samples {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Samples(sorted)
    }

    /// Number of values.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// All of them, in ascending order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The smallest value that `share` (0 to 1) of the samples do not exceed; NaN without samples.
    pub fn quantile(&self, share: f64) -> f64 {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// The mean; NaN without samples.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The largest; NaN without samples.
    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let samples = Samples::new((1..=100).rev().map(f64::from));
        assert_eq!(samples.quantile(0.5), 50.0);
        assert_eq!(samples.quantile(0.99), 99.0);
        assert_eq!(samples.quantile(1.0), 100.0);
        assert_eq!((samples.mean(), samples.max(), samples.count()), (50.5, 100.0, 100));
        assert!(Samples::default().quantile(0.5).is_nan());
    }
}
