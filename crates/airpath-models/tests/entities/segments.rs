// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Length indicators against the examples of 3GPP TS 44.060, annex B, and against what a reader makes of them.

use airpath_models::entity::rlc::segments::Indicators;

use crate::common::Dice;

const CS1: u32 = 20;
const MCS2: u32 = 28;
const MCS4: u32 = 44;

/// Octets of each PDU, and length indicators.
fn plan(kind: Indicators, room: u32, rests: &[u32], owes: bool, ends: bool) -> (Vec<u32>, Vec<u8>, bool) {
    let plan = kind.plan(room, rests.iter().copied(), owes, ends);
    (plan.takes.to_vec(), plan.indicators.to_vec(), plan.owes)
}

#[test]
fn examples_of_annex_b_for_gprs() {
    let plan = |rests: &[u32], ends| plan(Indicators::Gprs, CS1, rests, false, ends);
    // B.2: the length indicator would not fit beside the last octet.
    assert_eq!(plan(&[20, 99], false), (vec![19], vec![1], false));
    assert_eq!(plan(&[1, 99], false), (vec![1, 18], vec![1 << 2 | 1 << 1 | 1], false));
    // B.3: two PDUs, and nothing behind them.
    assert_eq!(plan(&[7, 11], false), (vec![7, 11], vec![7 << 2 | 1 << 1, 11 << 2 | 1], false));
    // B.4: the middle of a PDU.
    assert_eq!(plan(&[99], false), (vec![20], vec![], false));
    // B.5: the last block of the flow.
    assert_eq!(plan(&[20], true), (vec![20], vec![], false));
    // B.7: the end of a PDU and the beginning of another one.
    assert_eq!(plan(&[10, 99], false), (vec![10, 9], vec![10 << 2 | 1 << 1 | 1], false));
}

#[test]
fn examples_of_annex_b_for_egprs() {
    let plan = |room, rests: &[u32], owes, ends| plan(Indicators::Egprs, room, rests, owes, ends);
    // B.8.1.
    assert_eq!(plan(MCS4, &[11, 26, 99], false, false), (vec![11, 26, 5], vec![11 << 1, 26 << 1 | 1], false));
    // B.8.2: a PDU that fills its block, so that the next one begins with a length of 0.
    assert_eq!(plan(MCS2, &[15, 12, 7], false, false), (vec![15, 12], vec![15 << 1 | 1], true));
    assert_eq!(plan(MCS2, &[7, 18, 6], true, false), (vec![7, 18], vec![0, 7 << 1, 18 << 1 | 1], false));
    assert_eq!(plan(MCS2, &[6, 12], false, true), (vec![6, 12], vec![6 << 1, 12 << 1, 127 << 1 | 1], false));
    // B.8.3 and what is one and two octets shorter.
    assert_eq!(plan(MCS2, &[28], false, true), (vec![28], vec![], false));
    assert_eq!(plan(MCS2, &[27], false, true), (vec![27], vec![27 << 1 | 1], false));
    assert_eq!(plan(MCS2, &[26], false, true), (vec![26], vec![26 << 1, 127 << 1 | 1], false));
}

/// Lengths of the PDUs that end, as a receiver reads them out of `room` octets with these indicators. `open` is what
/// it has of a PDU that goes on.
fn read(kind: Indicators, room: u32, indicators: &[u8], is_last: bool, open: &mut u32, ended: &mut Vec<u32>) {
    let mut left = room - indicators.len() as u32;
    let mut follows = true;
    for (place, octet) in indicators.iter().enumerate() {
        let length = u32::from(if kind == Indicators::Gprs { octet >> 2 } else { octet >> 1 });
        let is_end = octet & 1 == 1;
        assert_eq!(is_end, place + 1 == indicators.len());
        match kind {
            Indicators::Gprs if length == 0 => assert!(is_end),
            Indicators::Egprs if length == 0 => {
                assert_eq!(place, 0);
                ended.push(std::mem::take(open));
            }
            Indicators::Egprs if length == 127 => follows = false,
            _ => {
                left -= length;
                ended.push(std::mem::take(open) + length);
                follows = kind == Indicators::Egprs || octet & 2 == 2;
            }
        }
    }
    if follows {
        *open += left;
        if is_last && left > 0 {
            ended.push(std::mem::take(open));
        }
    }
}

#[test]
fn a_reader_finds_the_lengths_again() {
    let mut dice = Dice::new(44_060);
    let mut blocks = 0;
    for kind in [Indicators::Gprs, Indicators::Egprs] {
        for round in 0..4_000 {
            let room = match kind {
                Indicators::Gprs => [20, 30, 36, 50][dice.below(4) as usize],
                Indicators::Egprs => [22, 28, 37, 44, 56, 68, 74][dice.below(7) as usize],
            };
            // Lengths about those of a block are the hard ones.
            let lengths: Vec<u32> =
                (0..1 + dice.below(6)).map(|_| 1 + dice.below(2 * u64::from(room)) as u32).collect();
            let (mut waiting, mut owes, mut open, mut ended) = (lengths.clone(), false, 0, Vec::new());
            let count = kind.count(room, lengths.iter().copied(), false, true, 1_000).unwrap();
            for block in 1..=count {
                let plan = kind.plan(room, waiting.iter().copied(), owes, true);
                owes = plan.owes;
                assert!(plan.takes.iter().sum::<u32>() + plan.indicators.len() as u32 <= room);
                for take in plan.takes {
                    waiting[0] -= take;
                    if waiting[0] == 0 {
                        waiting.remove(0);
                    }
                }
                assert_eq!(waiting.is_empty(), block == count, "{kind:?} {room} {lengths:?}");
                read(kind, room, &plan.indicators, block == count, &mut open, &mut ended);
                blocks += 1;
            }
            assert_eq!(ended, lengths, "{kind:?} {room}, round {round}");
            assert_eq!(kind.count(room, lengths.iter().copied(), false, true, count - 1), None);
        }
    }
    assert!(blocks > 20_000);
}
