// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Quantiles of samples.

/// The smallest sample that a share of all samples does not exceed; none without samples. Sorts them.
pub fn quantile(samples: &mut [f64], share: f64) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let last = samples.len().checked_sub(1)?;
    let place = (share * samples.len() as f64).ceil() as usize;
    Some(samples[place.saturating_sub(1).min(last)])
}

/// The median: of an even number the mean of both in the middle. Sorts them.
pub fn median(samples: &mut [f64]) -> Option<f64> {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    match samples.len() {
        0 => None,
        even if even % 2 == 0 => Some(f64::midpoint(samples[middle - 1], samples[middle])),
        _ => Some(samples[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let mut samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(median(&mut samples), Some(2.5));
        assert_eq!(median(&mut [7.0, 1.0, 2.0]), Some(2.0));
        let of = |share| quantile(&mut [4.0, 1.0, 3.0, 2.0], share);
        assert_eq!([of(0.0), of(0.25), of(0.26), of(1.0)], [Some(1.0), Some(1.0), Some(2.0), Some(4.0)]);
        assert_eq!((median(&mut []), quantile(&mut [], 0.5)), (None, None));
    }
}
