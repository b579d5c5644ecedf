// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! RLC of NR against a plain model: octet by octet and slot by slot, with every variable computed from its definition.

use std::sync::Arc;

use airpath_core::{PortId, Time};
use airpath_models::LinkConfig;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::arq::{over_bins, quality};
use super::nr_rlc::{rlc, rlc_link};
use crate::common::*;
use crate::toys::bins::{Conditions, Radio};

/// Quarter of a millisecond, the unit of time: blocks arrive one of them after the end of their slot, and timers last
/// for whole halves, so that nothing happens as a slot begins.
const QUARTER: u64 = 250_000;

/// Slots from that which begins before a block arrives to the first that can repeat it: 2 ms and the rest of a slot.
const ANSWER: u64 = 3;

#[derive(Clone, Debug)]
struct World {
    is_am: bool,
    short: bool,
    octets: usize,
    tries: u32,
    poll_pdu: usize,
    /// Timers in halves of a millisecond, all odd numbers.
    t_reassembly: u64,
    t_poll: u64,
    t_reordering: u64,
    out_of_order: bool,
    /// Packets: millisecond behind which each comes, and octets.
    packets: Vec<(u64, u32)>,
    /// Blocks that are lost, a bit for each slot, by direction.
    lost: [u64; 2],
}

impl World {
    fn is_lost(&self, direction: usize, slot: u64) -> bool {
        slot < 64 && self.lost[direction] >> slot & 1 == 1
    }

    fn header(&self, whole: bool, offset: usize) -> usize {
        let number = match (self.is_am, self.short) {
            (false, _) if whole => 1,
            (false, true) => 1,
            (false, false) | (true, true) => 2,
            (true, false) => 3,
        };
        number + if offset > 0 { 2 } else { 0 }
    }
}

/// A PDU: octets of a packet, in unacknowledged mode with its number among packets in segments, and the poll.
#[derive(Clone, Debug)]
struct Pdu {
    packet: usize,
    octets: Vec<usize>,
    number: Option<usize>,
    poll: bool,
}

/// ACK_SN of a STATUS PDU, and the octets that are missing of each packet below it.
type Report = (usize, Vec<(usize, Vec<usize>)>);

#[derive(Clone, Debug, Default)]
struct Block {
    pdus: Vec<Pdu>,
    status: Option<Report>,
    tries: u32,
    place: usize,
}

/// HARQ of one direction.
#[derive(Default)]
struct Harq {
    blocks: usize,
    on_air: Option<Block>,
    in_flight: Option<Block>,
    /// Blocks to repeat, with the slot from which on.
    waiting: Vec<(u64, Block)>,
}

impl Harq {
    fn next(&mut self, slot: u64) -> Option<Block> {
        let ready = (0..self.waiting.len()).filter(|index| self.waiting[*index].0 <= slot);
        let first = ready.min_by_key(|index| self.waiting[*index].1.place)?;
        Some(self.waiting.remove(first).1)
    }

    fn send(&mut self, mut block: Block) {
        if block.tries == 0 {
            block.place = self.blocks;
            self.blocks += 1;
        }
        block.tries += 1;
        self.on_air = Some(block);
    }

    /// The block that arrives after `slot` has begun.
    fn arrive(&mut self, world: &World, direction: usize, slot: u64) -> Option<Block> {
        let block = self.in_flight.take()?;
        if !world.is_lost(direction, slot - 1) {
            return Some(block);
        }
        if block.tries < world.tries {
            self.waiting.push((slot + ANSWER, block));
        }
        None
    }
}

struct Model<'a> {
    world: &'a World,
    harq: [Harq; 2],
    lengths: Vec<usize>,
    // Sending.
    next: (usize, usize),
    numbers: usize,
    again: Vec<Vec<bool>>,
    acknowledged: Vec<bool>,
    without_poll: usize,
    poll_sn: usize,
    poll_timer: Option<u64>,
    polls_again: bool,
    // Receiving; numbers of unacknowledged mode are places in `numbered`.
    got: Vec<Vec<bool>>,
    numbered: Vec<Option<usize>>,
    given_up: Vec<bool>,
    floor: usize,
    highest_status: usize,
    trigger: usize,
    timer: Option<u64>,
    polls: Vec<usize>,
    reports: bool,
    // PDCP.
    came: Vec<bool>,
    delivered: Vec<Option<u64>>,
    deliv: usize,
    reord: usize,
    order_timer: Option<u64>,
}

impl Model<'_> {
    fn new(world: &World) -> Model<'_> {
        let lengths: Vec<usize> = world.packets.iter().map(|(_, len)| *len as usize + 2).collect();
        let count = lengths.len();
        Model {
            world,
            harq: Default::default(),
            next: (0, 0),
            numbers: 0,
            again: lengths.iter().map(|length| vec![false; *length]).collect(),
            acknowledged: vec![false; count],
            without_poll: 0,
            poll_sn: 0,
            poll_timer: None,
            polls_again: false,
            got: lengths.iter().map(|length| vec![false; *length]).collect(),
            numbered: vec![None; count],
            given_up: vec![false; count],
            floor: 0,
            highest_status: 0,
            trigger: 0,
            timer: None,
            polls: Vec::new(),
            reports: false,
            came: vec![false; count],
            delivered: vec![None; count],
            deliv: 0,
            reord: 0,
            order_timer: None,
            lengths,
        }
    }

    fn available(&self, slot: u64) -> usize {
        self.world.packets.iter().filter(|(at, _)| *at < slot).count()
    }

    fn has_new(&self, slot: u64) -> bool {
        self.next.0 < self.available(slot)
    }

    fn has_again(&self) -> bool {
        self.again.iter().flatten().any(|again| *again)
    }

    fn block(&mut self, slot: u64) -> Block {
        let world = self.world;
        let mut block = Block::default();
        let mut room = world.octets;
        loop {
            let fits = |header: usize, octets: usize| header + octets + if header + octets > 255 { 3 } else { 2 };
            let is_new = !self.has_again();
            if is_new && !self.has_new(slot) {
                return block;
            }
            let (packet, from, to) = if is_new {
                (self.next.0, self.next.1, self.lengths[self.next.0])
            } else {
                let packet = self.again.iter().position(|octets| octets.contains(&true)).unwrap();
                let from = self.again[packet].iter().position(|again| *again).unwrap();
                let to = self.again[packet][from..]
                    .iter()
                    .position(|again| !again)
                    .map_or(self.lengths[packet], |n| from + n);
                (packet, from, to)
            };
            let whole = from == 0 && to == self.lengths[packet];
            let (mut header, mut end) = (world.header(whole, from), to);
            if fits(header, to - from) > room {
                header = world.header(false, from);
                end = (from..to).rev().find(|end| fits(header, end - from) <= room).unwrap_or(from);
            }
            if end == from {
                return block;
            }
            room -= fits(header, end - from);
            if is_new {
                self.next = if end == self.lengths[packet] { (packet + 1, 0) } else { (packet, end) };
                self.without_poll += 1;
            } else {
                self.again[packet][from..end].fill(false);
            }
            let is_segment = !(from == 0 && end == self.lengths[packet]);
            let number = (!world.is_am && is_segment).then_some(self.numbers);
            if number.is_some() && end == self.lengths[packet] {
                self.numbers += 1;
            }
            let reached = world.poll_pdu > 0 && self.without_poll >= world.poll_pdu;
            let poll = world.is_am && (reached || self.polls_again || !self.has_again() && !self.has_new(slot));
            if poll {
                self.without_poll = 0;
                self.polls_again = false;
                self.poll_sn = if self.next.1 > 0 { self.next.0 } else { self.next.0 - 1 };
                self.poll_timer = Some(4 * slot + 2 * world.t_poll);
            }
            block.pdus.push(Pdu { packet, octets: (from..end).collect(), number, poll });
        }
    }

    fn is_complete(&self, packet: usize) -> bool {
        packet < self.got.len() && self.got[packet].iter().all(|octet| *octet)
    }

    fn first_incomplete(&self, from: usize) -> usize {
        (from..).find(|packet| !self.is_complete(*packet)).unwrap()
    }

    /// The packet behind the highest of which something has come.
    fn highest(&self) -> usize {
        self.got.iter().rposition(|octets| octets.contains(&true)).map_or(0, |packet| packet + 1)
    }

    /// True if an octet is missing before the last one that has come.
    fn has_gap(&self, packet: usize) -> bool {
        let Some(octets) = self.got.get(packet) else { return false };
        let last = octets.iter().rposition(|octet| *octet).unwrap_or(0);
        octets[..last].contains(&false)
    }

    fn receive(&mut self, at: u64, pdu: &Pdu) {
        if self.world.is_am { self.receive_am(at, pdu) } else { self.receive_um(at, pdu) }
    }

    fn receive_am(&mut self, at: u64, pdu: &Pdu) {
        let known = pdu.octets.iter().all(|octet| self.got[pdu.packet][*octet]);
        if known {
            self.reports |= pdu.poll;
            return;
        }
        for octet in &pdu.octets {
            self.got[pdu.packet][*octet] = true;
        }
        let is_complete = self.is_complete(pdu.packet);
        if is_complete && pdu.packet == self.highest_status {
            self.highest_status = self.first_incomplete(pdu.packet);
        }
        let next = self.first_incomplete(0);
        if self.trigger <= next || self.trigger == next + 1 && !self.has_gap(next) {
            self.timer = None;
        }
        let highest = self.highest();
        if self.timer.is_none() && (highest > next + 1 || highest == next + 1 && self.has_gap(next)) {
            self.timer = Some(at + 2 * self.world.t_reassembly);
            self.trigger = highest;
        }
        if pdu.poll {
            self.polls.push(pdu.packet);
        }
        self.answer();
        if is_complete {
            self.pdcp(at, pdu.packet);
        }
    }

    fn answer(&mut self) {
        let before = self.polls.len();
        self.polls.retain(|poll| *poll >= self.highest_status);
        self.reports |= self.polls.len() < before;
    }

    /// Numbers of unacknowledged mode: complete ones, those with a gap, and RX_Next_Highest.
    fn um_complete(&self, number: usize) -> bool {
        self.numbered.get(number).copied().flatten().is_some_and(|packet| self.is_complete(packet))
    }

    fn um_gap(&self, number: usize) -> bool {
        self.numbered.get(number).copied().flatten().is_some_and(|packet| self.has_gap(packet))
    }

    fn um_highest(&self) -> usize {
        self.numbered.iter().rposition(Option::is_some).map_or(0, |number| number + 1)
    }

    fn um_missing(&self) -> bool {
        let highest = self.um_highest();
        highest > self.floor + 1 || highest == self.floor + 1 && self.um_gap(self.floor)
    }

    fn receive_um(&mut self, at: u64, pdu: &Pdu) {
        if let Some(number) = pdu.number {
            if number < self.floor {
                self.given_up[pdu.packet] = true;
                return;
            }
            self.numbered[number] = Some(pdu.packet);
        }
        for octet in &pdu.octets {
            self.got[pdu.packet][*octet] = true;
        }
        let is_complete = self.is_complete(pdu.packet);
        if pdu.number.is_some() {
            while self.um_complete(self.floor) {
                self.floor += 1;
            }
            let without_gap = self.um_highest() == self.floor + 1 && !self.um_gap(self.floor);
            if self.trigger <= self.floor || without_gap {
                self.timer = None;
            }
            if self.timer.is_none() && self.um_missing() {
                self.timer = Some(at + 2 * self.world.t_reassembly);
                self.trigger = self.um_highest();
            }
        }
        if is_complete {
            self.pdcp(at, pdu.packet);
        }
    }

    fn pdcp(&mut self, at: u64, packet: usize) {
        if packet < self.deliv {
            self.given_up[packet] = true;
            return;
        }
        self.came[packet] = true;
        if self.world.out_of_order {
            self.delivered[packet] = Some(at);
        }
        self.order(at, self.deliv);
        if self.deliv >= self.reord {
            self.order_timer = None;
        }
        self.start_order(at);
    }

    /// Delivers what has come below `behind`, and what follows without a gap.
    fn order(&mut self, at: u64, behind: usize) {
        let mut packet = self.deliv;
        while packet < self.came.len() && (packet < behind || self.came[packet]) {
            if self.came[packet] && self.delivered[packet].is_none() {
                self.delivered[packet] = Some(at);
            }
            packet += 1;
        }
        self.deliv = packet;
    }

    fn start_order(&mut self, at: u64) {
        let next = self.came.iter().rposition(|came| *came).map_or(0, |packet| packet + 1);
        if self.order_timer.is_none() && self.deliv < next {
            self.order_timer = Some(at + 2 * self.world.t_reordering);
            self.reord = next;
        }
    }

    fn status(&mut self) -> Option<Report> {
        if !std::mem::take(&mut self.reports) {
            return None;
        }
        let room = if self.world.octets < 258 { self.world.octets - 2 } else { self.world.octets - 3 };
        let number = if self.world.short { 2 } else { 3 };
        let (mut used, mut reported) = (3, Vec::new());
        // The last packet of a range, and the packets in it.
        let mut range: Option<(usize, usize)> = None;
        for packet in (0..self.highest_status).filter(|packet| !self.is_complete(*packet)) {
            let octets: Vec<usize> = (0..self.lengths[packet]).filter(|octet| !self.got[packet][*octet]).collect();
            let ranges = 1 + octets.windows(2).filter(|pair| pair[1] > pair[0] + 1).count();
            let continued = range.filter(|(last, _)| last + 1 == packet);
            let (takes, next) = match continued {
                _ if octets.len() < self.lengths[packet] => (ranges * (number + 4), None),
                Some((_, 1)) => (1, Some((packet, 2))),
                Some((_, count)) => (0, Some((packet, count + 1))),
                None => (number, Some((packet, 1))),
            };
            if next.is_none() && used + takes > room && used + number + 4 <= room {
                // The first missing segments of the packet, as many as fit.
                let fit = (room - used) / (number + 4);
                let starts: Vec<usize> =
                    (0..octets.len()).filter(|i| *i == 0 || octets[*i] > octets[*i - 1] + 1).collect();
                reported.push((packet, octets[..starts[fit]].to_vec()));
                return Some((packet + 1, reported));
            }
            if used + takes > room {
                return Some((packet, reported));
            }
            (used, range) = (used + takes, next);
            reported.push((packet, octets));
        }
        Some((self.highest_status, reported))
    }

    fn hear(&mut self, (ack, missing): Report) {
        let first = self.acknowledged.iter().position(|known| !known).unwrap_or(self.acknowledged.len());
        if ack < first {
            return;
        }
        if self.poll_sn < ack {
            self.poll_timer = None;
        }
        for packet in first..ack {
            if self.acknowledged[packet] {
                continue;
            }
            match missing.iter().find(|(number, _)| *number == packet) {
                Some((_, octets)) => self.send_again(packet, octets),
                None => {
                    self.acknowledged[packet] = true;
                    self.again[packet].fill(false);
                }
            }
        }
    }

    fn send_again(&mut self, packet: usize, octets: &[usize]) {
        let sent = if packet < self.next.0 { self.lengths[packet] } else { self.next.1 };
        for octet in octets.iter().filter(|octet| **octet < sent) {
            self.again[packet][*octet] = true;
        }
    }

    /// Runs the timers that expire at `at`, behind the beginning of `slot`.
    fn timers(&mut self, at: u64, slot: u64) {
        if self.timer == Some(at) {
            self.timer = None;
            if self.world.is_am {
                self.highest_status = self.first_incomplete(self.trigger);
                let (first, highest) = (self.highest_status, self.highest());
                if highest > first + 1 || highest == first + 1 && self.has_gap(first) {
                    self.timer = Some(at + 2 * self.world.t_reassembly);
                    self.trigger = highest;
                }
                self.reports = true;
                self.answer();
            } else {
                let before = self.floor;
                self.floor = self.trigger;
                while self.um_complete(self.floor) {
                    self.floor += 1;
                }
                for number in before..self.floor {
                    if let Some(packet) = self.numbered[number].filter(|packet| !self.is_complete(*packet)) {
                        self.given_up[packet] = true;
                    }
                }
                if self.um_missing() {
                    self.timer = Some(at + 2 * self.world.t_reassembly);
                    self.trigger = self.um_highest();
                }
            }
        }
        if self.order_timer == Some(at) {
            self.order_timer = None;
            self.order(at, self.reord);
            self.start_order(at);
        }
        if self.poll_timer == Some(at) {
            self.poll_timer = None;
            let highest = if self.next.1 > 0 { self.next.0 } else { self.next.0 - 1 };
            if self.acknowledged[..=highest].contains(&false) {
                self.polls_again = true;
                if !self.has_again() && !self.has_new(slot + 1) {
                    let last = (0..=highest).rev().find(|packet| !self.acknowledged[*packet]).unwrap();
                    let all: Vec<usize> = (0..self.lengths[last]).collect();
                    self.send_again(last, &all);
                }
            }
        }
    }

    fn arrivals(&mut self, at: u64, slot: u64) {
        for direction in 0..2 {
            let Some(block) = self.harq[direction].arrive(self.world, direction, slot) else { continue };
            for pdu in &block.pdus {
                self.receive(at, pdu);
            }
            if let Some(status) = block.status {
                self.hear(status);
            }
        }
    }

    /// Number of each packet that is delivered, with the time in quarters of a millisecond.
    fn run(mut self) -> Vec<(u64, u64)> {
        for slot in 1..1_500 {
            let before = slot - 1;
            for at in 4 * before + 1..4 * slot {
                self.timers(at, before);
                if at == 4 * before + 1 {
                    self.arrivals(at, before);
                }
            }
            for harq in &mut self.harq {
                harq.in_flight = harq.on_air.take();
            }
            let data = self.harq[0].next(slot).unwrap_or_else(|| self.block(slot));
            if !data.pdus.is_empty() {
                self.harq[0].send(data);
            }
            if let Some(block) = self.harq[1].next(slot) {
                self.harq[1].send(block);
            } else if let Some(status) = self.status() {
                self.harq[1].send(Block { status: Some(status), ..Block::default() });
            }
        }
        let mut left: Vec<(u64, u64)> =
            (1..).zip(&self.delivered).filter_map(|(id, at)| at.map(|at| (id, at))).collect();
        left.sort_unstable_by_key(|(id, at)| (*at, *id));
        left
    }
}

/// The same by the entities under test.
fn played(world: &World) -> Vec<(u64, u64)> {
    let lost = world.clone();
    let radio: Radio = Arc::new(move |direction, resource, slot| {
        let bits = if resource == 0 { lost.octets as u64 * 8 + 3 } else { 0 };
        Conditions { bits, quality: quality(lost.is_lost(direction as usize, slot), resource, slot) }
    });
    let timer = |halves: u64| format!("{} us", halves * 2 * QUARTER / 1_000);
    let config = rlc(json!({
        "mode": if world.is_am { "am" } else { "um" },
        "sn_bits": if world.is_am == world.short { 12 } else if world.is_am { 18 } else { 6 },
        "t_reassembly": timer(world.t_reassembly),
        "t_poll_retransmit": timer(world.t_poll),
        "poll_pdu": world.poll_pdu,
        "max_retx_threshold": 60_000,
        "harq": { "retransmissions": world.tries - 1, "feedback_delay": "2 ms" },
        "pdcp": { "t_reordering": timer(world.t_reordering), "out_of_order": world.out_of_order },
    }));
    let offer_of = |(at, len): &(u64, u32)| offer(Time::from_nanos(at * 1_000_000 + 1), PortId::CLIENT, *len);
    let script: Script = world.packets.iter().map(offer_of).collect();
    let link = LinkConfig { propagation: read("250 us"), ..rlc_link(&config) };
    let trace = run_to(over_bins(&link, span("1 ms"), radio), &script, ms(1_499));
    let mut left: Vec<_> = trace.departures.iter().map(|left| (left.id, left.at.nanos() / QUARTER)).collect();
    assert!(trace.departures.iter().all(|left| left.at.nanos() % QUARTER == 0));
    left.sort_unstable_by_key(|(id, at)| (*at, *id));
    left
}

fn any_world(is_am: bool) -> impl Strategy<Value = World> {
    let packets = proptest::collection::vec((0u64..12, select(vec![1u32, 20, 60, 119, 300])), 1..9);
    // Lost blocks: none, some, many, all at the beginning.
    let lost = (any::<u64>(), any::<u64>(), any::<u64>(), 0usize..4);
    let lost = lost.prop_map(|(a, b, c, kind)| [a & b & c, a & b, a, (a | b) & 0xffff][kind]);
    let lost = (lost.clone(), lost).prop_map(|(up, down)| [up, down]);
    let timer = |most: u64| (0..most).prop_map(|halves| 2 * halves + 1);
    let timers = (timer(20), timer(30), timer(40));
    let sizes = (any::<bool>(), select(vec![20usize, 64, 125, 400]), 1u32..4, 0usize..4, any::<bool>());
    (packets, lost, timers, sizes).prop_map(move |(mut packets, lost, timers, sizes)| {
        packets.sort_unstable_by_key(|(at, _)| *at);
        let (t_reassembly, t_poll, t_reordering) = timers;
        let (short, octets, tries, poll_pdu, out_of_order) = sizes;
        World { is_am, short, octets, tries, poll_pdu, t_reassembly, t_poll, t_reordering, out_of_order, packets, lost }
    })
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn acknowledged_mode_is_that_of_the_plain_model(world in any_world(true)) {
        let expected = Model::new(&world).run();
        prop_assert_eq!(played(&world), expected);
    }

    #[test]
    fn unacknowledged_mode_is_that_of_the_plain_model(world in any_world(false)) {
        let expected = Model::new(&world).run();
        prop_assert_eq!(played(&world), expected);
    }
}
