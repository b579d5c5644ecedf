// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One machine with its ports, as the loop sees it.

use std::io;
use std::sync::Arc;

use airpath_core::{
    BufferPool, Cause, Command, CommandError, Cx, End, Event, EventKind, Framing, HeaderBytes, Item, LogLevel, Machine,
    Outputs, PacketFilters, Pdu, PduId, PortId, Signal, Span, StateInForce, Time, UNDAMAGED,
};
use airpath_log::{Delays, LatenessBound, Offered, Packet, Quantum, Recorder};

use super::circling::Watch;
use super::credits::Credits;
use super::egress::{self, Egress};
use super::held_back::{Held, HeldBack};
use super::ingress::Arrival;
use super::journeys::Journeys;
use super::measure::LinkMeasurements;
use super::plans::Plan;
use super::stamps::{ClockReport, Stamps};
use super::traffic::TrafficNotifier;
use super::unread::Unread;
use crate::packet_bytes::noise;
use crate::ports::{LONGEST_PACKET_BYTES, Port, Received};

/// Number of packets read from a port before the other one gets a look.
const READ_LIMIT: usize = 64;

/// Length of packets by which a link is fast or slow.
const FULL_PACKET_BYTES: u32 = 1500;

/// Number of bytes of a discarded packet in the input log.
const DISCARDED_HEADER_BYTES: usize = 64;
/// Limit on the machine's work before the loop looks around: some milliseconds.
const EVENTS_A_TURN: u32 = 1 << 14;
/// Number of such turns at the end of a run: the rest is told instead.
const TURNS_AT_THE_END: u32 = 64;
/// A machine that is so far behind its clock may have more to do between two packets than one turn takes.
const FAR_BEHIND: Span = Span::from_millis(2);
/// One that is so far behind in the middle of a run does not catch up by itself.
const HOPELESSLY_BEHIND: Span = Span::from_secs(1);

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
            unread_since: None,
            unread_limit,
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

    /// Reads what waits at the port of number `side`; nothing while the last turn's work is not done.
    ///
    /// # Errors
    /// When the port is gone, and [`Circling`](super::Circling) when frames circle.
    pub fn read(&mut self, side: usize, reading: &mut Reading<'_>) -> io::Result<()> {
        if self.unfinished.is_some() || self.held_back.leaves_unread(side) {
            return Ok(());
        }
        let slab = reading.pool.slab(LONGEST_PACKET_BYTES);
        let outcome = self.ports[side].read_batch(slab, READ_LIMIT, &mut self.received)?;
        self.measurements.left_unread |= !outcome.exhausted;
        self.has_passed |= outcome.packets > 0;
        let port = PortId(side as u16);
        for (credit, stamp) in self.ports[side].take_credits() {
            let came_ns = reading.stamps.place(stamp, self.empty_ns[side], reading.now_ns);
            let at = came_ns
                .map_or_else(reading.clock, |came_ns| Time::from_nanos(came_ns.saturating_sub(reading.epoch_ns)));
            if self.started {
                self.credits.push(at.max(self.driven_to), port, credit);
            }
        }
        // Not the time of the wake-up: where the loop lost its processor since, packets have come meanwhile.
        let read_at = (reading.clock)();
        if self.started && !self.received.is_empty() && !self.ports[side].has_kernel_stamps() {
            self.recorder.read(read_at, port, self.received.len() as u32);
        }
        let (empty_ns, mut last) = (self.empty_ns[side], None);
        for received in self.received.drain(..) {
            let stamp = received.stamp_realtime_ns;
            // A stamp that fits no clock tells nothing; the packet came when it was read.
            let came_ns = stamp.and_then(|stamp| reading.stamps.place(stamp, empty_ns, reading.now_ns));
            let kernel_at = came_ns.and_then(|came_ns| came_ns.checked_sub(reading.epoch_ns)).map(Time::from_nanos);
            let before_start = !self.started || came_ns.is_some() && kernel_at.is_none();
            last = stamp.map(|_| if before_start { Time::ZERO } else { kernel_at.unwrap_or(read_at) });
            // Never before it came, and never before what the machine has done already.
            let at = kernel_at.unwrap_or(read_at).max(self.driven_to);
            if self.ports[side].carries_frames() {
                if self.started {
                    self.arrivals.push(Arrival::frame(received, side as u16, at));
                }
                continue;
            }
            if !before_start {
                self.circling.note(side, &received, at, &mut self.measurements.circling)?;
            }
            let link = usize::from(received.link_bytes);
            let (cause, mut bytes) = match Arrival::read(received, side as u16, at, kernel_at) {
                Err(bytes) => (Cause::Malformed, bytes),
                // Behind an interface of the user's, what finds neighbours and routers is traffic like any other.
                Ok(arrival) => match noise(&arrival.bytes).filter(|_| link == 0) {
                    None if !before_start => {
                        self.arrivals.push(arrival);
                        continue;
                    }
                    None => (Cause::BeforeStart, arrival.bytes),
                    Some(_) => (Cause::Noise, arrival.bytes),
                },
            };
            let link = bytes.split_to(link);
            let pdu = Pdu { len: bytes.len() as u32, ..Pdu::default() };
            let mut event = Event::of_path(at, port.end().sends(), EventKind::Discarded, cause, &pdu, 0);
            event.hop = (port.user() * self.places_per_user).wrapping_sub(1);
            self.outputs.counters.count(&event);
            if self.started {
                let header = bytes.len().min(DISCARDED_HEADER_BYTES) as u16;
                self.recorder.discarded(at, port, cause, Packet::whole(&bytes, header).behind(&link));
            }
        }
        if outcome.exhausted {
            self.empty_ns[side] = reading.now_ns;
        } else if let Some(last) = last {
            self.unread.note(last);
        }
        Ok(())
    }

    /// Offers what was read, runs the machine to `now`, and writes what left it; as much of that as fits into
    /// one turn. `clock` reads the time of the run.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn drive(&mut self, now: Time, clock: impl Fn() -> Time) -> io::Result<()> {
        // The packets of all ports in the order of their times, and of their ports at equal ones.
        self.arrivals.sort_by_key(|arrival| (arrival.at, arrival.side));
        let before = self.unfinished.take();
        let Unfinished { to: aim, has_more } = before.unwrap_or_else(|| {
            let (to, has_more) = self.unread.take(now, self.driven_to);
            Unfinished { to, has_more }
        });
        let to = aim.min(now).max(self.driven_to);
        let is_done = self.work(to, now, before.is_some());
        if !is_done || to < aim {
            self.unfinished = Some(Unfinished { to: aim, has_more });
        }
        self.record(clock)?;
        self.recorder.tick(now);
        let driven_to = self.driven_to;
        self.held_back.note_reading(driven_to);
        self.note_plans();
        if self.unfinished.is_some() || has_more {
            self.next_work = self.driven_to;
        } else {
            // Read ahead of the present, or of an order that took effect before they came.
            let first = self.arrivals.first().map_or(Time::NEVER, |first| first.at);
            self.next_work = self.next_work.min(first).min(self.credits.next());
        }
        Ok(())
    }

    /// One turn's work towards `to`: offers what came by then and runs the machine, in pieces if it is
    /// `known_to_be_busy`. Whether everything is done.
    fn work(&mut self, to: Time, now: Time, known_to_be_busy: bool) -> bool {
        let mut events = EVENTS_A_TURN;
        let is_busy = known_to_be_busy || to.since(self.driven_to) > FAR_BEHIND;
        let mut arrivals = std::mem::take(&mut self.arrivals);
        // What came to the other port after that has to wait for what is unread.
        let ready = arrivals.partition_point(|arrival| arrival.at <= to);
        let mut offered = 0;
        for arrival in &arrivals[..ready] {
            if !self.take_credits(arrival.at, &mut events) {
                break;
            }
            // What comes before the first packet may be much, as the machine is left alone between turns.
            // Where packets wait for a port, it may be released before this one comes.
            let is_first = offered == 0 || self.held_back.has_any();
            if (is_busy || is_first) && !self.advance(arrival.at, &mut events) {
                break;
            }
            let (machine, port) = (&self.machine, PortId(arrival.side));
            let least_transit = || machine.least_transit_of(arrival.at, port, arrival.first_bytes());
            let timings = &mut self.measurements.timings;
            // What a pause has left in the kernel's queue was to be read when the pause was over.
            let readable_at = arrival.kernel_at.map(|at| at.max(self.held_back.readable_since(arrival.side)));
            match readable_at {
                Some(kernel_at) => timings.read(kernel_at, now, arrival.at, least_transit),
                // A stamp that fits no clock is told of as such.
                None if self.ports[usize::from(arrival.side)].has_kernel_stamps() => {}
                None => timings.read_unstamped(self.measurements.unwatched, least_transit),
            }
            let taken = if self.held_back.has_some(port) { 0 } else { self.offer(arrival, 0, arrival.at, now) };
            if taken < arrival.segments() {
                self.held_back.push(arrival.clone(), taken, now);
            }
            self.driven_to = self.driven_to.max(arrival.at);
            offered += 1;
        }
        arrivals.drain(..offered);
        self.arrivals = arrivals;
        offered == ready && self.take_credits(to, &mut events) && self.advance(to, &mut events)
    }

    /// Hands the machine the credits that came by `to`, as far as `events` allow; whether all of them.
    fn take_credits(&mut self, to: Time, events: &mut u32) -> bool {
        while let Some((at, port, credit)) = self.credits.first(to) {
            let at = at.max(self.driven_to);
            if !self.advance(at, events) {
                return false;
            }
            self.credits.pop();
            self.recorder.command(at, &airpath_log::credit::written(port, &credit));
            let signal = Item::Signal(Signal::Credit(credit));
            self.machine.offer(at, port, signal, &mut Cx::new(&mut self.outputs));
            self.release(at);
        }
        true
    }

    /// Runs the machine towards `to` as far as `events` allow; whether it got there. What waits for a port goes in at
    /// the very instant at which that is released.
    fn advance(&mut self, to: Time, events: &mut u32) -> bool {
        self.release(self.driven_to);
        while self.held_back.has_any()
            && let Some(due) = self.machine.next_deadline().filter(|due| *due <= to)
        {
            if *events == 0 {
                return false;
            }
            self.machine.advance_some(due, events, &mut Cx::new(&mut self.outputs));
            self.driven_to = self.driven_to.max(due);
            self.release(due);
        }
        let mut reached = to;
        if self.machine.next_deadline().is_some_and(|due| due <= to) {
            if *events == 0 {
                return false;
            }
            reached = self.machine.advance_some(to, events, &mut Cx::new(&mut self.outputs));
        }
        self.driven_to = self.driven_to.max(reached);
        self.heed_pauses();
        reached == to
    }

    /// Heeds what the machine has said about its ports.
    fn heed_pauses(&mut self) {
        if !self.outputs.flow_control.is_empty() {
            self.outputs.flow_control.drain(..).for_each(|(port, paused)| self.held_back.note(port, paused));
        }
    }

    /// True if the machine takes nothing through `port` at `at`, once everything due by then has been run.
    fn is_paused(&mut self, port: PortId, at: Time) -> bool {
        if self.machine.controls_flow(port) {
            self.machine.advance(at, &mut Cx::new(&mut self.outputs));
        }
        self.heed_pauses();
        self.held_back.is_paused(port)
    }

    /// Offers at `at` what has waited for ports that are paused no more.
    fn release(&mut self, at: Time) {
        self.heed_pauses();
        if !self.held_back.has_any() {
            return;
        }
        for port in (0..self.ports.len()).map(|side| PortId(side as u16)) {
            while let Some(held) = self.held_back.pop(port) {
                let next = self.offer(&held.arrival, held.next, at, held.read_at);
                if next < held.arrival.segments() {
                    self.held_back.put_back(Held { next, ..held });
                    break;
                }
            }
        }
    }

    /// Records what the machine did, and writes what left it.
    fn record(&mut self, clock: impl Fn() -> Time) -> io::Result<()> {
        if !self.outputs.links.is_empty() {
            self.recorder.links(&self.outputs.links);
            self.outputs.links.clear();
        }
        if !self.outputs.events.is_empty() {
            self.recorder.events(&self.outputs.events);
            self.outputs.events.clear();
        }
        if self.outputs.emissions.is_empty() { Ok(()) } else { self.emit(clock) }
    }

    /// Offers the packets of `arrival`, which was read at `read_at`, from number `first` on at `at`; until its port is
    /// paused. The number of the first one that is left.
    fn offer(&mut self, arrival: &Arrival, first: u16, at: Time, read_at: Time) -> u16 {
        let port = PortId(arrival.side);
        let side = usize::from(arrival.side);
        let (framing, tells_headers) = (self.framings[side], self.tells_headers[side]);
        let keeps_packets = self.recorder.machine_level() >= LogLevel::Events;
        let asks_for_bytes = framing.is_some() || tells_headers || self.filters[side].is_some();
        // Where bytes are for the log alone, headers are written and payloads stay where they are.
        let segmenter = if keeps_packets && !asks_for_bytes { arrival.segmenter() } else { None };
        let flow = arrival.flow();
        for index in first..arrival.segments() {
            if self.is_paused(port, at) {
                return index;
            }
            let mut pdu = Pdu { arrived: at, ..arrival.pdu(&flow, index, self.next_id) };
            self.next_id += 1;
            if let Some(journey) = &arrival.journey {
                self.journeys.note(journey, at);
            }
            let record = |recorder: &mut Recorder, pdu: &Pdu, packet: Packet<'_>| {
                let kernel_at = arrival.kernel_at;
                let packet = packet.behind(arrival.link_header());
                recorder.offered(&Offered { at, port, pdu, packet, read_at: Some(read_at), kernel_at });
            };
            if let Some(segmenter) = &segmenter {
                let segment = segmenter.group(u32::from(index), u32::from(index) + 1);
                let rest = &arrival.packet()[segment.payload.clone()];
                record(&mut self.recorder, &pdu, Packet { link: &[], header: segment.bytes(), rest });
            } else if asks_for_bytes || keeps_packets {
                // What is left to the device has no place on the link's line: segments and checksums are finished.
                let bytes = egress::finished_bytes(&pdu);
                if let Some(framing) = framing {
                    pdu.escapes = framing.escapes(&bytes);
                }
                if tells_headers {
                    pdu.headers = HeaderBytes::of(&bytes, pdu.header_len);
                }
                if let Some(filters) = &self.filters[side] {
                    pdu.matches = filters.matches(&bytes, pdu.len);
                }
                record(&mut self.recorder, &pdu, Packet::whole(&bytes, pdu.header_len));
            }
            self.machine.offer(at, port, Item::Pdu(pdu), &mut Cx::new(&mut self.outputs));
        }
        arrival.segments()
    }

    fn emit(&mut self, clock: impl Fn() -> Time) -> io::Result<()> {
        self.closed_until = self.driven_to + self.together_within;
        for emission in &self.outputs.emissions {
            let port = usize::from(emission.port.0);
            match &emission.item {
                Item::Pdu(pdu) if self.ports[port].joined().is_some() => {
                    self.egress[port].push_onwards(pdu, self.journeys.onwards(pdu));
                }
                Item::Pdu(pdu) => self.egress[port].push(pdu, emission.at, self.together_within),
                Item::Signal(Signal::Credit(credit)) => self.credits.give(emission.port, *credit),
            }
        }
        for (port, credit) in self.credits.given() {
            self.ports[usize::from(port.0)].give_credit(credit)?;
        }
        for (egress, port) in self.egress.iter_mut().zip(&mut self.ports) {
            if !egress.is_empty() {
                self.has_passed = true;
                let flushed = egress.flush(port)?;
                self.measurements.refused += flushed.refused;
                self.measurements.not_taken += flushed.not_taken;
            }
        }
        let keeps_packets = self.recorder.machine_level() >= LogLevel::Events;
        let emitted = clock();
        self.last_emission = emitted;
        for emission in self.outputs.emissions.drain(..) {
            let Item::Pdu(pdu) = emission.item else { continue };
            let to = emission.port.end();
            let (direction, from) = (to.other().sends(), PortId::of(emission.port.user(), to.other()));
            let entered = self.journeys.entered(&pdu);
            let least_transit = || self.machine.least_transit_of(pdu.arrived, from, pdu.len);
            if let Some(delays) = self.delays.get_mut(usize::from(from.user())) {
                delays.emitted(direction, entered, emission.at);
            }
            self.measurements.timings.emitted(direction, entered, emission.at, emitted, least_transit);
            if keeps_packets && egress::is_changed(&pdu) {
                let bytes = egress::damaged_bytes(&pdu);
                let packet = Packet::whole(&bytes, pdu.header_len);
                let damage = pdu.damage.as_deref().unwrap_or(&UNDAMAGED);
                self.recorder.emitted_changed(pdu.id, emission.port, emitted, packet, damage);
            } else {
                self.recorder.emitted(pdu.id, emission.port, emitted);
            }
        }
        Ok(())
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
    /// When a port is gone.
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

    /// Measurements up to now.
    pub fn look(&mut self, now: Time) -> LinkLook {
        let mut measurements = self.measurements.clone();
        let behind = now.since(self.driven_to);
        if self.unfinished.is_some() && behind > HOPELESSLY_BEHIND {
            measurements.unfinished = behind;
        }
        LinkLook {
            at: now,
            measurements,
            counters: self.outputs.counters.clone(),
            losses: PortLosses::read(&mut self.ports),
            stamped: self.has_kernel_stamps(),
            demoted: None,
            clock: ClockReport::default(),
            epoch_ns: 0,
            reads_unwatched: false,
        }
    }

    /// Ends the run: what the counters and the measurements say, how many packets are still inside,
    /// and the recorder, to be finished.
    pub fn finish(self) -> FinishedLink {
        let held = self.machine.held();
        FinishedLink {
            ended: self.driven_to,
            counters: self.outputs.counters,
            measurements: self.measurements,
            delays: self.delays,
            held,
            recorder: self.recorder,
            ports: self.ports,
            lost: self.lost,
        }
    }
}

/// Measurements of a link up to an instant.
#[derive(Debug)]
pub struct LinkLook {
    /// The instant, in run time.
    pub at: Time,
    /// Measurements of the loop.
    pub measurements: LinkMeasurements,
    /// Counters of the machine.
    pub counters: airpath_core::Counters,
    /// Losses of the ports.
    pub losses: PortLosses,
    /// True if packets bear the kernel's stamps.
    pub stamped: bool,
    /// Time at which the loop lost its real-time priority, in run time.
    pub demoted: Option<Time>,
    /// Observations of the wall clock.
    pub clock: ClockReport,
    /// Start of the run, by CLOCK_MONOTONIC in ns.
    pub epoch_ns: u64,
    /// Packets bear no stamps, and the kernel does not tell how long the loop waited for a processor.
    pub reads_unwatched: bool,
}

impl LinkLook {
    /// The first steps of the wall clock, in run time.
    pub fn clock_steps(&self) -> impl Iterator<Item = (Time, i64)> + '_ {
        let epoch_ns = self.epoch_ns;
        let in_run = move |noticed_ns: u64| Time::from_nanos(noticed_ns.saturating_sub(epoch_ns));
        self.clock.steps.iter().map(move |step| (in_run(step.noticed_ns), step.by_ns))
    }
}

/// Losses of the ports of a link outside the model.
#[derive(Debug, Default)]
pub struct PortLosses {
    /// Packets that the kernel lost between the endpoints and the engine.
    pub drops: u64,
    /// Frames that were no IP packets.
    pub not_ip: u64,
    /// Frames longer than the link takes.
    pub too_long: u64,
    /// Counters that could not be read, and why.
    pub unreadable: Vec<String>,
}

impl PortLosses {
    /// Reads the counters of the ports.
    pub fn read(ports: &mut [Port]) -> PortLosses {
        let mut losses = PortLosses::default();
        for (port, end) in ports.iter_mut().zip(End::ALL.into_iter().cycle()) {
            losses.not_ip += port.not_ip();
            losses.too_long += port.too_long();
            match port.drops_outside_model() {
                Ok(drops) => losses.drops += drops.total(),
                Err(error) => {
                    losses.unreadable.push(format!("kernel packet losses at the {end}'s end ({error})"));
                }
            }
        }
        losses
    }
}

/// A link after its run.
pub struct FinishedLink {
    /// Instant through which the machine was run: the end of its trace.
    pub ended: Time,
    /// Counters of the machine.
    pub counters: airpath_core::Counters,
    /// Measurements of the loop.
    pub measurements: LinkMeasurements,
    /// One-way delays of each user; none where there is only one.
    pub delays: Vec<Delays>,
    /// Packets still in the machine.
    pub held: u64,
    /// The recorder.
    pub recorder: Recorder,
    /// The ports, for the kernel's counters.
    pub ports: Vec<Port>,
    /// The error that ended it before the end of the run.
    pub lost: Option<io::Error>,
}
