// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The contract between a driver and what it drives.
//!
//! A machine is a path of hops or a cell of many users. It never reads a clock: a driver offers
//! items with the time at which they arrived, advances the machine to an instant, and carries away
//! what it emitted. The laws that every machine keeps:
//!
//! 1. Time never runs backwards across calls.
//! 2. After `advance(t)`, `next_deadline() > t`, or there is none. `offer(at)` and `control(at)`
//!    first run everything due at or before `at`, including what earlier offers at the same instant
//!    caused; what they cause themselves is run by the next call.
//! 3. `advance(a); advance(b)` leaves exactly what `advance(b)` leaves: extra wake-ups change nothing.
//! 4. At equal times the order is total and fixed: service before state changes before arrivals.
//! 5. Offered + generated + duplicated = delivered + dropped + consumed + held.
//! 6. What a machine emits and records is a function of its configuration, its seed and its inputs.

use std::any::Any;
use std::sync::Arc;

use crate::counters::Counters;
use crate::event::{Event, EventKind, EventKinds};
use crate::framing::Framing;
use crate::link_record::LinkRecord;
use crate::matches::PacketFilters;
use crate::pdu::{Direction, Pdu};
use crate::time::{Span, Time};

/// A port of a machine; a path has [`PortId::CLIENT`] and [`PortId::SERVER`], a cell two for each user.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub u16);

impl PortId {
    /// The client's (mobile) end of a path.
    pub const CLIENT: PortId = PortId(0);
    /// The server's (fixed) end of a path.
    pub const SERVER: PortId = PortId(1);
}

/// An item that passes a port.
#[derive(Debug)]
pub enum Item {
    /// A protocol data unit.
    Pdu(Pdu),
    /// Flow control or feedback between machines.
    Signal(Signal),
}

/// Flow control and feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The machine behind the port tells what it has taken of the port's PDUs.
    Credit(Credit),
}

/// Flow control between two machines of one path: the sum of what the receiving one has taken so far, so that a credit
/// makes up for those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credit {
    /// Packets that came through the port and have left its first queue.
    pub taken_packets: u64,
    /// Their total length.
    pub taken_bytes: u64,
    /// Number of packets that may be on their way into the machine; `u32::MAX` for any.
    pub window_packets: u32,
    /// Their total length; `u64::MAX` for any.
    pub window_bytes: u64,
}

impl Credit {
    /// The credit of a machine without a window, which has taken nothing.
    pub const UNLIMITED: Credit =
        Credit { taken_packets: 0, taken_bytes: 0, window_packets: u32::MAX, window_bytes: u64::MAX };
}

/// An item that left a machine, at the time it was due.
#[derive(Debug)]
pub struct Emission {
    /// Due time.
    pub at: Time,
    /// Port of the item.
    pub port: PortId,
    /// The emitted item.
    pub item: Item,
}

/// A change from outside. The parameters are typed by the crate that made the machine, checked
/// before they get here, and shared, so that a command costs no copy.
#[derive(Clone, Debug)]
pub enum Command {
    /// Puts the state with this name in force.
    EnterState(Arc<str>),
    /// Replaces parameters of the machine; the value is of a configuration type of the machine.
    Configure(Arc<dyn Any + Send + Sync>),
}

/// Reason for refusing a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such state.
    #[error("there is no state `{name}`; the states are {known}")]
    UnknownState {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// There is no such user.
    #[error("there is no user `{name}`; the users are {known}")]
    UnknownUser {
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The configuration is of another machine.
    #[error("the new parameters do not fit this machine: {0}")]
    Mismatch(String),
}

/// The state in which a user of a machine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StateInForce {
    /// Its number: 0 for that of the beginning, n + 1 for place n among the others.
    pub number: u16,
    /// Number of states entered since the run began.
    pub entries: u64,
}

/// Level of detail that a machine records.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum LogLevel {
    /// Counters only (they cost next to nothing and are always kept).
    #[default]
    Counters,
    /// Every event.
    Events,
}

/// Output of a machine; owned by the driver, one for each machine, reused between calls.
#[derive(Debug, Default)]
pub struct Outputs {
    /// Items to carry away, in order of their due times.
    pub emissions: Vec<Emission>,
    /// Events since the driver last took them, if the level asks for events.
    pub events: Vec<Event>,
    /// Ports that want their input stopped (true) or released (false), in order.
    pub flow_control: Vec<(PortId, bool)>,
    /// Counters since the run began.
    pub counters: Counters,
    /// Level of recording.
    pub level: LogLevel,
    /// Kinds of events that are counted and never recorded; the same for a whole run.
    pub leaves_out: EventKinds,
    /// Records of link entities since the driver last took them, if it asks for them.
    pub links: Vec<LinkRecord>,
    /// True if the driver asks for them, and takes them.
    pub keeps_links: bool,
}

/// A machine's way out during one call.
pub struct Cx<'a> {
    outputs: &'a mut Outputs,
}

impl<'a> Cx<'a> {
    /// A context that writes into `outputs`.
    pub fn new(outputs: &'a mut Outputs) -> Cx<'a> {
        Cx { outputs }
    }

    /// Hands `item` to the driver; only while advancing through its due time `at`.
    pub fn emit(&mut self, at: Time, port: PortId, item: Item) {
        self.outputs.emissions.push(Emission { at, port, item });
    }

    /// Counts an event, and records it if the level asks for that and its kind is not left out.
    #[inline(always)]
    pub fn record(&mut self, event: Event) {
        self.outputs.counters.count(&event);
        // The kind is a constant wherever this is called: one more bit to test, and only beside events.
        if self.outputs.level >= LogLevel::Events && !self.outputs.leaves_out.contains(event.kind) {
            self.keep(event);
        }
    }

    /// Records what a link entity did, if the driver asks for that; otherwise nothing makes the record.
    #[inline]
    pub fn link(&mut self, record: impl FnOnce() -> LinkRecord) {
        if self.outputs.keeps_links {
            self.outputs.links.push(record());
        }
    }

    #[inline(never)]
    fn keep(&mut self, event: Event) {
        self.outputs.events.push(event);
    }

    /// Number of packets of endpoints inside the machine, according to its records.
    pub fn users_inside(&self) -> u64 {
        let total = |direction, kind| self.outputs.counters.total(direction, kind);
        let inside = |direction| {
            let came = total(direction, EventKind::Offered) + total(direction, EventKind::Duplicated);
            let went = total(direction, EventKind::Delivered) + total(direction, EventKind::Dropped);
            came.saturating_sub(went)
        };
        Direction::ALL.into_iter().map(inside).sum()
    }

    /// Stops the driver's reading of `port`, so that its sender's own queue fills.
    pub fn pause(&mut self, port: PortId) {
        self.outputs.flow_control.push((port, true));
    }

    /// Lets the driver read `port` again.
    pub fn resume(&mut self, port: PortId) {
        self.outputs.flow_control.push((port, false));
    }
}

/// All that a driver knows of what it drives. The laws are in the module's documentation.
pub trait Machine: Send {
    /// Takes `item` through `port` at `at`. A signal through a port says that the path goes on at another machine
    /// behind it: from then on this one sends credits there, and no longer pauses the port.
    fn offer(&mut self, at: Time, port: PortId, item: Item, cx: &mut Cx<'_>);

    /// Carries out a command at `at`.
    ///
    /// # Errors
    /// When the command does not fit the machine; nothing is changed then.
    fn control(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError>;

    /// Runs every event due at or before `to`, in order.
    fn advance(&mut self, to: Time, cx: &mut Cx<'_>);

    /// Does of [`Machine::advance`] as much as `events` (above 0) allow, takes what it needed from them, and
    /// returns the instant through which everything has been run: `to`, or an earlier one where the
    /// events are used up. What is due at one instant is run to its end. By law 3 it changes nothing how
    /// often the work is cut.
    fn advance_some(&mut self, to: Time, events: &mut u32, cx: &mut Cx<'_>) -> Time {
        *events = events.saturating_sub(1);
        self.advance(to, cx);
        to
    }

    /// Time of the next internal event.
    fn next_deadline(&self) -> Option<Time>;

    /// An instant before which nothing will be emitted unless something is offered or commanded
    /// first; never before [`Machine::next_deadline`]. A driver in real time may sleep until then:
    /// by law 3 it is free to leave events that emit nothing until something else wakes it.
    fn next_emission(&self) -> Option<Time> {
        self.next_deadline()
    }

    /// Packets that are certain to leave: hands them to `foretell` with their due times and ports, in the order of their
    /// emission, and returns a later instant, before which nothing else leaves unless a command comes or something is
    /// offered. Only a command changes them. Until that instant the promise of [`Machine::least_transit`] holds, too.
    /// No packet that is due after `until` has to be told. A driver that can write packets at times to come need not
    /// wake up for each of them. A machine that foretells nothing returns the next emission.
    fn foresee(&self, _until: Time, _foretell: &mut dyn FnMut(Time, PortId, &Pdu)) -> Time {
        self.next_emission().unwrap_or(Time::NEVER)
    }

    /// An item offered from now on leaves no sooner than this after it was offered, until
    /// [`Machine::next_emission`] or the next command. A driver whose inputs bear the times of their
    /// arrival may leave them unread for as long.
    fn least_transit(&self) -> Span {
        Span::ZERO
    }

    /// Minimum transit time of a packet of `bytes` that is offered through `port` at `at`: through an idle
    /// machine, with the parameters in force as of the last call. It is the time scale by which a driver judges
    /// whether it was late with that packet, and plays no part in what the machine does. `at` may lie in the
    /// past. Cheap enough for every packet: a machine walks its hops and allocates nothing.
    fn least_transit_of(&self, _at: Time, _port: PortId, _bytes: u32) -> Span {
        self.least_transit()
    }

    /// The state in which the user of this number is, as of the last call. A machine without users is that of user 0.
    fn state_in_force(&self, _user: u16) -> StateInForce {
        StateInForce::default()
    }

    /// The framing for which escapes of what comes in through `port` are to be counted, during the whole run; none
    /// where no length depends on contents. A driver that has the bytes of a packet, with their checksums
    /// finished, puts the count into [`Pdu::escapes`]; one that records inputs records it, because a machine is a
    /// function of its inputs and has no contents.
    fn wants_escapes(&self, _port: PortId) -> Option<Framing> {
        None
    }

    /// True if lengths depend on the headers of what comes in through `port`, during the whole run. A driver that
    /// has the bytes of a packet, with their checksums finished, keeps its headers in [`Pdu::headers`]; a replay
    /// takes them out of the input log.
    fn wants_headers(&self, _port: PortId) -> bool {
        false
    }

    /// The filters by which the machine chooses among what comes in through `port`, as of the last call: a command may
    /// bring further ones. A driver that has the bytes of a packet, with their checksums finished, puts the answers
    /// into [`Pdu::matches`]; a replay takes them out of the input log. None where nothing depends on them.
    fn wants_filters(&self, _port: PortId) -> Option<Arc<dyn PacketFilters>> {
        None
    }

    /// True if the machine may pause `port`, with the parameters in force as of the last call. A driver advances such a
    /// machine to the instant of an offer before it looks whether the port is paused; and while it is, it calls the
    /// machine at [`Machine::next_emission`], which is then no later than the instant at which it is released.
    /// A packet that is offered to a paused port all the same is taken like any other.
    fn controls_flow(&self, _port: PortId) -> bool {
        false
    }

    /// Number of PDUs of endpoints inside.
    fn held(&self) -> u64;

    /// True if the machine may have endless work without packets of endpoints inside: a driver that waits for
    /// the end of the work must not wait for silence.
    fn never_idle(&self) -> bool {
        false
    }
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    fn offer(&mut self, at: Time, port: PortId, item: Item, cx: &mut Cx<'_>) {
        (**self).offer(at, port, item, cx);
    }
    fn control(&mut self, at: Time, command: &Command, cx: &mut Cx<'_>) -> Result<(), CommandError> {
        (**self).control(at, command, cx)
    }
    fn advance(&mut self, to: Time, cx: &mut Cx<'_>) {
        (**self).advance(to, cx);
    }
    fn advance_some(&mut self, to: Time, events: &mut u32, cx: &mut Cx<'_>) -> Time {
        (**self).advance_some(to, events, cx)
    }
    fn next_deadline(&self) -> Option<Time> {
        (**self).next_deadline()
    }
    fn next_emission(&self) -> Option<Time> {
        (**self).next_emission()
    }
    fn foresee(&self, until: Time, foretell: &mut dyn FnMut(Time, PortId, &Pdu)) -> Time {
        (**self).foresee(until, foretell)
    }
    fn least_transit(&self) -> Span {
        (**self).least_transit()
    }
    fn least_transit_of(&self, at: Time, port: PortId, bytes: u32) -> Span {
        (**self).least_transit_of(at, port, bytes)
    }
    fn state_in_force(&self, user: u16) -> StateInForce {
        (**self).state_in_force(user)
    }
    fn wants_escapes(&self, port: PortId) -> Option<Framing> {
        (**self).wants_escapes(port)
    }
    fn wants_headers(&self, port: PortId) -> bool {
        (**self).wants_headers(port)
    }
    fn wants_filters(&self, port: PortId) -> Option<Arc<dyn PacketFilters>> {
        (**self).wants_filters(port)
    }
    fn controls_flow(&self, port: PortId) -> bool {
        (**self).controls_flow(port)
    }
    fn held(&self) -> u64 {
        (**self).held()
    }
    fn never_idle(&self) -> bool {
        (**self).never_idle()
    }
}
