// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! First in, first out, with the limits that every simple queue shares.

use std::collections::VecDeque;

use airpath_core::{Cause, EventKind, Pdu, QueueLimit, Time};

use super::{exceeded, management};
use crate::stage::{QueueLength, StageCx};

/// Packets in order of arrival, and what they may amount to.
#[derive(Clone, Debug)]
pub(super) struct Fifo {
    packets: VecDeque<(Time, Pdu)>,
    bytes: u64,
    limit: QueueLimit,
    /// Start of the limit: no packet is too old before that.
    limited_since: Time,
}

impl Fifo {
    pub(super) fn new(limit: QueueLimit) -> Fifo {
        Fifo { packets: VecDeque::new(), bytes: 0, limit, limited_since: Time::ZERO }
    }

    pub(super) fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// Puts `limit` in force at `at`.
    pub(super) fn set_limit(&mut self, limit: QueueLimit, at: Time) {
        self.limit = limit;
        self.limited_since = at;
    }

    /// All packets, the oldest first, each with the time at which it came.
    pub(super) fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
        self.bytes = 0;
        std::mem::take(&mut self.packets)
    }

    /// Puts packets of another queue, which are as old as they were, into this empty one at `at`.
    pub(super) fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
        self.bytes = packets.iter().map(|(_, pdu)| u64::from(pdu.len)).sum();
        self.packets = packets;
        self.limited_since = at;
    }

    /// The limit that a packet of `len` bytes would break.
    pub(super) fn overflow(&self, len: u32) -> Option<Cause> {
        exceeded(&self.limit, self.packets.len() as u32, self.bytes, len)
    }

    /// True if a packet of `len` bytes fits into the empty queue.
    pub(super) fn could_ever_hold(&self, len: u32) -> bool {
        self.limit.packets != Some(0) && self.limit.bytes.is_none_or(|limit| u64::from(len) <= limit)
    }

    pub(super) fn push(&mut self, pdu: Pdu, stage: &mut StageCx<'_, '_>) {
        self.bytes += u64::from(pdu.len);
        let queue = QueueLength { packets: self.packets.len() as u32 + 1, bytes: self.bytes };
        stage.record(EventKind::Enqueued, Cause::None, &pdu, pdu.bits().get(), queue);
        self.packets.push_back((stage.at, pdu));
    }

    pub(super) fn drop_head(&mut self, cause: Cause, stage: &mut StageCx<'_, '_>) {
        if let Some((_, pdu)) = self.packets.pop_front() {
            self.bytes -= u64::from(pdu.len);
            stage.dropped(cause, &pdu, self.length());
        }
    }

    /// Drops the packet at `index`, counted from the oldest.
    pub(super) fn drop_at(&mut self, index: usize, cause: Cause, stage: &mut StageCx<'_, '_>) {
        if let Some((_, pdu)) = self.packets.remove(index) {
            self.bytes -= u64::from(pdu.len);
            stage.dropped(cause, &pdu, self.length());
        }
    }

    /// Marks the oldest packet, if it is ECN-capable.
    pub(super) fn mark_head(&mut self, stage: &mut StageCx<'_, '_>) {
        let length = self.length();
        if let Some((_, pdu)) = self.packets.front_mut() {
            management::mark(pdu, length, stage);
        }
    }

    pub(super) fn pop(&mut self, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        let (_, pdu) = self.packets.pop_front()?;
        self.bytes -= u64::from(pdu.len);
        stage.record(EventKind::Dequeued, Cause::None, &pdu, pdu.bits().get(), self.length());
        Some(pdu)
    }

    /// The oldest packet, if `fits` takes it; it leaves the queue.
    pub(super) fn pop_if(&mut self, mut fits: impl FnMut(&Pdu) -> bool, stage: &mut StageCx<'_, '_>) -> Option<Pdu> {
        if self.packets.front().is_some_and(|(_, pdu)| fits(pdu)) { self.pop(stage) } else { None }
    }

    /// Arrival of the oldest packet, and the packet.
    pub(super) fn first(&self) -> Option<(Time, &Pdu)> {
        self.packets.front().map(|(since, pdu)| (*since, pdu))
    }

    pub(super) fn length(&self) -> QueueLength {
        QueueLength { packets: self.packets.len() as u32, bytes: self.bytes }
    }

    pub(super) fn next_deadline(&self) -> Time {
        match (self.limit.age, self.packets.front()) {
            (Some(age), Some((since, _))) => (*since + age).max(self.limited_since),
            _ => Time::NEVER,
        }
    }

    pub(super) fn drop_aged(&mut self, stage: &mut StageCx<'_, '_>) {
        while self.next_deadline() <= stage.at && !self.packets.is_empty() {
            self.drop_head(Cause::QueueAge, stage);
        }
    }
}

/// The part of [`super::Queueing`] that is the same for every queue whose packets are all in its field
/// `$fifo`, and which does nothing of itself but to drop what has got too old.
macro_rules! keeps_packets_in_fifo {
    ($fifo:tt) => {
        fn hand_over(&mut self) -> VecDeque<(Time, Pdu)> {
            self.$fifo.hand_over()
        }

        fn take_over(&mut self, packets: VecDeque<(Time, Pdu)>, at: Time) {
            self.$fifo.take_over(packets, at);
        }

        fn length(&self) -> QueueLength {
            self.$fifo.length()
        }

        fn next_deadline(&self) -> Time {
            self.$fifo.next_deadline()
        }

        fn advance(&mut self, stage: &mut StageCx<'_, '_>) {
            self.$fifo.drop_aged(stage);
        }
    };
}
pub(super) use keeps_packets_in_fifo;
