//! Memory that packets are read into, used again when they are gone.

use bytes::BytesMut;

use super::LONGEST_PACKET_BYTES;

/// A rotation of slabs: when the current one is full, the oldest one whose
/// packets are all gone is used again, and only otherwise a new one is made.
#[derive(Debug)]
pub struct SlabPool {
    slabs: Vec<BytesMut>,
    current: usize,
    slab_bytes: usize,
    limit: usize,
}

impl SlabPool {
    /// A pool of slabs of `slab_bytes` (at least four longest packets), of
    /// which at most `limit` are kept for use again.
    pub fn new(slab_bytes: usize, limit: usize) -> Self {
        let slab_bytes = slab_bytes.max(4 * LONGEST_PACKET_BYTES);
        Self { slabs: vec![BytesMut::with_capacity(slab_bytes)], current: 0, slab_bytes, limit: limit.max(1) }
    }

    /// A slab with room for at least one longest packet behind its end.
    pub fn slab(&mut self) -> &mut BytesMut {
        if !has_room(&self.slabs[self.current], LONGEST_PACKET_BYTES) {
            self.rotate();
        }
        &mut self.slabs[self.current]
    }

    fn rotate(&mut self) {
        let count = self.slabs.len();
        // The slab after the current one has rested longest.
        for step in 1..=count {
            let candidate = (self.current + step) % count;
            if self.slabs[candidate].try_reclaim(self.slab_bytes) {
                self.current = candidate;
                return;
            }
        }
        let fresh = BytesMut::with_capacity(self.slab_bytes);
        if count < self.limit {
            self.slabs.insert(self.current + 1, fresh);
            self.current += 1;
        } else {
            // Its packets keep their memory; only the reuse is given up.
            self.current = (self.current + 1) % count;
            self.slabs[self.current] = fresh;
        }
    }
}

/// Whether the (empty) `slab` can take `bytes` without moving.
pub(super) fn has_room(slab: &BytesMut, bytes: usize) -> bool {
    slab.capacity() >= bytes
}

/// Empties `slab` and gives it room for `bytes`, reusing its memory when all
/// packets read into it are gone.
pub(super) fn make_room(slab: &mut BytesMut, bytes: usize) {
    slab.clear();
    if has_room(slab, bytes) || slab.try_reclaim(bytes) {
        return;
    }
    *slab = BytesMut::with_capacity(bytes.max(1 << 20));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_used_again_when_their_packets_are_gone() {
        let mut pool = SlabPool::new(0, 3);
        let mut addresses = std::collections::HashSet::new();
        for _ in 0..100 {
            let slab = pool.slab();
            slab.resize(60_000, 1);
            let packet = slab.split_to(60_000);
            addresses.insert(packet.as_ptr() as usize);
        }
        // Four packets fit a slab; it is rewound as soon as it is free.
        assert!(addresses.len() <= 12, "{} addresses", addresses.len());
    }

    #[test]
    fn packets_still_held_are_never_overwritten() {
        let mut pool = SlabPool::new(0, 2);
        let mut held = Vec::new();
        for number in 0..50_u8 {
            let slab = pool.slab();
            slab.resize(60_000, number);
            held.push(slab.split_to(60_000));
        }
        for (number, packet) in held.iter().enumerate() {
            assert!(packet.iter().all(|byte| usize::from(*byte) == number));
        }
    }
}
