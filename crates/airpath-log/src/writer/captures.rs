// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The captures: one file for each port of the machine.
//!
//! While the run lasts, the fate of a packet that has just entered the link is unknown, so a drop is
//! marked where it happens: a block of no direction, which holds no more than the IP header,
//! lest a protocol analyser takes it for a retransmission. Once the run has ended well, the marks
//! become comments on the packets themselves.
//!
//! A packet of a run in virtual time, whose file nobody reads while it grows, waits until its fate is known, and gets
//! its comment before it is written: there are no marks then, and no second pass.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use airpath_core::{Cause, Event, EventKind, Origin, PduId};
use airpath_packet::capture::write::packet_with_comment;
use airpath_packet::headers::ip_header_bytes;

use super::annotate::annotate;
use super::in_flight::{Entering, InFlight, InFlightStore};
use super::sink::Sink;
use crate::batch::{Emitted, InputKind, LogBatch};
use crate::error::LogError;
use crate::files::capture_name;
use crate::pcapng::{self, Interface, Kept, PacketBlock};
use crate::places::Places;
use crate::tables::events::WHOLE_PATH;

/// Longest interval within which the records of one instant reach the writer; blocks wait that long, so that
/// those of a file are in the order of their stamps.
const WAIT_NS: u64 = 20_000_000;

/// Bytes of all captures that wait for the fates of packets, at most.
const HELD_BYTES: usize = 32 << 20;
/// Bytes of all captures that are worth a write: few enough to stay in the caches.
const WORTH_BYTES: usize = 256 << 10;
/// The same for each capture, of which there may be many.
const WORTH_BYTES_EACH: usize = 4 << 10;
/// Length of a part of what is written, in bytes.
const PART_BYTES: usize = 64 << 10;

pub(crate) struct Captures {
    ports: Vec<PortCapture>,
    places: Places,
    snaplen: usize,
    in_flight: InFlightStore,
    comment: String,
    /// True if packets wait until their fates are known.
    holds: bool,
    /// Number of waiting bytes at which a write is worth it.
    worth_bytes: usize,
}

struct PortCapture {
    sink: Sink,
    waiting: Waiting,
    /// Room for what waits on after a write, empty between two.
    later: Waiting,
    packets: u64,
    /// Drops that the file marks where they happened.
    marks: u64,
    /// Blocks with earlier stamps, and with this one, have been written.
    written_unix_ns: Option<u64>,
    /// Comments on packets that wait.
    fates: HashMap<PduId, String>,
}

/// Position of a waiting block.
struct Block {
    unix_ns: u64,
    /// At one instant, what enters the link comes before what leaves it, and each in the order in which it
    /// was recorded: so the order does not show in which batches records came.
    leaves: bool,
    /// The packet that enters the link.
    enters: Option<PduId>,
    start: usize,
    end: usize,
}

/// Blocks that wait for their turn.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    blocks: Vec<Block>,
}

impl Captures {
    /// Captures in `folder`. With `holds`, packets wait until their fates are known.
    pub fn create(
        folder: &Path,
        places: &Places,
        kept: Kept,
        holds: bool,
        open: &super::OpenSink<'_>,
    ) -> Result<Captures, LogError> {
        let ports = places
            .ports()
            .iter()
            .map(|name| {
                let mut sink = open(folder.join(capture_name(name)))?;
                let mut head = Vec::new();
                pcapng::write_head(&mut head, name, kept);
                sink.append(&head);
                Ok(PortCapture {
                    sink,
                    waiting: Waiting::default(),
                    later: Waiting::default(),
                    packets: 0,
                    marks: 0,
                    written_unix_ns: None,
                    fates: HashMap::new(),
                })
            })
            .collect::<Result<Vec<_>, LogError>>()?;
        Ok(Captures {
            ports,
            places: places.clone(),
            snaplen: kept.snaplen as usize,
            in_flight: InFlightStore::default(),
            comment: String::new(),
            holds,
            worth_bytes: 0,
        })
    }

    /// Time spent on writing so far.
    pub fn spent(&self) -> Duration {
        self.ports.iter().map(|port| port.sink.spent()).sum()
    }

    /// True if a capture could not be written.
    pub fn has_failure(&self) -> bool {
        self.ports.iter().any(|port| port.sink.failure().is_some())
    }

    /// Lets packets wait no longer for their fates: from now on, drops are marked where they happen.
    pub fn hold_no_longer(&mut self) {
        self.holds = false;
    }

    /// Takes the packets of `batch`; `start_unix_ns` is when the run began.
    pub fn take(&mut self, batch: &LogBatch, start_unix_ns: u64) {
        for input in &batch.inputs {
            let (pdu, comment) = match input.kind {
                InputKind::Offer => (Some(input.pdu), None),
                InputKind::Discarded => {
                    self.comment.clear();
                    let _ = write!(self.comment, "discarded: {}", input.cause);
                    (None, Some(self.comment.as_str()))
                }
                _ => continue,
            };
            // A packet of which only the length is known has nothing to show.
            let bytes = batch.frame(input);
            if bytes.is_empty() {
                continue;
            }
            let bytes = &bytes[..bytes.len().min(self.snaplen)];
            let link_bytes = usize::from(input.link_bytes);
            if let Some(pdu) = pdu {
                let (port, length, at_ns) = (input.port, input.length, input.at.nanos());
                self.in_flight.enter(pdu, Entering { port, length, link_bytes, at_ns, bytes });
            }
            let unix_ns = start_unix_ns.saturating_add(input.at.nanos());
            let length = input.length + u32::from(input.link_bytes);
            if let Some(port) = self.ports.get_mut(usize::from(input.port)) {
                port.push(&PacketBlock { interface: Interface::Rx, unix_ns, length, bytes, pdu, comment });
            }
        }
        let mut emitted = batch.emitted.iter().peekable();
        for (index, event) in batch.events.iter().enumerate() {
            match event.kind {
                EventKind::Delivered => {
                    if let Some(emitted) = emitted.next_if(|emitted| emitted.event as usize == index) {
                        let flipped = batch.flips(emitted.flips).len();
                        self.emitted(event, emitted, batch.bytes(emitted.bytes), flipped, start_unix_ns);
                    }
                }
                EventKind::Duplicated => {
                    if let Some(packet) = self.in_flight.get_mut(event.pdu) {
                        packet.copies += 1;
                    }
                }
                EventKind::Marked => {
                    if let Some(packet) = self.in_flight.get_mut(event.pdu) {
                        packet.marked = true;
                    }
                }
                EventKind::Dropped if event.origin == Origin::User => self.dropped(event, start_unix_ns),
                _ => {}
            }
        }
    }

    fn emitted(&mut self, event: &Event, emitted: &Emitted, changed: &[u8], flipped: usize, start_unix_ns: u64) {
        let Some(packet) = self.in_flight.leave(event.pdu) else { return };
        let length = if emitted.changed { emitted.length } else { packet.length };
        let mut with_link = Vec::new();
        let bytes = if !emitted.changed {
            packet.bytes.as_slice()
        } else if packet.link_bytes == 0 {
            changed
        } else {
            // What a link changes lies behind the link header.
            with_link.extend_from_slice(packet.link_header());
            with_link.extend_from_slice(changed);
            &with_link[..with_link.len().min(self.snaplen)]
        };
        self.comment.clear();
        if flipped > 0 {
            let _ = write!(self.comment, "damaged: {flipped} bits flipped");
        }
        if packet.marked {
            let separator = if self.comment.is_empty() { "" } else { "; " };
            let _ = write!(self.comment, "{separator}marked: congestion experienced");
        }
        if length < packet.length {
            let separator = if self.comment.is_empty() { "" } else { "; " };
            let _ = write!(self.comment, "{separator}truncated: {length} of {} bytes left", packet.length);
        }
        if let Some(port) = self.ports.get_mut(usize::from(emitted.port)) {
            port.push(&PacketBlock {
                interface: Interface::Tx,
                unix_ns: start_unix_ns.saturating_add(emitted.at_ns),
                length: length + packet.link_bytes as u32,
                bytes,
                pdu: Some(event.pdu),
                comment: (!self.comment.is_empty()).then_some(self.comment.as_str()),
            });
        }
        self.in_flight.put_back(event.pdu, packet);
    }

    fn dropped(&mut self, event: &Event, start_unix_ns: u64) {
        let Some(packet) = self.in_flight.leave(event.pdu) else { return };
        let place = self.places.find(event.hop);
        let (hop, bearer) = place.map_or(("?", ""), |place| (place.hop.unwrap_or(WHOLE_PATH), place.bearer));
        let dot = if bearer.is_empty() { "" } else { "." };
        let after = event.at.nanos().saturating_sub(packet.at_ns);
        self.comment.clear();
        let _ = write!(
            self.comment,
            "dropped: {} at {hop}{dot}{bearer} after {}.{:09} s",
            cause_word(event.cause),
            after / 1_000_000_000,
            after % 1_000_000_000
        );
        let port = self.ports.get_mut(usize::from(packet.port));
        if let Some(port) = port.filter(|port| port.sink.failure().is_none()) {
            let entered_unix_ns = start_unix_ns.saturating_add(packet.at_ns);
            if self.holds && port.written_unix_ns.is_none_or(|written| written < entered_unix_ns) {
                port.fates.insert(event.pdu, self.comment.clone());
                return self.in_flight.put_back(event.pdu, packet);
            }
            port.push(&PacketBlock {
                interface: Interface::Drop,
                unix_ns: start_unix_ns.saturating_add(event.at.nanos()),
                length: packet.length + packet.link_bytes as u32,
                bytes: headers(&packet),
                pdu: Some(event.pdu),
                comment: Some(&self.comment),
            });
            port.marks += 1;
        }
        self.in_flight.put_back(event.pdu, packet);
    }

    /// Writes what is older than `now_ns` (time of the run) by the waiting time.
    pub fn write(&mut self, now_ns: u64, start_unix_ns: u64) {
        let until = start_unix_ns.saturating_add(now_ns.saturating_sub(WAIT_NS));
        let oldest = self.in_flight.oldest_ns().filter(|_| self.holds).map(|at_ns| start_unix_ns.saturating_add(at_ns));
        // What entered with the oldest packet, and in its instant, waits with it.
        let settled = oldest.map_or(until, |oldest| until.min(oldest.saturating_sub(1)));
        let until = if self.waiting_bytes() >= HELD_BYTES { until } else { settled };
        for port in &mut self.ports {
            port.sink.check();
            port.write(until);
        }
        // What waits for long must not be looked at again and again.
        self.worth_bytes = 2 * self.waiting_bytes();
    }

    fn waiting_bytes(&self) -> usize {
        self.ports.iter().map(|port| port.waiting.bytes.len()).sum()
    }

    /// True if enough waits to be written.
    pub fn is_worth_a_write(&self) -> bool {
        let least = self.worth_bytes.max(WORTH_BYTES).max(self.ports.len() * WORTH_BYTES_EACH);
        self.waiting_bytes() >= least.min(HELD_BYTES)
    }

    /// True if blocks wait for their turn.
    pub fn is_waiting(&self) -> bool {
        self.ports.iter().any(|port| !port.waiting.blocks.is_empty())
    }

    /// Writes the rest and turns the marks of drops into comments. Returns the number of packets,
    /// what kept the captures from being whole, and what else the user should know.
    pub fn finish(mut self) -> (u64, Vec<String>, Vec<String>) {
        let (mut failures, mut notes) = (Vec::new(), Vec::new());
        let mut packets = 0;
        for port in &mut self.ports {
            port.write(u64::MAX);
            port.sink.check();
            packets += port.packets;
            if let Some(failure) = port.sink.failure() {
                failures.push(failure.to_owned());
            } else if port.marks > 0
                && let Err(error) = annotate(port.sink.path())
            {
                notes.push(format!(
                    "{} keeps drops as separate packets without direction: {error}",
                    port.sink.path().display()
                ));
            }
        }
        (packets, failures, notes)
    }
}

fn cause_word(cause: Cause) -> &'static str {
    if cause == Cause::None { "unknown" } else { cause.name() }
}

/// The link header and the IP header of a packet, as far as they were kept.
fn headers(packet: &InFlight) -> &[u8] {
    let (bytes, link) = (&packet.bytes, packet.link_header().len());
    &bytes[..(link + ip_header_bytes(&bytes[link..])).min(bytes.len())]
}

impl PortCapture {
    fn push(&mut self, packet: &PacketBlock<'_>) {
        if self.sink.failure().is_some() {
            return;
        }
        let waiting = &mut self.waiting;
        let start = waiting.bytes.len();
        pcapng::write_packet(&mut waiting.bytes, packet);
        let leaves = packet.interface != Interface::Rx;
        let enters = packet.pdu.filter(|_| !leaves);
        waiting.blocks.push(Block { unix_ns: packet.unix_ns, leaves, enters, start, end: waiting.bytes.len() });
        self.packets += u64::from(packet.interface != Interface::Drop);
    }

    /// Writes the blocks stamped until `until`, in order; drops all of them if the file cannot be written.
    fn write(&mut self, until: u64) {
        let PortCapture { waiting, later, sink, fates, .. } = self;
        waiting.blocks.sort_by_key(|block| (block.unix_ns, block.leaves));
        let mut part = Vec::with_capacity(waiting.bytes.len().min(2 * PART_BYTES));
        for block in waiting.blocks.drain(..) {
            let bytes = &waiting.bytes[block.start..block.end];
            if block.unix_ns > until {
                let start = later.bytes.len();
                later.bytes.extend_from_slice(bytes);
                later.blocks.push(Block { start, end: start + bytes.len(), ..block });
                continue;
            }
            match block.enters.filter(|_| !fates.is_empty()).and_then(|pdu| fates.remove(&pdu)) {
                Some(fate) => packet_with_comment(&mut part, bytes, &fate),
                None => part.extend_from_slice(bytes),
            }
            if part.len() >= PART_BYTES {
                sink.append(&part);
                part.clear();
            }
        }
        sink.append(&part);
        waiting.bytes.clear();
        std::mem::swap(waiting, later);
        if sink.failure().is_some() {
            *waiting = Waiting::default();
            *later = Waiting::default();
            *fates = HashMap::new();
        }
        self.written_unix_ns = self.written_unix_ns.max(Some(until));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use airpath_core::{Direction, Pdu, Time};

    use super::*;
    use crate::writer::sink::tests::SmallDisk;

    /// Lets packet number `id` enter the link, which drops it or not at the end.
    fn enter(captures: &mut Captures, id: PduId) {
        let bytes = [id as u8; 64];
        let entering = Entering { port: 0, length: 64, link_bytes: 0, at_ns: id, bytes: &bytes };
        captures.in_flight.enter(id, entering);
        let block = PacketBlock {
            interface: Interface::Rx,
            unix_ns: id,
            length: 64,
            bytes: &bytes,
            pdu: Some(id),
            comment: None,
        };
        captures.ports[0].push(&block);
    }

    fn drop_it(captures: &mut Captures, id: PduId) {
        let pdu = Pdu { id, len: 64, ..Pdu::default() };
        let (at, kind) = (Time::from_nanos(id), EventKind::Dropped);
        captures.dropped(&Event::of_path(at, Direction::Uplink, kind, Cause::ChannelError, &pdu, 0), 0);
    }

    #[test]
    fn a_capture_that_cannot_be_written_holds_nothing_back() {
        let open = |path| Ok(Sink::over(path, Box::new(SmallDisk { room: 4_000, content: Arc::default() })));
        let places = Places::of_path(vec!["radio".into()], vec!["initial".into()]);
        let kept = Kept { snaplen: 128, link_headers: false };
        let mut captures = Captures::create(Path::new("run"), &places, kept, true, &open).unwrap();
        (1..=1_000).for_each(|id| enter(&mut captures, id));
        (1..=500).for_each(|id| drop_it(&mut captures, id));
        let port = &captures.ports[0];
        assert_eq!((port.waiting.blocks.len(), port.fates.len()), (1_000, 500));

        captures.write(u64::MAX / 2, 0);
        assert!(captures.has_failure());
        (1_001..=2_000).for_each(|id| enter(&mut captures, id));
        (501..=2_000).for_each(|id| drop_it(&mut captures, id));
        let port = &captures.ports[0];
        assert_eq!((port.waiting.bytes.capacity(), port.later.bytes.capacity()), (0, 0));
        assert_eq!((port.waiting.blocks.len(), port.fates.len(), port.marks), (0, 0, 0));
        assert_eq!(captures.in_flight.oldest_ns(), None);
    }
}
