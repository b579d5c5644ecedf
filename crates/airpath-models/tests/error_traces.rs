// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Patterns, positions and traces of errors against lists made by hand, to the packet, the frame, the
//! bit and the millisecond; and packets that are cut short.

use airpath_core::{EventKind, PortId, Seed, Time};
use airpath_models::channel::pattern::PatternConfig;
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::channel::trace::TraceConfig;
use airpath_models::channel::trace_file::ErrorTrace;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Headers, Per};
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::{Fragmentation, HopConfig, LastFrame, LinkConfig, Path, PathConfig, StateConfig};

use crate::common::*;

fn errors(process: ErrorProcessConfig, per: Per, effect: Effect) -> ErrorsConfig {
    ErrorsConfig {
        process,
        per,
        effect: EffectConfig { effect, ..EffectConfig::default() },
        kept: None,
        only: None,
        block: None,
    }
}

fn trace_of(text: &str) -> ErrorProcessConfig {
    let trace = ErrorTrace::parse(text.as_bytes()).unwrap();
    ErrorProcessConfig::Trace(TraceConfig { file: FileRef::with_data("trace", trace), repeat: true })
}

fn positions(text: &str) -> ErrorProcessConfig {
    ErrorProcessConfig::Positions(PositionsConfig { positions: Some(read(text)), file: None, repeat: None })
}

fn pattern(burst: u64, every: u64, offset: u64) -> ErrorProcessConfig {
    ErrorProcessConfig::Pattern(PatternConfig { burst, every, offset })
}

fn link(errors: ErrorsConfig) -> LinkConfig {
    LinkConfig { rate: read("8 Mbit/s"), errors, ..LinkConfig::default() }
}

fn uplink(link: LinkConfig, script: &Script) -> Trace {
    check_laws(|| Path::new(&one_hop("radio", link.clone(), LinkConfig::default()), Seed(1)), script, 1)
}

fn burst(count: usize, len: u32) -> Script {
    (0..count).map(|_| offer(Time::ZERO, PortId::CLIENT, len)).collect()
}

/// The packets that were dropped, of `count` numbered from 1.
fn missing(trace: &Trace, count: u64) -> Vec<u64> {
    let there = trace.ids(PortId::SERVER);
    (1..=count).filter(|id| !there.contains(id)).collect()
}

/// Rest of each packet, and its flipped bits.
fn arrived(trace: &Trace) -> Vec<(u64, Option<u32>, Vec<u32>)> {
    trace.departures.iter().map(|left| (left.id, left.kept_bytes, left.flips.clone())).collect()
}

#[test]
fn one_burst_of_five_out_of_every_hundred_packets() {
    let trace = uplink(link(errors(pattern(5, 100, 10), Per::Packet, Effect::Drop)), &burst(300, 100));
    let expected: Vec<u64> = [11, 111, 211].into_iter().flat_map(|first| first..first + 5).collect();
    assert_eq!(missing(&trace, 300), expected);
}

#[test]
fn positions_are_those_of_packets_frames_and_bits() {
    let per = |per| errors(positions("1, 4-6, 9"), per, Effect::Drop);
    assert_eq!(missing(&uplink(link(per(Per::Packet)), &burst(12, 100)), 12), [2, 5, 6, 7, 10]);
    // Three frames a packet: frames 0 to 2, 3 to 5, 6 to 8, 9 to 11.
    let frames = |errors| LinkConfig {
        fragmentation: Some(Fragmentation {
            frame_payload: read("320 bit"),
            frame_header: read("0 bit"),
            last_frame: LastFrame::Padded,
        }),
        ..link(errors)
    };
    let trace = uplink(frames(per(Per::Frame)), &burst(5, 100));
    assert_eq!(missing(&trace, 5), [1, 2, 3, 4]);
    let lost: Vec<u64> = trace.of_kind(EventKind::FrameLost).iter().map(|event| event.pdu).collect();
    assert_eq!(lost, [1, 2, 2, 3, 4]);
    // Packets of 800 bit, one after the other: bit 1 of the first, 4 to 6 of it, the last of the second.
    let errors = errors(positions("1, 4-6, 1599, 2400"), Per::Bit, Effect::Corrupt);
    let trace = uplink(link(errors), &burst(5, 100));
    let expected = [(1, vec![1, 4, 5, 6]), (2, vec![799]), (3, vec![]), (4, vec![0]), (5, vec![])];
    assert_eq!(arrived(&trace), expected.map(|(id, flips)| (id, None, flips)));
}

/// 1000 bytes at 8 Mbit/s take 1 ms: packet k ends at (k + 1) ms, in millisecond k + 1.
#[test]
fn milliseconds_hit_what_ends_in_them() {
    let by_time = |process| errors(process, Per::Millisecond, Effect::Drop);
    let trace = uplink(link(by_time(positions("2, 5-6"))), &burst(10, 1000));
    assert_eq!(missing(&trace, 10), [2, 5, 6]);
    // Ten packets of 100 bytes a millisecond: those that end in [3 ms, 4 ms) are numbers 30 to 39.
    let trace = uplink(link(by_time(positions("3"))), &burst(60, 100));
    assert_eq!(missing(&trace, 60), (30..40).collect::<Vec<_>>());
    // A link that was idle for an hour is where it would be without.
    let hour = 3_600_000;
    let script = vec![offer(ms(hour), PortId::CLIENT, 1000), offer(ms(hour + 6), PortId::CLIENT, 1000)];
    // They end in milliseconds 3,600,001 = 7 · 514,285 + 6 and 3,600,007 = 7 · 514,286 + 5.
    for (offset, expected) in [(6, vec![1]), (5, vec![2]), (3, vec![])] {
        let trace = uplink(link(by_time(pattern(1, 7, offset))), &script);
        assert_eq!(missing(&trace, 2), expected, "{offset}");
    }
}

/// Milliseconds do not depend on the traffic: sparse and dense traffic meet the same errors, of a chain with
/// draws too.
#[test]
fn milliseconds_are_the_same_whatever_the_traffic() {
    for process in ErrorProcessConfig::examples() {
        let link = link(errors(process.clone(), Per::Millisecond, Effect::Drop));
        let run = |every: u64| {
            let script: Script = (0..600 / every).map(|k| offer(ms(k * every), PortId::CLIENT, 100)).collect();
            let trace = uplink(link.clone(), &script);
            missing(&trace, 600 / every).into_iter().map(|id| (id - 1) * every).collect::<Vec<_>>()
        };
        let dense = run(1);
        for every in [2, 3, 50] {
            let expected: Vec<u64> = dense.iter().copied().filter(|time| time % every == 0).collect();
            assert_eq!(run(every), expected, "{process:?} every {every} ms");
        }
    }
}

/// A change takes effect with the first millisecond that begins at it, and does not reach back.
#[test]
fn a_change_by_time_takes_effect_at_its_millisecond() {
    let by_time = |process| link(errors(process, Per::Millisecond, Effect::Drop));
    let hop = |process| HopConfig { name: "radio".into(), uplink: by_time(process), downlink: LinkConfig::default() };
    let script: Script = (0..12).map(|k| offer(ms(k), PortId::CLIENT, 100)).collect();
    let lost = |first: ErrorProcessConfig, then: ErrorProcessConfig| {
        let later =
            StateConfig { name: "later".into(), at: Some(ms(6)), hops: vec![hop(then)], stay: Default::default() };
        let config = PathConfig { hops: vec![hop(first)], states: vec![later], ..PathConfig::default() };
        missing(&check_laws(|| Path::new(&config, Seed(1)), &script, 1), 12)
    };
    // Packet k is sent in millisecond k - 1. Of the same kind, positions count on …
    assert_eq!(lost(positions("1, 5-7"), positions("4-6, 9")), [2, 6, 7, 10]);
    // … and another kind begins anew: every third from millisecond 6 on.
    assert_eq!(lost(positions("1, 5-7"), pattern(1, 3, 1)), [2, 6, 8, 11]);
}

fn by_block(process: ErrorProcessConfig, block: &str, effect: Effect) -> ErrorsConfig {
    ErrorsConfig { block: Some(span(block)), ..errors(process, Per::Block, effect) }
}

/// 1000 bytes at 8 Mbit/s take 1 ms: packet k begins at k - 1 ms, in block (k - 1) / 2 of 2 ms.
#[test]
fn blocks_hit_what_begins_in_them() {
    let trace = uplink(link(by_block(positions("1, 3"), "2 ms", Effect::Drop)), &burst(10, 1000));
    assert_eq!(missing(&trace, 10), [3, 4, 7, 8]);
    // Packets of 2 ms begin at 0, 2, 4 and 6 ms, in blocks 0, 0, 1 and 2 of 3 ms; the second ends in block 1.
    let trace = uplink(link(by_block(positions("1"), "3 ms", Effect::Drop)), &burst(4, 2000));
    assert_eq!(missing(&trace, 4), [3]);
    // A link that was idle for an hour is where it would be without: in blocks 180,000 = 7 · 25,714 + 2 of 20 ms,
    // and two later.
    let hour = 3_600_000;
    let script = vec![offer(ms(hour), PortId::CLIENT, 1000), offer(ms(hour + 40), PortId::CLIENT, 1000)];
    for (offset, expected) in [(2, vec![1]), (4, vec![2]), (3, vec![])] {
        let trace = uplink(link(by_block(pattern(1, 7, offset), "20 ms", Effect::Drop)), &script);
        assert_eq!(missing(&trace, 2), expected, "{offset}");
    }
}

/// The blocks that are hit, and the bits flipped in them, do not depend on what else is sent.
#[test]
fn blocks_are_the_same_whatever_the_traffic() {
    for process in ErrorProcessConfig::examples() {
        let mut errors = by_block(process.clone(), "5 ms", Effect::Corrupt);
        errors.effect.flips = 3;
        let run = |every: u64| {
            let script: Script = (0..120 / every).map(|k| offer(ms(5 * k * every), PortId::CLIENT, 100)).collect();
            let trace = uplink(link(errors.clone()), &script);
            arrived(&trace).into_iter().map(|(id, _, flips)| ((id - 1) * every, flips)).collect::<Vec<_>>()
        };
        let dense = run(1);
        for every in [2, 3, 40] {
            let expected: Vec<_> = dense.iter().filter(|(block, _)| block % every == 0).cloned().collect();
            assert_eq!(run(every), expected, "{process:?} every {every} blocks");
        }
    }
}

/// A change of the length begins the count of blocks anew, and nothing is hit as if it had been before.
#[test]
fn a_change_of_blocks_counts_from_itself() {
    let hop = |block| HopConfig {
        name: "radio".into(),
        uplink: link(by_block(pattern(1, 2, 0), block, Effect::Drop)),
        downlink: LinkConfig::default(),
    };
    let later =
        StateConfig { name: "later".into(), at: Some(ms(6)), hops: vec![hop("3 ms")], stay: Default::default() };
    let config = PathConfig { hops: vec![hop("1 ms")], states: vec![later], ..PathConfig::default() };
    let script: Script = (0..12).map(|k| offer(ms(k), PortId::CLIENT, 100)).collect();
    // The process counts on: six blocks before the change, so that block 6, from 6 to 9 ms, is hit.
    let trace = check_laws(|| Path::new(&config, Seed(1)), &script, 1);
    assert_eq!(missing(&trace, 12), [1, 3, 5, 7, 8, 9]);
}

#[test]
fn what_a_block_needs_is_said() {
    let words = |errors: ErrorsConfig| {
        errors.problems().into_iter().map(|problem| format!("{}: {}", problem.key, problem.message)).collect::<Vec<_>>()
    };
    let missing = ErrorsConfig { block: None, ..by_block(positions("1"), "1 ms", Effect::Drop) };
    assert_eq!(words(missing), ["block: is missing: per = \"block\" needs it, for example block = \"20 ms\""]);
    assert_eq!(words(by_block(positions("1"), "99 us", Effect::Drop)), ["block: is 99 us; it must be 100 us at least"]);
    let idle = ErrorsConfig { per: Per::Frame, ..by_block(positions("1"), "20 ms", Effect::Drop) };
    assert_eq!(words(idle), ["block: has no meaning without per = \"block\""]);
    assert_eq!(words(by_block(positions("1"), "20 ms", Effect::Drop)), [""; 0]);
}

const WALK: &str = "ok\nlost\ntruncated 60\nflipped 0 85-87 799 800 5000\nhit\ntruncated 50 flipped 3 399 400\n\
                    truncated 100\ntruncated 0\nok 2";

/// Every kind of record, for packets of 100 bytes: positions behind bit 799 are ignored, and so are cuts
/// at or behind the end.
#[test]
fn traces_of_packets() {
    let expected = [
        (1, None, vec![]),
        (3, Some(60), vec![]),
        (4, None, vec![0, 85, 86, 87, 799]),
        (6, Some(50), vec![3, 399]),
        (7, None, vec![]),
        (9, None, vec![]),
        (10, None, vec![]),
    ];
    let trace = uplink(link(errors(trace_of(WALK), Per::Packet, Effect::Drop)), &burst(10, 100));
    assert_eq!(arrived(&trace), expected);
    let told = |kind| trace.of_kind(kind).iter().map(|event| (event.pdu, event.bits)).collect::<Vec<_>>();
    assert_eq!(told(EventKind::Truncated), [(3, 480), (6, 400)]);
    assert_eq!(told(EventKind::Damaged), [(4, 5), (6, 2)]);
    // A packet that is cut is delivered, and counted with all its bits: the link has carried them.
    assert_eq!(told(EventKind::Delivered).len(), 7);
    assert!(told(EventKind::Delivered).iter().all(|(_, bits)| *bits == 800));
    // The fifth record leaves it to the effect, here a flip; headers may be spared.
    let mut errors = errors(trace_of(WALK), Per::Packet, Effect::Corrupt);
    errors.effect.headers = Headers::Spared;
    let trace = uplink(link(errors), &burst(10, 100));
    let flips: Vec<_> = trace.departures.iter().map(|left| (left.id, left.flips.len())).collect();
    // Of packet 4 bits 0, 85 to 87 are of the header (160 bits), of packet 6 bit 3.
    assert_eq!(flips, [(1, 0), (3, 0), (4, 1), (5, 1), (6, 1), (7, 0), (9, 0), (10, 0)]);
}

/// Frames of 240 bit: a packet of 100 bytes is bits 0-239, 240-479, 480-719, 720-799.
#[test]
fn traces_of_frames() {
    let frames = |text: &str| LinkConfig {
        fragmentation: Some(Fragmentation {
            frame_payload: read("240 bit"),
            frame_header: read("16 bit"),
            last_frame: LastFrame::Padded,
        }),
        ..link(errors(trace_of(text), Per::Frame, Effect::Drop))
    };
    // Positions count in the frame's part of the packet; the last frame has 80 bits of it.
    let text = "ok\nflipped 0 239 240\nok\nflipped 79 80\n ok\ntruncated 5\nok\nflipped 1\n\
                truncated 0\nok 3\n ok 3\ntruncated 9\n ok 3\ntruncated 10\n ok 2\ntruncated 0\ntruncated 4";
    let trace = uplink(frames(text), &burst(6, 100));
    let expected = [
        (1, None, vec![240, 479, 799]),
        // Cut 5 bytes into the second frame: what the last flips is gone.
        (2, Some(35), vec![]),
        (4, Some(99), vec![]),
        (5, None, vec![]),
        // Two frames are cut: the first cut counts.
        (6, Some(60), vec![]),
    ];
    assert_eq!(arrived(&trace), expected);
    let truncated: Vec<_> = trace.of_kind(EventKind::Truncated).iter().map(|event| (event.pdu, event.bits)).collect();
    assert_eq!(truncated, [(2, 280), (4, 792), (6, 480)]);
}

/// As Singh 2000, figure 10: a packet of 100 bytes is four radio blocks of 28 bytes, of which a trace
/// says one by one whether they are corrupted.
#[test]
fn binary_traces_of_radio_blocks() {
    let blocks = LinkConfig {
        fragmentation: Some(Fragmentation {
            frame_payload: read("28 bytes"),
            frame_header: read("2 bytes"),
            last_frame: LastFrame::Padded,
        }),
        ..link(errors(trace_of("0000 0100\n0000 0000 0001\n1111"), Per::Frame, Effect::Drop))
    };
    let trace = uplink(blocks, &burst(12, 100));
    assert_eq!(missing(&trace, 12), [2, 5, 6, 8, 11, 12]);
}

#[test]
fn cuts_of_a_given_length_and_of_any() {
    let mut cutting = errors(pattern(1, 1, 0), Per::Packet, Effect::Truncate);
    cutting.kept = Some(read("60 bytes"));
    let script: Script = [61, 60, 59, 1500].map(|len| offer(Time::ZERO, PortId::CLIENT, len)).into();
    let trace = uplink(link(cutting.clone()), &script);
    let kept: Vec<_> = trace.departures.iter().map(|left| left.kept_bytes).collect();
    assert_eq!(kept, [Some(60), None, None, Some(60)]);
    // Part of a byte is no byte, and a packet of which nothing is left is lost.
    cutting.kept = Some(read("15 bit"));
    assert_eq!(uplink(link(cutting.clone()), &script).departures[0].kept_bytes, Some(1));
    cutting.kept = Some(read("7 bit"));
    assert_eq!(missing(&uplink(link(cutting.clone()), &script), 4), [1, 2, 3, 4]);
    // Without a length every shorter one is equally likely: packets of 11 bytes keep 1 to 10. Chi square
    // of 5,000 draws with 9 degrees of freedom, level 1e-6: 45.
    cutting.kept = None;
    let mut counts = [0f64; 10];
    for left in uplink(LinkConfig { queue: unlimited(), ..link(cutting) }, &burst(5_000, 11)).departures {
        counts[left.kept_bytes.unwrap() as usize - 1] += 1.0;
    }
    assert_eq!(counts.iter().sum::<f64>(), 5_000.0);
    let chi: f64 = counts.iter().map(|count| (count - 500.0).powi(2) / 500.0).sum();
    assert!(chi < 45.0, "{counts:?}");
}

fn unlimited() -> airpath_models::queueing::QueueConfig {
    use airpath_models::queueing::{QueueConfig, tail_drop::TailDropConfig};
    QueueConfig::TailDrop(TailDropConfig { limit: read("unlimited") })
}

/// Per bit a packet ends before the first bit that is hit.
#[test]
fn a_hit_bit_cuts_its_packet_there() {
    let trace = uplink(link(errors(positions("7, 817, 1000, 2399"), Per::Bit, Effect::Truncate)), &burst(4, 100));
    // Bit 7 of the first leaves no byte; 17 of the second leaves two; the last bit of the third 99.
    assert_eq!(arrived(&trace), [(2, Some(2), vec![]), (3, Some(99), vec![]), (4, None, vec![])]);
}

/// A second hop carries all bits of a packet that the first has cut: it may cut it further, and flips
/// only what is there.
#[test]
fn cuts_over_two_hops() {
    let hop = |name: &str, text: &str| HopConfig {
        name: name.into(),
        uplink: link(errors(trace_of(text), Per::Packet, Effect::Drop)),
        downlink: LinkConfig::default(),
    };
    let near = hop("near", "truncated 50\ntruncated 50\ntruncated 50 flipped 8\nok");
    let far = hop("far", "truncated 60\ntruncated 40\nflipped 7 8 399 400 500\nflipped 799");
    let config = PathConfig { hops: vec![near, far], ..PathConfig::default() };
    let trace = check_laws(|| Path::new(&config, Seed(1)), &burst(4, 100), 1);
    let expected = [(1, Some(50), vec![]), (2, Some(40), vec![]), (3, Some(50), vec![7, 399]), (4, None, vec![799])];
    assert_eq!(arrived(&trace), expected);
    let told = |kind| trace.of_kind(kind).iter().map(|event| (event.hop, event.pdu, event.bits)).collect::<Vec<_>>();
    let mut truncated = told(EventKind::Truncated);
    truncated.sort_unstable();
    assert_eq!(truncated, [(0, 1, 400), (0, 2, 400), (0, 3, 400), (1, 2, 320)]);
    assert_eq!(told(EventKind::Damaged), [(0, 3, 1), (1, 3, 3), (1, 4, 1)]);
}

/// A packet that is cut in its first frame arrives as short as that, although its second frame is lost.
#[test]
fn behind_a_cut_nothing_is_missed() {
    let errors = errors(trace_of("truncated 50\nlost\nok 100\n"), Per::Frame, Effect::Drop);
    let fragmentation = Some(Fragmentation {
        frame_payload: read("800 bit"),
        frame_header: read("0 bit"),
        last_frame: LastFrame::Short,
    });
    let link = LinkConfig { fragmentation, ..link(errors) };
    let config = one_hop("radio", link, LinkConfig::default());
    let trace = run(Path::new(&config, Seed(1)), &vec![offer(ms(0), PortId::CLIENT, 500)]);
    let kept: Vec<_> = trace.departures.iter().map(|departure| departure.kept_bytes).collect();
    assert_eq!(kept, [Some(50)]);
}
