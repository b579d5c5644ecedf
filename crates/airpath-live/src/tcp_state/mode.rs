// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Mode of recording the TCP state, as typed.

use std::fmt;
use std::str::FromStr;

use airpath_core::Span;

/// Mode of recording the TCP state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Not at all.
    Off,
    /// By asking every so often.
    Every(Span),
    /// Also at every packet that comes from the peer.
    Probe,
}

impl Mode {
    /// Default interval between samples.
    pub const DEFAULT_INTERVAL: Span = Span::from_millis(10);
    /// The shortest time from one sample to the next.
    pub const LEAST_INTERVAL: Span = Span::from_millis(1);

    /// Interval between samples; none if there are none.
    pub fn interval(self) -> Option<Span> {
        match self {
            Self::Off => None,
            Self::Every(interval) => Some(interval),
            Self::Probe => Some(Self::DEFAULT_INTERVAL),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => formatter.write_str("off"),
            Self::Every(interval) => interval.fmt(formatter),
            Self::Probe => formatter.write_str("probe"),
        }
    }
}

/// A text that says neither whether nor how often.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModeError(String);

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        match text {
            "off" => return Ok(Self::Off),
            "probe" => return Ok(Self::Probe),
            _ => {}
        }
        let interval: Span = text.parse().map_err(|error| {
            ModeError(format!("{error}; write a sampling interval such as '10 ms', or off, or probe"))
        })?;
        if interval < Self::LEAST_INTERVAL {
            return Err(ModeError(format!(
                "`{text}` is too short: the minimum is {}; `probe` records every ACK",
                Self::LEAST_INTERVAL
            )));
        }
        Ok(Self::Every(interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_mistakes_are_explained() {
        for text in ["off", "probe", "10 ms", "2 s"] {
            assert_eq!(text.parse::<Mode>().unwrap().to_string(), text);
        }
        for (text, hint) in [("often", "off, or probe"), ("0 ms", "too short"), ("10", "such as '10 ms'")] {
            let error = text.parse::<Mode>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
