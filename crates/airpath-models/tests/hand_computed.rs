// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cases computed by hand, to the nanosecond.

use airpath_core::{Cause, EventKind, PortId, Seed, Time};
use airpath_models::channel::bernoulli::BernoulliConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::head_drop::HeadDropConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::{Fragmentation, LastFrame, LinkConfig, Path, PathConfig};

use crate::common::*;

fn uplink(link: LinkConfig, script: &Script) -> Trace {
    check_laws(|| Path::new(&one_hop("radio", link.clone(), LinkConfig::default()), Seed(1)), script, 1)
}

fn burst(count: usize, len: u32) -> Script {
    (0..count).map(|_| offer(Time::ZERO, PortId::CLIENT, len)).collect()
}

fn tail_drop(limit: &str) -> QueueConfig {
    QueueConfig::TailDrop(TailDropConfig { limit: read(limit) })
}

fn frames(payload: &str, header: &str, last_frame: LastFrame) -> Option<Fragmentation> {
    Some(Fragmentation { frame_payload: read(payload), frame_header: read(header), last_frame })
}

fn certain(per: Per, effect: EffectConfig) -> ErrorsConfig {
    let process = ErrorProcessConfig::Bernoulli(BernoulliConfig { probability: read("1") });
    ErrorsConfig { process, per, effect, ..ErrorsConfig::default() }
}

/// The link of Kojo et al. 2001, Table 1, without errors.
fn seawind() -> LinkConfig {
    LinkConfig {
        rate: read("9600 bit/s"),
        propagation: read("200 ms"),
        queue: tail_drop("7 packets"),
        send_buffer: read("4 packets"),
        receive_buffer: read("4 packets"),
        ..LinkConfig::default()
    }
}

/// Twenty packets of 296 bytes at once: four in the send buffer, the one under transmission
/// included, seven in the queue; nine are dropped. 2368 bit at 9600 bit/s take 246.666… ms.
#[test]
fn the_link_of_seawind_passes_eleven_of_a_burst() {
    let trace = uplink(seawind(), &burst(20, 296));
    assert_eq!(
        trace.times(PortId::SERVER),
        [
            446_666_666,
            693_333_333,
            940_000_000,
            1_186_666_666,
            1_433_333_333,
            1_680_000_000,
            1_926_666_666,
            2_173_333_333,
            2_420_000_000,
            2_666_666_666,
            2_913_333_333,
        ]
    );
    assert_eq!(trace.ids(PortId::SERVER), (1..=11).collect::<Vec<_>>());
    let dropped: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|event| (event.pdu, event.cause)).collect();
    assert_eq!(dropped, (12..=20).map(|id| (id, Cause::QueuePackets)).collect::<Vec<_>>());
    // The queue is as long as the events say: packets five to eleven make it grow to seven.
    let longest = trace.events.iter().map(|event| (event.queue_packets, event.queue_bytes)).max().unwrap();
    assert_eq!(longest, (7, 7 * 296));
}

/// With head drop the first four are in the send buffer and stay; the queue keeps the last seven.
#[test]
fn the_same_link_with_head_drop_passes_the_first_four_and_the_last_seven() {
    let queue = QueueConfig::HeadDrop(HeadDropConfig { limit: read("7 packets") });
    let trace = uplink(LinkConfig { queue, ..seawind() }, &burst(20, 296));
    assert_eq!(trace.ids(PortId::SERVER), (1..=4).chain(14..=20).collect::<Vec<_>>());
}

/// 12,000 bit in frames of 432: 27 whole ones and one of 336; each with 16 bit of header, at
/// 100 kbit/s: 27 · 4.48 ms + 3.52 ms = 124.48 ms.
#[test]
fn fragmentation_with_headers_and_a_short_last_frame() {
    let link = |last| LinkConfig {
        rate: read("100 kbit/s"),
        propagation: read("1 ms"),
        fragmentation: frames("432 bit", "16 bit", last),
        ..LinkConfig::default()
    };
    let trace = uplink(link(LastFrame::Short), &burst(1, 1500));
    assert_eq!(trace.times(PortId::SERVER), [125_480_000]);
    let sent = trace.of_kind(EventKind::FrameSent);
    assert_eq!(sent.len(), 28);
    assert!(sent[..27].iter().all(|event| event.bits == 448) && sent[27].bits == 352);
    assert_eq!(sent[0].at.nanos(), 4_480_000);
    // Padded, the last frame is as long as the others: 28 · 4.48 ms.
    let trace = uplink(link(LastFrame::Padded), &burst(2, 1500));
    assert_eq!(trace.times(PortId::SERVER), [126_440_000, 251_880_000]);
}

/// 1000 bytes shrink to 0.37 · 8000 = 2960 bit; 5 bytes of overhead are not compressed: 3000 bit.
#[test]
fn compression_and_overhead() {
    let link = LinkConfig {
        rate: read("30 kbit/s"),
        compression: read("0.37"),
        overhead: read("5 bytes"),
        ..LinkConfig::default()
    };
    assert_eq!(uplink(link.clone(), &burst(2, 1000)).times(PortId::SERVER), [100_000_000, 200_000_000]);
    // A fraction of a bit counts as a bit: 1 byte · 0.37 = 2.96 → 3 bit, and 40 of overhead.
    let trace = uplink(link.clone(), &burst(1, 1));
    assert_eq!(trace.of_kind(EventKind::FrameSent)[0].bits, 43);
    // An expanding link: 1000 bytes · 1.3 = 10,400 bit, and 40 of overhead: 348 ms.
    let trace = uplink(LinkConfig { compression: read("1.3"), ..link }, &burst(1, 1000));
    assert_eq!(trace.times(PortId::SERVER), [348_000_000]);
}

/// 100 bytes at 8 kbit/s take 100 ms. The first meets an empty link and waits 50 ms; the second
/// comes meanwhile and follows at once; the third comes at the instant at which the second has been
/// transmitted, and meets an empty link again; the fourth comes much later.
#[test]
fn allocation_delay_on_an_empty_link_only() {
    let link = LinkConfig {
        rate: read("8 kbit/s"),
        propagation: read("1 ms"),
        allocation_delay: span("50 ms").into(),
        ..LinkConfig::default()
    };
    let script = vec![
        offer(ms(0), PortId::CLIENT, 100),
        offer(ms(20), PortId::CLIENT, 100),
        offer(ms(250), PortId::CLIENT, 100),
        offer(ms(1_000), PortId::CLIENT, 100),
    ];
    let trace = uplink(link.clone(), &script);
    assert_eq!(trace.times(PortId::SERVER), [151_000_000, 251_000_000, 401_000_000, 1_151_000_000]);
    assert_eq!(trace.of_kind(EventKind::AllocationStarted).len(), 3);
    // A nanosecond earlier the link is not empty yet.
    let script = vec![script[0].clone(), script[1].clone(), offer(Time::from_nanos(249_999_999), PortId::CLIENT, 100)];
    assert_eq!(uplink(link, &script).times(PortId::SERVER), [151_000_000, 251_000_000, 351_000_000]);
}

/// Packets that wait for an allocation are as old as others, but the one that caused it has left
/// the queue: 100 bytes at 8 kbit/s, 50 ms of allocation, 40 ms in the queue at most.
#[test]
fn age_limit_during_an_allocation() {
    let link = LinkConfig {
        rate: read("8 kbit/s"),
        allocation_delay: span("50 ms").into(),
        queue: tail_drop("40 ms"),
        ..LinkConfig::default()
    };
    let trace = uplink(link, &vec![offer(ms(0), PortId::CLIENT, 100), offer(ms(5), PortId::CLIENT, 100)]);
    assert_eq!(trace.times(PortId::SERVER), [150_000_000]);
    let dropped = trace.of_kind(EventKind::Dropped);
    assert_eq!((dropped[0].at, dropped[0].pdu, dropped[0].cause), (ms(45), 2, Cause::QueueAge));
}

/// 100 ms a packet, send buffer of one: the second leaves the queue at 100 ms, exactly at its limit,
/// and is served; the third runs out of time there.
#[test]
fn age_limit_at_the_instant_of_service() {
    let link = LinkConfig { rate: read("8 kbit/s"), queue: tail_drop("100 ms"), ..LinkConfig::default() };
    let trace = uplink(link, &burst(3, 100));
    assert_eq!(trace.times(PortId::SERVER), [100_000_000, 200_000_000]);
    let dropped = trace.of_kind(EventKind::Dropped);
    assert_eq!((dropped[0].at, dropped[0].pdu, dropped[0].cause), (ms(100), 3, Cause::QueueAge));
}

/// A packet larger than the send buffer is taken when that is empty, one larger than the queue never.
#[test]
fn packets_larger_than_the_buffers() {
    let link = LinkConfig { rate: read("8 kbit/s"), send_buffer: read("150 bytes"), ..LinkConfig::default() };
    let script = vec![
        offer(ms(0), PortId::CLIENT, 100),
        offer(ms(0), PortId::CLIENT, 400),
        offer(ms(0), PortId::CLIENT, 50),
        offer(ms(0), PortId::CLIENT, 100),
    ];
    let trace = uplink(link.clone(), &script);
    assert_eq!(trace.times(PortId::SERVER), [100_000_000, 500_000_000, 550_000_000, 650_000_000]);
    for queue in [tail_drop("300 bytes"), QueueConfig::HeadDrop(HeadDropConfig { limit: read("300 bytes") })] {
        let trace = uplink(LinkConfig { queue, ..link.clone() }, &script);
        assert_eq!(trace.ids(PortId::SERVER), [1, 3, 4]);
        assert_eq!(trace.of_kind(EventKind::Dropped)[0].cause, Cause::QueueBytes);
    }
}

/// Four frames of 10 ms each; two of them wait for the rest of their packet, a third finds no room.
#[test]
fn receive_buffer_in_frames() {
    let link = |frames_held: &str| LinkConfig {
        rate: read("8 kbit/s"),
        fragmentation: frames("80 bit", "0 bit", LastFrame::Short),
        receive_buffer: read(frames_held),
        ..LinkConfig::default()
    };
    assert_eq!(uplink(link("3 frames"), &burst(1, 40)).times(PortId::SERVER), [40_000_000]);
    assert_eq!(uplink(link("30 bytes"), &burst(1, 40)).times(PortId::SERVER), [40_000_000]);
    for small in ["2 frames", "29 bytes"] {
        let trace = uplink(link(small), &burst(2, 40));
        assert_eq!(trace.times(PortId::SERVER), [0u64; 0]);
        let dropped = trace.of_kind(EventKind::Dropped);
        assert_eq!(dropped.iter().map(|event| event.at).collect::<Vec<_>>(), [ms(30), ms(70)], "{small}");
        assert!(dropped.iter().all(|event| event.cause == Cause::ReceiveBuffer));
    }
}

/// Every packet is delayed by 35 ms; packets come every 10 ms and take no time.
#[test]
fn delayed_packets_wait_their_time_once_each() {
    let delay = |keep_order| EffectConfig {
        effect: Effect::Delay,
        delay: Some(span("35 ms").into()),
        keep_order,
        ..EffectConfig::default()
    };
    let script: Script = (0..4).map(|step| offer(ms(10 * step), PortId::CLIENT, 100)).collect();
    for keep_order in [true, false] {
        let link = LinkConfig { errors: certain(Per::Packet, delay(keep_order)), ..LinkConfig::default() };
        let trace = uplink(link.clone(), &script);
        assert_eq!(trace.times(PortId::SERVER), [35_000_000, 45_000_000, 55_000_000, 65_000_000]);
        // Two find room in the receive buffer at a time; the third is dropped, the fourth comes at
        // 30 ms, before there is room again.
        let trace = uplink(LinkConfig { receive_buffer: read("2 packets"), ..link }, &script);
        assert_eq!(trace.ids(PortId::SERVER), [1, 2]);
        assert!(trace.of_kind(EventKind::Dropped).iter().all(|event| event.cause == Cause::ReceiveBuffer));
    }
}

/// Corruption flips the wanted number of bits in the whole packet, whatever its frames.
#[test]
fn corruption_flips_the_wanted_number_of_bits() {
    let corrupt = |flips| EffectConfig { effect: Effect::Corrupt, flips, ..EffectConfig::default() };
    let fragmentation = frames("100 bit", "10 bit", LastFrame::Padded);
    for compression in ["1", "0.37", "1.3"] {
        let link = |per, flips| LinkConfig {
            fragmentation,
            compression: read(compression),
            errors: certain(per, corrupt(flips)),
            ..LinkConfig::default()
        };
        let flips = |link: LinkConfig| uplink(link, &burst(1, 100)).departures.remove(0).flips;
        assert_eq!(flips(link(Per::Packet, 5)).len(), 5);
        assert!(flips(link(Per::Packet, 5)).iter().all(|position| *position < 800));
        // Per bit with certainty: every bit of the packet, and none besides.
        assert_eq!(flips(link(Per::Bit, 1)), (0..800).collect::<Vec<u32>>());
        // One bit of every frame: 8, 3 or 11 frames.
        let frames = match compression {
            "1" => 8,
            "0.37" => 3,
            _ => 11,
        };
        assert_eq!(flips(link(Per::Frame, 1)).len(), frames);
    }
}

/// Lengths at the edges: nothing, and the largest packet of IP, over each kind of link.
#[test]
fn empty_and_largest_packets() {
    for example in LinkConfig::examples() {
        for len in [0, 1, 65_535] {
            let link = LinkConfig { receive_buffer: read("unlimited"), ..example.clone() };
            let trace = uplink(link, &burst(2, len));
            assert_eq!(trace.ids(PortId::SERVER), [1, 2], "{len} bytes over {example:?}");
        }
    }
}

/// Lengths that would overflow the arithmetic are refused where parameters are checked.
#[test]
fn absurd_lengths_are_problems() {
    let fragmentation = frames("2 MB", "2 MB", LastFrame::Short);
    let link = LinkConfig { overhead: read("2000000 MB"), fragmentation, ..LinkConfig::default() };
    let mut keys: Vec<String> = link.problems().into_iter().map(|problem| problem.key).collect();
    keys.sort();
    assert_eq!(keys, ["fragmentation.frame_header", "fragmentation.frame_payload", "overhead"]);
    // So are packets of more frames than an engine could be stopped in the middle of.
    let link = LinkConfig { overhead: read("1 MB"), fragmentation: frames("8 bit", "0 bit", LastFrame::Short), ..link };
    assert_eq!(link.problems().len(), 1);
    // What is just allowed works: ceil(8,000,008 / 86) frames for one byte of packet.
    let link = LinkConfig { fragmentation: frames("86 bit", "0 bit", LastFrame::Short), ..link };
    assert_eq!(link.problems(), []);
    let config = one_hop("radio", link, LinkConfig::default());
    let trace = run(Path::new(&config, Seed(1)), &burst(1, 1));
    assert_eq!(trace.of_kind(EventKind::FrameSent).len(), 93_024);
    assert_eq!(trace.ids(PortId::SERVER), [1]);
}

#[test]
#[should_panic(expected = "at least one hop")]
fn a_path_without_hops_is_a_bug() {
    let config = PathConfig { hops: Vec::new(), ..PathConfig::default() };
    Path::with_hops(Vec::<airpath_models::hop::Hop>::new(), &config, Seed(1));
}

/// Per bit, with chains that change their state at every bit: the most draws that a packet takes.
#[test]
fn the_largest_packet_takes_no_more_draws_than_there_are() {
    for errors in ErrorsConfig::examples().into_iter().filter(|errors| errors.per == Per::Bit) {
        let link = LinkConfig { errors, ..LinkConfig::default() };
        for compression in ["1", "4"] {
            let link = LinkConfig { compression: read(compression), ..link.clone() };
            let config = one_hop("radio", link, LinkConfig::default());
            assert_eq!(run(Path::new(&config, Seed(1)), &burst(2, 65_535)).held, 0);
        }
    }
}
