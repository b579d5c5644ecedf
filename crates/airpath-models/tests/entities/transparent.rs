// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The transparent bearer over blocks of 240 bits in 20 ms: times, and what a bit error at a known place does.

use airpath_core::{Cause, Cx, Escapes, EventKind, Item, Machine, Outputs, Pdu, PortId, Seed, Time};
use airpath_models::Path;
use airpath_models::channel::positions::PositionsConfig;
use airpath_models::channel::{Effect, EffectConfig, ErrorProcessConfig, ErrorsConfig, Per};
use airpath_models::entity::EntityConfig;
use airpath_models::entity::ppp::{FcsCoverage, PppConfig, Stuffing};
use airpath_models::entity::transparent::{Characters, TransparentConfig};

use super::*;

fn play(config: TransparentConfig, errors: ErrorsConfig, script: &Script) -> Trace {
    let link = radio(EntityConfig::Transparent(config), errors);
    assert_eq!(link.problems(), []);
    run(Path::new(&one_hop("radio", link.clone(), link), Seed(1)), script)
}

fn synchronous(fcs: FcsCoverage, coverage: Option<&str>) -> TransparentConfig {
    let ppp = PppConfig { fcs, coverage: coverage.map(read), ..PppConfig::default() };
    TransparentConfig { characters: Characters::Synchronous, ppp }
}

/// Bits of the air that are flipped, counted over all blocks.
fn flips(positions: &str, per: Per) -> ErrorsConfig {
    let positions = Some(read(positions));
    let process = ErrorProcessConfig::Positions(PositionsConfig { positions, file: None, repeat: None });
    let effect = if per == Per::Bit { Effect::Corrupt } else { Effect::Drop };
    ErrorsConfig { process, per, effect: EffectConfig { effect, ..EffectConfig::default() }, ..ErrorsConfig::default() }
}

/// 107 octets of ten bits are 1070 bits: six blocks of 192 from 20 ms on, the last one ends at 140.
#[test]
fn asynchronous_characters_take_ten_bits() {
    let script = vec![offer(ms(0), PortId::CLIENT, 100), offer(ms(500), PortId::SERVER, 12)];
    let trace = play(TransparentConfig::default(), ErrorsConfig::default(), &script);
    assert_eq!(trace.times(PortId::SERVER), [230_000_000]);
    // 19 octets are 190 bits: the block at 520.
    assert_eq!(trace.times(PortId::CLIENT), [630_000_000]);
    // 24 octets in a block: five blocks.
    let trace = play(synchronous(FcsCoverage::Whole, None), ErrorsConfig::default(), &script);
    assert_eq!(trace.times(PortId::SERVER), [210_000_000]);
}

/// Bit 480 of the air is the first one of the third block, and bit 384 of the stream: the lowest bit of octet 48,
/// which is octet 43 of the packet; the highest bit of an octet is its first.
#[test]
fn a_bit_error_goes_through_to_its_place() {
    let script = vec![offer(ms(0), PortId::CLIENT, 100)];
    let trace = play(synchronous(FcsCoverage::Off, None), flips("480", Per::Bit), &script);
    assert_eq!(trace.departures[0].flips, [43 * 8 + 7]);
    let trace = play(synchronous(FcsCoverage::Partial, Some("43 B")), flips("480", Per::Bit), &script);
    assert_eq!(trace.departures[0].flips, [43 * 8 + 7]);
    // With ten bits an octet: octet 38, in_octet 4, the fourth bit of data; octet 33 of the packet.
    let ppp = PppConfig { fcs: FcsCoverage::Off, ..PppConfig::default() };
    let trace = play(TransparentConfig { ppp, ..TransparentConfig::default() }, flips("480", Per::Bit), &script);
    assert_eq!(trace.departures[0].flips, [33 * 8 + 4]);
}

#[test]
fn a_bit_error_that_something_guards_costs_the_packet() {
    let script = vec![offer(ms(0), PortId::CLIENT, 100), offer(ms(500), PortId::CLIENT, 100)];
    let lost = |config, positions| {
        let trace = play(config, flips(positions, Per::Bit), &script);
        let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.pdu, drop.cause)).collect();
        assert_eq!(trace.departures.len() + drops.len(), 2);
        assert!(trace.departures.iter().all(|departure| departure.flips.is_empty()));
        drops
    };
    let first = vec![(1, Cause::Integrity)];
    // Flag, address, protocol.
    for bit in ["0", "9", "34"] {
        assert_eq!(lost(synchronous(FcsCoverage::Off, None), bit), first, "{bit}");
    }
    assert_eq!(lost(synchronous(FcsCoverage::Whole, None), "480"), first);
    assert_eq!(lost(synchronous(FcsCoverage::Partial, Some("44 B")), "480"), first);
    // The start bit of the second octet of the packet's line.
    let ppp = PppConfig { fcs: FcsCoverage::Off, ..PppConfig::default() };
    assert_eq!(lost(TransparentConfig { ppp, ..TransparentConfig::default() }, "11"), first);
    // The FCS is octets 105 and 106: bit 840 of the stream, bit 72 of the fifth block, D25 of its second frame.
    let in_fcs = (4 * 240 + 60 + 32).to_string();
    assert_eq!(lost(synchronous(FcsCoverage::Partial, Some("4 B")), &in_fcs), first);
    assert_eq!(lost(synchronous(FcsCoverage::Off, None), &in_fcs), []);
    // E4 carries no data.
    assert_eq!(lost(synchronous(FcsCoverage::Whole, None), "28"), []);
}

/// A block that is lost costs the packets of which it carries a part: the second block has the end of the first
/// packet and the beginning of the second.
#[test]
fn a_lost_block_costs_its_packets() {
    let script: Script = (0..3).map(|_| offer(ms(0), PortId::CLIENT, 33)).collect();
    let trace = play(synchronous(FcsCoverage::Whole, None), flips("1", Per::Frame), &script);
    let drops: Vec<_> = trace.of_kind(EventKind::Dropped).iter().map(|drop| (drop.pdu, drop.cause)).collect();
    assert_eq!(drops, [(1, Cause::ChannelError), (2, Cause::ChannelError)]);
    assert_eq!(trace.ids(PortId::SERVER), [3]);
    assert_eq!(trace.held, 0);
}

/// Time in ns at which a packet of 100 bytes with `escapes` leaves, offered at 0.
fn departure(characters: Characters, stuffing: Stuffing, escapes: Escapes) -> u64 {
    let ppp = PppConfig { stuffing, ..PppConfig::default() };
    let link = radio(EntityConfig::Transparent(TransparentConfig { characters, ppp }), ErrorsConfig::default());
    assert_eq!(link.problems(), []);
    let mut path = Path::new(&one_hop("radio", link.clone(), link), Seed(1));
    let counts = path.wants_escapes(PortId::CLIENT).is_some();
    assert_eq!(counts, stuffing == Stuffing::COUNTED);
    let mut outputs = Outputs::default();
    let pdu = Pdu { id: 1, len: 100, header_len: 40, escapes, ..Pdu::default() };
    let least = path.least_transit_of(Time::ZERO, PortId::CLIENT, 100);
    path.offer(Time::ZERO, PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
    path.advance(ms(2_000), &mut Cx::new(&mut outputs));
    assert_eq!(outputs.emissions.len(), 1);
    assert!(Time::ZERO + least <= outputs.emissions[0].at);
    outputs.emissions[0].at.nanos()
}

/// Blocks begin at 20 ms, the propagation delay is 90 ms. 107 octets and their escapes are, 24 to a block, 5 blocks
/// up to 120 octets and 9 for 207; with ten bits an octet 207 are 2070 bits, 11 blocks.
#[test]
fn counted_escapes_take_octets_of_the_line() {
    use Characters::{Asynchronous, Synchronous};
    let counted = |characters, escapes| departure(characters, Stuffing::COUNTED, Escapes::new(escapes));
    assert_eq!(counted(Synchronous, 0), 210_000_000);
    assert_eq!(counted(Synchronous, 13), 210_000_000);
    assert_eq!(counted(Synchronous, 14), 230_000_000);
    assert_eq!(counted(Synchronous, 100), 290_000_000);
    assert_eq!(counted(Asynchronous, 100), 330_000_000);
    // Without contents: one escape is expected in 100 octets, 108 octets of ten bits are 6 blocks.
    assert_eq!(departure(Asynchronous, Stuffing::COUNTED, Escapes::UNKNOWN), 230_000_000);
    // Nobody heeds a count that was not asked for.
    assert_eq!(departure(Synchronous, Stuffing::NONE, Escapes::new(100)), 210_000_000);
    assert_eq!(departure(Synchronous, Stuffing::Share(read("0.14")), Escapes::new(0)), 230_000_000);
}

/// Of a packet whose escapes double it, a bit of the line stands for the proportional bit of the packet: bit 735 behind
/// the octets in front is the packet's bit 367.
#[test]
fn a_bit_error_among_escapes_goes_to_the_proportional_place() {
    let ppp = PppConfig { fcs: FcsCoverage::Off, stuffing: Stuffing::COUNTED, ..PppConfig::default() };
    let config = TransparentConfig { characters: Characters::Synchronous, ppp };
    // The first bit of the fifth block is bit 768 of the stream: octet 96, of which 91 octets are behind the front.
    let link = radio(EntityConfig::Transparent(config), flips("960", Per::Bit));
    let mut path = Path::new(&one_hop("radio", link.clone(), link), Seed(1));
    let mut outputs = Outputs::default();
    let pdu = Pdu { id: 1, len: 100, escapes: Escapes::new(100), ..Pdu::default() };
    path.offer(Time::ZERO, PortId::CLIENT, Item::Pdu(pdu), &mut Cx::new(&mut outputs));
    path.advance(ms(2_000), &mut Cx::new(&mut outputs));
    let Item::Pdu(pdu) = &outputs.emissions[0].item else { panic!("it is a packet") };
    assert_eq!(pdu.damage.as_ref().unwrap().flips, [(91 * 8 + 7) / 2]);
}

#[test]
fn compression_and_counted_escapes_exclude_each_other() {
    let ppp = |stuffing, accm| PppConfig { stuffing, accm, ..PppConfig::default() };
    let keys = |ppp, compression: &str| {
        let entity = EntityConfig::Transparent(TransparentConfig { ppp, ..TransparentConfig::default() });
        let link =
            airpath_models::LinkConfig { compression: read(compression), ..radio(entity, ErrorsConfig::default()) };
        link.problems().into_iter().map(|problem| problem.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(ppp(Stuffing::COUNTED, 1), "0.5"), ["entity.ppp.stuffing"]);
    assert_eq!(keys(ppp(Stuffing::COUNTED, 1), "1"), Vec::<String>::new());
    assert_eq!(keys(ppp(Stuffing::NONE, 0), "0.5"), Vec::<String>::new());
    assert_eq!(keys(ppp(Stuffing::NONE, 1), "1"), ["entity.ppp.accm"]);
}
