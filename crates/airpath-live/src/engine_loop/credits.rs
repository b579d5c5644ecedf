// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Credits between the machines of a path that is on several hosts: those that came and wait for their instant, and
//! those that are to be given at the end of a turn.

use std::collections::VecDeque;

use airpath_core::{Credit, PortId, Time};

/// The credits of a link.
#[derive(Debug, Default)]
pub(super) struct Credits {
    /// By time.
    came: VecDeque<(Time, PortId, Credit)>,
    /// The last one for each port: a credit makes up for those before it.
    to_give: Vec<(PortId, Credit)>,
}

impl Credits {
    /// A credit came through `port` at `at`.
    pub(super) fn push(&mut self, at: Time, port: PortId, credit: Credit) {
        let place = self.came.partition_point(|(other, ..)| *other <= at);
        self.came.insert(place, (at, port, credit));
    }

    /// The first one that came by `to`.
    pub(super) fn first(&self, to: Time) -> Option<(Time, PortId, Credit)> {
        self.came.front().filter(|(at, ..)| *at <= to).copied()
    }

    /// Removes the first one.
    pub(super) fn pop(&mut self) {
        self.came.pop_front();
    }

    /// Time of the first one; `Time::NEVER` if there is none.
    pub(super) fn next(&self) -> Time {
        self.came.front().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// The machine gives `credit` through `port`.
    pub(super) fn give(&mut self, port: PortId, credit: Credit) {
        self.to_give.retain(|(other, _)| *other != port);
        self.to_give.push((port, credit));
    }

    /// Takes what is to be given.
    pub(super) fn given(&mut self) -> std::vec::Drain<'_, (PortId, Credit)> {
        self.to_give.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_wait_for_their_time_and_the_last_one_is_given() {
        let mut credits = Credits::default();
        let of = |taken_packets| Credit { taken_packets, ..Credit::UNLIMITED };
        for (at, taken) in [(5, 1), (3, 2), (5, 3)] {
            credits.push(Time::from_nanos(at), PortId::SERVER, of(taken));
        }
        assert_eq!((credits.first(Time::from_nanos(2)), credits.next()), (None, Time::from_nanos(3)));
        let mut taken = Vec::new();
        while let Some((.., credit)) = credits.first(Time::from_nanos(5)) {
            taken.push(credit.taken_packets);
            credits.pop();
        }
        assert_eq!((taken, credits.next()), (vec![2, 1, 3], Time::NEVER));
        credits.give(PortId::CLIENT, of(1));
        credits.give(PortId::SERVER, of(2));
        credits.give(PortId::CLIENT, of(3));
        assert_eq!(credits.given().collect::<Vec<_>>(), [(PortId::SERVER, of(2)), (PortId::CLIENT, of(3))]);
    }
}
