// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! ARQ over two bins by hand: slots of 1 ms, an answer 2 ms after the end of a slot. Packets come together, before
//! the slot that begins at 1 ms: it is slot 0, and times count from its beginning.

use std::sync::Arc;

use airpath_core::{Cause, Direction, DrawKey, DrawScope, End, EventKind, PortId, Seed, Span, Time};
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Headers, Per};
use airpath_models::entity::arq::{ArqConfig, LastTry, Repeat};
use airpath_models::entity::{EntityBeginning, EntityConfig, EntityModel};
use airpath_models::hop::Hop;
use airpath_models::quality::{ErrorUnit, Quality};
use airpath_models::{HopConfig, LinkConfig, Path, PathConfig};
use proptest::prelude::*;
use proptest::sample::select;

use crate::common::*;
use crate::toys::bins::{Conditions, Radio, TwoBins};

/// Arrival of the packets.
const BEFORE: Time = Time::from_nanos(1);

/// A link of ARQ whose send buffer is unlimited.
pub fn arq_link(config: &ArqConfig, errors: ErrorsConfig) -> LinkConfig {
    LinkConfig {
        send_buffer: read("unlimited"),
        errors,
        entity: EntityConfig::Arq(config.clone()),
        ..LinkConfig::default()
    }
}

fn key() -> DrawKey {
    DrawKey::new(Seed(5), &DrawScope { hop: "cell", direction: Direction::Uplink, role: "symbols", instance: 0 })
}

/// That link over two bins in slots of `slot`.
pub fn over_bins(link: &LinkConfig, slot: Span, radio: Radio) -> Path<EntityModel, TwoBins> {
    let rated = LinkConfig { rate: read("1 Mbit/s"), ..link.clone() };
    assert_eq!(rated.problems(), []);
    let hop = HopConfig::new("cell", link.clone(), link.clone());
    let ends = End::ALL.map(|end| {
        let (sends, receives) = (hop.link(end.sends()).of_entity(), hop.link(end.sends().opposite()).of_entity());
        let beginning = EntityBeginning { end, sends, receives, allocation: key(), key: key() };
        EntityModel::new(&link.entity, beginning)
    });
    let hops = vec![Hop::with_parts(0, &hop, Seed(1), ends, TwoBins::over(slot, radio))];
    Path::with_hops(hops, &PathConfig { hops: vec![hop], ..PathConfig::default() }, Seed(1))
}

/// Errors in every symbol of the frame in bin `resource` of slot `slot`, or in none.
pub fn quality(is_hit: bool, resource: u16, slot: u64) -> Option<Quality> {
    let probability = f64::from(u8::from(is_hit));
    Some(Quality {
        unit: ErrorUnit::Symbol(1),
        probability,
        key: key(),
        step: slot * 2 + u64::from(resource),
        reception: None,
    })
}

/// One bin whose slots have `bits` by number (the last one from there on), with errors in the slots in `hit`.
fn one_bin(bits: &'static [u64], hit: &'static [u64]) -> Radio {
    Arc::new(move |_, resource, slot| {
        let number = slot - 1;
        let bits = if resource == 0 { bits[(number as usize).min(bits.len() - 1)] } else { 0 };
        Conditions { bits, quality: quality(hit.contains(&number), resource, slot) }
    })
}

fn play(config: &ArqConfig, lengths: &[u32], radio: Radio) -> Trace {
    let script = lengths.iter().map(|len| offer(BEFORE, PortId::CLIENT, *len)).collect();
    run(over_bins(&arq_link(config, ErrorsConfig::default()), span("1 ms"), radio), &script)
}

/// Number and time in ms of each packet that left, in that order.
fn left(trace: &Trace) -> Vec<(u64, u64)> {
    assert_eq!(trace.held, 0);
    trace.departures.iter().map(|left| (left.id, left.at.nanos() / 1_000_000 - 1)).collect()
}

/// The frame of slot 0 is hit; the answer comes at 3 ms, and slot 3 carries the repetition. Slots 1 and 2 carry the
/// next packets meanwhile.
#[test]
fn a_frame_is_repeated_in_the_slot_that_begins_with_the_answer() {
    let radio = || one_bin(&[1000], &[0]);
    let config = ArqConfig::default();
    let trace = play(&config, &[125, 125, 125, 125], radio());
    assert_eq!(left(&trace), [(1, 4), (2, 4), (3, 4), (4, 5)]);
    assert_eq!(trace.of_kind(EventKind::FrameRepeated).len(), 1);
    assert_eq!(trace.of_kind(EventKind::FrameLost).len(), 1);
    let config = ArqConfig { in_order: false, ..config };
    assert_eq!(left(&play(&config, &[125, 125, 125, 125], radio())), [(2, 2), (3, 3), (1, 4), (4, 5)]);
    // A later answer: slot 5; two repetitions go one after the other, the oldest first.
    let config = ArqConfig { feedback_delay: span("4 ms"), ..config };
    let trace = play(&config, &[125; 8], one_bin(&[1000], &[0, 1]));
    assert_eq!(left(&trace), [(3, 3), (4, 4), (5, 5), (1, 6), (2, 7), (6, 8), (7, 9), (8, 10)]);
}

/// Each packet stays in the send buffer until its answer has come: slots 0, 3 and 6.
#[test]
fn the_send_buffer_keeps_packets_until_the_answer() {
    let link = LinkConfig { send_buffer: read("1 packet"), ..arq_link(&ArqConfig::default(), ErrorsConfig::default()) };
    let script = vec![offer(BEFORE, PortId::CLIENT, 125); 3];
    let trace = run(over_bins(&link, span("1 ms"), one_bin(&[1000], &[])), &script);
    assert_eq!(left(&trace), [(1, 1), (2, 4), (3, 7)]);
}

/// Packets of 600 bits in frames of 1000: 600 + 400 and 200 + 600, or one in each frame.
#[test]
fn frames_carry_parts_of_several_packets_or_of_one() {
    let config = ArqConfig::default();
    let trace = play(&config, &[75; 3], one_bin(&[1000], &[]));
    assert_eq!(left(&trace), [(1, 1), (2, 2), (3, 2)]);
    let bits = |trace: &Trace| trace.of_kind(EventKind::FrameSent).iter().map(|event| event.bits).collect::<Vec<_>>();
    assert_eq!(bits(&trace), [1000, 1000]);
    let config = ArqConfig { concatenate: false, ..config };
    let trace = play(&config, &[75; 3], one_bin(&[1000], &[]));
    assert_eq!(left(&trace), [(1, 1), (2, 2), (3, 3)]);
    assert_eq!(bits(&trace), [1000, 1000, 1000]);
}

/// Bits of the air that are flipped, counted over all frames.
fn flips(positions: &str) -> ErrorsConfig {
    let positions = Some(read(positions));
    let process = ErrorProcessConfig::Positions(PositionsConfig { positions, file: None, repeat: None });
    let effect = EffectConfig { effect: Effect::Corrupt, ..EffectConfig::default() };
    ErrorsConfig { process, per: Per::Bit, effect, ..ErrorsConfig::default() }
}

/// The second frame has 200 bits of packet 2, from its bit 400 on, then the 600 bits of packet 3, and padding. Bit
/// 1003 of the air is bit 403 of packet 2, 1250 is bit 50 of packet 3, in its header, and 1900 is padding.
#[test]
fn errors_of_the_last_try_are_those_of_the_packets() {
    let script = vec![offer(BEFORE, PortId::CLIENT, 75); 3];
    let play = |config: &ArqConfig, overhead: &str| {
        let link = LinkConfig { overhead: read(overhead), ..arq_link(config, flips("1003, 1250, 1900")) };
        let trace = run(over_bins(&link, span("1 ms"), one_bin(&[1000], &[])), &script);
        assert_eq!(trace.held, 0);
        trace
    };
    let damage = |trace: &Trace| {
        let of = |left: &Departure| (left.id, left.flips.clone());
        trace.departures.iter().map(of).filter(|(_, flips)| !flips.is_empty()).collect::<Vec<_>>()
    };
    let config = ArqConfig { retransmissions: 0, ..ArqConfig::default() };
    assert_eq!(damage(&play(&config, "0 bit")), [(2, vec![403]), (3, vec![50])]);
    let spared = ArqConfig { headers: Headers::Spared, ..config.clone() };
    assert_eq!(damage(&play(&spared, "0 bit")), [(2, vec![403])]);
    // With three octets in front of each packet the second frame begins with bit 376 of packet 2 of 624; bit 250 of
    // the frame is bit 2 of packet 3's part, which costs the packet where headers count.
    let trace = play(&config, "24 bit");
    assert_eq!(damage(&trace), [(2, vec![376 - 24 + 3])]);
    let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.pdu, drop.cause)).collect();
    assert_eq!(drops, [(3, Cause::Integrity)]);
    assert_eq!(play(&spared, "24 bit").departures.len(), 3);
    let trace = play(&ArqConfig { last_try: LastTry::Drop, ..config.clone() }, "0 bit");
    let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.pdu, drop.cause)).collect();
    assert_eq!(drops, [(2, Cause::ChannelError), (3, Cause::ChannelError)]);
    // One repetition is enough.
    let trace = play(&ArqConfig { retransmissions: 1, ..config }, "0 bit");
    assert_eq!((trace.departures.len(), damage(&trace).len()), (3, 0));
}

/// The frame of 1000 bits in slot 0 is hit; slots 3 to 5 have 500 bits, later ones 1000.
#[test]
fn a_repetition_where_fewer_bits_fit_waits_or_is_cut_or_keeps_its_modulation() {
    let radio = || one_bin(&[1000, 500, 500, 500, 500, 500, 1000], &[0]);
    let config = |repeat| ArqConfig { repeat, in_order: false, ..ArqConfig::default() };
    let bits = |trace: &Trace| trace.of_kind(EventKind::FrameSent).iter().map(|event| event.bits).collect::<Vec<_>>();
    // It waits for slot 6; the second packet, of 320 bits, goes ahead.
    let trace = play(&config(Repeat::Hold), &[125, 40], radio());
    assert_eq!((left(&trace), bits(&trace)), (vec![(2, 2), (1, 7)], vec![1000, 500, 1000]));
    let trace = play(&config(Repeat::Resegment), &[125, 40], radio());
    assert_eq!((left(&trace), bits(&trace)), (vec![(2, 2), (1, 5)], vec![1000, 500, 500, 500]));
    let trace = play(&config(Repeat::OwnModulation), &[125, 40], radio());
    assert_eq!((left(&trace), bits(&trace)), (vec![(2, 2), (1, 4)], vec![1000, 500, 1000]));
}

/// The frame of slot 0 is hit and fits again in slot 20. Packet 2 is there at 2 ms.
#[test]
fn what_is_held_for_too_long_is_given_up() {
    static BITS: [u64; 21] = {
        let mut bits = [500; 21];
        (bits[0], bits[20]) = (1000, 1000);
        bits
    };
    let play = |t_reordering| {
        let config = ArqConfig { repeat: Repeat::Hold, t_reordering, ..ArqConfig::default() };
        play(&config, &[125, 40], one_bin(&BITS, &[0]))
    };
    assert_eq!(left(&play(None)), [(1, 21), (2, 21)]);
    assert_eq!(left(&play(Some(span("20 ms")))), [(1, 21), (2, 21)]);
    // A timer runs before what arrives at the instant at which it expires.
    assert_eq!(left(&play(Some(span("19 ms")))), [(2, 21)]);
    let trace = play(Some(span("10 ms")));
    assert_eq!(left(&trace), [(2, 12)]);
    let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.pdu, drop.cause, drop.at)).collect();
    assert_eq!(drops, [(1, Cause::TooLate, ms(22))]);
}

/// A frame of 300 + 300 + 400 bits of three packets is cut to 500 bits, and its second part, hit again, to 400: each
/// part keeps the number of tries of the whole, and packets arrive as they complete.
#[test]
fn parts_of_a_cut_frame_are_frames_of_their_own() {
    // 304 bits each: 304 + 304 + 304 + 88, then 216 of packet 4.
    let radio = || one_bin(&[1000, 216, 216, 500, 500, 500, 500, 400], &[0, 4]);
    let config = ArqConfig { repeat: Repeat::Resegment, in_order: false, retransmissions: 2, ..ArqConfig::default() };
    // Slot 1: the rest of packet 4. Slot 3: 304 + 196, slot 4: 108 + 304 + 88 is hit, slot 7: 400 of it, slot 8: 100.
    let trace = play(&config, &[38; 4], radio());
    assert_eq!(left(&trace), [(1, 4), (2, 8), (3, 9), (4, 9)]);
    // With one retransmission the part of slot 4 is taken as it is: 108 bits of packet 2 and all others are hit.
    let config = ArqConfig { retransmissions: 1, ..config };
    let trace = play(&config, &[38; 4], radio());
    assert_eq!(left(&trace), [(1, 4), (2, 5), (3, 5), (4, 5)]);
    let count = |left: &Departure| (left.id, left.flips.len(), left.flips.first().copied());
    let damage: Vec<_> = trace.departures.iter().map(count).collect();
    assert_eq!(damage, [(1, 0, None), (2, 108, Some(196)), (3, 304, Some(0)), (4, 88, Some(0))]);
}

/// The rates of Alfredsson et al. 2006, Table II: IP packets of 1500 bytes at k bits a symbol, as the sum of columns 3
/// and 4 (payload and headers), in bit/s. The paper's emulator was slower than theory by 0.02 %.
#[test]
fn packets_take_the_frames_of_table_ii() {
    const TABLE: [u64; 8] = [
        156_416 + 4_270,
        312_832 + 8_540,
        460_992 + 12_585,
        625_656 + 17_080,
        761_672 + 20_794,
        921_984 + 25_170,
        1_094_904 + 29_891,
        1_251_320 + 34_161,
    ];
    for (k, measured) in (1u64..).zip(TABLE) {
        let radio: Radio =
            Arc::new(move |_, resource, _| Conditions { bits: if resource == 0 { 108 * k } else { 0 }, quality: None });
        let config = ArqConfig { concatenate: false, ..ArqConfig::default() };
        let trace = play(&config, &[1500; 20], radio);
        let slots = left(&trace).last().unwrap().1;
        let rate = (20 * 12_000 * 1_500) as f64 / slots as f64;
        assert!(
            (rate / measured as f64 - 1.0).abs() < 3e-4,
            "{k} bits a symbol: {rate} bit/s, {measured} in the table"
        );
    }
}

/// Conditions that are a function of a slot's number: any of several lengths, hit or not.
#[derive(Clone, Debug)]
struct Wild {
    lengths: Vec<u64>,
    hits_in_8: u64,
    seed: u64,
}

impl Wild {
    fn radio(&self) -> Radio {
        let Wild { lengths, hits_in_8, seed } = self.clone();
        Arc::new(move |direction, resource, slot| {
            let mut dice = Dice::new(seed ^ (slot << 3 | u64::from(resource) << 1 | direction as u64));
            (0..4).for_each(|_| _ = dice.next());
            let bits = lengths[dice.below(lengths.len() as u64) as usize];
            // What does not fit anywhere would wait for ever: every eighth slot has room.
            let bits = if slot.is_multiple_of(8) { 1000 } else { bits };
            Conditions { bits, quality: quality(dice.below(8) < hits_in_8, resource, slot) }
        })
    }
}

fn any_radio() -> impl Strategy<Value = Wild> {
    let lengths = select(vec![vec![1000], vec![108, 216, 864], vec![0, 40, 500], vec![96, 96, 1000, 8]]);
    (lengths, 0u64..5, any::<u64>()).prop_map(|(lengths, hits_in_8, seed)| Wild { lengths, hits_in_8, seed })
}

proptest! {
    #![proptest_config(cases(300))]

    /// The laws, with every kind of treatment; nothing is lost before the last try, and order is kept where it is
    /// promised.
    #[test]
    fn two_bins_of_changing_length_keep_the_laws(
        wild in any_radio(),
        (retransmissions, delay) in (select(vec![0u16, 1, 3, 1000]), select(vec!["0 ms", "2 ms", "7 ms"])),
        (in_order, concatenate, last_try) in (any::<bool>(), any::<bool>(), select(vec![LastTry::Deliver, LastTry::Drop])),
        limit in select(vec![None, Some("0 ms"), Some("15 ms")]),
        repeat in select(vec![Repeat::Hold, Repeat::Resegment, Repeat::OwnModulation]),
        (buffer, overhead) in (select(vec!["unlimited", "3 packets", "200 B"]), select(vec!["0 bit", "13 bit"])),
        script in script_of(
            (select(vec![PortId::CLIENT, PortId::SERVER]), select(vec![0u32, 1, 5, 40, 125, 296]))
                .prop_map(|(port, len)| Action::Offer { port, len, header_len: 20 })
        ),
        seed in any::<u64>(),
    ) {
        let feedback_delay = span(delay);
        let config = ArqConfig {
            retransmissions, feedback_delay, in_order, concatenate, last_try, repeat, ..ArqConfig::default()
        };
        let t_reordering = limit.filter(|_| in_order).map(span);
        let config = ArqConfig { t_reordering, ..config };
        let link = LinkConfig {
            send_buffer: read(buffer),
            overhead: read(overhead),
            ..arq_link(&config, ErrorsConfig::default())
        };
        let machine = || over_bins(&link, span("1 ms"), wild.radio());
        let trace = check_laws_to(machine, &script, seed, ms(20_000));
        prop_assert_eq!(trace.held, 0);
        for port in [PortId::CLIENT, PortId::SERVER] {
            let ids = trace.ids(port);
            prop_assert!(!in_order || ids.is_sorted(), "{:?}", ids);
            let mut once = ids.clone();
            once.sort_unstable();
            once.dedup();
            prop_assert_eq!(once.len(), ids.len());
        }
        if retransmissions == 1000 && t_reordering.is_none() {
            prop_assert_eq!(trace.of_kind(EventKind::Dropped).len(), 0);
            prop_assert!(trace.departures.iter().all(|left| left.flips.is_empty()));
        }
        if last_try == LastTry::Drop {
            prop_assert!(trace.departures.iter().all(|left| left.flips.is_empty()));
        }
    }
}
