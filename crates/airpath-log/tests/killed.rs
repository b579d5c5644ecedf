// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A recording process that is killed: what it had recorded half a second before can be read.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use airpath_core::{Pdu, PortId, Time};
use airpath_log::pcapng::Interface;
use airpath_log::read::arrow::ArrowLog;
use airpath_log::read::capture::CaptureLog;
use airpath_log::render::{Filter, tcpdump};
use airpath_log::tables::events::EventBatch;
use airpath_log::tables::inputs::InputBatch;
use airpath_log::writer::WriterOptions;
use airpath_log::{Level, Overflow, Snaplen, Writer};

const FOLDER: &str = "AIRPATH_TEST_RECORD_INTO";
/// The same for a recording in virtual time.
const VIRTUAL_FOLDER: &str = "AIRPATH_TEST_SIMULATE_INTO";

/// The last time in the event log.
fn last_event(path: &Path) -> Option<u64> {
    let mut last = None;
    for batch in ArrowLog::open(path).ok()? {
        last = EventBatch::new(&batch.ok()?, path).ok()?.rows().map(|row| row.time_ns).max().max(last);
    }
    last
}

/// The last time in the input log.
fn last_input(path: &Path) -> Option<u64> {
    let mut last = None;
    for batch in ArrowLog::open(path).ok()? {
        last = InputBatch::new(&batch.ok()?, path).ok()?.rows().map(|row| row.time_ns).max().max(last);
    }
    last
}

/// Not a test of its own: what the child process of the next one does, until it is killed.
#[test]
fn record_until_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let options = common::options(Path::new(&folder), Level::Packets, Snaplen::default());
    let (mut recorder, writer) = Writer::start(&options).unwrap();
    writer.set_start(common::START_UNIX_NS);
    let begin = Instant::now();
    let now = || Time::from_nanos(begin.elapsed().as_nanos() as u64);
    let mut id = 0;
    // Bounded, should nobody come to kill it.
    while begin.elapsed() < Duration::from_secs(120) {
        id += 1;
        let bytes = common::segment(true, id as u32 * 256, 0x18, 256);
        let pdu = Pdu { id, len: bytes.len() as u32, header_len: 40, ..Pdu::default() };
        common::carry(&mut recorder, now(), PortId::CLIENT, &pdu, &bytes);
        recorder.tick(now());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Not a test of its own, as the one before: it records without a pause, and then waits.
#[test]
fn simulate_until_killed() {
    let Some(folder) = std::env::var_os(VIRTUAL_FOLDER) else { return };
    let options = common::options(Path::new(&folder), Level::Events, Snaplen::default());
    let (mut recorder, _writer) = Writer::start(&WriterOptions { overflow: Overflow::Wait, ..options }).unwrap();
    common::drive(&mut recorder, 40_000);
    std::thread::sleep(Duration::from_secs(120));
}

#[test]
fn the_inputs_of_a_killed_run_in_virtual_time_reach_as_far_as_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "simulate_until_killed"])
        .env(VIRTUAL_FOLDER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let path = folder.path().join("events.arrow");
    let begin = Instant::now();
    while last_event(&path).is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing was written in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let (events, inputs) = (last_event(&path), last_input(&folder.path().join("input.arrow")));
    // An event may come some milliseconds after the input that it follows from.
    assert!(inputs.unwrap() + 10_000_000 >= events.unwrap(), "inputs to {inputs:?} ns, events to {events:?} ns");
}

#[test]
fn a_killed_run_leaves_a_readable_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "record_until_killed"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let path = folder.path().join("events.arrow");
    let begin = Instant::now();
    while last_event(&path).is_none_or(|last| last < 1_500_000_000) {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing was written in a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));

    let log = ArrowLog::open(&path).unwrap();
    assert!(!log.is_final());
    let mut shown = Vec::new();
    let rendered = tcpdump(folder.path(), &Filter::default(), &mut shown).unwrap();
    assert!(rendered.lines > 10);
    let mut capture = CaptureLog::open(&folder.path().join("client.pcapng")).unwrap();
    let packets: Vec<_> = capture.by_ref().map(Result::unwrap).collect();
    let drops: Vec<_> = packets.iter().filter(|packet| packet.interface == Interface::Drop).collect();
    assert!(!drops.is_empty());
    for drop in drops {
        assert_eq!((drop.bytes.len(), drop.length), (20, 296), "no more than the IP header");
        assert_eq!(drop.comment.as_deref(), Some("dropped: channel_error at radio after 0.005000000 s"));
        let entered = packets.iter().find(|packet| packet.interface == Interface::Rx && packet.pdu == drop.pdu);
        assert_eq!(entered.unwrap().unix_ns + 5_000_000, drop.unix_ns);
    }
    match common::tshark(&folder.path().join("client.pcapng")).output() {
        Err(_) => eprintln!("skipped in part: tshark is not installed (Debian: apt-get install tshark)"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text.lines().count(), packets.len(), "{text}");
            assert!(!text.contains("Retransmission"), "a mark of a drop passes for a retransmission: {text}");
        }
    }
}
