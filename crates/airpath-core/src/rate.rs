// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Link rates, and serialisation time that is exact over any run length.

use std::fmt;
use std::num::NonZeroU64;

use crate::length::Bits;
use crate::quantity::{self, QuantityError, Unit};
use crate::time::Span;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A rate in bit/s; never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

/// The part of a nanosecond that a back-to-back sequence of transmissions has used beyond the
/// whole nanoseconds already handed out, as `remainder / rate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carry {
    remainder: u64,
    rate: u64,
}

impl Carry {
    /// No remainder: the transmission starts exactly on a nanosecond.
    pub const NONE: Carry = Carry { remainder: 0, rate: 0 };
}

impl Rate {
    /// A rate of `bits_per_second`; `None` for zero.
    pub const fn new(bits_per_second: u64) -> Option<Rate> {
        match NonZeroU64::new(bits_per_second) {
            Some(rate) => Some(Rate(rate)),
            None => None,
        }
    }

    /// The rate in bit/s.
    pub const fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// The time that `bits` take at this rate, in whole nanoseconds; what is left of a nanosecond
    /// stays in `carry` and is added to the next call's. The sum of the spans of any sequence of
    /// calls is the exact duration of all their bits, rounded down once.
    pub fn tx(self, bits: Bits, carry: &mut Carry) -> Span {
        let rate = self.0.get();
        if carry.rate != rate {
            // The remainder is a fraction of a nanosecond; keep its value in the new rate's units.
            if carry.rate != 0 {
                let scaled = u128::from(carry.remainder) * u128::from(rate) / u128::from(carry.rate);
                carry.remainder = scaled as u64;
            } else {
                carry.remainder = 0;
            }
            carry.rate = rate;
        }
        // u64 suffices for every frame up to 18 Gbit; 128-bit division costs several times as much.
        if let Some(scaled) =
            bits.get().checked_mul(1_000_000_000).and_then(|product| product.checked_add(carry.remainder))
        {
            carry.remainder = scaled % rate;
            return Span::from_nanos(scaled / rate);
        }
        let scaled = u128::from(bits.get()) * NANOS_PER_SECOND + u128::from(carry.remainder);
        carry.remainder = (scaled % u128::from(rate)) as u64;
        Span::from_nanos(u64::try_from(scaled / u128::from(rate)).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}bit/s", self.0)
    }
}

/// Units a rate may be written in, the coarsest first; prefixes are decimal.
pub const RATE_UNITS: &[Unit] = &[
    Unit { names: &["Gbit/s", "Gbps", "Gbit", "gbit"], factor: 1_000_000_000, shown: true },
    Unit { names: &["Mbit/s", "Mbps", "Mbit", "mbit"], factor: 1_000_000, shown: true },
    Unit { names: &["kbit/s", "kbps", "kbit"], factor: 1_000, shown: true },
    Unit { names: &["bit/s", "bps", "bit"], factor: 1, shown: true },
    Unit { names: &["MB/s"], factor: 8_000_000, shown: false },
    Unit { names: &["kB/s"], factor: 8_000, shown: false },
    Unit { names: &["B/s"], factor: 8, shown: false },
];

impl std::str::FromStr for Rate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Rate, QuantityError> {
        parse(text, "\"9600 bit/s\"")
    }
}

/// Reads a rate; `instead_of_zero` is what to write where it is zero.
fn parse(text: &str, instead_of_zero: &'static str) -> Result<Rate, QuantityError> {
    let value = quantity::parse(text, "rate", RATE_UNITS, "\"9600 bit/s\" or \"12 Mbit/s\"")?;
    Rate::new(value).ok_or_else(|| QuantityError::zero(text, "rate", instead_of_zero))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::show(f, self.0.get(), RATE_UNITS, "bit/s")
    }
}

/// The rate of a link: a fixed one, or none at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LinkRate {
    /// Transmission takes no time.
    #[default]
    Unlimited,
    /// Transmission takes its bits divided by this rate.
    Fixed(Rate),
}

const UNLIMITED: &str = "unlimited";

impl std::str::FromStr for LinkRate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<LinkRate, QuantityError> {
        if text.trim() == UNLIMITED {
            return Ok(LinkRate::Unlimited);
        }
        parse(text, "\"9600 bit/s\"; leave the key out for an unlimited rate").map(LinkRate::Fixed)
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkRate::Unlimited => f.write_str(UNLIMITED),
            LinkRate::Fixed(rate) => rate.fmt(f),
        }
    }
}

quantity::text_serde!(
    LinkRate,
    "A rate with its unit: bit/s, kbit/s, Mbit/s, Gbit/s (decimal prefixes), B/s, kB/s, MB/s; or unlimited.",
    format!(r"^\s*({}|{UNLIMITED})\s*$", quantity::amount_pattern(RATE_UNITS)),
    "9600 bit/s"
);

quantity::text_serde!(
    Rate,
    "A rate with its unit: bit/s, kbit/s, Mbit/s, Gbit/s (decimal prefixes), or B/s, kB/s, MB/s.",
    quantity::pattern(RATE_UNITS),
    "9600 bit/s"
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hand_computed_serialisation_times() {
        let gsm = Rate::new(9_600).unwrap();
        let mut carry = Carry::NONE;
        // 2368 bit at 9600 bit/s = 246.666… ms; three of them are 740 ms to the nanosecond.
        assert_eq!(gsm.tx(Bits::new(2_368), &mut carry).nanos(), 246_666_666);
        assert_eq!(gsm.tx(Bits::new(2_368), &mut carry).nanos(), 246_666_667);
        assert_eq!(gsm.tx(Bits::new(2_368), &mut carry).nanos(), 246_666_667);
        assert_eq!(carry.remainder, 0);
    }

    #[test]
    fn the_fraction_keeps_its_value_when_the_rate_changes() {
        let mut carry = Carry::NONE;
        Rate::new(3).unwrap().tx(Bits::new(1), &mut carry); // a third of a nanosecond is left
        assert_eq!(carry, Carry { remainder: 1, rate: 3 });
        Rate::new(6_000_000_000).unwrap().tx(Bits::new(0), &mut carry);
        assert_eq!(carry, Carry { remainder: 2_000_000_000, rate: 6_000_000_000 });
    }

    proptest! {
        #[test]
        fn any_sequence_lasts_exactly_its_bits(
            rate in 1u64..=400_000_000_000,
            lengths in prop::collection::vec(0u64..200_000, 1..200),
        ) {
            let rate = Rate::new(rate).unwrap();
            let mut carry = Carry::NONE;
            let mut total = 0u128;
            let mut bits = 0u128;
            for length in lengths {
                total += u128::from(rate.tx(Bits::new(length), &mut carry).nanos());
                bits += u128::from(length);
                prop_assert_eq!(total, bits * 1_000_000_000 / u128::from(rate.bits_per_second()));
            }
        }
    }
}
