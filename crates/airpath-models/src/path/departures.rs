// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Departures of packets from a path: bounds, and what is certain.

use airpath_core::{Bits, Direction, End, Origin, Pdu, Span, Time};
use smallvec::SmallVec;

use super::Path;
use crate::entity::LinkEntity;
use crate::hop::Hop;
use crate::medium::Medium;

/// Packets that are certain to leave: when, in which direction. For some of them no memory is allocated.
type Certain<'a> = SmallVec<[(Time, Direction, &'a Pdu); 32]>;

impl<E: LinkEntity, M: Medium> Path<E, M> {
    /// An instant before which hops with media of their own and transfers let no packet out.
    pub(crate) fn next_departure(&self) -> Time {
        let departure = self.hops.iter().map(Hop::next_departure).fold(Time::NEVER, Time::min);
        // A state may shorten delays, and a transfer may reach a hop without any.
        let transfer = self.transfers.front().map_or(Time::NEVER, |(at, ..)| *at);
        let released = self
            .least_behind_windows()
            .map_or(Time::NEVER, |least| self.hops.iter().map(Hop::next_deadline).min().unwrap_or(Time::NEVER) + least);
        departure.min(self.schedule.due()).min(transfer).min(released)
    }

    /// The packets that are certain to leave by `until`, in the order of their emission, and an instant before which
    /// nothing else leaves.
    pub(super) fn certain_departures(&self, until: Time) -> (Certain<'_>, Time) {
        let mut certain = Certain::new();
        let mut nothing_else_before = self.schedule.due();
        let last = self.hops.len() - 1;
        // At one instant the hops are served in order, and in each of them the uplink first.
        let ways = if last == 0 { Direction::ALL } else { [Direction::Downlink, Direction::Uplink] };
        for direction in ways {
            // Hops against the direction, and the least time behind each.
            let mut behind = Span::ZERO;
            for place in 0..=last {
                let index = if direction == Direction::Uplink { last - place } else { place };
                let hop = &self.hops[index];
                let leaves = if place == 0 {
                    hop.foresee(direction, until, |at, pdu| {
                        if pdu.origin != Origin::Background || !self.loads.ends_at(pdu.id, index) {
                            certain.push((at, direction, pdu));
                        }
                    })
                } else {
                    hop.next_departure() + behind
                };
                nothing_else_before = nothing_else_before.min(leaves);
                behind = behind + hop.least_transit();
                for (at, _, way, _) in self.transfers.iter().filter(|(_, to, ..)| *to == index) {
                    let leaves = if *way == direction { *at + behind } else { Time::NEVER };
                    nothing_else_before = nothing_else_before.min(leaves);
                }
            }
            // The packets of a background load may let others go.
            let least = self.hops.iter().map(Hop::least_transit).min().unwrap_or(Span::ZERO);
            nothing_else_before = nothing_else_before.min(self.loads.next() + least);
        }
        certain.sort_by_key(|(at, ..)| *at);
        (certain, nothing_else_before)
    }

    /// Minimum transit time of a packet of `bytes` from `end` at `at`. Beside what hops take of themselves, `shared`
    /// tells the least time of bits on a shared medium, by bearer, time and direction. Whichever bearer takes the
    /// packet, the fastest one of each hop is none too slow.
    pub(crate) fn least_transit_beside(
        &self,
        at: Time,
        end: End,
        bytes: u32,
        shared: impl Fn(usize, Time, Direction, Bits) -> Span,
    ) -> Span {
        // Whoever comes to a hop earlier does not leave it later, so that bounds of hops make one of the path.
        let direction = end.sends();
        let pass_bearer = |at: Time, index: usize| {
            let hop = &self.hops[index];
            at + shared(index, at, direction, hop.bits_on_air(direction, bytes))
                + hop.least_transit_of(at, direction, bytes)
        };
        let pass = |at: Time, hop: usize| self.bearers_of(hop).map(|index| pass_bearer(at, index)).min().unwrap_or(at);
        let left = match end {
            End::Client => (0..self.hop_count()).fold(at, pass),
            End::Server => (0..self.hop_count()).rev().fold(at, pass),
        };
        left.since(at)
    }
}
