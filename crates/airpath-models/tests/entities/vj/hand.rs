// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Headers on the line, octet by octet, from the figures of RFC 1144, section 3.2: mask C I P S A W U, slot, checksum,
//! then urgent pointer, window, acknowledgement, sequence, identification.

use airpath_core::{Damage, Ecn, HeaderBytes, Pdu};
use airpath_models::entity::vj::{Compressor, Options};
use airpath_models::line_header::Form;

use crate::common::segment::{ACK, PSH, Segment, URG};

const TYPICAL: Options = Options { slots: 16, compress_slot_id: true };

/// A compressor to which the segments of a line are given.
struct Line(Compressor);

impl Line {
    fn new(options: Options) -> Line {
        Line(Compressor::new(options))
    }

    /// The form and octets of the header of a packet; `Ip` is none.
    fn pdu(&mut self, pdu: &Pdu) -> Option<(Form, Vec<u8>)> {
        self.0.take(pdu).map(|line| (line.form(), line.octets().to_vec()))
    }

    /// The mask, the slot and the differences of a compressed header, without its checksum.
    fn compressed(&mut self, segment: &Segment) -> Vec<u8> {
        let (form, mut octets) = self.pdu(&segment.pdu(1)).expect("it is no regular IP");
        assert_eq!(form, Form::Compressed, "{octets:x?}");
        let checksum = 1 + usize::from(octets[0] & 0x40 != 0);
        let sent: Vec<u8> = octets.drain(checksum..checksum + 2).collect();
        assert_eq!(sent, segment.header()[36..38]);
        octets
    }

    fn uncompressed(&mut self, segment: &Segment, slot: u8) {
        let mut header = segment.header();
        header[9] = slot;
        assert_eq!(self.pdu(&segment.pdu(1)), Some((Form::Uncompressed, header)));
    }
}

/// The segment behind `before` that begins with this sequence number.
fn next(before: &Segment) -> Segment {
    Segment {
        identification: before.identification.wrapping_add(1),
        sequence: before.sequence.wrapping_add(before.data.into()),
        ..before.clone()
    }
}

/// A transfer of 512 octets in each packet takes three octets of header: mask 1111 and the checksum.
#[test]
fn bulk_data_take_three_octets() {
    let mut line = Line::new(TYPICAL);
    let first = Segment { data: 512, ..Segment::default() };
    line.uncompressed(&first, 0);
    let second = next(&first);
    assert_eq!(line.compressed(&second), [0x0f]);
    let third = Segment { flags: ACK | PSH, data: 100, ..next(&second) };
    assert_eq!(line.compressed(&third), [0x1f]);
    // The data before are 100 octets now. 612 = 0x0264 is a difference of its own, and PSH stays.
    let ahead = Segment { sequence: third.sequence + 612, data: 512, ..next(&third) };
    assert_eq!(line.compressed(&ahead), [0x18, 0, 0x02, 0x64]);
}

/// Acknowledgements of two packets of 512 octets each: A with a difference of 1024 in three octets, six in all; of 200
/// octets four.
#[test]
fn acknowledgements_take_four_to_six_octets() {
    let mut line = Line::new(TYPICAL);
    let first = Segment::default();
    line.uncompressed(&first, 0);
    let second = Segment { acknowledgement: 3_024, ..next(&first) };
    assert_eq!(line.compressed(&second), [0x04, 0, 0x04, 0x00]);
    let third = Segment { acknowledgement: 3_224, ..next(&second) };
    assert_eq!(line.compressed(&third), [0x04, 200]);
    // 255 is the last number of one octet, 256 the first of three.
    let fourth = Segment { acknowledgement: 3_479, window: 8_448, ..next(&third) };
    assert_eq!(line.compressed(&fourth), [0x06, 0, 0x01, 0x00, 255]);
    // The window closes by 1: 0xffff.
    let fifth = Segment { window: 8_447, ..next(&fourth) };
    assert_eq!(line.compressed(&fifth), [0x02, 0, 0xff, 0xff]);
}

/// A typed character, and its echo, which acknowledges it: from then on both numbers move by the character before, and
/// the header takes three octets.
#[test]
fn echoed_characters_take_three_octets() {
    let mut line = Line::new(TYPICAL);
    let first = Segment { flags: ACK | PSH, data: 1, ..Segment::default() };
    line.uncompressed(&first, 0);
    // The next character, sent when the echo of the first has come.
    let second = Segment { acknowledgement: first.acknowledgement + 1, ..next(&first) };
    assert_eq!(line.compressed(&second), [0x1b]);
    // Without the echo it is a transfer; with two octets of echo both numbers are told.
    let third = next(&second);
    assert_eq!(line.compressed(&third), [0x1f]);
    let fourth = Segment { acknowledgement: third.acknowledgement + 2, ..next(&third) };
    assert_eq!(line.compressed(&fourth), [0x1c, 2, 1]);
}

/// Nothing changes between an acknowledgement and the data behind it but the identification; the same header again is a
/// repetition and goes uncompressed.
#[test]
fn data_behind_an_acknowledgement_are_compressed_and_repetitions_are_not() {
    let mut line = Line::new(TYPICAL);
    let first = Segment::default();
    line.uncompressed(&first, 0);
    let data = Segment { data: 10, ..next(&first) };
    assert_eq!(line.compressed(&data), [0x00]);
    line.uncompressed(&Segment { identification: 3, ..data.clone() }, 0);
    line.uncompressed(&Segment { identification: 4, data: 0, ..data.clone() }, 0);
    line.uncompressed(&Segment { identification: 5, data: 0, ..data.clone() }, 0);
    // A sequence number that goes back, and one that is 65536 ahead.
    line.uncompressed(&Segment { sequence: data.sequence - 1, ..data.clone() }, 0);
    line.uncompressed(&Segment { sequence: data.sequence - 1 + 65_536, ..data.clone() }, 0);
    let most = Segment { sequence: data.sequence - 1 + 65_536 + 65_535, identification: 3, ..data };
    assert_eq!(line.compressed(&most), [0x08, 0, 0xff, 0xff]);
}

/// The identification is told unless it is the next number: 0 in three octets, 7 in one, and back by 1 in three.
#[test]
fn identifications_that_do_not_count_are_told() {
    let mut line = Line::new(TYPICAL);
    let mut last = Segment { data: 1, ..Segment::default() };
    line.uncompressed(&last, 0);
    for (step, told) in [(0, vec![0x2f, 0, 0, 0]), (7, vec![0x2f, 7]), (0xffff, vec![0x2f, 0, 0xff, 0xff])] {
        last = Segment { identification: last.identification.wrapping_add(step), ..next(&last) };
        assert_eq!(line.compressed(&last), told);
    }
}

#[test]
fn urgent_data_tell_their_pointer() {
    let mut line = Line::new(TYPICAL);
    let first = Segment { data: 1, ..Segment::default() };
    line.uncompressed(&first, 0);
    let urgent = Segment { flags: ACK | URG, urgent: 1, ..next(&first) };
    assert_eq!(line.compressed(&urgent), [0x09, 1, 1]);
    // The pointer stays and URG goes: the special case again.
    let after = Segment { flags: ACK, ..next(&urgent) };
    assert_eq!(line.compressed(&after), [0x0f]);
    // The pointer changes without URG.
    let odd = Segment { urgent: 2, ..next(&after) };
    line.uncompressed(&odd, 0);
    // S, W and U would read as the special case, and so would all four.
    let again = Segment { flags: ACK | URG, window: 1, ..next(&odd) };
    line.uncompressed(&again, 0);
    let all = Segment { window: 2, acknowledgement: 9_999, ..next(&again) };
    line.uncompressed(&all, 0);
    // Urgent alone, with a pointer of 0.
    let alone = Segment { urgent: 0, sequence: all.sequence, ..next(&all) };
    assert_eq!(line.compressed(&alone), [0x01, 0, 0, 0]);
}

#[test]
fn whatever_a_compressed_header_cannot_tell_goes_uncompressed() {
    let base = Segment { ip_options: vec![1; 4], options: vec![1; 12], data: 5, ..Segment::default() };
    let others: [(&str, Segment); 10] = [
        ("type of service", Segment { tos: 0x10, ..next(&base) }),
        ("don't fragment", Segment { dont_fragment: false, ..next(&base) }),
        ("time to live", Segment { ttl: 63, ..next(&base) }),
        ("IP options", Segment { ip_options: vec![0; 4], ..next(&base) }),
        ("length of IP options", Segment { ip_options: vec![1; 8], ..next(&base) }),
        ("TCP options", Segment { options: vec![2; 12], ..next(&base) }),
        ("length of TCP options", Segment { options: vec![1; 16], ..next(&base) }),
        ("reserved bits", Segment { reserved: 1, ..next(&base) }),
        ("ECE", Segment { flags: ACK | 0x40, ..next(&base) }),
        ("CWR", Segment { flags: ACK | 0x80, ..next(&base) }),
    ];
    for (what, other) in others {
        let mut line = Line::new(TYPICAL);
        line.uncompressed(&base, 0);
        let (form, octets) = line.pdu(&other.pdu(1)).unwrap();
        assert_eq!((form, octets.len()), (Form::Uncompressed, usize::from(other.header_len())), "{what}");
        // The rest of the flow refers to it.
        let (form, octets) = line.pdu(&next(&other).pdu(1)).unwrap();
        assert_eq!((form, octets.len()), (Form::Compressed, 3), "{what}");
    }
}

/// SYN, FIN, RST and a missing ACK, fragments, other protocols, and packets that no router forwards are regular IP, and
/// leave the state as it was.
#[test]
fn other_packets_are_regular_ip() {
    let first = Segment { data: 8, ..Segment::default() };
    let after = next(&first);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut header = after.header();
        change(&mut header);
        header[10..12].fill(0);
        let checksum = crate::common::segment::sum(&header[..20]);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        Pdu { headers: HeaderBytes::of(&header, 40), ..after.pdu(1) }
    };
    let plain: Vec<(&str, Pdu)> = vec![
        ("SYN", Segment { flags: ACK | 2, ..after.clone() }.pdu(1)),
        ("FIN", Segment { flags: ACK | 1, ..after.clone() }.pdu(1)),
        ("RST", Segment { flags: ACK | 4, ..after.clone() }.pdu(1)),
        ("no ACK", Segment { flags: PSH, ..after.clone() }.pdu(1)),
        ("a first fragment", with(&|header| header[6] = 0x20)),
        ("a later fragment", with(&|header| header[7] = 1)),
        ("UDP", with(&|header| header[9] = 17)),
        ("IPv6", with(&|header| header[0] = 0x65)),
        ("a short IP header", with(&|header| header[0] = 0x44)),
        ("a short TCP header", with(&|header| header[32] = 0x40)),
        ("another length", with(&|header| header[3] += 1)),
        ("a header longer than what there is of it", with(&|header| header[32] = 0xf0)),
        ("a cut header", Pdu { headers: HeaderBytes::of(&after.header(), 39), ..after.pdu(1) }),
        ("no header", Pdu { headers: None, ..after.pdu(1) }),
        ("a wrong checksum", {
            let mut pdu = after.pdu(1);
            pdu.flip(&[8 * 8]);
            pdu
        }),
        ("a cut packet", {
            let mut pdu = after.pdu(1);
            assert!(pdu.truncate(44));
            pdu
        }),
    ];
    for (what, pdu) in plain {
        let mut line = Line::new(TYPICAL);
        line.uncompressed(&first, 0);
        assert_eq!(line.pdu(&pdu), None, "{what}");
        assert_eq!(line.compressed(&after), [0x0f], "{what}");
    }
}

/// A mark of queue management is a change of the type of service, and what an earlier link has damaged is what this one
/// compresses: bit 3 of the sequence number, 2^28, goes uncompressed, one of the TCP checksum is told as it is.
#[test]
fn the_packet_is_compressed_as_it_enters_the_link() {
    let first = Segment { tos: 2, data: 4, ..Segment::default() };
    let mut line = Line::new(TYPICAL);
    line.uncompressed(&first, 0);
    let second = next(&first);
    let marked = Pdu { ecn: Ecn::Ce, ..second.pdu(1) };
    let mut expected = Segment { tos: 3, ..second.clone() }.header();
    expected[9] = 0;
    assert_eq!(line.pdu(&marked), Some((Form::Uncompressed, expected)));
    let third = Segment { tos: 3, ..next(&second) };
    let mut damaged = third.pdu(1);
    damaged.damage = Some(Box::new(Damage { flips: vec![36 * 8 + 7, 44 * 8], truncated_to: None }));
    let mut checksum = third.header()[36..38].to_vec();
    checksum[0] ^= 1;
    assert_eq!(line.pdu(&damaged), Some((Form::Compressed, [vec![0x0f], checksum].concat())));
    let fourth = next(&third);
    let mut damaged = fourth.pdu(1);
    damaged.flip(&[24 * 8 + 3]);
    assert_eq!(line.pdu(&damaged).unwrap().0, Form::Uncompressed);
}

/// Slots: the first two connections take 0 and 1; the identifier is told where the slot is another one than before. The
/// third takes that of the connection that was silent for longest.
#[test]
fn slots_go_to_the_connection_that_was_silent_for_longest() {
    let mut line = Line::new(Options { slots: 2, ..TYPICAL });
    let of_port = |port| Segment { ports: [port, 80], data: 1, ..Segment::default() };
    let [one, two, three] = [1, 2, 3].map(of_port);
    line.uncompressed(&one, 0);
    line.uncompressed(&two, 1);
    let one = next(&one);
    assert_eq!(line.compressed(&one), [0x4f, 0]);
    let one = next(&one);
    assert_eq!(line.compressed(&one), [0x0f]);
    line.uncompressed(&three, 1);
    assert_eq!(line.compressed(&next(&three)), [0x0f]);
    assert_eq!(line.compressed(&next(&one)), [0x4f, 0]);
    line.uncompressed(&next(&two), 1);
    // An uncompressed packet tells its slot, so that the next one need not.
    assert_eq!(line.compressed(&next(&next(&two))), [0x0f]);
}

#[test]
fn slot_identifiers_are_always_there_where_ipcp_says_so() {
    let mut line = Line::new(Options { compress_slot_id: false, ..TYPICAL });
    let first = Segment { data: 512, ..Segment::default() };
    line.uncompressed(&first, 0);
    assert_eq!(line.compressed(&next(&first)), [0x4f, 0]);
    assert_eq!(line.compressed(&next(&next(&first))), [0x4f, 0]);
}

#[test]
fn there_are_as_many_slots_as_numbers() {
    let mut line = Line::new(Options { slots: 256, ..TYPICAL });
    for port in 0..=255 {
        line.uncompressed(&Segment { ports: [port, 80], ..Segment::default() }, port as u8);
    }
    line.uncompressed(&Segment { ports: [256, 80], ..Segment::default() }, 0);
}
