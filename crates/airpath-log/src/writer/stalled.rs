// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Tests with a disk that takes nothing for as long as it pleases.

use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use airpath_core::{Cause, Direction, Event, EventKind, Pdu, PortId, Time};

use super::sink::{Disk, Sink};
use super::{Files, Writer, WriterOptions};
use crate::batch::Lost;
use crate::read::arrow::ArrowLog;
use crate::recorder::{Offered, Packet, Recorder, RingSize};
use crate::{Level, WriterReport};

/// Longer than any test: who waits for the disk meets this.
const FOR_EVER: Duration = Duration::from_secs(60);

/// Switch that makes a disk stand still.
#[derive(Clone, Default)]
struct Stall(Arc<(Mutex<bool>, Condvar)>);

impl Stall {
    fn set(&self, stalled: bool) {
        *self.0.0.lock().unwrap() = stalled;
        self.0.1.notify_all();
    }

    fn pass(&self) -> io::Result<()> {
        let (still, moved) = self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), FOR_EVER, |still| *still).unwrap();
        drop(still);
        if moved.timed_out() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// A file on a disk that may stand still.
struct StallingFile {
    file: std::fs::File,
    stall: Stall,
}

impl Write for StallingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stall.pass()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Disk for StallingFile {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn vanished(&self) -> bool {
        false
    }

    fn overwrite(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stall.pass()?;
        self.file.write_all_at(bytes, 0)
    }
}

fn millis(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

struct Log {
    folder: tempfile::TempDir,
    stall: Stall,
    recorder: Recorder,
    writer: Writer,
}

fn log(ring: RingSize) -> Log {
    let folder = tempfile::tempdir().unwrap();
    let stall = Stall::default();
    let names = (vec!["radio".to_string()], vec!["initial".to_string()]);
    let options = WriterOptions { ring, ..WriterOptions::of_path(folder.path(), Level::Packets, names.0, names.1) };
    let start = Arc::new(AtomicU64::new(0));
    let open = |path: PathBuf| {
        let file = std::fs::File::create_new(&path).unwrap();
        Ok(Sink::over(path, Box::new(StallingFile { file, stall: stall.clone() })))
    };
    let files = Files::create(&options, start.clone(), &open).unwrap();
    let (recorder, writer) = Writer::over(files, &options, start).unwrap();
    Log { folder, stall, recorder, writer }
}

/// Records packet number `id` of 128 bytes, which comes and leaves at `at`, as the loop does.
fn carry(recorder: &mut Recorder, id: u64, at: Time) {
    let bytes = [id as u8; 128];
    let pdu = Pdu { id, len: 128, header_len: 28, arrived: at, ..Pdu::default() };
    let packet = Packet::whole(&bytes, 28);
    recorder.offered(&Offered { at, port: PortId::CLIENT, pdu: &pdu, packet, read_at: Some(at), kernel_at: Some(at) });
    let event = |kind| Event::of_path(at, Direction::Uplink, kind, Cause::None, &pdu, 0);
    recorder.events(&[event(EventKind::Offered), event(EventKind::Delivered)]);
    recorder.emitted(id, PortId::SERVER, at);
    recorder.tick(at);
}

fn rows(log: &tempfile::TempDir, name: &str) -> u64 {
    ArrowLog::open(&log.path().join(name)).unwrap().map(|batch| batch.unwrap().num_rows() as u64).sum()
}

fn written(log: Log, end: Time, packets: u64) -> WriterReport {
    assert_eq!(log.recorder.finish(end), Lost::default());
    // Only now does the disk go on: whatever waited for it would still be waiting.
    log.stall.set(false);
    let report = log.writer.finish();
    assert!(report.incomplete.is_empty(), "{report:?}");
    assert_eq!((report.events, report.inputs, report.packets), (2 * packets, packets, 2 * packets));
    assert_eq!(rows(&log.folder, "events.arrow"), 2 * packets);
    assert_eq!(rows(&log.folder, "input.arrow"), packets);
    report
}

/// Nothing here can end while the disk stands still unless the recorder waits for nobody; the disk
/// would refuse after a minute, and the log would be incomplete.
#[test]
fn a_disk_that_stands_still_holds_up_no_record_and_costs_none() {
    for packets_per_second in [100, 10_000] {
        let mut log = log(RingSize::default());
        let gap_ns = 1_000_000_000 / packets_per_second;
        // Some go to a disk that works; from then on it takes nothing for five seconds of the run.
        let (before, stalled) = (packets_per_second / 2, 5 * packets_per_second);
        let at = |id| Time::from_nanos(id * gap_ns);
        for id in 1..=before {
            carry(&mut log.recorder, id, at(id));
        }
        log.stall.set(true);
        for id in before + 1..=before + stalled {
            carry(&mut log.recorder, id, at(id));
        }
        assert_eq!(log.recorder.lost(), Lost::default());
        written(log, at(before + stalled + 1), before + stalled);
    }
}

#[test]
fn slow_records_fill_the_ring_to_its_last_batch_before_any_is_lost() {
    let ring = RingSize::within(4 * RingSize::LEAST_BYTES);
    assert!(ring.bytes() as u64 <= 4 * RingSize::LEAST_BYTES && ring.batches >= 8, "{ring:?}");
    let mut log = log(ring);
    log.stall.set(true);
    // As many inputs as a batch holds; batches are handed over at 50 ms, so that ten packets a second
    // would use up the ring within a second or two if time alone decided.
    let room = (ring.batches * ring.batch.inputs.min(ring.batch.arena_bytes / 128)) as u64;
    let packets = room * 3 / 4;
    for id in 1..=packets {
        carry(&mut log.recorder, id, millis(100 * id));
    }
    written(log, millis(100 * (packets + 1)), packets);
}

#[test]
fn what_is_more_than_the_ring_holds_is_lost_without_waiting() {
    let mut log = log(RingSize::within(RingSize::LEAST_BYTES));
    log.stall.set(true);
    let packets = 20_000 * RingSize::within(RingSize::LEAST_BYTES).batches as u64;
    for id in 1..=packets {
        carry(&mut log.recorder, id, millis(id));
    }
    let lost = log.recorder.lost();
    assert!(lost.inputs > 0 && lost.inputs < packets, "{lost:?}");
    let total = log.recorder.finish(millis(packets + 1));
    log.stall.set(false);
    let report = log.writer.finish();
    assert_eq!(report.events + total.events, 2 * packets);
}

#[test]
fn whoever_waits_long_for_the_disk_is_told_once() {
    let mut log = log(RingSize::default());
    log.stall.set(true);
    carry(&mut log.recorder, 1, millis(1));
    log.recorder.finish(millis(2));
    let mut told = 0;
    let stall = log.stall.clone();
    log.writer.finish_within(Duration::from_millis(20), || {
        told += 1;
        stall.set(false);
    });
    assert_eq!(told, 1);
}
