// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Parameters of the sending end of a flow, what it takes and what it gives.

use airpath_core::Span;
use smallvec::SmallVec;

use super::schemes::Schemes;
use super::window::Part;

/// Polls of the network, where flows are set up and released by messages.
#[derive(Clone, Copy, Debug)]
pub struct Polls {
    /// Time after which a poll counts as unanswered.
    pub timeout: Span,
    /// N3105: number of polls without an answer after which the flow is given up.
    pub most: u8,
    /// Time from poll to poll where there is nothing to send.
    pub idle: Span,
}

/// Parameters of the sending end.
#[derive(Clone, Copy, Debug)]
pub struct SenderOptions {
    /// Coding schemes.
    pub schemes: &'static Schemes,
    /// Number of block sequence numbers.
    pub modulus: u16,
    /// Window: blocks that may be sent and not acknowledged.
    pub window: u16,
    /// True if blocks are acknowledged.
    pub acknowledged: bool,
    /// True if it asks for acknowledgements itself: the network's end.
    pub polls: bool,
    /// Number of blocks from poll to poll.
    pub poll_every: u16,
    /// Rounds of blocks before the last block from which on nothing new joins the flow (BS_CV_MAX); 0 for the
    /// network's end.
    pub bs_cv_max: u32,
    /// Number of timeslots (NTS): blocks of a round.
    pub timeslots: u16,
    /// Time for which a flow stays where nothing is to be sent; without it each flow ends with its last block.
    pub release_delay: Span,
    /// Time without an acknowledgement after which the flow is given up.
    pub gives_up: Span,
    /// True if a block may be repeated in halves.
    pub resegments: bool,
    /// Parameters of polls; none without messages that set up and release flows.
    pub messages: Option<Polls>,
}

/// Source of the sending end's information.
pub trait Source {
    /// Information of one block.
    type Payload: Clone;
    /// True if there is nothing more for this flow.
    fn is_empty(&self) -> bool;
    /// Information of a block of `octets`; `ends` says that the flow ends with the last of it.
    fn cut(&mut self, octets: u32, ends: bool) -> Option<Self::Payload>;
    /// Information of a block without any.
    fn nothing(&self) -> Self::Payload;
    /// Number of blocks of `octets` that are left; none if it is above `most`.
    fn blocks_left(&self, octets: u32, ends: bool, most: u32) -> Option<u32>;
    /// Nothing new joins the flow.
    fn close(&mut self);
    /// The next flow begins with whatever is there.
    fn reopen(&mut self);
}

/// An RLC block of a radio block.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Block<P> {
    /// Its number, BSN.
    pub bsn: u16,
    /// The part that is sent.
    pub part: Part,
    /// True if it is the last one so far (CV or FBI).
    pub is_last: bool,
    /// Its information.
    pub payload: P,
}

/// A radio block with data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Outgoing<P> {
    /// Number of the flow.
    pub flow: u32,
    /// Number of the radio block among all of this end.
    pub number: u64,
    /// Place of the coding scheme in the table.
    pub scheme: usize,
    /// True if an acknowledgement is asked for (RRBP).
    pub poll: bool,
    /// True if the window is full (SI).
    pub is_stalled: bool,
    /// True if all its blocks were sent before.
    pub repeated: bool,
    /// True if all blocks of the flow have been sent (FBI in the downlink).
    pub ends: bool,
    /// True if the blocks carry the mobile's TLLI.
    pub tlli: bool,
    /// Its RLC blocks.
    pub blocks: SmallVec<[Block<P>; 2]>,
}

/// Consequence for the user of the sending end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Signal<P> {
    /// The oldest information is acknowledged.
    Acknowledged(P),
    /// A flow has begun.
    Began,
    /// The flow has ended.
    Released,
    /// The flow was given up: information that is not acknowledged is lost.
    Reset,
    /// Contention was not resolved: the mobile has to access again, with the same blocks.
    Contended,
}
