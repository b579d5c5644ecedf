// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Messages of radio blocks to the other end, as words.

use smallvec::SmallVec;

use super::acknowledgement::Acknowledgement;
use super::flow::Outgoing;
use super::stream::Chunk;
use super::window::Part;
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
    /// True if all blocks of the flow have been sent (FBI in the downlink).
    pub ends: bool,
    /// True if its blocks carry the mobile's TLLI.
    pub tlli: bool,
    /// BSN of its first block.
    pub bsn: u16,
}

/// Message that sets up or releases a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// Packet Resource Request: the mobile asks for an uplink flow.
    ResourceRequest,
    /// Packet Uplink Assignment: an uplink flow is assigned.
    UplinkAssignment,
    /// Packet Downlink Assignment: a downlink flow is assigned, and the answer asked for.
    DownlinkAssignment,
    /// Packet Control Acknowledgement of the final acknowledgement of an uplink flow, or of a downlink assignment.
    Answer(Option<u32>),
}

/// Message of a radio block.
#[derive(Clone, Debug)]
pub enum Message {
    /// Data.
    Data(Header, SmallVec<[Arriving; 2]>),
    /// Packet Ack/Nack, and whether the mobile asks for an uplink flow in it (Channel Request Description).
    Acknowledgement(Acknowledgement, bool),
    /// A message that sets up or releases a flow.
    Control(Control),
}

const CONTROL: u64 = 1;

/// The words and the pieces of a radio block with data.
pub fn data(outgoing: &Outgoing<Chunk>) -> (Box<[u64]>, Pieces) {
    let mut words: SmallVec<[u64; 6]> = SmallVec::new();
    let flags = u64::from(outgoing.poll) << 1
        | u64::from(outgoing.is_stalled) << 2
        | u64::from(outgoing.ends) << 3
        | u64::from(outgoing.tlli) << 4;
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

/// The words of a Packet Ack/Nack, in which the mobile `requests` an uplink flow or not.
pub fn acknowledgement(told: &Acknowledgement, requests: bool) -> Box<[u64]> {
    let flags = u64::from(told.is_final) << 1 | u64::from(requests) << 2;
    let numbers = u64::from(told.v_q) | u64::from(told.count) << 16;
    let head = [CONTROL | flags | u64::from(told.flow) << 32, told.seen, numbers];
    head.into_iter().chain(told.bitmap.iter().copied()).collect()
}

/// The words of a message that sets up or releases a flow.
pub fn control(message: Control) -> Box<[u64]> {
    let (kind, flow) = match message {
        Control::ResourceRequest => (1, 0),
        Control::UplinkAssignment => (2, 0),
        Control::DownlinkAssignment => (3, 0),
        Control::Answer(None) => (4, 0),
        Control::Answer(Some(flow)) => (5, flow),
    };
    Box::new([CONTROL | kind << 8 | u64::from(flow) << 32, 0])
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
        let control = match head >> 8 & 0xff {
            0 => None,
            1 => Some(Control::ResourceRequest),
            2 => Some(Control::UplinkAssignment),
            3 => Some(Control::DownlinkAssignment),
            4 => Some(Control::Answer(None)),
            _ => Some(Control::Answer(Some(flow))),
        };
        if let Some(control) = control {
            return Some(Message::Control(control));
        }
        let (&numbers, bitmap) = rest.split_first()?;
        let (v_q, count) = (numbers as u16, (numbers >> 16) as u16);
        let bitmap = SmallVec::from_slice(bitmap);
        let (is_final, requests) = (head >> 1 & 1 == 1, head >> 2 & 1 == 1);
        let told = Acknowledgement { flow, is_final, seen: number, v_q, count, bitmap };
        return Some(Message::Acknowledgement(told, requests));
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
    let (ends, tlli) = (head >> 3 & 1 == 1, head >> 4 & 1 == 1);
    let header = Header { flow, number, scheme: (head >> 8 & 0xff) as usize, poll, is_stalled, ends, tlli, bsn };
    Some(Message::Data(header, blocks))
}
