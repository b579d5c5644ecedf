// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The access point: the order in which it serves stations, one at each of its turns.
//!
//! Source of the order by airtime: Høiland-Jørgensen et al. 2017, "Ending the Anomaly": each station with something to
//! send gets the same time on the air. Here it is the station that has used the least; a station that was idle begins
//! with the least use of those that were not, so that nothing is saved up.

use airpath_core::{Direction, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::contention::{NOT_READY, Ready};
use crate::air::Air;

/// Order in which an access point serves stations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceOrder {
    /// The station whose packet has waited longest, as with one common queue.
    #[default]
    FirstCome,
    /// One transmission to each station in turn.
    RoundRobin,
    /// The station that has used the least time on the air, its failed transmissions included.
    Airtime,
}

/// The stations of an access point.
#[derive(Clone, Debug)]
pub(super) struct AccessPoint {
    order: ServiceOrder,
    /// Time from which there is something for each station.
    ready: Vec<Ready>,
    /// Station after the one that was served last.
    next: usize,
    /// Time on the air that each station has used.
    used: Vec<Span>,
    /// True for stations that had nothing when they were last asked.
    was_idle: Vec<bool>,
    /// Scratch of `in_order`.
    asked: Vec<(u64, usize)>,
}

impl AccessPoint {
    pub fn new(order: ServiceOrder, stations: usize) -> AccessPoint {
        AccessPoint {
            order,
            ready: vec![NOT_READY; stations],
            next: 0,
            used: vec![Span::ZERO; stations],
            was_idle: vec![true; stations],
            asked: Vec::new(),
        }
    }

    /// Notes that there may be something for `station` from `ready` on.
    pub fn request(&mut self, station: usize, ready: Ready) {
        self.ready[station] = self.ready[station].min(ready);
    }

    /// Time from which there is something for a station.
    pub fn ready(&self) -> Ready {
        self.ready.iter().copied().min().unwrap_or(NOT_READY)
    }

    /// The stations for which there may be something in the slot that begins at `at`, in the order in which they are
    /// served; `of` is the place in it.
    pub fn in_order<A: Air>(&mut self, at: Time, air: &mut A) -> usize {
        let stations = self.ready.len();
        self.asked.clear();
        for offset in 0..stations {
            let station = (self.next + offset) % stations;
            let (from, is_late) = self.ready[station];
            if from < at || from == at && !is_late {
                self.asked.push((offset as u64, station));
            }
        }
        if self.asked.len() < 2 && self.order != ServiceOrder::Airtime {
            return self.asked.len();
        }
        match self.order {
            ServiceOrder::RoundRobin => return self.asked.len(),
            ServiceOrder::FirstCome => {
                for (key, station) in &mut self.asked {
                    *key = air.backlog(at, *station as u16, Direction::Downlink).since.nanos();
                }
            }
            ServiceOrder::Airtime => {
                let busy = self.asked.iter().filter(|(_, station)| !self.was_idle[*station]);
                let least = busy.map(|(_, station)| self.used[*station]).min();
                for (key, station) in &mut self.asked {
                    if let Some(least) = least.filter(|_| self.was_idle[*station]) {
                        self.used[*station] = self.used[*station].max(least);
                    }
                    self.was_idle[*station] = false;
                    *key = self.used[*station].nanos();
                }
            }
        }
        // The lower number first where two are equal.
        self.asked.sort_unstable();
        self.asked.len()
    }

    /// The station at `place` in the order.
    pub fn asked(&self, place: usize) -> usize {
        self.asked[place].1
    }

    /// Notes that there is nothing for `station`.
    pub fn has_nothing(&mut self, station: usize) {
        self.ready[station] = NOT_READY;
        self.was_idle[station] = true;
    }

    /// Notes that the present transmission is for `station`.
    pub fn serves(&mut self, station: usize) {
        self.next = (station + 1) % self.ready.len();
    }

    /// Notes that a transmission to `station` took `time`.
    pub fn served(&mut self, station: usize, time: Span) {
        self.used[station] = self.used[station] + time;
    }
}
