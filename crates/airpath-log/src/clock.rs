// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Clock of a run.

use std::fmt;
use std::str::FromStr;

use airpath_core::nearest::nearest;
use serde::{Deserialize, Serialize};

/// Clock of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The wall clock: real programs in real time.
    #[default]
    Live,
    /// The clock of a time-travelling kernel: real programs, and nobody waits for the time to pass.
    Warp,
    /// An event queue: endpoints in the process itself, as fast as the processor allows.
    Virtual,
}

impl Clock {
    /// Every clock.
    pub const ALL: [Clock; 3] = [Clock::Live, Clock::Warp, Clock::Virtual];

    /// The word used on the command line and in `run.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Live => "live",
            Clock::Warp => "warp",
            Clock::Virtual => "virtual",
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no clock.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ClockError(String);

impl FromStr for Clock {
    type Err = ClockError;
    fn from_str(text: &str) -> Result<Clock, ClockError> {
        Clock::ALL.into_iter().find(|clock| clock.name() == text).ok_or_else(|| {
            let hint = nearest(text, Clock::ALL.map(Clock::name)).map(|word| format!("; did you mean `{word}`?"));
            ClockError(format!("`{text}` is not a clock; use live, warp or virtual{}", hint.unwrap_or_default()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_same_on_the_command_line_and_in_files() {
        for clock in Clock::ALL {
            assert_eq!(clock.name().parse::<Clock>().unwrap(), clock);
            assert_eq!(serde_json::to_value(clock).unwrap(), clock.name());
        }
        let error = "wrap".parse::<Clock>().unwrap_err().to_string();
        assert_eq!(error, "`wrap` is not a clock; use live, warp or virtual; did you mean `warp`?");
    }
}
