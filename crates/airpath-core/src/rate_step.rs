// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A rate from some time on, as text: `"20 s: 64 kbit/s"`.

use std::fmt;
use std::str::FromStr;

use crate::quantity::{self, QuantityError};
use crate::rate::{RATE_UNITS, Rate};
use crate::time::Span;

/// A rate and its start time. A rate of zero is an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateStep {
    /// Start time.
    pub at: Span,
    /// The rate in bit/s.
    pub bits_per_second: u64,
}

const EXAMPLE: &str = "\"20 s: 64 kbit/s\"";

impl FromStr for RateStep {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<RateStep, QuantityError> {
        let Some((at, rate)) = text.split_once(':') else {
            return Err(QuantityError::new(format!("`{text}` has no `:` between a time and a rate"), EXAMPLE));
        };
        let at = at.trim().parse()?;
        let bits_per_second = quantity::parse(rate.trim(), "rate", RATE_UNITS, EXAMPLE)?;
        Ok(RateStep { at, bits_per_second })
    }
}

impl fmt::Display for RateStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        match Rate::new(self.bits_per_second) {
            Some(rate) => rate.fmt(f),
            None => f.write_str("0 bit/s"),
        }
    }
}

quantity::text_serde!(
    RateStep,
    "A rate and its start time: a time and a rate with their units, joined by a colon; 0 bit/s for an outage.",
    r"^\s*[0-9_]*\.?[0-9]+\s*(h|min|s|ms|us|µs|μs|ns)\s*:\s*[0-9_]*\.?[0-9]+\s*(bit/s|bps|bit|kbit/s|kbps|kbit|Mbit/s|Mbps|mbit|Gbit/s|Gbps|gbit|B/s|kB/s|MB/s)\s*$",
    "20 s: 64 kbit/s"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_back_as_they_are_printed() {
        for text in ["0 s: 1 Mbit/s", "1.5 s: 0 bit/s", "20 ms: 9.6 kbit/s"] {
            assert_eq!(text.parse::<RateStep>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<RateStep>().unwrap_err().to_string();
        assert!(error("20 s 64 kbit/s").contains("has no `:`"));
        assert!(error("20: 64 kbit/s").contains("has no unit"));
        assert!(error("20 s: fast").contains("not a rate"));
    }
}
