// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Shares with their intervals.

use serde::Serialize;

/// Quantile of the standard normal distribution for an interval of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A share of events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Number of events that are hits.
    pub hits: u64,
    /// Number of events.
    pub of: u64,
    /// The share.
    pub share: f64,
    /// Interval of 95 % after Wilson (1927).
    pub interval: [f64; 2],
}

/// The share of `hits` among `of` events; none without events. `correlation` is that of neighbouring events: in
/// a Markov chain of two states n events say as much of the share as n (1 − ρ) / (1 + ρ) independent ones.
pub fn share(hits: u64, of: u64, correlation: f64) -> Option<Share> {
    if of == 0 {
        return None;
    }
    let p = hits as f64 / of as f64;
    let rho = correlation.clamp(0.0, 0.999);
    let n = (of as f64 * (1.0 - rho) / (1.0 + rho)).max(1.0);
    let centre = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let interval = [(centre - half).clamp(0.0, p), (centre + half).clamp(p, 1.0)];
    Some(Share { hits, of, share: p, interval })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_wilson_by_hand() {
        // 10 of 100: centre (0.1 + 0.019207) / 1.038415 = 0.114797, half width 0.059568.
        let found = share(10, 100, 0.0).unwrap();
        assert!(
            (found.interval[0] - 0.055_229).abs() < 1e-5 && (found.interval[1] - 0.174_366).abs() < 1e-5,
            "{found:?}"
        );
        // None of 100: 0 to z²/(n + z²) = 3.8415 / 103.8415.
        let found = share(0, 100, 0.0).unwrap();
        assert!(found.interval[0].abs() < 1e-12 && (found.interval[1] - 0.036_994).abs() < 1e-5, "{found:?}");
        // A correlation of 0.5 makes 300 events as good as 100.
        assert_eq!(share(30, 300, 0.5).unwrap().interval, share(10, 100, 0.0).unwrap().interval);
        assert_eq!(share(0, 0, 0.0), None);
    }
}
