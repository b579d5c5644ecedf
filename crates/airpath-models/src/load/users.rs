// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Users who arrive, send an amount of data and leave.
//!
//! With exponential intervals and a limit on the users present this is the loss system M/G/N/N, in
//! which the Erlang B formula says how many are turned away; without a limit the number present is
//! Poisson distributed. A user is present from the arrival until the rate has carried the whole volume,
//! whatever the link makes of the packets. One who finds the limit reached goes again and sends nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airpath_core::{Bits, Carry, DrawKey, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::{self, PacketSizes};
use super::{Generator, LEAST_INTERVAL, Packet};
use crate::file::{VisitFile, under};
use crate::problem::Problem;
use crate::random::{Random, Sampler};
use crate::registry::Configured;

/// Parameters of the load of arriving users.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsersConfig {
    /// The time from one user's arrival to the next one's; `{ type = "exponential", … }` for a Poisson
    /// process. The first user comes after the first interval.
    pub interval: Random<Span>,
    /// Amount of data of each user.
    pub volume: Random<Bits>,
    /// The rate at which each user sends; without it all packets of a user come at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The IP length of a packet; a user's last one is as short as what is left.
    pub packet_size: Random<Bits>,
    /// Maximum number of simultaneous users; none for any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub most_users: Option<u32>,
}

impl Configured for UsersConfig {
    type Model = Users;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = size::problems(&self.packet_size, "packet_size");
        problems.extend(self.interval.problems().into_iter().map(|problem| problem.under("interval")));
        problems.extend(self.volume.problems().into_iter().map(|problem| problem.under("volume")));
        if self.interval.constant() == Some(Span::ZERO) {
            problems.push(Problem::new("interval", "is zero; write for example \"2 s\""));
        }
        if self.volume.constant() == Some(Bits::ZERO) {
            problems.push(Problem::new("volume", "is zero; write for example \"100 kB\""));
        }
        if self.rate.is_none() && self.volume.constant().is_some_and(|volume| volume > MOST_AT_ONCE) {
            let message = format!("is more than {MOST_AT_ONCE} at one instant; write a `rate` for users");
            problems.push(Problem::new("volume", message));
        }
        if self.most_users.is_some() && self.rate.is_none() {
            let message = "needs a `rate`: a user who sends everything at once is gone at once";
            problems.push(Problem::new("most_users", message));
        }
        problems
    }

    fn files(&mut self, visit: &mut VisitFile<'_>) {
        self.interval.files(&mut under("interval", visit));
        self.volume.files(&mut under("volume", visit));
        self.packet_size.files(&mut under("packet_size", visit));
    }

    fn build(&self, key: DrawKey) -> Users {
        Users::new(self, key)
    }

    fn examples() -> Vec<UsersConfig> {
        let rate = Some("100 kbit/s".parse().expect("an example is valid"));
        let config = |(interval, volume)| UsersConfig {
            interval,
            volume,
            rate,
            packet_size: Bits::from_bytes(200).into(),
            most_users: Some(2),
        };
        let intervals = Random::examples(Span::from_millis(20));
        let mut all: Vec<_> = intervals.into_iter().zip(Random::examples(Bits::from_bytes(500))).map(config).collect();
        let burst = UsersConfig { rate: None, most_users: None, ..all[0].clone() };
        all.push(burst);
        all
    }
}

/// The most that a user without a rate sends: at one instant nobody needs more.
const MOST_AT_ONCE: Bits = Bits::from_bytes(100_000_000);

/// A user who is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct User {
    /// Time of the next packet, or, with nothing left, of the user's departure.
    next: Span,
    number: u64,
    bytes_left: u64,
}

/// The load of arriving users.
#[derive(Clone, Debug)]
pub struct Users {
    intervals: Sampler<Span>,
    volumes: Sampler<Bits>,
    sizes: PacketSizes,
    rate: Option<Rate>,
    most_users: usize,
    /// Those present: the one who acts next first, of several the one who came first.
    present: BinaryHeap<Reverse<User>>,
    /// Arrival time and number of the next user.
    next_arrival: Span,
    arrivals: u64,
}

impl Users {
    pub(super) fn new(config: &UsersConfig, key: DrawKey) -> Users {
        let mut users = Users {
            intervals: Sampler::new(&config.interval, key.child("interval", 0)),
            volumes: Sampler::new(&config.volume, key.child("volume", 0)),
            sizes: PacketSizes::new(&config.packet_size, key),
            rate: config.rate,
            most_users: config.most_users.map_or(usize::MAX, |most| most as usize),
            present: BinaryHeap::new(),
            next_arrival: Span::ZERO,
            arrivals: 0,
        };
        users.next_arrival = users.intervals.draw(0).max(LEAST_INTERVAL);
        users
    }

    /// Lets the next user come, or go again at once.
    fn arrive(&mut self) {
        let (next, number) = (self.next_arrival, self.arrivals);
        // Drawn for those who are turned away, too: a limit changes nothing for the others.
        let drawn = self.volumes.draw(number).get().div_ceil(8).max(1);
        let bytes_left = if self.rate.is_none() { drawn.min(MOST_AT_ONCE.get() / 8) } else { drawn };
        if self.present.len() < self.most_users {
            self.present.push(Reverse(User { next, number, bytes_left }));
        }
        self.arrivals += 1;
        self.next_arrival = next + self.intervals.draw(self.arrivals).max(LEAST_INTERVAL);
    }
}

impl Generator for Users {
    fn next_packet(&mut self) -> Option<Packet> {
        loop {
            // One who goes makes room for one who comes at the same instant.
            let first = self.present.peek().filter(|user| user.0.next <= self.next_arrival);
            let Some(&Reverse(mut user)) = first else {
                self.arrive();
                continue;
            };
            self.present.pop();
            if user.bytes_left == 0 {
                continue;
            }
            let bytes = u64::from(self.sizes.next_bytes()).min(user.bytes_left);
            let packet = Packet { after: user.next, bytes: bytes as u32, sender: user.number };
            user.bytes_left -= bytes;
            if let Some(rate) = self.rate {
                // A nanosecond at most is lost with each packet.
                let carried = rate.tx(Bits::from_bytes(bytes), &mut Carry::default());
                user.next = user.next + carried.max(LEAST_INTERVAL);
            }
            self.present.push(Reverse(user));
            return Some(packet);
        }
    }
}
