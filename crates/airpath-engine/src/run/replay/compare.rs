// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One recorded event beside one of the replay.

use std::fmt;

use airpath_log::show::count;
use airpath_log::tables::events::EventRow;
use airpath_log::tables::links::LinkRow;

/// The columns that the machine does not decide: when a packet of a live run really left.
const NOT_DECIDED: [&str; 1] = ["emitted_ns"];

/// The first event that is not the same.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Difference {
    /// Its number in the log, from 0.
    pub event: u64,
    /// Time, in nanoseconds since the run began.
    pub time_ns: u64,
    /// Event in words: kind, direction, hop and PDU.
    pub what: String,
    /// The column that differs; "event" where one of the two traces has ended.
    pub column: &'static str,
    /// Value in the log.
    pub recorded: String,
    /// Value in the replay.
    pub replayed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { event, time_ns, what, column, recorded, replayed } = self;
        let (seconds, nanos) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        write!(f, "different: event {} at {seconds}.{nanos:09} s, {what}: ", count(*event))?;
        write!(f, "{column} is {recorded} in the log and {replayed} in the replay")
    }
}

/// Row of a log that a replay compares.
pub trait Compared {
    /// Time, in nanoseconds since the run began.
    fn time_ns(&self) -> u64;

    /// The row in words.
    fn describe(&self) -> String;

    /// The first column that the machine decides and in which the rows differ, with both values.
    fn difference(&self, other: &Self) -> Option<(&'static str, [String; 2])>;
}

impl Compared for EventRow<'_> {
    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn describe(&self) -> String {
        let pdu = if self.pdu == 0 { String::new() } else { format!(" of PDU {}", self.pdu) };
        format!("`{}`{pdu} at {} {}", self.kind, self.hop, self.direction)
    }

    fn difference(&self, other: &Self) -> Option<(&'static str, [String; 2])> {
        EventRow::difference(self, other, &NOT_DECIDED)
    }
}

impl Compared for LinkRow<'_> {
    fn time_ns(&self) -> u64 {
        self.time_ns
    }

    fn describe(&self) -> String {
        let frame = if self.frame.is_empty() { "the connection" } else { self.frame };
        format!("`{}` of {frame} by the link entity of {} at the {}", self.event, self.hop, self.end)
    }

    fn difference(&self, other: &Self) -> Option<(&'static str, [String; 2])> {
        LinkRow::difference(self, other, &[])
    }
}

/// Compares the rows numbered `number`, if there are any: everything that the machine decides.
pub fn difference<R: Compared>(number: u64, recorded: Option<R>, replayed: Option<R>) -> Option<Difference> {
    let word = |word: &str| word.to_string();
    // Of a row that only one of the traces has, the whole row differs.
    let (row, (column, [recorded, replayed])) = match (recorded, replayed) {
        (None, None) => return None,
        (Some(row), None) => (row, ("event", ["there", "missing"].map(word))),
        (None, Some(row)) => (row, ("event", ["missing", "there"].map(word))),
        (Some(row), Some(other)) => {
            let found = row.difference(&other)?;
            (row, found)
        }
    };
    let (time_ns, what) = (row.time_ns(), row.describe());
    Some(Difference { event: number, time_ns, what, column, recorded, replayed })
}
