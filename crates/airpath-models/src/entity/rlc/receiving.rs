// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The receiving end of RLC: the receive window, the copies of blocks that add up, and acknowledgements.
//!
//! Source: 3GPP TS 44.060, clauses 9.1 (V(R), V(Q), received block bitmap) and 9.3. The mobile's end answers polls in
//! the blocks that are reserved for that. The network's end acknowledges after a number of blocks, when the sending
//! end reports a full window, and when the flow has come to its last block or is complete.
//!
//! Where flows are released by messages, the acknowledgement of a complete flow says so. That of the network is sent
//! again until it is answered (N3103, clause 9.3.2.4.2). The network ends an extended uplink flow of which it misses
//! nothing when it has heard nothing for the release delay; the mobile leaves a downlink flow after T3190, and listens
//! to its channel for T3192 after the end.

use std::collections::VecDeque;

use airpath_core::{Span, Time};
use smallvec::SmallVec;

use super::acknowledgement::Acknowledgement;
use super::message::Header;
use super::schemes::Code;
use super::window::Part;

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
    /// Parameters of releases; none without messages that set up and release flows.
    pub messages: Option<Releases>,
}

/// Releases of flows by messages.
#[derive(Clone, Copy, Debug)]
pub struct Releases {
    /// Time without a block after which the network ends an uplink flow that would stay.
    pub delay: Span,
    /// Time after which a final acknowledgement counts as unanswered.
    pub timeout: Span,
    /// N3103: number of times that it is sent.
    pub most: u8,
    /// T3190: time without a block after which the mobile leaves a downlink flow.
    pub silence: Span,
    /// T3192: time for which the mobile listens after the end of a downlink flow.
    pub listens: Span,
}

/// Flow that the header of a radio block names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// The flow is a new one.
    New,
    /// It is the present one.
    Known,
    /// It is one that this end has left.
    Left,
}

/// Release of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Release {
    /// The flow goes on.
    None,
    /// The network waits until the given time for the answer to a final acknowledgement, sent so many times.
    Asked(Time, u8),
    /// The flow has ended at the given time.
    Over(Time),
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
    /// True if all blocks of the flow have been sent.
    ends: bool,
    /// Time of the last block of the flow; `Time::NEVER` before the first.
    heard_at: Time,
    release: Release,
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
            ends: false,
            heard_at: Time::NEVER,
            release: Release::None,
        }
    }

    /// True if the flow is under way at `now`, as far as this end knows. Where flows are not released by messages no
    /// end knows.
    pub fn has_flow(&self, now: Time) -> bool {
        self.options.messages.is_some()
            && self.release == Release::None
            && self.heard_at != Time::NEVER
            && now <= self.left_at()
    }

    /// Time after which the mobile leaves a downlink flow of which it hears nothing; `Time::NEVER` at the network.
    pub fn left_at(&self) -> Time {
        match self.options.messages {
            Some(releases) if self.options.answers_after.is_some() && self.heard_at != Time::NEVER => {
                self.heard_at + releases.silence
            }
            _ => Time::NEVER,
        }
    }

    /// Time from which the mobile knows that no poll of a downlink flow will come; zero if none is under way.
    pub fn polls_until(&self) -> Time {
        match (self.release, self.left_at()) {
            (Release::None, left) if left != Time::NEVER => left + Span::from_nanos(1),
            _ => Time::ZERO,
        }
    }

    /// True if the mobile listens at `now` to the channel of a downlink flow that has ended.
    pub fn listens(&self, now: Time) -> bool {
        match (self.release, self.options.messages) {
            (Release::Over(at), Some(releases)) => now <= at + releases.listens,
            _ => false,
        }
    }

    /// True if the mobile does not hear the present flow any more.
    fn has_left(&self, now: Time) -> bool {
        let Some(releases) = self.options.messages.filter(|_| self.options.answers_after.is_some()) else {
            return false;
        };
        match self.release {
            Release::Over(at) => now > at + releases.listens,
            _ => now > self.left_at(),
        }
    }

    /// The flow has ended at `now`: the other end has answered, or is not there.
    pub fn forget(&mut self, now: Time) {
        self.release = Release::Over(now);
    }

    /// The answer to the final acknowledgement of `flow` arrives at `now`.
    pub fn confirm(&mut self, now: Time, flow: u32) {
        if flow == self.flow && matches!(self.release, Release::Asked(..)) {
            self.release = Release::Over(now);
        }
    }

    /// A flow is assigned to the mobile at `now`, which listens to it from now on.
    pub fn expect(&mut self, now: Time) {
        self.heard_at = now;
        self.release = Release::None;
    }

    /// Time at which a final acknowledgement is sent unasked, or again; `Time::NEVER` if it is not.
    fn release_at(&self) -> Time {
        let Some(releases) = self.options.messages.filter(|_| self.options.answers_after.is_none()) else {
            return Time::NEVER;
        };
        match self.release {
            Release::None if self.ends || self.heard_at == Time::NEVER || !self.slots.is_empty() => Time::NEVER,
            Release::None if releases.delay == Span::ZERO => Time::NEVER,
            Release::None => self.heard_at + releases.delay,
            Release::Asked(until, _) => until,
            Release::Over(_) => Time::NEVER,
        }
    }

    /// True if an acknowledgement that is sent at `now` is the last one of the flow.
    fn is_final(&self, now: Time) -> bool {
        self.options.messages.is_some()
            && self.slots.is_empty()
            && (self.ends && self.is_last || self.release_at() <= now || self.release != Release::None)
    }

    /// V(Q), the number of the next block to deliver, and V(R).
    pub fn variables(&self) -> (u16, u16) {
        (self.v_q, (self.v_q + self.slots.len() as u16) % self.options.modulus)
    }

    /// Time from which an acknowledgement is to be sent; `Time::NEVER` if none is.
    pub fn acknowledgement_at(&self) -> Time {
        self.due.front().copied().unwrap_or(Time::NEVER).min(self.release_at())
    }

    /// The acknowledgement that is due at `now`.
    pub fn acknowledgement(&mut self, now: Time) -> Option<Acknowledgement> {
        let is_asked = self.due.pop_front_if(|due| *due <= now).is_some();
        let is_late = self.release_at() <= now;
        if !is_asked && (!is_late || self.gives_up(now)) {
            return None;
        }
        let is_final = self.is_final(now);
        if let Some(releases) = self.options.messages.filter(|_| is_final) {
            self.release = match self.release {
                _ if self.options.answers_after.is_some() => Release::Over(now),
                Release::None => Release::Asked(now + releases.timeout, 1),
                Release::Asked(_, times) if is_late => Release::Asked(now + releases.timeout, times + 1),
                other => other,
            };
        }
        let mut bitmap: SmallVec<[u64; 2]> = SmallVec::new();
        bitmap.resize(self.slots.len().div_ceil(64), 0);
        for (place, _) in self.slots.iter().enumerate().filter(|(_, slot)| slot.payload.is_some()) {
            bitmap[place / 64] |= 1 << (place % 64);
        }
        let count = self.slots.len() as u16;
        Some(Acknowledgement { flow: self.flow, is_final, seen: self.seen, v_q: self.v_q, count, bitmap })
    }

    /// Gives up asking for an answer to the final acknowledgement, if it has been sent N3103 times.
    fn gives_up(&mut self, now: Time) -> bool {
        let most = self.options.messages.map_or(0, |releases| releases.most);
        let gives_up = matches!(self.release, Release::Asked(_, times) if times >= most);
        if gives_up {
            self.release = Release::Over(now);
        }
        gives_up
    }

    /// The header of a radio block is understood at `now`.
    pub fn header(&mut self, now: Time, header: &Header) -> Heard {
        let is_new = header.flow != self.flow;
        if is_new {
            self.flow = header.flow;
            self.v_q = 0;
            self.slots.clear();
            self.since_acknowledgement = 0;
            (self.was_stalled, self.is_last, self.ends) = (false, false, false);
            self.release = Release::None;
            self.due.clear();
        } else if self.has_left(now) {
            return Heard::Left;
        }
        self.heard_at = now;
        self.ends |= header.ends;
        self.seen = header.number;
        match self.options.answers_after {
            Some(after) if header.poll => self.due.push_back(now + after),
            Some(_) => {}
            None if header.is_stalled && !self.was_stalled => self.acknowledge_at(now),
            // Contention is resolved with the first block.
            None if is_new && header.tlli => self.acknowledge_at(now),
            None => {}
        }
        self.was_stalled = header.is_stalled;
        if is_new { Heard::New } else { Heard::Known }
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
                // The flow goes on, whatever the release delay was.
                (self.is_last, self.release) = (false, Release::None);
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
