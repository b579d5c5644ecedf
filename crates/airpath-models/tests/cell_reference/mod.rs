// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Cells compared, packet by packet and to the nanosecond, with naïve simulations that share no code with the models:
//! plain vectors searched from end to end, one loop over frames or slots, and the rules as the documentation has them
//! (docs/scenario/cells.md, docs/scenario/ofdm.md, docs/scenario/schedulers.md).
//!
//! Nothing is drawn: a channel is recorded, and either every frame of a mode arrives at a ratio or none does.

mod continuous;
mod slots;

use airpath_core::{Cause, Direction, End, EventKind, PortId, Seed};
use airpath_models::Cell;
use airpath_models::cell::CellConfig;

use crate::common::*;

/// A packet that a user offers.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    pub at: u64,
    pub id: u64,
    pub bytes: u64,
    pub user: usize,
}

/// Fates of the packets of each user: times and numbers of those delivered and of those dropped, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    pub delivered: Vec<Vec<(u64, u64)>>,
    pub dropped: Vec<Vec<(u64, u64, Cause)>>,
}

impl Fates {
    pub fn of(users: usize) -> Fates {
        Fates { delivered: vec![Vec::new(); users], dropped: vec![Vec::new(); users] }
    }

    /// The same with everything in order of time and number.
    pub fn sorted(mut self) -> Fates {
        self.delivered.iter_mut().for_each(|list| list.sort_unstable());
        self.dropped.iter_mut().for_each(|list| list.sort_by_key(|(at, id, _)| (*at, *id)));
        self
    }
}

/// Packets of all users, in order of time: bursts at one instant, at the beginnings of slots, and anywhere.
pub fn any_offers(dice: &mut Dice, users: usize, packets: u64, over_ns: u64, slot_ns: u64) -> Vec<Offered> {
    let mut offers = Vec::new();
    while (offers.len() as u64) < packets {
        let at = match dice.below(4) {
            0 => dice.below(over_ns / slot_ns) * slot_ns,
            1 => dice.below(over_ns / 1_000_000) * 1_000_000,
            _ => dice.below(over_ns),
        };
        for _ in 0..=dice.below(6) {
            offers.push(Offered { at, id: 0, bytes: 1 + dice.below(400), user: dice.below(users as u64) as usize });
        }
    }
    offers.sort_by_key(|offer| offer.at);
    offers.iter_mut().zip(1..).for_each(|(offer, id)| offer.id = id);
    offers
}

/// Fates of the packets in the cell, in `direction`, until `end_ns`.
pub fn played(config: &CellConfig, offers: &[Offered], direction: Direction, end_ns: u64) -> Fates {
    let at = airpath_core::Time::from_nanos;
    let from = if direction == Direction::Uplink { End::Client } else { End::Server };
    let script: Script = offers
        .iter()
        .map(|offer_| offer(at(offer_.at), PortId::of(offer_.user as u16, from), offer_.bytes as u32))
        .collect();
    let trace = run_to(Cell::new(config, Seed(1)), &script, at(end_ns));
    let mut fates = Fates::of(config.users.len());
    for left in &trace.departures {
        fates.delivered[usize::from(left.port.user())].push((left.at.nanos(), left.id));
    }
    for event in trace.of_kind(EventKind::Dropped) {
        // Each user has a place for the whole path and one for its only hop.
        fates.dropped[usize::from(event.hop / 2)].push((event.at.nanos(), event.pdu, event.cause));
    }
    fates.sorted()
}

/// Numbers of users with which cells are compared.
pub const USERS: [usize; 4] = [1, 2, 5, 20];
