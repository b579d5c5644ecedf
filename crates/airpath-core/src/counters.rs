// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Counters of everything a machine did, kept at every log level.

use crate::event::{Cause, Event, EventKind, Stage};
use crate::pdu::{Direction, Origin};

/// A number of events and of the bits they concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of occurrences.
    pub count: u64,
    /// Their bits.
    pub bits: u64,
}

impl Tally {
    #[inline]
    fn add(&mut self, bits: u64) {
        self.count += 1;
        self.bits += bits;
    }
}

/// Counters of one hop and direction (or of the path) and one origin of traffic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteCounters {
    kinds: [Tally; EventKind::COUNT],
    causes: [Tally; Cause::COUNT],
}

impl Default for SiteCounters {
    fn default() -> SiteCounters {
        SiteCounters { kinds: [Tally::default(); EventKind::COUNT], causes: [Tally::default(); Cause::COUNT] }
    }
}

impl SiteCounters {
    /// Events of `kind`.
    pub fn kind(&self, kind: EventKind) -> Tally {
        self.kinds[kind as usize]
    }

    /// Drops and discards because of `cause`.
    pub fn cause(&self, cause: Cause) -> Tally {
        self.causes[cause as usize]
    }
}

/// All counters of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    sites: Vec<SiteCounters>,
}

const ORIGINS: usize = 3;

#[inline]
fn site(hop: u16, direction: Direction, origin: Origin) -> usize {
    // The number of the whole path is the last there is: it wraps to 0, before the first hop's.
    let place = usize::from(hop.wrapping_add(1));
    (place * 2 + direction as usize) * ORIGINS + origin as usize
}

impl Counters {
    /// Counts `event`.
    // Inlined wherever something is recorded: kind and cause are constants there, and where only
    // counters are kept the event itself is never built.
    #[inline(always)]
    pub fn count(&mut self, event: &Event) {
        let index = site(event.hop, event.direction, event.origin);
        if index >= self.sites.len() {
            self.grow(index);
        }
        let site = &mut self.sites[index];
        site.kinds[event.kind as usize].add(event.bits);
        if event.cause != Cause::None {
            site.causes[event.cause as usize].add(event.bits);
        }
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.sites.resize(index + 1, SiteCounters::default());
    }

    /// The counters of a hop (`Event::WHOLE_PATH` for the path) in one direction for one origin.
    pub fn site(&self, hop: u16, direction: Direction, origin: Origin) -> SiteCounters {
        self.sites.get(site(hop, direction, origin)).cloned().unwrap_or_default()
    }

    /// The counters of the user with this number, who has `places` places, as those of a path alone.
    pub fn of_user(&self, user: usize, places: u16) -> Counters {
        let of_each = usize::from(places) * 2 * ORIGINS;
        let first = (user * of_each).min(self.sites.len());
        let end = (first + of_each).min(self.sites.len());
        Counters { sites: self.sites[first..end].to_vec() }
    }

    /// Number of events of `kind` for user traffic in `direction`, over the path and all hops.
    pub fn total(&self, direction: Direction, kind: EventKind) -> u64 {
        self.total_of(direction, Origin::User, kind).count
    }

    /// The sum over the path and all hops of what `of` finds in the counters of `origin` in `direction`.
    fn sum(&self, direction: Direction, origin: Origin, of: impl Fn(&SiteCounters) -> Tally) -> Tally {
        let first = site(Event::WHOLE_PATH, direction, origin);
        let mut sum = Tally::default();
        for index in (first..self.sites.len()).step_by(2 * ORIGINS) {
            let tally = of(&self.sites[index]);
            sum.count += tally.count;
            sum.bits += tally.bits;
        }
        sum
    }

    /// Number of events of `kind` for traffic of `origin` in `direction`, and their bits, over the path and all
    /// hops.
    pub fn total_of(&self, direction: Direction, origin: Origin, kind: EventKind) -> Tally {
        self.sum(direction, origin, |site| site.kind(kind))
    }

    /// Drops of user traffic in `direction` over all hops, by cause; only causes that occurred.
    pub fn drops(&self, direction: Direction) -> Vec<(Cause, Tally)> {
        self.drops_of(direction, Origin::User)
    }

    /// The same for the traffic of `origin`.
    pub fn drops_of(&self, direction: Direction, origin: Origin) -> Vec<(Cause, Tally)> {
        Cause::ALL
            .iter()
            .filter(|cause| **cause != Cause::None)
            .filter_map(|cause| {
                let sum = self.sum(direction, origin, |site| site.cause(*cause));
                (sum.count > 0).then_some((*cause, sum))
            })
            .collect()
    }
}

/// Site of an event in a hop, for building events.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The hop's index in the path.
    pub hop: u16,
    /// The direction.
    pub direction: Direction,
    /// The state in force.
    pub state: u16,
    /// The stage.
    pub stage: Stage,
}
