//! The columns of `input.arrow`: everything that drove the machine, in order.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::columns::{by_u8, cause_words, dictionary_u8, words};
use crate::batch::Lost;
use crate::batch::{Input, InputKind, LogBatch};

/// Rows that wait to be written.
pub(crate) struct InputColumns {
    schema: SchemaRef,
    kinds: ArrayRef,
    causes: ArrayRef,
    rows: Rows,
}

#[derive(Default)]
struct Rows {
    kind: Vec<u8>,
    time_ns: Vec<u64>,
    read_ns: Vec<Option<u64>>,
    kernel_ns: Vec<Option<u64>>,
    port: Vec<Option<u16>>,
    pdu: Vec<Option<u64>>,
    length: Vec<Option<u32>>,
    header_len: Vec<Option<u16>>,
    class: Vec<Option<u8>>,
    ecn: Vec<Option<u8>>,
    flow: Vec<Option<u32>>,
    source: Vec<Option<u32>>,
    destination: Vec<Option<u32>>,
    source_port: Vec<Option<u16>>,
    destination_port: Vec<Option<u16>>,
    protocol: Vec<Option<u8>>,
    cause: Vec<Option<u8>>,
    header: BinaryBuilder,
    hash64: Vec<Option<u64>>,
    packets: Vec<Option<u32>>,
    command: StringBuilder,
}

fn known(nanos: u64) -> Option<u64> {
    (nanos != Input::UNKNOWN).then_some(nanos)
}

impl InputColumns {
    pub fn new() -> InputColumns {
        let schema = Schema::new(vec![
            by_u8("kind", false),
            Field::new("time_ns", DataType::UInt64, false),
            Field::new("read_ns", DataType::UInt64, true),
            Field::new("kernel_ns", DataType::UInt64, true),
            Field::new("port", DataType::UInt16, true),
            Field::new("pdu", DataType::UInt64, true),
            Field::new("length", DataType::UInt32, true),
            Field::new("header_len", DataType::UInt16, true),
            Field::new("class", DataType::UInt8, true),
            Field::new("ecn", DataType::UInt8, true),
            Field::new("flow", DataType::UInt32, true),
            // Addresses as `FiveTuple` has them: what models tell flows apart by.
            Field::new("source", DataType::UInt32, true),
            Field::new("destination", DataType::UInt32, true),
            Field::new("source_port", DataType::UInt16, true),
            Field::new("destination_port", DataType::UInt16, true),
            Field::new("protocol", DataType::UInt8, true),
            by_u8("cause", true),
            Field::new("header", DataType::Binary, true),
            Field::new("hash64", DataType::UInt64, true),
            Field::new("packets", DataType::UInt32, true),
            Field::new("command", DataType::Utf8, true),
        ]);
        InputColumns {
            schema: Arc::new(schema),
            kinds: words(InputKind::ALL.map(InputKind::name)),
            causes: cause_words(),
            rows: Rows::default(),
        }
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub fn len(&self) -> usize {
        self.rows.time_ns.len()
    }

    pub fn push(&mut self, input: &Input, batch: &LogBatch) {
        let rows = &mut self.rows;
        let is_packet = matches!(input.kind, InputKind::Offer | InputKind::Discarded);
        let is_offer = input.kind == InputKind::Offer;
        let bytes = batch.bytes(input.bytes);
        rows.kind.push(input.kind as u8);
        rows.time_ns.push(input.at.nanos());
        rows.read_ns.push(known(input.read_ns));
        rows.kernel_ns.push(known(input.kernel_ns));
        rows.port.push((is_packet || input.kind == InputKind::Read).then_some(input.port));
        rows.pdu.push(is_offer.then_some(input.pdu));
        rows.length.push(is_packet.then_some(input.length));
        rows.header_len.push(is_packet.then_some(input.header_len));
        rows.class.push(is_offer.then_some(input.class));
        rows.ecn.push(is_offer.then_some(input.ecn as u8));
        rows.flow.push(is_offer.then_some(input.flow));
        let tuple = is_offer.then_some(input.tuple);
        rows.source.push(tuple.map(|tuple| tuple.source));
        rows.destination.push(tuple.map(|tuple| tuple.destination));
        rows.source_port.push(tuple.map(|tuple| tuple.source_port));
        rows.destination_port.push(tuple.map(|tuple| tuple.destination_port));
        rows.protocol.push(tuple.map(|tuple| tuple.protocol));
        rows.cause.push((input.kind == InputKind::Discarded).then_some(input.cause as u8));
        // Without bytes only the length is known: that is no empty header.
        let has_bytes = is_packet && !bytes.is_empty();
        rows.header.append_option(has_bytes.then(|| &bytes[..bytes.len().min(usize::from(input.header_len))]));
        rows.hash64.push(has_bytes.then_some(input.hash));
        rows.packets.push((input.kind == InputKind::Read).then_some(input.length));
        rows.command.append_option((input.kind == InputKind::Command).then(|| String::from_utf8_lossy(bytes)));
    }

    /// A row that says how much is missing before the next one.
    pub fn push_lost(&mut self, at_ns: u64, lost: Lost) {
        let rows = &mut self.rows;
        rows.kind.push(InputKind::Lost as u8);
        rows.time_ns.push(at_ns);
        rows.read_ns.push(None);
        rows.kernel_ns.push(None);
        rows.port.push(None);
        rows.pdu.push(None);
        rows.length.push(None);
        rows.header_len.push(None);
        rows.class.push(None);
        rows.ecn.push(None);
        rows.flow.push(None);
        rows.source.push(None);
        rows.destination.push(None);
        rows.source_port.push(None);
        rows.destination_port.push(None);
        rows.protocol.push(None);
        rows.cause.push(None);
        rows.header.append_null();
        rows.hash64.push(None);
        rows.packets.push(None);
        rows.command.append_value(serde_json::to_string(&lost).unwrap_or_default());
    }

    /// The rows so far; none are left.
    pub fn take(&mut self) -> RecordBatch {
        let mut rows = std::mem::take(&mut self.rows);
        let columns: Vec<ArrayRef> = vec![
            dictionary_u8(rows.kind.into(), &self.kinds),
            Arc::new(UInt64Array::from(rows.time_ns)),
            Arc::new(UInt64Array::from(rows.read_ns)),
            Arc::new(UInt64Array::from(rows.kernel_ns)),
            Arc::new(UInt16Array::from(rows.port)),
            Arc::new(UInt64Array::from(rows.pdu)),
            Arc::new(UInt32Array::from(rows.length)),
            Arc::new(UInt16Array::from(rows.header_len)),
            Arc::new(UInt8Array::from(rows.class)),
            Arc::new(UInt8Array::from(rows.ecn)),
            Arc::new(UInt32Array::from(rows.flow)),
            Arc::new(UInt32Array::from(rows.source)),
            Arc::new(UInt32Array::from(rows.destination)),
            Arc::new(UInt16Array::from(rows.source_port)),
            Arc::new(UInt16Array::from(rows.destination_port)),
            Arc::new(UInt8Array::from(rows.protocol)),
            dictionary_u8(rows.cause.into(), &self.causes),
            Arc::new(rows.header.finish()),
            Arc::new(UInt64Array::from(rows.hash64)),
            Arc::new(UInt32Array::from(rows.packets)),
            Arc::new(rows.command.finish()),
        ];
        RecordBatch::try_new(self.schema.clone(), columns).expect("the columns are those of the schema")
    }
}
