// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Packets that are handed to the kernel before they are due, where a call that waits sends each at its time. The
//! machine emits them later, when the loop drives it there: then they are recorded and not written again.

use std::collections::VecDeque;
use std::io;

use airpath_core::{Emission, Item, Pdu, PduId, PortId, Time};

/// Maximum number of bytes of packets that are handed over at once.
const MOST_BYTES: u64 = 256 << 10;

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

    /// Keeps the packets that are due before `until`, in the order of their times: no more than `most_times` times and
    /// as many bytes as may be handed over. The instant before which all packets are kept.
    pub fn keep_before(&mut self, until: Time, most_times: usize) -> Time {
        self.packets.sort_by_key(|packet| packet.at);
        let (mut last, mut times, mut bytes) = (None, 0, 0);
        let is_kept = |packet: &&ForetoldPacket| {
            times += usize::from(last != Some(packet.at));
            last = Some(packet.at);
            bytes += u64::from(packet.pdu.len);
            packet.at < until && times <= most_times && bytes <= MOST_BYTES
        };
        let kept = self.packets.iter().take_while(is_kept).count();
        let limit = self.packets.get(kept).map_or(until, |packet| packet.at.min(until));
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
    use airpath_core::Span;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    fn packet(micros: u64, link: usize, id: PduId) -> ForetoldPacket {
        ForetoldPacket { at: at(micros), link, port: PortId::SERVER, pdu: Pdu { id, len: 1500, ..Pdu::default() } }
    }

    fn kept(packets: &[(u64, usize, PduId)], until: u64, most_times: usize) -> (Vec<Vec<PduId>>, Time) {
        let mut foretold = Foretold::default();
        packets.iter().for_each(|(micros, link, id)| foretold.push(packet(*micros, *link, *id)));
        let limit = foretold.keep_before(at(until), most_times);
        let ids = |group: &[ForetoldPacket]| group.iter().map(|packet| packet.pdu.id).collect();
        (foretold.departures().map(ids).collect(), limit)
    }

    #[test]
    fn what_is_foretold_is_kept_in_order_and_by_instants() {
        let packets = [(10, 0, 1), (10, 0, 2), (40, 0, 3), (10, 1, 4), (20, 1, 5)];
        assert_eq!(kept(&packets, 40, 9), (vec![vec![1, 2], vec![4], vec![5]], at(40)));
        assert_eq!(kept(&packets, 50, 9).1, at(50));
        // No instant is cut in two.
        assert_eq!(kept(&packets, 50, 1), (vec![vec![1, 2], vec![4]], at(20)));
        assert_eq!(kept(&[], 50, 9), (vec![], at(50)));
        let many: Vec<_> = (0..1000).map(|number| (number, 0, number)).collect();
        assert_eq!(kept(&many, 5000, 5000).1, at(174), "174 packets of 1500 bytes are 261,000 bytes");
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
