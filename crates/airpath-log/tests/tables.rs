// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The Arrow tables: what goes in comes out, also when the writer dies in the middle.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use airpath_core::Time;
use airpath_log::batch::InputKind;
use airpath_log::hash::hash64;
use airpath_log::read::arrow::ArrowLog;
use airpath_log::tables::events::EventBatch;
use airpath_log::tables::inputs::InputBatch;
use airpath_log::writer::WriterOptions;
use airpath_log::{Level, Overflow, Snaplen, Writer};
use common::{fate, segment};

/// Time, kind, cause, PDU, state, departure and flipped bits of every event.
type Row = (u64, String, String, u64, String, Option<u64>, Vec<u32>);

fn events(path: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in ArrowLog::open(path).unwrap() {
        for row in EventBatch::new(&batch.unwrap(), path).unwrap().rows() {
            assert!(row.hop == if row.stage == "path" { "path" } else { "radio" });
            let flips = row.flipped_bits.unwrap_or_default().to_vec();
            let words = [row.kind, row.cause, row.state].map(String::from);
            let [kind, cause, state] = words;
            rows.push((row.time_ns, kind, cause, row.pdu, state, row.emitted_ns, flips));
        }
    }
    rows
}

fn rows(path: &Path) -> usize {
    ArrowLog::open(path).unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

#[test]
fn a_finished_run_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let report = common::run(folder.path(), Level::Events, Snaplen::default(), 1_000);
    assert_eq!((report.incomplete.len(), report.notes.len(), report.packets), (0, 0, 0));
    let names: std::collections::BTreeSet<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["events.arrow".into(), "input.arrow".into()].into());

    let path = folder.path().join("events.arrow");
    let log = ArrowLog::open(&path).unwrap();
    assert!(log.is_final());
    let schema = log.schema();
    let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(
        columns,
        [
            "time_ns",
            "hop",
            "direction",
            "stage",
            "kind",
            "cause",
            "pdu",
            "flow",
            "bits",
            "queue_packets",
            "queue_bytes",
            "state",
            "emitted_ns",
            "flipped_bits",
            "kept_bytes",
            "origin",
            "user",
            "bearer"
        ]
    );
    let events = events(&path);
    assert_eq!(events.len() as u64, report.events);
    let mut seen = events.iter();
    for id in 1..=1_000u64 {
        let at = id * 1_000_000;
        let state = |at: u64| if at > 500_000_000 { "poor".to_owned() } else { "initial".to_owned() };
        let length = segment(id % 2 == 1, 0, 0, if id % 2 == 1 { 256 } else { 0 }).len();
        let mut expect = |at: u64, kind: &str, cause: &str, emitted| {
            let damaged = fate(id) == "damaged" && kind == "delivered";
            let flips = if damaged { common::flips_of(length).to_vec() } else { Vec::new() };
            assert_eq!(seen.next().unwrap(), &(at, kind.into(), cause.into(), id, state(at), emitted, flips));
        };
        expect(at, "offered", "", None);
        let due = at + 5_000_000;
        match fate(id) {
            "queue_packets" => expect(at, "dropped", "queue_packets", None),
            "channel_error" => expect(due, "dropped", "channel_error", None),
            "damaged" => {
                expect(due, "damaged", "", None);
                expect(due, "delivered", "", Some(due + 12_345));
            }
            _ => expect(due, "delivered", "", Some(due + 12_345)),
        }
    }
    assert!(seen.next().is_none());
}

#[test]
fn everything_that_drove_the_machine_reads_back_in_order() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Events, Snaplen::default(), 600);
    let path = folder.path().join("input.arrow");
    let mut kinds = Vec::new();
    let mut id = 0;
    for batch in ArrowLog::open(&path).unwrap() {
        for row in InputBatch::new(&batch.unwrap(), &path).unwrap().rows() {
            kinds.push(row.kind);
            match row.kind {
                InputKind::Offer => {
                    id += 1;
                    let up = id % 2 == 1;
                    let packet = segment(up, 1000 + id as u32, 0x18, if up { 256 } else { 0 });
                    assert_eq!((row.pdu, row.port), (Some(id), Some(u16::from(!up))));
                    assert_eq!((row.length, row.header_len), (Some(packet.len() as u32), Some(40)));
                    assert_eq!((row.class, row.ecn, row.flow), (Some(3), Some(2), Some(if up { 7 } else { 8 })));
                    assert_eq!(row.tuple(), Some(common::tuple(up)));
                    assert_eq!(row.escapes, up.then_some((id % 50) as u16));
                    assert_eq!((row.header, row.hash64), (Some(&packet[..40]), Some(hash64(&packet[40..]))));
                    assert_eq!(row.read_ns, Some(id * 1_000_000 + 30_000));
                    assert_eq!(row.kernel_ns, up.then_some(id * 1_000_000));
                    assert_eq!((row.command, row.cause, row.packets), (None, None, None));
                }
                InputKind::Command => assert_eq!(row.command, Some(r#"{"enter_state":"poor"}"#)),
                InputKind::Read => assert_eq!((row.packets, row.port), (Some(3), Some(0))),
                InputKind::Discarded => assert_eq!((row.cause, row.length), (Some("noise"), Some(48))),
                InputKind::Lost => panic!("nothing was lost"),
            }
        }
    }
    assert_eq!(id, 600);
    assert_eq!(kinds[500..503], [InputKind::Command, InputKind::Read, InputKind::Discarded]);
}

/// Waits until `done` holds; the writer is another thread.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited for a minute until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_running_log_can_be_read_and_torn_at_any_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, writer) =
        Writer::start(&common::options(folder.path(), Level::Packets, Snaplen::default())).unwrap();
    let (events, input) = (folder.path().join("events.arrow"), folder.path().join("input.arrow"));
    // Nothing but the schema.
    assert_eq!(rows(&events), 0);
    let mut sizes = Vec::new();
    for round in 1..=2usize {
        common::drive(&mut recorder, 20);
        recorder.tick(Time::from_nanos(1_000_000_000));
        wait_until("the writer has written", || rows(&input) >= 20 * round);
        wait_until("the writer has written", || rows(&events) >= 42 * round);
        sizes.push((fs::metadata(&events).unwrap().len() as usize, rows(&events)));
    }
    // The process dies here: what is on disk is all there is.
    let whole = fs::read(&events).unwrap();
    assert!(!ArrowLog::open(&events).unwrap().is_final());
    let torn = tempfile::tempdir().unwrap();
    let path = torn.path().join("events.arrow");
    for length in sizes[0].0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (complete, expected) = *sizes.iter().rev().find(|(size, _)| *size <= length).unwrap();
        let log = ArrowLog::open(&path).unwrap();
        assert_eq!(log.torn_bytes() as usize, length - complete);
        assert_eq!(log.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), expected, "of {length} bytes");
    }
    // A crash of the machine may leave zeros or garbage.
    for filler in [0u8, 0xff, 0x5a] {
        let mut damaged = whole[..sizes[0].0].to_vec();
        damaged.extend([filler; 1_000]);
        fs::write(&path, &damaged).unwrap();
        assert_eq!((rows(&path), ArrowLog::open(&path).unwrap().torn_bytes()), (sizes[0].1, 1_000));
    }
    fs::write(&path, &whole[..100]).unwrap();
    let error = ArrowLog::open(&path).err().unwrap().to_string();
    assert!(error.contains("100 bytes and no complete Arrow schema"), "{error}");
    drop(recorder);
    assert_eq!(writer.finish().incomplete, Vec::<String>::new());
}

#[test]
fn many_small_batches_become_few() {
    let folder = tempfile::tempdir().unwrap();
    let report = common::run(folder.path(), Level::Events, Snaplen::default(), 60_000);
    assert_eq!(report.incomplete, Vec::<String>::new());
    let path = folder.path().join("events.arrow");
    let batches: Vec<usize> = ArrowLog::open(&path).unwrap().map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!(batches.iter().sum::<usize>() as u64, report.events);
    assert!(batches.len() <= 3, "{batches:?}");
}

#[test]
fn without_a_clock_equal_runs_leave_equal_bytes() {
    let run = |pause: bool| {
        let folder = tempfile::tempdir().unwrap();
        let options = WriterOptions {
            overflow: Overflow::Wait,
            ..common::options(folder.path(), Level::Packets, Snaplen::default())
        };
        let (mut recorder, writer) = Writer::start(&options).unwrap();
        writer.set_start(common::START_UNIX_NS);
        // More than the writer writes at once, and longer breaks than it would wait in a live run.
        let end = common::drive_with(&mut recorder, 40_000, |id| {
            if pause && id % 15_000 == 0 {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        assert!(recorder.finish(end).is_none());
        assert_eq!(writer.finish().incomplete, Vec::<String>::new());
        ["events.arrow", "input.arrow", "client.pcapng", "server.pcapng"]
            .map(|name| fs::read(folder.path().join(name)).unwrap())
    };
    let (brisk, halting) = (run(false), run(true));
    for (one, other) in brisk.iter().zip(&halting) {
        assert!(one == other, "{} and {} bytes", one.len(), other.len());
    }
}

#[test]
fn a_log_of_an_earlier_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Events, Snaplen::default(), 10);
    let path = folder.path().join("events.arrow");
    for batch in ArrowLog::open(&path).unwrap() {
        let mut batch = batch.unwrap();
        assert!(EventBatch::new(&batch, &path).unwrap().rows().any(|row| row.flipped_bits.is_some()));
        for column in ["origin", "kept_bytes", "flipped_bits"] {
            batch.remove_column(batch.schema().index_of(column).unwrap());
        }
        let events = EventBatch::new(&batch, &path).unwrap();
        assert!(!events.is_empty() && events.rows().all(|row| row.flipped_bits.is_none()));
        assert!(events.rows().all(|row| row.origin == "user"));
    }
}

#[test]
fn below_events_nothing_is_written() {
    for level in [Level::None, Level::Counters] {
        let folder = tempfile::tempdir().unwrap();
        let report = common::run(folder.path(), level, Snaplen::default(), 10);
        assert_eq!(report, Default::default());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
