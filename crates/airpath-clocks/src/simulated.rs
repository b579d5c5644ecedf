// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A clock of known error in place of the host's: for tests of what finds such errors.

use std::str::FromStr;

use airpath_live::clock::{ClockOffset, monotonic_ns, realtime_ns};

/// Difference between the simulated clock and the host's. Both clocks of a host drift alike, and only
/// CLOCK_REALTIME has an offset and steps.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Error {
    /// It is ahead by so much at first, in ns.
    pub offset_ns: i64,
    /// It is faster by so much, in parts per million.
    pub drift_ppm: f64,
    /// After so long…
    pub step_after_ns: u64,
    /// … it is set by so much.
    pub step_ns: i64,
}

impl FromStr for Error {
    type Err = String;

    /// "OFFSET_NS,DRIFT_PPM" or "OFFSET_NS,DRIFT_PPM,STEP_NS,STEP_AFTER_NS".
    fn from_str(text: &str) -> Result<Error, String> {
        let wrong = |_| format!("`{text}` is not OFFSET_NS,DRIFT_PPM[,STEP_NS,STEP_AFTER_NS]");
        let drift = |text: &str| text.parse::<f64>().map_err(|error| wrong(error.to_string()));
        let whole = |text: &str| text.parse::<i64>().map_err(|error| wrong(error.to_string()));
        match text.split(',').collect::<Vec<_>>()[..] {
            [offset, ppm] => Ok(Error { offset_ns: whole(offset)?, drift_ppm: drift(ppm)?, ..Error::default() }),
            [offset, ppm, step, after] => Ok(Error {
                offset_ns: whole(offset)?,
                drift_ppm: drift(ppm)?,
                step_ns: whole(step)?,
                step_after_ns: whole(after)?.unsigned_abs(),
            }),
            _ => Err(wrong(String::new())),
        }
    }
}

/// The clock of this host, as it is or with an error.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    error: Error,
    started_ns: u64,
}

impl HostClock {
    /// The host's clock with `error`, which begins now.
    pub fn new(error: Error) -> HostClock {
        HostClock { error, started_ns: realtime_ns() }
    }

    /// CLOCK_REALTIME, in ns since 1970.
    pub fn now_ns(&self) -> u64 {
        self.shown_at_ns(realtime_ns())
    }

    /// Returns the time of this clock when the host's CLOCK_REALTIME shows `unix_ns`.
    pub fn shown_at_ns(&self, unix_ns: u64) -> u64 {
        let since = i128::from(unix_ns) - i128::from(self.started_ns);
        let stepped = self.error.step_ns != 0 && since >= i128::from(self.error.step_after_ns);
        let ahead = self.drift_ns(since) + if stepped { i128::from(self.error.step_ns) } else { 0 };
        u64::try_from(i128::from(unix_ns) + i128::from(self.error.offset_ns) + ahead).unwrap_or(0)
    }

    fn drift_ns(&self, since: i128) -> i128 {
        (since as f64 * self.error.drift_ppm / 1e6).round() as i128
    }

    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in ns.
    pub fn ahead_ns(&self) -> i64 {
        let host = ClockOffset::measure().ahead_ns;
        if self.error == Error::default() {
            return host;
        }
        let unix_ns = monotonic_ns().saturating_add_signed(host);
        let drift = self.drift_ns(i128::from(unix_ns) - i128::from(self.started_ns));
        // The monotonic clock drifts as well, and is neither set nor stepped.
        let monotonic = i128::from(unix_ns) - i128::from(host) + drift;
        i64::try_from(i128::from(self.shown_at_ns(unix_ns)) - monotonic).unwrap_or(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_as_written() {
        let error: Error = "1000,-20.5,7,3000000000".parse().unwrap();
        assert_eq!(error, Error { offset_ns: 1000, drift_ppm: -20.5, step_ns: 7, step_after_ns: 3_000_000_000 });
        let clock = HostClock { error, started_ns: 1_000_000_000 };
        assert_eq!(clock.shown_at_ns(1_000_000_000), 1_000_001_000);
        assert_eq!(clock.shown_at_ns(3_000_000_000), 3_000_001_000 - 41_000);
        assert_eq!(clock.shown_at_ns(4_000_000_000), 4_000_001_000 - 61_500 + 7);
        assert!("1,2,3".parse::<Error>().is_err() && "x,1".parse::<Error>().is_err());
    }
}
