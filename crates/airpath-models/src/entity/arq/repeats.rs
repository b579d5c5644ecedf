// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Frames that are not acknowledged, and those of them that are to be repeated, whatever they carry.

use std::collections::BTreeSet;

use super::Repeat;
use super::by_place::ByPlace;
use super::header::Answer;

/// Content of a frame.
pub trait Content: Clone {
    /// Number of bits that a frame needs for it.
    fn bits(&self) -> u64;
}

/// Parameters of repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatOptions {
    /// Number of times that a frame is repeated.
    pub retransmissions: u16,
    /// Treatment of a frame that is to be repeated where fewer bits fit.
    pub repeat: Repeat,
}

/// A frame that the other end has not accepted yet.
#[derive(Clone, Debug)]
pub struct Outstanding<C> {
    /// Number of what it sends.
    pub number: u64,
    /// Bits on the air when it was sent first.
    pub bits: u64,
    /// Its content.
    pub content: C,
    /// Number of times that it has been sent.
    pub tries: u16,
}

/// One transmission of a frame.
#[derive(Clone, Debug)]
pub struct Try<C> {
    /// Number of what it sends.
    pub number: u64,
    /// Bits on the air.
    pub bits: u64,
    /// True if it is not repeated any more.
    pub is_last: bool,
    /// Number of times that it has been sent before.
    pub repeated: u16,
    /// Its content.
    pub content: C,
}

/// The frames of a sending end that are not acknowledged.
#[derive(Clone, Debug)]
pub struct Repeats<C> {
    options: RepeatOptions,
    /// The frames by their places, which say their order.
    outstanding: ByPlace<Outstanding<C>>,
    /// Places of those that are to be repeated.
    waiting: BTreeSet<u64>,
    /// Bits that those need.
    waiting_bits: u64,
    next_number: u64,
}

impl<C: Content> Repeats<C> {
    /// No frames.
    pub fn new(options: RepeatOptions) -> Repeats<C> {
        let (outstanding, waiting) = (ByPlace::new(), BTreeSet::new());
        Repeats { options, outstanding, waiting, waiting_bits: 0, next_number: 0 }
    }

    /// Changes the parameters.
    pub fn configure(&mut self, options: RepeatOptions) {
        self.options = options;
    }

    /// Treatment of a frame that is to be repeated where fewer bits fit.
    pub fn repeat(&self) -> Repeat {
        self.options.repeat
    }

    /// True if a frame is to be repeated.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Bits that the frames need that are to be repeated.
    pub fn waiting_bits(&self) -> u64 {
        self.waiting_bits
    }

    /// Content of the oldest frame that is to be repeated.
    pub fn oldest_waiting(&self) -> Option<&C> {
        let place = self.waiting.first()?;
        self.outstanding.get(*place).map(|frame| &frame.content)
    }

    /// Number of frames that are not acknowledged.
    pub fn len(&self) -> usize {
        self.outstanding.len()
    }

    /// Number of times that the frame at `place` has been sent; 0 if it is acknowledged.
    pub fn tries(&self, place: u64) -> u16 {
        self.outstanding.get(place).map_or(0, |frame| frame.tries)
    }

    /// A number that no frame has yet.
    pub fn take_number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// The first transmission of `content` at `place`, in a grant of `most` bits.
    pub fn begin(&mut self, place: u64, content: C, most: Option<u64>) -> Try<C> {
        let bits = most.unwrap_or_else(|| content.bits());
        let frame = Outstanding { number: self.take_number(), bits, content, tries: 0 };
        self.send(place, frame, most)
    }

    /// Place of the frame to repeat in a grant of `most` bits: the oldest, or the oldest that fits.
    pub fn next_place(&self, most: Option<u64>) -> Option<u64> {
        match (self.options.repeat, most) {
            (Repeat::Hold, Some(most)) => {
                let fits =
                    |place: &&u64| self.outstanding.get(**place).is_some_and(|frame| frame.content.bits() <= most);
                self.waiting.iter().find(fits).copied()
            }
            _ => self.waiting.first().copied(),
        }
    }

    /// Takes the frame at `place` out, to be sent again.
    pub fn take(&mut self, place: u64) -> Option<Outstanding<C>> {
        let frame = self.outstanding.remove(place)?;
        if self.waiting.remove(&place) {
            self.waiting_bits -= frame.content.bits();
        }
        Some(frame)
    }

    /// Lets `frame` wait at `place`.
    pub fn wait(&mut self, place: u64, frame: Outstanding<C>) {
        self.waiting_bits += frame.content.bits();
        self.waiting.insert(place);
        self.outstanding.insert(place, frame);
    }

    /// Sends `frame`, which is at `place`, in a grant of `most` bits.
    pub fn send(&mut self, place: u64, mut frame: Outstanding<C>, most: Option<u64>) -> Try<C> {
        let repeated = frame.tries;
        frame.tries = frame.tries.saturating_add(1);
        let bits = match (self.options.repeat, most) {
            (Repeat::OwnModulation, _) | (_, None) => frame.bits,
            // A resource is used as a whole.
            (Repeat::Hold | Repeat::Resegment, Some(most)) => most,
        };
        let is_last = frame.tries > self.options.retransmissions;
        let (number, content) = (frame.number, frame.content.clone());
        self.outstanding.insert(place, frame);
        Try { number, bits, is_last, repeated, content }
    }

    /// Takes an answer of the other end; the content of the frame, if it is not repeated any more.
    pub fn hear(&mut self, answer: Answer) -> Option<C> {
        if !answer.repeat {
            return self.take(answer.position).map(|frame| frame.content);
        }
        if let Some(frame) = self.outstanding.get(answer.position)
            && self.waiting.insert(answer.position)
        {
            self.waiting_bits += frame.content.bits();
        }
        None
    }
}
