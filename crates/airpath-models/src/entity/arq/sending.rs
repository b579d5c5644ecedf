// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sending end: frames that are not acknowledged, and those of them that are to be repeated.

use std::collections::{BTreeSet, VecDeque};

use airpath_core::{Bits, Time};

use super::Repeat;
use super::header::{Answer, Header};
use crate::air::{Backlog, Frame};
use crate::entity::Sdus;
use crate::entity::stream::{Pieces, StreamSender};

/// Parameters of the sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// Number of times that a frame is repeated.
    pub retransmissions: u16,
    /// Treatment of a frame that is to be repeated where fewer bits fit.
    pub repeat: Repeat,
    /// True if a frame carries parts of several packets.
    pub concatenate: bool,
}

/// A frame that the other end has not accepted yet.
#[derive(Clone, Debug)]
struct Outstanding {
    number: u64,
    /// Bits on the air when it was sent first.
    bits: u64,
    pieces: Pieces,
    offset: u32,
    /// Number of times that it has been sent.
    tries: u16,
}

impl Outstanding {
    /// Bits of the stream that it carries.
    fn payload(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.link_bits)).sum()
    }
}

/// Frames that are not acknowledged, by their place in the stream. Most come at the end and go from the beginning, so
/// that a list in order is quicker than a tree.
#[derive(Clone, Debug, Default)]
struct ByPlace(VecDeque<(u64, Outstanding)>);

impl ByPlace {
    fn find(&self, place: u64) -> Result<usize, usize> {
        match (self.0.front(), self.0.back()) {
            (Some((first, _)), _) if *first == place => Ok(0),
            (_, Some((last, _))) if *last < place => Err(self.0.len()),
            _ => self.0.binary_search_by_key(&place, |(place, _)| *place),
        }
    }

    fn get(&self, place: u64) -> Option<&Outstanding> {
        self.find(place).ok().map(|index| &self.0[index].1)
    }

    /// Puts a frame where there is none.
    fn insert(&mut self, place: u64, frame: Outstanding) {
        match self.find(place) {
            Ok(index) => self.0[index].1 = frame,
            Err(index) => self.0.insert(index, (place, frame)),
        }
    }

    fn remove(&mut self, place: u64) -> Option<Outstanding> {
        let index = self.find(place).ok()?;
        self.0.remove(index).map(|(_, frame)| frame)
    }
}

/// A frame to send.
#[derive(Debug)]
pub struct Outgoing {
    /// The frame.
    pub frame: Frame,
    /// Number of times that it has been sent before.
    pub repeated: u16,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    options: SenderOptions,
    stream: StreamSender,
    outstanding: ByPlace,
    /// Places of those that are to be repeated.
    waiting: BTreeSet<u64>,
    /// Bits of the stream in those.
    waiting_bits: u64,
    next_number: u64,
}

impl Sender {
    /// An end without packets, whose send buffer is `stream`.
    pub fn new(options: SenderOptions, stream: StreamSender) -> Sender {
        Sender {
            options,
            stream,
            outstanding: ByPlace::default(),
            waiting: BTreeSet::new(),
            waiting_bits: 0,
            next_number: 0,
        }
    }

    /// The send buffer.
    pub fn stream(&self) -> &StreamSender {
        &self.stream
    }

    /// The send buffer.
    pub fn stream_mut(&mut self) -> &mut StreamSender {
        &mut self.stream
    }

    /// Changes the parameters.
    pub fn configure(&mut self, options: SenderOptions) {
        self.options = options;
    }

    /// True if there is something to send.
    pub fn has_more(&self) -> bool {
        !self.waiting.is_empty() || self.stream.has_more()
    }

    /// Number of frames that are not acknowledged.
    pub fn outstanding(&self) -> usize {
        self.outstanding.0.len()
    }

    /// Bits that could be sent now, and the arrival of the oldest packet in them.
    pub fn backlog(&self, sdus: &Sdus) -> Backlog {
        let repeated = self.waiting.first().and_then(|place| self.outstanding.get(*place));
        let oldest = match repeated {
            Some(frame) => frame.pieces.first().map(|piece| piece.sdu),
            None => self.stream.next().map(|(sdu, _)| sdu),
        };
        let since = oldest.and_then(|sdu| sdus.get(sdu)).map_or(Time::NEVER, |sdu| sdu.pdu.arrived);
        Backlog { bits: self.waiting_bits + self.stream.uncut(), since }
    }

    /// The frame for a grant of `most` bits: the oldest one that is to be repeated, or a new one.
    pub fn next(&mut self, most: Option<u64>, sdus: &Sdus) -> Option<Outgoing> {
        if most == Some(0) {
            return None;
        }
        self.repeated(most, sdus).or_else(|| self.new_frame(most))
    }

    fn new_frame(&mut self, most: Option<u64>) -> Option<Outgoing> {
        let position = self.stream.position();
        let (_, offset) = self.stream.next()?;
        let pieces = match most {
            Some(most) if self.options.concatenate => self.stream.cut(most.min(u64::from(u32::MAX)) as u32)?.1,
            most => {
                self.stream.cut_piece(most.unwrap_or(u64::MAX).min(u64::from(u32::MAX)) as u32).into_iter().collect()
            }
        };
        let mut frame = Outstanding { number: self.take_number(), bits: 0, pieces, offset, tries: 0 };
        frame.bits = most.unwrap_or_else(|| frame.payload());
        let outgoing = self.sent(position, &mut frame, most);
        self.outstanding.insert(position, frame);
        Some(outgoing)
    }

    fn repeated(&mut self, most: Option<u64>, sdus: &Sdus) -> Option<Outgoing> {
        let position = match (self.options.repeat, most) {
            (Repeat::Hold, Some(most)) => {
                let fits = |place: &&u64| self.outstanding.get(**place).is_some_and(|frame| frame.payload() <= most);
                *self.waiting.iter().find(fits)?
            }
            _ => *self.waiting.first()?,
        };
        let mut frame = self.outstanding.remove(position)?;
        self.waiting.remove(&position);
        self.waiting_bits -= frame.payload();
        if self.options.repeat == Repeat::Resegment
            && let Some(most) = most.filter(|most| *most < frame.payload())
        {
            let rest = self.cut_off(&mut frame, most as u32, sdus);
            self.waiting_bits += rest.payload();
            self.waiting.insert(position + most);
            self.outstanding.insert(position + most, rest);
        }
        let outgoing = self.sent(position, &mut frame, most);
        self.outstanding.insert(position, frame);
        Some(outgoing)
    }

    /// Leaves the first `room` bits of the stream to `frame`; the rest becomes a frame of its own, which has been
    /// sent as often.
    fn cut_off(&mut self, frame: &mut Outstanding, mut room: u32, sdus: &Sdus) -> Outstanding {
        let (mut first, mut rest) = (Pieces::new(), Pieces::new());
        let mut rest_offset = 0;
        for (index, piece) in frame.pieces.iter().enumerate() {
            let offset = if index == 0 { frame.offset } else { 0 };
            if piece.link_bits <= room {
                room -= piece.link_bits;
                first.push(*piece);
            } else if room > 0 {
                let (head, tail) = self.stream.split(piece, offset, room, sdus);
                rest_offset = offset + room;
                room = 0;
                first.push(head);
                rest.push(tail);
            } else {
                rest.push(*piece);
            }
        }
        // What both parts send is not what was sent before.
        (frame.number, frame.pieces) = (self.take_number(), first);
        frame.bits = frame.payload();
        let mut rest =
            Outstanding { number: self.take_number(), bits: 0, pieces: rest, offset: rest_offset, tries: frame.tries };
        rest.bits = rest.payload();
        rest
    }

    fn take_number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// `frame`, which is at `position` of the stream, for the air once more.
    fn sent(&self, position: u64, frame: &mut Outstanding, most: Option<u64>) -> Outgoing {
        let repeated = frame.tries;
        frame.tries = frame.tries.saturating_add(1);
        let bits = match (self.options.repeat, most) {
            (Repeat::OwnModulation, _) | (_, None) => frame.bits,
            // A resource is used as a whole.
            (Repeat::Hold | Repeat::Resegment, Some(most)) => most,
        };
        let is_last = frame.tries > self.options.retransmissions;
        let words = Some(Header { position, offset: frame.offset, is_last }.words());
        let frame =
            Frame { number: frame.number, bits: Bits::new(bits), pieces: Pieces::from_slice(&frame.pieces), words };
        Outgoing { frame, repeated }
    }

    /// Takes an answer of the other end.
    pub fn hear(&mut self, answer: Answer) {
        if answer.repeat {
            let Some(frame) = self.outstanding.get(answer.position) else { return };
            if self.waiting.insert(answer.position) {
                self.waiting_bits += frame.payload();
            }
        } else if let Some(frame) = self.outstanding.remove(answer.position) {
            frame.pieces.iter().for_each(|piece| self.stream.settle_piece(piece));
        }
    }
}
