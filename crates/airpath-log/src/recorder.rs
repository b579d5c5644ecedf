// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The hot side of the log.

use std::thread::Thread;

use airpath_core::{Cause, Damage, Event, EventKind, EventKinds, LinkRecord, LogLevel, Pdu, PduId, PortId, Span, Time};
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::batch::{BatchSize, Emitted, Input, InputKind, LogBatch, Lost};
use crate::hash::hash64;
use crate::level::{Level, Snaplen};

/// Maximum age of records in the loop's hands before the writer gets them.
const HAND_OVER_AFTER: Span = Span::from_millis(50);
/// Number of batches in memory before the first record. What the recorder fills next is what it got back last,
/// so that a writer that keeps up never sends it into memory that nobody has touched.
const BATCHES_AT_START: usize = 8;

/// Number of batches that may wait for the writer when one is handed over because of its age.
const MOST_WAITING: usize = 2;

/// Size of the ring between the loop and the writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RingSize {
    /// Batches in all, at least 2.
    pub batches: usize,
    /// The size of each.
    pub batch: BatchSize,
}

impl Default for RingSize {
    /// About 64 MB; what a slow run does not touch costs no memory.
    fn default() -> RingSize {
        RingSize::within(RingSize::DEFAULT_BYTES)
    }
}

impl RingSize {
    /// Default size of the ring.
    pub const DEFAULT_BYTES: u64 = 64_000_000;
    /// Less than this holds no two batches.
    pub const LEAST_BYTES: u64 = 8_000_000;
    /// As many batches as there may be.
    const MOST_BATCHES: u64 = 1 << 16;

    /// A ring of batches of the usual size that takes at most `bytes` (and two batches at least).
    pub fn within(bytes: u64) -> RingSize {
        let batch = BatchSize::default();
        let batches = (bytes / batch.bytes() as u64).clamp(2, RingSize::MOST_BATCHES);
        RingSize { batches: batches as usize, batch }
    }

    /// Maximum memory in bytes.
    pub fn bytes(&self) -> usize {
        self.batches * self.batch.bytes()
    }
}

/// Behaviour when the writer cannot keep up and the ring is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overflow {
    /// Records are lost and counted: a live link never waits for a disk.
    #[default]
    Lose,
    /// The recorder waits: right for runs in virtual time, where nothing is late.
    Wait,
}

/// The bytes of a packet: `header` (network and transport headers, as long as the PDU's
/// `header_len`) and `rest`. Both empty: only the length is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    /// Link header before the packet, for captures alone; empty where ports carry packets without one.
    pub link: &'a [u8],
    /// Network and transport headers.
    pub header: &'a [u8],
    /// Remaining bytes.
    pub rest: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Splits `bytes` behind the headers.
    pub fn whole(bytes: &'a [u8], header_len: u16) -> Packet<'a> {
        let (header, rest) = bytes.split_at(bytes.len().min(usize::from(header_len)));
        Packet { link: &[], header, rest }
    }

    /// The same packet behind the link header `link`.
    #[must_use]
    pub fn behind(self, link: &'a [u8]) -> Packet<'a> {
        Packet { link, ..self }
    }

    /// Length without the link header, in bytes.
    fn len(&self) -> usize {
        self.header.len() + self.rest.len()
    }
}

/// A packet that is being offered to the machine.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    /// The time with which it is offered.
    pub at: Time,
    /// Port of the packet.
    pub port: PortId,
    /// The PDU.
    pub pdu: &'a Pdu,
    /// Its bytes.
    pub packet: Packet<'a>,
    /// Time at which the loop read it.
    pub read_at: Option<Time>,
    /// The kernel's receive stamp, in run time.
    pub kernel_at: Option<Time>,
}

/// Appends records to a batch and hands full batches to the writer. Under [`Overflow::Lose`] no call
/// blocks, takes a lock that the writer could hold, or allocates; below [`Level::Events`] every call
/// returns at once.
///
/// Batches go to the writer when they are full, and after 50 ms unless the recorder [waits](Overflow::Wait) for the
/// writer. While the writer has not come to what it
/// was given before, because of a stalled disk most likely, they go when they are full and not sooner, so
/// that the ring holds as many records as it has room for, however slowly they come.
///
/// The order of calls in one turn of the loop: [`offered`](Recorder::offered) before each
/// `Machine::offer`, [`events`](Recorder::events) once the machine has advanced,
/// [`emitted`](Recorder::emitted) for each packet that left, [`tick`](Recorder::tick).
#[derive(Debug)]
pub struct Recorder {
    level: Level,
    leaves_out: EventKinds,
    keeps_links: bool,
    snaplen: usize,
    size: BatchSize,
    batch: LogBatch,
    channel: Option<Channel>,
    overflow: Overflow,
    /// Deliveries before this event of the batch have been matched or passed over.
    cursor: usize,
    hand_over_at: Time,
    lost: Lost,
    lost_before: Lost,
    unmatched: u64,
}

#[derive(Debug)]
struct Channel {
    /// None once the recorder has ended.
    full: Option<Sender<LogBatch>>,
    empty: Receiver<LogBatch>,
    /// Batches that came back, the last on top: its memory is the most likely to be in the caches.
    spare: Vec<LogBatch>,
    /// Number of spare batches when the writer has none.
    batches: usize,
    /// The writer's thread, which sleeps while it has nothing to do. It is woken by a system call of
    /// its own and not through the channel, whose lock a sleeping reader holds now and then: it would
    /// keep the loop waiting for a thread that the loop has itself put aside.
    writer: Option<Thread>,
}

impl Channel {
    /// Takes back what the writer has emptied.
    fn collect(&mut self) {
        while let Ok(batch) = self.empty.try_recv() {
            self.spare.push(batch);
        }
    }

    /// Hands a batch to the writer; it comes back if the writer is gone.
    fn send(&self, batch: LogBatch) -> Option<LogBatch> {
        // The channel has room for every batch there is: this never waits.
        let refused = match &self.full {
            Some(full) => full.try_send(batch).err().map(crossbeam_channel::TrySendError::into_inner),
            None => Some(batch),
        };
        self.wake_writer();
        refused
    }

    fn wake_writer(&self) {
        if let Some(writer) = &self.writer {
            writer.unpark();
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.full = None;
        self.wake_writer();
    }
}

/// The writer's end of the ring.
#[derive(Debug)]
pub(crate) struct Ring {
    pub full: Receiver<LogBatch>,
    pub empty: Sender<LogBatch>,
}

impl Recorder {
    /// A recorder that sends nothing anywhere, for the levels `none` and `counters`.
    pub fn idle(level: Level) -> Recorder {
        Recorder {
            level: level.min(Level::Counters),
            leaves_out: EventKinds::NONE,
            keeps_links: false,
            snaplen: 0,
            size: BatchSize { events: 0, inputs: 0, arena_bytes: 0 },
            batch: LogBatch::default(),
            channel: None,
            overflow: Overflow::Lose,
            cursor: 0,
            hand_over_at: Time::NEVER,
            lost: Lost::default(),
            lost_before: Lost::default(),
            unmatched: 0,
        }
    }

    /// A recorder and the writer's side of its ring. With `touched`, the memory of its first batches is
    /// there before it is written to.
    pub(crate) fn connected(
        level: Level,
        snaplen: Snaplen,
        size: RingSize,
        overflow: Overflow,
        touched: bool,
    ) -> (Recorder, Ring) {
        let batches = size.batches.max(2);
        // The channels hold every batch there is, so that sending never waits.
        let (full, take_full) = bounded(batches);
        let (give_empty, empty) = bounded(batches);
        let mut spare: Vec<LogBatch> = (1..batches).map(|_| LogBatch::with_size(size.batch)).collect();
        let mut batch = LogBatch::with_size(size.batch);
        if touched {
            batch.touch();
            spare.iter_mut().rev().take(BATCHES_AT_START - 1).for_each(LogBatch::touch);
        }
        let recorder = Recorder {
            level,
            snaplen: snaplen.bytes() as usize,
            size: size.batch,
            batch,
            channel: Some(Channel { full: Some(full), empty, spare, batches: batches - 1, writer: None }),
            overflow,
            ..Recorder::idle(level)
        };
        (recorder, Ring { full: take_full, empty: give_empty })
    }

    /// Wants no events of these kinds from the machine.
    pub(crate) fn leaving_out(self, leaves_out: EventKinds) -> Recorder {
        Recorder { leaves_out, ..self }
    }

    /// Keeps records of link entities, too.
    pub(crate) fn with_links(self, keeps_links: bool) -> Recorder {
        Recorder { keeps_links, ..self }
    }

    /// Names the thread to be woken when there is something to write.
    pub(crate) fn wakes(&mut self, writer: Thread) {
        if let Some(channel) = &mut self.channel {
            channel.writer = Some(writer);
        }
    }

    /// The level of the run.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Level at which the machine has to record.
    pub fn machine_level(&self) -> LogLevel {
        self.level.of_machine()
    }

    /// Kinds of events that the machine is to leave out.
    pub fn leaves_out(&self) -> EventKinds {
        self.leaves_out
    }

    /// True if records of link entities are kept.
    pub fn keeps_links(&self) -> bool {
        self.keeps_links
    }

    /// Records lost since the run began.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Number of calls of [`emitted`](Recorder::emitted) without a matching delivery among the events; a driver
    /// that keeps the order of calls leaves this at zero.
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }

    /// Records a packet that is about to be offered.
    #[inline]
    pub fn offered(&mut self, offered: &Offered<'_>) {
        if self.level < Level::Events {
            return;
        }
        let limit = self.input_limit(&offered.packet);
        self.make_room(offered.at, limit + offered.packet.link.len());
        let pdu = offered.pdu;
        // Of a packet whose headers alone are known, nobody knows what is behind them.
        let Packet { link, header, rest } = offered.packet;
        let is_cut = rest.is_empty() && pdu.len as usize > header.len();
        let hash = if is_cut { Input::UNKNOWN } else { hash64(rest) };
        let link_bytes = self.keep_link(link);
        let input = Input {
            read_ns: nanos(offered.read_at),
            kernel_ns: nanos(offered.kernel_at),
            pdu: pdu.id,
            hash,
            link_bytes,
            bytes: self.batch.keep(header, rest, limit),
            length: pdu.len,
            flow: pdu.flow,
            header_len: pdu.header_len,
            escapes: pdu.escapes,
            matches: pdu.matches,
            port: offered.port.0,
            class: pdu.class,
            ecn: pdu.ecn,
            tuple: pdu.tuple,
            ..Input::new(InputKind::Offer, offered.at)
        };
        self.batch.inputs.push(input);
    }

    /// Records a packet that was filtered before the link because of `cause`.
    #[inline]
    pub fn discarded(&mut self, at: Time, port: PortId, cause: Cause, packet: Packet<'_>) {
        if self.level < Level::Events {
            return;
        }
        let limit = self.input_limit(&packet);
        self.make_room(at, limit + packet.link.len());
        let link_bytes = self.keep_link(packet.link);
        let input = Input {
            hash: hash64(packet.rest),
            link_bytes,
            bytes: self.batch.keep(packet.header, packet.rest, limit),
            length: packet.len() as u32,
            header_len: packet.header.len() as u16,
            port: port.0,
            cause,
            ..Input::new(InputKind::Discarded, at)
        };
        self.batch.inputs.push(input);
    }

    /// Records a command that the machine carried out, as JSON that a replay understands.
    pub fn command(&mut self, at: Time, json: &str) {
        if self.level < Level::Events {
            return;
        }
        self.make_room(at, json.len());
        let bytes = self.batch.keep(json.as_bytes(), &[], usize::MAX);
        self.batch.inputs.push(Input { bytes, ..Input::new(InputKind::Command, at) });
    }

    /// Records that `packets` were read from `port` in one go, for ports without kernel stamps.
    #[inline]
    pub fn read(&mut self, at: Time, port: PortId, packets: u32) {
        if self.level < Level::Events {
            return;
        }
        self.make_room(at, 0);
        self.batch.inputs.push(Input { length: packets, port: port.0, ..Input::new(InputKind::Read, at) });
    }

    /// Records the machine's events since the last call.
    #[inline]
    pub fn events(&mut self, events: &[Event]) {
        if self.level < Level::Events || events.is_empty() {
            return;
        }
        if self.batch.events.len() + events.len() > self.size.events && !self.batch.events.is_empty() {
            self.hand_over(events[0].at);
        }
        self.open(events[0].at);
        // More events from one advance than a batch holds: growing once is better than losing them.
        self.batch.events.extend_from_slice(events);
    }

    /// Records what link entities did since the last call; to be called before [`events`](Recorder::events).
    #[inline]
    pub fn links(&mut self, links: &[LinkRecord]) {
        if !self.keeps_links || links.is_empty() {
            return;
        }
        if self.batch.links.len() + links.len() > self.size.events && !self.batch.links.is_empty() {
            self.hand_over(links[0].at);
        }
        self.open(links[0].at);
        self.batch.links.extend_from_slice(links);
    }

    /// Records that the delivery of `pdu`, among the events already given, really left through
    /// `port` at `at`, unchanged by the link.
    #[inline]
    pub fn emitted(&mut self, pdu: PduId, port: PortId, at: Time) {
        if self.level < Level::Events {
            return;
        }
        if let Some(event) = self.delivery(pdu) {
            self.batch.emitted.push(Emitted {
                event,
                port: port.0,
                changed: false,
                at_ns: at.nanos(),
                bytes: Default::default(),
                length: 0,
                flips: Default::default(),
                kept_bytes: None,
            });
        }
    }

    /// The same for a packet that the link changed: `packet` is what became of it, if it has bytes,
    /// and `damage` what was done to it.
    pub fn emitted_changed(&mut self, pdu: PduId, port: PortId, at: Time, packet: Packet<'_>, damage: &Damage) {
        if self.level < Level::Events {
            return;
        }
        if let Some(event) = self.delivery(pdu) {
            let limit = if self.level >= Level::Packets { self.snaplen } else { 0 };
            // The arena may grow here: the batch cannot be handed over before its deliveries are matched.
            let bytes = self.batch.keep(packet.header, packet.rest, limit);
            let flips = self.batch.keep_flips(&damage.flips);
            self.batch.emitted.push(Emitted {
                event,
                port: port.0,
                changed: true,
                at_ns: at.nanos(),
                bytes,
                length: packet.len() as u32,
                flips,
                kept_bytes: damage.truncated_to,
            });
        }
    }

    /// Time of the next call of [`tick`](Recorder::tick); `None` while there is nothing to hand over, so that
    /// an idle link wakes nobody.
    #[inline]
    pub fn next_tick(&self) -> Option<Time> {
        self.hand_over_at.finite()
    }

    /// Hands the batch to the writer if its time has come; to be called in every turn of the loop.
    #[inline]
    pub fn tick(&mut self, now: Time) {
        if now >= self.hand_over_at {
            if self.writer_is_behind() {
                self.hand_over_at = now + HAND_OVER_AFTER;
            } else {
                self.hand_over(now);
            }
        }
    }

    /// True if the writer has not yet reached its previous batch.
    #[cold]
    fn writer_is_behind(&mut self) -> bool {
        match (&mut self.channel, self.overflow) {
            (Some(channel), Overflow::Lose) => {
                channel.collect();
                channel.spare.is_empty() || channel.spare.len() + MOST_WAITING < channel.batches
            }
            _ => false,
        }
    }

    /// Hands over what there is and ends recording, without waiting for the writer. Returns what was
    /// lost in the whole run.
    pub fn finish(mut self, now: Time) -> Lost {
        if let Some(channel) = &self.channel
            && !(self.batch.is_empty() && self.lost_before.is_none())
        {
            self.batch.sealed_at = now;
            self.batch.lost_before = self.lost_before;
            if let Some(batch) = channel.send(std::mem::take(&mut self.batch)) {
                self.lost.add(&batch);
            }
        }
        self.lost
    }

    /// Number of bytes kept of a packet: all headers for a replay, and the snaplen for a capture.
    #[inline]
    fn input_limit(&self, packet: &Packet<'_>) -> usize {
        if self.level >= Level::Packets { self.snaplen.max(packet.header.len()) } else { packet.header.len() }
            .min(packet.len())
    }

    /// Keeps a link header for the captures; its length, which is 0 where there are none.
    #[inline]
    fn keep_link(&mut self, link: &[u8]) -> u8 {
        let link = if self.level >= Level::Packets { link } else { &[] };
        // No link header of a port is longer; one that were would not be kept at all.
        let bytes = u8::try_from(link.len()).unwrap_or(0);
        self.batch.keep(&link[..usize::from(bytes)], &[], usize::MAX);
        bytes
    }

    #[inline]
    fn make_room(&mut self, at: Time, bytes: usize) {
        if self.batch.inputs.len() >= self.size.inputs
            || (self.batch.arena.len() + bytes > self.size.arena_bytes && !self.batch.inputs.is_empty())
        {
            self.hand_over(at);
        }
        self.open(at);
    }

    #[inline]
    fn open(&mut self, at: Time) {
        // Where the loop waits for the writer, nobody's clock counts: only full batches are worth a wake-up.
        if self.hand_over_at == Time::NEVER && self.overflow == Overflow::Lose {
            self.hand_over_at = at + HAND_OVER_AFTER;
        }
    }

    #[inline]
    fn delivery(&mut self, pdu: PduId) -> Option<u32> {
        let waiting = self.batch.events.get(self.cursor..)?;
        match waiting.iter().position(|event| event.kind == EventKind::Delivered && event.pdu == pdu) {
            Some(offset) => {
                let index = self.cursor + offset;
                self.cursor = index + 1;
                Some(index as u32)
            }
            None => {
                self.unmatched += 1;
                None
            }
        }
    }

    #[cold]
    fn hand_over(&mut self, now: Time) {
        self.hand_over_at = Time::NEVER;
        self.cursor = 0;
        if self.batch.is_empty() {
            return;
        }
        let Some(channel) = &mut self.channel else { return };
        channel.collect();
        let empty = match (channel.spare.pop(), self.overflow) {
            (Some(spare), _) => Some(spare),
            (None, Overflow::Lose) => None,
            (None, Overflow::Wait) => channel.empty.recv().ok(),
        };
        let Some(empty) = empty else {
            self.lose();
            return;
        };
        let mut batch = std::mem::replace(&mut self.batch, empty);
        batch.sealed_at = now;
        batch.lost_before = std::mem::take(&mut self.lost_before);
        if let Some(batch) = channel.send(batch) {
            // Only a writer that is gone refuses; keep its batch as the next empty one.
            let spare = std::mem::replace(&mut self.batch, batch);
            channel.spare.push(spare);
            self.lose();
        }
    }

    fn lose(&mut self) {
        self.lost.add(&self.batch);
        self.lost_before.add(&self.batch);
        self.batch.clear();
    }
}

#[inline]
fn nanos(time: Option<Time>) -> u64 {
    time.map_or(Input::UNKNOWN, Time::nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Direction;

    fn event(kind: EventKind, pdu: &Pdu, at: u64) -> Event {
        Event::of_path(Time::from_nanos(at), Direction::Uplink, kind, Cause::None, pdu, 0)
    }

    fn small() -> RingSize {
        RingSize { batches: 2, batch: BatchSize { events: 8, inputs: 4, arena_bytes: 64 } }
    }

    #[test]
    fn a_full_ring_loses_records_counts_them_and_goes_on() {
        let (mut recorder, ring) =
            Recorder::connected(Level::Events, Snaplen::default(), small(), Overflow::Lose, true);
        let pdu = Pdu { id: 1, len: 100, ..Pdu::default() };
        for step in 0..40 {
            recorder.events(&[event(EventKind::Offered, &pdu, step)]);
        }
        // One batch of 8 waits for the writer, one of up to 8 is being filled, the rest is gone.
        assert_eq!(recorder.lost(), Lost { events: 24, inputs: 0 });
        let first = ring.full.try_recv().unwrap();
        assert_eq!((first.events.len(), first.lost_before), (8, Lost::default()));
        let mut back = first;
        back.clear();
        ring.empty.send(back).unwrap();
        recorder.tick(Time::from_nanos(1_000_000_000));
        let second = ring.full.try_recv().unwrap();
        assert_eq!((second.events.len(), second.lost_before.events), (8, 24));
        assert_eq!(second.events[0].at.nanos(), 32);
    }

    #[test]
    fn deliveries_meet_their_departures_in_any_group() {
        let (mut recorder, ring) =
            Recorder::connected(Level::Events, Snaplen::default(), RingSize::default(), Overflow::Lose, true);
        let pdus: Vec<Pdu> = (1..=4).map(|id| Pdu { id, len: 100, ..Pdu::default() }).collect();
        let events: Vec<Event> = pdus
            .iter()
            .flat_map(|pdu| [event(EventKind::Passed, pdu, pdu.id), event(EventKind::Delivered, pdu, pdu.id)])
            .collect();
        recorder.events(&events[..4]);
        recorder.events(&events[4..]);
        for id in [1, 3, 4] {
            recorder.emitted(id, PortId::SERVER, Time::from_nanos(100 + id));
        }
        recorder.emitted(2, PortId::SERVER, Time::from_nanos(999));
        assert_eq!(recorder.unmatched(), 1);
        assert_eq!(recorder.finish(Time::from_nanos(200)), Lost::default());
        let batch = ring.full.try_recv().unwrap();
        let emitted: Vec<_> = batch.emitted.iter().map(|emitted| (emitted.event, emitted.at_ns)).collect();
        assert_eq!(emitted, [(1, 101), (5, 103), (7, 104)]);
    }

    #[test]
    fn an_idle_recorder_asks_for_no_wake_up() {
        let (mut recorder, ring) =
            Recorder::connected(Level::Packets, Snaplen::default(), RingSize::default(), Overflow::Lose, true);
        assert_eq!(recorder.next_tick(), None);
        let pdu = Pdu { id: 1, len: 100, ..Pdu::default() };
        let at = Time::from_nanos(7);
        let packet = Packet::default();
        recorder.offered(&Offered { at, port: PortId::CLIENT, pdu: &pdu, packet, read_at: None, kernel_at: None });
        assert_eq!(recorder.next_tick(), Some(at + HAND_OVER_AFTER));
        recorder.tick(at + HAND_OVER_AFTER);
        assert_eq!(recorder.next_tick(), None);
        assert_eq!(ring.full.len(), 1);

        let mut counters = Recorder::idle(Level::Packets);
        counters.events(&[event(EventKind::Offered, &pdu, 1)]);
        assert_eq!((counters.level(), counters.next_tick()), (Level::Counters, None));
    }
}
