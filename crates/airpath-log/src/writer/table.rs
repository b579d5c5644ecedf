// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An Arrow table that grows as an IPC stream and ends as an IPC file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;

use super::sink::Sink;
use crate::place;
use crate::read::arrow::ArrowLog;

/// Number of rows in a batch of the finished file, except for the last, which may have fewer. Exactly so many:
/// how rows came to the writer must not show in the file.
const FILE_ROWS: usize = 65_536;

pub(crate) struct Table {
    sink: Sink,
    stream: StreamWriter<Vec<u8>>,
    rows: u64,
}

impl Table {
    /// A table in `sink`, with its schema written.
    pub fn new(sink: Sink, schema: &SchemaRef) -> Table {
        let stream = StreamWriter::try_new(Vec::new(), schema).expect("a buffer in memory takes any schema");
        let mut table = Table { sink, stream, rows: 0 };
        table.drain();
        table
    }

    /// Writes `batch`, whole or not at all.
    pub fn write(&mut self, batch: &RecordBatch) {
        if self.sink.failure().is_some() || batch.num_rows() == 0 {
            return;
        }
        self.stream.write(batch).expect("a buffer in memory takes every batch of its own schema");
        self.drain();
        if self.sink.failure().is_none() {
            self.rows += batch.num_rows() as u64;
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// Ends the stream and turns it into a file. Returns what kept it from being whole, and what
    /// else the user should know.
    pub fn finish(mut self) -> (Option<String>, Option<String>) {
        self.stream.finish().expect("a buffer in memory takes the end of a stream");
        self.drain();
        self.sink.check();
        if let Some(failure) = self.sink.failure() {
            return (Some(failure.to_owned()), None);
        }
        let path = self.sink.path().to_owned();
        let note = to_file_format(&path)
            .err()
            .map(|error| format!("{} remains in Arrow stream format, complete and readable: {error}", path.display()));
        (None, note)
    }

    fn drain(&mut self) {
        let block = self.stream.get_mut();
        self.sink.append(block);
        block.clear();
    }
}

/// Replaces the stream at `path` by a file with the same rows.
fn to_file_format(path: &Path) -> io::Result<()> {
    let broken = |error: ArrowError| match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    };
    let log = ArrowLog::open(path).map_err(io::Error::other)?;
    place::replace(path, |file: &mut File| {
        let schema = log.schema();
        let mut writer = FileWriter::try_new(BufWriter::new(file), &schema).map_err(broken)?;
        let mut waiting = Waiting::default();
        for batch in log {
            let mut batch = batch.map_err(io::Error::other)?;
            while waiting.rows + batch.num_rows() >= FILE_ROWS {
                let missing = FILE_ROWS - waiting.rows;
                waiting.push(batch.slice(0, missing));
                batch = batch.slice(missing, batch.num_rows() - missing);
                writer.write(&waiting.take(&schema).map_err(broken)?).map_err(broken)?;
            }
            waiting.push(batch);
        }
        if waiting.rows > 0 {
            writer.write(&waiting.take(&schema).map_err(broken)?).map_err(broken)?;
        }
        writer.finish().map_err(broken)?;
        writer.get_mut().flush()
    })
}

/// Rows that wait until a batch of the file is full.
#[derive(Default)]
struct Waiting {
    batches: Vec<RecordBatch>,
    rows: usize,
}

impl Waiting {
    fn push(&mut self, batch: RecordBatch) {
        if batch.num_rows() > 0 {
            self.rows += batch.num_rows();
            self.batches.push(batch);
        }
    }

    /// All of them in one batch; none are left.
    fn take(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        concat_batches(schema, &std::mem::take(&mut self.batches))
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Direction, Event, EventKind, Pdu, Time};

    use super::*;
    use crate::places::Places;
    use crate::tables::events::{EventColumns, Left};

    /// The finished file of `rows` events that came to the writer in batches of `lengths`, in turn.
    fn file(folder: &Path, rows: u64, lengths: &[u64]) -> Vec<u8> {
        let path = folder.join("events.arrow");
        let places = Places::of_path(vec!["radio".into(), "core".into()], vec!["base".into()]);
        let mut columns = EventColumns::new(&places);
        let mut table = Table::new(Sink::create(path.clone()).unwrap(), columns.schema());
        let mut lengths = lengths.iter().cycle();
        let mut until = *lengths.next().unwrap();
        for row in 0..rows {
            let pdu = Pdu { id: row, len: 100, ..Pdu::default() };
            let cause = airpath_core::Cause::None;
            let mut event =
                Event::of_path(Time::from_nanos(row), Direction::Uplink, EventKind::Delivered, cause, &pdu, 0);
            event.hop = (row % 5) as u16;
            let flips: Vec<u32> = (0..(row % 11) as u32).collect();
            let left = Left { at_ns: row, flips: &flips, kept_bytes: row.is_multiple_of(3).then_some(7) };
            columns.push(&event, (!row.is_multiple_of(7)).then_some(left), &places);
            if row + 1 == until {
                table.write(&columns.take());
                until += *lengths.next().unwrap();
            }
        }
        table.write(&columns.take());
        assert_eq!(table.finish(), (None, None));
        std::fs::read(path).unwrap()
    }

    #[test]
    fn a_file_does_not_show_in_which_batches_its_rows_came() {
        const FULL: u64 = FILE_ROWS as u64;
        for rows in [2 * FULL + 4_711, 2 * FULL, FULL - 1, 13] {
            let one = tempfile::tempdir().unwrap();
            let expected = file(one.path(), rows, &[u64::MAX]);
            for lengths in [&[FULL][..], &[1_001], &[8_192, 8_191, 1], &[70_000, 3], &[FULL + 1]] {
                let other = tempfile::tempdir().unwrap();
                assert!(file(other.path(), rows, lengths) == expected, "{rows} rows in batches of {lengths:?}");
            }
            let log = ArrowLog::open(&one.path().join("events.arrow")).unwrap();
            let lengths: Vec<u64> = log.map(|batch| batch.unwrap().num_rows() as u64).collect();
            let (last, full) = lengths.split_last().unwrap();
            assert!(full.iter().all(|length| *length == FULL) && *last <= FULL, "{lengths:?}");
        }
    }
}
