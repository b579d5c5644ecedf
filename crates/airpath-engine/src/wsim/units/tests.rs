// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Streams of every kind, cut into ADUs.

use std::io::Read;

use proptest::prelude::*;

use super::*;

/// An input that gives few bytes at a time.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.len().min(self.1).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn split(bytes: &[u8], units: Units, most: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut all = Vec::new();
    for at_once in [usize::MAX, 7] {
        let mut adus = Adus::new(Slow(bytes, at_once), units, most);
        let mut found = Vec::new();
        while let Some(adu) = adus.next().map_err(|error| match error {
            ReadError::Malformed(what) => what,
            ReadError::Read(error) => panic!("{error}"),
        })? {
            assert!((1..=most).contains(&adu.len()));
            found.push(adu.to_vec());
        }
        assert_eq!(found.concat(), bytes, "together they are the input");
        all.push(found);
    }
    assert_eq!(all[0], all[1], "reads of any length give the same");
    Ok(all.remove(0))
}

fn lengths(bytes: &[u8], units: Units, most: usize) -> Vec<usize> {
    split(bytes, units, most).unwrap().iter().map(Vec::len).collect()
}

#[test]
fn fixed_sizes_but_for_the_last() {
    assert_eq!(lengths(&[1; 10], Units::Fixed, 4), [4, 4, 2]);
    assert_eq!(lengths(&[1; 8], Units::Fixed, 4), [4, 4]);
    assert_eq!(lengths(&[], Units::Fixed, 4), [0; 0]);
    assert_eq!(lengths(&vec![1; 700_000], Units::Fixed, 65_500).len(), 11);
}

#[test]
fn nal_units_begin_at_start_codes() {
    let stream = b"\0\0\0\x01\x67ab\0\0\x01\x68c\0\0\0\0\x01\x65defghi\0\0\x02\0\0\x01\x41";
    for units in [Units::H264, Units::H265] {
        let found = split(stream, units, 100).unwrap();
        // Of four zeros the first ends the unit before.
        let expected: [&[u8]; 4] =
            [b"\0\0\0\x01\x67ab", b"\0\0\x01\x68c\0", b"\0\0\0\x01\x65defghi\0\0\x02", b"\0\0\x01\x41"];
        assert_eq!(found, expected);
        // Fragments: the longer units are cut, and units do not share an ADU.
        assert_eq!(lengths(stream, units, 5), [5, 2, 5, 1, 5, 5, 4, 4]);
        assert_eq!(lengths(stream, units, 7), [7, 6, 7, 7, 4]);
        assert_eq!(lengths(stream, units, 1), vec![1; stream.len()]);
    }
    // Zeros before the first start code belong to the first unit.
    assert_eq!(lengths(b"\0\0\0\0\0\x01\x67\0\0\x01\x68", Units::H264, 100), [7, 4]);
    assert_eq!(lengths(b"\0\0\x01\0\0\x01\0\0\x01", Units::H264, 100), [3, 3, 3]);
}

#[test]
fn pictures_and_groups_of_blocks_of_h263() {
    let stream = b"\0\0\x80\x02abc\0\0\x84d\0\0\x04e\0\0\0\x88f\0\0\xfc";
    let found = split(stream, Units::H263, 100).unwrap();
    let expected: [&[u8]; 4] = [b"\0\0\x80\x02abc", b"\0\0\x84d\0\0\x04e\0", b"\0\0\x88f", b"\0\0\xfc"];
    assert_eq!(found, expected);
    assert_eq!(lengths(stream, Units::H263, 5), [5, 2, 5, 4, 4, 3]);
}

/// An OBU with a payload of that many bytes and a size of `leb128`.
fn obu(kind: u8, leb128: &[u8], payload: usize) -> Vec<u8> {
    [&[kind << 3 | 2], leb128, &vec![0xee; payload][..]].concat()
}

fn temporal_unit() -> Vec<Vec<u8>> {
    let with_extension = [&[6 << 3 | 6, 0x20, 3][..], &[1, 2, 3]].concat();
    vec![obu(2, &[0], 0), obu(1, &[5], 5), with_extension, obu(6, &[0xac, 0x02], 300)]
}

#[test]
fn obus_have_their_sizes() {
    let units = temporal_unit();
    let stream = [units.concat(), units.concat()].concat();
    assert_eq!(split(&stream, Units::Obu, 1_000).unwrap(), [&units[..], &units[..]].concat());
    assert_eq!(lengths(&units.concat(), Units::Obu, 200), [2, 7, 6, 200, 103]);
    // A unit that is cut short by the end is one.
    assert_eq!(lengths(&stream[..14], Units::Obu, 100), [2, 7, 5]);
    assert_eq!(lengths(&stream[..10], Units::Obu, 100), [2, 7, 1]);
}

#[test]
fn headers_of_ivf_belong_to_the_unit_behind_them() {
    let units = temporal_unit();
    let frame = |content: &[u8]| [&(content.len() as u32).to_le_bytes()[..], &[9; 8], content].concat();
    let mut head = vec![0; 32];
    head[..4].copy_from_slice(b"DKIF");
    head[8..12].copy_from_slice(b"AV01");
    // The last OBU of a frame need not have a size.
    let stream = [head.clone(), frame(&units.concat()), frame(&[0x12, 0, 0x30, 7, 7]), frame(&[])].concat();
    assert_eq!(lengths(&stream, Units::Obu, 1_000), [32 + 12 + 2, 7, 6, 303, 12 + 2, 3, 12]);
    assert_eq!(lengths(&stream[..stream.len() - 15], Units::Obu, 1_000), [46, 7, 6, 303, 14]);
    let short = [head.clone(), frame(&[0x12, 0, 0x32, 9, 1])].concat();
    let error = split(&short, Units::Obu, 1_000).unwrap_err();
    assert_eq!(error, "byte 46: an OBU of 11 bytes is longer than its frame in IVF, 3");
    head[8..12].copy_from_slice(b"VP80");
    assert_eq!(split(&head, Units::Obu, 9).unwrap_err(), "byte 0: this IVF is not of AV1: its codec is not AV01");
}

#[test]
fn a_video_that_is_none_is_told_with_what_was_looked_for() {
    for (units, bytes, said) in [
        (Units::H264, &b"abcdef\0\0\x01"[..], "H.264 with start codes (Annex B) begins with 00 00 01 or 00 00 00 01"),
        (Units::H264, b"", "it is empty"),
        (Units::H265, b"\0\x01", "it begins with 00 01"),
        (Units::H263, b"\0\0\x84", "a picture start code, 00 00 and 80 to 83, and it begins with 00 00 84"),
        (Units::H263, b"\0\0", "there is no start code"),
        (Units::Obu, b"\x0a\x01a", "begins with a temporal delimiter (12 00), IVF with DKIF, and it begins with 0a"),
        (Units::Obu, b"", "it is empty"),
        (Units::Obu, b"\x12\0\x8a\0", "byte 2: this is no OBU: the forbidden bit of 8a is set"),
        (Units::Obu, b"\x12\0\x08\0", "byte 2: an OBU has no size"),
        (Units::Obu, b"\x12\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x01", "byte 2: this is no OBU: its size has no end"),
        (Units::Obu, b"\x12\0\x0a\xff\xff\xff\xff\x7f", "byte 2: this is no OBU: its size would be 34359738367 bytes"),
    ] {
        let error = split(bytes, units, 100).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

/// Streams of pieces that splitters look for, in any order.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        4 => prop::collection::vec(0u8..4, 0..8),
        1 => Just(b"\0\0\x01".to_vec()),
        1 => Just(b"\0\0\0\x01".to_vec()),
        1 => Just(b"\0\0\x80".to_vec()),
        1 => Just(b"\x12\0".to_vec()),
        1 => Just(b"\x0a\x05abcde".to_vec()),
        1 => Just([b"DKIF\0\0\x20\0AV01", &[0; 20][..], b"\x05\0\0\0........"].concat()),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// The places at which NAL units begin, looked for one by one.
fn begins_of_nal_units(stream: &[u8]) -> Vec<usize> {
    let first = stream.iter().position(|byte| *byte != 0).unwrap_or(0);
    let is_code = |at: usize| at > first && stream[at..].starts_with(&[0, 0, 1]);
    let with_zero = |at: usize| if at > first + 1 && stream[at - 1] == 0 { at - 1 } else { at };
    (0..stream.len()).filter(|at| is_code(*at)).map(with_zero).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// `split` holds that ADUs are of their size, and together the input.
    #[test]
    fn any_stream_is_split_or_refused(stream in streams(), most in 1usize..50) {
        for units in [Units::H264, Units::H263, Units::Obu] {
            for begin in [&b""[..], b"\0\0\x01", b"\0\0\x80", b"\x12\0"] {
                let _ = split(&[begin, &stream].concat(), units, most);
            }
        }
    }

    #[test]
    fn nal_units_are_those_of_a_search_at_every_place(stream in streams(), most in 1usize..50) {
        let stream = [b"\0\0\x01", &stream[..]].concat();
        let mut expected = Vec::new();
        let mut begins = begins_of_nal_units(&stream);
        begins.push(stream.len());
        let mut from = 0;
        for begin in begins {
            expected.extend(stream[from..begin].chunks(most).map(<[u8]>::to_vec));
            from = begin;
        }
        prop_assert_eq!(split(&stream, Units::H264, most).unwrap(), expected);
    }
}
