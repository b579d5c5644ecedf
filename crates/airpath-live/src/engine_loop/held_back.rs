// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that were read and wait for the end of their port's pause.
//!
//! A machine with flow control pauses a port and releases it at an instant of its own time, mostly between two turns
//! of the loop. So that the next packets go in at that very instant, however late the loop is, a few of them are read
//! ahead and kept here. What is beyond stays in the kernel's queue: the loop leaves the port alone until there is room.

use std::collections::VecDeque;

use airpath_core::{PortId, Time};

use super::ingress::Arrival;

/// Number of packets of a port from which on it is left alone.
const READ_AHEAD: usize = 64;
/// Number of packets down to which it is left alone.
const READ_AGAIN: usize = READ_AHEAD / 2;

/// A packet that waits, or a super-packet of which some segments have gone in.
#[derive(Debug)]
pub struct Held {
    /// The packet.
    pub arrival: Arrival,
    /// Number of its next segment.
    pub next: u16,
    /// Time at which it was read.
    pub read_at: Time,
}

/// State of a port.
#[derive(Debug, Default)]
struct OfPort {
    paused: bool,
    packets: VecDeque<Held>,
    unread: bool,
    /// Time at which the loop began to read it again.
    readable_since: Time,
}

/// The ports of a link, and what waits at each of them.
#[derive(Debug, Default)]
pub struct HeldBack {
    ports: Vec<OfPort>,
    /// Number of packets that wait.
    count: usize,
    /// Ports that the loop has to leave alone (true), or to read again, and has not been told of.
    changes: Vec<(PortId, bool)>,
}

impl HeldBack {
    /// Nothing, at so many ports.
    pub fn new(ports: usize) -> HeldBack {
        HeldBack { ports: (0..ports).map(|_| OfPort::default()).collect(), ..HeldBack::default() }
    }

    /// Notes that the machine has paused `port`, or released it.
    pub fn note(&mut self, port: PortId, paused: bool) {
        self.ports[usize::from(port.0)].paused = paused;
    }

    /// True if the machine has paused `port`.
    pub fn is_paused(&self, port: PortId) -> bool {
        self.ports[usize::from(port.0)].paused
    }

    /// True if packets of `port` wait, behind which any other has to wait.
    pub fn has_some(&self, port: PortId) -> bool {
        !self.ports[usize::from(port.0)].packets.is_empty()
    }

    /// True if packets of any port wait.
    pub fn has_any(&self) -> bool {
        self.count > 0
    }

    /// Keeps a packet that was read at `read_at`, from its segment number `next` on.
    pub fn push(&mut self, arrival: Arrival, next: u16, read_at: Time) {
        self.count += 1;
        self.ports[usize::from(arrival.side)].packets.push_back(Held { arrival, next, read_at });
    }

    /// The first packet of `port`, if that is not paused.
    pub fn pop(&mut self, port: PortId) -> Option<Held> {
        let port = &mut self.ports[usize::from(port.0)];
        let held = if port.paused { None } else { port.packets.pop_front() }?;
        self.count -= 1;
        Some(held)
    }

    /// Puts a packet back to its place, of which segments have gone in.
    pub fn put_back(&mut self, held: Held) {
        self.count += 1;
        self.ports[usize::from(held.arrival.side)].packets.push_front(held);
    }

    /// True if what comes to the port of number `side` stays in the kernel's queue.
    pub fn leaves_unread(&self, side: usize) -> bool {
        self.ports[side].unread
    }

    /// Time before which nothing could be read from the port of number `side` that had to stay in the kernel's queue.
    pub fn readable_since(&self, side: u16) -> Time {
        self.ports[usize::from(side)].readable_since
    }

    /// Decides at `now` which ports are read.
    pub fn note_reading(&mut self, now: Time) {
        for (number, port) in self.ports.iter_mut().enumerate() {
            let limit = if port.unread { READ_AGAIN } else { READ_AHEAD };
            let unread = port.packets.len() >= limit;
            if unread != port.unread {
                port.unread = unread;
                if !unread {
                    port.readable_since = now;
                }
                self.changes.push((PortId(number as u16), unread));
            }
        }
    }

    /// Ports that are to be left alone from now on (true), or read again.
    pub fn take_changes(&mut self) -> std::vec::Drain<'_, (PortId, bool)> {
        self.changes.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::packet_bytes::tcp_packet;
    use crate::ports::{OffloadHeader, Received};

    const PORT: PortId = PortId(1);

    fn arrival() -> Arrival {
        let bytes = BytesMut::from(&tcp_packet(6, 0, 100)[..]);
        let received = Received {
            bytes,
            link_bytes: 0,
            stamp_realtime_ns: None,
            offload: OffloadHeader::default(),
            journey: None,
        };
        Arrival::read(received, PORT.0, Time::ZERO, None).unwrap()
    }

    #[test]
    fn packets_wait_for_the_end_of_a_pause_in_order() {
        let mut held_back = HeldBack::new(2);
        held_back.note(PORT, true);
        for next in [2, 0, 1] {
            held_back.push(arrival(), next, Time::ZERO);
        }
        assert!(held_back.has_any() && held_back.has_some(PORT) && !held_back.has_some(PortId::CLIENT));
        assert!(held_back.pop(PORT).is_none() && held_back.is_paused(PORT));
        held_back.note(PORT, false);
        let first = held_back.pop(PORT).unwrap();
        assert_eq!(first.next, 2);
        held_back.put_back(Held { next: 3, ..first });
        let order: Vec<u16> = std::iter::from_fn(|| held_back.pop(PORT)).map(|held| held.next).collect();
        assert_eq!((order, held_back.has_any()), (vec![3, 0, 1], false));
    }

    #[test]
    fn a_port_is_left_alone_while_much_waits_and_read_again_at_half_of_it() {
        let mut held_back = HeldBack::new(2);
        let changes = |held_back: &mut HeldBack, at| {
            held_back.note_reading(Time::from_nanos(at));
            held_back.take_changes().collect::<Vec<_>>()
        };
        (1..READ_AHEAD).for_each(|_| held_back.push(arrival(), 0, Time::ZERO));
        assert_eq!(changes(&mut held_back, 1), []);
        held_back.push(arrival(), 0, Time::ZERO);
        assert_eq!(changes(&mut held_back, 2), [(PORT, true)]);
        assert!(held_back.leaves_unread(1) && !held_back.leaves_unread(0));
        for _ in READ_AGAIN..READ_AHEAD {
            held_back.pop(PORT);
        }
        assert_eq!(changes(&mut held_back, 3), []);
        held_back.pop(PORT);
        assert_eq!(changes(&mut held_back, 4), [(PORT, false)]);
        assert_eq!((held_back.leaves_unread(1), held_back.readable_since(1)), (false, Time::from_nanos(4)));
    }
}
