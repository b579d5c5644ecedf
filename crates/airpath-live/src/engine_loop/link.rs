//! One machine with its two ports, as the loop sees it.

use std::io;

use airpath_core::{
    BufferPool, Cause, Command, CommandError, Cx, Direction, Event, EventKind, Item, LogLevel, Machine, Outputs, Pdu,
    PduId, PortId, Span, StateInForce, Time, UNDAMAGED,
};
use airpath_log::{LatenessBound, Offered, Packet, Recorder};

use super::egress::{self, Egress};
use super::ingress::Arrival;
use super::measure::LinkMeasurements;
use super::unread::Unread;
use crate::packet_bytes::noise;
use crate::ports::{LONGEST_PACKET_BYTES, Port, Received};

/// How many packets are read from a port before the other one gets a look.
const READ_LIMIT: usize = 64;

/// A receive buffer that takes what comes in a millisecond at tens of gigabits a second.
const LARGE_BUFFER_BYTES: usize = 8 << 20;
/// How much of a discarded packet goes into the input log.
const DISCARDED_HEADER_BYTES: usize = 64;
/// The direction of what is read from the client's port and from the server's.
const DIRECTIONS: [Direction; 2] = Direction::ALL;

/// A machine between the ports of its endpoints.
pub struct LiveLink {
    machine: Box<dyn Machine>,
    outputs: Outputs,
    ports: [Port; 2],
    recorder: Recorder,
    egress: [Egress; 2],
    received: Vec<Received>,
    arrivals: Vec<Arrival>,
    next_id: PduId,
    /// How far the machine has been driven; nothing is offered before it.
    driven_to: Time,
    started: bool,
    /// When the loop has to come back, as of the last call.
    next_deadline: Time,
    /// How long packets may be left unread, as of the last call.
    may_leave_unread: Span,
    /// What a port has more of than one turn takes.
    unread: Unread,
    /// How long they may be left at most, which is 0 if they bear no stamps.
    unread_limit: Span,
    /// When something last left.
    last_emission: Time,
    /// What was measured so far.
    pub measurements: LinkMeasurements,
}

impl LiveLink {
    /// A link that has not started: packets are read and thrown away.
    pub fn new(machine: Box<dyn Machine>, ports: [Port; 2], recorder: Recorder, bound: LatenessBound) -> LiveLink {
        let outputs = Outputs { level: recorder.machine_level(), ..Outputs::default() };
        let unread_limit = ports.iter().map(unread_limit).min().unwrap_or(Span::ZERO);
        let mut link = LiveLink {
            machine,
            outputs,
            ports,
            recorder,
            egress: [Egress::default(), Egress::default()],
            received: Vec::with_capacity(READ_LIMIT),
            arrivals: Vec::with_capacity(2 * READ_LIMIT),
            next_id: 1,
            driven_to: Time::ZERO,
            started: false,
            next_deadline: Time::NEVER,
            may_leave_unread: Span::ZERO,
            unread: Unread::default(),
            unread_limit,
            last_emission: Time::ZERO,
            measurements: LinkMeasurements::new(bound),
        };
        link.note_plans();
        link
    }

    /// The ports, the client's first.
    pub fn ports(&mut self) -> &mut [Port; 2] {
        &mut self.ports
    }

    /// Whether packets of both ports bear the kernel's stamps.
    pub fn has_kernel_stamps(&self) -> bool {
        self.ports.iter().all(Port::has_kernel_stamps)
    }

    /// The run begins: from now on packets are offered to the machine. Whatever came before has been
    /// read and thrown away, and nothing of the time before is left in the link.
    pub fn start(&mut self) {
        self.started = true;
        self.driven_to = Time::ZERO;
        self.unread.clear();
        self.arrivals.clear();
        self.note_plans();
    }

    /// When the loop has to come back: something leaves, or records have to be handed over.
    pub fn next_deadline(&self) -> Time {
        self.next_deadline
    }

    /// When something last left; zero if nothing has.
    pub fn last_emission(&self) -> Time {
        self.last_emission
    }

    /// For how long packets may be left unread without any being late: they bear the kernel's stamps,
    /// and none that comes now leaves sooner.
    pub fn may_leave_unread(&self) -> Span {
        self.may_leave_unread
    }

    /// Asks the machine for its plans once a turn, however often the loop asks for them.
    fn note_plans(&mut self) {
        let emission = self.machine.next_emission().unwrap_or(Time::NEVER);
        self.next_deadline = emission.min(self.recorder.next_tick().unwrap_or(Time::NEVER));
        self.may_leave_unread = self.machine.least_transit().min(self.unread_limit);
    }

    /// Reads what waits at port `side`. `now` is the time of the wake-up; `stamp` converts a kernel
    /// stamp into run time.
    ///
    /// # Errors
    /// When the port is gone.
    pub fn read(
        &mut self,
        side: usize,
        now: Time,
        pool: &mut BufferPool,
        stamp: impl Fn(u64) -> Option<Time>,
    ) -> io::Result<()> {
        let slab = pool.slab(LONGEST_PACKET_BYTES);
        let outcome = self.ports[side].read_batch(slab, READ_LIMIT, &mut self.received)?;
        self.measurements.left_unread |= !outcome.exhausted;
        if !outcome.exhausted
            && let Some(last) = self.received.last().and_then(|received| received.stamp_realtime_ns)
        {
            self.unread.note(stamp(last).unwrap_or(Time::ZERO));
        }
        let port = PortId(side as u16);
        if self.started && !self.received.is_empty() && !self.ports[side].has_kernel_stamps() {
            self.recorder.read(now, port, self.received.len() as u32);
        }
        for received in self.received.drain(..) {
            let stamped = received.stamp_realtime_ns.map(&stamp);
            let before_start = !self.started || stamped == Some(None);
            let kernel_at = stamped.flatten();
            // Never before what the machine has done already, never after the present.
            let at = kernel_at.unwrap_or(now).min(now).max(self.driven_to);
            let (cause, bytes) = match Arrival::read(received, side as u8, at, kernel_at) {
                Err(bytes) => (Cause::Malformed, bytes),
                Ok(arrival) => match noise(&arrival.bytes) {
                    None if !before_start => {
                        self.arrivals.push(arrival);
                        continue;
                    }
                    None => (Cause::BeforeStart, arrival.bytes),
                    Some(_) => (Cause::Noise, arrival.bytes),
                },
            };
            let pdu = Pdu { len: bytes.len() as u32, ..Pdu::default() };
            let event = Event::of_path(at, DIRECTIONS[side], EventKind::Discarded, cause, &pdu, 0);
            self.outputs.counters.count(&event);
            if self.started {
                let header = bytes.len().min(DISCARDED_HEADER_BYTES) as u16;
                self.recorder.discarded(at, port, cause, Packet::whole(&bytes, header));
            }
        }
        Ok(())
    }

    /// Offers what was read, runs the machine to `now`, and writes what left it. `clock` reads the
    /// time of the run.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn drive(&mut self, now: Time, clock: impl Fn() -> Time) -> io::Result<()> {
        // Both ports' packets in the order of their times, the client's first at equal ones.
        self.arrivals.sort_by_key(|arrival| (arrival.at, arrival.side));
        let (to, has_more) = self.unread.take(now, self.driven_to);
        let mut arrivals = std::mem::take(&mut self.arrivals);
        // What came to the other port after that has to wait for what is unread.
        let ready = arrivals.partition_point(|arrival| arrival.at <= to);
        for arrival in arrivals.drain(..ready) {
            let (machine, port) = (&self.machine, PortId(u16::from(arrival.side)));
            let least_transit = || machine.least_transit_of(arrival.at, port, arrival.first_bytes());
            let timings = &mut self.measurements.timings;
            match arrival.kernel_at {
                Some(kernel_at) => timings.read(kernel_at, now, arrival.at, least_transit),
                None => timings.read_unstamped(self.measurements.unwatched, least_transit),
            }
            self.offer(&arrival, now);
        }
        self.arrivals = arrivals;
        if self.machine.next_deadline().is_some_and(|due| due <= to) {
            self.machine.advance(to, &mut Cx::new(&mut self.outputs));
        }
        self.driven_to = to;
        self.record(clock)?;
        self.recorder.tick(now);
        self.note_plans();
        if has_more {
            self.next_deadline = to;
        } else if let Some(first) = self.arrivals.first() {
            // Read ahead of an order that took effect before they came.
            self.next_deadline = self.next_deadline.min(first.at);
        }
        Ok(())
    }

    /// Records what the machine did, and writes what left it.
    fn record(&mut self, clock: impl Fn() -> Time) -> io::Result<()> {
        if !self.outputs.events.is_empty() {
            self.recorder.events(&self.outputs.events);
            self.outputs.events.clear();
        }
        if self.outputs.emissions.is_empty() { Ok(()) } else { self.emit(clock) }
    }

    fn offer(&mut self, arrival: &Arrival, now: Time) {
        let port = PortId(u16::from(arrival.side));
        for index in 0..arrival.segments() {
            let pdu = arrival.pdu(index, self.next_id);
            self.next_id += 1;
            if self.recorder.machine_level() >= LogLevel::Events {
                let bytes = egress::finished_bytes(&pdu);
                self.recorder.offered(&Offered {
                    at: arrival.at,
                    port,
                    pdu: &pdu,
                    packet: Packet::whole(&bytes, pdu.header_len),
                    read_at: Some(now),
                    kernel_at: arrival.kernel_at,
                });
            }
            self.machine.offer(arrival.at, port, Item::Pdu(pdu), &mut Cx::new(&mut self.outputs));
        }
    }

    fn emit(&mut self, clock: impl Fn() -> Time) -> io::Result<()> {
        for emission in &self.outputs.emissions {
            if let Item::Pdu(pdu) = &emission.item {
                self.egress[usize::from(emission.port.0)].push(pdu, emission.at);
            }
        }
        for (egress, port) in self.egress.iter_mut().zip(&mut self.ports) {
            if !egress.is_empty() {
                let flushed = egress.flush(port)?;
                self.measurements.refused += flushed.refused;
                self.measurements.not_taken += flushed.not_taken;
            }
        }
        let emitted = clock();
        self.last_emission = emitted;
        for emission in self.outputs.emissions.drain(..) {
            let Item::Pdu(pdu) = emission.item else { continue };
            let (direction, from) = match emission.port {
                PortId::SERVER => (Direction::Uplink, PortId::CLIENT),
                _ => (Direction::Downlink, PortId::SERVER),
            };
            let least_transit = || self.machine.least_transit_of(pdu.arrived, from, pdu.len);
            self.measurements.timings.emitted(direction, pdu.arrived, emission.at, emitted, least_transit);
            if egress::is_changed(&pdu) {
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

    /// Ports whose reading the machine stopped (true) or released (false) since the last call.
    pub(super) fn take_flow_control(&mut self) -> std::vec::Drain<'_, (PortId, bool)> {
        self.outputs.flow_control.drain(..)
    }

    /// How far the machine has been driven.
    pub fn driven_to(&self) -> Time {
        self.driven_to
    }

    /// The state in which the machine is.
    pub fn state_in_force(&self) -> StateInForce {
        self.machine.state_in_force()
    }

    /// Carries out a command on the machine at `at`, or as soon after it as the machine has been driven
    /// already. `record` is the command in the input log.
    ///
    /// # Errors
    /// When it does not fit the machine; then nothing is recorded.
    pub fn control(&mut self, at: Time, command: &Command, record: &str) -> Result<(), CommandError> {
        let at = at.max(self.driven_to);
        self.machine.control(at, command, &mut Cx::new(&mut self.outputs))?;
        self.driven_to = at;
        self.recorder.command(at, record);
        Ok(())
    }

    /// Runs the machine to the end of the run, `ended`, so that its trace ends there, whatever the loop had
    /// left for later; what leaves in this last moment is written like everything before.
    ///
    /// # Errors
    /// When a port is gone.
    pub fn settle(&mut self, ended: Time, clock: impl Fn() -> Time) -> io::Result<()> {
        self.arrivals.clear();
        self.unread.clear();
        self.machine.advance(ended, &mut Cx::new(&mut self.outputs));
        self.record(clock)
    }

    /// Ends the run: what the counters and the measurements say, how many packets are still inside,
    /// and the recorder, to be finished.
    pub fn finish(self) -> FinishedLink {
        let held = self.machine.held();
        FinishedLink {
            counters: self.outputs.counters,
            measurements: self.measurements,
            held,
            recorder: self.recorder,
            ports: self.ports,
        }
    }
}

/// How long packets may wait in `port`: not at all without stamps of their arrival, and not so long
/// that they fill its buffer.
fn unread_limit(port: &Port) -> Span {
    match port {
        Port::Tun(_) => Span::ZERO,
        Port::Packet(port) if port.receive_buffer_bytes() >= LARGE_BUFFER_BYTES => Span::from_millis(1),
        Port::Packet(_) => Span::from_micros(200),
    }
}

/// What a link leaves behind.
pub struct FinishedLink {
    /// Counters of the machine.
    pub counters: airpath_core::Counters,
    /// Measurements of the loop.
    pub measurements: LinkMeasurements,
    /// Packets still in the machine.
    pub held: u64,
    /// The recorder.
    pub recorder: Recorder,
    /// The ports, for the kernel's counters.
    pub ports: [Port; 2],
}
