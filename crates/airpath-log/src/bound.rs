// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Bound on the lateness of a packet: a time, or a share of the packet's minimum transit time on its link.

use std::fmt;
use std::str::FromStr;

use airpath_core::{Span, quantity};

/// The whole, in millionths.
const WHOLE_PPM: u64 = 1_000_000;

/// A bound on lateness. A share is one of the packet's own least transit, which is the time that a packet of
/// its length takes through the idle link; but a bound is never less than its floor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatenessBound {
    share_ppm: u64,
    floor: Span,
}

impl LatenessBound {
    /// A twentieth of the least transit: 1 ms where a packet takes 20 ms. No ordinary machine wakes a thread
    /// within less than the floor every time.
    pub const USUAL: LatenessBound = LatenessBound { share_ppm: WHOLE_PPM / 20, floor: Span::from_micros(100) };

    /// The same bound for every packet.
    pub const fn absolute(bound: Span) -> LatenessBound {
        LatenessBound { share_ppm: 0, floor: bound }
    }

    /// Lower limit of every packet's bound.
    pub const fn floor(self) -> Span {
        self.floor
    }

    /// The share of the least transit, in millionths; 0 where the bound is the same for every packet.
    pub const fn share_ppm(self) -> u64 {
        self.share_ppm
    }

    /// The bound of a packet that takes `least_transit` at least.
    pub fn of(self, least_transit: Span) -> Span {
        let share = u128::from(least_transit.nanos()) * u128::from(self.share_ppm) / u128::from(WHOLE_PPM);
        self.floor.max(Span::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)))
    }
}

impl Default for LatenessBound {
    fn default() -> LatenessBound {
        LatenessBound::USUAL
    }
}

impl FromStr for LatenessBound {
    type Err = String;
    fn from_str(text: &str) -> Result<LatenessBound, String> {
        let (share, floor) = match text.split_once(',') {
            Some((share, floor)) => (share.trim(), Some(floor.trim())),
            None => (text.trim(), None),
        };
        let Some(number) = share.strip_suffix('%') else {
            let example = "; a bound is a time such as \"1 ms\", or a share of the packet's minimum transit time \
                such as \"5%\" or \"5%,100 us\" (at least 100 us)";
            if floor.is_some() {
                return Err(format!("`{share}` is not a share{example}"));
            }
            return match share.parse::<Span>() {
                Ok(bound) => Ok(LatenessBound::absolute(bound)),
                Err(problem) => Err(format!("{problem}{example}")),
            };
        };
        let share_ppm = quantity::scale(number.trim(), WHOLE_PPM / 100)
            .map_err(|problem| format!("`{share}`: {problem}; write for example 5%"))?;
        if !(1..=WHOLE_PPM).contains(&share_ppm) {
            return Err(format!("`{share}` is not a share from 0.0001% to 100%; write for example 5%"));
        }
        let floor = match floor.map(str::parse::<Span>).transpose() {
            Ok(floor) => floor.unwrap_or(LatenessBound::USUAL.floor),
            Err(problem) => return Err(format!("lower limit of the bound: {problem}")),
        };
        Ok(LatenessBound { share_ppm, floor })
    }
}

impl fmt::Display for LatenessBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.share_ppm {
            0 => self.floor.fmt(f),
            ppm => write!(f, "{}%,{}", ppm as f64 * 100.0 / WHOLE_PPM as f64, self.floor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LatenessBound {
        text.parse().unwrap()
    }

    #[test]
    fn a_share_follows_the_packet_and_a_time_does_not() {
        let usual = LatenessBound::USUAL;
        assert_eq!(usual.of(Span::from_millis(20)), Span::from_millis(1));
        assert_eq!(usual.of(Span::from_millis(160)), Span::from_millis(8));
        assert_eq!(usual.of(Span::from_micros(2_000)), Span::from_micros(100));
        assert_eq!([usual.of(Span::ZERO), usual.floor()], [Span::from_micros(100); 2]);
        // A packet that never leaves may be as late as it likes.
        assert_eq!(usual.of(Span::from_nanos(u64::MAX)), Span::from_nanos(u64::MAX / 20));
        let fixed = read("1 ms");
        assert_eq!([fixed.of(Span::ZERO), fixed.of(Span::from_secs(9))], [Span::from_millis(1); 2]);
    }

    #[test]
    fn bounds_read_back_as_they_are_printed() {
        for text in ["1 ms", "5%,100 us", "0.5%,1 ms", "100%,0 s"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!([read("5%"), read(" 5 % ")], [LatenessBound::USUAL; 2]);
        assert_eq!(read("2 %, 50us").to_string(), "2%,50 us");
    }

    #[test]
    fn what_is_no_bound_is_told_with_an_example() {
        for (text, told) in [
            ("3", "has no unit"),
            ("3", "\"5%,100 us\""),
            ("1 ms,5%", "`1 ms` is not a share"),
            ("0%", "not a share from"),
            ("101%", "not a share from"),
            ("-5%", "negative"),
            ("x%", "5%"),
            ("5%,soon", "lower limit of the bound"),
        ] {
            let error = text.parse::<LatenessBound>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
