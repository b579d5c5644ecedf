// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Logical time: unsigned nanoseconds since the run began.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::quantity::{self, QuantityError, Unit};

/// An instant, in nanoseconds since the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The instant at which the run began.
    pub const ZERO: Time = Time(0);
    /// An instant that never comes; used where "no deadline" has to be compared with others.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanoseconds` after the run began.
    pub const fn from_nanos(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }

    /// Nanoseconds since the run began.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The time that has passed since `earlier`; zero where `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// `None` for [`Time::NEVER`], otherwise the instant.
    pub fn finite(self) -> Option<Time> {
        (self != Time::NEVER).then_some(self)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `nanoseconds`.
    pub const fn from_nanos(nanoseconds: u64) -> Span {
        Span(nanoseconds)
    }

    /// A span of `microseconds`.
    pub const fn from_micros(microseconds: u64) -> Span {
        Span(microseconds * 1_000)
    }

    /// A span of `milliseconds`.
    pub const fn from_millis(milliseconds: u64) -> Span {
        Span(milliseconds * 1_000_000)
    }

    /// A span of `seconds`.
    pub const fn from_secs(seconds: u64) -> Span {
        Span(seconds * 1_000_000_000)
    }

    /// The span in nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The span in seconds, for display and statistics only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER { write!(f, "never") } else { write!(f, "{}ns", self.0) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

/// Units a span may be written in, the coarsest first.
pub const SPAN_UNITS: &[Unit] = &[
    Unit { names: &["h"], factor: 3_600_000_000_000, shown: true },
    Unit { names: &["min"], factor: 60_000_000_000, shown: true },
    Unit { names: &["s"], factor: 1_000_000_000, shown: true },
    Unit { names: &["ms"], factor: 1_000_000, shown: true },
    Unit { names: &["us", "µs", "μs"], factor: 1_000, shown: true },
    Unit { names: &["ns"], factor: 1, shown: true },
];

impl std::str::FromStr for Span {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Span, QuantityError> {
        quantity::parse(text, "time", SPAN_UNITS, "\"200 ms\"").map(Span)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::show(f, self.0, SPAN_UNITS, "s")
    }
}

quantity::text_serde!(
    Span,
    "A length of time with its unit: h, min, s, ms, us or ns.",
    quantity::pattern(SPAN_UNITS),
    "200 ms"
);
