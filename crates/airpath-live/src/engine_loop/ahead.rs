// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that are handed to the kernel before they are due, where a call that waits sends each at its time. The
//! machine emits them later, when the loop drives it there: then they are recorded and not written again.

use std::collections::VecDeque;
use std::io;

use airpath_core::{Emission, Item, Pdu, PduId, PortId, Span, Time};

use crate::series;

/// Maximum number of bytes of packets that are handed over at once.
const MOST_BYTES: u64 = 256 << 10;
/// Number of instants that are close if all of them lie within [`CLOSE`]. A wait takes some microseconds of virtual
/// time, as the kernel reads its clock: it would be late for each of them, where the loop sends what is due together.
const CLOSE_INSTANTS: usize = 3;
const CLOSE: Span = Span::from_micros(20);

/// Packets that machines have foretold, of all links of a loop.
#[derive(Debug, Default)]
pub struct Foretold {
    packets: Vec<ForetoldPacket>,
}

/// A packet that is certain to leave.
#[derive(Debug)]
pub struct ForetoldPacket {
    /// Due time.
    pub at: Time,
    /// Index of its link.
    pub link: usize,
    /// Port through which it leaves.
    pub port: PortId,
    /// The packet.
    pub pdu: Pdu,
}

impl Foretold {
    /// Forgets all packets.
    pub fn clear(&mut self) {
        self.packets.clear();
    }

    /// Notes a packet.
    pub fn push(&mut self, packet: ForetoldPacket) {
        self.packets.push(packet);
    }

    /// Keeps the packets that are due before `until`, in the order of their times: as many as one call of the kernel may
    /// send, and none from where many follow one another closely. The instant before which all packets are kept.
    pub fn keep_before(&mut self, until: Time) -> Time {
        self.packets.sort_by_key(|packet| packet.at);
        let (mut calls, mut bytes) = (0, 0);
        let mut last: Option<&ForetoldPacket> = None;
        // The last instants, the latest first.
        let mut instants = [None; CLOSE_INSTANTS];
        let mut limit = until;
        for packet in &self.packets {
            if packet.at >= limit {
                break;
            }
            if last.is_none_or(|last| last.at != packet.at) {
                instants.rotate_right(1);
                instants[0] = Some(packet.at);
                if let Some(Some(first)) = instants.last()
                    && packet.at.since(*first) < CLOSE
                {
                    limit = *first;
                    break;
                }
                calls += series::CALLS_OF_A_WAIT;
            }
            let follows =
                |last: &ForetoldPacket| (last.at, last.link, last.port) == (packet.at, packet.link, packet.port);
            calls += usize::from(!last.is_some_and(follows));
            bytes += u64::from(packet.pdu.len);
            if calls > series::MOST_CALLS_AHEAD || bytes > MOST_BYTES {
                limit = packet.at;
                break;
            }
            last = Some(packet);
        }
        // All packets of an instant leave together.
        self.packets.truncate(self.packets.partition_point(|packet| packet.at < limit));
        limit
    }

    /// The packets of each instant and link, in order.
    pub fn departures(&self) -> impl Iterator<Item = &[ForetoldPacket]> {
        self.packets.chunk_by(|one, next| (one.at, one.link) == (next.at, next.link))
    }
}

/// Packets of one link that were handed over and have not been emitted yet.
#[derive(Debug, Default)]
pub struct Ahead {
    packets: VecDeque<AheadPacket>,
}

/// A packet that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AheadPacket {
    at: Time,
    port: PortId,
    id: PduId,
    /// Time at which the kernel sent it.
    sent: Time,
}

impl Ahead {
    /// Notes a packet that is handed over.
    pub fn push(&mut self, packet: &ForetoldPacket) {
        let ForetoldPacket { at, port, ref pdu, .. } = *packet;
        self.packets.push_back(AheadPacket { at, port, id: pdu.id, sent: at });
    }

    /// Notes that the packets due at `at` were sent at `sent`.
    pub fn sent(&mut self, at: Time, sent: Time) {
        self.packets.iter_mut().filter(|packet| packet.at == at).for_each(|packet| packet.sent = sent);
    }

    /// True if no packet is waited for.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Due time of the last packet that is waited for.
    pub fn until(&self) -> Option<Time> {
        self.packets.back().map(|packet| packet.at)
    }

    /// The times at which the first of `emissions` were sent already. These are no longer waited for.
    ///
    /// # Errors
    /// When something else has left than was foretold: a fault of the model.
    pub fn emitted(&mut self, emissions: &[Emission]) -> io::Result<Vec<Time>> {
        let mut sent = Vec::new();
        for emission in emissions {
            let Some(foretold) = self.packets.front() else { break };
            // A machine that speaks with others foretells nothing.
            let Item::Pdu(pdu) = &emission.item else { break };
            if (foretold.at, foretold.port, foretold.id) != (emission.at, emission.port, pdu.id) {
                let message = format!("packet {} left the model, and packet {} was foretold", pdu.id, foretold.id);
                return Err(io::Error::other(message));
            }
            sent.push(foretold.sent);
            self.packets.pop_front();
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    fn packet(micros: u64, link: usize, id: PduId) -> ForetoldPacket {
        ForetoldPacket { at: at(micros), link, port: PortId::SERVER, pdu: Pdu { id, len: 1500, ..Pdu::default() } }
    }

    fn kept(packets: &[(u64, usize, PduId)], until: u64) -> (Vec<Vec<PduId>>, Time) {
        let mut foretold = Foretold::default();
        packets.iter().for_each(|(micros, link, id)| foretold.push(packet(*micros, *link, *id)));
        let limit = foretold.keep_before(at(until));
        let ids = |group: &[ForetoldPacket]| group.iter().map(|packet| packet.pdu.id).collect();
        (foretold.departures().map(ids).collect(), limit)
    }

    #[test]
    fn what_is_foretold_is_kept_in_order_and_by_instants() {
        let packets = [(10, 0, 1), (10, 0, 2), (80, 0, 3), (10, 1, 4), (40, 1, 5)];
        assert_eq!(kept(&packets, 80), (vec![vec![1, 2], vec![4], vec![5]], at(80)));
        assert_eq!(kept(&packets, 90).1, at(90));
        assert_eq!(kept(&[], 50), (vec![], at(50)));
        // 65 instants of three calls are more than 192.
        let many: Vec<_> = (0..100).map(|number| (50 * number, 0, number)).collect();
        assert_eq!(kept(&many, 9000), (many[..64].iter().map(|(.., id)| vec![*id]).collect(), at(3200)));
        // With two links at each instant it is 48, and no instant is cut in two.
        let links: Vec<_> = (0..200).map(|number| (50 * (number / 2), (number % 2) as usize, number)).collect();
        let (departures, limit) = kept(&links, 9000);
        assert_eq!((departures.len(), limit), (96, at(48 * 50)));
        let long: Vec<_> = (0..400).map(|number| (50 * (number / 50), 0, number)).collect();
        assert_eq!(kept(&long, 9000).1, at(150), "175 packets of 1500 bytes are more than 256 KiB");
    }

    #[test]
    fn packets_that_follow_one_another_closely_are_left_to_the_loop() {
        assert_eq!(kept(&[(10, 0, 1), (60, 0, 2), (66, 0, 3), (79, 0, 4)], 900), (vec![vec![1]], at(60)));
        assert_eq!(kept(&[(60, 0, 2), (66, 0, 3), (79, 0, 4)], 900), (vec![], at(60)));
        // Two may be close, as those of both directions are now and then.
        assert_eq!(kept(&[(60, 0, 2), (61, 0, 3), (80, 0, 4)], 900).1, at(900));
    }

    #[test]
    fn what_was_sent_ahead_is_emitted_once() {
        let mut ahead = Ahead::default();
        [(10, 1), (10, 2), (20, 3)].iter().for_each(|(micros, id)| ahead.push(&packet(*micros, 0, *id)));
        ahead.sent(at(10), at(11));
        ahead.sent(at(20), at(20));
        assert_eq!(ahead.until(), Some(at(20)));
        let emission = |micros, id| {
            let ForetoldPacket { at, port, pdu, .. } = packet(micros, 0, id);
            Emission { at, port, item: Item::Pdu(pdu) }
        };
        assert_eq!(ahead.emitted(&[emission(10, 1)]).unwrap(), [at(11)]);
        let rest = [emission(10, 2), emission(20, 3), emission(30, 4)];
        assert_eq!(ahead.emitted(&rest).unwrap(), [at(11), at(20)]);
        assert!(ahead.is_empty() && ahead.emitted(&rest).unwrap().is_empty());
        ahead.push(&packet(40, 0, 5));
        let error = ahead.emitted(&[emission(40, 6)]).unwrap_err();
        assert_eq!(error.to_string(), "packet 6 left the model, and packet 5 was foretold");
    }
}
