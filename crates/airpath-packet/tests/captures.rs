// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Captures are read as they were written, in either byte order; torn and damaged ones are told apart,
//! and neither costs more memory than the file has bytes.

use airpath_packet::capture::pcapng::{self, LINKTYPE_RAW, OPTION_COMMENT, PACKET_ID};
use airpath_packet::capture::{
    Block, BlockReader, CaptureError, CaptureProblem, Format, MOST_BYTES, PcapReader, Record, write,
};
use proptest::prelude::*;

/// A section, an interface in nanoseconds and one packet: 28 + 32 + 40 bytes, after the format's draft.
const BY_HAND: &[u8] = &[
    0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, // kind, length, order, version
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0, // length of the section, length
    1, 0, 0, 0, 32, 0, 0, 0, 101, 0, 0, 0, 96, 0, 0, 0, // kind, length, link type, snap length
    9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, // resolution, end of options, length
    6, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, // kind, length, interface, stamp
    5, 0, 0, 0, 99, 0, 0, 0, 0x45, 1, 2, 3, 4, 0, 0, 0, 40, 0, 0, 0, // kept, length, bytes, padding, length
];

/// `bytes` with all words (and the half words of options and interfaces) in the other order.
fn swapped() -> Vec<u8> {
    let mut bytes = BY_HAND.to_vec();
    for word in bytes.chunks_mut(4) {
        word.reverse();
    }
    // Version, link type and the option's code and length are half words; values have no order.
    bytes[12..16].copy_from_slice(&[0, 1, 0, 0]);
    bytes[36..40].copy_from_slice(&[0, 101, 0, 0]);
    bytes[44..48].copy_from_slice(&[0, 9, 0, 1]);
    bytes[48..52].copy_from_slice(&[9, 0, 0, 0]);
    bytes[88..96].copy_from_slice(&BY_HAND[88..96]);
    bytes
}

fn blocks(bytes: &[u8]) -> Result<Vec<Block>, CaptureError> {
    let mut reader = BlockReader::new(bytes, MOST_BYTES);
    let mut all = Vec::new();
    loop {
        let mut block = Block::default();
        if !reader.read(&mut block)? {
            assert_eq!(reader.next_place().offset, bytes.len() as u64);
            return Ok(all);
        }
        all.push(block);
    }
}

#[test]
fn what_is_written_by_hand_is_read_in_either_order() {
    for bytes in [BY_HAND.to_vec(), swapped()] {
        assert_eq!(Format::of(*bytes.first_chunk().unwrap()), Some(Format::Pcapng));
        let all = blocks(&bytes).unwrap();
        assert_eq!(all.iter().map(|block| block.place().offset).collect::<Vec<_>>(), [0, 28, 60]);
        let interface = all[1].interface().unwrap().unwrap();
        assert_eq!((interface.link_type, interface.snaplen, interface.name), (LINKTYPE_RAW, 96, None));
        assert_eq!(interface.resolution.unix_ns(7), Some(7));
        let packet = all[2].packet().unwrap().unwrap();
        assert_eq!((packet.interface, packet.ticks, packet.length), (0, (1 << 32) + 2, 99));
        assert_eq!((packet.bytes, packet.options.count()), (&[0x45, 1, 2, 3, 4][..], 0));
        assert!(all[0].packet().unwrap().is_none() && all[2].interface().unwrap().is_none());
    }
}

#[test]
fn what_is_written_is_what_the_format_says() {
    let mut bytes = Vec::new();
    write::section(&mut bytes, |_| {});
    write::interface(&mut bytes, LINKTYPE_RAW, 96, |out| write::option(out, pcapng::INTERFACE_RESOLUTION, &[9]));
    write::packet(&mut bytes, 0, (1 << 32) + 2, 99, &[0x45, 1, 2, 3, 4], |_| {});
    let all = blocks(&bytes).unwrap();
    let by_hand = blocks(BY_HAND).unwrap();
    // The writer ends every list of options, also an empty one.
    assert_eq!(all[0].body(), [by_hand[0].body(), &[0; 4]].concat());
    assert_eq!(all[1].body(), by_hand[1].body());
    assert_eq!(all[2].body(), [by_hand[2].body(), &[0; 4]].concat());
}

#[test]
fn stamps_are_changed_in_place_and_nothing_else() {
    for bytes in [BY_HAND.to_vec(), swapped()] {
        let mut packet = blocks(&bytes).unwrap().remove(2);
        assert_eq!(packet.stamps().unwrap(), Some((0, vec![4])));
        packet.set_stamp(4, 0x0123_4567_89ab_cdef);
        assert_eq!(packet.packet().unwrap().unwrap().ticks, 0x0123_4567_89ab_cdef);
        let changed: Vec<usize> = (0..40).filter(|at| packet.bytes()[*at] != bytes[60 + at]).collect();
        assert_eq!(changed, (12..20).collect::<Vec<_>>());
        // Outside the block nothing happens.
        packet.set_stamp(1000, 1);
    }
    // Statistics have stamps of when they begin and end, too.
    let mut bytes = BY_HAND[..60].to_vec();
    write::block(&mut bytes, pcapng::STATISTICS, |out| {
        out.extend([0; 12]);
        write::option(out, 1, b"comment");
        write::option(out, 2, &[0, 0, 0, 0, 7, 0, 0, 0]);
        write::option(out, 3, &[0, 0, 0, 0, 9, 0, 0, 0]);
    });
    let statistics = blocks(&bytes).unwrap().remove(2);
    let (interface, places) = statistics.stamps().unwrap().unwrap();
    let stamps: Vec<_> = places.iter().map(|at| statistics.stamp(*at).unwrap()).collect();
    assert_eq!((interface, stamps), (0, vec![0, 7, 9]));
}

#[test]
fn a_torn_file_is_told_from_a_damaged_one() {
    let whole = [0, 28, 60, 100];
    for length in 0..=BY_HAND.len() {
        match blocks(&BY_HAND[..length]) {
            Ok(all) => assert_eq!(all.len(), whole.iter().position(|end| *end == length).unwrap()),
            Err(error) => {
                assert!(error.is_torn() && !whole.contains(&length), "{length}: {error}");
                assert_eq!(error.place.offset, *whole.iter().rfind(|end| **end < length).unwrap() as u64);
            }
        }
    }
    let damage = |at: usize, value: u8| {
        let mut bytes = BY_HAND.to_vec();
        bytes[at] = value;
        blocks(&bytes).unwrap_err()
    };
    assert_eq!(damage(32, 30).to_string(), "block 2 (at byte 28): it says that it has 30 bytes");
    assert_eq!(damage(32, 8).to_string(), "block 2 (at byte 28): it says that it has 8 bytes");
    assert!(matches!(damage(35, 0x7f).problem, CaptureProblem::Length(0x7f00_0020)));
    assert!(matches!(damage(56, 36).problem, CaptureProblem::Lengths));
    assert!(matches!(damage(8, 0).problem, CaptureProblem::ByteOrder));
    assert!(matches!(damage(0, 6).problem, CaptureProblem::Foreign));
}

#[test]
fn what_a_block_lacks_is_told_with_its_place() {
    let after = |kind: u32, body: &[u8]| {
        let mut bytes = BY_HAND[..60].to_vec();
        write::block(&mut bytes, kind, |out| out.extend_from_slice(body));
        blocks(&bytes).unwrap().remove(2)
    };
    let short =
        |error: CaptureError| assert!(matches!(error.problem, CaptureProblem::Short) && error.place.offset == 60);
    short(after(pcapng::PACKET, &[0; 16]).packet().unwrap_err());
    short(after(pcapng::PACKET, &[0; 8]).stamps().unwrap_err());
    short(after(pcapng::INTERFACE, &[101, 0, 0, 0]).interface().unwrap_err());
    // More bytes kept than the block has.
    let mut body = [0; 24];
    body[12] = 5;
    short(after(pcapng::OLD_PACKET, &body).packet().unwrap_err());
    body[12] = 4;
    assert_eq!(after(pcapng::OLD_PACKET, &body).packet().unwrap().unwrap().bytes, &[0; 4]);
    for resolution in [&[9, 0, 1, 0, 0x7f, 0, 0, 0][..], &[9, 0, 2, 0, 9, 9, 0, 0]] {
        let body = [&[101, 0, 0, 0, 0, 0, 0, 0][..], resolution].concat();
        assert!(matches!(after(pcapng::INTERFACE, &body).interface().unwrap_err().problem, CaptureProblem::Resolution));
    }
}

/// A reader without end that counts what is taken of it.
struct Endless(u64);

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0 += buffer.len() as u64;
        buffer.fill(0);
        Ok(buffer.len())
    }
}

#[test]
fn a_length_that_lies_costs_nothing() {
    let head = &BY_HAND[..28];
    let long = [&[6, 0, 0, 0][..], &(1u32 << 20).to_le_bytes(), &[0; 4]].concat();
    let input = [head, &long].concat();
    // Below the most, the file ends before the block does; above it, nothing is read.
    let mut reader = BlockReader::new(&input[..], 1 << 20);
    let mut block = Block::default();
    assert!(reader.read(&mut block).unwrap());
    assert!(reader.read(&mut block).unwrap_err().is_torn());
    assert!(block.bytes().len() == 12);
    let mut endless = Endless(0);
    let mut reader = BlockReader::new(std::io::Read::chain(&input[..], &mut endless), (1 << 20) - 4);
    assert!(reader.read(&mut block).unwrap());
    assert!(matches!(reader.read(&mut block).unwrap_err().problem, CaptureProblem::Length(_)));
    assert_eq!(endless.0, 0);
}

/// A pcap file of two packets, by hand.
fn pcap(big: bool, nanoseconds: bool) -> Vec<u8> {
    let words = |words: &[u32]| -> Vec<u8> {
        words.iter().flat_map(|word| if big { word.to_be_bytes() } else { word.to_le_bytes() }).collect()
    };
    let version = if big { 0x0002_0004 } else { 0x0004_0002 };
    let magic = if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let fraction = if nanoseconds { 1_000 } else { 1 };
    let mut file = words(&[magic, version, 0, 0, 65_535, 101]);
    file.extend([words(&[10, 5 * fraction, 3, 60]), vec![0x45, 1, 2]].concat());
    file.extend(words(&[11, 999_999 * fraction, 0, 60]));
    file
}

#[test]
fn pcap_files_are_read_and_stamped_in_either_order() {
    for (big, nanoseconds) in [(false, false), (false, true), (true, false), (true, true)] {
        let bytes = pcap(big, nanoseconds);
        assert_eq!(Format::of(*bytes.first_chunk().unwrap()), Some(Format::Pcap));
        let mut reader = PcapReader::new(&bytes[..]).unwrap();
        assert_eq!((reader.link_type(), reader.head()), (101, &bytes[..24]));
        let mut record = Record::default();
        assert!(reader.read(&mut record).unwrap());
        assert_eq!((reader.unix_ns(&record).unwrap(), record.bytes()), (10_000_005_000, &[0x45, 1, 2][..]));
        assert_eq!(record.head(), &bytes[24..40]);
        reader.set_unix_ns(&mut record, 11_999_999_000).unwrap();
        assert_eq!(record.head()[..8], bytes[43..51]);
        assert!(reader.set_unix_ns(&mut record, u64::MAX).is_err());
        assert!(reader.read(&mut record).unwrap());
        assert_eq!((reader.unix_ns(&record).unwrap(), record.bytes()), (11_999_999_000, &[][..]));
        assert!(!reader.read(&mut record).unwrap());
        // Torn within the second packet's head.
        let mut reader = PcapReader::new(&bytes[..50]).unwrap();
        assert!(reader.read(&mut record).unwrap());
        let error = reader.read(&mut record).unwrap_err();
        assert!(error.is_torn() && error.place.offset == 43, "{error}");
        assert!(PcapReader::new(&bytes[..23]).unwrap_err().is_torn());
    }
    assert_eq!(Format::of(*b"hell"), None);
    assert!(matches!(PcapReader::new(&b"hello, world"[..]).unwrap_err().problem, CaptureProblem::Foreign));
    // A fraction of more than a second.
    let mut bytes = pcap(false, false);
    bytes[28..32].copy_from_slice(&1_000_000u32.to_le_bytes());
    let mut reader = PcapReader::new(&bytes[..]).unwrap();
    let mut record = Record::default();
    assert!(reader.read(&mut record).unwrap());
    assert!(matches!(reader.unix_ns(&record).unwrap_err().problem, CaptureProblem::Time));
}

proptest! {
    #[test]
    fn what_is_written_comes_back(
        packets in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..50), any::<u16>(), any::<u64>(), ".{0,20}"), 0..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = Vec::new();
        write::section(&mut bytes, |out| write::option(out, pcapng::SECTION_APPLICATION, b"some program"));
        write::interface(&mut bytes, LINKTYPE_RAW, 0, |out| write::option(out, pcapng::INTERFACE_NAME, b"some link"));
        for (ticks, kept, more, id, comment) in &packets {
            write::packet(&mut bytes, 0, *ticks, kept.len() as u32 + u32::from(*more), kept, |out| {
                write::option(out, OPTION_COMMENT, comment.as_bytes());
                write::option(out, PACKET_ID, &id.to_le_bytes());
            });
        }
        let all = blocks(&bytes).unwrap();
        prop_assert_eq!(all.len(), packets.len() + 2);
        prop_assert_eq!(all[1].interface().unwrap().unwrap().name, Some(&b"some link"[..]));
        for (block, (ticks, kept, more, id, comment)) in all[2..].iter().zip(&packets) {
            let packet = block.packet().unwrap().unwrap();
            prop_assert_eq!((packet.ticks, packet.bytes, packet.length), (*ticks, &kept[..], kept.len() as u32 + u32::from(*more)));
            let options: Vec<_> = packet.options.map(|option| (option.code, option.value)).collect();
            prop_assert_eq!(options, [(OPTION_COMMENT, comment.as_bytes()), (PACKET_ID, &id.to_le_bytes()[..])]);
        }
        prop_assert_eq!(all.iter().flat_map(|block| block.bytes().to_vec()).collect::<Vec<_>>(), bytes.clone());
        // The blocks before a cut are as they were.
        let cut = &bytes[..cut.index(bytes.len())];
        let mut reader = BlockReader::new(cut, MOST_BYTES);
        let mut block = Block::default();
        let mut count = 0;
        while reader.read(&mut block).is_ok_and(|more| more) {
            prop_assert_eq!(block.bytes(), all[count].bytes());
            count += 1;
        }
        prop_assert_eq!(reader.next_place().offset, all[..count].iter().map(|block| block.bytes().len() as u64).sum::<u64>());
    }

    #[test]
    fn no_bytes_make_it_panic(mut tail in prop::collection::vec(any::<u8>(), 0..120), keep in 0usize..=100, at in 0usize..100, value in any::<u8>()) {
        let mut bytes = BY_HAND[..keep].to_vec();
        bytes.append(&mut tail);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        let mut reader = BlockReader::new(&bytes[..], MOST_BYTES);
        let mut block = Block::default();
        while let Ok(true) = reader.read(&mut block) {
            let _ = block.interface();
            if let Ok(Some(packet)) = block.packet() {
                prop_assert!(packet.bytes.len() + packet.options.map(|option| option.value.len()).sum::<usize>() <= block.bytes().len());
            }
            for place in block.stamps().ok().flatten().map(|(_, places)| places).unwrap_or_default() {
                let before = block.stamp(place).unwrap();
                block.set_stamp(place, before);
            }
        }
        if let Ok(mut reader) = PcapReader::new(&bytes[..]) {
            let mut record = Record::default();
            while let Ok(true) = reader.read(&mut record) {
                let _ = reader.unix_ns(&record);
            }
        }
    }
}
