// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Arrow IPC as a file or as a stream, also one whose writer died in the middle.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::claims::{self, CONTINUATION, Refusal, check_types, without_panic};
use crate::error::LogError;
use crate::place;

const FILE_MAGIC: &[u8; 6] = b"ARROW1";
/// Advice for a damaged file.
const DAMAGED: &str = "the file is damaged: copy it again from its source, or record the run again";
/// No header of a message that this crate writes comes near this size.
const MAX_METADATA_BYTES: u64 = 64 << 20;

/// A table of a run's folder, batch by batch.
pub struct ArrowLog {
    path: PathBuf,
    source: Source,
    torn_bytes: u64,
    /// Number of batches read.
    batches: u64,
    /// A batch could not be read; those behind it are not read.
    failed: bool,
}

enum Source {
    File(FileReader<BufReader<File>>),
    Stream(StreamReader<Take<BufReader<File>>>),
}

impl ArrowLog {
    /// Opens the table at `path` in either format. The tail of a stream that was being written when
    /// its writer died is left out; see [`ArrowLog::torn_bytes`].
    ///
    /// # Errors
    /// When the file is missing, is no Arrow data, or ends before its schema does.
    pub fn open(path: &Path) -> Result<ArrowLog, LogError> {
        let io = |source| LogError::io(LogError::READ, path, source);
        let mut file = place::open_regular(path).map_err(io)?;
        if begins_as_file(&mut file).map_err(io)? {
            return ArrowLog::open_file(path, file);
        }
        let mut again = file.try_clone().map_err(io)?;
        match ArrowLog::open_stream(path, file) {
            // Its writer has turned it into a file meanwhile.
            Err(_) if begins_as_file(&mut again).map_err(io)? => ArrowLog::open_file(path, again),
            opened => opened,
        }
    }

    fn open_file(path: &Path, mut file: File) -> Result<ArrowLog, LogError> {
        let io = |source| LogError::io(LogError::READ, path, source);
        let length = file.metadata().map_err(io)?.len();
        if !ends_with_magic(&mut file).map_err(io)? {
            let hint = "the file is truncated: copy it again from its source, or record the run again";
            return Err(LogError::content(path, "it is truncated", hint));
        }
        claims::check_file(&mut BufReader::new(&file), length).map_err(|refusal| refused(path, refusal))?;
        file.rewind().map_err(io)?;
        let opened = without_panic(|| FileReader::try_new(BufReader::new(file), None));
        ArrowLog::opened(path, opened.map(|reader| reader.map(Source::File)), 0)
    }

    fn open_stream(path: &Path, mut file: File) -> Result<ArrowLog, LogError> {
        let io = |source| LogError::io(LogError::READ, path, source);
        let length = file.metadata().map_err(io)?.len();
        let whole = whole_messages(&mut BufReader::new(&file), length).map_err(|refusal| refused(path, refusal))?;
        if length == 0 {
            let hint =
                "the run was killed before its first record, or the copy is not whole: record it, or copy it again";
            return Err(LogError::content(path, "it is empty", hint));
        }
        if whole.bytes == 0 {
            return Err(LogError::content(
                path,
                format!("it holds {length} bytes and no complete Arrow schema"),
                "the run ended before the first record: record it again",
            ));
        }
        file.rewind().map_err(io)?;
        let opened = without_panic(|| StreamReader::try_new(BufReader::new(file).take(whole.bytes), None));
        // Behind the end of a stream lies nothing, or the footer of a file whose writer was killed before its mark.
        let torn_bytes = if whole.is_ended { 0 } else { length - whole.bytes };
        ArrowLog::opened(path, opened.map(|reader| reader.map(Source::Stream)), torn_bytes)
    }

    fn opened(path: &Path, source: Option<Result<Source, ArrowError>>, torn_bytes: u64) -> Result<ArrowLog, LogError> {
        let damaged = |what: String| LogError::content(path, what, DAMAGED);
        let source = source
            .ok_or_else(|| damaged("its schema is inconsistent".into()))?
            .map_err(|error| damaged(error.to_string()))?;
        let log = ArrowLog { path: path.to_owned(), source, torn_bytes, batches: 0, failed: false };
        check_types(&log.schema()).map_err(damaged)?;
        Ok(log)
    }

    /// The table's columns.
    pub fn schema(&self) -> SchemaRef {
        match &self.source {
            Source::File(reader) => reader.schema(),
            Source::Stream(reader) => reader.schema(),
        }
    }

    /// Number of bytes at the end that were an incomplete batch and are left out.
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// True if the run ended well enough for the table to be in its final format.
    pub fn is_final(&self) -> bool {
        matches!(self.source, Source::File(_))
    }
}

impl Iterator for ArrowLog {
    type Item = Result<RecordBatch, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let source = &mut self.source;
        let next = without_panic(|| match source {
            Source::File(reader) => reader.next(),
            Source::Stream(reader) => reader.next(),
        });
        self.batches += 1;
        let what = match next {
            None => "it is inconsistent".into(),
            Some(None) => return None,
            Some(Some(Ok(batch))) => return Some(Ok(batch)),
            Some(Some(Err(error))) => error.to_string(),
        };
        self.failed = true;
        Some(Err(LogError::content(&self.path, format!("batch {} is damaged: {what}", self.batches), DAMAGED)))
    }
}

fn refused(path: &Path, refusal: Refusal) -> LogError {
    match refusal {
        Refusal::Damaged(what) => LogError::content(path, what, DAMAGED),
        Refusal::Unread(error) => LogError::io(LogError::READ, path, error),
    }
}

/// True if a file begins as an Arrow file does.
fn begins_as_file(file: &mut File) -> io::Result<bool> {
    let mut magic = [0; FILE_MAGIC.len()];
    file.rewind()?;
    match file.read_exact(&mut magic) {
        Ok(()) => Ok(&magic == FILE_MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// True if a file that begins as an Arrow file does ends as one, too.
fn ends_with_magic(file: &mut File) -> io::Result<bool> {
    let mut last = [0; FILE_MAGIC.len()];
    // The mark at the beginning, padded to 8 bytes, is not the one at the end.
    if file.metadata()?.len() < (8 + last.len()) as u64 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-(last.len() as i64)))?;
    file.read_exact(&mut last)?;
    Ok(&last == FILE_MAGIC)
}

/// The leading part of a stream that consists of whole messages.
struct Whole {
    bytes: u64,
    /// True if the mark of the stream's end is the last of them.
    is_ended: bool,
}

/// Measures the whole messages at the beginning of a stream of `length` bytes.
fn whole_messages<R: Read + Seek>(stream: &mut R, length: u64) -> Result<Whole, Refusal> {
    let until = |bytes| Whole { bytes, is_ended: false };
    let mut whole = 0;
    let mut metadata = Vec::new();
    loop {
        let left = length - whole;
        let mut head = [0; 8];
        if left < 8 {
            return Ok(until(whole));
        }
        stream.seek(SeekFrom::Start(whole))?;
        stream.read_exact(&mut head)?;
        // Every message starts with this mark; blocks of zeros, as a crash leaves them, do not.
        if head[..4] != CONTINUATION {
            return Ok(until(whole));
        }
        let metadata_len = u64::from(u32::from_le_bytes(head[4..].try_into().expect("four bytes")));
        if metadata_len == 0 {
            return Ok(Whole { bytes: whole + 8, is_ended: true });
        }
        if metadata_len > left - 8 || metadata_len > MAX_METADATA_BYTES {
            return Ok(until(whole));
        }
        metadata.resize(metadata_len as usize, 0);
        stream.read_exact(&mut metadata)?;
        let Ok(message) = arrow_ipc::root_as_message(&metadata) else { return Ok(until(whole)) };
        let Ok(body) = u64::try_from(message.bodyLength()) else { return Ok(until(whole)) };
        if body > left - 8 - metadata_len {
            return Ok(until(whole));
        }
        if let Err(what) = claims::check_message(&message, body) {
            return Err(Refusal::Damaged(format!("the message at byte {whole} is damaged: {what}")));
        }
        whole += 8 + metadata_len + body;
    }
}
