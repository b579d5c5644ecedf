// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Rates at given times, as a file tells them.

use std::sync::{Arc, OnceLock};

use super::curve::{Curve, HIGHEST_RATE, Point};

/// The most points of a trace: what expands to more is a mistake.
pub(super) const POINTS_LIMIT: usize = 10_000_000;

/// Rates at given times.
#[derive(Debug)]
pub struct RateTrace {
    points: Vec<Point>,
    period_ns: u64,
    repeats: bool,
    steps: OnceLock<Arc<Curve>>,
    lines: OnceLock<Arc<Curve>>,
}

impl RateTrace {
    /// A trace of `points`, the first at 0 and in order; without `period_ns` the last rate lasts as
    /// long as the one before it.
    ///
    /// # Errors
    /// What is wrong with them; points are numbered from 1.
    pub fn new(points: Vec<Point>, period_ns: Option<u64>, repeats: bool) -> Result<RateTrace, String> {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Err("it has no rates".into());
        };
        if first.at_ns != 0 {
            return Err("its first time is not 0".into());
        }
        for (index, pair) in points.windows(2).enumerate() {
            if pair[1].at_ns <= pair[0].at_ns {
                return Err(format!("the time of point {} is not later than that of the one before", index + 2));
            }
        }
        if let Some(index) = points.iter().position(|point| point.rate > HIGHEST_RATE) {
            return Err(format!("the rate of point {} is above 1000 Gbit/s", index + 1));
        }
        if points.iter().all(|point| point.rate == 0) {
            return Err("it has no rate above 0, so that nothing would ever arrive".into());
        }
        let interval = match points.as_slice() {
            [.., before, last] => last.at_ns - before.at_ns,
            _ => 1_000_000_000,
        };
        let period_ns = period_ns.unwrap_or_else(|| last.at_ns.saturating_add(interval));
        if period_ns <= last.at_ns {
            return Err("its period ends before its last time".into());
        }
        Ok(RateTrace { points, period_ns, repeats, steps: OnceLock::new(), lines: OnceLock::new() })
    }

    /// Rates and from when on they hold, the first from 0 on.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// End of the trace.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// True if the file says that it repeats then.
    pub fn repeats(&self) -> bool {
        self.repeats
    }

    /// The rate over time, in steps or in lines.
    pub fn curve(&self, linear: bool) -> &Arc<Curve> {
        let made = if linear { &self.lines } else { &self.steps };
        made.get_or_init(|| Arc::new(Curve::new(&self.points, self.period_ns, linear)))
    }
}
