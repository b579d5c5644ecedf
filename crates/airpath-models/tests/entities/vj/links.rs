// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Header compression over links: lengths on the line, losses, errors in a header, escapes, and the queue in front.

use airpath_core::{Cause, Cx, Event, EventKind, Framing, Item, LogLevel, Machine, Outputs, Pdu, PortId, Seed, Time};
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::EntityConfig;
use airpath_models::entity::ppp::{FcsCoverage, HeaderCompression, PppConfig, Stuffing};
use airpath_models::entity::rlp::RlpConfig;
use airpath_models::entity::transparent::{Characters, TransparentConfig};
use airpath_models::queueing::QueueConfig;
use airpath_models::queueing::tail_drop::TailDropConfig;
use airpath_models::{LinkConfig, Path};

use super::super::{losses, radio};
use crate::common::segment::Segment;
use crate::common::*;

fn vj() -> PppConfig {
    PppConfig { header_compression: HeaderCompression::Vj, ..PppConfig::default() }
}

/// Octets of eight bits: 24 in a block of 20 ms.
fn transparent(ppp: PppConfig) -> EntityConfig {
    EntityConfig::Transparent(TransparentConfig { characters: Characters::Synchronous, ppp })
}

/// Frames or bits of the air that are hit.
fn hits(positions: &str, per: Per) -> ErrorsConfig {
    let positions = Some(read(positions));
    let process = ErrorProcessConfig::Positions(PositionsConfig { positions, file: None, repeat: None });
    let effect = if per == Per::Bit { Effect::Corrupt } else { Effect::Drop };
    ErrorsConfig { process, per, effect: EffectConfig { effect, ..EffectConfig::default() }, ..ErrorsConfig::default() }
}

struct Played {
    left: Vec<(Time, Pdu)>,
    events: Vec<Event>,
}

impl Played {
    fn drops(&self) -> Vec<(u64, Cause)> {
        let drops = self.events.iter().filter(|event| event.kind == EventKind::Dropped);
        drops.map(|drop| (drop.pdu, drop.cause)).collect()
    }

    /// The packets that left, with the flipped bits of each.
    fn flips(&self) -> Vec<(u64, Vec<u32>)> {
        let flips = |pdu: &Pdu| pdu.damage.as_ref().map(|damage| damage.flips.clone()).unwrap_or_default();
        self.left.iter().map(|(_, pdu)| (pdu.id, flips(pdu))).collect()
    }
}

fn play(link: &LinkConfig, packets: impl IntoIterator<Item = (Time, Pdu)>) -> Played {
    assert_eq!(link.problems(), []);
    let mut path = Path::new(&one_hop("radio", link.clone(), link.clone()), Seed(1));
    assert!(path.wants_headers(PortId::CLIENT) && path.wants_headers(PortId::SERVER));
    let mut outputs = Outputs { level: LogLevel::Events, ..Outputs::default() };
    let mut last = Time::ZERO;
    for (at, pdu) in packets {
        path.offer(at, PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
        last = at;
    }
    path.advance(last + span("20 s"), &mut Cx::new(&mut outputs));
    let left = outputs.emissions.into_iter().filter_map(|emission| match emission.item {
        Item::Pdu(pdu) => Some((emission.at, pdu)),
        _ => None,
    });
    Played { left: left.collect(), events: outputs.events }
}

/// A transfer, a packet of 60 octets of data every 500 ms.
fn transfer(packets: u64) -> Vec<(Time, Pdu)> {
    (0..packets).map(|number| (ms(500 * number), segment(number).pdu(number + 1))).collect()
}

fn segment(number: u64) -> Segment {
    let sequence = 1_000 + 60 * number as u32;
    Segment { identification: 1 + number as u16, sequence, data: 60, ..Segment::default() }
}

/// The bits in which the headers of two segments differ.
fn differences(one: &Segment, other: &Segment) -> Vec<u32> {
    let (one, other) = (one.header(), other.header());
    (0..one.len() as u32 * 8)
        .filter(|bit| (one[*bit as usize / 8] ^ other[*bit as usize / 8]) >> (7 - bit % 8) & 1 == 1)
        .collect()
}

/// A packet of 100 bytes takes 107 octets uncompressed, five blocks of 24, and 3 + 60 + 7 = 70 compressed, three. Blocks
/// begin at whole 20 ms, the first behind the offer; the propagation delay is 90 ms. With ten bits an octet 1070 bits in
/// blocks of 192 are six, and 700 are four.
#[test]
fn a_compressed_header_is_shorter_on_the_line() {
    let times =
        |entity| play(&radio(entity, ErrorsConfig::default()), transfer(3)).left.iter().map(|left| left.0).collect();
    let departures: Vec<Time> = times(transparent(vj()));
    assert_eq!(departures, [ms(210), ms(500 + 170), ms(1_000 + 170)]);
    let departures: Vec<Time> = times(EntityConfig::Transparent(TransparentConfig { ppp: vj(), ..Default::default() }));
    assert_eq!(departures, [ms(230), ms(500 + 190), ms(1_000 + 190)]);
}

/// The second packet goes over the blocks 5 to 7 (from 0), all of which are lost: nothing tells the decompressor. The
/// others refer to a header that it does not have: 60 octets and 1 of the identification less than they should.
#[test]
fn after_a_loss_that_nobody_notices_headers_are_wrong_and_the_packets_damaged() {
    let link = radio(transparent(vj()), hits("5, 6, 7", Per::Frame));
    let mut packets = transfer(5);
    // A repetition goes uncompressed, and is what both ends have from then on.
    packets.push((ms(3_000), Segment { identification: 6, ..segment(4) }.pdu(6)));
    packets.push((ms(3_500), Segment { identification: 7, ..segment(5) }.pdu(7)));
    let played = play(&link, packets);
    assert_eq!(played.drops(), [(2, Cause::ChannelError)]);
    // The TCP checksum is that of the packet itself, and so tells that the rest is wrong.
    let wrong = |number| {
        let (own, made) = (segment(number), segment(number - 1));
        let mut bits = differences(&own, &made);
        bits.retain(|bit| !(36 * 8..38 * 8).contains(bit));
        bits
    };
    let expected = vec![(1, vec![]), (3, wrong(2)), (4, wrong(3)), (5, wrong(4)), (6, vec![]), (7, vec![])];
    assert_eq!(played.flips(), expected);
    let damaged: Vec<(u64, u64)> = (played.events.iter().filter(|event| event.kind == EventKind::Damaged))
        .map(|event| (event.pdu, event.bits))
        .collect();
    assert_eq!(damaged, [3, 4, 5].map(|id| (id, wrong(id - 1).len() as u64)));
}

/// The block that is lost has the end of the second packet: its beginning makes a frame with a wrong FCS, of which the
/// decompressor hears. It tosses what does not tell its slot.
#[test]
fn after_a_loss_that_is_noticed_packets_are_tossed_until_one_tells_its_slot() {
    let link = radio(transparent(vj()), hits("7", Per::Frame));
    let mut packets = transfer(4);
    packets.push((ms(3_000), Segment { identification: 5, ..segment(3) }.pdu(5)));
    packets.push((ms(3_500), Segment { identification: 6, ..segment(4) }.pdu(6)));
    let played = play(&link, packets);
    let drops = [(2, Cause::ChannelError), (3, Cause::Decompression), (4, Cause::Decompression)];
    assert_eq!(played.drops(), drops);
    assert_eq!(played.flips(), [(1, vec![]), (5, vec![]), (6, vec![])]);
    // Where slots are always told, the decompressor goes on and the headers are wrong.
    let told = radio(transparent(PppConfig { compress_slot_id: false, ..vj() }), hits("7", Per::Frame));
    let played = play(&told, transfer(4));
    assert_eq!(played.drops(), [(2, Cause::ChannelError)]);
    let damaged: Vec<(u64, bool)> = played.flips().into_iter().map(|(id, flips)| (id, flips.is_empty())).collect();
    assert_eq!(damaged, [(1, true), (3, false), (4, false)]);
}

/// Bit errors with a whole FCS cost the packet wherever they are, and the next ones are tossed.
#[test]
fn a_bit_error_that_the_fcs_notices_is_told_to_the_decompressor() {
    // The sixth block has octets 0 to 23 of the second packet.
    let bit = (5 * 240 + 100).to_string();
    let played = play(&radio(transparent(vj()), hits(&bit, Per::Bit)), transfer(3));
    assert_eq!(played.drops(), [(2, Cause::Integrity), (3, Cause::Decompression)]);
}

/// Bit of the air that carries bit `bit` (0 is the highest, which the line carries last) of octet `octet` of the sixth
/// block's data, by the layout of V.110: in 60 bits eight groups of six and a signal, four more signals in the middle.
fn air_bit(octet: u32, bit: u32) -> u32 {
    let data = octet * 8 + 7 - bit;
    let (frame, group, place) = (data / 48, data % 48 / 6, data % 6);
    5 * 240 + frame * 60 + group * 7 + if group < 4 { 0 } else { 4 } + place
}

/// Without an FCS an error in a compressed header is an error in what it tells. The second packet goes as a mask, the
/// checksum, and a difference of 80 of the sequence number; its octets begin behind 5 of PPP.
#[test]
fn an_error_in_a_compressed_header_is_an_error_in_what_it_tells() {
    let ppp = PppConfig { fcs: FcsCoverage::Off, ..vj() };
    let ahead = |number| Segment { sequence: segment(number).sequence + 20, ..segment(number) };
    let hit = |octet, bit| {
        let segments = [segment(0), ahead(1), ahead(2)];
        let packets = (0..).zip(segments).map(|(number, segment)| (ms(500 * number), segment.pdu(number + 1)));
        play(&radio(transparent(ppp), hits(&air_bit(octet, bit).to_string(), Per::Bit)), packets)
    };
    // 80 becomes 81: both this packet and the next are 1 ahead, with IP checksums that are right again.
    let played = hit(8, 7);
    let off = |number| {
        let mut bits = differences(&ahead(number), &Segment { sequence: ahead(number).sequence + 1, ..ahead(number) });
        bits.retain(|bit| !(36 * 8..38 * 8).contains(bit));
        bits
    };
    assert_eq!(played.flips(), [(1, vec![]), (2, off(1)), (3, off(2))]);
    // A bit of the checksum concerns that packet alone, and so does PSH (0x08 of octet 33).
    assert_eq!(hit(6, 0).flips(), [(1, vec![]), (2, vec![36 * 8]), (3, vec![])]);
    assert_eq!(hit(5, 3).flips(), [(1, vec![]), (2, vec![33 * 8 + 4]), (3, vec![])]);
    // A mask that tells a window takes 80 for it, and the data for the sequence number: nothing is known then.
    let played = hit(5, 6);
    assert_eq!(played.drops(), [(2, Cause::Decompression), (3, Cause::Decompression)]);
    // A mask without S leaves an octet to the data, so that the packet has another length; the next one refers to it.
    let played = hit(5, 4);
    assert_eq!(played.drops(), [(2, Cause::Decompression)]);
    let mut made = differences(&ahead(2), &Segment { sequence: 1_000 + 61, ..ahead(2) });
    made.retain(|bit| !(36 * 8..38 * 8).contains(bit));
    assert_eq!(played.flips(), [(1, vec![]), (3, made)]);
    // A slot that has never been filled.
    let played = hit(5, 1);
    assert_eq!(played.drops(), [(2, Cause::Decompression), (3, Cause::Decompression)]);
    // Behind the header, octet 9 of the block is the first of the data, octet 40 of the packet.
    assert_eq!(hit(9, 2).flips(), [(1, vec![]), (2, vec![40 * 8 + 2]), (3, vec![])]);
}

/// Without an FCS an error in an uncompressed header goes into the slot: 64 of the time to live becomes 65, with a wrong
/// IP checksum in that packet, and a right one in the next. An error in the slot leaves nothing for the next.
#[test]
fn an_error_in_an_uncompressed_header_goes_into_the_slot() {
    let ppp = PppConfig { fcs: FcsCoverage::Off, ..vj() };
    let hit = |octet: u32, bit: u32| {
        let first = (air_bit(octet, bit) - 5 * 240).to_string();
        play(&radio(transparent(ppp), hits(&first, Per::Bit)), transfer(2))
    };
    let older = differences(&segment(1), &Segment { ttl: 65, ..segment(1) });
    assert_eq!(hit(5 + 8, 7).flips(), [(1, vec![8 * 8 + 7]), (2, older)]);
    // Slot 0 becomes 1, which is there; 128 is not.
    let played = hit(5 + 9, 7);
    assert_eq!(played.flips(), [(1, vec![]), (2, vec![])]);
    let played = hit(5 + 9, 0);
    assert_eq!(played.drops(), [(1, Cause::Decompression), (2, Cause::Decompression)]);
}

/// Escapes of the header are those of the header on the line, and those of the data as they were counted: 70 octets and
/// two flags are three blocks, although the header that came in has six escapes more; 26 flags are four blocks of 24,
/// and 27 are five.
#[test]
fn escapes_of_the_header_are_those_of_the_header_on_the_line() {
    let ppp = PppConfig { stuffing: Stuffing::COUNTED, ..vj() };
    let config = TransparentConfig { characters: Characters::Synchronous, ppp };
    let link = radio(EntityConfig::Transparent(config), ErrorsConfig::default());
    let framing: Framing = ppp.framing().unwrap();
    let departure = |flags: usize| {
        // 0x7e in an address and in both ports, which a compressed header does not have.
        let tilde =
            |number| Segment { addresses: [0x7e7e_0001, 0x0a00_0002], ports: [0x7e7e, 0x7d7d], ..segment(number) };
        let packets = (0..2u64).map(|number| {
            let own = tilde(number);
            let bytes = [own.header(), vec![0x7e; flags], vec![0; 60 - flags]].concat();
            (ms(500 * number), Pdu { escapes: framing.escapes(&bytes), ..own.pdu(number + 1) })
        });
        let played = play(&link, packets);
        assert!(played.flips().iter().all(|(_, flips)| flips.is_empty()));
        played.left[1].0
    };
    assert_eq!(departure(2), ms(500 + 170));
    assert_eq!(departure(26), ms(500 + 190));
    assert_eq!(departure(27), ms(500 + 210));
}

/// Compression happens behind the queue: what the queue drops, the other end never misses.
#[test]
fn a_packet_that_the_queue_drops_has_not_been_compressed() {
    let link = LinkConfig {
        send_buffer: read("1 packet"),
        queue: QueueConfig::TailDrop(TailDropConfig { limit: read("2 packets") }),
        ..radio(transparent(vj()), ErrorsConfig::default())
    };
    let all_at_once = transfer(8).into_iter().map(|(_, pdu)| (ms(0), pdu));
    let late = (8..10).map(|number| (ms(5_000 + 500 * number), segment(number).pdu(number + 1)));
    let played = play(&link, all_at_once.chain(late));
    let dropped: Vec<u64> = played.drops().iter().map(|(id, _)| *id).collect();
    assert_eq!(dropped, [4, 5, 6, 7, 8]);
    assert_eq!(played.flips(), [1, 2, 3, 9, 10].map(|id| (id, vec![])));
}

/// RLP repeats what is lost, so that no header is ever wrong, and 1000 bytes in packets of 60 are through sooner.
#[test]
fn over_rlp_nothing_is_wrong_and_all_is_sooner() {
    let end = |ppp| {
        let entity = EntityConfig::Rlp(RlpConfig { ppp, ..RlpConfig::default() });
        let link = radio(entity, losses("0.05"));
        let mut path = Path::new(&one_hop("radio", link.clone(), link), Seed(1));
        let mut outputs = Outputs { level: LogLevel::Events, ..Outputs::default() };
        for number in 0..30 {
            let item = Item::Pdu(segment(number).pdu(number + 1));
            path.offer(ms(number), PortId::CLIENT, item, &mut Cx::new(&mut outputs));
        }
        path.advance(ms(60_000), &mut Cx::new(&mut outputs));
        assert!(outputs.events.iter().any(|event| event.kind == EventKind::FrameRepeated));
        assert!(outputs.events.iter().all(|event| event.kind != EventKind::Dropped));
        assert_eq!(outputs.emissions.len(), 30);
        let whole = |item: &Item| matches!(item, Item::Pdu(pdu) if pdu.damage.is_none());
        assert!(outputs.emissions.iter().all(|emission| whole(&emission.item)));
        outputs.emissions[29].at
    };
    let (plain, compressed) = (end(PppConfig::default()), end(vj()));
    // 30 packets of 107 octets are 134 frames of 24, 30 of 70 are 88; and some that are repeated.
    let spared = plain.since(compressed);
    assert!(span("700 ms") < spared && spared < span("1200 ms"), "{spared}");
}

#[test]
fn parameters_that_mean_nothing_are_refused() {
    let problems = |ppp: PppConfig| {
        let link = radio(transparent(ppp), ErrorsConfig::default());
        link.problems().into_iter().map(|problem| (problem.key, problem.message)).collect::<Vec<_>>()
    };
    for (slots, is_right) in [(0, false), (1, true), (256, true), (257, false), (300, false)] {
        let found = problems(PppConfig { max_slots: slots, ..vj() });
        let expected = format!("is {slots}; there are from 1 to 256, and usually 16");
        assert_eq!(found, if is_right { vec![] } else { vec![("entity.ppp.max_slots".to_string(), expected)] });
    }
    let alone = "has no meaning without header_compression = \"vj\"".to_string();
    assert_eq!(
        problems(PppConfig { max_slots: 8, compress_slot_id: false, ..PppConfig::default() }),
        [("entity.ppp.max_slots".to_string(), alone.clone()), ("entity.ppp.compress_slot_id".to_string(), alone)]
    );
}
