// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Quantum of departures: the least time between two flushes of a link, so that packets due within it leave
//! together.
//!
//! The first packet after a pause leaves when it is due. Packets due less than a quantum after a flush wait for the
//! end of that quantum, so that none is later for it than one quantum. A timer cannot tell packets apart that are due
//! a microsecond apart, and a sleep costs more processor time than a packet: what leaves together shares both. The
//! machine knows nothing of it. Each packet keeps its own due time, against which its lateness is measured.

use std::fmt;
use std::str::FromStr;

use airpath_core::Span;

use crate::bound::LatenessBound;

/// A precise quantum is this part of the least transit,
const PRECISE_PART: u64 = 100;
/// and this part of it on a link so fast that no timer tells its packets apart.
const PRECISE_PART_OF_FAST: u64 = 50;
/// It is never shorter than this, within which no timer tells departures apart.
const LEAST_PRECISE: Span = Span::from_micros(5);
/// It is never longer than this.
pub(crate) const MOST_PRECISE: Span = Span::from_micros(20);
/// Part of a packet's bound that an economical quantum leaves to timers and to the work of a flush.
const RESERVED_PART: u64 = 4;
/// It leaves at least this.
const LEAST_RESERVED: Span = Span::from_micros(80);

/// Policy of trading exactness of departures for processor time, within the bound on lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Economy {
    /// The precise quantum.
    #[default]
    Off,
    /// The widest quantum that the bound on lateness allows.
    On,
    /// The widest while the loop is under load, the precise one otherwise.
    Auto,
}

impl Economy {
    /// The words of all policies.
    pub const WORDS: [&'static str; 3] = ["off", "on", "auto"];
}

impl FromStr for Economy {
    type Err = String;
    fn from_str(text: &str) -> Result<Economy, String> {
        match text {
            "off" => Ok(Economy::Off),
            "on" => Ok(Economy::On),
            "auto" => Ok(Economy::Auto),
            _ => Err(format!("`{text}` is not a policy of economy; write {}", Economy::WORDS.join(", "))),
        }
    }
}

impl fmt::Display for Economy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Economy::Off => "off",
            Economy::On => "on",
            Economy::Auto => "auto",
        })
    }
}

/// Choice of a link's quantum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantum {
    /// None: every packet leaves at its own instant.
    None,
    /// A hundredth of the least transit, from 5 to 20 µs, and never more than a quarter of the bound on lateness; a
    /// fiftieth where full packets follow one another within 20 µs.
    #[default]
    Precise,
    /// The bound on lateness but for a quarter of it, or for 80 µs if that is more; never less than the precise one.
    Widest,
}

impl Quantum {
    /// The quantum of a link through which any packet takes at least `least_transit`, and may be late by `bound`. Full
    /// packets leave it every `packet_time` at most, zero where no rate keeps them apart; it is asked only where that
    /// makes a difference.
    pub fn of(self, bound: LatenessBound, least_transit: Span, packet_time: impl FnOnce() -> Span) -> Span {
        let bound = bound.of(least_transit).nanos();
        let precise = || {
            let mut of_link = least_transit.nanos() / PRECISE_PART;
            if of_link < MOST_PRECISE.nanos() && (Span::from_nanos(1)..MOST_PRECISE).contains(&packet_time()) {
                of_link = least_transit.nanos() / PRECISE_PART_OF_FAST;
            }
            of_link.clamp(LEAST_PRECISE.nanos(), MOST_PRECISE.nanos()).min(bound / RESERVED_PART)
        };
        let reserved = (bound / RESERVED_PART).max(LEAST_RESERVED.nanos());
        Span::from_nanos(match self {
            Quantum::None => 0,
            Quantum::Precise => precise(),
            Quantum::Widest => bound.saturating_sub(reserved).max(precise()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: LatenessBound = LatenessBound::USUAL;

    fn micros(micros: u64) -> Span {
        Span::from_micros(micros)
    }

    #[test]
    fn a_precise_quantum_is_a_hundredth_of_the_least_transit_from_5_to_20_us() {
        let precise = |transit| Quantum::Precise.of(USUAL, micros(transit), || micros(20));
        assert_eq!([0, 500, 1_000, 2_000, 160_000].map(precise), [5, 5, 10, 20, 20].map(micros));
        // A user's own bound limits it.
        let strict = "10 us".parse().unwrap();
        assert_eq!(Quantum::Precise.of(strict, micros(20_000), || Span::ZERO), Span::from_nanos(2_500));
        assert_eq!(Quantum::None.of(USUAL, micros(20_000), || micros(1)), Span::ZERO);
    }

    #[test]
    fn a_precise_quantum_is_a_fiftieth_where_no_timer_tells_packets_apart() {
        let precise = |transit, packet_ns| Quantum::Precise.of(USUAL, micros(transit), || Span::from_nanos(packet_ns));
        assert_eq!([1_200, 19_999].map(|packet_ns| precise(500, packet_ns)), [10, 10].map(micros));
        // Slower links, and those without a rate.
        assert_eq!([20_000, 1_000_000, 0].map(|packet_ns| precise(500, packet_ns)), [5, 5, 5].map(micros));
        assert_eq!([100, 1_000, 20_000].map(|transit| precise(transit, 1_200)), [5, 20, 20].map(micros));
    }

    #[test]
    fn the_widest_quantum_leaves_a_part_of_the_bound_to_the_timer() {
        let widest = |transit| Quantum::Widest.of(USUAL, micros(transit), || Span::ZERO);
        // Bounds of 1 ms and 8 ms, and twice the floor of 100 µs.
        assert_eq!([20_000, 160_000, 500, 2_000].map(widest), [750, 6_000, 20, 20].map(micros));
        for transit in (0..100_000).step_by(77).map(micros) {
            for packet_time in [0, 1, 20].map(micros) {
                let [precise, widest] =
                    [Quantum::Precise, Quantum::Widest].map(|quantum| quantum.of(USUAL, transit, || packet_time));
                assert!(precise <= widest && widest < USUAL.of(transit), "{transit}");
            }
        }
    }

    #[test]
    fn policies_read_and_print() {
        for word in Economy::WORDS {
            assert_eq!(word.parse::<Economy>().unwrap().to_string(), word);
        }
        assert!("much".parse::<Economy>().unwrap_err().contains("off, on, auto"));
    }
}
