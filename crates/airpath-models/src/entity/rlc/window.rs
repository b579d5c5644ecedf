// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The transmit window of RLC: blocks that were sent and are not acknowledged.
//!
//! Source: 3GPP TS 44.060, clause 9.1.3 (V(B)).

use std::collections::VecDeque;

use super::acknowledgement::Acknowledgement;

/// Part of an RLC block in a radio block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// Its first half.
    First,
    /// Its second half.
    Second,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Pending,
    Nacked,
    Acked,
}

/// A block in the window, with its V(B).
#[derive(Clone, Debug)]
pub struct Sent<P> {
    /// Its information; none for a block that was sent for its poll alone.
    pub payload: Option<P>,
    /// The scheme in which it was sent first.
    pub home: usize,
    /// True if it is the last one so far.
    pub is_last: bool,
    state: State,
    /// Number of the radio block that carried it last.
    number: u64,
    /// True if its first half has been sent and its second has not.
    is_half: bool,
}

/// The transmit window.
#[derive(Clone, Debug)]
pub struct Window<P> {
    blocks: VecDeque<Sent<P>>,
    nacked: u16,
}

impl<P> Default for Window<P> {
    fn default() -> Window<P> {
        Window { blocks: VecDeque::new(), nacked: 0 }
    }
}

impl<P> Window<P> {
    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Block `place`, counted from V(A).
    pub fn block(&self, place: usize) -> &Sent<P> {
        &self.blocks[place]
    }

    /// True if a block is reported as missing.
    pub fn has_nacked(&self) -> bool {
        self.nacked > 0
    }

    /// True if a block with information is not acknowledged.
    pub fn has_information(&self) -> bool {
        self.blocks.iter().any(|sent| sent.payload.is_some() && sent.state != State::Acked)
    }

    /// Forgets all blocks.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.nacked = 0;
    }

    /// Takes a block that goes in radio block `number` in the scheme `home`.
    pub fn push(&mut self, payload: Option<P>, home: usize, number: u64, is_last: bool) {
        self.blocks.push_back(Sent { payload, home, is_last, state: State::Pending, number, is_half: false });
    }

    /// All blocks are to be sent again.
    pub fn reject_all(&mut self) {
        for sent in &mut self.blocks {
            (sent.state, sent.is_half) = (State::Nacked, false);
        }
        self.nacked = self.blocks.len() as u16;
    }

    /// The oldest block that is negatively acknowledged, of those that `fit`.
    pub fn oldest_nacked(&self, fits: impl Fn(&Sent<P>) -> bool) -> Option<usize> {
        if self.nacked == 0 {
            return None;
        }
        self.blocks.iter().position(|sent| sent.state == State::Nacked && fits(sent))
    }

    /// The block that has not been sent for the longest time, of those that `fit` and have not gone in radio block
    /// `number`.
    pub fn oldest_pending(&self, number: u64, fits: impl Fn(&Sent<P>) -> bool) -> Option<usize> {
        let pending = self
            .blocks
            .iter()
            .enumerate()
            .filter(|(_, sent)| sent.state == State::Pending && sent.number < number && fits(sent));
        pending.min_by_key(|(_, sent)| sent.number).map(|(place, _)| place)
    }

    /// A block that may have arrived is sent as if it were asked for, both its halves.
    pub fn reject(&mut self, place: usize) {
        self.blocks[place].state = State::Nacked;
        self.nacked += 1;
    }

    /// Sends a block that is asked for in radio block `number`, as a whole or, if it `splits`, one half; the part.
    pub fn repeat(&mut self, place: usize, number: u64, splits: bool) -> Part {
        let sent = &mut self.blocks[place];
        let part = match (splits, sent.is_half) {
            (false, _) => Part::Whole,
            (true, false) => Part::First,
            (true, true) => Part::Second,
        };
        sent.is_half = part == Part::First;
        sent.number = number;
        if !sent.is_half {
            sent.state = State::Pending;
            self.nacked -= 1;
        }
        part
    }

    /// An acknowledgement whose V(Q) is `before` blocks behind V(A).
    pub fn acknowledge(&mut self, acknowledgement: &Acknowledgement, before: usize) {
        for (place, sent) in self.blocks.iter_mut().enumerate() {
            let received = match place.checked_sub(before) {
                None => true,
                Some(place) if place < acknowledgement.count.into() => acknowledgement.has(place),
                Some(_) => break,
            };
            let was_nacked = sent.state == State::Nacked;
            if received {
                sent.state = State::Acked;
                sent.is_half = false;
            } else if sent.state == State::Pending && sent.number <= acknowledgement.seen {
                sent.state = State::Nacked;
            }
            self.nacked += u16::from(sent.state == State::Nacked);
            self.nacked -= u16::from(was_nacked);
        }
    }

    /// Takes the oldest block if it is acknowledged.
    pub fn pop_acknowledged(&mut self) -> Option<Sent<P>> {
        self.blocks.pop_front_if(|sent| sent.state == State::Acked)
    }
}
