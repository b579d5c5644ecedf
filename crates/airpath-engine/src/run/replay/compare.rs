//! One recorded event beside one of the replay.

use std::fmt;

use airpath_core::Event;
use airpath_log::read::events::EventRow;
use airpath_log::show::count;
use airpath_log::writer::events::WHOLE_PATH;

/// The names behind the numbers in events.
pub struct Names<'a> {
    /// The hops, by their index.
    pub hops: &'a [String],
    /// The states, by their index.
    pub states: &'a [String],
}

/// An event of the replay; of a delivery also what the link has flipped in the packet.
pub struct Replayed<'a> {
    /// The event.
    pub event: &'a Event,
    /// Positions of flipped bits, ascending; none for a packet that is whole.
    pub flipped_bits: Option<&'a [u32]>,
    /// The bytes left of a packet that was cut short.
    pub kept_bytes: Option<u32>,
}

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

/// Compares the events numbered `number`, if there are any: everything that the machine decides. When
/// a packet of a live run really left is not its business.
pub fn difference(
    number: u64,
    recorded: Option<EventRow<'_>>,
    replayed: Option<&Replayed<'_>>,
    names: &Names<'_>,
) -> Option<Difference> {
    let (row, other) = match (recorded, replayed) {
        (None, None) => return None,
        (Some(row), None) => return Some(alone(number, &row, ["there", "missing"])),
        (None, Some(replayed)) => {
            return Some(alone(number, &row_of(replayed, names), ["missing", "there"]));
        }
        (Some(row), Some(replayed)) => (row, row_of(replayed, names)),
    };
    let texts = [
        ("hop", row.hop, other.hop),
        ("direction", row.direction, other.direction),
        ("stage", row.stage, other.stage),
        ("kind", row.kind, other.kind),
        ("cause", row.cause, other.cause),
        ("state", row.state, other.state),
    ];
    let numbers = [
        ("pdu", row.pdu, other.pdu),
        ("flow", row.flow.into(), other.flow.into()),
        ("bits", row.bits, other.bits),
        ("queue_packets", row.queue_packets.into(), other.queue_packets.into()),
        ("queue_bytes", row.queue_bytes, other.queue_bytes),
    ];
    let differs = |column, recorded: String, replayed: String| {
        Some(Difference { event: number, time_ns: row.time_ns, what: describe(&row), column, recorded, replayed })
    };
    if row.time_ns != other.time_ns {
        return differs("time_ns", count(row.time_ns), count(other.time_ns));
    }
    if let Some((column, recorded, replayed)) = texts.into_iter().find(|(_, one, other)| one != other) {
        return differs(column, format!("`{recorded}`"), format!("`{replayed}`"));
    }
    if let Some((column, recorded, replayed)) = numbers.into_iter().find(|(_, one, other)| one != other) {
        return differs(column, count(recorded), count(replayed));
    }
    let show = |flips: Option<&[u32]>| flips.map_or_else(|| "none".into(), |flips| format!("{flips:?}"));
    if row.flipped_bits != other.flipped_bits {
        return differs("flipped_bits", show(row.flipped_bits), show(other.flipped_bits));
    }
    let show = |bytes: Option<u32>| bytes.map_or_else(|| "none".into(), |bytes| count(bytes.into()));
    match row.kept_bytes != other.kept_bytes {
        true => differs("kept_bytes", show(row.kept_bytes), show(other.kept_bytes)),
        false => None,
    }
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

/// The event as the log would have it.
fn row_of<'a>(replayed: &Replayed<'a>, names: &Names<'a>) -> EventRow<'a> {
    let Replayed { event, flipped_bits, kept_bytes } = *replayed;
    let hop = match event.hop {
        Event::WHOLE_PATH => WHOLE_PATH,
        hop => names.hops.get(usize::from(hop)).map_or("?", String::as_str),
    };
    EventRow {
        time_ns: event.at.nanos(),
        hop,
        direction: event.direction.name(),
        stage: event.stage.name(),
        kind: event.kind.name(),
        cause: event.cause.name(),
        pdu: event.pdu,
        flow: event.flow,
        bits: event.bits,
        queue_packets: event.queue_packets,
        queue_bytes: event.queue_bytes,
        state: names.states.get(usize::from(event.state)).map_or("?", String::as_str),
        emitted_ns: None,
        flipped_bits,
        kept_bytes,
        origin: event.origin.name(),
    }
}
