// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Whole simulations: a case by hand, and what holds for every input and trace.

use std::sync::Arc;

use airpath_core::{Direction, DrawKey, DrawScope, Seed};
use airpath_models::channel::trace_file::ErrorTrace;
use airpath_models::file::FileFormat;
use proptest::prelude::*;

use super::*;

/// Parameters of a simulation.
#[derive(Clone, Debug)]
struct Case {
    adu_bytes: usize,
    protocol: Protocol,
    coverage_bytes: Option<u32>,
    headers: Headers,
    dropped: Dropped,
    within: Within,
    unit: TraceUnit,
}

impl Case {
    fn new(adu_bytes: usize, protocol: Protocol) -> Case {
        Case {
            adu_bytes,
            protocol,
            coverage_bytes: None,
            headers: Headers::Thesis,
            dropped: Dropped::Skip,
            within: Within::All,
            unit: TraceUnit::Block,
        }
    }

    /// Output, list of positions and counts.
    fn run(&self, input: &[u8], trace: &str) -> Result<(Vec<u8>, String, Statistics), SimulationError> {
        let scope = DrawScope { hop: "radio", direction: Direction::Uplink, role: "damage", instance: 0 };
        let trace = Arc::new(ErrorTrace::parse(trace.as_bytes()).unwrap());
        let damager = Damager::new(self.within, THESIS_BLOCK_DATA_BYTES, DrawKey::new(Seed(9), &scope));
        let elements = Elements::of_trace(trace, 0, false);
        let mut radio = Radio::new(self.unit, THESIS_BLOCK_DATA_BYTES, elements, damager);
        let receiver = Receiver { headers: self.headers, protocol: self.protocol, coverage_bytes: self.coverage_bytes };
        let (mut out, mut list) = (Vec::new(), Vec::new());
        let positions = Positions::new(Some(&mut list)).unwrap();
        let mut adus = Adus::new(input, Units::Fixed, self.adu_bytes);
        let counts = simulate(&mut adus, &mut radio, &receiver, self.dropped, &mut out, positions, &mut |_| {})?;
        Ok((out, String::from_utf8(list).unwrap(), counts))
    }
}

/// ADUs of 30 bytes are packets of 72, of three blocks: bytes 0 to 27, 28 to 55 and 56 to 71 of the packet. The ADU
/// is bytes 42 to 71. The input of 130 bytes is five ADUs, the last of 10 bytes, whose packet of 52 has two blocks.
const BY_HAND: &str = "000 100 010 001 01";

fn by_hand(protocol: Protocol) -> (Vec<u8>, Vec<u8>, String, Statistics) {
    let input: Vec<u8> = (0..130).collect();
    let (out, list, counts) = Case::new(30, protocol).run(&input, BY_HAND).unwrap();
    (input, out, list, counts)
}

#[test]
fn udp_by_hand() {
    let (input, out, list, counts) = by_hand(Protocol::Udp);
    assert_eq!(out, input[..30]);
    assert_eq!(list, "offset_bytes,length_bytes,kind\n30,30,missing\n30,30,missing\n30,30,missing\n30,10,missing\n");
    let expected = Statistics {
        input_bytes: 130,
        output_bytes: 30,
        blocks: 14,
        damaged_blocks: 4,
        elements: 14,
        packets: 5,
        dropped_packets: 4,
        // Bytes 0, 28, 56 and 28 of the packets: PPP, the UDP header (27 to 34), the ADU, the UDP header.
        dropped_by: statistics::DroppedBy { ppp: 1, ip: 0, udp: 2, rtp: 0, payload: 1 },
        dropped_bytes: 100,
        whole_adus: 1,
        damaged_adus: 0,
        damaged_bytes: 0,
        // 72 bytes need 3 blocks of 24, 52 need 3.
        standard_blocks: 15,
    };
    assert_eq!(counts, expected);
    assert_eq!((counts.loss(), counts.block_error_rate()), (Some(0.8), Some(4.0 / 14.0)));
}

#[test]
fn udp_lite_by_hand() {
    let (input, out, list, counts) = by_hand(Protocol::UdpLite);
    // The fourth packet's third block: bytes 56 to 71, the ADU's from 14 on.
    assert_eq!((&out[..30], &out[30..44]), (&input[..30], &input[90..104]));
    assert_eq!(out.len(), 60);
    assert!(out[44..].iter().zip(&input[104..120]).all(|(one, other)| one != other), "each damaged byte is another");
    assert_eq!(list, "offset_bytes,length_bytes,kind\n30,30,missing\n30,30,missing\n44,16,damaged\n60,10,missing\n");
    assert_eq!((counts.packets, counts.dropped_packets, counts.dropped_bytes), (5, 3, 70));
    assert_eq!((counts.whole_adus, counts.damaged_adus, counts.damaged_bytes), (1, 1, 16));
    assert_eq!(counts.dropped_by, statistics::DroppedBy { ppp: 1, udp: 2, ..Default::default() });
}

#[test]
fn flips_of_a_trace_are_exact_to_the_bit() {
    // ADUs of 14 bytes are packets of two blocks, the second of which is the ADU.
    let mut case = Case::new(14, Protocol::UdpLite);
    let trace = "ok 2\nok\nflipped 112 120-121\nflipped 0\nok\n";
    case.dropped = Dropped::Zeros;
    let (out, list, counts) = case.run(&[0xff; 42], trace).unwrap();
    let mut expected = vec![0xff; 42];
    // Bit 112 of the block is the first of its byte 14, the ADU's byte 0.
    expected[14] = 0x7f;
    expected[15] = 0x3f;
    expected[28..].fill(0);
    assert_eq!(out, expected);
    assert_eq!(list, "offset_bytes,length_bytes,kind\n14,2,damaged\n28,14,zeros\n");
    assert_eq!((counts.damaged_bytes, counts.dropped_bytes, counts.output_bytes), (2, 14, 42));
}

#[test]
fn a_trace_of_bytes_damages_these_bytes() {
    let mut case = Case::new(3, Protocol::UdpLite);
    case.unit = TraceUnit::Byte;
    let trace = format!("{}010\n{}\n{}1000\n", "0".repeat(42), "0".repeat(45), "0".repeat(41));
    let (out, _, counts) = case.run(b"abcdefghi", &trace).unwrap();
    // The second byte of the first ADU; the last of the RTP header of the third packet.
    assert_eq!((out.len(), out[0], &out[2..]), (6, b'a', &b"cdef"[..]));
    assert_ne!(out[1], b'b');
    assert_eq!((counts.elements, counts.blocks, counts.damaged_blocks), (135, 6, 2));
    assert_eq!((counts.dropped_by.rtp, counts.damaged_bytes), (1, 1));
}

#[test]
fn a_trace_that_ends_early_is_told_with_what_the_input_needs() {
    let input = [0; 130];
    for (trace, needed) in [("000 000 000 000 0", Some(14)), ("0", Some(14)), ("000 000 000 000 00", None)] {
        match (Case::new(30, Protocol::Udp).run(&input, trace), needed) {
            (Err(SimulationError::TraceEnded { needed: found }), Some(needed)) => assert_eq!(found, needed),
            (Ok((out, ..)), None) => assert_eq!(out, input),
            (other, _) => panic!("{trace}: {other:?}"),
        }
    }
}

#[test]
fn an_empty_input_gives_an_empty_output() {
    let (out, list, counts) = Case::new(30, Protocol::Udp).run(&[], "0").unwrap();
    assert_eq!((out.len(), list.lines().count()), (0, 1));
    assert_eq!((counts, counts.loss()), (Statistics::default(), None));
}

/// Cases of every kind, an input, and a trace that is long enough.
fn cases() -> impl Strategy<Value = (Case, Vec<u8>, String)> {
    let dropped = prop_oneof![Just(Dropped::Skip), Just(Dropped::Zeros)];
    let headers = prop_oneof![Just(Headers::Thesis), Just(Headers::Real)];
    let within = prop_oneof![Just(Within::All), (0.01..1.0).prop_map(Within::Share)];
    let unit = prop_oneof![3 => Just(TraceUnit::Block), 1 => Just(TraceUnit::Byte)];
    let coverage_bytes = prop_oneof![Just(None), Just(Some(0)), (8u32..200).prop_map(Some)];
    let parts = (1..200usize, coverage_bytes, headers, dropped, within, unit);
    let input = prop::collection::vec(any::<u8>(), 0..1_000);
    (parts, input, 0.0..0.3, any::<u64>()).prop_map(|(parts, input, rate, seed)| {
        let (adu_bytes, coverage_bytes, headers, dropped, within, unit) = parts;
        let case = Case { adu_bytes, protocol: Protocol::UdpLite, coverage_bytes, headers, dropped, within, unit };
        let packets = input.len().div_ceil(adu_bytes);
        let units = packets * (headers.bytes() + adu_bytes) + 1;
        let key =
            DrawKey::new(Seed(seed), &DrawScope { hop: "t", direction: Direction::Uplink, role: "trace", instance: 0 });
        let digits = (0..units as u64).map(|step| if key.unit(step, 0) < rate { '1' } else { '0' });
        (case, input, digits.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn udp_lite_delivers_never_less_than_udp((lite, input, trace) in cases()) {
        let udp = Case { protocol: Protocol::Udp, coverage_bytes: None, ..lite.clone() };
        let (_, _, udp) = udp.run(&input, &trace).unwrap();
        let (_, _, covered) = Case { coverage_bytes: Some(0), ..lite.clone() }.run(&input, &trace).unwrap();
        let (_, _, some) = lite.run(&input, &trace).unwrap();
        let (_, _, headers) = Case { coverage_bytes: None, ..lite.clone() }.run(&input, &trace).unwrap();
        prop_assert!(udp.dropped_packets >= covered.dropped_packets);
        prop_assert!(covered.dropped_packets >= some.dropped_packets);
        prop_assert!(some.dropped_packets >= headers.dropped_packets);
        prop_assert_eq!(udp.damaged_adus, 0);
        if lite.headers == Headers::Thesis {
            prop_assert_eq!(udp.dropped_packets, covered.dropped_packets);
        }
        // The same blocks are damaged, whatever the protocol makes of them.
        prop_assert_eq!((udp.blocks, udp.damaged_blocks), (headers.blocks, headers.damaged_blocks));
    }

    #[test]
    fn every_packet_and_byte_is_accounted_for((case, input, trace) in cases()) {
        for protocol in [Protocol::Udp, Protocol::UdpLite] {
            let coverage_bytes = case.coverage_bytes.filter(|_| protocol == Protocol::UdpLite);
            let case = Case { protocol, coverage_bytes, ..case.clone() };
            let (out, list, counts) = case.run(&input, &trace).unwrap();
            prop_assert_eq!(counts.packets as usize, input.len().div_ceil(case.adu_bytes));
            prop_assert_eq!(counts.packets, counts.dropped_packets + counts.whole_adus + counts.damaged_adus);
            let by = counts.dropped_by;
            prop_assert_eq!(counts.dropped_packets, by.ppp + by.ip + by.udp + by.rtp + by.payload);
            prop_assert_eq!(counts.output_bytes as usize, out.len());
            let gone = if case.dropped == Dropped::Skip { counts.dropped_bytes } else { 0 };
            prop_assert_eq!(counts.input_bytes, counts.output_bytes + gone);
            // The list and the input give the output, but for the values of damaged bytes.
            let (mut expected, mut taken) = (Vec::new(), 0);
            let mut damaged = vec![false; out.len()];
            for line in list.lines().skip(1) {
                let [offset, length, kind] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
                let (offset, length): (usize, usize) = (offset.parse().unwrap(), length.parse().unwrap());
                let before = offset - expected.len();
                expected.extend(&input[taken..taken + before]);
                taken += before;
                match kind {
                    "missing" => taken += length,
                    "zeros" => {
                        expected.extend(vec![0; length]);
                        taken += length;
                    }
                    _ => damaged[offset..offset + length].fill(true),
                }
            }
            expected.extend(&input[taken..]);
            prop_assert_eq!(expected.len(), out.len());
            for ((found, expected), damaged) in out.iter().zip(&expected).zip(&damaged) {
                prop_assert_eq!(found != expected, *damaged);
            }
            prop_assert_eq!(damaged.iter().filter(|damaged| **damaged).count() as u64, counts.damaged_bytes);
        }
    }
}
