// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A straight line through points some of which are far off: the median of the slopes between all
//! pairs (Theil 1950), with Sen's interval (Sen 1968, "Estimates of the Regression Coefficient Based
//! on Kendall's Tau").

use super::lines::Point;

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// A fitted line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Line {
    /// Its value at x = 0.
    pub intercept: f64,
    /// Its slope.
    pub slope: f64,
    /// The interval of 95 % of the slope.
    pub slope_interval: [f64; 2],
}

/// The line through `points`; none where they are all at one place.
pub fn fit(points: &[Point]) -> Option<Line> {
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (index, (x0, y0)) in points.iter().enumerate() {
        slopes.extend(points[index + 1..].iter().filter(|(x, _)| x != x0).map(|(x, y)| (y - y0) / (x - x0)));
    }
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_by(f64::total_cmp);
    let slope = median(&slopes);
    let n = points.len() as f64;
    let width = Z * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let last = slopes.len() - 1;
    let rank = |rank: f64| slopes[(rank.max(0.0) as usize).min(last)];
    let pairs = slopes.len() as f64;
    let slope_interval = [rank((pairs - width) / 2.0 - 1.0), rank((pairs + width) / 2.0)];
    let mut rests: Vec<f64> = points.iter().map(|(x, y)| y - slope * x).collect();
    rests.sort_by(f64::total_cmp);
    Some(Line { intercept: median(&rests), slope, slope_interval })
}

/// The median of sorted `values`, of which there is at least one.
pub fn median(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use airpath_core::Direction;
    use airpath_core::draw::{DrawKey, DrawScope, Seed};

    use super::*;

    #[test]
    fn a_quarter_of_outliers_changes_nothing() {
        let points: Vec<Point> =
            (0..20u32).map(|i| (f64::from(i), if i % 4 == 3 { 1e6 } else { 5.0 + 2.0 * f64::from(i) })).collect();
        let line = fit(&points).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-9 && (line.intercept - 5.0).abs() < 1e-9, "{line:?}");
        assert!(line.slope_interval[0] <= 2.0 && line.slope_interval[1] >= 2.0);
    }

    /// Share of 2,000 lines with noise whose interval holds the true slope: Sen's ranks, rounded outwards,
    /// hold 95 % from five points on, whatever the noise's distribution.
    #[test]
    fn the_interval_holds_from_five_points_on() {
        let scope = DrawScope { hop: "timing", direction: Direction::Uplink, role: "noise", instance: 0 };
        let key = DrawKey::new(Seed(7), &scope);
        for count in [5u64, 10, 20] {
            for skewed in [false, true] {
                let holds = |line: u64| {
                    let noise = |point| {
                        let step = line * count + point;
                        let sum: f64 = (0..12).map(|attempt| key.unit(step, attempt)).sum::<f64>() - 6.0;
                        if skewed { sum.exp() } else { sum }
                    };
                    let points: Vec<Point> = (0..count).map(|x| (x as f64, 3.0 * x as f64 + noise(x))).collect();
                    let [low, high] = fit(&points).unwrap().slope_interval;
                    low <= 3.0 && 3.0 <= high
                };
                let share = (0..2_000).filter(|line| holds(*line)).count() as f64 / 2_000.0;
                // Three standard errors of 0.0049 below 95 %.
                assert!(share > 0.935, "{count} points, skewed {skewed}: {share}");
            }
        }
    }

    #[test]
    fn points_at_one_place_have_no_slope() {
        assert_eq!(fit(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(fit(&[]), None);
    }
}
