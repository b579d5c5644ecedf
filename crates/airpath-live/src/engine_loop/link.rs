// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One machine with its ports, as the loop sees it.

mod drive;
mod emit;
mod foresee;
mod look;
mod read;

use std::io;
use std::sync::Arc;

use airpath_core::{
    BufferPool, Command, CommandError, Cx, Framing, Machine, Outputs, PacketFilters, PduId, PortId, Span, StateInForce,
    Time,
};
use airpath_log::{Delays, LatenessBound, Quantum, Recorder};
pub use look::{FinishedLink, LinkLook, PortLosses};

use super::ahead::Ahead;
use super::circling::Watch;
use super::credits::Credits;
use super::egress::Egress;
use super::held_back::HeldBack;
use super::ingress::Arrival;
use super::journeys::Journeys;
use super::measure::LinkMeasurements;
use super::plans::Plan;
use super::stamps::Stamps;
use super::traffic::TrafficNotifier;
use super::unread::Unread;
use crate::ports::{Port, Received};

/// Number of packets read from a port before the other one gets a look.
const READ_LIMIT: usize = 64;

/// Length of packets by which a link is fast or slow.
const FULL_PACKET_BYTES: u32 = 1500;

/// Limit on the machine's work before the loop looks around: some milliseconds.
const EVENTS_A_TURN: u32 = 1 << 14;
/// Number of such turns at the end of a run: the rest is told instead.
const TURNS_AT_THE_END: u32 = 64;

/// The moment of a reading, and what it takes.
pub struct Reading<'a> {
    /// Time of the loop's wake-up, by CLOCK_MONOTONIC in ns.
    pub now_ns: u64,
    /// Start of the run, by CLOCK_MONOTONIC in ns.
    pub epoch_ns: u64,
    /// The time of the run, from the clock.
    pub clock: &'a dyn Fn() -> Time,
    /// Room for packets.
    pub pool: &'a mut BufferPool,
    /// Conversion of stamps to time.
    pub stamps: &'a mut Stamps,
}

/// Work that did not fit into one turn: through which instant, and whether the ports have more than was
/// read.
#[derive(Clone, Copy, Debug)]
struct Unfinished {
    to: Time,
    has_more: bool,
}

/// A machine between the ports of its endpoints.
pub struct LiveLink {
    machine: Box<dyn Machine>,
    outputs: Outputs,
    /// The ports of each user, the client's first.
    ports: Vec<Port>,
    recorder: Recorder,
    /// Packets to be written, by port.
    egress: Vec<Egress>,
    /// Number of places of a user in events: its path, and each of its hops.
    places_per_user: u16,
    received: Vec<Received>,
    arrivals: Vec<Arrival>,
    next_id: PduId,
    /// Time up to which the machine has been driven; nothing is offered before it.
    driven_to: Time,
    started: bool,
    /// Time at which the next packet is due, as of the last call.
    next_emission: Time,
    /// Time of other work, as of the last call.
    next_work: Time,
    /// Time for which packets may be left unread, as of the last call.
    may_leave_unread: Span,
    /// Packets of a port beyond one turn.
    unread: Unread,
    /// Packets that were read and wait for the end of their port's pause.
    held_back: HeldBack,
    /// Credits of machines at other hosts.
    credits: Credits,
    /// Unfinished work of the last turn. Until it is done the ports are left alone: what waits there came
    /// later.
    unfinished: Option<Unfinished>,
    /// True if a port may have a credit, or frames, that found no room.
    has_waiting: bool,
    /// Since when they are.
    unread_since: Option<Time>,
    /// Time at which each port was last seen empty, by CLOCK_MONOTONIC in ns; 0 if never.
    empty_ns: Vec<u64>,
    /// Maximum time for which packets may be left unread, which is 0 if they bear no stamps.
    unread_limit: Span,
    /// The framing for which escapes are to be counted, by port.
    framings: Vec<Option<Framing>>,
    /// True if headers are to be told, by port.
    tells_headers: Vec<bool>,
    /// Filters of the machine, by port.
    filters: Vec<Option<Arc<dyn PacketFilters>>>,
    /// Packets that were handed to the kernel before they were due.
    ahead: Ahead,
    /// Packets whose path began at another host.
    journeys: Journeys,
    /// Watch over frames that circle.
    circling: Watch,
    /// Time of the last departure.
    last_emission: Time,
    /// Choice of the quantum of departures.
    quantum: Quantum,
    /// Time within which packets leave together, as of the last call.
    together_within: Span,
    /// Time before which no packet leaves that is due after the last flush.
    closed_until: Time,
    /// One-way delays of each user; none where there is only one.
    delays: Vec<Delays>,
    /// Is told of whatever passes.
    traffic: Option<Arc<TrafficNotifier>>,
    /// True if something has come or gone since it was last told.
    has_passed: bool,
    /// Measurements so far.
    pub measurements: LinkMeasurements,
    /// The error that ended it in the midst of the run.
    lost: Option<io::Error>,
}

impl LiveLink {
    /// A link that has not started: packets are read and thrown away. `ports` are those of each user in turn, the
    /// client's before the server's.
    pub fn new(machine: Box<dyn Machine>, ports: Vec<Port>, recorder: Recorder, bound: LatenessBound) -> LiveLink {
        let outputs = Outputs {
            level: recorder.machine_level(),
            leaves_out: recorder.leaves_out(),
            keeps_links: recorder.keeps_links(),
            ..Outputs::default()
        };
        let unread_limit =
            ports.iter().map(|port| port.unread_limit().unwrap_or(Span::ZERO)).min().unwrap_or(Span::ZERO);
        let numbers = || (0..ports.len()).map(|port| PortId(port as u16));
        let framings = numbers().map(|port| machine.wants_escapes(port)).collect();
        let tells_headers = numbers().map(|port| machine.wants_headers(port)).collect();
        let filters = numbers().map(|port| machine.wants_filters(port)).collect();
        let mut link = LiveLink {
            machine,
            filters,
            framings,
            tells_headers,
            outputs,
            delays: if ports.len() > 2 { vec![Delays::default(); ports.len() / 2] } else { Vec::new() },
            egress: ports.iter().map(Egress::of).collect(),
            empty_ns: vec![0; ports.len()],
            ports,
            recorder,
            places_per_user: 0,
            received: Vec::with_capacity(READ_LIMIT),
            arrivals: Vec::with_capacity(2 * READ_LIMIT),
            next_id: 1,
            driven_to: Time::ZERO,
            started: false,
            next_emission: Time::NEVER,
            next_work: Time::NEVER,
            may_leave_unread: Span::ZERO,
            unread: Unread::default(),
            held_back: HeldBack::new(0),
            credits: Credits::default(),
            unfinished: None,
            has_waiting: false,
            unread_since: None,
            unread_limit,
            ahead: Ahead::default(),
            journeys: Journeys::default(),
            circling: Watch::default(),
            last_emission: Time::ZERO,
            quantum: Quantum::Precise,
            together_within: Span::ZERO,
            closed_until: Time::ZERO,
            traffic: None,
            has_passed: false,
            measurements: LinkMeasurements::new(bound),
            lost: None,
        };
        link.held_back = HeldBack::new(link.ports.len());
        link.note_plans();
        link
    }

    /// The same link, whose machine numbers the places of its users so.
    #[must_use]
    pub fn with_places_per_user(self, places_per_user: u16) -> LiveLink {
        LiveLink { places_per_user, ..self }
    }

    /// The same link, which numbers its packets from `first_id` on: hosts of one path have numbers of their own.
    #[must_use]
    pub fn with_first_id(self, first_id: PduId) -> LiveLink {
        LiveLink { next_id: first_id, ..self }
    }

    /// Ports may be left unread for `factor` times as long as they say, but for no longer than traffic may go untold.
    pub fn leave_unread_times(&mut self, factor: u32) {
        let longer = Span::from_nanos(self.unread_limit.nanos().saturating_mul(factor.into()));
        let within = self.traffic.as_ref().map_or(longer, |traffic| traffic.within());
        self.unread_limit = longer.min(within.max(self.unread_limit));
    }

    /// Chooses the quantum of departures from the next call on.
    pub fn set_quantum(&mut self, quantum: Quantum) {
        self.quantum = quantum;
    }

    /// The same link, which tells `notifier` of whatever passes.
    #[must_use]
    pub fn notifying(self, notifier: Option<Arc<TrafficNotifier>>) -> LiveLink {
        LiveLink { traffic: notifier, ..self }
    }

    /// Tells if something came or went.
    #[inline]
    pub(super) fn tell_of_traffic(&mut self) {
        if std::mem::take(&mut self.has_passed)
            && let Some(notifier) = &self.traffic
        {
            notifier.passed();
        }
    }

    /// The ports of each user, the client's first.
    pub fn ports(&mut self) -> &mut [Port] {
        &mut self.ports
    }

    /// True if packets of all ports bear the kernel's stamps.
    pub fn has_kernel_stamps(&self) -> bool {
        self.ports.iter().all(|port| port.has_kernel_stamps())
    }

    /// The run begins: from now on packets are offered to the machine. Whatever came before has been
    /// read and thrown away, and nothing of the time before is left in the link.
    pub fn start(&mut self) {
        self.started = true;
        self.driven_to = Time::ZERO;
        self.closed_until = Time::ZERO;
        self.unread.clear();
        self.arrivals.clear();
        for (number, port) in self.ports.iter().enumerate() {
            if let Some(credit) = port.joined() {
                self.credits.push(Time::ZERO, PortId(number as u16), credit);
            }
        }
        let mut events = EVENTS_A_TURN;
        self.take_credits(Time::ZERO, &mut events);
        self.note_plans();
    }

    /// Plan of the link, as of the last call. Ports may be left unread without any packet being late where packets bear
    /// the kernel's stamps, and none that comes now leaves sooner.
    pub fn plan(&self) -> Plan {
        Plan {
            due: self.next_emission,
            closed_until: self.closed_until,
            work: self.next_work,
            quantum: self.together_within,
            unread: self.may_leave_unread,
            departed: self.last_emission,
        }
    }

    /// Ends the link in the midst of the run: one of its ports is gone.
    pub fn lose(&mut self, error: io::Error) {
        self.lost = Some(error);
    }

    /// True if it has ended so.
    pub fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Asks the machine for its plans once a turn, however often the loop asks for them.
    fn note_plans(&mut self) {
        self.next_emission = self.machine.next_emission().unwrap_or(Time::NEVER);
        self.next_work = self.recorder.next_tick().unwrap_or(Time::NEVER);
        let least_transit = self.machine.least_transit();
        self.may_leave_unread = least_transit.min(self.unread_limit);
        let bound = self.measurements.timings.bound();
        self.together_within = self.quantum.of(bound, least_transit, || self.packet_time());
        if self.unread_limit > Span::ZERO {
            // What comes meanwhile has to find room.
            self.together_within = self.together_within.min(self.unread_limit);
        }
        self.measurements.timings.departures_within(self.together_within);
    }

    /// Time for which a full packet occupies the path in the direction where that is shorter; zero where no rate is
    /// limited. Nobody asks a cell, whose users are many and whose rates are low.
    fn packet_time(&self) -> Span {
        if self.ports.len() > 2 {
            return Span::ZERO;
        }
        let transit = |port, bytes| self.machine.least_transit_of(self.driven_to, port, bytes);
        let times = [PortId::CLIENT, PortId::SERVER]
            .map(|port| transit(port, 2 * FULL_PACKET_BYTES) - transit(port, FULL_PACKET_BYTES));
        times.into_iter().filter(|time| *time > Span::ZERO).min().unwrap_or(Span::ZERO)
    }

    /// The loop was away from the ports from `from` until `until`.
    pub fn away(&mut self, from: Time, until: Time) {
        if self.unfinished.is_some() {
            self.unread_since.get_or_insert(from);
        } else {
            self.measurements.away(self.unread_since.take().unwrap_or(from), until);
        }
    }

    /// Ports that the loop has to leave alone from now on (true), because much of what came waits for the end of a
    /// pause, or to read again.
    pub(super) fn take_unread_ports(&mut self) -> std::vec::Drain<'_, (PortId, bool)> {
        self.held_back.take_changes()
    }

    /// True if the last turn left work undone.
    pub fn is_behind(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Time up to which the machine has been driven.
    pub fn driven_to(&self) -> Time {
        self.driven_to
    }

    /// The state in which each user of the machine is.
    pub fn states_in_force(&self) -> Vec<StateInForce> {
        let users = (self.ports.len() / 2).max(1) as u16;
        (0..users).map(|user| self.machine.state_in_force(user)).collect()
    }

    /// Carries out a command on the machine at `at`, or as soon after it as the machine has been driven
    /// already. `record` is the command in the input log.
    ///
    /// # Errors
    /// When it does not fit the machine; then nothing is recorded.
    pub fn control(&mut self, at: Time, command: &Command, record: &str) -> Result<(), CommandError> {
        let at = at.max(self.driven_to);
        self.machine.control(at, command, &mut Cx::new(&mut self.outputs))?;
        for (number, filters) in self.filters.iter_mut().enumerate() {
            *filters = self.machine.wants_filters(PortId(number as u16));
        }
        self.driven_to = at;
        self.recorder.command(at, record);
        self.release(at);
        Ok(())
    }

    /// Runs the machine to the end of the run, `ended`, so that its trace ends there, whatever the loop had
    /// left for later; what leaves in this last moment is written like everything before. A machine
    /// that is too far behind is left where it is after a while: the run's trace ends there.
    ///
    /// # Errors
    /// A port that is gone.
    pub fn settle(&mut self, ended: Time, clock: impl Fn() -> Time) -> io::Result<()> {
        let was_behind = self.unfinished.take().is_some();
        self.away(ended, ended);
        if !was_behind {
            // The rest came after the end.
            self.arrivals.retain(|arrival| arrival.at <= ended);
        }
        self.unread.clear();
        let mut is_done = false;
        for _ in 0..TURNS_AT_THE_END {
            is_done = self.work(ended, ended, true);
            self.record(&clock)?;
            if is_done {
                break;
            }
        }
        if !is_done {
            // What the last packet caused at its own instant belongs to the trace.
            self.machine.advance(self.driven_to, &mut Cx::new(&mut self.outputs));
            self.record(&clock)?;
        }
        self.measurements.unfinished = ended.since(self.driven_to);
        self.measurements.unoffered = self.arrivals.iter().map(|arrival| u64::from(arrival.segments())).sum();
        Ok(())
    }
}
