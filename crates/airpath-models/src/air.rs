// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The words in which media and link entities speak: grants, frames, and the pieces of packets in
//! them.

use airpath_core::{Bits, Direction, PduId, Time};
use smallvec::SmallVec;

use crate::quality::Quality;
use crate::sdus::SduKey;

/// A part of a packet in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The packet's place among the hop's packets.
    pub sdu: SduKey,
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
    /// Bits that the part takes in the frame, with what the link adds to the packet.
    pub link_bits: u32,
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

/// Permission to transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Index of the resource among those that the medium hands out side by side (a bin, a slot, a code).
    pub resource: u16,
    /// Index of the bearer among those on the medium.
    pub bearer: u16,
    /// Direction of the frame.
    pub direction: Direction,
    /// Maximum number of bits; none where the frame decides.
    pub bits: Option<Bits>,
    /// Start of transmission: the instant of the step that hands the grant out.
    pub start: Time,
}

/// Data that waits in one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Bits that could be sent now; at least 1 if there is anything, where the entity does not know better.
    pub bits: u64,
    /// Arrival of the oldest packet that waits; the present where the entity does not know.
    pub since: Time,
}

/// Requests of a medium to the hops on it.
pub trait Air {
    /// Data that `bearer` has to send in `direction` at `at`, once the send buffer has taken what it has room for: what
    /// tells an idle bearer from one whose frame is too long for a grant.
    fn backlog(&mut self, at: Time, bearer: u16, direction: Direction) -> Backlog;

    /// The frame that the bearer of `grant` sends in it, or none: the grant passes unused.
    fn next_frame(&mut self, grant: &Grant) -> Option<Frame>;

    /// The frame's transmission has ended at `at`.
    #[inline(always)]
    fn sent(&mut self, at: Time, grant: &Grant, frame: Frame) {
        self.sent_at(at, grant, frame, None);
    }

    /// The same over a radio channel whose quality the medium knows; true if the frame arrives without an error.
    fn sent_at(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool;

    /// The same on a medium on which the receiver answers each frame at once, so that the sending end knows the answer
    /// before the next frame begins ([`LinkEntity::answer`](crate::entity::LinkEntity::answer),
    /// [`LinkEntity::acknowledged`](crate::entity::LinkEntity::acknowledged)); true if the frame is acknowledged.
    fn sent_acknowledged(&mut self, at: Time, grant: &Grant, frame: Frame, quality: Option<&Quality>) -> bool;
}
