// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The machine of a link, driven along with the clock: what was read goes in at its time.

use std::io;

use airpath_core::{Cx, HeaderBytes, Item, LogLevel, Pdu, PortId, Signal, Span, Time};
use airpath_log::{Offered, Packet, Recorder};

use super::super::egress;
use super::super::held_back::Held;
use super::super::ingress::Arrival;
use super::{EVENTS_A_TURN, LiveLink, Unfinished};

/// A machine that is so far behind its clock may have more to do between two packets than one turn takes.
const FAR_BEHIND: Span = Span::from_millis(2);
/// Time until a credit, or frames, that found no room are tried again: a thread or a device makes room, packet by
/// packet.
const TRY_AGAIN: Span = Span::from_micros(200);

impl LiveLink {
    /// Offers what was read, runs the machine to `now`, and writes what left it; as much of that as fits into
    /// one turn. `clock` reads the time of the run.
    ///
    /// # Errors
    /// A port that is gone.
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
        if self.has_waiting {
            self.has_waiting = false;
            for port in &mut self.ports {
                self.has_waiting |= port.try_again()?;
            }
            if self.has_waiting {
                self.next_work = self.next_work.min(now + TRY_AGAIN);
            }
        }
        Ok(())
    }

    /// One turn's work towards `to`: offers what came by then and runs the machine, in pieces if it is
    /// `known_to_be_busy`. Whether everything is done.
    pub(super) fn work(&mut self, to: Time, now: Time, known_to_be_busy: bool) -> bool {
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
    pub(super) fn take_credits(&mut self, to: Time, events: &mut u32) -> bool {
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
    pub(super) fn advance(&mut self, to: Time, events: &mut u32) -> bool {
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
    pub(super) fn heed_pauses(&mut self) {
        if !self.outputs.flow_control.is_empty() {
            self.outputs.flow_control.drain(..).for_each(|(port, paused)| self.held_back.note(port, paused));
        }
    }

    /// True if the machine takes nothing through `port` at `at`, once everything due by then has been run.
    pub(super) fn is_paused(&mut self, port: PortId, at: Time) -> bool {
        if self.machine.controls_flow(port) {
            self.machine.advance(at, &mut Cx::new(&mut self.outputs));
        }
        self.heed_pauses();
        self.held_back.is_paused(port)
    }

    /// Offers at `at` what has waited for ports that are paused no more.
    pub(super) fn release(&mut self, at: Time) {
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

    /// Offers the packets of `arrival`, which was read at `read_at`, from number `first` on at `at`; until its port is
    /// paused. The number of the first one that is left.
    pub(super) fn offer(&mut self, arrival: &Arrival, first: u16, at: Time, read_at: Time) -> u16 {
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
}
