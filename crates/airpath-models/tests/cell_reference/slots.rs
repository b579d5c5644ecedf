// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Adaptive OFDM with repetitions: slot by slot.

use airpath_core::{Cause, Direction};
use airpath_models::LinkConfig;
use airpath_models::cell::{CellConfig, UserConfig};
use airpath_models::fading::{FadingModelConfig, RecordedConfig, SnrTable};
use airpath_models::file::{FileFormat, FileRef};
use airpath_models::random::AtEnd;
use serde_json::{Value, json};

use super::{Fates, Offered, USERS, any_offers, played};
use crate::common::*;

/// Number of symbols of a frame; a mode carries 1, 2 or 3 bits in each.
const SYMBOLS: u64 = 100;

/// Qualities of a resource in a slot: nothing gets through, or the best mode that does carries so many bits a symbol.
const DECIBELS: [&str; 4] = ["-20", "5", "15", "25"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheduler {
    RoundRobin,
    MaxCi,
    Static,
}

#[derive(Clone, Debug)]
struct Medium {
    slots_per_second: u64,
    resources: usize,
    scheduler: Scheduler,
    /// True if the lowest mode is used where nothing gets through, false if such a resource is not usable.
    tries_hopeless: bool,
}

#[derive(Clone, Debug)]
struct User {
    queue_limit: usize,
    buffer_limit: usize,
    propagation_ns: u64,
    feedback_ns: u64,
    overhead_octets: u64,
    retransmissions: u64,
    in_order: bool,
    concatenate: bool,
    /// Quality by slot and resource; repeated from its end on.
    quality: Vec<Vec<usize>>,
}

/// A packet, with its first bit in the user's stream and the first one behind it.
#[derive(Clone, Copy, Debug)]
struct Packet {
    id: u64,
    from: u64,
    to: u64,
}

/// Bits of the stream that go in one frame.
#[derive(Clone, Copy, Debug)]
struct Part {
    from: u64,
    to: u64,
    /// Number of times that they have been sent.
    tries: u64,
}

/// Packets that wait at a user, and the fates of the bits of the stream.
#[derive(Clone, Debug, Default)]
struct Sender {
    /// Number and bytes.
    queue: Vec<(u64, u64)>,
    /// Packets of which not all bits are answered.
    buffer: Vec<Packet>,
    all: Vec<Packet>,
    /// First bit that has not been sent, and the end of the stream.
    cut: u64,
    end: u64,
    /// Parts to be repeated.
    waiting: Vec<Part>,
    /// Parts on their way: when the answer is heard, and whether it asks for a repetition.
    answers: Vec<(u64, Part, bool)>,
    /// Parts whose fate is known: when, and whether they arrived.
    settled: Vec<(u64, Part, bool)>,
    /// Bits that are answered and not repeated.
    answered: Vec<Part>,
    /// Number of the last turn.
    last_turn: Option<u64>,
}

impl Sender {
    fn fill(&mut self, user: &User) {
        while !self.queue.is_empty() && (self.buffer.is_empty() || self.buffer.len() < user.buffer_limit) {
            let (id, bytes) = self.queue.remove(0);
            let packet = Packet { id, from: self.end, to: self.end + (bytes + user.overhead_octets) * 8 };
            self.end = packet.to;
            self.buffer.push(packet);
            self.all.push(packet);
        }
    }

    fn hear(&mut self, part: Part, repeat: bool, user: &User) {
        if repeat {
            self.waiting.push(part);
        } else {
            self.answered.push(part);
            let answered = &self.answered;
            let bits = |packet: &Packet| -> u64 {
                let within = |part: &Part| part.to.min(packet.to).saturating_sub(part.from.max(packet.from));
                answered.iter().map(within).sum()
            };
            self.buffer.retain(|packet| bits(packet) < packet.to - packet.from);
        }
        self.fill(user);
    }

    /// Bits that could be sent, as the scheduler is told.
    fn backlog(&self) -> u64 {
        let waiting: u64 = self.waiting.iter().map(|part| part.to - part.from).sum::<u64>() + self.end - self.cut;
        let queued: u64 = self.queue.iter().map(|(_, bytes)| bytes * 8).sum();
        if waiting == 0 { 0 } else { waiting + queued }
    }

    /// The bits for a frame of `bits`: the oldest that are to be repeated, or new ones.
    fn take(&mut self, bits: u64, user: &User) -> Option<Part> {
        self.waiting.sort_by_key(|part| part.from);
        if !self.waiting.is_empty() {
            let mut part = self.waiting.remove(0);
            if part.to - part.from > bits {
                self.waiting.push(Part { from: part.from + bits, ..part });
                part.to = part.from + bits;
            }
            part.tries += 1;
            return Some(part);
        }
        let mut to = (self.cut + bits).min(self.end);
        if !user.concatenate {
            let first = self.all.iter().find(|packet| packet.to > self.cut)?;
            to = to.min(first.to);
        }
        let part = Part { from: self.cut, to, tries: 1 };
        self.cut = to;
        (part.from < part.to).then_some(part)
    }
}

struct Cell<'a> {
    medium: &'a Medium,
    users: &'a [User],
    senders: Vec<Sender>,
    /// User, bits, and whether they arrive, of the frames of the present slot.
    on_air: Vec<(usize, Part, bool)>,
    turns: u64,
    fates: Fates,
}

impl Cell<'_> {
    fn start(&self, slot: u64) -> u64 {
        slot * 1_000_000_000 / self.medium.slots_per_second
    }

    fn quality(&self, user: usize, slot: u64, resource: usize) -> usize {
        let table = &self.users[user].quality;
        table[slot as usize % table.len()][resource]
    }

    /// Bits that a frame of a user would carry.
    fn bits(&self, user: usize, slot: u64, resource: usize) -> u64 {
        match self.quality(user, slot, resource) {
            0 if self.medium.tries_hopeless => SYMBOLS,
            quality => quality as u64 * SYMBOLS,
        }
    }

    /// Answers that are heard before slot `slot` shares its resources.
    fn hear(&mut self, until: u64) {
        for (sender, user) in self.senders.iter_mut().zip(self.users) {
            sender.answers.sort_by_key(|(at, part, _)| (*at, part.from));
            while sender.answers.first().is_some_and(|(at, ..)| *at <= until) {
                let (_, part, repeat) = sender.answers.remove(0);
                sender.hear(part, repeat, user);
            }
        }
    }

    fn offer(&mut self, offer: &Offered) {
        self.hear(offer.at);
        let (sender, user) = (&mut self.senders[offer.user], &self.users[offer.user]);
        if sender.queue.len() >= user.queue_limit {
            return self.fates.dropped[offer.user].push((offer.at, offer.id, Cause::QueuePackets));
        }
        sender.queue.push((offer.id, offer.bytes));
        sender.fill(user);
    }

    /// The user of each resource of a slot.
    fn assign(&mut self, slot: u64) -> Vec<Option<usize>> {
        let mut left: Vec<u64> = self.senders.iter().map(Sender::backlog).collect();
        // Who has never had a turn comes first, in the order of the numbers.
        let turns_before: Vec<_> = self.senders.iter().map(|sender| sender.last_turn).collect();
        let mut assigned = Vec::new();
        for resource in 0..self.medium.resources {
            let can = |user: &usize| left[*user] > 0 && self.bits(*user, slot, resource) > 0;
            let users = (0..self.users.len()).filter(can);
            let chosen = match self.medium.scheduler {
                Scheduler::RoundRobin => users.min_by_key(|user| (self.senders[*user].last_turn, *user)),
                Scheduler::MaxCi => users.min_by_key(|user| {
                    (std::cmp::Reverse(self.bits(*user, slot, resource)), turns_before[*user], *user)
                }),
                Scheduler::Static => Some(resource % self.users.len()).filter(can),
            };
            if let Some(user) = chosen {
                left[user] = left[user].saturating_sub(self.bits(user, slot, resource));
                self.turns += 1;
                self.senders[user].last_turn = Some(self.turns);
            }
            assigned.push(chosen);
        }
        assigned
    }

    fn slot(&mut self, slot: u64) {
        let at = self.start(slot);
        self.hear(at);
        for (user, part, arrives) in std::mem::take(&mut self.on_air) {
            let known = at + self.users[user].propagation_ns;
            let repeat = !arrives && part.tries <= self.users[user].retransmissions;
            let sender = &mut self.senders[user];
            sender.answers.push((known + self.users[user].feedback_ns, part, repeat));
            if !repeat {
                sender.settled.push((known, part, arrives));
            }
        }
        for (resource, user) in self.assign(slot).into_iter().enumerate() {
            let Some(user) = user else { continue };
            let bits = self.bits(user, slot, resource);
            if let Some(part) = self.senders[user].take(bits, &self.users[user]) {
                self.on_air.push((user, part, self.quality(user, slot, resource) > 0));
            }
        }
    }

    /// Packets as they are handed up: each when its last bit is there, in order also everything before it.
    fn hand_up(&mut self) {
        for (number, (sender, user)) in self.senders.iter().zip(self.users).enumerate() {
            // Time at which a part is taken: in order, when everything before it has been.
            let mut settled = sender.settled.clone();
            settled.sort_by_key(|(_, part, _)| part.from);
            let (mut whole, mut latest) = (0, 0);
            for (at, part, _) in &mut settled {
                if user.in_order {
                    latest = latest.max(*at);
                    *at = if part.from == whole { latest } else { u64::MAX };
                    whole = if part.from == whole { part.to } else { whole };
                }
            }
            for packet in &sender.all {
                let own = || settled.iter().filter(|(_, part, _)| part.from < packet.to && part.to > packet.from);
                let lost = own().filter(|(_, _, arrived)| !arrived).map(|(at, ..)| *at).min();
                let bits: u64 = own().map(|(_, part, _)| part.to.min(packet.to) - part.from.max(packet.from)).sum();
                let last = own().map(|(at, ..)| *at).max();
                match (lost.filter(|at| *at < u64::MAX), last.filter(|at| *at < u64::MAX)) {
                    (Some(at), _) => self.fates.dropped[number].push((at, packet.id, Cause::ChannelError)),
                    (None, Some(at)) if bits == packet.to - packet.from => {
                        self.fates.delivered[number].push((at, packet.id));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn reference(medium: &Medium, users: &[User], offers: &[Offered], end_ns: u64) -> Fates {
    let mut cell = Cell {
        medium,
        users,
        senders: vec![Sender::default(); users.len()],
        on_air: Vec::new(),
        turns: 0,
        fates: Fates::of(users.len()),
    };
    let mut offers = offers.iter().peekable();
    for slot in 0.. {
        let at = cell.start(slot);
        // What comes as a slot begins goes in the next one.
        while let Some(offer) = offers.next_if(|offer| offer.at < at) {
            cell.offer(offer);
        }
        if at > end_ns {
            break;
        }
        cell.slot(slot);
    }
    cell.hand_up();
    cell.fates.delivered.iter_mut().for_each(|list| list.retain(|(at, _)| *at <= end_ns));
    cell.fates.dropped.iter_mut().for_each(|list| list.retain(|(at, ..)| *at <= end_ns));
    cell.fates.sorted()
}

fn any_user(dice: &mut Dice, resources: usize) -> User {
    let rows = 1 + dice.below(12) as usize;
    let propagation_ns = dice.below(3) * 1_700_001;
    User {
        queue_limit: 1 + dice.below(12) as usize,
        buffer_limit: 1 + dice.below(6) as usize,
        propagation_ns,
        feedback_ns: [0, 100_000, 2_000_000, 7_300_000][1 + dice.below(3) as usize],
        overhead_octets: dice.below(3) * 4,
        retransmissions: dice.below(4),
        in_order: dice.below(2) == 1,
        concatenate: dice.below(3) > 0,
        quality: (0..rows).map(|_| (0..resources).map(|_| dice.below(4) as usize).collect()).collect(),
    }
}

fn link(user: &User) -> LinkConfig {
    let text: String = user
        .quality
        .iter()
        .map(|row| row.iter().map(|quality| DECIBELS[*quality]).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    let table = SnrTable::parse(text.as_bytes()).unwrap();
    let mut link: LinkConfig = serde_json::from_value(json!({
        "medium": "cell",
        "entity": entity(user),
        "queue": { "type": "tail_drop", "limit": format!("{} packets", user.queue_limit) },
        "send_buffer": format!("{} packets", user.buffer_limit),
        "propagation": format!("{} ns", user.propagation_ns),
        "overhead": format!("{} bytes", user.overhead_octets),
        "fading": { "type": "constant" },
    }))
    .unwrap();
    let file = FileRef::with_data("snr.csv", table);
    link.fading.as_mut().unwrap().model = FadingModelConfig::Recorded(RecordedConfig { file, at_end: AtEnd::Repeat });
    link
}

fn entity(user: &User) -> Value {
    json!({
        "type": "arq",
        "retransmissions": user.retransmissions,
        "feedback_delay": format!("{} ns", user.feedback_ns),
        "in_order": user.in_order,
        "concatenate": user.concatenate,
    })
}

fn cell(medium: &Medium, users: &[User]) -> CellConfig {
    let mode = |bits: u32, level: i32| {
        let curve = [(format!("{} dB", level - 1), 1.0), (format!("{level} dB"), 1e-12)];
        json!({ "bits_per_symbol": bits, "block_error": curve })
    };
    let levels: &[&str] = if medium.tries_hopeless { &["10 dB", "20 dB"] } else { &["0 dB", "10 dB", "20 dB"] };
    let kind = match medium.scheduler {
        Scheduler::RoundRobin => "round_robin",
        Scheduler::MaxCi => "max_ci",
        Scheduler::Static => "static",
    };
    let config = json!({
        "name": "cell",
        "type": "ofdm",
        "slots_per_second": medium.slots_per_second,
        "resources": medium.resources,
        "symbols": SYMBOLS,
        "modes": { "type": "table", "modes": [mode(1, 0), mode(2, 10), mode(3, 20)] },
        "adaptation": { "type": "thresholds", "levels": levels },
        "scheduler": { "type": kind },
    });
    let users = users.iter().enumerate().map(|(number, user)| {
        let uplink: LinkConfig = serde_json::from_value(json!({ "entity": entity(user) })).unwrap();
        UserConfig { name: format!("u{number}"), is_unnamed: false, path: one_hop("radio", uplink, link(user)) }
    });
    CellConfig { media: vec![serde_json::from_value(config).unwrap()], users: users.collect() }
}

#[test]
fn slots_of_several_users_are_shared_as_in_the_reference() {
    const END_NS: u64 = 3_000_000_000;
    let schedulers = [Scheduler::RoundRobin, Scheduler::MaxCi, Scheduler::Static];
    let (mut delivered, mut dropped, mut lost) = (0, 0, 0);
    for case in 0..72u64 {
        let count = USERS[case as usize % USERS.len()];
        let mut dice = Dice::new(case + 1);
        let medium = Medium {
            slots_per_second: [1000, 1500, 700][dice.below(3) as usize],
            resources: 1 + dice.below(8) as usize,
            scheduler: schedulers[case as usize / USERS.len() % schedulers.len()],
            tries_hopeless: dice.below(2) == 1,
        };
        let users: Vec<User> = (0..count).map(|_| any_user(&mut dice, medium.resources)).collect();
        let offers = any_offers(&mut dice, count, 200, 400_000_000, 1_000_000_000 / medium.slots_per_second);
        let expected = reference(&medium, &users, &offers, END_NS);
        let found = played(&cell(&medium, &users), &offers, Direction::Downlink, END_NS);
        for (user, config) in users.iter().enumerate() {
            let what = format!("case {case}, user {user} of {count}: {medium:?}, {config:?}");
            assert_eq!(found.dropped[user], expected.dropped[user], "{what}");
            assert_eq!(found.delivered[user], expected.delivered[user], "{what}");
            delivered += found.delivered[user].len();
            dropped += found.dropped[user].len();
            lost += found.dropped[user].iter().filter(|(.., cause)| *cause == Cause::ChannelError).count();
        }
    }
    assert!(delivered > 5_000 && dropped > 2_000 && lost > 300, "{delivered}, {dropped} and {lost} test little");
}
