// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Error bounds of a run's times that follow from lateness.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::histogram::Timings;
use crate::quantum::MOST_PRECISE;
use crate::show;

/// With fewer packets than this, 99.9 % of them are all of them.
const LEAST_PACKETS: u64 = 1_000;

/// Largest possible error of packets' times against the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Exactness {
    /// Number of packets that left the link.
    pub packets: u64,
    /// No one-way delay is off by more than this: late entry and late departure together.
    pub delays_ns: u64,
    /// 99.9 % of them are not off by more than this.
    pub delays_p999_ns: u64,
    /// No packet left later than this after the model's instant.
    pub departures_ns: u64,
    /// The median one-way delay, of the direction in which it is less; 0 where there is none.
    pub median_delay_ns: u64,
    /// Packets due within this time may have left together, at its end: the part of the error of departures that is
    /// chosen, and that `--economy` widens.
    #[serde(default)]
    pub quantum_ns: u64,
}

impl Exactness {
    /// Error bounds that follow from `timings`.
    pub fn of(timings: &Timings) -> Exactness {
        let (entries, departures) = (timings.entries(), timings.lateness());
        let delays_ns = entries.max_ns + departures.max_ns;
        Exactness {
            packets: departures.count,
            delays_ns,
            delays_p999_ns: timings.late_by_in_all_but(0.001).min(delays_ns),
            departures_ns: departures.max_ns,
            median_delay_ns: timings.median_delay().nanos(),
            quantum_ns: timings.quantum().nanos(),
        }
    }
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packets == 0 {
            return f.write_str("none measured");
        }
        let entered_late = self.delays_ns != self.departures_ns;
        let what = if entered_late { "one-way delays" } else { "one-way delays and departures" };
        write!(f, "{what} to {}", show::span(self.delays_ns))?;
        match self.median_delay_ns {
            0 => {}
            median_ns if self.delays_ns > median_ns => write!(f, " (more than the median delay)")?,
            median_ns => write!(f, " ({})", show::percent(self.delays_ns, median_ns))?,
        }
        if self.packets >= LEAST_PACKETS && self.delays_p999_ns < self.delays_ns {
            write!(f, ", 99.9 % of them to {}", show::span(self.delays_p999_ns))?;
        }
        if entered_late {
            write!(f, "; departures to {}", show::span(self.departures_ns))?;
        }
        // A precise one is less than what timers do.
        if self.quantum_ns > MOST_PRECISE.nanos() {
            write!(f, "; packets due within {} left together (--economy)", show::span(self.quantum_ns))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::LatenessBound;
    use airpath_core::{Direction, Span, Time};

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn a_delay_is_off_by_a_late_entry_and_a_late_departure() {
        let mut timings = Timings::new(LatenessBound::USUAL);
        assert_eq!(Exactness::of(&timings).to_string(), "none measured");
        timings.emitted(Direction::Uplink, at(0), at(400_000), at(400_040), || Span::ZERO);
        let only = Exactness::of(&timings);
        assert_eq!(only.to_string(), "one-way delays and departures to 40.0 us (0.010 %)");
        // It came at 0 and was offered at 160 us.
        timings.read(at(0), at(200), at(160), || Span::from_secs(1));
        let exact = Exactness::of(&timings);
        assert_eq!((exact.delays_ns, exact.departures_ns), (200_000, 40_000));
        assert_eq!(exact.to_string(), "one-way delays to 200 us (0.050 %); departures to 40.0 us");
    }

    #[test]
    fn the_bulk_of_the_packets_is_told_where_there_are_enough() {
        let mut timings = Timings::new(LatenessBound::USUAL);
        for number in 0..10_000 {
            let late = if number % 2_000 == 7 { 900 } else { 20 };
            timings.emitted(Direction::Downlink, at(0), at(100_000), at(100_000 + late), || Span::ZERO);
        }
        let exact = Exactness::of(&timings);
        assert_eq!((exact.packets, exact.delays_ns), (10_000, 900_000));
        assert!((20_000..20_200).contains(&exact.delays_p999_ns), "{exact:?}");
        assert!(
            exact.to_string().starts_with("one-way delays and departures to 900 us (0.9 %), 99.9 % of them to 20.")
        );
        // Half of what may be off in each place is left out: a thousandth in all.
        timings.read(at(0), at(9), at(5), || Span::ZERO);
        let both = Exactness::of(&timings);
        assert!((25_000..25_200).contains(&both.delays_p999_ns), "{both:?}");
    }

    #[test]
    fn departures_that_are_late_by_choice_are_told_as_such() {
        let mut timings = Timings::new(LatenessBound::USUAL);
        timings.emitted(Direction::Uplink, at(0), at(20_000), at(20_770), || Span::ZERO);
        timings.departures_within(Span::from_micros(20));
        assert_eq!(Exactness::of(&timings).to_string(), "one-way delays and departures to 770 us (3.9 %)");
        timings.departures_within(Span::from_micros(750));
        timings.departures_within(Span::from_micros(20));
        let exact = Exactness::of(&timings);
        assert_eq!(exact.quantum_ns, 750_000);
        assert!(
            exact.to_string().ends_with("to 770 us (3.9 %); packets due within 750 us left together (--economy)"),
            "{exact}"
        );
    }

    #[test]
    fn without_any_delay_there_is_no_share_of_it() {
        let mut timings = Timings::new(LatenessBound::USUAL);
        timings.emitted(Direction::Uplink, at(5), at(5), at(25), || Span::ZERO);
        assert_eq!(Exactness::of(&timings).to_string(), "one-way delays and departures to 20.0 us");
        timings.emitted(Direction::Downlink, at(0), at(3), at(5), || Span::ZERO);
        let short = Exactness { median_delay_ns: 3_000, ..Exactness::of(&timings) };
        assert!(short.to_string().ends_with("to 20.0 us (more than the median delay)"), "{short}");
    }
}
