// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A rate as a function of time, and how much it carries.
//!
//! The work done up to a time is counted in billionths of a bit (bit/s times nanoseconds), as a whole
//! number at every nanosecond: exact where the rate is constant, rounded down where it changes
//! linearly. So a sum over any number of frames has no error that grows.

use airpath_core::Time;

/// Billionths of a bit.
pub type Work = u128;

/// Amount of work for a bit.
pub const WORK_PER_BIT: Work = 1_000_000_000;

/// The highest rate: products with any time fit into 128 bits.
pub const HIGHEST_RATE: u64 = 1_000_000_000_000;

/// The longest time between two points that are joined by a line, for the same reason.
pub const LONGEST_LINE_NS: u64 = 3_600_000_000_000;

/// Part of a curve: from `rate` at its start to `rate_at_end`, in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    start_ns: u64,
    length_ns: u64,
    rate: u64,
    rate_at_end: u64,
    /// Work done by the curve before this piece.
    before: Work,
}

/// A rate over time, from 0 to the end of its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    pieces: Vec<Piece>,
    period_ns: u64,
    per_period: Work,
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Start time.
    pub at_ns: u64,
    /// In bit/s.
    pub rate: u64,
}

impl Piece {
    /// Work done `x` nanoseconds into the piece.
    fn work(&self, x: u64) -> Work {
        if self.rate == self.rate_at_end {
            return Work::from(self.rate) * Work::from(x);
        }
        let (x, twice) = (i128::from(x), 2 * i128::from(self.length_ns));
        let slope = i128::from(self.rate_at_end) - i128::from(self.rate);
        ((twice * i128::from(self.rate) * x + slope * x * x) / twice) as Work
    }

    /// The first nanosecond within the piece by which `work`, which is above 0, is done; the piece
    /// does that much.
    fn first(&self, work: Work) -> u64 {
        if self.rate == self.rate_at_end {
            return match u64::try_from(work) {
                Ok(work) => work.div_ceil(self.rate),
                Err(_) => u64::try_from(work.div_ceil(Work::from(self.rate))).unwrap_or(u64::MAX),
            };
        }
        // A guess in floating point, put right in whole numbers.
        let (rate, slope) = (self.rate as f64, (self.rate_at_end as f64 - self.rate as f64) / self.length_ns as f64);
        let root = libm::sqrt((rate * rate + 2.0 * slope * work as f64).max(0.0));
        let guess = ((2.0 * work as f64 / (rate + root)) as u64).min(self.length_ns);
        // Below `low` it is not done, at `high` it is.
        let (mut low, mut high) = (guess, guess);
        let mut step = 1;
        while low > 0 && self.work(low) >= work {
            (high, low) = (low, low.saturating_sub(step));
            step *= 2;
        }
        step = 1;
        while self.work(high) < work {
            (low, high) = (high, (high + step).min(self.length_ns));
            step *= 2;
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.work(middle) >= work { high = middle } else { low = middle }
        }
        high
    }
}

impl Curve {
    /// The curve through `points` (the first at 0, in order), of which each holds to the next, or is
    /// joined to the next by a line; the last holds to the end of the period.
    pub fn new(points: &[Point], period_ns: u64, linear: bool) -> Curve {
        let mut pieces = Vec::with_capacity(points.len());
        let mut before = 0;
        for (index, point) in points.iter().enumerate() {
            let next = points.get(index + 1);
            let piece = Piece {
                start_ns: point.at_ns,
                length_ns: next.map_or(period_ns, |next| next.at_ns) - point.at_ns,
                rate: point.rate,
                rate_at_end: next.filter(|_| linear).map_or(point.rate, |next| next.rate),
                before,
            };
            before += piece.work(piece.length_ns);
            pieces.push(piece);
        }
        Curve { pieces, period_ns, per_period: before }
    }

    /// The work done from 0 to `at`. `repeat` says whether the curve begins anew after its period,
    /// or its last rate stays; `hint` is the number of a piece that may be the right one.
    pub fn done(&self, at: Time, repeat: bool, hint: &mut usize) -> Work {
        let (mut base, mut x) = (0, at.nanos());
        if repeat && x >= self.period_ns {
            base = Work::from(x / self.period_ns) * self.per_period;
            x %= self.period_ns;
        }
        let is_right = |index: usize| {
            self.pieces.get(index).is_some_and(|piece| piece.start_ns <= x)
                && self.pieces.get(index + 1).is_none_or(|next| x < next.start_ns)
        };
        if !is_right(*hint) {
            *hint = self.pieces.partition_point(|piece| piece.start_ns <= x) - 1;
        }
        let piece = &self.pieces[*hint];
        base + piece.before + piece.work(x - piece.start_ns)
    }

    /// Time at which `work` is done, counted from 0, rounded down to a nanosecond; `Time::NEVER` if never.
    pub fn when(&self, work: Work, repeat: bool, hint: &mut usize) -> Time {
        let (mut base, mut rest) = (0u128, work);
        if repeat && work > self.per_period {
            if self.per_period == 0 {
                return Time::NEVER;
            }
            // What ends with a period ends in it, and not behind an outage at the beginning of the next.
            let periods = (work - 1) / self.per_period;
            base = periods * u128::from(self.period_ns);
            rest = work - periods * self.per_period;
        }
        if rest == 0 {
            return Time::ZERO;
        }
        let is_right = |index: usize| {
            self.pieces.get(index).is_some_and(|piece| piece.before < rest)
                && self.pieces.get(index + 1).is_none_or(|next| rest <= next.before)
        };
        if !is_right(*hint) {
            *hint = self.pieces.partition_point(|piece| piece.before < rest) - 1;
        }
        let piece = &self.pieces[*hint];
        let own = rest - piece.before;
        if piece.rate == 0 && piece.rate_at_end == 0 {
            return Time::NEVER;
        }
        let x = piece.first(own);
        // Within a nanosecond it is done before its end.
        let x = if piece.work(x) == own { x } else { x - 1 };
        let at = base + u128::from(piece.start_ns) + u128::from(x);
        Time::from_nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }
}
