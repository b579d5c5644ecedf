// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages of radio blocks to the other end, as words.

use smallvec::SmallVec;

use super::acknowledgement::Acknowledgement;
use super::sending::{Outgoing, Part};
use super::stream::Chunk;
use crate::air::Frame;
use crate::entity::stream::Pieces;

/// An RLC block of a radio block that arrives, before its information is decoded.
#[derive(Clone, Debug)]
pub struct Arriving {
    /// Its number.
    pub bsn: u16,
    /// The part that was sent.
    pub part: Part,
    /// True if it is the last one so far.
    pub is_last: bool,
    /// Its information.
    pub payload: Chunk,
}

/// Header of a radio block with data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the radio block.
    pub number: u64,
    /// Place of the coding scheme.
    pub scheme: usize,
    /// True if an acknowledgement is asked for.
    pub poll: bool,
    /// True if the sending window is full.
    pub is_stalled: bool,
    /// BSN of its first block.
    pub bsn: u16,
}

/// Message of a radio block.
#[derive(Clone, Debug)]
pub enum Message {
    /// Data.
    Data(Header, SmallVec<[Arriving; 2]>),
    /// Packet Ack/Nack.
    Acknowledgement(Acknowledgement),
}

const CONTROL: u64 = 1;

/// The words and the pieces of a radio block with data.
pub fn data(outgoing: &Outgoing<Chunk>) -> (Box<[u64]>, Pieces) {
    let mut words: SmallVec<[u64; 6]> = SmallVec::new();
    let flags = u64::from(outgoing.poll) << 1 | u64::from(outgoing.is_stalled) << 2;
    words.push(flags | (outgoing.scheme as u64) << 8 | u64::from(outgoing.flow) << 32);
    words.push(outgoing.number);
    let mut pieces = Pieces::new();
    for block in &outgoing.blocks {
        let part = block.part as u64;
        let length = block.payload.pieces.len() as u64;
        words.push(u64::from(block.bsn) | part << 16 | u64::from(block.is_last) << 18 | length << 32);
        words.push(block.payload.position);
        pieces.extend(block.payload.pieces.iter().copied());
    }
    (words.into_vec().into_boxed_slice(), pieces)
}

/// The words of a Packet Ack/Nack.
pub fn acknowledgement(told: &Acknowledgement) -> Box<[u64]> {
    let head = [CONTROL | u64::from(told.flow) << 32, told.seen, u64::from(told.v_q) | u64::from(told.count) << 16];
    head.into_iter().chain(told.bitmap.iter().copied()).collect()
}

/// True if the radio block carries a control message.
pub fn is_control(frame: &Frame) -> bool {
    frame.words.as_deref().is_some_and(|words| words.first().is_some_and(|word| word & CONTROL != 0))
}

/// The message of `frame`; none if it has none.
pub fn read(frame: &Frame) -> Option<Message> {
    let (&[head, number], rest) = frame.words.as_deref()?.split_first_chunk::<2>()?;
    let flow = (head >> 32) as u32;
    if head & CONTROL != 0 {
        let (&numbers, bitmap) = rest.split_first()?;
        let (v_q, count) = (numbers as u16, (numbers >> 16) as u16);
        let bitmap = SmallVec::from_slice(bitmap);
        return Some(Message::Acknowledgement(Acknowledgement { flow, seen: number, v_q, count, bitmap }));
    }
    let mut blocks: SmallVec<[Arriving; 2]> = SmallVec::new();
    let mut from = 0;
    for &[block, position] in rest.as_chunks::<2>().0 {
        let part = [Part::Whole, Part::First, Part::Second][(block >> 16 & 3) as usize % 3];
        let to = from + (block >> 32) as usize;
        let pieces = Pieces::from_slice(frame.pieces.get(from..to)?);
        from = to;
        let payload = Chunk { position, pieces };
        blocks.push(Arriving { bsn: block as u16, part, is_last: block >> 18 & 1 == 1, payload });
    }
    let bsn = blocks.first()?.bsn;
    let (poll, is_stalled) = (head >> 1 & 1 == 1, head >> 2 & 1 == 1);
    let header = Header { flow, number, scheme: (head >> 8 & 0xff) as usize, poll, is_stalled, bsn };
    Some(Message::Data(header, blocks))
}
