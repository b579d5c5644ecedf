// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! An Arrow table that grows as an IPC stream and ends as an IPC file.
//!
//! A file is a stream between a mark and a footer, with the rows in batches of a fixed number. Where they came in such
//! batches, the table is written once: the stream leaves room for the mark, and gets it at the end. Its schema message
//! begins where the mark belongs, with nothing between its head and its content.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;

use super::sink::Sink;
use crate::place;
use crate::read::arrow::ArrowLog;

/// Number of rows in a batch of the finished file, except for the last, which may have fewer. Exactly so many:
/// how rows came to the writer must not show in the file.
pub(crate) const FILE_ROWS: usize = 65_536;
/// Length of a file's mark with the zeros behind it, in bytes; messages have lengths that are multiples of it.
const MARK_BYTES: u8 = 64;
/// Length of the end mark of a stream, in bytes.
const STREAM_END_BYTES: usize = 8;
/// Least length of a part that is written on its own, in bytes.
const LONG_BYTES: usize = 1 << 16;

pub(crate) struct Table {
    encoder: Encoder,
    /// The mark of a file.
    mark: Vec<u8>,
    rows: u64,
    /// True if each batch so far, but for the last one, is a batch of the finished file.
    is_file: bool,
    /// True if the last batch has fewer rows than a file's batch, or more.
    is_odd: bool,
}

impl Table {
    /// A table in `sink`, with its schema written.
    pub fn new(sink: Sink, schema: &SchemaRef) -> Table {
        let options = IpcWriteOptions::try_new(MARK_BYTES.into(), false, arrow_ipc::MetadataVersion::V5)
            .expect("these options are those of every file");
        let writer = FileWriter::try_new_with_options(Parts::held(sink), schema, options);
        let mut encoder = Encoder::File(writer.expect("parts in memory take any schema"));
        let head = &mut encoder.parts().waiting;
        let mark = head[..usize::from(MARK_BYTES)].to_vec();
        begin_as_stream(head);
        Table::begun(encoder, mark)
    }

    /// The same for batches whose columns of words do not all have the same words in the same order. A file has one
    /// order for all.
    pub fn of_any_words(sink: Sink, schema: &SchemaRef) -> Table {
        let writer = StreamWriter::try_new(Parts::held(sink), schema).expect("parts in memory take any schema");
        Table { is_file: false, ..Table::begun(Encoder::Stream(writer), Vec::new()) }
    }

    fn begun(mut encoder: Encoder, mark: Vec<u8>) -> Table {
        encoder.parts().is_held = false;
        encoder.parts().complete();
        Table { encoder, mark, rows: 0, is_file: true, is_odd: false }
    }

    /// Writes `batch`, whole or not at all.
    pub fn write(&mut self, batch: &RecordBatch) {
        if self.sink().failure().is_some() || batch.num_rows() == 0 {
            return;
        }
        self.is_file &= !self.is_odd;
        self.is_odd = batch.num_rows() != FILE_ROWS;
        self.is_file &= batch.num_rows() <= FILE_ROWS;
        self.encoder.write(batch).expect("parts take every batch of the schema");
        self.encoder.parts().complete();
        if self.sink().failure().is_none() {
            self.rows += batch.num_rows() as u64;
        }
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn sink(&mut self) -> &mut Sink {
        &mut self.encoder.parts().sink
    }

    /// Ends the stream and turns it into a file. Returns what kept it from being whole, and what
    /// else the user should know.
    pub fn finish(mut self) -> (Option<String>, Option<String>) {
        self.encoder.parts().is_held = true;
        self.encoder.finish().expect("parts in memory take the end");
        let Parts { sink, waiting, .. } = self.encoder.parts();
        let (end, footer) = waiting.split_at(STREAM_END_BYTES);
        sink.append(end);
        sink.check();
        if let Some(failure) = sink.failure() {
            return (Some(failure.to_owned()), None);
        }
        let path = sink.path().to_owned();
        let ended = if self.is_file { sink.end_as(&self.mark, footer) } else { to_file_format(&path) };
        let note = ended
            .err()
            .map(|error| format!("{} remains in Arrow stream format, complete and readable: {error}", path.display()));
        (None, note)
    }
}

enum Encoder {
    /// Writes the messages of a file, which are those of a stream, and its footer.
    File(FileWriter<Parts>),
    Stream(StreamWriter<Parts>),
}

impl Encoder {
    fn parts(&mut self) -> &mut Parts {
        match self {
            Encoder::File(writer) => writer.get_mut(),
            Encoder::Stream(writer) => writer.get_mut(),
        }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Encoder::File(writer) => writer.write(batch),
            Encoder::Stream(writer) => writer.write(batch),
        }
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        match self {
            Encoder::File(writer) => writer.finish(),
            Encoder::Stream(writer) => writer.finish(),
        }
    }
}

/// Parts of the blocks of a table, on their way to its sink, which remembers failures.
struct Parts {
    sink: Sink,
    /// Short parts, which are written together.
    waiting: Vec<u8>,
    /// True if long parts wait as well.
    is_held: bool,
}

impl Parts {
    fn held(sink: Sink) -> Parts {
        Parts { sink, waiting: Vec::new(), is_held: true }
    }

    fn pass_on(&mut self) {
        self.sink.append_part(&self.waiting);
        self.waiting.clear();
    }

    /// Ends a block.
    fn complete(&mut self) {
        self.pass_on();
        self.sink.complete();
    }
}

impl Write for Parts {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.is_held || part.len() < LONG_BYTES {
            self.waiting.extend_from_slice(part);
        } else {
            self.pass_on();
            self.sink.append_part(part);
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Puts the beginning of a stream in the place of the mark of a file, in front of the file's schema message: the head
/// of a message that has the schema at its end.
fn begin_as_stream(file: &mut [u8]) {
    let (mark, schema) = file.split_at_mut(MARK_BYTES.into());
    let (continuation, rest) = schema.split_at(4);
    let number = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
    // The length of the message, and the place of its content, counted from behind its length.
    let (length, content) = (number(0), number(4));
    mark.fill(0);
    mark[..4].copy_from_slice(continuation);
    mark[4..8].copy_from_slice(&(length + u32::from(MARK_BYTES)).to_le_bytes());
    mark[8..12].copy_from_slice(&(content + u32::from(MARK_BYTES)).to_le_bytes());
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

    #[test]
    fn a_writer_killed_between_footer_and_mark_leaves_a_whole_stream() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = file(folder.path(), 1_234, &[u64::MAX]);
        let length = bytes.len();
        begin_as_stream(&mut bytes);
        let path = folder.path().join("killed.arrow");
        // With the whole footer, and with a part of it.
        for length in [length, length - 100] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            let log = ArrowLog::open(&path).unwrap();
            assert_eq!((log.torn_bytes(), log.is_final()), (0, false), "{length} bytes");
            assert_eq!(log.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1_234);
        }
    }
}
