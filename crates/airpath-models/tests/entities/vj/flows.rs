// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Random flows through compressor and decompressor, beside those of a second reading of RFC 1144.

use airpath_core::Cause;
use airpath_models::entity::Sdus;
use airpath_models::entity::vj::{Compressor, Decompressor, Options};
use airpath_models::line_header::{Form, LineHeader};

use super::reference::{Line, Receiver, Sender};
use crate::common::Dice;
use crate::common::segment::{ACK, PSH, Segment, URG, is_good};

/// The next segment of a flow: mostly data or acknowledgements, sometimes anything else.
fn go_on(segment: &mut Segment, dice: &mut Dice) {
    segment.identification = segment.identification.wrapping_add(1);
    segment.sequence = segment.sequence.wrapping_add(segment.data.into());
    segment.flags = if dice.below(3) == 0 { ACK | PSH } else { ACK };
    match dice.below(30) {
        0 => segment.window = dice.next() as u16,
        1 => segment.sequence = segment.sequence.wrapping_sub(dice.below(3_000) as u32),
        2 => segment.sequence = segment.sequence.wrapping_add(dice.below(100_000) as u32),
        3 => segment.acknowledgement = segment.acknowledgement.wrapping_sub(dice.below(300) as u32),
        4 => segment.identification = dice.next() as u16,
        5 => (segment.flags, segment.urgent) = (ACK | URG, dice.below(600) as u16),
        6 => segment.urgent = dice.below(3) as u16,
        7 => segment.tos = dice.below(3) as u8 * 4,
        8 => segment.ttl = 60 + dice.below(3) as u8,
        9 => segment.flags = [ACK | 1, ACK | 4, 2, 0, ACK | 0x40, ACK | 0x80 | PSH][dice.below(6) as usize],
        10 => segment.options = vec![dice.below(2) as u8; dice.below(3) as usize * 4],
        11 => segment.ip_options = vec![dice.below(2) as u8; dice.below(3) as usize * 4],
        12 => segment.reserved = dice.below(2) as u8,
        13 => segment.dont_fragment ^= true,
        14..=19 => segment.acknowledgement = segment.acknowledgement.wrapping_add(segment.data.into()),
        20..=23 => segment.acknowledgement = segment.acknowledgement.wrapping_add(dice.below(700) as u32),
        _ => {}
    }
    segment.data = [0, 1, 1, 40, 256, 512, 1_460][dice.below(7) as usize];
}

#[derive(Default, Debug)]
struct Counts {
    regular: u32,
    uncompressed: u32,
    compressed: u32,
    /// Packets that arrived and left as they came, that were tossed, and that left with other headers.
    good: u32,
    tossed: u32,
    wrong: u32,
    /// Wrong ones whose TCP checksum fits all the same.
    unnoticed: u32,
}

/// Sends `packets` of several flows over a line that loses one in `loss`, half of them without the decompressor's
/// hearing of it.
fn play(seed: u64, packets: u32, loss: Option<u64>, counts: &mut Counts) {
    let mut dice = Dice::new(seed);
    let options = Options { slots: 1 + dice.below(4) as u16, compress_slot_id: dice.below(3) > 0 };
    let (mut compressor, mut decompressor) = (Compressor::new(options), Decompressor::new(options));
    let mut sender = Sender::new(options.slots.into(), options.compress_slot_id);
    let mut receiver = Receiver::new(options.slots.into());
    let start = dice.next() as u32;
    let of_port = |port| Segment { ports: [port, 80], sequence: start.wrapping_mul(port.into()), ..Segment::default() };
    let mut flows: Vec<Segment> = (0..1 + dice.below(5) as u16).map(of_port).collect();
    let mut flow = 0;
    for id in 0..packets {
        if dice.below(4) == 0 {
            flow = dice.below(flows.len() as u64) as usize;
        }
        go_on(&mut flows[flow], &mut dice);
        let segment = &flows[flow];
        let header = segment.header();
        let pdu = segment.pdu(id.into());
        let line = compressor.take(&pdu);
        let expected = sender.send(&header);
        assert_eq!(line.as_deref().map_or(Line::Ip, as_reference), expected, "seed {seed}: {segment:?}");
        match &expected {
            Line::Ip => counts.regular += 1,
            Line::Uncompressed(_) => counts.uncompressed += 1,
            Line::Compressed(octets) => {
                assert!((3..=19).contains(&octets.len()));
                counts.compressed += 1;
            }
        }
        if loss.is_some_and(|loss| dice.below(loss) == 0) {
            if dice.below(2) == 0 {
                decompressor.lose();
                receiver.tosses = true;
            }
            continue;
        }
        let is_ip = line.is_none();
        let mut sdus = Sdus::new();
        let key = sdus.insert(pdu, 1);
        sdus[key].line = line;
        let flips = decompressor.take(&sdus[key]);
        let rebuilt = if is_ip { Some(header.clone()) } else { receiver.receive(&expected, segment.data.into()) };
        match rebuilt.filter(|rebuilt| rebuilt.len() == header.len()) {
            None => {
                assert_eq!(flips, Err(Cause::Decompression), "seed {seed}");
                counts.tossed += 1;
            }
            Some(rebuilt) => {
                let bits = (0..header.len() as u32 * 8)
                    .filter(|bit| (header[*bit as usize / 8] ^ rebuilt[*bit as usize / 8]) >> (7 - bit % 8) & 1 == 1);
                let differ: Vec<u32> = bits.collect();
                assert_eq!(flips.unwrap().to_vec(), differ, "seed {seed}: {segment:?}");
                counts.good += u32::from(differ.is_empty());
                counts.wrong += u32::from(!differ.is_empty());
                counts.unnoticed += u32::from(!differ.is_empty() && is_good(&rebuilt));
            }
        }
    }
}

fn as_reference(line: &LineHeader) -> Line {
    match line.form() {
        Form::Uncompressed => Line::Uncompressed(line.octets().to_vec()),
        Form::Compressed => Line::Compressed(line.octets().to_vec()),
    }
}

#[test]
fn a_clean_line_gives_back_what_came_in() {
    let mut counts = Counts::default();
    for seed in 0..200 {
        play(seed, 200, None, &mut counts);
    }
    println!("{counts:?}");
    assert_eq!((counts.tossed, counts.wrong), (0, 0));
    assert!(counts.regular > 500 && counts.uncompressed > 5_000 && counts.compressed > 15_000, "{counts:?}");
}

#[test]
fn after_losses_packets_are_what_the_rfc_makes_of_them() {
    let mut counts = Counts::default();
    for seed in 1_000..1_200 {
        play(seed, 200, Some(20), &mut counts);
    }
    println!("{counts:?}");
    assert!(counts.good > 20_000 && counts.tossed > 500 && counts.wrong > 500, "{counts:?}");
    // Those in which a field differs that TCP's checksum does not cover.
    assert!(counts.unnoticed < counts.wrong / 4, "{counts:?}");
}
