// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Transport blocks: RLC PDUs one after the other, each behind a subheader of MAC (3GPP TS 38.321, clause 6.1.2), and
//! their headers in words of a frame.

use smallvec::SmallVec;

use super::format::{mac_octets, pdu_room};
use crate::air::{Frame, Piece};
use crate::entity::arq::repeats::Content;
use crate::entity::stream::Pieces;

/// Header of a data PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Sequence number, if there is one.
    pub sn: Option<u64>,
    /// Octets of the packet that earlier segments have.
    pub offset: u32,
    /// True if a STATUS PDU is asked for.
    pub poll: bool,
    /// Number of times that the flow has begun anew.
    pub flow: u16,
    /// Number of the packet in its direction: the COUNT of PDCP.
    pub count: u64,
}

/// A packet, a part of one or a range of packets that a STATUS PDU reports as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Sequence number of the packet.
    pub sn: u64,
    /// Number of packets in sequence that are missing.
    pub packets: u8,
    /// The missing octets, from the first to the one behind the last, where only a part of one packet is missing;
    /// [`u32::MAX`] stands for the end of the packet.
    pub segment: Option<(u32, u32)>,
}

/// A STATUS PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The flow that it is about.
    pub flow: u16,
    /// ACK_SN: the number behind all that is reported.
    pub ack_sn: u64,
    /// Missing packets and parts below it.
    pub nacks: Vec<Nack>,
}

/// A transport block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Parts of packets, one for each data PDU.
    pub pieces: Pieces,
    /// Headers of the PDUs.
    body: Vec<u64>,
    /// Octets of all PDUs and subheaders.
    octets: u32,
}

impl Content for Block {
    fn bits(&self) -> u64 {
        u64::from(self.octets) * 8
    }
}

impl Block {
    /// The words of a frame with the block at `place`.
    pub fn words(&self, place: u64, is_last: bool) -> Box<[u64]> {
        [place << 1 | u64::from(is_last)].into_iter().chain(self.body.iter().copied()).collect()
    }
}

/// A transport block that is being filled.
#[derive(Debug)]
pub struct Builder {
    /// Octets of the grant; none where it does not limit them, and the block takes one data PDU.
    room: Option<u32>,
    octets: u32,
    pieces: Pieces,
    data: Vec<u64>,
    status: Vec<u64>,
}

const NO_NUMBER: u64 = (1 << 20) - 1;

impl Builder {
    /// An empty block for a grant of `most` bits.
    pub fn new(most: Option<u64>) -> Builder {
        let room = most.map(|bits| (bits / 8).min(u64::from(u32::MAX)) as u32);
        Builder { room, octets: 0, pieces: Pieces::new(), data: Vec::new(), status: Vec::new() }
    }

    /// Most octets of a further PDU.
    pub fn room(&self) -> u32 {
        match self.room {
            Some(room) => pdu_room(room - self.octets),
            None if self.pieces.is_empty() => u32::MAX,
            None => 0,
        }
    }

    /// Adds a data PDU with a header of `header_octets`.
    pub fn data(&mut self, header: DataHeader, header_octets: u32, piece: Piece) {
        self.add(header_octets + piece.link_bits / 8);
        self.pieces.push(piece);
        let number = header.sn.unwrap_or(NO_NUMBER);
        let offset = u64::from(header.offset) << 20;
        self.data.push(number | offset | u64::from(header.flow) << 44 | u64::from(header.poll) << 60);
        self.data.push(header.count);
    }

    /// Adds a STATUS PDU of `octets`.
    pub fn status(&mut self, status: &Status, octets: u32) {
        self.add(octets);
        self.status.push(status.ack_sn | u64::from(status.flow) << 32);
        for nack in &status.nacks {
            self.status.push(nack.sn | u64::from(nack.packets) << 32);
            self.status.push(nack.segment.map_or(u64::MAX, |(from, to)| u64::from(from) << 32 | u64::from(to)));
        }
    }

    fn add(&mut self, pdu_octets: u32) {
        self.octets += pdu_octets + mac_octets(pdu_octets);
    }

    /// The block, unless there is nothing in it.
    pub fn build(self) -> Option<Block> {
        if self.octets == 0 {
            return None;
        }
        let mut body = vec![self.pieces.len() as u64];
        body.extend(self.data);
        body.extend(self.status);
        Some(Block { pieces: self.pieces, body, octets: self.octets })
    }
}

/// Content of a frame that arrives.
#[derive(Debug)]
pub struct Arriving {
    /// Place of the block.
    pub place: u64,
    /// True if it is not repeated any more.
    pub is_last: bool,
    /// Headers of its data PDUs, one for each part of a packet.
    pub data: SmallVec<[DataHeader; 2]>,
    /// Its STATUS PDU.
    pub status: Option<Status>,
}

impl Arriving {
    /// The headers in `frame`; none if there are none.
    pub fn read(frame: &Frame) -> Option<Arriving> {
        let [head, count, rest @ ..] = frame.words.as_deref()? else { return None };
        let (data, status) = rest.split_at_checked(2 * *count as usize)?;
        let data = data.chunks_exact(2).map(|words| DataHeader {
            sn: Some(words[0] & NO_NUMBER).filter(|sn| *sn != NO_NUMBER),
            offset: (words[0] >> 20) as u32 & 0xff_ffff,
            poll: words[0] >> 60 & 1 == 1,
            flow: (words[0] >> 44) as u16,
            count: words[1],
        });
        let status = status.split_first().map(|(head, nacks)| Status {
            flow: (head >> 32) as u16,
            ack_sn: head & NO_NUMBER,
            nacks: nacks.chunks_exact(2).map(nack).collect(),
        });
        Some(Arriving { place: head >> 1, is_last: head & 1 == 1, data: data.collect(), status })
    }
}

fn nack(words: &[u64]) -> Nack {
    let segment = (words[1] != u64::MAX).then_some(((words[1] >> 32) as u32, words[1] as u32));
    Nack { sn: words[0] & NO_NUMBER, packets: (words[0] >> 32) as u8, segment }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_core::Bits;

    #[test]
    fn headers_are_read_as_they_were_written() {
        let header = DataHeader { sn: Some(262_143), offset: 9_000, poll: true, flow: 65_535, count: 1 << 40 };
        let whole = DataHeader { sn: None, offset: 0, poll: false, flow: 1, count: 7 };
        let mut sdus = crate::entity::Sdus::new();
        let sdu = sdus.insert(airpath_core::Pdu::default(), 80);
        let piece =
            Piece { sdu, pdu: 1, first_bit: 0, bits: 80, last: true, packet_bits: 80, header_bits: 0, link_bits: 80 };
        let nacks = vec![
            Nack { sn: 3, packets: 200, segment: None },
            Nack { sn: 262_143, packets: 1, segment: Some((17, u32::MAX)) },
        ];
        let status = Status { flow: 4, ack_sn: 99, nacks };
        let mut builder = Builder::new(Some(803));
        builder.status(&status, 13);
        builder.data(header, 5, piece);
        builder.data(whole, 1, piece);
        // 13 + 2, 15 + 2 and 11 + 2 octets of 100.
        assert_eq!(builder.room(), 100 - 45 - 2);
        let block = builder.build().unwrap();
        assert_eq!(block.bits(), 45 * 8);
        let words = Some(block.words(12, true));
        let frame = Frame { number: 0, bits: Bits::new(803), pieces: block.pieces, words };
        let read = Arriving::read(&frame).unwrap();
        assert_eq!((read.place, read.is_last, read.status), (12, true, Some(status)));
        assert_eq!(read.data.as_slice(), [header, whole]);
        assert!(Builder::new(None).build().is_none());
    }
}
