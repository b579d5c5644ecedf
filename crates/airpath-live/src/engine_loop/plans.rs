// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Plans of the links of a loop, side by side in memory. The loop looks at all of them before each sleep, and at a link
//! only when it has something to do: with hundreds of links, looking at each would take longer than a packet.
//!
//! Links share wake-ups within their quanta. The first departure after a pause is made when it is due, and with it
//! whatever else is due by then; the next one is made a quantum later or when it is due, whichever is later.

use airpath_core::{Span, Time};

/// Plan of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Time at which the next packet is due.
    pub due: Time,
    /// Time before which the link itself flushes no packet.
    pub closed_until: Time,
    /// Time of other work: records to be handed over, or the rest of a turn.
    pub work: Time,
    /// Quantum of departures.
    pub quantum: Span,
    /// Time for which the ports may be left unread.
    pub unread: Span,
    /// Time of the last departure; zero if nothing has left.
    pub departed: Time,
}

impl Plan {
    /// Nothing is to be done any more.
    const NONE: Plan = Plan {
        due: Time::NEVER,
        closed_until: Time::ZERO,
        work: Time::NEVER,
        quantum: Span::ZERO,
        unread: Span::from_nanos(u64::MAX),
        departed: Time::ZERO,
    };
}

/// The plans of all links.
#[derive(Debug, Default)]
pub struct Plans {
    due: Vec<Time>,
    closed_until: Vec<Time>,
    work: Vec<Time>,
    quantum: Vec<Span>,
    unread: Vec<Span>,
    departed: Vec<Time>,
    /// Time at which all links last flushed what was due.
    flushed: Option<Time>,
}

impl Plans {
    /// Of so many links, none of which plans anything.
    pub fn new(links: usize) -> Plans {
        let mut plans = Plans {
            due: vec![Time::NEVER; links],
            closed_until: vec![Time::ZERO; links],
            work: vec![Time::NEVER; links],
            quantum: vec![Span::ZERO; links],
            unread: vec![Span::ZERO; links],
            departed: vec![Time::ZERO; links],
            flushed: None,
        };
        (0..links).for_each(|link| plans.forget(link));
        plans
    }

    /// The plan of `link` from now on.
    pub fn note(&mut self, link: usize, plan: Plan) {
        let Plan { due, closed_until, work, quantum, unread, departed } = plan;
        self.due[link] = due;
        self.closed_until[link] = closed_until;
        self.work[link] = work;
        self.quantum[link] = quantum;
        self.unread[link] = unread;
        self.departed[link] = departed;
    }

    /// `link` plans nothing any more.
    pub fn forget(&mut self, link: usize) {
        self.note(link, Plan::NONE);
    }

    /// Notes that all links have flushed what was due at `now`.
    pub fn flushed(&mut self, now: Time) {
        self.flushed = Some(now);
    }

    /// Time of the next wake-up.
    pub fn next(&self) -> Time {
        let flushed = self.flushed;
        let departures = self.due.iter().zip(&self.closed_until).zip(&self.quantum).map(|((due, closed), quantum)| {
            let open = flushed.map_or(Time::ZERO, |flushed| flushed + *quantum);
            (*due).max(*closed).max(open)
        });
        let next = departures.min().unwrap_or(Time::NEVER);
        self.next_work().min(next)
    }

    /// Time of the next work beside departures.
    pub fn next_work(&self) -> Time {
        self.work.iter().copied().min().unwrap_or(Time::NEVER)
    }

    /// True if `link` has something to do at `now`, at which links wake up.
    pub fn is_due(&self, link: usize, now: Time) -> bool {
        self.due[link] <= now || self.work[link] <= now
    }

    /// Time for which every port may be left unread; none where no link has a plan.
    pub fn least_unread(&self) -> Span {
        self.unread.iter().copied().min().filter(|least| *least != Plan::NONE.unread).unwrap_or(Span::ZERO)
    }

    /// Time of the first departure since `from`, as far as links have had no other since.
    pub fn departed_since(&self, from: Time) -> Option<Time> {
        self.departed.iter().copied().filter(|departed| *departed >= from).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    fn due(micros: u64, quantum: u64) -> Plan {
        Plan { due: at(micros), quantum: Span::from_micros(quantum), ..Plan::NONE }
    }

    #[test]
    fn the_first_departure_is_made_when_it_is_due_and_others_a_quantum_later() {
        let mut plans = Plans::new(3);
        assert_eq!((plans.next(), plans.least_unread()), (Time::NEVER, Span::ZERO));
        plans.note(0, due(100, 20));
        plans.note(1, due(103, 20));
        assert_eq!(plans.next(), at(100));
        plans.note(0, due(130, 20));
        plans.flushed(at(101));
        // Due 2 µs later, but the loop wakes for all of them together.
        plans.note(2, due(119, 20));
        assert_eq!(plans.next(), at(121));
        assert_eq!([0, 1, 2].map(|link| plans.is_due(link, at(121))), [false, true, true]);
        // No packet waits longer than a quantum for it.
        plans.note(1, due(101, 20));
        assert!(plans.next() <= at(101 + 20));
    }

    #[test]
    fn each_link_waits_for_its_own_quantum_at_most() {
        let mut plans = Plans::new(2);
        plans.note(0, due(50, 700));
        plans.note(1, due(400, 5));
        plans.flushed(at(40));
        assert_eq!(plans.next(), at(400));
        assert!(plans.is_due(0, at(400)));
        plans.forget(1);
        assert_eq!(plans.next(), at(740));
        // What a link has flushed by itself counts for it alone.
        plans.note(0, Plan { closed_until: at(800), ..due(750, 700) });
        assert_eq!(plans.next(), at(800));
    }

    #[test]
    fn work_waits_for_nothing_and_ports_as_long_as_the_most_urgent_allows() {
        let mut plans = Plans::new(2);
        plans.flushed(at(40));
        let unread = Span::from_micros(9);
        plans.note(1, Plan { work: at(41), unread, departed: at(39), ..due(90, 20) });
        assert_eq!((plans.next(), plans.least_unread()), (at(41), unread));
        assert_eq!((plans.departed_since(at(39)), plans.departed_since(at(40))), (Some(at(39)), None));
    }
}
