//! The columns of `events.arrow`.

use std::sync::Arc;

use airpath_core::{Direction, Event, EventKind, Origin, Stage};
use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::columns::{by_u8, by_u16, cause_words, dictionary_u8, dictionary_u16, words};

/// The name under which events of the whole path are logged.
pub const WHOLE_PATH: &str = "path";

/// The column with the positions of the bits that the link has flipped in a packet, on the row of its
/// delivery; bit 0 is the most significant bit of the first byte.
pub const FLIPPED_BITS: &str = "flipped_bits";

/// The column with the bytes that are left of a truncated packet, on the row of its delivery.
pub const KEPT_BYTES: &str = "kept_bytes";

/// Real departure of a packet.
pub(crate) struct Left<'a> {
    /// Time of the departure.
    pub at_ns: u64,
    /// Positions of the bits that the link has flipped.
    pub flips: &'a [u32],
    /// The bytes that are left of it, if it was truncated.
    pub kept_bytes: Option<u32>,
}
/// The column that says whose traffic an event concerns.
pub const ORIGIN: &str = "origin";

/// Rows that wait to be written.
pub(crate) struct EventColumns {
    schema: SchemaRef,
    hops: ArrayRef,
    directions: ArrayRef,
    stages: ArrayRef,
    kinds: ArrayRef,
    causes: ArrayRef,
    states: ArrayRef,
    origins: ArrayRef,
    rows: Rows,
}

#[derive(Default)]
struct Rows {
    time_ns: Vec<u64>,
    hop: Vec<Option<u16>>,
    direction: Vec<u8>,
    stage: Vec<u8>,
    kind: Vec<u8>,
    cause: Vec<u8>,
    pdu: Vec<u64>,
    flow: Vec<u32>,
    bits: Vec<u64>,
    queue_packets: Vec<u32>,
    queue_bytes: Vec<u64>,
    state: Vec<Option<u16>>,
    emitted_ns: Vec<Option<u64>>,
    flipped_bits: ListBuilder<UInt32Builder>,
    kept_bytes: Vec<Option<u32>>,
    origin: Vec<u8>,
}

/// Type of an entry in the column of flipped bits.
fn position() -> Field {
    Field::new("item", DataType::UInt32, false)
}

impl EventColumns {
    /// No rows yet, for a path with these hops and states.
    pub fn new(hops: &[String], states: &[String]) -> EventColumns {
        let schema = Schema::new(vec![
            Field::new("time_ns", DataType::UInt64, false),
            by_u16("hop", true),
            by_u8("direction", false),
            by_u8("stage", false),
            by_u8("kind", false),
            by_u8("cause", false),
            Field::new("pdu", DataType::UInt64, false),
            Field::new("flow", DataType::UInt32, false),
            Field::new("bits", DataType::UInt64, false),
            Field::new("queue_packets", DataType::UInt32, false),
            Field::new("queue_bytes", DataType::UInt64, false),
            by_u16("state", true),
            Field::new("emitted_ns", DataType::UInt64, true),
            Field::new(FLIPPED_BITS, DataType::List(Arc::new(position())), true),
            Field::new(KEPT_BYTES, DataType::UInt32, true),
            by_u8(ORIGIN, false),
        ]);
        EventColumns {
            schema: Arc::new(schema),
            hops: words([WHOLE_PATH].into_iter().chain(hops.iter().map(String::as_str))),
            directions: words(Direction::ALL.map(Direction::name)),
            stages: words(Stage::ALL.iter().map(|stage| stage.name())),
            kinds: words(EventKind::ALL.iter().map(|kind| kind.name())),
            causes: cause_words(),
            states: words(states.iter().map(String::as_str)),
            origins: words(Origin::ALL.map(Origin::name)),
            rows: Rows::default(),
        }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn len(&self) -> usize {
        self.rows.time_ns.len()
    }

    /// Adds a row; a delivery may bring along how the packet really left.
    pub fn push(&mut self, event: &Event, left: Option<Left<'_>>) {
        let rows = &mut self.rows;
        let hop = if event.hop == Event::WHOLE_PATH { 0 } else { event.hop.saturating_add(1) };
        rows.time_ns.push(event.at.nanos());
        rows.hop.push((usize::from(hop) < self.hops.len()).then_some(hop));
        rows.direction.push(event.direction as u8);
        rows.stage.push(event.stage as u8);
        rows.kind.push(event.kind as u8);
        rows.cause.push(event.cause as u8);
        rows.pdu.push(event.pdu);
        rows.flow.push(event.flow);
        rows.bits.push(event.bits);
        rows.queue_packets.push(event.queue_packets);
        rows.queue_bytes.push(event.queue_bytes);
        rows.state.push((usize::from(event.state) < self.states.len()).then_some(event.state));
        rows.emitted_ns.push(left.as_ref().map(|left| left.at_ns));
        rows.kept_bytes.push(left.as_ref().and_then(|left| left.kept_bytes));
        let flips = left.map_or(&[][..], |left| left.flips);
        rows.flipped_bits.values().append_slice(flips);
        rows.flipped_bits.append(!flips.is_empty());
        rows.origin.push(event.origin as u8);
    }

    /// The rows so far; none are left.
    pub fn take(&mut self) -> RecordBatch {
        let rows = std::mem::take(&mut self.rows);
        let mut flipped_bits = rows.flipped_bits.with_field(position());
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(rows.time_ns)),
            dictionary_u16(rows.hop.into(), &self.hops),
            dictionary_u8(rows.direction.into(), &self.directions),
            dictionary_u8(rows.stage.into(), &self.stages),
            dictionary_u8(rows.kind.into(), &self.kinds),
            dictionary_u8(rows.cause.into(), &self.causes),
            Arc::new(UInt64Array::from(rows.pdu)),
            Arc::new(UInt32Array::from(rows.flow)),
            Arc::new(UInt64Array::from(rows.bits)),
            Arc::new(UInt32Array::from(rows.queue_packets)),
            Arc::new(UInt64Array::from(rows.queue_bytes)),
            dictionary_u16(rows.state.into(), &self.states),
            Arc::new(UInt64Array::from(rows.emitted_ns)),
            Arc::new(flipped_bits.finish()),
            Arc::new(UInt32Array::from(rows.kept_bytes)),
            dictionary_u8(rows.origin.into(), &self.origins),
        ];
        RecordBatch::try_new(self.schema.clone(), columns).expect("the columns are those of the schema")
    }
}
