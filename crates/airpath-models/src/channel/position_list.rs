// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A list of positions and runs of them, in a parameter or in a file.
//!
//! `3, 7, 10-19`: whole numbers from 0 on, in ascending order, or first and last of a run; separated by
//! commas, blanks or line breaks. In a file `#` begins a comment.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::file::FileFormat;

/// Positions, as runs that are ascending and do not touch each other's positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PositionList {
    /// First and last position of each run.
    runs: Vec<(u64, u64)>,
}

/// More would take a gigabyte of memory.
const RUNS_LIMIT: usize = 50_000_000;

impl PositionList {
    /// First and last position of each run.
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.runs
    }

    /// The last position; none if there are no positions.
    pub fn last(&self) -> Option<u64> {
        self.runs.last().map(|(_, last)| *last)
    }

    /// Reads what stands on one line.
    fn read(&mut self, line: &str) -> Result<(), String> {
        let words = line.split([',', ' ', '\t', '\r', ';', '\n']).filter(|word| !word.is_empty());
        for word in words {
            let number = |text: &str| {
                text.parse::<u64>().ok().filter(|number| *number <= i64::MAX as u64).ok_or_else(|| {
                    format!("`{word}` is neither a position (a whole number from 0) nor a run such as 10-19")
                })
            };
            let (first, last) = match word.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(word)?, number(word)?),
            };
            if first > last {
                return Err(format!("the run {word} ends before it begins"));
            }
            if let Some(before) = self.last().filter(|before| *before >= first) {
                return Err(format!("{word} comes after {before}; positions stand in ascending order, each once"));
            }
            if self.runs.len() == RUNS_LIMIT {
                return Err(format!("there are more than {RUNS_LIMIT} positions and runs"));
            }
            self.runs.push((first, last));
        }
        Ok(())
    }
}

impl FromStr for PositionList {
    type Err = String;
    fn from_str(text: &str) -> Result<PositionList, String> {
        let mut list = PositionList::default();
        list.read(text)?;
        match list.runs.is_empty() {
            true => Err("there is no position; write for example \"3, 7, 10-19\"".into()),
            false => Ok(list),
        }
    }
}

impl fmt::Display for PositionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.runs.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FileFormat for PositionList {
    const WHAT: &'static str = "list of positions";

    fn parse(bytes: &[u8]) -> Result<PositionList, String> {
        let mut list = PositionList::default();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let line = std::str::from_utf8(line).map_err(|_| format!("line {number}: this is no text"))?;
            let content = line.split('#').next().unwrap_or_default();
            list.read(content).map_err(|problem| format!("line {number}: {problem}"))?;
        }
        match list.runs.is_empty() {
            true => Err("there is no position in it".into()),
            false => Ok(list),
        }
    }
}

impl Serialize for PositionList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PositionList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PositionList, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = PositionList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("positions such as \"3, 7, 10-19\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<PositionList, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<PositionList, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for PositionList {
    fn schema_name() -> Cow<'static, str> {
        "PositionList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Positions from 0 on, ascending: numbers, and runs as first and last.",
            "pattern": r"^\s*[0-9]+(-[0-9]+)?([\s,;]+[0-9]+(-[0-9]+)?)*\s*$",
            "examples": ["3, 7, 10-19"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_printed() {
        let list: PositionList = " 3,7 10-19\t21".parse().unwrap();
        assert_eq!(list.runs(), [(3, 3), (7, 7), (10, 19), (21, 21)]);
        assert_eq!(list.to_string(), "3, 7, 10-19, 21");
        assert_eq!(list.to_string().parse::<PositionList>().unwrap(), list);
        let file = PositionList::parse(b"# losses\n3 7 # two\r\n\n10-19\n21").unwrap();
        assert_eq!(file, list);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, told) in [
            ("", "there is no position in it"),
            ("# only this\n", "there is no position in it"),
            ("1\n\n2 x", "line 3: `x` is neither a position"),
            ("-4", "line 1: `-4` is neither"),
            ("1.5", "line 1: `1.5` is neither"),
            ("7-3", "line 1: the run 7-3 ends before it begins"),
            ("5\n4", "line 2: 4 comes after 5; positions stand in ascending order"),
            ("5-9\n9", "line 2: 9 comes after 9"),
            ("99999999999999999999", "line 1: `99999999999999999999` is neither"),
        ] {
            let error = PositionList::parse(text.as_bytes()).unwrap_err();
            assert!(error.starts_with(told), "{text:?}: {error}");
        }
        assert!(PositionList::parse(b"1\n\xff").unwrap_err().starts_with("line 2: this is no text"));
        assert!("".parse::<PositionList>().unwrap_err().contains("for example \"3, 7, 10-19\""));
    }
}
