// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! One limit for the packets of all users that wait for a shared medium.

use airpath_core::{Cause, QueueLimit};

use crate::stage::QueueLength;

/// The limit of a shared medium in one direction, as one hop on it sees it.
#[derive(Clone, Copy, Debug)]
pub struct CommonQueue {
    /// The limit.
    pub limit: QueueLimit,
    /// Packets of the other hops on the medium that wait.
    pub others: QueueLength,
}

impl CommonQueue {
    /// The limit that a packet of `len` bytes would break where `own` packets of the hop wait.
    pub fn overflow(&self, own: QueueLength, len: u32) -> Option<Cause> {
        let waiting = own + self.others;
        if self.limit.packets.is_some_and(|limit| waiting.packets >= limit) {
            Some(Cause::QueuePackets)
        } else if self.limit.bytes.is_some_and(|limit| waiting.bytes + u64::from(len) > limit) {
            Some(Cause::QueueBytes)
        } else {
            None
        }
    }
}
