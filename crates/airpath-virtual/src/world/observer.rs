// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Observers of a machine of a world: a log, a capture, a statistic.

use airpath_core::{Command, Counters, Emission, Event, EventKinds, LinkRecord, LogLevel, Pdu, PortId, Time};

use super::Ending;

/// Sees everything that goes into a machine and comes out of it, in this order at one instant:
/// [`offered`](Observer::offered) and [`commanded`](Observer::commanded) before the machine takes the
/// input, [`events`](Observer::events) once it has run, [`emitted`](Observer::emitted) for each packet
/// that left, [`turn`](Observer::turn).
///
/// Every machine has an observer of its own, which is called by one thread at a time and in the same
/// order however many threads there are.
pub trait Observer: Send {
    /// Level at which the machine records; asked once, when the machine joins the world.
    fn level(&self) -> LogLevel {
        LogLevel::Counters
    }

    /// Kinds of events that the machine leaves out; asked once, with the level.
    fn leaves_out(&self) -> EventKinds {
        EventKinds::NONE
    }

    /// The machine's run begins: called once, by the thread that is about to drive it. Machines begin
    /// when their turn comes, so that files opened here are not all open at once.
    fn begin(&mut self) {}

    /// A packet with its identity is about to be offered.
    fn offered(&mut self, at: Time, port: PortId, pdu: &Pdu) {
        let _ = (at, port, pdu);
    }

    /// A command is about to be carried out.
    fn commanded(&mut self, at: Time, command: &Command) {
        let _ = (at, command);
    }

    /// Events recorded since the last call, if the machine's level asks for events. Their times may lie before
    /// the present: events that emit nothing are run when something wakes the machine.
    fn events(&mut self, events: &[Event]) {
        let _ = events;
    }

    /// True if it wants the records of link entities.
    fn keeps_links(&self) -> bool {
        false
    }

    /// Records of link entities since the last call, if it wants them; before the events of that time.
    fn links(&mut self, links: &[LinkRecord]) {
        let _ = links;
    }

    /// A packet or a signal left the machine; its delivery is the first one of that packet among the
    /// events given that no packet has been matched with.
    fn emitted(&mut self, emission: &Emission) {
        let _ = emission;
    }

    /// The machine has done something at `at`; more may happen to it at the same instant.
    fn turn(&mut self, at: Time) {
        let _ = at;
    }

    /// A run is over for the machine.
    fn end(&mut self, end: &MachineEnd<'_>) {
        let _ = end;
    }
}

/// State of a machine at the end of a run.
#[derive(Clone, Copy, Debug)]
pub struct MachineEnd<'a> {
    /// Time and reason of the end.
    pub ending: Ending,
    /// The machine's counters.
    pub counters: &'a Counters,
    /// Packets still inside.
    pub held: u64,
}

/// Nobody watches.
impl Observer for () {}
