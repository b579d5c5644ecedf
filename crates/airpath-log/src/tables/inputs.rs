// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `input.arrow`: everything that drove the machine, in order.

use std::sync::Arc;

use airpath_core::{FiveTuple, Matches};
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, DictionaryArray, StringArray, UInt8Array};
use arrow_schema::DataType;

use super::events::Causes;
use super::kinds::{Bytes, Later, Maybe, MaybeWord, Number, RunName, Text, Users};
use super::{Column, Names, table};
use crate::batch::Lost;
use crate::batch::{Input, InputKind, LogBatch};
use crate::error::LogError;
use crate::places::Places;
use crate::read::columns::Columns;
use crate::tables::words::words_type;

/// Stands for no user.
const NOBODY: u16 = u16::MAX;

table! {
    /// The columns of `input.arrow`, and rows that wait to be written. What does not belong to the kind of
    /// a row is empty.
    InputColumns of InputCells, read as InputRow of InputBatch {
        /// Kind of the input.
        kind: Kinds => InputKind,
        /// The time with which it was given to the machine, in nanoseconds since the run began.
        time_ns: Number<UInt64Type> => u64,
        /// Time at which the loop read the packet, in nanoseconds since the run began.
        read_ns: Maybe<UInt64Type> => Option<u64>,
        /// The kernel's receive stamp, in nanoseconds since the run began.
        kernel_ns: Maybe<UInt64Type> => Option<u64>,
        /// The port's number: 2u at the client's end of user u, 2u + 1 at the server's.
        port: Maybe<UInt16Type> => Option<u16>,
        /// The PDU's identity.
        pdu: Maybe<UInt64Type> => Option<u64>,
        /// The packet's length in bytes.
        length: Maybe<UInt32Type> => Option<u32>,
        /// The length of its headers in bytes.
        header_len: Maybe<UInt16Type> => Option<u16>,
        /// Its traffic class.
        class: Maybe<UInt8Type> => Option<u8>,
        /// Its ECN field.
        ecn: Maybe<UInt8Type> => Option<u8>,
        /// Its flow.
        flow: Maybe<UInt32Type> => Option<u32>,
        /// Its source address: of IPv4 as it is, of IPv6 folded to 32 bits.
        source: Later<UInt32Type> => Option<u32>,
        /// Its destination address, likewise.
        destination: Later<UInt32Type> => Option<u32>,
        /// Its source port.
        source_port: Later<UInt16Type> => Option<u16>,
        /// Its destination port.
        destination_port: Later<UInt16Type> => Option<u16>,
        /// Its transport protocol, by its number.
        protocol: Later<UInt8Type> => Option<u8>,
        /// Its escapes in HDLC-like framing, where a link wants them counted.
        escapes: Later<UInt16Type> => Option<u16>,
        /// Filters of the scenario that match the packet: bit n is filter n of the user, in the order of the scenario.
        matches: Later<UInt64Type> => Option<u64>,
        /// Cause for which the packet was discarded.
        cause: MaybeWord<Causes> => Option<&'a str>,
        /// Its headers.
        header: Bytes => Option<&'a [u8]>,
        /// XXH64 of the bytes behind the headers.
        hash64: Maybe<UInt64Type> => Option<u64>,
        /// Number of packets read.
        packets: Maybe<UInt32Type> => Option<u32>,
        /// The command, or the numbers of lost events and inputs, as JSON.
        command: Text => Option<&'a str>,
        /// The user at the port; empty for a path alone, and where there is no port.
        user: RunName<Users> => &'a str,
    }
}

impl InputCells<'_> {
    /// A row with nothing but what every kind has.
    fn new(kind: InputKind, time_ns: u64) -> InputCells<'static> {
        InputCells {
            kind,
            time_ns,
            read_ns: None,
            kernel_ns: None,
            port: None,
            pdu: None,
            length: None,
            header_len: None,
            class: None,
            ecn: None,
            flow: None,
            source: None,
            destination: None,
            source_port: None,
            destination_port: None,
            protocol: None,
            escapes: None,
            matches: None,
            cause: None,
            header: None,
            hash64: None,
            packets: None,
            command: None,
            user: NOBODY,
        }
    }
}

fn known(number: u64) -> Option<u64> {
    (number != Input::UNKNOWN).then_some(number)
}

impl InputColumns {
    /// No rows yet, of a run with these places.
    pub(crate) fn new(places: &Places) -> InputColumns {
        InputColumns::empty(&Names::of(places))
    }

    pub(crate) fn push(&mut self, input: &Input, batch: &LogBatch) {
        let is_packet = matches!(input.kind, InputKind::Offer | InputKind::Discarded);
        let is_offer = input.kind == InputKind::Offer;
        let is_read = input.kind == InputKind::Read;
        let bytes = batch.bytes(input.bytes);
        // Without bytes only the length is known: that is no empty header.
        let has_bytes = is_packet && !bytes.is_empty();
        let tuple = is_offer.then_some(input.tuple);
        let command = (input.kind == InputKind::Command).then(|| String::from_utf8_lossy(bytes));
        self.append(InputCells {
            read_ns: known(input.read_ns),
            kernel_ns: known(input.kernel_ns),
            port: (is_packet || is_read).then_some(input.port),
            user: if is_packet || is_read { Places::user_of_port(input.port) } else { NOBODY },
            pdu: is_offer.then_some(input.pdu),
            length: is_packet.then_some(input.length),
            header_len: is_packet.then_some(input.header_len),
            class: is_offer.then_some(input.class),
            ecn: is_offer.then_some(input.ecn as u8),
            flow: is_offer.then_some(input.flow),
            source: tuple.map(|tuple| tuple.source),
            destination: tuple.map(|tuple| tuple.destination),
            source_port: tuple.map(|tuple| tuple.source_port),
            destination_port: tuple.map(|tuple| tuple.destination_port),
            protocol: tuple.map(|tuple| tuple.protocol),
            escapes: input.escapes.known(),
            matches: (input.matches != Matches::NONE).then_some(input.matches.bits()),
            cause: (input.kind == InputKind::Discarded).then_some(input.cause as u8),
            header: has_bytes.then(|| &bytes[..bytes.len().min(usize::from(input.header_len))]),
            hash64: known(input.hash).filter(|_| has_bytes),
            packets: is_read.then_some(input.length),
            command: command.as_deref(),
            ..InputCells::new(input.kind, input.at.nanos())
        });
    }

    /// Adds a row with the extent of the gap before the next one.
    pub(crate) fn push_lost(&mut self, at_ns: u64, lost: Lost) {
        let lost = serde_json::to_string(&lost).unwrap_or_default();
        self.append(InputCells { command: Some(&lost), ..InputCells::new(InputKind::Lost, at_ns) });
    }
}

impl InputRow<'_> {
    /// Addresses, ports and protocol of the packet; `None` also in a log from before models looked at them.
    pub fn tuple(&self) -> Option<FiveTuple> {
        Some(FiveTuple {
            source: self.source?,
            destination: self.destination?,
            source_port: self.source_port?,
            destination_port: self.destination_port?,
            protocol: self.protocol?,
        })
    }
}

/// The kinds of inputs; one that is not known makes a log unreadable.
struct Kinds {
    words: Arc<StringArray>,
    keys: Vec<u8>,
}

impl Column for Kinds {
    type Cell<'a> = InputKind;
    type Shown<'a> = InputKind;
    type Read = Vec<InputKind>;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        words_type::<UInt8Type>()
    }

    fn new(_: &Names<'_>) -> Kinds {
        let words = StringArray::from_iter_values(InputKind::ALL.map(InputKind::name));
        Kinds { words: Arc::new(words), keys: Vec::new() }
    }

    fn push(&mut self, cell: InputKind) {
        self.keys.push(cell as u8);
    }

    fn take(&mut self) -> ArrayRef {
        let keys = UInt8Array::from(std::mem::take(&mut self.keys));
        Arc::new(DictionaryArray::<UInt8Type>::new(keys, self.words.clone()))
    }

    fn read(columns: &Columns<'_>, name: &str) -> Result<Vec<InputKind>, LogError> {
        let words = columns.words(name)?;
        let kind = |row| {
            let word = words.get(row);
            InputKind::ALL.into_iter().find(|kind| Some(kind.name()) == word).ok_or_else(|| {
                LogError::content(
                    columns.path,
                    format!("it has inputs of the unknown kind `{}`", word.unwrap_or("?")),
                    "use the version of Airpath that recorded it",
                )
            })
        };
        (0..columns.batch.num_rows()).map(kind).collect()
    }

    fn get(read: &Vec<InputKind>, row: usize) -> InputKind {
        read[row]
    }

    fn preview(&self, cell: InputKind) -> InputKind {
        cell
    }

    fn tell(shown: InputKind) -> String {
        format!("`{}`", shown.name())
    }
}
