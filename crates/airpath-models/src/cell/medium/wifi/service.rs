// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The bearers of a contender: the order in which it serves them, one at each of its turns. Those of a station are its
//! own, those of the access point are all.
//!
//! Source of the order by airtime: Høiland-Jørgensen et al. 2017, "Ending the Anomaly": each station with something to
//! send gets the same time on the air. Here it is the bearer that has used the least; a bearer that was idle begins
//! with the least use of those that were not, so that nothing is saved up.

use airpath_core::{Direction, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contention::{NOT_READY, Ready};
use crate::air::Air;

/// Order in which an access point serves bearers; a user without bearers is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceOrder {
    /// The bearer whose packet has waited longest, as with one common queue.
    #[default]
    FirstCome,
    /// One transmission of each bearer in turn.
    RoundRobin,
    /// The bearer that has used the least time on the air, its failed transmissions included.
    Airtime,
}

/// The bearers of a contender, by their places among them.
#[derive(Clone, Debug)]
pub(super) struct Service {
    order: ServiceOrder,
    direction: Direction,
    /// Numbers of the bearers.
    bearers: Vec<u16>,
    /// Time from which each has something to send.
    ready: Vec<Ready>,
    /// Place behind the one that was served last.
    next: usize,
    /// Time on the air that each has used.
    used: Vec<Span>,
    /// True for those that had nothing when they were last asked.
    was_idle: Vec<bool>,
    /// Scratch of `in_order`.
    asked: Vec<(u64, usize)>,
}

impl Service {
    pub fn new(order: ServiceOrder, direction: Direction, bearers: Vec<u16>) -> Service {
        let count = bearers.len();
        Service {
            order,
            direction,
            bearers,
            ready: vec![NOT_READY; count],
            next: 0,
            used: vec![Span::ZERO; count],
            was_idle: vec![true; count],
            asked: Vec::new(),
        }
    }

    /// Direction of the frames.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Number of the bearer at `place`.
    pub fn bearer(&self, place: usize) -> u16 {
        self.bearers[place]
    }

    /// Notes that the bearer at `place` may have something from `ready` on.
    pub fn request(&mut self, place: usize, ready: Ready) {
        self.ready[place] = self.ready[place].min(ready);
    }

    /// Time from which one of them may have something.
    pub fn ready(&self) -> Ready {
        self.ready.iter().copied().min().unwrap_or(NOT_READY)
    }

    /// Puts those that may have something in the slot that begins at `at` in the order in which they are served;
    /// their number.
    pub fn put_in_order<A: Air>(&mut self, at: Time, air: &mut A) -> usize {
        let count = self.ready.len();
        self.asked.clear();
        for offset in 0..count {
            let place = (self.next + offset) % count;
            let (from, is_late) = self.ready[place];
            if from < at || from == at && !is_late {
                self.asked.push((offset as u64, place));
            }
        }
        match self.order {
            ServiceOrder::RoundRobin => return self.asked.len(),
            ServiceOrder::FirstCome => {
                if self.asked.len() > 1 {
                    for (key, place) in &mut self.asked {
                        *key = air.backlog(at, self.bearers[*place], self.direction).since.nanos();
                    }
                }
            }
            ServiceOrder::Airtime => {
                let busy = self.asked.iter().filter(|(_, place)| !self.was_idle[*place]);
                let least = busy.map(|(_, place)| self.used[*place]).min();
                for (key, place) in &mut self.asked {
                    if let Some(least) = least.filter(|_| self.was_idle[*place]) {
                        self.used[*place] = self.used[*place].max(least);
                    }
                    self.was_idle[*place] = false;
                    *key = self.used[*place].nanos();
                }
            }
        }
        // The lower number first where two are equal.
        self.asked.sort_unstable();
        self.asked.len()
    }

    /// Place of the one that is `number`th in the order.
    pub fn asked(&self, number: usize) -> usize {
        self.asked[number].1
    }

    /// Notes that the bearer at `place` has nothing.
    pub fn has_nothing(&mut self, place: usize) {
        self.ready[place] = NOT_READY;
        self.was_idle[place] = true;
    }

    /// Notes that the present transmission is of the bearer at `place`.
    pub fn serves(&mut self, place: usize) {
        self.next = (place + 1) % self.ready.len();
    }

    /// Notes that a transmission of the bearer at `place` took `time`, and that it may have more from `ready` on.
    pub fn served(&mut self, place: usize, time: Span, ready: Ready) {
        self.used[place] = self.used[place] + time;
        self.request(place, ready);
    }
}
