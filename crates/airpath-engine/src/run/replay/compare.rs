// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One recorded event beside one of the replay.

use std::fmt;

use airpath_log::show::count;
use airpath_log::tables::events::EventRow;

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

/// Compares the events numbered `number`, if there are any: everything that the machine decides.
pub fn difference(number: u64, recorded: Option<EventRow<'_>>, replayed: Option<EventRow<'_>>) -> Option<Difference> {
    let (row, other) = match (recorded, replayed) {
        (None, None) => return None,
        (Some(row), None) => return Some(alone(number, &row, ["there", "missing"])),
        (None, Some(row)) => return Some(alone(number, &row, ["missing", "there"])),
        (Some(row), Some(other)) => (row, other),
    };
    row.difference(&other, &NOT_DECIDED).map(|(column, [recorded, replayed])| Difference {
        event: number,
        time_ns: row.time_ns,
        what: describe(&row),
        column,
        recorded,
        replayed,
    })
}

/// An event that only one of the traces has.
fn alone(number: u64, row: &EventRow<'_>, [recorded, replayed]: [&str; 2]) -> Difference {
    Difference {
        event: number,
        time_ns: row.time_ns,
        what: describe(row),
        column: "event",
        recorded: recorded.into(),
        replayed: replayed.into(),
    }
}

fn describe(row: &EventRow<'_>) -> String {
    let pdu = if row.pdu == 0 { String::new() } else { format!(" of PDU {}", row.pdu) };
    format!("`{}`{pdu} at {} {}", row.kind, row.hop, row.direction)
}
