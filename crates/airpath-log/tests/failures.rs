// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Full disks, vanished folders and writers that cannot keep up: the run goes on, and says so.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use airpath_log::batch::{BatchSize, InputKind};
use airpath_log::manifest::{LogResults, Manifest, Status};
use airpath_log::read::arrow::ArrowLog;
use airpath_log::read::capture::CaptureLog;
use airpath_log::tables::inputs::InputBatch;
use airpath_log::writer::WriterOptions;
use airpath_log::{Level, RingSize, Snaplen, Writer};

/// A small file system of its own, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(kibibytes: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kibibytes}k");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(SmallDisk(folder)),
            _ => None,
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn rows(path: &Path) -> u64 {
    ArrowLog::open(path).unwrap().map(|batch| batch.unwrap().num_rows() as u64).sum()
}

#[test]
fn a_full_disk_leaves_a_readable_log_and_a_manifest() {
    let Some(disk) = SmallDisk::new(512) else {
        eprintln!("skipped: mounting a small file system needs root");
        return;
    };
    let folder = disk.0.path();
    let mut manifest = Manifest::new(Level::Packets, Snaplen::Full);
    manifest.write(folder).unwrap();
    let report = common::run(folder, Level::Packets, Snaplen::Full, 20_000);
    assert!(!report.incomplete.is_empty());
    for reason in &report.incomplete {
        assert!(reason.contains(&folder.display().to_string()), "{reason}");
        assert!(reason.contains("No space left") && reason.contains("free space there"), "{reason}");
    }
    assert_eq!(rows(&folder.join("events.arrow")), report.events);
    assert_eq!(rows(&folder.join("input.arrow")), report.inputs);
    for name in ["client.pcapng", "server.pcapng"] {
        let mut capture = CaptureLog::open(&folder.join(name)).unwrap();
        assert!(capture.by_ref().all(|packet| packet.is_ok()));
        assert_eq!(capture.torn_bytes(), 0);
    }
    // Whatever room is left is taken, so that nothing but the reserve can hold the last manifest.
    let _ = fs::write(folder.join("filler"), vec![0; 1 << 20]);
    manifest.status = Status::Finished;
    manifest.scenario_toml = "x".repeat(8_000);
    manifest.write(folder).unwrap();
    assert_eq!(Manifest::read(folder).unwrap(), manifest);
    let left_behind = fs::read_dir(folder).unwrap().any(|entry| {
        let name = entry.unwrap().file_name();
        name.to_string_lossy().ends_with(".new")
    });
    assert!(!left_behind, "a temporary file stayed");
}

#[test]
fn a_vanished_folder_is_told_and_does_no_harm() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("run");
    airpath_log::folder::create(&folder).unwrap();
    let (mut recorder, writer) = Writer::start(&common::options(&folder, Level::Packets, Snaplen::default())).unwrap();
    common::drive(&mut recorder, 100);
    fs::remove_dir_all(&folder).unwrap();
    let end = common::drive(&mut recorder, 100);
    recorder.finish(end);
    let report = writer.finish();
    assert_eq!(report.incomplete.len(), 4, "{report:?}");
    assert!(report.incomplete.iter().all(|reason| reason.contains("removed during the run")), "{report:?}");
    assert!(!folder.exists());
    let error = Manifest::new(Level::Events, Snaplen::default()).write(&folder).unwrap_err().to_string();
    assert!(error.contains("that the directory exists"), "{error}");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_run() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("run");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::File::create(folder.join("probe")).is_ok() {
        eprintln!("skipped in part: root may write anywhere");
        fs::remove_file(folder.join("probe")).unwrap();
    } else {
        let error = airpath_log::folder::create(&folder).unwrap_err().to_string();
        assert!(error.contains("a writable directory with --out"), "{error}");
    }
    let error = airpath_log::folder::create(Path::new("/proc/airpath-run")).unwrap_err().to_string();
    assert!(error.contains("/proc/airpath-run"), "{error}");
    // Files that are there already are never written over.
    let mine = base.path().join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("events.arrow"), "mine").unwrap();
    let error = Writer::start(&common::options(&mine, Level::Events, Snaplen::default())).unwrap_err().to_string();
    assert!(error.contains("events.arrow"), "{error}");
    assert_eq!(fs::read(mine.join("events.arrow")).unwrap(), b"mine");
}

#[test]
fn what_the_ring_cannot_hold_is_counted_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let ring = RingSize { batches: 2, batch: BatchSize { events: 16, inputs: 8, arena_bytes: 1 << 10 } };
    let options = WriterOptions { ring, ..common::options(folder.path(), Level::Events, Snaplen::default()) };
    let (mut recorder, writer) = Writer::start(&options).unwrap();
    let end = common::drive(&mut recorder, 20_000);
    let lost = recorder.finish(end);
    let report = writer.finish();
    assert!(!lost.is_none(), "a ring of 16 events kept up with a loop that never sleeps");
    let path = folder.path().join("input.arrow");
    let mut told = airpath_log::Lost::default();
    let (mut inputs, mut marks) = (0, 0);
    for batch in ArrowLog::open(&path).unwrap() {
        for row in InputBatch::new(&batch.unwrap(), &path).unwrap().rows() {
            if row.kind == InputKind::Lost {
                let part: airpath_log::Lost = serde_json::from_str(row.command.unwrap()).unwrap();
                told.events += part.events;
                told.inputs += part.inputs;
                marks += 1;
            } else {
                inputs += 1;
            }
        }
    }
    assert!(marks > 0);
    assert_eq!(told, lost);
    assert_eq!(inputs + lost.inputs, 20_003);
    assert_eq!(report.events + lost.events, 20_000 * 22 / 10 - 20_000 / 10);
    let results = LogResults::new(lost, report);
    assert!(!results.complete && results.files.incomplete[0].contains("were lost because the "));
}
