// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Levels of recording.

use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

use airpath_core::LogLevel;
use airpath_core::nearest::nearest;
use serde::{Deserialize, Serialize};

/// Level of recording; each level includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// The manifest only.
    None,
    /// Counters and statistics, in the manifest and the summary.
    #[default]
    Counters,
    /// Every event and everything that drove the machine: `events.arrow`, `input.arrow`.
    Events,
    /// Also the packets: one capture file for each end of the link.
    Packets,
}

impl Level {
    /// Every level, from the least to the most.
    pub const ALL: [Level; 4] = [Level::None, Level::Counters, Level::Events, Level::Packets];

    /// The word used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Counters => "counters",
            Level::Events => "events",
            Level::Packets => "packets",
        }
    }

    /// Level at which a machine has to record.
    pub fn of_machine(self) -> LogLevel {
        if self >= Level::Events { LogLevel::Events } else { LogLevel::Counters }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no log level, or a text that is no snaplen.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LevelError(String);

impl FromStr for Level {
    type Err = LevelError;
    fn from_str(text: &str) -> Result<Level, LevelError> {
        Level::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
            let hint = nearest(text, Level::ALL.map(Level::name)).map(|word| format!("; did you mean `{word}`?"));
            LevelError(format!(
                "`{text}` is not a log level; use none, counters, events or packets{}",
                hint.unwrap_or_default()
            ))
        })
    }
}

/// Number of bytes that a capture keeps of each packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Snaplen {
    /// At most so many.
    Bytes(u32),
    /// All of them.
    Full,
}

impl Snaplen {
    /// The limit in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Snaplen::Bytes(bytes) => bytes,
            Snaplen::Full => u32::MAX,
        }
    }
}

impl Default for Snaplen {
    /// 128 bytes: all headers of a TCP segment over IPv6 with every common option.
    fn default() -> Snaplen {
        Snaplen::Bytes(128)
    }
}

impl fmt::Display for Snaplen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Snaplen::Bytes(bytes) => write!(f, "{bytes}"),
            Snaplen::Full => f.write_str("full"),
        }
    }
}

impl FromStr for Snaplen {
    type Err = LevelError;
    fn from_str(text: &str) -> Result<Snaplen, LevelError> {
        if text == "full" {
            return Ok(Snaplen::Full);
        }
        match text.parse::<u32>() {
            Ok(bytes) if bytes > 0 => Ok(Snaplen::Bytes(bytes)),
            // A packet of IP has 64 KiB at most; jumbograms do not come through here.
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
                Err(LevelError(format!("`{text}` exceeds the largest packet; use `full` to keep whole packets")))
            }
            _ => Err(LevelError(format!(
                "`{text}` is not a snaplen; use a number of bytes above zero, such as 128, or `full`"
            ))),
        }
    }
}

impl Serialize for Snaplen {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Snaplen::Bytes(bytes) => serializer.serialize_u32(*bytes),
            Snaplen::Full => serializer.serialize_str("full"),
        }
    }
}

impl<'de> Deserialize<'de> for Snaplen {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Snaplen, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u32),
            Text(String),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(bytes) => Ok(Snaplen::Bytes(bytes)),
            Either::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_and_typos_are_met() {
        for level in Level::ALL {
            assert_eq!(level.name().parse::<Level>().unwrap(), level);
        }
        assert!("packet".parse::<Level>().unwrap_err().to_string().contains("did you mean `packets`"));
        assert_eq!("full".parse::<Snaplen>().unwrap(), Snaplen::Full);
        assert!("0".parse::<Snaplen>().unwrap_err().to_string().contains("above zero"));
        assert!("99999999999".parse::<Snaplen>().unwrap_err().to_string().contains("exceeds the largest packet"));
    }
}
