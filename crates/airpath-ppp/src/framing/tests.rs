// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

use proptest::prelude::*;

use super::*;

type Read = Vec<Result<(u16, Vec<u8>), FramingError>>;

fn read(deframer: &mut Deframer, bytes: &[u8]) -> Read {
    bytes.iter().filter_map(|byte| deframer.push(*byte)).collect()
}

/// The first frame of Debian's pppd with `asyncmap 0`, made by hand from RFC
/// 1662 (escapes) and RFC 1661 (Configure-Request of an empty option list).
#[test]
fn frame_is_escaped_as_the_rfc_says() {
    let mut line = Vec::new();
    Framer::new(Fcs::Bits16).write(0xc021, &[1, 1, 0, 4], &mut line);
    assert_eq!(line[..13], [0x7e, 0xff, 0x7d, 0x23, 0xc0, 0x21, 0x7d, 0x21, 0x7d, 0x21, 0x7d, 0x20, 0x7d]);
    let mut deframer = Deframer::new(Fcs::Bits16, 1500);
    assert_eq!(read(&mut deframer, &line), [Ok((0xc021, vec![1, 1, 0, 4]))]);
}

#[test]
fn what_is_no_frame_is_named() {
    let mut deframer = Deframer::new(Fcs::Bits16, 10);
    assert_eq!(read(&mut deframer, &[0x7e; 1000]), []);
    assert_eq!(read(&mut deframer, &[1, 2, 0x7e]), [Err(FramingError::Runt)]);
    assert_eq!(read(&mut deframer, &[1, 2, 3, 4, 5, 0x7d, 0x7e]), [Err(FramingError::Aborted)]);
    assert_eq!(read(&mut deframer, &[1, 2, 3, 4, 5, 6, 0x7e]), [Err(FramingError::BadSequence)]);
    assert_eq!(read(&mut deframer, &[[9; 5000].as_slice(), &[0x7e]].concat()), [Err(FramingError::Giant)]);
    let mut frame = vec![0xff, 3, 0, 0];
    Fcs::Bits16.append(&mut frame);
    frame.push(FLAG);
    assert_eq!(read(&mut deframer, &frame), [Err(FramingError::BadHeader)]);
}

#[test]
fn characters_that_the_line_inserts_are_ignored() {
    let mut deframer = Deframer::new(Fcs::Bits16, 1500);
    deframer.character_map = DEFAULT_CHARACTER_MAP;
    let mut line = Vec::new();
    Framer::new(Fcs::Bits16).write(0x21, &[0x11, 0x13, 0x45], &mut line);
    let line: Vec<u8> = line.iter().flat_map(|byte| [*byte, 0x11]).collect();
    assert_eq!(read(&mut deframer, &line), [Ok((0x21, vec![0x11, 0x13, 0x45]))]);
}

proptest! {
    #[test]
    fn frames_come_back_whatever_noise_was_before(
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        information in proptest::collection::vec(any::<u8>(), 1..300),
        wide in any::<bool>(), address in any::<bool>(), short in any::<bool>(), map in any::<u32>(),
        protocol in prop_oneof![Just(0x21_u16), Just(0x57), Just(0x8021), Just(0xc223)],
    ) {
        let fcs = if wide { Fcs::Bits32 } else { Fcs::Bits16 };
        let framer = Framer { fcs, character_map: map, compresses_address: address, compresses_protocol: short };
        let mut deframer = Deframer::new(fcs, 300);
        let mut line = noise;
        framer.write(protocol, &information, &mut line);
        prop_assert_eq!(read(&mut deframer, &line).pop(), Some(Ok((protocol, information))));
    }
}
