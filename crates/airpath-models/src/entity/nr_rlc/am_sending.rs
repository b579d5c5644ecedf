// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Acknowledged mode, the sending end: packets in numbers, polls, and what STATUS PDUs report as missing.
//!
//! Source: 3GPP TS 38.322, clauses 5.2.3.1, 5.3.2 and 5.3.3, with its variables TX_Next_Ack, TX_Next, POLL_SN,
//! PDU_WITHOUT_POLL, BYTE_WITHOUT_POLL and RETX_COUNT. A packet gets its number when its first segment is sent. A
//! STATUS PDU counts once for RETX_COUNT, however many segments of the packet it reports as missing.

use std::collections::{BTreeMap, BTreeSet};

use airpath_core::{Span, Time};

use super::block::{Builder, DataHeader, Status};
use super::format::{Format, from_base};
use super::ranges::Ranges;
use crate::entity::SduKey;
use crate::entity::stream::StreamSender;

/// Parameters of the sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmOptions {
    /// Format of its PDUs.
    pub format: Format,
    /// Time without an answer after which a poll is repeated: t-PollRetransmit.
    pub t_poll_retransmit: Span,
    /// Number of new PDUs from poll to poll: pollPDU.
    pub poll_pdu: Option<u32>,
    /// Number of new octets from poll to poll: pollByte.
    pub poll_byte: Option<u64>,
    /// Number of repetitions of a packet at which the flow begins anew: maxRetxThreshold.
    pub max_retx_threshold: u16,
}

/// A packet that is not acknowledged.
#[derive(Clone, Debug)]
struct Unacknowledged {
    sdu: SduKey,
    count: u64,
    /// Octets of the packet.
    total: u32,
    /// Octets of it that have been sent.
    sent: u32,
    /// Octets that are to be sent again.
    pending: Ranges,
    /// RETX_COUNT; none before the first repetition.
    repeated: Option<u16>,
}

/// The sending end.
#[derive(Clone, Debug)]
pub struct AmSender {
    options: AmOptions,
    flow: u16,
    unacknowledged: BTreeMap<u64, Unacknowledged>,
    /// Numbers of those of which something is to be sent again.
    pending: BTreeSet<u64>,
    /// TX_Next_Ack: the first packet that is not acknowledged.
    next_ack: u64,
    /// TX_Next.
    next: u64,
    /// POLL_SN.
    poll_sn: u64,
    pdu_without_poll: u32,
    byte_without_poll: u64,
    /// True if the next PDU polls: t-PollRetransmit has expired.
    polls_again: bool,
    expires: Time,
}

/// State of the flow behind a report or a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// It goes on.
    Goes,
    /// A packet has been repeated as often as it may be.
    Fails,
}

impl AmSender {
    /// An end that has sent nothing.
    pub fn new(options: AmOptions) -> AmSender {
        AmSender {
            options,
            flow: 0,
            unacknowledged: BTreeMap::new(),
            pending: BTreeSet::new(),
            next_ack: 0,
            next: 0,
            poll_sn: 0,
            pdu_without_poll: 0,
            byte_without_poll: 0,
            polls_again: false,
            expires: Time::NEVER,
        }
    }

    /// True if there is something to send.
    pub fn has_more(&self, stream: &StreamSender) -> bool {
        !self.pending.is_empty() || self.has_new(stream)
    }

    /// True if the rest of a packet, or a new one within the window, can be sent.
    pub fn has_new(&self, stream: &StreamSender) -> bool {
        stream.has_begun() || stream.has_more() && self.next < self.next_ack + self.options.format.window()
    }

    /// Octets that are to be sent again, and the packet of the first of them.
    pub fn pending(&self) -> (u64, Option<SduKey>) {
        let of = |sn: &u64| &self.unacknowledged[sn];
        let octets = |packet: &Unacknowledged| {
            packet.total - packet.pending.missing(Some(packet.total)).iter().map(|(a, b)| b - a).sum::<u32>()
        };
        let sum = self.pending.iter().map(|sn| u64::from(octets(of(sn)))).sum();
        (sum, self.pending.first().map(|sn| of(sn).sdu))
    }

    /// TX_Next and TX_Next_Ack.
    pub fn variables(&self) -> (u64, u64) {
        let modulus = self.options.format.modulus();
        (self.next % modulus, self.next_ack % modulus)
    }

    /// Number of packets that are not acknowledged.
    pub fn outstanding(&self) -> usize {
        self.unacknowledged.len()
    }

    /// Fills `block` with what is to be sent again, then from `stream`, whose next packet has the number `packets`.
    pub fn fill(&mut self, at: Time, stream: &mut StreamSender, packets: &mut u64, block: &mut Builder) {
        self.fill_again(at, stream, block);
        if !self.pending.is_empty() {
            // What did not fit goes before anything new.
            return;
        }
        while let Some((sdu, taken)) = stream.next()
            && let Some(rest) = stream.next_rest()
            && self.has_new(stream)
        {
            let (offset, rest) = (taken / 8, rest / 8);
            let header_octets = self.options.format.header_octets(offset == 0, offset);
            let octets = block.room().saturating_sub(header_octets).min(rest);
            if octets == 0 {
                break;
            }
            let Some(piece) = stream.cut_piece(octets * 8) else { break };
            if offset == 0 {
                let (total, pending) = (rest, Ranges::default());
                let packet = Unacknowledged { sdu, count: *packets, total, sent: 0, pending, repeated: None };
                self.unacknowledged.insert(self.next, packet);
                self.next += 1;
                *packets += 1;
            }
            let sn = self.next - 1;
            self.unacknowledged.entry(sn).and_modify(|packet| packet.sent += octets);
            self.pdu_without_poll += 1;
            self.byte_without_poll += u64::from(octets);
            let header = self.header(at, sn, offset, stream);
            block.data(header, header_octets, piece);
        }
    }

    fn fill_again(&mut self, at: Time, stream: &StreamSender, block: &mut Builder) {
        while let Some(sn) = self.pending.first().copied()
            && let Some(packet) = self.unacknowledged.get_mut(&sn)
            && let Some((from, to)) = packet.pending.first()
        {
            let header_octets = self.options.format.header_octets(from == 0, from);
            let octets = block.room().saturating_sub(header_octets).min(to - from);
            let piece = stream.piece_of(packet.sdu, from * 8, (from + octets) * 8);
            let Some(piece) = piece.filter(|_| octets > 0) else { break };
            packet.pending.remove(from, from + octets);
            if packet.pending.is_empty() {
                self.pending.remove(&sn);
            }
            let header = self.header(at, sn, from, stream);
            block.data(header, header_octets, piece);
        }
    }

    /// Header of a PDU that has just left the buffers, with a poll where one is due.
    fn header(&mut self, at: Time, sn: u64, offset: u32, stream: &StreamSender) -> DataHeader {
        let reached = self.options.poll_pdu.is_some_and(|limit| self.pdu_without_poll >= limit)
            || self.options.poll_byte.is_some_and(|limit| self.byte_without_poll >= limit);
        // Both buffers are empty but for this, or the window lets nothing new out.
        let poll = reached || self.polls_again || !self.has_new(stream) && self.is_last(stream);
        if poll {
            (self.pdu_without_poll, self.byte_without_poll) = (0, 0);
            self.polls_again = false;
            self.poll_sn = self.next - 1;
            self.expires = at + self.options.t_poll_retransmit;
        }
        let count = self.unacknowledged.get(&sn).map_or(0, |packet| packet.count);
        DataHeader { sn: Some(sn % self.options.format.modulus()), offset, poll, flow: self.flow, count }
    }

    /// True if nothing is left to be sent again, or the window is full.
    fn is_last(&self, stream: &StreamSender) -> bool {
        self.pending.is_empty() || stream.has_more()
    }

    /// Takes a STATUS PDU; the packets that it acknowledges go to `acknowledged`.
    pub fn hear(&mut self, status: &Status, acknowledged: &mut Vec<(SduKey, u32)>) -> Flow {
        let modulus = self.options.format.modulus();
        let unwrap = |sn| from_base(self.next_ack, sn, modulus);
        let ack = unwrap(status.ack_sn);
        if status.flow != self.flow || ack > self.next {
            // Of another flow, or older than what is acknowledged.
            return Flow::Goes;
        }
        let mut missing: BTreeMap<u64, Vec<(u32, u32)>> = BTreeMap::new();
        for nack in &status.nacks {
            // One by one: the first of a range may be acknowledged by now.
            let numbers = (0..u64::from(nack.packets)).map(|step| unwrap((nack.sn + step) % modulus));
            for sn in numbers.filter(|sn| *sn < ack) {
                missing.entry(sn).or_default().push(nack.segment.unwrap_or((0, u32::MAX)));
            }
        }
        if self.poll_sn < ack {
            self.expires = Time::NEVER;
        }
        let known: Vec<u64> = self.unacknowledged.range(..ack).map(|(sn, _)| *sn).collect();
        let mut flow = Flow::Goes;
        for sn in known {
            if let Some(segments) = missing.get(&sn) {
                if self.send_again(sn, segments) == Flow::Fails {
                    flow = Flow::Fails;
                }
            } else if let Some(packet) = self.unacknowledged.remove(&sn) {
                self.pending.remove(&sn);
                acknowledged.push((packet.sdu, packet.total));
            }
        }
        self.next_ack = self.unacknowledged.first_key_value().map_or(self.next, |(sn, _)| *sn);
        flow
    }

    /// Notes that `segments` of the packet `sn` are to be sent again, as far as they have been sent.
    fn send_again(&mut self, sn: u64, segments: &[(u32, u32)]) -> Flow {
        let Some(packet) = self.unacknowledged.get_mut(&sn) else { return Flow::Goes };
        let sent = packet.sent;
        let segments = segments.iter().map(|(from, to)| (*from, (*to).min(sent))).filter(|(from, to)| from < to);
        let mut is_new = false;
        for (from, to) in segments {
            is_new |= !packet.pending.covers(from, to);
            packet.pending.insert(from, to);
        }
        if !packet.pending.is_empty() {
            self.pending.insert(sn);
        }
        if !is_new {
            return Flow::Goes;
        }
        let repeated = packet.repeated.map_or(0, |repeated| repeated + 1);
        packet.repeated = Some(repeated);
        if repeated >= self.options.max_retx_threshold { Flow::Fails } else { Flow::Goes }
    }

    /// Time at which t-PollRetransmit expires; `Time::NEVER` if it does not run.
    pub fn expires(&self) -> Time {
        self.expires
    }

    /// Polls again, if t-PollRetransmit has expired at `at`: with the packet of the highest number where there is
    /// nothing else to send.
    pub fn expire(&mut self, at: Time, stream: &StreamSender) -> Flow {
        if self.expires > at {
            return Flow::Goes;
        }
        self.expires = Time::NEVER;
        if self.unacknowledged.is_empty() {
            return Flow::Goes;
        }
        self.polls_again = true;
        match self.unacknowledged.last_key_value() {
            Some((sn, _)) if !self.has_new(stream) && self.is_last(stream) => {
                let sn = *sn;
                self.send_again(sn, &[(0, u32::MAX)])
            }
            _ => Flow::Goes,
        }
    }

    /// Begins the flow anew: nothing is acknowledged, and nothing was sent.
    pub fn begin_anew(&mut self) {
        *self = AmSender { flow: self.flow.wrapping_add(1), ..AmSender::new(self.options) };
    }
}
