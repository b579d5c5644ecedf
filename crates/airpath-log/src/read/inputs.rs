//! The rows of `input.arrow`.

use std::path::Path;

use airpath_core::FiveTuple;
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, BinaryArray, RecordBatch, StringArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array};

use super::columns::{Columns, WordColumn, number};
use crate::batch::InputKind;
use crate::error::LogError;

/// One thing that drove the machine. What does not belong to its kind is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InputRow<'a> {
    /// What it was.
    pub kind: InputKind,
    /// The time with which it was given to the machine, in nanoseconds since the run began.
    pub time_ns: u64,
    /// When the loop read the packet.
    pub read_ns: Option<u64>,
    /// The kernel's receive stamp.
    pub kernel_ns: Option<u64>,
    /// The port's number.
    pub port: Option<u16>,
    /// The PDU's identity.
    pub pdu: Option<u64>,
    /// The packet's length in bytes.
    pub length: Option<u32>,
    /// The length of its headers in bytes.
    pub header_len: Option<u16>,
    /// Its traffic class.
    pub class: Option<u8>,
    /// Its ECN field.
    pub ecn: Option<u8>,
    /// Its flow.
    pub flow: Option<u32>,
    /// Between whom it travels; `None` in a log from before models looked at that.
    pub tuple: Option<FiveTuple>,
    /// Why it was discarded.
    pub cause: Option<&'a str>,
    /// Its headers.
    pub header: Option<&'a [u8]>,
    /// XXH64 of the bytes behind the headers.
    pub hash64: Option<u64>,
    /// How many packets were read.
    pub packets: Option<u32>,
    /// The command, or what was lost, as JSON.
    pub command: Option<&'a str>,
}

/// The columns of a five-tuple.
struct TupleColumns {
    source: UInt32Array,
    destination: UInt32Array,
    source_port: UInt16Array,
    destination_port: UInt16Array,
    protocol: UInt8Array,
}

impl TupleColumns {
    /// `None` where the file has none of them.
    fn new(columns: &Columns<'_>) -> Result<Option<TupleColumns>, LogError> {
        if columns.batch.column_by_name("protocol").is_none() {
            return Ok(None);
        }
        Ok(Some(TupleColumns {
            source: columns.numbers::<UInt32Type>("source")?,
            destination: columns.numbers::<UInt32Type>("destination")?,
            source_port: columns.numbers::<UInt16Type>("source_port")?,
            destination_port: columns.numbers::<UInt16Type>("destination_port")?,
            protocol: columns.numbers::<UInt8Type>("protocol")?,
        }))
    }

    fn get(&self, row: usize) -> Option<FiveTuple> {
        Some(FiveTuple {
            source: number(&self.source, row)?,
            destination: number(&self.destination, row)?,
            source_port: number(&self.source_port, row)?,
            destination_port: number(&self.destination_port, row)?,
            protocol: number(&self.protocol, row)?,
        })
    }
}

/// The inputs of one batch.
pub struct InputBatch {
    kind: WordColumn,
    time_ns: UInt64Array,
    read_ns: UInt64Array,
    kernel_ns: UInt64Array,
    port: UInt16Array,
    pdu: UInt64Array,
    length: UInt32Array,
    header_len: UInt16Array,
    class: UInt8Array,
    ecn: UInt8Array,
    flow: UInt32Array,
    tuple: Option<TupleColumns>,
    cause: WordColumn,
    header: BinaryArray,
    hash64: UInt64Array,
    packets: UInt32Array,
    command: StringArray,
}

impl InputBatch {
    /// The columns of `batch`, which came from the file at `path`.
    ///
    /// # Errors
    /// When they are not those of an input log.
    pub fn new(batch: &RecordBatch, path: &Path) -> Result<InputBatch, LogError> {
        let columns = Columns { batch, path };
        let inputs = InputBatch {
            kind: columns.words("kind")?,
            time_ns: columns.numbers::<UInt64Type>("time_ns")?,
            read_ns: columns.numbers::<UInt64Type>("read_ns")?,
            kernel_ns: columns.numbers::<UInt64Type>("kernel_ns")?,
            port: columns.numbers::<UInt16Type>("port")?,
            pdu: columns.numbers::<UInt64Type>("pdu")?,
            length: columns.numbers::<UInt32Type>("length")?,
            header_len: columns.numbers::<UInt16Type>("header_len")?,
            class: columns.numbers::<UInt8Type>("class")?,
            ecn: columns.numbers::<UInt8Type>("ecn")?,
            flow: columns.numbers::<UInt32Type>("flow")?,
            tuple: TupleColumns::new(&columns)?,
            cause: columns.words("cause")?,
            header: columns.binary("header")?,
            hash64: columns.numbers::<UInt64Type>("hash64")?,
            packets: columns.numbers::<UInt32Type>("packets")?,
            command: columns.text("command")?,
        };
        let unknown = (0..batch.num_rows()).find(|row| inputs.kind_of(*row).is_none());
        match unknown {
            Some(row) => Err(LogError::content(
                path,
                format!("it has inputs of the unknown kind `{}`", inputs.kind.get(row).unwrap_or("?")),
                "use the version of Airpath that recorded it",
            )),
            None => Ok(inputs),
        }
    }

    fn kind_of(&self, row: usize) -> Option<InputKind> {
        let name = self.kind.get(row)?;
        InputKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The inputs in order.
    pub fn rows(&self) -> impl Iterator<Item = InputRow<'_>> {
        (0..self.time_ns.values().len()).filter_map(|row| {
            Some(InputRow {
                kind: self.kind_of(row)?,
                time_ns: self.time_ns.value(row),
                read_ns: number(&self.read_ns, row),
                kernel_ns: number(&self.kernel_ns, row),
                port: number(&self.port, row),
                pdu: number(&self.pdu, row),
                length: number(&self.length, row),
                header_len: number(&self.header_len, row),
                class: number(&self.class, row),
                ecn: number(&self.ecn, row),
                flow: number(&self.flow, row),
                tuple: self.tuple.as_ref().and_then(|tuple| tuple.get(row)),
                cause: self.cause.get(row),
                header: self.header.is_valid(row).then(|| self.header.value(row)),
                hash64: number(&self.hash64, row),
                packets: number(&self.packets, row),
                command: self.command.is_valid(row).then(|| self.command.value(row)),
            })
        })
    }
}
