// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sending end: frames cut from the stream of packets, and those of them that are to be repeated.

use airpath_core::{Bits, Time};

use super::Repeat;
use super::header::{Answer, Header};
use super::repeats::{Content, Outstanding, RepeatOptions, Repeats, Try};
use crate::air::{Backlog, Frame};
use crate::entity::Sdus;
use crate::entity::stream::{Pieces, StreamSender};

/// Parameters of the sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// Repetitions.
    pub repeats: RepeatOptions,
    /// True if a frame carries parts of several packets.
    pub concatenate: bool,
}

/// A part of the stream.
#[derive(Clone, Debug)]
struct Part {
    pieces: Pieces,
    /// Bits of the first packet that earlier frames carry.
    offset: u32,
    /// Number of the first packet.
    packet: u64,
}

impl Content for Part {
    fn bits(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.link_bits)).sum()
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
    concatenate: bool,
    stream: StreamSender,
    /// Number of packets of which frames have taken everything.
    packets: u64,
    /// Frames that are not acknowledged, by their place in the stream.
    repeats: Repeats<Part>,
}

impl Sender {
    /// An end without packets, whose send buffer is `stream`.
    pub fn new(options: SenderOptions, stream: StreamSender) -> Sender {
        Sender { concatenate: options.concatenate, stream, packets: 0, repeats: Repeats::new(options.repeats) }
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
        self.concatenate = options.concatenate;
        self.repeats.configure(options.repeats);
    }

    /// True if there is something to send.
    pub fn has_more(&self) -> bool {
        self.repeats.has_waiting() || self.stream.has_more()
    }

    /// Number of frames that are not acknowledged.
    pub fn outstanding(&self) -> usize {
        self.repeats.len()
    }

    /// Bits that could be sent now, and the arrival of the oldest packet in them.
    pub fn backlog(&self, sdus: &Sdus) -> Backlog {
        let oldest = match self.repeats.oldest_waiting() {
            Some(part) => part.pieces.first().map(|piece| piece.sdu),
            None => self.stream.next().map(|(sdu, _)| sdu),
        };
        let since = oldest.and_then(|sdu| sdus.get(sdu)).map_or(Time::NEVER, |sdu| sdu.pdu.arrived);
        Backlog { bits: self.repeats.waiting_bits() + self.stream.uncut(), since }
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
            Some(most) if self.concatenate => self.stream.cut(most.min(u64::from(u32::MAX)) as u32)?.1,
            most => {
                self.stream.cut_piece(most.unwrap_or(u64::MAX).min(u64::from(u32::MAX)) as u32).into_iter().collect()
            }
        };
        let packet = self.packets;
        self.packets += pieces.iter().filter(|piece| piece.last).count() as u64;
        let sent = self.repeats.begin(position, Part { pieces, offset, packet }, most);
        Some(outgoing(position, sent))
    }

    fn repeated(&mut self, most: Option<u64>, sdus: &Sdus) -> Option<Outgoing> {
        let position = self.repeats.next_place(most)?;
        let mut frame = self.repeats.take(position)?;
        if self.repeats.repeat() == Repeat::Resegment
            && let Some(most) = most.filter(|most| *most < frame.content.bits())
        {
            let rest = self.cut_off(&mut frame, most as u32, sdus);
            self.repeats.wait(position + most, rest);
        }
        Some(outgoing(position, self.repeats.send(position, frame, most)))
    }

    /// Leaves the first `room` bits of the stream to `frame`; the rest becomes a frame of its own, which has been
    /// sent as often.
    fn cut_off(&mut self, frame: &mut Outstanding<Part>, mut room: u32, sdus: &Sdus) -> Outstanding<Part> {
        let part = &frame.content;
        let (mut first, mut rest) = (Pieces::new(), Pieces::new());
        let (mut rest_offset, mut rest_packet) = (0, part.packet);
        for (index, piece) in part.pieces.iter().enumerate() {
            let offset = if index == 0 { part.offset } else { 0 };
            if piece.link_bits <= room {
                room -= piece.link_bits;
                first.push(*piece);
                rest_packet = part.packet + index as u64 + 1;
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
        frame.number = self.repeats.take_number();
        frame.content.pieces = first;
        frame.bits = frame.content.bits();
        let content = Part { pieces: rest, offset: rest_offset, packet: rest_packet };
        let bits = content.bits();
        Outstanding { number: self.repeats.take_number(), bits, content, tries: frame.tries }
    }

    /// Takes an answer of the other end.
    pub fn hear(&mut self, answer: Answer) {
        if let Some(part) = self.repeats.hear(answer) {
            part.pieces.iter().for_each(|piece| self.stream.settle_piece(piece));
        }
    }
}

/// The frame at `position` of the stream.
fn outgoing(position: u64, sent: Try<Part>) -> Outgoing {
    let Part { pieces, offset, packet } = sent.content;
    let words = Some(Header { position, offset, is_last: sent.is_last, packet }.words());
    let frame = Frame { number: sent.number, bits: Bits::new(sent.bits), pieces, words };
    Outgoing { frame, repeated: sent.repeated }
}
