// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sending end: packets that are not acknowledged, within a window.

use std::collections::VecDeque;

use airpath_core::{Bits, Cause, Span, Time};
use smallvec::smallvec;

use super::header::{Acknowledgement, Header, REQUEST};
use crate::air::{Backlog, Frame, Piece};
use crate::entity::Sdus;
use crate::entity::persistence::{drop_expired, has_expired};
use crate::entity::stream::StreamSender;
use crate::stage::StageCx;

/// Bits of a frame without a packet: a block acknowledgement request of IEEE 802.11 has 24 octets.
const REQUEST_BITS: u64 = 24 * 8;

/// Parameters of the sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderOptions {
    /// Number of times that a packet is sent again; without limit if none.
    pub retransmissions: Option<u16>,
    /// Age from which a packet is not sent, or sent again.
    pub expiry: Option<Span>,
    /// Number of packets from the oldest one that is not settled.
    pub window: u16,
}

/// Stage of a packet that is not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// On the air, or its acknowledgement is.
    UnderWay,
    /// To be sent again.
    Waiting,
}

/// A packet that has been sent and is not settled.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    piece: Piece,
    /// Number of times that it has been sent.
    tries: u16,
    /// Start of the window that its last try told.
    told: u64,
    /// True if the receiving end knows that no try follows.
    is_last: bool,
    progress: Progress,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct Sender {
    options: SenderOptions,
    stream: StreamSender,
    /// Packets from number `start` on; none where one is settled.
    outstanding: VecDeque<Option<Outstanding>>,
    /// Number of the oldest packet that is not settled.
    start: u64,
    /// Number of those that wait to be sent again.
    waiting: usize,
    /// Number behind the last packet that was given up without the receiving end's knowledge.
    given_up: u64,
    /// Start of the window that the receiving end is known to have heard of.
    told: u64,
    /// Start of the window that the request under way tells; none if there is no request under way.
    request: Option<u64>,
    /// Number of requests sent.
    requests: u16,
}

/// A frame to send.
#[derive(Debug)]
pub struct Outgoing {
    /// The frame.
    pub frame: Frame,
    /// Number of times that it has been sent before.
    pub repeated: u16,
}

impl Sender {
    /// An end without packets, whose send buffer is `stream`.
    pub fn new(options: SenderOptions, stream: StreamSender) -> Sender {
        Sender {
            options,
            stream,
            outstanding: VecDeque::new(),
            start: 0,
            waiting: 0,
            given_up: 0,
            told: 0,
            request: None,
            requests: 0,
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

    /// Number of packets that are sent and not settled.
    pub fn outstanding(&self) -> usize {
        self.outstanding.iter().flatten().count()
    }

    /// True if there is something to send.
    pub fn has_more(&self) -> bool {
        self.waiting > 0 || self.has_new() || self.has_request()
    }

    fn has_new(&self) -> bool {
        self.stream.has_more() && self.outstanding.len() < usize::from(self.options.window)
    }

    /// True if the receiving end may wait for a packet that was given up, and nothing else tells it.
    fn has_request(&self) -> bool {
        self.request.is_none() && self.told < self.given_up && self.outstanding.iter().all(Option::is_none)
    }

    /// Bits that could be sent now, and the arrival of the oldest packet in them.
    pub fn backlog(&self, sdus: &Sdus) -> Backlog {
        let waiting = || self.outstanding.iter().flatten().filter(|packet| packet.progress == Progress::Waiting);
        let oldest = waiting().map(|packet| packet.piece.sdu).next();
        let oldest = oldest.or_else(|| self.stream.next().map(|(sdu, _)| sdu));
        let since = oldest.and_then(|sdu| sdus.get(sdu)).map_or(Time::NEVER, |sdu| sdu.pdu.arrived);
        let new = if self.has_new() { self.stream.uncut() } else { 0 };
        let request = if self.has_request() { REQUEST_BITS } else { 0 };
        Backlog { bits: waiting().map(|packet| u64::from(packet.piece.link_bits)).sum::<u64>() + new + request, since }
    }

    /// The frame for a grant of `most` bits at `at`: the oldest packet that is to be sent again, or a new one.
    pub fn next(
        &mut self,
        most: Option<u64>,
        at: Time,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
    ) -> Option<Outgoing> {
        self.expire(at, sdus, stage);
        let fits = |bits: u64| most.is_none_or(|most| bits <= most);
        if self.waiting > 0 {
            let waits = |packet: &Option<Outstanding>| packet.is_some_and(|one| one.progress == Progress::Waiting);
            let index = self.outstanding.iter().position(waits)?;
            let packet = self.outstanding[index].filter(|packet| fits(packet.piece.link_bits.into()))?;
            self.waiting -= 1;
            return Some(self.send(index, packet));
        }
        if self.has_new() {
            let bits = self.stream.rests().next().filter(|bits| fits(u64::from(*bits)))?;
            let piece = self.stream.cut_piece(bits)?;
            self.outstanding.push_back(None);
            let packet = Outstanding { piece, tries: 0, told: 0, is_last: false, progress: Progress::Waiting };
            return Some(self.send(self.outstanding.len() - 1, packet));
        }
        if self.has_request() && fits(REQUEST_BITS) {
            self.requests = self.requests.wrapping_add(1);
            self.request = Some(self.start);
            let header = Header { number: REQUEST, start: self.start, attempt: self.requests, is_last: false };
            let (bits, words) = (Bits::new(REQUEST_BITS), Some(header.words()));
            let frame = Frame { number: REQUEST, bits, pieces: smallvec![], words };
            return Some(Outgoing { frame, repeated: 0 });
        }
        None
    }

    /// `packet`, the one at `index` from the start of the window, for the air once more.
    fn send(&mut self, index: usize, mut packet: Outstanding) -> Outgoing {
        let repeated = packet.tries;
        packet.tries = packet.tries.saturating_add(1);
        packet.told = self.start;
        packet.progress = Progress::UnderWay;
        packet.is_last = self.options.retransmissions.is_some_and(|limit| packet.tries > limit);
        self.outstanding[index] = Some(packet);
        let number = self.start + index as u64;
        let header = Header { number, start: self.start, attempt: packet.tries, is_last: packet.is_last };
        let (bits, words) = (Bits::new(packet.piece.link_bits.into()), Some(header.words()));
        Outgoing { frame: Frame { number, bits, pieces: smallvec![packet.piece], words }, repeated }
    }

    /// Drops the packets that have become too old to be sent, or sent again.
    fn expire(&mut self, at: Time, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) {
        let Some(expiry) = self.options.expiry else { return };
        for index in 0..self.outstanding.len() {
            if let Some(packet) = self.outstanding[index]
                && packet.progress == Progress::Waiting
                && has_expired(packet.piece.sdu, expiry, at, sdus)
            {
                self.waiting -= 1;
                self.given_up = self.given_up.max(self.start + index as u64 + 1);
                self.settle(index);
                sdus.release(packet.piece.sdu, Cause::Expired, stage);
            }
        }
        self.advance_start();
        if self.has_new() {
            drop_expired(&mut self.stream, expiry, at, sdus, stage);
        }
    }

    fn settle(&mut self, index: usize) {
        if let Some(packet) = self.outstanding[index].take() {
            self.stream.settle_piece(&packet.piece);
        }
    }

    fn advance_start(&mut self) {
        while self.outstanding.front().is_some_and(Option::is_none) {
            self.outstanding.pop_front();
            self.start += 1;
        }
    }

    /// Takes an acknowledgement of the other end. One of an earlier try, or a second one of the same, means nothing.
    pub fn hear(&mut self, heard: Acknowledgement) {
        if heard.number == REQUEST {
            if let Some(told) = self.request.filter(|_| heard.attempt == self.requests) {
                self.request = None;
                self.told = if heard.is_received { self.told.max(told) } else { self.told };
            }
            return;
        }
        let Some(index) = heard.number.checked_sub(self.start).map(|index| index as usize) else { return };
        let Some(Some(packet)) = self.outstanding.get_mut(index) else { return };
        if packet.progress != Progress::UnderWay || packet.tries != heard.attempt {
            return;
        }
        if heard.is_received {
            self.told = self.told.max(packet.told);
            self.settle(index);
        } else if packet.is_last {
            self.settle(index);
        } else {
            packet.progress = Progress::Waiting;
            self.waiting += 1;
        }
        self.advance_start();
    }
}
