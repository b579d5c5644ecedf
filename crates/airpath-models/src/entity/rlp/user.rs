// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The user of a receiving end: what arrives in sequence waits until the user takes it, at a rate of its own.
//!
//! Source: 3GPP TS 24.022, clause 5.2.3.7 (RNR): an end says that it is busy while its buffer is fuller than it may be,
//! and that it is ready again when half of that has gone. What is under way then is still taken.

use std::collections::VecDeque;

use airpath_core::{Bits, Carry, Rate, Time};

use super::Chunk;

/// Something that waits for the user.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    /// Information, of so many bits.
    Information(Chunk, u64),
    /// The connection began anew behind the information before.
    Break,
}

/// The buffer between a receiving end and its user.
#[derive(Clone, Debug)]
pub(super) struct User {
    rate: Rate,
    /// Greatest number of bits with which the end is ready; none if it always is.
    limit: Option<u64>,
    waiting: VecDeque<(Time, Waiting)>,
    /// Time at which the user has taken all that is here.
    free_at: Time,
    carry: Carry,
    bits: u64,
    is_busy: bool,
}

impl User {
    /// A user that takes `rate`, behind a buffer of `limit`.
    pub(super) fn new(rate: Rate, limit: Option<Bits>) -> User {
        let limit = limit.map(Bits::get);
        let (waiting, carry) = (VecDeque::new(), Carry::NONE);
        User { rate, limit, waiting, free_at: Time::ZERO, carry, bits: 0, is_busy: false }
    }

    /// Information that arrives at `now`.
    pub(super) fn take(&mut self, now: Time, chunk: Chunk) {
        if self.free_at < now {
            (self.free_at, self.carry) = (now, Carry::NONE);
        }
        let bits = chunk.pieces.iter().map(|piece| u64::from(piece.link_bits)).sum();
        self.free_at += self.rate.tx(Bits::new(bits), &mut self.carry);
        self.bits += bits;
        self.waiting.push_back((self.free_at, Waiting::Information(chunk, bits)));
    }

    /// The connection begins anew behind what is here; false if that is nothing.
    pub(super) fn restart(&mut self) -> bool {
        let Some((at, _)) = self.waiting.back() else { return false };
        self.waiting.push_back((*at, Waiting::Break));
        true
    }

    /// Time at which the user has taken the next thing; `Time::NEVER` if nothing is here.
    pub(super) fn next_at(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// The next thing that the user has taken by `now`.
    pub(super) fn next(&mut self, now: Time) -> Option<Waiting> {
        let (_, waiting) = self.waiting.pop_front_if(|(at, _)| *at <= now)?;
        if let Waiting::Information(_, bits) = &waiting {
            self.bits -= bits;
        }
        Some(waiting)
    }

    /// True if the end is busy.
    pub(super) fn is_busy(&mut self) -> bool {
        if let Some(limit) = self.limit {
            self.is_busy = self.bits > if self.is_busy { limit / 2 } else { limit };
        }
        self.is_busy
    }
}
