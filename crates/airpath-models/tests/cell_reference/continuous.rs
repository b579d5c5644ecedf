// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! A continuous medium: one frame after the other.

use airpath_core::{Cause, Direction};
use airpath_models::cell::{CellConfig, UserConfig};
use airpath_models::{LinkConfig, PathConfig};
use serde_json::{Value, json};

use super::{Fates, Offered, USERS, any_offers, played};
use crate::common::*;

/// A user's own side of the link.
#[derive(Clone, Copy, Debug)]
struct User {
    queue_limit: usize,
    buffer_limit: usize,
    propagation_ns: u64,
    overhead_bits: u64,
    /// Payload and header of frames, and whether the last one is padded; none for packets as they are.
    frames: Option<(u64, u64, bool)>,
}

/// A packet on its way.
#[derive(Clone, Debug)]
struct Packet {
    arrived: u64,
    id: u64,
    /// Bits of its frames that have not begun.
    frames: Vec<u64>,
}

impl User {
    fn frames_of(&self, bytes: u64) -> Vec<u64> {
        let mut left = bytes * 8 + self.overhead_bits;
        let Some((payload, header, padded)) = self.frames else { return vec![left] };
        let mut frames = Vec::new();
        while left > 0 {
            let now = left.min(payload);
            frames.push(header + if padded { payload } else { now });
            left -= now;
        }
        frames
    }
}

/// The medium and what waits for it.
struct Medium<'a> {
    users: &'a [User],
    in_turn: bool,
    rate: u64,
    queues: Vec<Vec<Packet>>,
    /// Packets in send buffers; one stays until its last frame has been sent.
    buffers: Vec<Vec<Packet>>,
    /// User and end of the frame that is being sent.
    sending: Option<(usize, u64)>,
    last_served: Option<usize>,
    /// Beginning of the busy period and the bits sent in it, and its end so far.
    busy: (u64, u64, u64),
    fates: Fates,
}

impl Medium<'_> {
    fn fill(&mut self, user: usize) {
        while !self.queues[user].is_empty()
            && (self.buffers[user].is_empty() || self.buffers[user].len() < self.users[user].buffer_limit)
        {
            let packet = self.queues[user].remove(0);
            self.buffers[user].push(packet);
        }
    }

    /// The user whose frame goes next.
    fn next(&self) -> Option<usize> {
        let waiting = |user: usize| self.buffers[user].iter().find(|packet| !packet.frames.is_empty());
        let all = || (0..self.users.len()).filter(|user| waiting(*user).is_some());
        if self.in_turn {
            let count = self.users.len();
            let first = self.last_served.map_or(0, |last| last + 1);
            all().min_by_key(|user| (user + count - first % count) % count)
        } else {
            all().min_by_key(|user| (waiting(*user).unwrap().arrived, *user))
        }
    }

    fn begin(&mut self, at: u64) {
        let Some(user) = self.next() else { return };
        let packet = self.buffers[user].iter_mut().find(|packet| !packet.frames.is_empty()).unwrap();
        let bits = packet.frames.remove(0);
        if at != self.busy.2 {
            self.busy = (at, 0, at);
        }
        self.busy.1 += bits;
        let took = u128::from(self.busy.1) * 1_000_000_000 / u128::from(self.rate);
        self.busy.2 = self.busy.0 + took as u64;
        self.sending = Some((user, self.busy.2));
        self.last_served = Some(user);
    }

    /// Everything up to and at `until`.
    fn run(&mut self, until: u64) {
        while let Some((user, at)) = self.sending.filter(|(_, end)| *end <= until) {
            self.sending = None;
            if self.buffers[user][0].frames.is_empty() {
                let packet = self.buffers[user].remove(0);
                self.fates.delivered[user].push((at + self.users[user].propagation_ns, packet.id));
            }
            self.fill(user);
            self.begin(at);
        }
    }

    fn offer(&mut self, offer: &Offered) {
        self.run(offer.at);
        let user = &self.users[offer.user];
        if self.queues[offer.user].len() >= user.queue_limit {
            return self.fates.dropped[offer.user].push((offer.at, offer.id, Cause::QueuePackets));
        }
        let packet = Packet { arrived: offer.at, id: offer.id, frames: user.frames_of(offer.bytes) };
        self.queues[offer.user].push(packet);
        self.fill(offer.user);
        if self.sending.is_none() {
            self.begin(offer.at);
        }
    }
}

fn reference(users: &[User], in_turn: bool, rate: u64, offers: &[Offered]) -> Fates {
    let mut medium = Medium {
        users,
        in_turn,
        rate,
        queues: vec![Vec::new(); users.len()],
        buffers: vec![Vec::new(); users.len()],
        sending: None,
        last_served: None,
        busy: (0, 0, 0),
        fates: Fates::of(users.len()),
    };
    offers.iter().for_each(|offer| medium.offer(offer));
    medium.run(u64::MAX);
    medium.fates.sorted()
}

fn any_user(dice: &mut Dice) -> User {
    User {
        queue_limit: 1 + dice.below(8) as usize,
        buffer_limit: 1 + dice.below(3) as usize,
        propagation_ns: dice.below(3) * 1_700_001,
        overhead_bits: dice.below(3) * 64,
        frames: (dice.below(2) == 1).then(|| (200 + dice.below(1000), dice.below(50), dice.below(2) == 1)),
    }
}

fn link(user: &User) -> LinkConfig {
    let mut link = json!({
        "medium": "cell",
        "queue": { "type": "tail_drop", "limit": format!("{} packets", user.queue_limit) },
        "send_buffer": format!("{} packets", user.buffer_limit),
        "propagation": format!("{} ns", user.propagation_ns),
        "overhead": format!("{} bit", user.overhead_bits),
    });
    if let Some((payload, header, padded)) = user.frames {
        link["fragmentation"] = json!({
            "frame_payload": format!("{payload} bit"),
            "frame_header": format!("{header} bit"),
            "last_frame": if padded { "padded" } else { "short" },
        });
    }
    serde_json::from_value(link).unwrap()
}

fn cell(users: &[User], order: &str, rate: u64) -> CellConfig {
    let rate = format!("{rate} bit/s");
    let medium: Value =
        json!({ "name": "cell", "type": "continuous", "uplink": rate, "downlink": rate, "order": order });
    let paths = users.iter().map(|user| one_hop("radio", link(user), link(user)));
    let named =
        |(number, path): (usize, PathConfig)| UserConfig { name: format!("u{number}"), is_unnamed: false, path };
    CellConfig { media: vec![serde_json::from_value(medium).unwrap()], users: paths.enumerate().map(named).collect() }
}

#[test]
fn frames_of_several_users_follow_each_other_as_in_the_reference() {
    let (mut delivered, mut dropped) = (0, 0);
    for case in 0..48u64 {
        let count = USERS[case as usize % USERS.len()];
        let mut dice = Dice::new(case + 1);
        let users: Vec<User> = (0..count).map(|_| any_user(&mut dice)).collect();
        let rate = 100_000 + dice.below(900_000);
        let offers = any_offers(&mut dice, count, 300, 600_000_000, 333_333);
        for (order, in_turn) in [("first_come", false), ("round_robin", true)] {
            for direction in Direction::ALL {
                let expected = reference(&users, in_turn, rate, &offers);
                let found = played(&cell(&users, order, rate), &offers, direction, 60_000_000_000);
                assert_eq!(found, expected, "case {case}, {order}, {direction:?}: {users:?} at {rate} bit/s");
                delivered += found.delivered.iter().map(Vec::len).sum::<usize>();
                dropped += found.dropped.iter().map(Vec::len).sum::<usize>();
            }
        }
    }
    assert!(delivered > 20_000 && dropped > 5_000, "{delivered} delivered and {dropped} dropped test little");
}
