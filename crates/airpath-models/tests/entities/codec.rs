// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames of RLP as octets, against frames that others have published.

use airpath_models::entity::rlp::codec::{
    decode_frame, decode_xid, encode_frame, encode_xid, frame_check_sequence, modulus,
};
use airpath_models::entity::rlp::header::{Body, Header, Supervision, Unnumbered};
use airpath_models::entity::rlp::xid::Xid;

use crate::common::Dice;

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

const NOTHING: Xid = Xid { version: 0, window_to_mobile: 0, window_from_mobile: 0, t1: 0, n2: 0, t2: 0 };

/// Frames that mobile phones sent, from the test vectors of libosmocore (tests/rlp).
#[test]
fn published_frames_are_read_and_written_alike() {
    let zeros = "00".repeat(25);
    let unnumbered = |kind, command| Header::unnumbered(kind, command, true);
    let information =
        |nr| Header { command: true, poll_final: false, body: Body::Information { kind: Supervision::Rr, ns: 0, nr } };
    let frames = [
        ("f91f", zeros.as_str(), "63b2f3", unnumbered(Unnumbered::Sabm, true)),
        ("f833", &zeros, "29d801", unnumbered(Unnumbered::Ua, false)),
        ("f923", &zeros, "7986f2", unnumbered(Unnumbered::Disc, true)),
        ("0100", "1f000000000000000000000000000000000000000000000000", "f174ad", information(0)),
        ("0104", "01661fffffffffffffffffffffffffffffffffffffffffffff", "388cd3", information(1)),
        ("f95f", "1100213d313d414e6108510600000000000000000000000000", "c13c6b", unnumbered(Unnumbered::Xid, true)),
        ("f95f", "1101213d313d41305106610774000008060000000000000000", "ba14a0", unnumbered(Unnumbered::Xid, true)),
    ];
    for (head, body, fcs, header) in frames {
        let frame = octets(&[head, body, fcs].concat());
        assert_eq!(decode_frame(&frame, 0), Some((header, octets(body).as_slice())), "{head} {body}");
        assert_eq!(encode_frame(header, 0, &octets(body), 30), frame);
    }
    let read = |body: &str| decode_xid(&octets(body), NOTHING);
    let first = Xid { version: 0, window_to_mobile: 61, window_from_mobile: 61, t1: 78, n2: 6, t2: 8 };
    assert_eq!(read("1100213d313d414e61085106000000"), Some(first));
    // Compression, which comes last, is skipped.
    assert_eq!(read("1101213d313d4130510661077400000806"), Some(Xid { version: 1, t1: 48, t2: 7, ..first }));
    assert_eq!(read("1100213d31"), None, "a field that ends behind the frame");
}

#[test]
fn every_header_comes_back() {
    let supervisions = [Supervision::Rr, Supervision::Rnr, Supervision::Rej, Supervision::Srej];
    let unnumbered = (0..32).filter_map(Unnumbered::of).map(Body::Unnumbered).collect::<Vec<_>>();
    assert_eq!(unnumbered.len(), 9);
    for version in 0..=2 {
        let numbers = || 0..modulus(version);
        let supervisory =
            supervisions.iter().flat_map(|kind| numbers().map(|nr| Body::Supervisory { kind: *kind, nr }));
        let information = numbers().map(|ns| {
            let nr = (ns * 7 + 3) % modulus(version);
            Body::Information { kind: supervisions[usize::from(ns % 4)], ns, nr }
        });
        for body in unnumbered.iter().copied().chain(supervisory).chain(information) {
            for (command, poll_final) in [(false, false), (false, true), (true, false), (true, true)] {
                let header = Header { command, poll_final, body };
                let frame = encode_frame(header, version, &[1, 2, 3], 30);
                assert_eq!(frame.len(), 30);
                let (read, information) = decode_frame(&frame, version).unwrap();
                assert_eq!((read, &information[..3]), (header, [1, 2, 3].as_slice()), "version {version}");
            }
        }
    }
    let xid = Xid { version: 2, window_to_mobile: 480, window_from_mobile: 300, t1: 200, n2: 9, t2: 12 };
    assert_eq!(decode_xid(&encode_xid(&xid), NOTHING), Some(xid));
    assert_eq!(Xid::from_word(xid.to_word()), xid);
}

/// Headers of version 2, written out by hand in the order of TS 24.022, clause 4.2, the low-order bit of each field
/// first: C/R, S1, S2, nine bits of N(S), P/F, nine bits of N(R), the L2R status bit and the upgrading proposal (UP).
/// The last two change nothing for this end.
#[test]
fn frames_of_version_2_made_by_hand_are_read() {
    // N(S) 130 is 2 * 62 + 6: low six bits 6, high three bits 2. N(R) 61 is 61 and 0.
    let information = ["1", "00", "011000", "010", "0", "101111", "000"].concat();
    let body = Body::Information { kind: Supervision::Rr, ns: 130, nr: 61 };
    // RNR is 10, REJ 01, SREJ 11. An S frame has 62 in the low bits of N(S), and anything above.
    let busy = ["0", "10", "011111", "000", "1", "000000", "111"].concat();
    let busy_body = Body::Supervisory { kind: Supervision::Rnr, nr: 7 * 62 };
    let missing = ["1", "11", "011111", "101", "0", "100000", "100"].concat();
    let missing_body = Body::Supervisory { kind: Supervision::Srej, nr: 62 + 1 };
    let cases =
        [(information, true, false, body), (busy, false, true, busy_body), (missing, true, false, missing_body)];
    for (bits, command, poll_final, body) in cases {
        let header = Header { command, poll_final, body };
        for last in ["00", "10", "01", "11"] {
            let all: Vec<u8> = [bits.as_str(), last].concat().bytes().map(|bit| bit - b'0').collect();
            assert_eq!(all.len(), 24);
            let mut frame: Vec<u8> =
                all.chunks(8).map(|octet| octet.iter().rev().fold(0, |sum, bit| sum << 1 | bit)).collect();
            frame.extend((0..24).map(|octet| octet * 7));
            let fcs = frame_check_sequence(&frame);
            frame.extend_from_slice(&fcs.to_le_bytes()[..3]);
            assert_eq!(decode_frame(&frame, 2), Some((header, &frame[3..27])), "{bits} {last}");
            // What this end sends has no status octet and proposes nothing.
            let same = encode_frame(header, 2, &frame[3..27], 30) == frame;
            assert_eq!(same, last == "00" && !matches!(body, Body::Supervisory { kind: Supervision::Srej, .. }));
        }
    }
}

/// The generator has degree 24 and an even number of terms: any one to three errors, and every burst of up to 24
/// bits, are noticed.
#[test]
fn errors_are_noticed() {
    let mut dice = Dice::new(5);
    let header = Header { command: true, poll_final: false, body: Body::Supervisory { kind: Supervision::Rr, nr: 17 } };
    let information: Vec<u8> = (0..25).map(|_| dice.next() as u8).collect();
    let frame = encode_frame(header, 0, &information, 30);
    let flipped = |bits: &[u64]| {
        let mut frame = frame.clone();
        bits.iter().for_each(|bit| frame[(*bit / 8) as usize] ^= 1 << (bit % 8));
        frame
    };
    for bit in 0..240 {
        assert_eq!(decode_frame(&flipped(&[bit]), 0), None);
    }
    for _ in 0..2_000 {
        let (one, two, three) = (dice.below(240), dice.below(240), dice.below(240));
        if one != two {
            assert_eq!(decode_frame(&flipped(&[one, two]), 0), None);
        }
        if one != two && two != three && one != three {
            assert_eq!(decode_frame(&flipped(&[one, two, three]), 0), None);
        }
        let start = dice.below(217);
        let burst: Vec<u64> = (start..start + 24).filter(|_| dice.below(2) == 1).collect();
        if !burst.is_empty() {
            assert_eq!(decode_frame(&flipped(&burst), 0), None);
        }
    }
    assert_eq!(decode_frame(&[], 0), None);
    assert_eq!(decode_frame(&[0; 3], 0), None);
}
