// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Checks of the lengths and places of messages, buffers and rows in an Arrow file, against its size, before
//! anything is read by them. A damaged file would otherwise make a reader ask for all the memory there is.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use arrow_ipc::{Block, Message, MessageHeader, RecordBatch};
use arrow_schema::{DataType, Schema};

pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];
/// The end of a file: the length of the footer and the mark.
const TRAILER_BYTES: u64 = 10;
/// A row takes at least a bit of a batch's body.
const ROWS_PER_BYTE: u64 = 8;

/// Reason for which a file is refused.
pub(super) enum Refusal {
    Damaged(String),
    Unread(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Unread(error)
    }
}

fn damaged<T>(what: String) -> Result<T, Refusal> {
    Err(Refusal::Damaged(what))
}

/// Holds all that the footer of a file of `length` bytes says against its size, and each message that it
/// names against its place.
pub(super) fn check_file<R: Read + Seek>(file: &mut R, length: u64) -> Result<(), Refusal> {
    let mut trailer = [0; 4];
    file.seek(SeekFrom::Start(length.saturating_sub(TRAILER_BYTES)))?;
    file.read_exact(&mut trailer)?;
    let footer_bytes = u64::try_from(i32::from_le_bytes(trailer)).unwrap_or(u64::MAX);
    let Some(footer_at) = length.checked_sub(TRAILER_BYTES).and_then(|end| end.checked_sub(footer_bytes)) else {
        return damaged(format!("its footer is said to be longer than the file, which has {length} bytes"));
    };
    let mut footer = vec![0; footer_bytes as usize];
    file.seek(SeekFrom::Start(footer_at))?;
    file.read_exact(&mut footer)?;
    let Ok(footer) = arrow_ipc::root_as_footer(&footer) else {
        return damaged(format!("the footer at byte {footer_at} is damaged"));
    };
    let dictionaries = footer.dictionaries().into_iter().flatten().map(|block| ("dictionary", block));
    let batches = footer.recordBatches().into_iter().flatten().map(|block| ("batch", block));
    let mut room = footer_at;
    let mut head = Vec::new();
    for (index, (kind, block)) in dictionaries.chain(batches).enumerate() {
        let at = block.offset();
        let name = format!("block {} ({kind}) at byte {at}", index + 1);
        let Some((metadata, body)) = place(block, footer_at) else {
            return damaged(format!("{name} is said to end behind the data, which ends at byte {footer_at}"));
        };
        // Blocks that share their bytes would make more of a file than is in it.
        let Some(left) = room.checked_sub(metadata + body) else {
            return damaged(format!("its blocks are said to be longer than its {length} bytes together"));
        };
        room = left;
        head.resize(metadata as usize, 0);
        file.seek(SeekFrom::Start(at as u64))?;
        file.read_exact(&mut head)?;
        let skipped = if head.starts_with(&CONTINUATION) { 8 } else { 4 };
        let message = head.get(skipped..).and_then(|bytes| arrow_ipc::root_as_message(bytes).ok());
        let Some(message) = message else { return damaged(format!("the head of {name} is damaged")) };
        if let Err(what) = check_message(&message, body) {
            return damaged(format!("{name} is damaged: {what}"));
        }
    }
    Ok(())
}

/// The lengths of a block's head and body, if it lies before `end`.
fn place(block: &Block, end: u64) -> Option<(u64, u64)> {
    let from = u64::try_from(block.offset()).ok()?;
    let metadata = u64::try_from(block.metaDataLength()).ok()?;
    let body = u64::try_from(block.bodyLength()).ok()?;
    let last = from.checked_add(metadata)?.checked_add(body)?;
    (last <= end).then_some((metadata, body))
}

/// Holds what a message says of its body, of `body` bytes, against it.
pub(super) fn check_message(message: &Message<'_>, body: u64) -> Result<(), String> {
    match message.header_type() {
        MessageHeader::RecordBatch => {
            message.header_as_record_batch().map_or(Ok(()), |batch| check_batch(&batch, body))
        }
        MessageHeader::DictionaryBatch => {
            let batch = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
            batch.map_or(Ok(()), |batch| check_batch(&batch, body))
        }
        _ => Ok(()),
    }
}

fn check_batch(batch: &RecordBatch<'_>, body: u64) -> Result<(), String> {
    for (index, buffer) in batch.buffers().into_iter().flatten().enumerate() {
        let number = |value: i64| u64::try_from(value).ok();
        let end =
            number(buffer.offset()).zip(number(buffer.length())).and_then(|(from, bytes)| from.checked_add(bytes));
        if end.is_none_or(|end| end > body) {
            return Err(format!(
                "buffer {} is said to have {} bytes from byte {} on, and there are {body}",
                index + 1,
                buffer.length(),
                buffer.offset()
            ));
        }
    }
    let most = body.saturating_mul(ROWS_PER_BYTE);
    let lengths = batch.nodes().into_iter().flatten().map(|node| node.length());
    for rows in lengths.chain([batch.length()]) {
        if u64::try_from(rows).is_ok_and(|rows| rows <= most) {
            continue;
        }
        return Err(format!("it is said to have {rows} rows in {body} bytes"));
    }
    let nulls = batch.nodes().into_iter().flatten().all(|node| (0..=node.length()).contains(&node.null_count()));
    if nulls { Ok(()) } else { Err("it has more empty rows than rows".into()) }
}

/// Refuses columns of types that no log has: some of them take memory out of nothing.
pub(super) fn check_types(schema: &Schema) -> Result<(), String> {
    fn known(kind: &DataType) -> bool {
        match kind {
            DataType::List(field) => known(field.data_type()),
            DataType::Dictionary(key, value) => key.is_unsigned_integer() && **value == DataType::Utf8,
            DataType::Boolean | DataType::Utf8 | DataType::Binary | DataType::Float64 => true,
            other => other.is_integer(),
        }
    }
    match schema.fields().iter().find(|field| !known(field.data_type())) {
        None => Ok(()),
        Some(field) => {
            let kind: String = format!("{:?}", field.data_type()).chars().take(40).collect();
            Err(format!("its column `{}` has an unsupported type ({kind})", field.name()))
        }
    }
}

thread_local! {
    static SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of `work`; none if it panicked, which prints nothing. The last resort against a
/// library's panic over a damaged file.
pub(super) fn without_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !SILENT.get() {
                told(panic);
            }
        }));
    });
    SILENT.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    SILENT.set(false);
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_kept_to_itself() {
        assert_eq!(without_panic(|| 7), Some(7));
        assert_eq!(without_panic(|| -> u8 { panic!("a library's") }), None);
        assert!(!SILENT.get());
    }
}
