// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Pace of a source: the times from one packet to the next.

use airpath_core::{Bits, Carry, DrawKey, Rate, Span};
use airpath_workload::Period;

/// The time from one packet to the next while sending.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Gap {
    /// Transmission time of the packet at a rate, exactly over any number of packets.
    Rate(Rate, Carry),
    /// Always the same.
    Interval(Span),
}

impl Gap {
    fn next(&mut self, bits: Bits) -> Span {
        match self {
            Gap::Rate(rate, carry) => rate.tx(bits, carry),
            Gap::Interval(interval) => *interval,
        }
    }
}

/// Periods of sending and of silence in turn.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    on: Period,
    off: Period,
    key: DrawKey,
    /// Number of pairs of periods that have begun.
    begun: u64,
    /// Rest of the sending period.
    left: Span,
}

impl Periods {
    pub(crate) fn new(on: Period, off: Period, key: DrawKey) -> Periods {
        let mut periods = Periods { on, off, key, begun: 0, left: Span::ZERO };
        periods.left = periods.length(on, 0);
        periods.begun = 1;
        periods
    }

    fn length(&self, period: Period, which: u64) -> Span {
        match period {
            Period::Fixed(span) => span,
            Period::Exponential(mean) => exponential(mean.nanos() as f64, self.key, self.begun, which),
        }
    }

    /// Time until `sending` more time has been spent in periods of sending. An instant at the end of one
    /// belongs to the next.
    fn pass(&mut self, mut sending: Span) -> Span {
        let mut passed = Span::ZERO;
        while sending >= self.left {
            passed = passed + self.left + self.length(self.off, 1);
            sending = sending - self.left;
            self.left = self.length(self.on, 0);
            self.begun += 1;
        }
        self.left = self.left - sending;
        passed + sending
    }
}

fn exponential(mean_ns: f64, key: DrawKey, step: u64, attempt: u64) -> Span {
    Span::from_nanos((mean_ns * key.exponential(step, attempt)).round() as u64)
}

/// Pace of a source.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    Steady(Gap),
    Poisson { mean_ns: f64, key: DrawKey, step: u64 },
    OnOff { gap: Gap, periods: Periods },
}

impl Pace {
    pub(crate) fn steady(gap: Gap) -> Pace {
        Pace::Steady(gap)
    }

    pub(crate) fn poisson(mean_ns: f64, key: DrawKey) -> Pace {
        Pace::Poisson { mean_ns, key, step: 0 }
    }

    pub(crate) fn on_off(gap: Gap, periods: Periods) -> Pace {
        Pace::OnOff { gap, periods }
    }

    /// The time from the beginning to the first packet: a Poisson process is as likely to be anywhere
    /// in its course, the others begin with a packet.
    pub(crate) fn first(&mut self) -> Span {
        match self {
            Pace::Poisson { .. } => self.next(Bits::ZERO),
            _ => Span::ZERO,
        }
    }

    /// The time from a packet of `bits` to the next.
    pub(crate) fn next(&mut self, bits: Bits) -> Span {
        match self {
            Pace::Steady(gap) => gap.next(bits),
            Pace::Poisson { mean_ns, key, step } => {
                let span = exponential(*mean_ns, *key, *step, 0);
                *step += 1;
                span
            }
            Pace::OnOff { gap, periods } => {
                let sending = gap.next(bits);
                periods.pass(sending)
            }
        }
    }
}
