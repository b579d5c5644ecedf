// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A small made-up run: TCP segments up, acknowledgements down, some dropped, some damaged.
#![allow(dead_code, missing_docs)]

use airpath_core::{Cause, Damage, Direction, Ecn, Escapes, Event, EventKind, FiveTuple, Pdu, PortId, Stage, Time};
use airpath_log::writer::WriterOptions;
use airpath_log::{Level, Offered, Overflow, Packet, Recorder, Snaplen, Writer, WriterReport};
use std::path::Path;

pub const START_UNIX_NS: u64 = 1_790_000_000_000_000_000;

/// An IPv4 TCP segment with its checksums.
pub fn segment(up: bool, sequence: u32, flags: u8, payload: usize) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (from, to, ports) = if up { (client, server, [40_000u16, 80]) } else { (server, client, [80u16, 40_000]) };
    let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0];
    packet.extend(from);
    packet.extend(to);
    let total = (40 + payload) as u16;
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    let sum = checksum(&packet, 0);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(ports[0].to_be_bytes());
    packet.extend(ports[1].to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.extend(1u32.to_be_bytes());
    packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend((0..payload).map(|index| index as u8));
    let pseudo = packet[12..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>()
        + 6
        + u32::from(total - 20);
    let sum = checksum(&packet[20..], pseudo);
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn checksum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !sum as u16
}

pub fn event(at: u64, pdu: &Pdu, direction: Direction, hop: u16, stage: Stage, kind: EventKind, cause: Cause) -> Event {
    Event {
        hop,
        stage,
        ..Event::of_path(Time::from_nanos(at), direction, kind, cause, pdu, if at > 500_000_000 { 1 } else { 0 })
    }
}

/// Fate of packet number `id`.
pub fn fate(id: u64) -> &'static str {
    match id % 10 {
        3 => "channel_error",
        7 => "queue_packets",
        5 => "damaged",
        _ => "delivered",
    }
}

/// The positions of the bits that the link flips in a damaged packet of `length` bytes: the last three.
pub fn flips_of(length: usize) -> [u32; 3] {
    [5, 6, 7].map(|bit| (length as u32 - 1) * 8 + bit)
}

/// Carries one packet through a link that drops every tenth, five milliseconds after it came.
pub fn carry(recorder: &mut Recorder, at: Time, from: PortId, pdu: &Pdu, bytes: &[u8]) {
    let packet = Packet::whole(bytes, 40);
    recorder.offered(&Offered { at, port: from, pdu, packet, read_at: None, kernel_at: None });
    let due = at.nanos() + 5_000_000;
    let path = Event::WHOLE_PATH;
    let up = Direction::Uplink;
    let offered = event(at.nanos(), pdu, up, path, Stage::Path, EventKind::Offered, Cause::None);
    if pdu.id.is_multiple_of(10) {
        let dropped = event(due, pdu, up, 0, Stage::Channel, EventKind::Dropped, Cause::ChannelError);
        recorder.events(&[offered, dropped]);
    } else {
        recorder.events(&[offered, event(due, pdu, up, path, Stage::Path, EventKind::Delivered, Cause::None)]);
        recorder.emitted(pdu.id, PortId::SERVER, Time::from_nanos(due));
    }
}

/// Between whom the packets of a direction travel.
pub fn tuple(up: bool) -> FiveTuple {
    let (source_port, destination_port) = if up { (4000, 5001) } else { (5001, 4000) };
    FiveTuple { source: 1, destination: u32::MAX, source_port, destination_port, protocol: 6 }
}

/// Drives `recorder` through `packets` packets, one every millisecond.
pub fn drive(recorder: &mut Recorder, packets: u64) -> Time {
    drive_with(recorder, packets, |_| ())
}

/// The same, with something to do before each packet.
pub fn drive_with(recorder: &mut Recorder, packets: u64, mut before: impl FnMut(u64)) -> Time {
    for id in 1..=packets {
        before(id);
        let up = id % 2 == 1;
        let bytes = segment(up, 1000 + id as u32, 0x18, if up { 256 } else { 0 });
        let at = id * 1_000_000;
        let direction = if up { Direction::Uplink } else { Direction::Downlink };
        let pdu = Pdu {
            id,
            arrived: Time::from_nanos(at),
            len: bytes.len() as u32,
            header_len: 40,
            class: 3,
            ecn: Ecn::Ect0,
            flow: if up { 7 } else { 8 },
            tuple: tuple(up),
            escapes: if up { Escapes::new(id as usize % 50) } else { Escapes::UNKNOWN },
            ..Pdu::default()
        };
        let (from, to) = if up { (PortId::CLIENT, PortId::SERVER) } else { (PortId::SERVER, PortId::CLIENT) };
        let packet = Packet::whole(&bytes, 40);
        recorder.offered(&Offered {
            at: Time::from_nanos(at),
            port: from,
            pdu: &pdu,
            packet,
            read_at: Some(Time::from_nanos(at + 30_000)),
            kernel_at: up.then_some(Time::from_nanos(at)),
        });
        let path = Event::WHOLE_PATH;
        let due = at + 5_000_000;
        let mut events = vec![event(at, &pdu, direction, path, Stage::Path, EventKind::Offered, Cause::None)];
        match fate(id) {
            "queue_packets" => {
                events.push(event(at, &pdu, direction, 0, Stage::Queue, EventKind::Dropped, Cause::QueuePackets))
            }
            "channel_error" => {
                events.push(event(due, &pdu, direction, 0, Stage::Channel, EventKind::Dropped, Cause::ChannelError))
            }
            fate => {
                if fate == "damaged" {
                    let damaged = event(due, &pdu, direction, 0, Stage::Channel, EventKind::Damaged, Cause::None);
                    events.push(Event { bits: 3, ..damaged });
                }
                events.push(event(due, &pdu, direction, path, Stage::Path, EventKind::Delivered, Cause::None));
            }
        }
        recorder.events(&events);
        let emitted = Time::from_nanos(due + 12_345);
        match fate(id) {
            "delivered" => recorder.emitted(id, to, emitted),
            "damaged" => {
                let mut other = bytes.clone();
                *other.last_mut().unwrap() ^= 7;
                let flips = flips_of(bytes.len());
                let damage = Damage { flips: flips.to_vec(), truncated_to: None };
                recorder.emitted_changed(id, to, emitted, Packet::whole(&other, 40), &damage);
            }
            _ => {}
        }
        if id == 500 {
            recorder.command(Time::from_nanos(at), r#"{"enter_state":"poor"}"#);
            recorder.read(Time::from_nanos(at), PortId::CLIENT, 3);
            recorder.discarded(Time::from_nanos(at), PortId::CLIENT, Cause::Noise, Packet::whole(&[0x60; 48], 40));
        }
        recorder.tick(Time::from_nanos(at));
    }
    Time::from_nanos((packets + 10) * 1_000_000)
}

pub fn options(folder: &Path, level: Level, snaplen: Snaplen) -> WriterOptions {
    let states = vec!["initial".into(), "poor".into()];
    WriterOptions { snaplen, ..WriterOptions::of_path(folder, level, vec!["radio".into()], states) }
}

/// tshark on `capture`, with nobody's preferences.
pub fn tshark(capture: &Path) -> std::process::Command {
    let mut command = std::process::Command::new("tshark");
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME").arg("-r").arg(capture);
    command
}

/// A whole run in `folder`.
pub fn run(folder: &Path, level: Level, snaplen: Snaplen, packets: u64) -> WriterReport {
    let options = WriterOptions { overflow: Overflow::Wait, ..options(folder, level, snaplen) };
    let (mut recorder, writer) = Writer::start(&options).unwrap();
    writer.set_start(START_UNIX_NS);
    let end = drive(&mut recorder, packets);
    assert!(recorder.finish(end).is_none());
    writer.finish()
}
