// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The straight lines that no exchange contradicts.
//!
//! The offset between two clocks of constant rates is a line over time. Each request says that the
//! line is not above a point, each answer that it is not below one. Only the points on the convex
//! hulls matter (Moon, Skelly and Towsley 1999, "Estimation and Removal of Clock Skew from Network
//! Delay Measurements", who fit a line under one direction's hull; here both directions bound it, so
//! that what is left is certain and no assumption about queues enters).

/// Clocks that differ by more than this in rate are not clocks: 10 %, in ns/s.
const STEEPEST_NS_PER_S: f64 = 1e8;
/// Rounds of the searches; each leaves two thirds of the interval, so that these leave nothing of it.
const ROUNDS: usize = 160;

/// A point: time in seconds, offset in nanoseconds, each from an origin of the caller's.
pub type Point = (f64, f64);

/// Every line that runs below all points of one set and above all of another.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    above: Vec<Point>,
    below: Vec<Point>,
    /// Least distance by which every point had to give way for there to be a line, in ns.
    wander_ns: f64,
    slope: [f64; 2],
}

impl Lines {
    /// The lines not above any of `greatest` and not below any of `least`. Where there is none, all
    /// points give way by the same amount: twice what lets one line through.
    ///
    /// # Panics
    /// If either is empty.
    pub fn between(greatest: Vec<Point>, least: Vec<Point>) -> Lines {
        assert!(!greatest.is_empty() && !least.is_empty(), "there are points on both sides");
        let flipped = |points: Vec<Point>| points.into_iter().map(|(x, y)| (x, -y)).collect();
        let below: Vec<Point> = lower_hull(flipped(least)).into_iter().map(|(x, y)| (x, -y)).collect();
        let mut lines = Lines { above: lower_hull(greatest), below, wander_ns: 0.0, slope: [0.0; 2] };
        let best = least_of(-STEEPEST_NS_PER_S, STEEPEST_NS_PER_S, |slope| lines.excess(slope));
        lines.wander_ns = lines.excess(best).max(0.0) / 2.0;
        let room = |slope: f64| lines.excess(slope) - 4.0 * lines.wander_ns;
        lines.slope = [root(-STEEPEST_NS_PER_S, best, room), root(STEEPEST_NS_PER_S, best, room)];
        lines
    }

    /// Least deviation of the clocks from a straight line, in ns.
    pub fn wander_ns(&self) -> f64 {
        self.wander_ns
    }

    /// The least and the greatest slope of any line, in ns/s.
    pub fn slope(&self) -> [f64; 2] {
        self.slope
    }

    /// The least and the greatest offset of any line at `x`.
    pub fn range_at(&self, x: f64) -> [f64; 2] {
        let [low, high] = self.slope;
        let relaxed = 2.0 * self.wander_ns;
        let top = |slope: f64| -(self.highest(slope) + relaxed + slope * x);
        let bottom = |slope: f64| self.lowest(slope) - relaxed + slope * x;
        [bottom(least_of(low, high, bottom)), -top(least_of(low, high, top))]
    }

    /// The intercept of the highest line of this slope.
    fn highest(&self, slope: f64) -> f64 {
        self.above.iter().map(|(x, y)| y - slope * x).fold(f64::INFINITY, f64::min)
    }

    /// The intercept of the lowest line of this slope.
    fn lowest(&self, slope: f64) -> f64 {
        self.below.iter().map(|(x, y)| y - slope * x).fold(f64::NEG_INFINITY, f64::max)
    }

    /// More than zero where no line of this slope fits; a convex function.
    fn excess(&self, slope: f64) -> f64 {
        self.lowest(slope) - self.highest(slope)
    }
}

/// Returns the place of the minimum of the convex `function`.
fn least_of(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..ROUNDS {
        let third = (high - low) / 3.0;
        if function(low + third) <= function(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    (low + high) / 2.0
}

/// Between `outside`, where the convex `function` may be positive, and `inside`, where it is not: the
/// last place where it is not.
fn root(mut outside: f64, mut inside: f64, function: impl Fn(f64) -> f64) -> f64 {
    if function(outside) <= 0.0 {
        return outside;
    }
    for _ in 0..ROUNDS {
        let middle = (outside + inside) / 2.0;
        if function(middle) > 0.0 {
            outside = middle;
        } else {
            inside = middle;
        }
    }
    inside
}

/// The lower convex hull, from left to right (Andrew 1979).
fn lower_hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        while let [.., (x0, y0), (x1, y1)] = hull[..]
            && (x1 - x0) * (point.1 - y0) - (y1 - y0) * (point.0 - x0) <= 0.0
        {
            hull.pop();
        }
        // Of points at one time only the lowest is on it.
        if hull.last().is_none_or(|last| last.0 < point.0) {
            hull.push(point);
        }
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_above_and_below_leave_the_lines_between() {
        // Between y ≤ 1 at both ends and y ≥ −1 at both ends.
        let lines = Lines::between(vec![(0.0, 1.0), (10.0, 1.0), (5.0, 7.0)], vec![(0.0, -1.0), (10.0, -1.0)]);
        let [low, high] = lines.slope();
        assert!((low + 0.2).abs() < 1e-6 && (high - 0.2).abs() < 1e-6, "{low} {high}");
        let [least, greatest] = lines.range_at(5.0);
        assert!((least + 1.0).abs() < 1e-6 && (greatest - 1.0).abs() < 1e-6, "{least} {greatest}");
        let [least, greatest] = lines.range_at(20.0);
        assert!((least + 3.0).abs() < 1e-6 && (greatest - 3.0).abs() < 1e-6, "{least} {greatest}");
        assert_eq!(lines.wander_ns(), 0.0);
    }

    #[test]
    fn where_no_line_fits_the_points_give_way() {
        // Bent: 0 at both ends, 10 in the middle, known exactly. A line at 5 misses each by 5.
        let bent = vec![(0.0, 0.0), (5.0, 10.0), (10.0, 0.0)];
        let lines = Lines::between(bent.clone(), bent);
        assert!((lines.wander_ns() - 5.0).abs() < 1e-6, "{}", lines.wander_ns());
        let [least, greatest] = lines.range_at(5.0);
        assert!(least <= 0.1 && greatest >= 9.9, "{least} {greatest}");
    }

    #[test]
    fn one_exchange_says_nothing_about_the_rate() {
        let lines = Lines::between(vec![(0.0, 1.0)], vec![(0.0, -1.0)]);
        assert_eq!(lines.slope(), [-STEEPEST_NS_PER_S, STEEPEST_NS_PER_S]);
    }

    #[test]
    fn hulls_agree_with_all_points() {
        let points: Vec<Point> =
            (0..200u32).map(|i| (f64::from(i * 37 % 101), f64::from(i.wrapping_mul(2_654_435_761) >> 20))).collect();
        let hull = lower_hull(points.clone());
        for slope in [-50.0, -3.0, 0.0, 0.5, 40.0] {
            let least = |set: &[Point]| set.iter().map(|(x, y)| y - slope * x).fold(f64::INFINITY, f64::min);
            assert_eq!(least(&hull), least(&points));
        }
    }
}
