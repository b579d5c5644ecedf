// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Prints what a packet costs in processor time, length only, in virtual time:
//!
//! `cargo run --release -p airpath-models --example packet_cost [PACKETS]`

use airpath_core::{LogLevel, Pdu, PortId, Seed, Span, Time};
use airpath_models::channel::gilbert_elliott::GilbertElliottConfig;
use airpath_models::channel::{ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::queueing::QueueConfig;
use airpath_models::{Fragmentation, HopConfig, LastFrame, LinkConfig, Path, PathConfig};
use airpath_virtual::{DriveUntil, TimedInput, VirtualDriver};

fn read<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a valid quantity")
}

fn plain() -> LinkConfig {
    LinkConfig { rate: read("12 Mbit/s"), propagation: Span::from_millis(20).into(), ..LinkConfig::default() }
}

/// Four frames of 3000 bit for 1500 bytes, with errors in bursts.
fn fragmented() -> LinkConfig {
    let process = ErrorProcessConfig::GilbertElliott(GilbertElliottConfig {
        good_to_bad: read("0.01"),
        bad_to_good: read("0.3"),
        error_in_good: read("0.001"),
        error_in_bad: read("0.5"),
    });
    LinkConfig {
        fragmentation: Some(Fragmentation {
            frame_payload: read("3000 bit"),
            frame_header: read("24 bit"),
            last_frame: LastFrame::Short,
        }),
        send_buffer: read("4 packets"),
        errors: ErrorsConfig { process, per: Per::Frame, ..ErrorsConfig::default() },
        ..plain()
    }
}

/// The plain link behind a queue of each kind: the first example of each.
fn queues() -> Vec<(String, LinkConfig)> {
    let mut found: Vec<(String, LinkConfig)> = Vec::new();
    for queue in QueueConfig::examples() {
        let shown = format!("{queue:?}");
        let name = format!("  with {}", shown.split('(').next().unwrap_or_default());
        if found.iter().all(|(other, _)| *other != name) {
            found.push((name, LinkConfig { queue, ..plain() }));
        }
    }
    found
}

/// Processor time of this thread, in nanoseconds: other load on the machine counts only through the
/// caches.
fn processor_time() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts processor time");
    schedstat.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("the first field is in nanoseconds")
}

/// Nanoseconds of this processor for a packet, the best of several runs.
fn cost(link: &LinkConfig, level: LogLevel, packets: u64) -> f64 {
    let once = || {
        let hop = HopConfig { name: "radio".into(), uplink: link.clone(), downlink: link.clone() };
        let path = Path::new(&PathConfig { hops: vec![hop], ..PathConfig::default() }, Seed(1));
        let mut driver = VirtualDriver::new(path, level);
        // 1500 bytes take a millisecond: packets come in pairs every two, so that some wait.
        let packet = |id: u64| {
            let at = Time::from_nanos(id / 2 * 2_100_000);
            TimedInput::packet(at, PortId::CLIENT, Pdu { id, len: 1500, ..Pdu::default() })
        };
        let mut delivered = 0;
        let begin = processor_time();
        driver
            .run((0..packets).map(packet), DriveUntil::Idle, |outputs| {
                delivered += outputs.emissions.len();
                outputs.emissions.clear();
                outputs.events.clear();
            })
            .expect("inputs are in order");
        let elapsed = (processor_time() - begin) as f64;
        assert!(delivered as u64 > packets / 2, "only {delivered} of {packets} packets were delivered");
        elapsed / packets as f64
    };
    (0..7).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let packets = std::env::args().nth(1).map_or(400_000, |text| text.parse().expect("a number of packets"));
    println!("{:<42} {:>10} {:>10} {:>8}", "ns of processor time per packet", "counters", "events", "aim");
    let mut links =
        vec![("plain link".to_string(), plain(), 333), ("four frames, Gilbert-Elliott".into(), fragmented(), 1_000)];
    // A model may add 300 ns.
    links.extend(queues().into_iter().map(|(name, link)| (name, link, 633)));
    for (name, link, aim) in links {
        let (counters, events) = (cost(&link, LogLevel::Counters, packets), cost(&link, LogLevel::Events, packets));
        println!("{name:<42} {counters:>10.0} {events:>10.0} {aim:>8}");
    }
}
