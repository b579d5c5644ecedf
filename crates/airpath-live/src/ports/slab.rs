// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Room to read packets into.

use bytes::BytesMut;

/// True if the (empty) `slab` can take `bytes` without moving.
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
    fn room_is_reused_when_its_packets_are_gone_and_new_while_they_are_not() {
        let mut slab = BytesMut::new();
        make_room(&mut slab, 100);
        slab.resize(60, 1);
        let (address, packet) = (slab.as_ptr(), slab.split_to(60));
        make_room(&mut slab, 1 << 20);
        slab.resize(60, 2);
        assert_ne!(slab.as_ptr(), address);
        assert!(packet.iter().all(|byte| *byte == 1));
        let address = slab.as_ptr();
        drop(slab.split_to(60));
        make_room(&mut slab, 1 << 20);
        assert_eq!(slab.as_ptr(), address);
    }
}
