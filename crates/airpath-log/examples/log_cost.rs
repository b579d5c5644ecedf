// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cost of recording for the loop that carries packets, at each log level: nanoseconds on that thread, the
//! writer's work not included.
//!
//! `cargo run --release -p airpath-log --example log_cost`

use std::time::{Duration, Instant};

use airpath_core::{Cause, Direction, Event, EventKind, Pdu, PortId, Time};
use airpath_log::writer::WriterOptions;
use airpath_log::{Level, LogError, Offered, Packet, Snaplen, Writer};

const ROUNDS: u64 = 400;
const PACKETS: u64 = 100;
const TURN: usize = 10;
/// Events of one packet on a one-hop path without fragmentation.
const EVENTS: [EventKind; 7] = [
    EventKind::Offered,
    EventKind::Enqueued,
    EventKind::Dequeued,
    EventKind::FrameStarted,
    EventKind::FrameSent,
    EventKind::Passed,
    EventKind::Delivered,
];

struct Cost {
    offered: Duration,
    events: Duration,
    emitted: Duration,
    lost: u64,
}

fn measure(level: Level, snaplen: Snaplen, length: u32) -> Result<Cost, LogError> {
    let folder = tempfile::tempdir().map_err(|source| LogError::Io {
        action: "create",
        path: std::env::temp_dir(),
        source,
        hint: "set TMPDIR to a folder in which you may write".into(),
    })?;
    let options = WriterOptions::of_path(folder.path(), level, vec!["radio".into()], vec!["initial".into()]);
    let (mut recorder, writer) = Writer::start(&WriterOptions { snaplen, ..options })?;
    let bytes = vec![0x45; length as usize];
    let mut cost = Cost { offered: Duration::ZERO, events: Duration::ZERO, emitted: Duration::ZERO, lost: 0 };
    let mut id = 0;
    for round in 0..ROUNDS {
        let at = Time::from_nanos(round * 5_000_000);
        let pdus: Vec<Pdu> = (1..=PACKETS)
            .map(|offset| Pdu { id: id + offset, len: length, header_len: 52, ..Pdu::default() })
            .collect();
        id += PACKETS;
        let events: Vec<Event> = pdus
            .iter()
            .flat_map(|pdu| EVENTS.map(|kind| Event::of_path(at, Direction::Uplink, kind, Cause::None, pdu, 0)))
            .collect();
        // As a loop does that finds ten packets in each turn.
        let begin = Instant::now();
        for (pdus, events) in pdus.chunks(TURN).zip(events.chunks(TURN * EVENTS.len())) {
            let start = Instant::now();
            for pdu in pdus {
                recorder.offered(&Offered {
                    at,
                    port: PortId::CLIENT,
                    pdu,
                    packet: Packet::whole(&bytes, 52),
                    read_at: Some(at),
                    kernel_at: Some(at),
                });
            }
            let offered = Instant::now();
            recorder.events(events);
            let recorded = Instant::now();
            for pdu in pdus {
                recorder.emitted(pdu.id, PortId::SERVER, at);
            }
            recorder.tick(at);
            cost.offered += offered - start;
            cost.events += recorded - offered;
            cost.emitted += recorded.elapsed();
        }
        // 20,000 packets a second: the writer has to keep up, as in a run.
        std::thread::sleep(Duration::from_millis(5).saturating_sub(begin.elapsed()));
    }
    cost.lost = recorder.finish(Time::from_nanos(ROUNDS * 5_000_000)).events;
    writer.finish();
    Ok(cost)
}

fn main() -> Result<(), LogError> {
    let per = |time: Duration, count: u64| time.as_nanos() as f64 / count as f64;
    println!("nanoseconds on the loop's thread, {} packets of 1500 bytes, 7 events each", ROUNDS * PACKETS);
    println!("level       snaplen   offered/packet   events/event   emitted/packet   total/packet   lost");
    for (level, snaplen) in [
        (Level::Counters, Snaplen::default()),
        (Level::Events, Snaplen::default()),
        (Level::Packets, Snaplen::default()),
        (Level::Packets, Snaplen::Full),
    ] {
        let cost = measure(level, snaplen, 1500)?;
        let packets = ROUNDS * PACKETS;
        println!(
            "{:<10}  {:>7}   {:>14.1}   {:>12.1}   {:>14.1}   {:>12.1}   {:>4}",
            level.name(),
            snaplen.to_string(),
            per(cost.offered, packets),
            per(cost.events, packets * EVENTS.len() as u64),
            per(cost.emitted, packets),
            per(cost.offered + cost.events + cost.emitted, packets),
            cost.lost
        );
    }
    Ok(())
}
