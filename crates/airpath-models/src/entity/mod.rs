//! Link entities: one at each end of a hop, sending and receiving. They own framing, the link
//! buffers and recovery.

pub mod simple;

use airpath_core::{Bits, Pdu, PduId, Time};
use slab::Slab;
use smallvec::SmallVec;

use crate::channel::Outcome;
use crate::config::LinkConfig;
use crate::medium::Grant;
use crate::stage::StageCx;

pub use simple::Simple;

/// A packet on its way over one hop, from the send buffer until it is handed up or dropped.
#[derive(Clone, Debug)]
pub struct Sdu {
    /// The packet.
    pub pdu: Pdu,
    /// Number of frames.
    pub frames: u32,
    /// Number of frames that the receiving end has accounted for, lost ones included.
    pub accounted: u32,
    /// Number of frames that wait at the receiving end.
    pub buffered: u32,
    /// Payload bits that wait at the receiving end.
    pub buffered_bits: u64,
    /// True if it is already lost, so that the rest of it is thrown away.
    pub lost: bool,
    /// True if this link has cut it, so that frames behind the cut bring nothing and cost nothing.
    pub cut: bool,
    /// True if the receiving end has handed it up, where the sending end has yet to hear of that.
    pub handed_up: bool,
}

impl Sdu {
    /// A packet of `frames` frames at the beginning of its way.
    pub fn new(pdu: Pdu, frames: u32) -> Sdu {
        Sdu { pdu, frames, accounted: 0, buffered: 0, buffered_bits: 0, lost: false, cut: false, handed_up: false }
    }
}

/// The packets of a hop, of both directions. Who removes one sees to it that no frame that is still
/// on its way is taken for another packet's: places are used again.
pub type Sdus = Slab<Sdu>;

/// A part of a packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The packet's place among the hop's packets.
    pub sdu: usize,
    /// The packet's identity.
    pub pdu: PduId,
    /// The first bit of the packet that it carries.
    pub first_bit: u32,
    /// Number of the packet's bits.
    pub bits: u32,
    /// True if it ends the packet.
    pub last: bool,
    /// The bits of the whole packet, and of its own network and transport headers. They are here
    /// because a repeated frame may outlive its packet.
    pub packet_bits: u32,
    /// See `packet_bits`.
    pub header_bits: u32,
}

/// Transmission unit of one grant.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Its number; an entity that repeats a frame repeats the number.
    pub number: u64,
    /// Its bits on the air, headers and padding included.
    pub bits: Bits,
    /// The parts of packets that it carries; none in a control frame.
    pub pieces: SmallVec<[Piece; 1]>,
    /// Message between the entities in a control frame or a header, in words of their own.
    pub words: Option<Box<[u64]>>,
}

/// State of the link entity that an arriving packet finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Nothing queued, nothing under transmission.
    MeetsEmptyLink,
    /// It was queued behind others, or meets some.
    FollowsOthers,
}

/// A link entity at one end of a hop.
pub trait LinkEntity: Send {
    /// True if the send buffer takes `next` now.
    fn has_room(&self, next: &Pdu) -> bool;

    /// Takes a packet into the send buffer.
    fn accept(&mut self, pdu: Pdu, arrival: Arrival, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>);

    /// Time from which `next_frame` has something to send; `Time::NEVER` if it has nothing. From then on it has
    /// a frame for every grant that is large enough, or a medium would ask for ever.
    fn ready_at(&self) -> Time;

    /// The frame to send in `grant`.
    fn next_frame(&mut self, grant: &Grant, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>) -> Option<Frame>;

    /// The transmission of `frame` has ended.
    fn sent(&mut self, frame: &Frame, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>);

    /// A frame of the other end arrives, or would have; packets that are complete go to `up`.
    fn receive(
        &mut self,
        frame: Frame,
        outcome: Outcome,
        sdus: &mut Sdus,
        stage: &mut StageCx<'_, '_>,
        up: &mut Vec<Pdu>,
    );

    /// Minimum number of bits of a packet of `bytes` on the air, all its frames with their headers and padding
    /// together.
    fn bits_on_air(&self, _bytes: u32) -> Bits {
        Bits::ZERO
    }

    /// Next internal timer; `Time::NEVER` if there is none.
    fn next_deadline(&self) -> Time;

    /// Does what is due by itself. `stage` is that of the direction in which it receives.
    fn advance(&mut self, sdus: &mut Sdus, stage: &mut StageCx<'_, '_>, up: &mut Vec<Pdu>);

    /// Drops the packets in the send buffer of which no frame has been sent yet: a blackout has begun.
    /// An entity that cannot do without them keeps them.
    fn abandon(&mut self, _sdus: &mut Sdus, _stage: &mut StageCx<'_, '_>) {}

    /// Changes the parameters of the direction in which it sends and of that in which it receives.
    fn configure(&mut self, sends: &LinkConfig, receives: &LinkConfig);
}
