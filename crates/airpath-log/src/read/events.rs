//! The rows of `events.arrow`.

use std::path::Path;

use airpath_core::Origin;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use serde::Serialize;

use super::columns::{Columns, ListColumn, WordColumn, number};
use crate::error::LogError;
use crate::writer::events::{FLIPPED_BITS, KEPT_BYTES, ORIGIN};

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct EventRow<'a> {
    /// When, in nanoseconds since the run began.
    pub time_ns: u64,
    /// The hop's name; "path" for the whole path.
    pub hop: &'a str,
    /// The direction.
    pub direction: &'a str,
    /// Where.
    pub stage: &'a str,
    /// What.
    pub kind: &'a str,
    /// Why, for a drop; empty otherwise.
    pub cause: &'a str,
    /// The PDU; 0 for none.
    pub pdu: u64,
    /// The PDU's flow.
    pub flow: u32,
    /// Bits concerned.
    pub bits: u64,
    /// Packets in the queue after the event.
    pub queue_packets: u32,
    /// Bytes in the queue after the event.
    pub queue_bytes: u64,
    /// The state in force.
    pub state: &'a str,
    /// When the packet really left, for a delivery of a live run.
    pub emitted_ns: Option<u64>,
    /// Positions of the bits that the link has flipped, for the delivery of a damaged packet; bit 0 is
    /// the most significant bit of the first byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flipped_bits: Option<&'a [u32]>,
    /// The bytes that are left, for the delivery of a truncated packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_bytes: Option<u32>,
    /// Whose traffic: of endpoints ("user"), virtual ("background"), of link entities ("control").
    pub origin: &'a str,
}

/// The events of one batch.
pub struct EventBatch {
    time_ns: UInt64Array,
    hop: WordColumn,
    direction: WordColumn,
    stage: WordColumn,
    kind: WordColumn,
    cause: WordColumn,
    pdu: UInt64Array,
    flow: UInt32Array,
    bits: UInt64Array,
    queue_packets: UInt32Array,
    queue_bytes: UInt64Array,
    state: WordColumn,
    emitted_ns: UInt64Array,
    flipped_bits: Option<ListColumn<UInt32Type>>,
    kept_bytes: Option<UInt32Array>,
    /// None in logs of earlier versions, which knew no background load.
    origin: Option<WordColumn>,
}

impl EventBatch {
    /// The columns of `batch`, which came from the file at `path`.
    ///
    /// # Errors
    /// When they are not those of an event log.
    pub fn new(batch: &RecordBatch, path: &Path) -> Result<EventBatch, LogError> {
        let columns = Columns { batch, path };
        Ok(EventBatch {
            time_ns: columns.numbers::<UInt64Type>("time_ns")?,
            hop: columns.words("hop")?,
            direction: columns.words("direction")?,
            stage: columns.words("stage")?,
            kind: columns.words("kind")?,
            cause: columns.words("cause")?,
            pdu: columns.numbers::<UInt64Type>("pdu")?,
            flow: columns.numbers::<UInt32Type>("flow")?,
            bits: columns.numbers::<UInt64Type>("bits")?,
            queue_packets: columns.numbers::<UInt32Type>("queue_packets")?,
            queue_bytes: columns.numbers::<UInt64Type>("queue_bytes")?,
            state: columns.words("state")?,
            emitted_ns: columns.numbers::<UInt64Type>("emitted_ns")?,
            flipped_bits: columns.lists::<UInt32Type>(FLIPPED_BITS)?,
            kept_bytes: columns.has(KEPT_BYTES).then(|| columns.numbers::<UInt32Type>(KEPT_BYTES)).transpose()?,
            origin: batch.column_by_name(ORIGIN).map(|_| columns.words(ORIGIN)).transpose()?,
        })
    }

    /// The events in order.
    pub fn rows(&self) -> impl Iterator<Item = EventRow<'_>> {
        (0..self.len()).filter_map(|row| self.row(row))
    }

    /// The event in `row`; `None` beyond the last.
    pub fn row(&self, row: usize) -> Option<EventRow<'_>> {
        (row < self.len()).then(|| EventRow {
            time_ns: self.time_ns.value(row),
            hop: self.hop.get(row).unwrap_or("?"),
            direction: self.direction.get(row).unwrap_or("?"),
            stage: self.stage.get(row).unwrap_or("?"),
            kind: self.kind.get(row).unwrap_or("?"),
            cause: self.cause.get(row).unwrap_or(""),
            pdu: self.pdu.value(row),
            flow: self.flow.value(row),
            bits: self.bits.value(row),
            queue_packets: self.queue_packets.value(row),
            queue_bytes: self.queue_bytes.value(row),
            state: self.state.get(row).unwrap_or("?"),
            emitted_ns: number(&self.emitted_ns, row),
            flipped_bits: self.flipped_bits.as_ref().and_then(|positions| positions.get(row)),
            kept_bytes: self.kept_bytes.as_ref().and_then(|bytes| number(bytes, row)),
            origin: self.origin.as_ref().map_or(Origin::User.name(), |origins| origins.get(row).unwrap_or("?")),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.time_ns.values().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of all hops, and the word for the whole path.
    pub(crate) fn hop_names(&self) -> Vec<&str> {
        self.hop.words()
    }

    /// The length of the longest hop name.
    pub(crate) fn hop_width(&self) -> usize {
        self.hop.width()
    }
}
