// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A normal value that changes with time rather than from draw to draw: what asks at any rate sees one
//! course, with the same mean and standard deviation.
//!
//! Between knots that are `time` apart the value is mean + deviation × (cos θ z(k) + sin θ z(k + 1)),
//! where z are independent standard normal values and θ goes from 0 to π / 2 between the knots k and
//! k + 1. The weights' squares add up to 1, so that at every instant the value is exactly normal with
//! this mean and deviation. Where the first knot lies is drawn, too, which makes the process stationary.
//! With x the lag over `time`, the correlation is (1 - x / 2) cos(π x / 2) + sin(π x / 2) / π up to x = 2
//! (0.84 at a half, 0.32 at 1), and 0 beyond. What would be negative is 0.
//!
//! A delay that falls faster than time passes would let packets overtake each other, and a link that
//! keeps their order holds them back: the delay becomes longer, and varies less, than was asked for. The
//! slope of this process at any instant is normal with deviation (π / 2) × deviation / `time`, so it is
//! below -1 with the probability that a standard normal value exceeds (2 / π) × `time` / deviation:
//! 1e-10 where `time` is ten deviations, 0.0055 where it is four, 0.26 where it is one.
//!
//! The value is a function of the key and the instant alone. Where something is drawn that belongs to no
//! instant, such as the size of a packet, draws are independent.

use airpath_core::{DrawKey, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declare::{Configured, Draw};
use super::{CEILING, Quantity, check_above_zero, share, standard_normal};
use crate::problem::Problem;

/// No value lies further than this from the mean, in deviations: of a draw of 53 bits no quantile is
/// beyond 8.3, and two weights come to the root of two at most.
const FURTHEST: f64 = 12.0;
/// Knots are numbered below this, as steps of a draw are.
const KNOTS: u64 = 1 << 44;

/// Parameters of a normal value that changes with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wander<Q: Quantity> {
    /// The mean, before what is negative becomes 0.
    pub mean: Q,
    /// The standard deviation, before what is negative becomes 0.
    pub deviation: Q,
    /// Time scale of changes: values half of this apart have a correlation of 0.84, values this far apart one
    /// of 0.32, and values twice as far apart none.
    pub time: Span,
}

impl<Q: Quantity> Configured<Q> for Wander<Q> {
    type Drawer = Drawer;

    const IS_TIMED: bool = true;

    fn least(&self) -> Q {
        Q::from_base((self.mean.base() as f64 - FURTHEST * self.deviation.base() as f64).max(0.0) as u64)
    }

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        check_above_zero("deviation", self.deviation, &mut problems);
        if self.time == Span::ZERO {
            let message = "is 0 s; it must be more (draws that do not depend on one another are of type `normal`)";
            problems.push(Problem::new("time", message));
        }
        problems
    }

    fn drawer(&self, key: DrawKey) -> Drawer {
        let time_ns = self.time.nanos().max(1);
        Drawer {
            key: key.child("knots", 0),
            mean: self.mean.base() as f64,
            deviation: self.deviation.base() as f64,
            time_ns,
            before_ns: key.child("first knot", 0).below(0, 0, time_ns),
            knots: None,
        }
    }

    fn examples(typical: Q) -> Vec<Wander<Q>> {
        let quick = Wander { mean: typical, deviation: share(typical, 0.25), time: Span::from_millis(20) };
        vec![quick, Wander { deviation: typical, time: Span::from_micros(300), ..quick }]
    }
}

/// The process.
#[derive(Clone, Debug)]
pub(super) struct Drawer {
    key: DrawKey,
    mean: f64,
    deviation: f64,
    time_ns: u64,
    /// Time from the first knot to the run's beginning.
    before_ns: u64,
    /// The knots around the last instant that was asked for: the number of the first, and their values.
    knots: Option<(u64, [f64; 2])>,
}

impl Drawer {
    fn value(&self, normal: f64) -> u64 {
        (self.mean + self.deviation * normal).clamp(0.0, CEILING as f64) as u64
    }

    fn knot(&self, number: u64) -> f64 {
        standard_normal::draw(self.key, number % KNOTS, 0)
    }
}

impl Draw for Drawer {
    fn draw(&mut self, step: u64) -> u64 {
        self.value(self.knot(step))
    }

    fn draw_at(&mut self, _: u64, at: Time) -> u64 {
        let since_first = at.nanos().saturating_add(self.before_ns);
        let number = since_first / self.time_ns;
        let [one, next] = match self.knots {
            Some((known, values)) if known == number => values,
            Some((known, [_, next])) if known + 1 == number => [next, self.knot(number + 1)],
            _ => [self.knot(number), self.knot(number + 1)],
        };
        self.knots = Some((number, [one, next]));
        let angle = std::f64::consts::FRAC_PI_2 * ((since_first % self.time_ns) as f64 / self.time_ns as f64);
        self.value(libm::cos(angle) * one + libm::sin(angle) * next)
    }
}
