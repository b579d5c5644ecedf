// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Captures of frames with their Ethernet headers, as a gateway has them.

mod common;

use std::path::Path;
use std::process::Command;

use airpath_core::{Cause, Damage, Direction, Event, EventKind, Pdu, PortId, Stage, Time};
use airpath_log::pcapng::Interface;
use airpath_log::read::capture::{CaptureLog, CapturedPacket};
use airpath_log::writer::WriterOptions;
use airpath_log::{Level, Offered, Packet, Recorder, Snaplen, Writer};

/// Header of a frame of IPv4 in VLAN 7.
const TAGGED: [u8; 18] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0, 7, 8, 0];
/// Header of a frame of ARP, and a request (RFC 826).
const ARP: [u8; 14] = [255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6];
const REQUEST: [u8; 28] = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 9];

fn offer(recorder: &mut Recorder, at: u64, id: u64, packet: Packet<'_>, length: usize) -> Pdu {
    let header_len = packet.header.len() as u16;
    let pdu = Pdu { id, len: length as u32, header_len, arrived: Time::from_nanos(at), ..Pdu::default() };
    let at = Time::from_nanos(at);
    recorder.offered(&Offered { at, port: PortId::CLIENT, pdu: &pdu, packet, read_at: None, kernel_at: None });
    pdu
}

/// Records an ARP request that is delivered, and three tagged packets: delivered, damaged, lost; and one discarded.
fn record(folder: &Path, snaplen: Snaplen) -> Vec<u8> {
    let options = WriterOptions { link_headers: true, ..common::options(folder, Level::Packets, snaplen) };
    let (mut recorder, writer) = Writer::start(&options).unwrap();
    writer.set_start(common::START_UNIX_NS);
    let segment = common::segment(true, 1, 0x18, 300);
    let tagged = Packet::whole(&segment, 40).behind(&TAGGED);
    let (up, path) = (Direction::Uplink, Event::WHOLE_PATH);
    let delivered = |at, pdu: &Pdu| common::event(at, pdu, up, path, Stage::Path, EventKind::Delivered, Cause::None);
    let pdu = offer(&mut recorder, 1_000, 1, Packet::whole(&REQUEST, 0).behind(&ARP), REQUEST.len());
    recorder.events(&[delivered(2_000, &pdu)]);
    recorder.emitted(1, PortId::SERVER, Time::from_nanos(2_000));
    let pdu = offer(&mut recorder, 3_000, 2, tagged, segment.len());
    recorder.events(&[delivered(4_000, &pdu)]);
    recorder.emitted(2, PortId::SERVER, Time::from_nanos(4_000));
    let pdu = offer(&mut recorder, 5_000, 3, tagged, segment.len());
    recorder.events(&[delivered(6_000, &pdu)]);
    let damage = Damage { flips: common::flips_of(segment.len()).to_vec(), truncated_to: None };
    let mut other = segment.clone();
    damage.apply(&mut other);
    recorder.emitted_changed(3, PortId::SERVER, Time::from_nanos(6_000), Packet::whole(&other, 40), &damage);
    let pdu = offer(&mut recorder, 7_000, 4, tagged, segment.len());
    recorder.events(&[common::event(8_000, &pdu, up, 0, Stage::Channel, EventKind::Dropped, Cause::ChannelError)]);
    recorder.discarded(Time::from_nanos(9_000), PortId::CLIENT, Cause::Malformed, tagged);
    recorder.finish(Time::from_nanos(10_000));
    assert_eq!(writer.finish().incomplete, Vec::<String>::new());
    segment
}

fn read(folder: &Path, port: &str) -> Vec<CapturedPacket> {
    CaptureLog::open(&folder.join(port)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn link_headers_are_before_packets_and_in_their_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let segment = record(folder.path(), Snaplen::Full);
    let client = read(folder.path(), "client.pcapng");
    assert_eq!(client[0].bytes, [&ARP[..], &REQUEST].concat());
    assert_eq!(client[0].packet(), REQUEST);
    for packet in &client[1..] {
        assert_eq!(packet.bytes, [&TAGGED[..], &segment].concat());
        assert_eq!((packet.length as usize, packet.packet()), (18 + segment.len(), &segment[..]));
    }
    let comments: Vec<_> = client.iter().map(|packet| packet.comment.as_deref().unwrap_or("")).collect();
    let dropped = "dropped: channel_error at radio after 0.000001000 s";
    assert_eq!(comments, ["", "", "", dropped, "discarded: malformed"]);
    let server = read(folder.path(), "server.pcapng");
    assert!(server.iter().all(|packet| packet.interface == Interface::Tx));
    assert_eq!(server.iter().map(|packet| packet.link_bytes).collect::<Vec<_>>(), [14, 18, 18]);
    let damaged = &server[2];
    assert_eq!((&damaged.bytes[..18], damaged.length as usize), (&TAGGED[..], 18 + segment.len()));
    assert!(damaged.packet() != segment && damaged.comment.as_deref() == Some("damaged: 3 bits flipped"));
}

#[test]
fn a_limit_counts_link_headers_and_may_lie_within_one() {
    for (limit, kept) in [(64, [18, 46]), (16, [16, 0])] {
        let folder = tempfile::tempdir().unwrap();
        record(folder.path(), Snaplen::Bytes(limit));
        for packet in read(folder.path(), "server.pcapng").iter().skip(1) {
            assert_eq!([packet.link_bytes, packet.packet().len()], kept);
        }
    }
}

#[test]
fn wireshark_shows_tags_and_arp() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed (Debian: apt-get install tshark)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), Snaplen::default());
    let fields = ["-T", "fields", "-e", "vlan.id", "-e", "arp.dst.proto_ipv4", "-e", "tcp.dstport"];
    let output = common::tshark(&folder.path().join("server.pcapng")).args(fields).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, "\t192.0.2.9\t\n7\t\t80\n7\t\t80\n", "{}", String::from_utf8_lossy(&output.stderr));
}
