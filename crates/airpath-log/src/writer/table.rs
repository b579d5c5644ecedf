//! An Arrow table that grows as an IPC stream and ends as an IPC file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;

use super::sink::Sink;
use crate::folder;
use crate::read::arrow::ArrowLog;

/// How many rows a batch of the finished file has at least, except for the last.
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
            .map(|error| format!("{} stays in Arrow stream format, whole and readable: {error}", path.display()));
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
    folder::replace(path, |file: &mut File| {
        let schema = log.schema();
        let mut writer = FileWriter::try_new(BufWriter::new(file), &schema).map_err(broken)?;
        let mut waiting: Vec<RecordBatch> = Vec::new();
        let mut rows = 0;
        for batch in log {
            let batch = batch.map_err(io::Error::other)?;
            rows += batch.num_rows();
            waiting.push(batch);
            if rows >= FILE_ROWS {
                writer.write(&concat_batches(&schema, &waiting).map_err(broken)?).map_err(broken)?;
                waiting.clear();
                rows = 0;
            }
        }
        if rows > 0 {
            writer.write(&concat_batches(&schema, &waiting).map_err(broken)?).map_err(broken)?;
        }
        writer.finish().map_err(broken)?;
        writer.get_mut().flush()
    })
}
