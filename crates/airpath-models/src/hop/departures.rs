// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Departures of packets from a hop: bounds, and what is certain.

use airpath_core::{Direction, Pdu, Span, Time};

use super::Hop;
use crate::agenda::CATCH_UP;
use crate::entity::{Foresight, LinkEntity};
use crate::link::{Link, receiver};
use crate::medium::Medium;

impl<E: LinkEntity, M: Medium> Hop<E, M> {
    /// An instant before which no packet leaves the hop unless one is offered or parameters change;
    /// `Time::NEVER` if none will.
    pub fn next_departure(&self) -> Time {
        if let Some(fast) = &self.fast {
            return fast.next_arrival().min(fast.next_transmission() + self.least_transit());
        }
        // A message that is heard may cause a transmission.
        let transmission = self.medium.next_deadline().min(self.link.hears_at());
        // What the medium sends next arrives no sooner than the propagation delay later; an entity
        // may release or repeat something whenever it has a deadline of its own.
        let arrives = transmission + self.least_transit();
        if !(self.link.is_empty() && self.never_idle()) {
            return self.releases.min(arrives);
        }
        // The frames that entities exchange carry nothing that leaves. What an hour of silence leaves to be
        // caught up with would still keep a packet waiting, so it is done now and then.
        let parts = self.link.ends.iter().zip(&self.link.lanes);
        let released = parts.map(|(end, lane)| end.next_deadline().min(lane.impairment.next_deadline()));
        released.fold(arrives + CATCH_UP, Time::min)
    }

    /// Hands the packets that are certain to leave in `direction` by `until` to `foretell`, in order, and returns an
    /// instant before which nothing else leaves in that direction unless a packet is offered or parameters change.
    pub(crate) fn foresee<'a>(
        &'a self,
        direction: Direction,
        until: Time,
        mut foretell: impl FnMut(Time, &'a Pdu),
    ) -> Time {
        if let Some(fast) = &self.fast {
            return tell(fast.propagating(direction), until, self.due + self.least_transit(), &mut foretell);
        }
        let Link { ends, lanes, sdus, .. } = &self.link;
        let (lane, end) = (&lanes[direction as usize], &ends[receiver(direction)]);
        let is_impaired = !lane.impairment.is_idle() || lane.impairment.next_deadline() != Time::NEVER;
        if self.never_idle() || lane.blackout.is_on() || is_impaired {
            return self.next_departure();
        }
        // Whatever the next event causes passes the propagation first, but for what an entity releases of itself.
        let nothing_else_before = (self.due + self.least_transit()).min(end.next_deadline());
        let arrivals = lane.in_flight.iter();
        let arrivals = arrivals.map(|(arrives, frame, outcome)| (*arrives, end.foresee(frame, outcome, sdus)));
        tell(arrivals, until, nothing_else_before, &mut foretell)
    }

    /// No packet passes the hop faster, in either direction, while its parameters stay as they are.
    pub fn least_transit(&self) -> Span {
        let [uplink, downlink] = &self.link.lanes;
        uplink.propagation.least().min(downlink.propagation.least())
    }

    /// A packet of `bytes` that comes at `at` takes at least this in `direction`, while the parameters stay
    /// as they are: all its frames one after the other, and the least delay of propagation. The allocation
    /// delay is none of it, since a packet that follows others does not wait for it; nor is a blackout,
    /// whose end nobody knows.
    pub fn least_transit_of(&self, at: Time, direction: Direction, bytes: u32) -> Span {
        let bits = self.bits_on_air(direction, bytes);
        let propagation = self.link.lanes[direction as usize].propagation.least();
        self.medium.least_time(at, direction, bits) + propagation
    }
}

/// Hands the packets that `arrivals` bring by `until` to `foretell`, as far as that is known, and returns the instant
/// before which nothing else leaves: `nothing_else_before`, or the first arrival that was not told.
fn tell<'a>(
    arrivals: impl Iterator<Item = (Time, Foresight<'a>)>,
    until: Time,
    nothing_else_before: Time,
    foretell: &mut impl FnMut(Time, &'a Pdu),
) -> Time {
    for (arrives, brings) in arrivals {
        match brings {
            Foresight::Packet(pdu) if arrives <= until => foretell(arrives, pdu),
            Foresight::Nothing if arrives <= until => {}
            _ => return nothing_else_before.min(arrives),
        }
    }
    nothing_else_before
}
