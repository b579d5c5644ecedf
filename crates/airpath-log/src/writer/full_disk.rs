// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tests with a full disk in virtual time, where rows wait for their batch.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use airpath_core::{Cause, Direction, Event, EventKind, Pdu, PortId, Time};

use super::sink::{Disk, Sink};
use super::table::FILE_ROWS;
use super::{Files, Writer, WriterOptions};
use crate::batch::BatchSize;
use crate::read::arrow::ArrowLog;
use crate::recorder::{Offered, Overflow, Packet, Recorder, RingSize};
use crate::tables::events::EventBatch;
use crate::tables::inputs::InputBatch;
use crate::{Level, files};

/// Time between two packets: they take longer than captures wait for what belongs to one instant.
const GAP_NS: u64 = 10_000;

/// A file on a disk that has room for so many bytes.
struct LimitedFile {
    file: std::fs::File,
    room: Arc<AtomicU64>,
}

impl Write for LimitedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room.load(Ordering::Relaxed);
        let written = self.file.write(&bytes[..bytes.len().min(room as usize)])?;
        self.room.store(room - written as u64, Ordering::Relaxed);
        if written == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(written) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk for LimitedFile {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.room.fetch_add(self.file.metadata()?.len() - length, Ordering::Relaxed);
        self.file.set_len(length)
    }

    fn vanished(&self) -> bool {
        false
    }

    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, 0)
    }
}

/// The writer of a run in virtual time in `folder`, with the room for each file.
fn writer(folder: &Path, level: Level, room: impl Fn(&Path) -> Arc<AtomicU64>) -> (Recorder, Writer) {
    let ring = RingSize { batches: 4, batch: BatchSize { events: 1_024, inputs: 512, arena_bytes: 128 << 10 } };
    let options = WriterOptions {
        ring,
        overflow: Overflow::Wait,
        ..WriterOptions::of_path(folder, level, vec!["radio".into()], vec!["initial".into()])
    };
    let open = |path: PathBuf| {
        let file = std::fs::OpenOptions::new().append(true).create_new(true).open(&path).unwrap();
        Ok(Sink::over(path.clone(), Box::new(LimitedFile { file, room: room(&path) })))
    };
    let start = Arc::new(AtomicU64::new(0));
    let files = Files::create(&options, start.clone(), &open).unwrap();
    Writer::over(files, &options, start).unwrap()
}

/// Records packets of 128 bytes, one every 10 µs; each comes and leaves at once.
fn carry(recorder: &mut Recorder, packets: u64) -> Time {
    for id in 1..=packets {
        let at = Time::from_nanos(id * GAP_NS);
        let bytes = [id as u8; 128];
        let pdu = Pdu { id, len: 128, header_len: 28, arrived: at, ..Pdu::default() };
        let packet = Packet::whole(&bytes, 28);
        recorder.offered(&Offered { at, port: PortId::CLIENT, pdu: &pdu, packet, read_at: None, kernel_at: None });
        let event = |kind| Event::of_path(at, Direction::Uplink, kind, Cause::None, &pdu, 0);
        recorder.events(&[event(EventKind::Offered), event(EventKind::Delivered)]);
        recorder.emitted(id, PortId::SERVER, at);
        recorder.tick(at);
    }
    Time::from_nanos((packets + 1) * GAP_NS)
}

/// Number and greatest time of the rows that `times` finds in the batches of a table.
fn extent(path: &Path, times: impl Fn(&arrow_array::RecordBatch) -> Vec<u64>) -> (usize, u64) {
    let times: Vec<u64> = ArrowLog::open(path).unwrap().flat_map(|batch| times(&batch.unwrap())).collect();
    (times.len(), times.into_iter().max().unwrap_or(0))
}

fn extent_of_events(folder: &Path) -> (usize, u64) {
    let path = folder.join(files::EVENTS);
    extent(&path, |batch| EventBatch::new(batch, &path).unwrap().rows().map(|row| row.time_ns).collect())
}

fn extent_of_inputs(folder: &Path) -> (usize, u64) {
    let path = folder.join(files::INPUT);
    extent(&path, |batch| InputBatch::new(batch, &path).unwrap().rows().map(|row| row.time_ns).collect())
}

#[test]
fn on_a_full_disk_the_inputs_reach_as_far_as_the_events() {
    const MEBIBYTE: u64 = 1 << 20;
    let mut counts = Vec::new();
    for mebibytes in [10, 12, 14, 16, 24] {
        let folder = tempfile::tempdir().unwrap();
        let room = Arc::new(AtomicU64::new(mebibytes * MEBIBYTE));
        let (mut recorder, writer) = writer(folder.path(), Level::Events, |_| room.clone());
        let end = carry(&mut recorder, 4 * FILE_ROWS as u64 / 2 - 100);
        recorder.finish(end);
        let report = writer.finish();
        let (events, last_event_ns) = extent_of_events(folder.path());
        let (inputs, last_input_ns) = extent_of_inputs(folder.path());
        assert!(report.incomplete.iter().any(|reason| reason.contains("events.arrow")), "{report:?}");
        assert_eq!((report.events, report.inputs), (events as u64, inputs as u64));
        assert!(last_input_ns >= last_event_ns, "inputs to {last_input_ns} ns, events to {last_event_ns} ns");
        counts.push(events);
    }
    // Among them a disk that is full before the inputs would have had a batch of their file.
    assert!(counts.contains(&FILE_ROWS), "{counts:?}");
}

#[test]
fn when_one_file_cannot_be_written_the_others_get_what_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, writer) = writer(folder.path(), Level::Packets, |path| {
        let is_full = path.ends_with("client.pcapng");
        Arc::new(AtomicU64::new(if is_full { 20_000 } else { u64::MAX / 2 }))
    });
    let end = carry(&mut recorder, 10_000);
    // Tables with fewer rows than a batch, while the run lasts.
    let begun = Instant::now();
    while extent_of_events(folder.path()).0 == 0 || extent_of_inputs(folder.path()).0 == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was written in a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
    recorder.finish(end);
    let report = writer.finish();
    assert_eq!((report.events, report.inputs), (20_000, 10_000));
    assert_eq!(report.incomplete.len(), 1, "{report:?}");
    assert!(report.incomplete[0].contains("client.pcapng"), "{report:?}");
    assert!(report.notes.is_empty(), "{report:?}");
}
