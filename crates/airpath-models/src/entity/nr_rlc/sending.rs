// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The sending end: transport blocks of HARQ, filled by RLC.

use airpath_core::{Bits, Time};

use super::am_sending::{AmSender, Flow};
use super::block::{Block, Builder, Status};
use super::config::NrRlcConfig;
use super::format::{Mode, mac_octets};
use super::receiving::Receiver;
use super::um::UmSender;
use crate::air::{Backlog, Frame};
use crate::entity::arq::header::Answer;
use crate::entity::arq::repeats::{RepeatOptions, Repeats, Try};
use crate::entity::stream::StreamSender;
use crate::entity::{SduKey, Sdus};

/// RLC of the sending end.
#[derive(Clone, Debug)]
enum Protocol {
    Um(UmSender),
    Am(AmSender),
}

/// A transport block to send.
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
    protocol: Protocol,
    stream: StreamSender,
    /// Number of packets of which something has been sent: the next COUNT of PDCP.
    packets: u64,
    /// Place of the next transport block.
    blocks: u64,
    /// Blocks that are not acknowledged.
    repeats: Repeats<Block>,
    /// Bits that a packet takes at least beside its own: headers of RLC and MAC.
    header_bits: u64,
}

impl Sender {
    /// An end without packets, whose send buffer is `stream`.
    pub fn new(config: &NrRlcConfig, stream: StreamSender) -> Sender {
        let protocol = match config.mode {
            Mode::Um => Protocol::Um(UmSender::new(config.format())),
            Mode::Am => Protocol::Am(AmSender::new(config.acknowledged())),
        };
        let header_octets = config.format().header_octets(true, 0) + mac_octets(0);
        Sender {
            protocol,
            stream,
            packets: 0,
            blocks: 0,
            repeats: Repeats::new(config.harq.repeats()),
            header_bits: u64::from(header_octets) * 8,
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

    /// Changes the parameters of HARQ.
    pub fn configure(&mut self, options: RepeatOptions) {
        self.repeats.configure(options);
    }

    /// True if there is something to send beside a STATUS PDU.
    pub fn has_more(&self) -> bool {
        self.repeats.has_waiting()
            || match &self.protocol {
                Protocol::Um(_) => self.stream.has_more(),
                Protocol::Am(am) => am.has_more(&self.stream),
            }
    }

    /// The block for a grant of `most` bits at `at`: the oldest that is to be repeated, or a new one, with the STATUS
    /// PDU of `receiver` in front if there is one.
    pub fn next(&mut self, at: Time, most: Option<u64>, receiver: &mut Receiver) -> Option<Outgoing> {
        if most == Some(0) {
            return None;
        }
        if let Some(place) = self.repeats.next_place(most)
            && let Some(frame) = self.repeats.take(place)
        {
            return Some(outgoing(place, self.repeats.send(place, frame, most)));
        }
        let mut block = Builder::new(most);
        if let Some((status, octets)) = receiver.status(at, block.room()) {
            block.status(&status, octets);
        }
        match &mut self.protocol {
            Protocol::Um(um) => um.fill(&mut self.stream, &mut self.packets, &mut block),
            Protocol::Am(am) => am.fill(at, &mut self.stream, &mut self.packets, &mut block),
        }
        let (place, block) = (self.blocks, block.build()?);
        self.blocks += 1;
        Some(outgoing(place, self.repeats.begin(place, block, most)))
    }

    /// The transmission of a block has ended.
    pub fn sent(&mut self, frame: &Frame) {
        // A packet leaves the send buffer of unacknowledged mode once it has been sent for the first time.
        let place = frame.words.as_deref().and_then(|words| words.first()).map(|head| head >> 1);
        let is_first = place.is_some_and(|place| self.repeats.tries(place) == 1);
        if is_first && matches!(self.protocol, Protocol::Um(_)) {
            frame.pieces.iter().for_each(|piece| self.stream.settle_piece(piece));
        }
    }

    /// Takes an answer of HARQ.
    pub fn hear_harq(&mut self, answer: Answer) {
        self.repeats.hear(answer);
    }

    /// Takes a STATUS PDU; the packets that it acknowledges leave the send buffer and go to `acknowledged`.
    pub fn hear(&mut self, status: &Status, mut acknowledged: impl FnMut(SduKey)) -> Flow {
        let Protocol::Am(am) = &mut self.protocol else { return Flow::Goes };
        let mut packets = Vec::new();
        let flow = am.hear(status, &mut packets);
        for (sdu, octets) in packets {
            if let Some(piece) = self.stream.piece_of(sdu, 0, octets * 8) {
                self.stream.settle_piece(&piece);
            }
            acknowledged(sdu);
        }
        flow
    }

    /// Time at which t-PollRetransmit expires; `Time::NEVER` if it does not run.
    pub fn expires(&self) -> Time {
        match &self.protocol {
            Protocol::Um(_) => Time::NEVER,
            Protocol::Am(am) => am.expires(),
        }
    }

    /// Does at `at` what t-PollRetransmit asks for.
    pub fn expire(&mut self, at: Time) -> Flow {
        match &mut self.protocol {
            Protocol::Um(_) => Flow::Goes,
            Protocol::Am(am) => am.expire(at, &self.stream),
        }
    }

    /// Begins the flow anew; packets of which something has been sent leave the send buffer and go to `leave`.
    pub fn begin_anew(&mut self, leave: impl FnMut(SduKey)) {
        if let Protocol::Am(am) = &mut self.protocol {
            am.begin_anew();
        }
        self.stream.take_begun(leave);
    }

    /// Bits that could be sent now, a STATUS PDU of `status_bits` among them, and the arrival of the oldest packet in
    /// them.
    pub fn backlog(&self, status_bits: u64, sdus: &Sdus) -> Backlog {
        let (again, repeated, new) = match &self.protocol {
            Protocol::Um(_) => (0, None, true),
            Protocol::Am(am) => {
                let (octets, sdu) = am.pending();
                (octets * 8, sdu, am.has_new(&self.stream))
            }
        };
        let block = self.repeats.oldest_waiting().and_then(|block| block.pieces.first()).map(|piece| piece.sdu);
        let next = self.stream.next().filter(|_| new).map(|(sdu, _)| sdu);
        let oldest = block.or(repeated).or(next);
        let since = oldest.and_then(|sdu| sdus.get(sdu)).map_or(Time::NEVER, |sdu| sdu.pdu.arrived);
        let headers = self.header_bits * if new { self.stream.uncut_packets() as u64 } else { 0 };
        let uncut = if new { self.stream.uncut() + headers } else { 0 };
        let again = if again > 0 { again + self.header_bits } else { 0 };
        Backlog { bits: self.repeats.waiting_bits() + status_bits + again + uncut, since }
    }

    /// TX_Next, and TX_Next_Ack of acknowledged mode.
    pub fn variables(&self) -> (u64, Option<u64>) {
        match &self.protocol {
            Protocol::Um(um) => (um.variable(), None),
            Protocol::Am(am) => {
                let (next, next_ack) = am.variables();
                (next, Some(next_ack))
            }
        }
    }

    /// Number of packets that are not acknowledged, or of transport blocks in unacknowledged mode.
    pub fn outstanding(&self) -> usize {
        match &self.protocol {
            Protocol::Um(_) => self.repeats.len(),
            Protocol::Am(am) => am.outstanding(),
        }
    }

    /// Minimum number of bits of a packet of `bytes` on the air.
    pub fn least_bits(&self, bytes: u32) -> Bits {
        Bits::new(u64::from(self.stream.least_line_bits(bytes)) + self.header_bits)
    }
}

/// The frame of the block at `place`.
fn outgoing(place: u64, sent: Try<Block>) -> Outgoing {
    let words = Some(sent.content.words(place, sent.is_last));
    let frame = Frame { number: sent.number, bits: Bits::new(sent.bits), pieces: sent.content.pieces, words };
    Outgoing { frame, repeated: sent.repeated }
}
