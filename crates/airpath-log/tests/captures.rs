// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Captures read back, by this crate and by Wireshark.

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use airpath_core::{Cause, Damage, Direction, Event, EventKind, Pdu, PortId, Stage, Time};
use airpath_log::pcapng::Interface;
use airpath_log::read::capture::{CaptureLog, CapturedPacket};
use airpath_log::writer::WriterOptions;
use airpath_log::{Level, Offered, Overflow, Packet, Snaplen};
use common::{START_UNIX_NS, fate};

/// Directions as tshark shows them.
const INBOUND: &str = "0x00000001";
const OUTBOUND: &str = "0x00000002";

fn read(path: &std::path::Path) -> Vec<CapturedPacket> {
    CaptureLog::open(path).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_finished_capture_tells_every_fate() {
    let folder = tempfile::tempdir().unwrap();
    let report = common::run(folder.path(), Level::Packets, Snaplen::default(), 1000);
    assert_eq!((report.incomplete, report.notes), (vec![], vec![]));
    let client = read(&folder.path().join("client.pcapng"));
    let rx: Vec<_> = client.iter().filter(|packet| packet.interface == Interface::Rx).collect();
    let tx: Vec<_> = client.iter().filter(|packet| packet.interface == Interface::Tx).collect();
    assert!(client.iter().all(|packet| packet.interface != Interface::Drop));
    assert!(client.is_sorted_by_key(|packet| packet.unix_ns));
    assert_eq!((rx.len(), tx.len()), (501, 500));
    for packet in &rx {
        let Some(id) = packet.pdu else {
            assert_eq!(packet.comment.as_deref(), Some("discarded: noise"));
            continue;
        };
        assert_eq!(packet.unix_ns, START_UNIX_NS + id * 1_000_000);
        assert_eq!((packet.length, packet.bytes.len()), (296, 128));
        let expected = match fate(id) {
            "queue_packets" => Some("dropped: queue_packets at radio after 0.000000000 s"),
            "channel_error" => Some("dropped: channel_error at radio after 0.005000000 s"),
            _ => None,
        };
        assert_eq!(packet.comment.as_deref(), expected);
    }
    let server = read(&folder.path().join("server.pcapng"));
    let damaged: Vec<_> = server.iter().filter(|packet| packet.comment.is_some()).collect();
    assert_eq!(damaged.len(), 100);
    for packet in damaged {
        assert_eq!(packet.interface, Interface::Tx);
        assert_eq!(packet.comment.as_deref(), Some("damaged: 3 bits flipped"));
        assert_eq!(packet.unix_ns, START_UNIX_NS + packet.pdu.unwrap() * 1_000_000 + 5_012_345);
    }
}

/// A live run marks drops while it lasts, and rewrites its captures at its end; without a clock a packet waits for its
/// fate.
#[test]
fn a_capture_does_not_show_when_it_was_written() {
    let captures = |overflow| {
        let folder = tempfile::tempdir().unwrap();
        let options = WriterOptions { overflow, ..common::options(folder.path(), Level::Packets, Snaplen::default()) };
        let (mut recorder, writer) = airpath_log::Writer::start(&options).unwrap();
        writer.set_start(START_UNIX_NS);
        let end = common::drive_with(&mut recorder, 40_000, |id| {
            if id % 4_000 == 0 {
                // What a live run could not write it would lose.
                std::thread::sleep(Duration::from_millis(if overflow == Overflow::Lose { 50 } else { 0 }));
            }
        });
        assert!(recorder.finish(end).is_none());
        let report = writer.finish();
        assert_eq!((report.incomplete, report.notes), (vec![], vec![]));
        ["client.pcapng", "server.pcapng"].map(|name| std::fs::read(folder.path().join(name)).unwrap())
    };
    let [live, virtually] = [Overflow::Lose, Overflow::Wait].map(captures);
    assert!(live == virtually, "{:?} and {:?} bytes", live.map(|file| file.len()), virtually.map(|file| file.len()));
}

/// The captures that wait for the fate of a packet are bounded: the rest is written, and rewritten once it is known.
#[test]
fn a_packet_that_stays_in_the_link_does_not_hold_up_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        WriterOptions { overflow: Overflow::Wait, ..common::options(folder.path(), Level::Packets, Snaplen::Full) };
    let (mut recorder, writer) = airpath_log::Writer::start(&options).unwrap();
    writer.set_start(START_UNIX_NS);
    let bytes = common::segment(true, 1, 0x18, 1_400);
    let pdu = |id| Pdu { id, len: bytes.len() as u32, header_len: 40, ..Pdu::default() };
    let at = |id: u64| Time::from_nanos(id * 1_000_000);
    let (first, packet) = (pdu(1), Packet::whole(&bytes, 40));
    recorder.offered(&Offered { at: at(1), port: PortId::CLIENT, pdu: &first, packet, read_at: None, kernel_at: None });
    // With both captures 45 MB.
    for id in 2..=16_000 {
        common::carry(&mut recorder, at(id), PortId::CLIENT, &pdu(id), &bytes);
    }
    let path = folder.path().join("client.pcapng");
    let begin = Instant::now();
    while std::fs::metadata(&path).unwrap().len() < 10_000_000 {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing was written in a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (stage, kind) = (Stage::Channel, EventKind::Dropped);
    let end = 16_001_000_000;
    recorder.events(&[common::event(end, &first, Direction::Uplink, 0, stage, kind, Cause::ChannelError)]);
    assert!(recorder.finish(Time::from_nanos(end)).is_none());
    let report = writer.finish();
    assert_eq!((report.incomplete, report.notes), (vec![], vec![]));
    let packets = read(&path);
    assert_eq!(packets.len(), 16_000);
    assert!(packets.is_sorted_by_key(|packet| packet.unix_ns));
    for packet in packets {
        let id = packet.pdu.unwrap();
        let expected = match id {
            1 => Some("dropped: channel_error at radio after 16.000000000 s"),
            _ => id.is_multiple_of(10).then_some("dropped: channel_error at radio after 0.005000000 s"),
        };
        assert_eq!((packet.interface, packet.comment.as_deref()), (Interface::Rx, expected));
    }
}

#[test]
fn wireshark_reads_what_is_written() {
    let tshark = |path: &std::path::Path, arguments: &[&str]| common::tshark(path).args(arguments).output();
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed (Debian: apt-get install tshark)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Packets, Snaplen::Full, 100);
    let fields = [
        "-o",
        "tcp.check_checksum:TRUE",
        "-T",
        "fields",
        "-e",
        "frame.packet_flags_direction",
        "-e",
        "frame.packet_id",
        "-e",
        "frame.comment",
        "-e",
        "frame.time_epoch",
        "-e",
        "frame.len",
        "-e",
        "tcp.checksum.status",
    ];
    let output = tshark(&folder.path().join("server.pcapng"), &fields).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 80, "{text}{errors}");
    for line in &lines {
        let id: u64 = line[1].parse().unwrap();
        let (comment, good) = match (line[0], fate(id)) {
            (OUTBOUND, "damaged") => ("damaged: 3 bits flipped", "0"),
            (OUTBOUND, "delivered") => ("", "1"),
            (INBOUND, "delivered") => ("", "1"),
            other => panic!("{other:?}"),
        };
        assert_eq!((line[2], line[5]), (comment, good), "{line:?}");
        let at = id * 1_000_000 + if line[0] == OUTBOUND { 5_012_345 } else { 0 };
        let stamp = START_UNIX_NS + at;
        assert_eq!(line[3], format!("{}.{:09}", stamp / 1_000_000_000, stamp % 1_000_000_000));
    }
    let client = tshark(&folder.path().join("client.pcapng"), &["-Y", "frame.comment contains \"channel_error\""]);
    assert_eq!(String::from_utf8(client.unwrap().stdout).unwrap().lines().count(), 10);
}

#[test]
fn tcpdump_reads_what_is_written() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        eprintln!("skipped: tcpdump is not installed (Debian: apt-get install tcpdump)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Packets, Snaplen::default(), 100);
    for name in ["client.pcapng", "server.pcapng"] {
        let path = folder.path().join(name);
        // In nanoseconds since 1970, and with no reverse look-ups.
        let output = Command::new("tcpdump").args(["--nano", "-tt", "-n", "-r"]).arg(&path).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}: {errors}");
        let text = String::from_utf8(output.stdout).unwrap();
        let shown: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        let stamps: Vec<String> = read(&path)
            .iter()
            .map(|packet| format!("{}.{:09}", packet.unix_ns / 1_000_000_000, packet.unix_ns % 1_000_000_000))
            .collect();
        assert!(stamps.len() >= 80, "{name}");
        assert_eq!(shown, stamps, "{name}: {errors}");
    }
}

#[test]
fn a_capture_with_an_interface_for_each_point_is_still_read() {
    let block = |kind: u32, body: &[u8]| {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    // Section, byte order, version 1.0, no length.
    let mut file = block(0x0a0d_0d0a, b"\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
    // Raw IP, no limit, the interface's name, nanoseconds.
    for name in [b"\x02\0\x02\0rx\0\0", b"\x02\0\x02\0tx\0\0"] {
        file.extend(block(1, &[&b"\x65\0\0\0\0\0\0\0"[..], name, b"\x09\0\x01\0\x09\0\0\0\0\0\0\0"].concat()));
    }
    for interface in 0..2u32 {
        let numbers = [interface, 0, 1_000 + interface, 4, 20].map(u32::to_le_bytes).concat();
        let id = [b"\x05\0\x08\0\x07\0\0\0", &[0; 8][..]].concat();
        file.extend(block(6, &[&numbers[..], b"\x45\0\0\x14", &id].concat()));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("client.pcapng");
    std::fs::write(&path, file).unwrap();
    let packets = read(&path);
    let seen: Vec<_> = packets.iter().map(|packet| (packet.interface, packet.unix_ns, packet.pdu)).collect();
    assert_eq!(seen, [(Interface::Rx, 1_000, Some(7)), (Interface::Tx, 1_001, Some(7))]);
}

#[test]
fn a_capture_that_was_cut_off_or_damaged_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    common::run(folder.path(), Level::Packets, Snaplen::default(), 8);
    let path = folder.path().join("client.pcapng");
    assert_eq!(CaptureLog::check(&path).unwrap(), 0);
    let whole = std::fs::read(&path).unwrap();
    // All but the last byte of the last block is left out with it.
    let last = u32::from_le_bytes(whole[whole.len() - 4..].try_into().unwrap());
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(CaptureLog::check(&path).unwrap(), u64::from(last) - 1);
    // A block whose two lengths differ ends what can be trusted.
    let mut damaged = whole.clone();
    let end = whole.len() - 4;
    damaged[end] ^= 4;
    std::fs::write(&path, &damaged).unwrap();
    assert_eq!(CaptureLog::check(&path).unwrap(), u64::from(last));
}

/// Each copy of a packet that leaves is in the capture, with the damage that it has; what became of the packet
/// is that one of them arrived.
#[test]
fn copies_are_packets_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (mut recorder, writer) =
        airpath_log::Writer::start(&common::options(folder.path(), Level::Packets, Snaplen::Full)).unwrap();
    writer.set_start(START_UNIX_NS);
    let bytes = common::segment(true, 1, 0x18, 100);
    let pdu = Pdu { id: 1, len: bytes.len() as u32, header_len: 40, ..Pdu::default() };
    let packet = Packet::whole(&bytes, 40);
    let at = |milliseconds: u64| Time::from_nanos(milliseconds * 1_000_000);
    recorder.offered(&Offered { at: at(1), port: PortId::CLIENT, pdu: &pdu, packet, read_at: None, kernel_at: None });
    let event = |milliseconds: u64, hop, kind, cause| {
        common::event(milliseconds * 1_000_000, &pdu, Direction::Uplink, hop, Stage::Receive, kind, cause)
    };
    let path = Event::WHOLE_PATH;
    recorder.events(&[
        event(1, path, EventKind::Offered, Cause::None),
        event(5, 0, EventKind::Duplicated, Cause::None),
        event(5, 0, EventKind::Duplicated, Cause::None),
        event(5, path, EventKind::Delivered, Cause::None),
        event(6, path, EventKind::Delivered, Cause::None),
        event(7, 0, EventKind::Dropped, Cause::ChannelError),
    ]);
    recorder.emitted(1, PortId::SERVER, at(5));
    let mut damaged = bytes.clone();
    damaged[139] ^= 1;
    recorder.emitted_changed(
        1,
        PortId::SERVER,
        at(6),
        Packet::whole(&damaged, 40),
        &Damage { flips: vec![1119], ..Damage::default() },
    );
    assert!(recorder.finish(at(9)).is_none());
    assert!(writer.finish().incomplete.is_empty());
    let left: Vec<_> = read(&folder.path().join("server.pcapng"));
    let seen: Vec<_> =
        left.iter().map(|packet| (packet.unix_ns - START_UNIX_NS, packet.pdu, packet.comment.as_deref())).collect();
    assert_eq!(seen, [(5_000_000, Some(1), None), (6_000_000, Some(1), Some("damaged: 1 bits flipped"))]);
    assert_eq!((&left[0].bytes, &left[1].bytes), (&bytes, &damaged));
}
