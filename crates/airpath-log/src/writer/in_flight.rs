// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The bytes of packets that are inside the link, so that each is copied once, when it enters.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use airpath_core::PduId;

/// Bytes kept at most; a link that holds more forgets its oldest packets' bytes.
const LIMIT_BYTES: usize = 64 << 20;
/// Number of used buffers that are kept for later packets.
const SPARE: usize = 1_024;

/// A packet inside the link.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub port: u16,
    /// Its length when it was offered, without its link header.
    pub length: u32,
    /// Bytes of its link header, with which `bytes` begins.
    pub link_bytes: usize,
    /// Time of its offer.
    pub at_ns: u64,
    pub bytes: Vec<u8>,
    /// Number of its copies by the link that have yet to leave.
    pub copies: u64,
    /// True if queue management has marked it.
    pub marked: bool,
    serial: u64,
}

impl InFlight {
    /// Its link header, as far as it was kept.
    pub fn link_header(&self) -> &[u8] {
        &self.bytes[..self.link_bytes.min(self.bytes.len())]
    }
}

/// A packet that enters the link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entering<'a> {
    pub port: u16,
    /// Its length, without its link header.
    pub length: u32,
    /// Bytes of its link header, with which `bytes` begins.
    pub link_bytes: usize,
    /// Time of its offer.
    pub at_ns: u64,
    pub bytes: &'a [u8],
}

/// Hash of the numbers of packets, which follow one another and nobody chooses.
#[derive(Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio: neighbours come far apart in the upper bits, and stay different in the lower ones.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug, Default)]
pub(crate) struct InFlightStore {
    packets: HashMap<PduId, InFlight, BuildHasherDefault<NumberHasher>>,
    /// In order of entry; may name packets that have left.
    order: VecDeque<(u64, PduId)>,
    spare: Vec<Vec<u8>>,
    bytes: usize,
    serial: u64,
}

impl InFlightStore {
    pub fn enter(&mut self, pdu: PduId, entering: Entering<'_>) {
        let Entering { port, length, link_bytes, at_ns, bytes } = entering;
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.extend_from_slice(bytes);
        self.bytes += kept.len();
        self.serial += 1;
        let packet =
            InFlight { port, length, link_bytes, at_ns, bytes: kept, copies: 0, marked: false, serial: self.serial };
        self.order.push_back((self.serial, pdu));
        if let Some(old) = self.packets.insert(pdu, packet) {
            self.recycle(old);
        }
        while self.bytes > LIMIT_BYTES {
            let Some((serial, oldest)) = self.order.pop_front() else { break };
            if self.packets.get(&oldest).is_some_and(|packet| packet.serial == serial)
                && let Some(packet) = self.packets.remove(&oldest)
            {
                self.recycle(packet);
            }
        }
        self.forget_order();
    }

    /// Time of entry of the packet that has been here longest.
    pub fn oldest_ns(&mut self) -> Option<u64> {
        self.forget_order();
        self.order.front().and_then(|(_, pdu)| self.packets.get(pdu)).map(|packet| packet.at_ns)
    }

    /// Forgets the place in the order of the first packets that have left. Packets leave nearly in order, so the
    /// front is nearly always one of them.
    fn forget_order(&mut self) {
        while let Some((serial, pdu)) = self.order.front() {
            if self.packets.get(pdu).is_some_and(|packet| packet.serial == *serial) {
                break;
            }
            self.order.pop_front();
        }
    }

    pub fn get_mut(&mut self, pdu: PduId) -> Option<&mut InFlight> {
        self.packets.get_mut(&pdu)
    }

    pub fn leave(&mut self, pdu: PduId) -> Option<InFlight> {
        self.packets.remove(&pdu)
    }

    /// Takes back a packet of which one has left: there may be copies of it in the link.
    pub fn put_back(&mut self, pdu: PduId, mut packet: InFlight) {
        if packet.copies > 0 {
            packet.copies -= 1;
            self.packets.insert(pdu, packet);
        } else {
            self.recycle(packet);
        }
    }

    /// Takes back the buffer of a packet that has left.
    fn recycle(&mut self, packet: InFlight) {
        self.bytes -= packet.bytes.len();
        if self.spare.len() < SPARE {
            let mut bytes = packet.bytes;
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_order_is_forgotten_with_the_packets() {
        let mut store = InFlightStore::default();
        let bytes = vec![1; 64 << 10];
        let entering = |at_ns, bytes| Entering { port: 0, length: 1, link_bytes: 0, at_ns, bytes };
        for pdu in 0..2_000 {
            store.enter(pdu, entering(pdu, &bytes));
        }
        assert!(store.bytes <= LIMIT_BYTES && store.packets.len() == 1_024, "{}", store.packets.len());
        assert!(store.leave(0).is_none() && store.order.len() == store.packets.len());
        assert_eq!(store.oldest_ns(), Some(2_000 - 1_024));
        for pdu in 2_000..3_000 {
            store.enter(pdu, entering(pdu, &[]));
        }
        for pdu in 0..3_000 {
            if let Some(packet) = store.leave(pdu) {
                assert_eq!(packet.at_ns, pdu);
                store.put_back(pdu, packet);
            }
        }
        assert_eq!(store.oldest_ns(), None);
        store.enter(9_999, entering(1, &[]));
        assert_eq!((store.bytes, store.order.len()), (0, 1));
    }
}
