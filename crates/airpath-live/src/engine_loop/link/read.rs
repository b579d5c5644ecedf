// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Reading of packets from the ports of a link.

use std::io;

use airpath_core::{Cause, Event, EventKind, Pdu, PortId, Time};
use airpath_log::Packet;

use super::super::ingress::Arrival;
use super::{LiveLink, READ_LIMIT, Reading};
use crate::packet_bytes::noise;
use crate::ports::LONGEST_PACKET_BYTES;

/// Number of bytes of a discarded packet in the input log.
const DISCARDED_HEADER_BYTES: usize = 64;

impl LiveLink {
    /// Reads what waits at the port of number `side`; nothing while the last turn's work is not done.
    ///
    /// # Errors
    /// A port that is gone, and [`Circling`](super::Circling) when frames circle.
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
}
