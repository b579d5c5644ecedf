// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Pooled buffers: packets are slices of slabs, and a slab is used again once its last slice is gone.

use std::collections::VecDeque;

use bytes::BytesMut;

/// Hands out slabs to read packets into. A reader fills the front of [`BufferPool::slab`] and splits
/// the packets off it as [`bytes::Bytes`]; no packet is copied and nothing is zeroed.
#[derive(Debug)]
pub struct BufferPool {
    current: BytesMut,
    retired: VecDeque<BytesMut>,
    slab_bytes: usize,
}

/// Number of retired slabs checked for reuse, oldest first, before a new one is allocated. Packets leave a link
/// nearly in order, so the oldest slab is nearly always the one that has become free.
const LOOK_AT: usize = 4;

impl BufferPool {
    /// A pool of slabs of `slab_bytes` each; allocates nothing yet.
    pub fn new(slab_bytes: usize) -> BufferPool {
        BufferPool { current: BytesMut::new(), retired: VecDeque::new(), slab_bytes }
    }

    /// Makes `slabs` slabs beforehand, as new memory costs a real-time reader more than it can spare.
    pub fn prepare(&mut self, slabs: usize) {
        while self.retired.len() < slabs {
            let mut slab = BytesMut::zeroed(self.slab_bytes);
            // Zeroed memory may come without pages behind it; only writing brings them in.
            std::hint::black_box(&mut slab).fill(1);
            slab.clear();
            self.retired.push_back(slab);
        }
    }

    /// The slab to read into; at least `room` bytes are free behind its (zero) length.
    pub fn slab(&mut self, room: usize) -> &mut BytesMut {
        if self.current.capacity() - self.current.len() < room {
            self.next_slab(room);
        }
        &mut self.current
    }

    fn next_slab(&mut self, room: usize) {
        let size = self.slab_bytes.max(room);
        let old = std::mem::take(&mut self.current);
        // A handle of an exhausted slab keeps its memory alive, so that it can be reclaimed.
        if old.capacity() > 0 || !old.is_empty() {
            self.retired.push_back(old);
        }
        for _ in 0..LOOK_AT.min(self.retired.len()) {
            let mut slab = self.retired.pop_front().expect("the loop runs at most len times");
            if slab.try_reclaim(size) {
                self.current = slab;
                return;
            }
            self.retired.push_back(slab);
        }
        self.current = BytesMut::with_capacity(size);
    }

    /// Number of slabs held, the current one included.
    pub fn slabs(&self) -> usize {
        self.retired.len() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_used_again_once_their_packets_are_gone() {
        let mut pool = BufferPool::new(4096);
        for round in 0..1_000u32 {
            let slab = pool.slab(1500);
            slab.extend_from_slice(&[round as u8; 1500]);
            let packet = slab.split().freeze();
            assert_eq!(packet[1499], round as u8);
        }
        assert!(pool.slabs() <= 3, "{} slabs for packets that never overlap", pool.slabs());
    }

    #[test]
    fn a_packet_in_flight_keeps_its_bytes() {
        let mut pool = BufferPool::new(4096);
        let mut held = Vec::new();
        for round in 0..64u32 {
            let slab = pool.slab(1500);
            slab.extend_from_slice(&[round as u8; 1500]);
            held.push(slab.split().freeze());
        }
        for (round, packet) in held.iter().enumerate() {
            assert!(packet.iter().all(|byte| *byte == round as u8));
        }
    }
}
