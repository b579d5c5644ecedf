// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving end of RLC: the receive window, the copies of blocks that add up, and acknowledgements.
//!
//! Source: 3GPP TS 44.060, clauses 9.1 (V(R), V(Q), received block bitmap) and 9.3. The mobile's end answers polls in
//! the blocks that are reserved for that. The network's end acknowledges after a number of blocks, when the sending
//! end reports a full window, and when the flow has come to its last block or is complete.

use std::collections::VecDeque;

use airpath_core::{Span, Time};
use smallvec::SmallVec;

use super::acknowledgement::Acknowledgement;
use super::schemes::Code;
use super::sending::Part;

/// Parameters of the receiving end.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverOptions {
    /// Number of block sequence numbers.
    pub modulus: u16,
    /// Window.
    pub window: u16,
    /// Time from the end of a polled block to the beginning of the block that is reserved for the answer; none for
    /// the network's end, which nobody polls.
    pub answers_after: Option<Span>,
    /// Number of blocks from one acknowledgement of the network to the next.
    pub acknowledges_every: u16,
    /// Share of the mutual information that the decoder makes use of.
    pub efficiency: f64,
    /// True if copies of a block add up.
    pub combines: bool,
}

/// A block in the window.
#[derive(Clone, Debug)]
struct Slot<P> {
    payload: Option<P>,
    /// Halves that have been decoded.
    halves: u8,
    /// Mutual information of the copies of the whole block or its first half, and of its second half, with the bits
    /// before coding: copies of other codes do not add up.
    collected: [(u32, f64); 2],
}

/// The receiving end.
#[derive(Clone, Debug)]
pub struct Receiver<P> {
    /// Its parameters.
    pub options: ReceiverOptions,
    flow: u32,
    v_q: u16,
    slots: VecDeque<Slot<P>>,
    /// The newest radio block that has been understood.
    seen: u64,
    /// Blocks since the last acknowledgement; the network's end alone counts them.
    since_acknowledgement: u16,
    was_stalled: bool,
    /// True if the newest block is the last one of the flow so far.
    is_last: bool,
    /// Times at which acknowledgements are due.
    due: VecDeque<Time>,
}

impl<P> Receiver<P> {
    /// An end that has received nothing.
    pub fn new(options: ReceiverOptions) -> Receiver<P> {
        Receiver {
            options,
            flow: 0,
            v_q: 0,
            slots: VecDeque::new(),
            seen: 0,
            since_acknowledgement: 0,
            was_stalled: false,
            is_last: false,
            due: VecDeque::new(),
        }
    }

    /// V(Q), the number of the next block to deliver, and V(R).
    pub fn variables(&self) -> (u16, u16) {
        (self.v_q, (self.v_q + self.slots.len() as u16) % self.options.modulus)
    }

    /// Time from which an acknowledgement is to be sent; `Time::NEVER` if none is.
    pub fn acknowledgement_at(&self) -> Time {
        self.due.front().copied().unwrap_or(Time::NEVER)
    }

    /// The acknowledgement that is due at `now`.
    pub fn acknowledgement(&mut self, now: Time) -> Option<Acknowledgement> {
        self.due.pop_front_if(|due| *due <= now)?;
        let mut bitmap: SmallVec<[u64; 2]> = SmallVec::new();
        bitmap.resize(self.slots.len().div_ceil(64), 0);
        for (place, _) in self.slots.iter().enumerate().filter(|(_, slot)| slot.payload.is_some()) {
            bitmap[place / 64] |= 1 << (place % 64);
        }
        let count = self.slots.len() as u16;
        Some(Acknowledgement { flow: self.flow, seen: self.seen, v_q: self.v_q, count, bitmap })
    }

    /// The header of radio block `number` of `flow` is understood at `now`; true if the flow is a new one.
    pub fn header(&mut self, now: Time, flow: u32, number: u64, poll: bool, is_stalled: bool) -> bool {
        let is_new = flow != self.flow;
        if is_new {
            self.flow = flow;
            self.v_q = 0;
            self.slots.clear();
            self.since_acknowledgement = 0;
            (self.was_stalled, self.is_last) = (false, false);
            self.due.clear();
        }
        self.seen = number;
        match self.options.answers_after {
            Some(after) if poll => self.due.push_back(now + after),
            Some(_) => {}
            None if is_stalled && !self.was_stalled => self.acknowledge_at(now),
            None => {}
        }
        self.was_stalled = is_stalled;
        is_new
    }

    fn acknowledge_at(&mut self, now: Time) {
        self.since_acknowledgement = 0;
        if self.due.is_empty() {
            self.due.push_back(now);
        }
    }

    /// A copy of `part` of block `bsn`, with `flips` of its coded bits flipped; true if all of the block is here now.
    /// Information that is in sequence is given to `deliver`.
    pub fn block(
        &mut self,
        now: Time,
        (bsn, part, is_last): (u16, Part, bool),
        (code, flips): (Code, usize),
        payload: P,
        mut deliver: impl FnMut(P),
    ) -> bool {
        let modulus = self.options.modulus;
        let ahead = usize::from((bsn + modulus - self.v_q) % modulus);
        let is_ahead = ahead < self.options.window.into();
        let mut is_here = !is_ahead;
        if is_ahead {
            while self.slots.len() <= ahead {
                self.is_last = false;
                let collected = [(0, 0.0); 2];
                self.slots.push_back(Slot { payload: None, halves: 0, collected });
            }
            let options = self.options;
            let slot = &mut self.slots[ahead];
            is_here = slot.payload.is_some();
            let was_here = is_here;
            if !is_here && slot.decode(part, code, flips, &options) {
                slot.payload = Some(payload);
                is_here = true;
            }
            let is_newest = ahead + 1 == self.slots.len();
            if is_newest && is_here && is_last && !self.is_last {
                self.is_last = true;
                self.acknowledge_unasked(now);
            }
            while let Some(slot) = self.slots.pop_front_if(|slot| slot.payload.is_some()) {
                self.v_q = (self.v_q + 1) % modulus;
                slot.payload.into_iter().for_each(&mut deliver);
            }
            if self.is_last && !was_here && self.slots.is_empty() {
                self.acknowledge_unasked(now);
            }
        }
        if self.options.answers_after.is_none() {
            self.since_acknowledgement += 1;
            if self.since_acknowledgement >= self.options.acknowledges_every {
                self.acknowledge_at(now);
            }
        }
        is_here
    }

    fn acknowledge_unasked(&mut self, now: Time) {
        if self.options.answers_after.is_none() {
            self.acknowledge_at(now);
        }
    }
}

impl<P> Slot<P> {
    /// Takes a copy; true if the block is whole then.
    fn decode(&mut self, part: Part, code: Code, flips: usize, options: &ReceiverOptions) -> bool {
        let (place, halves) = match part {
            Part::Whole => (0, 3),
            Part::First => (0, 1),
            Part::Second => (1, 2),
        };
        let copy = code.mutual_information(flips);
        let (information, collected) = &mut self.collected[place];
        let together = match options.combines && *information == code.information {
            true => *collected + copy,
            false => copy,
        };
        (*information, *collected) = (code.information, together);
        if flips == 0 || code.decodes(together, options.efficiency) {
            self.halves |= halves;
        }
        self.halves == 3
    }
}
