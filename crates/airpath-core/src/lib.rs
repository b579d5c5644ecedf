// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! Vocabulary of all other crates: time, rates and lengths as types, protocol data units, keyed draws, the
//! machine contract, and the events and counters of a machine.
//!
//! Nothing here reads a clock, a socket or a global: a link is a state machine in logical time, and
//! this crate is its vocabulary.

pub mod bounded;
pub mod counters;
pub mod draw;
pub mod end;
pub mod event;
pub mod framing;
pub mod header_bytes;
pub mod length;
pub mod limits;
pub mod link_record;
pub mod machine;
pub mod matches;
mod named;
pub mod nearest;
pub mod pdu;
pub mod pool;
pub mod quantity;
pub mod rate;
pub mod rate_step;
pub mod time;

pub use counters::{Counters, Tally};
pub use draw::{DrawKey, DrawScope, Seed};
pub use end::End;
pub use event::{Cause, CauseClass, Event, EventKind, EventKinds, Stage};
pub use framing::{Escapes, Framing};
pub use header_bytes::HeaderBytes;
pub use length::{Bits, BufferLimit, Probability, QueueLimit, Ratio};
pub use link_record::{LinkEvent, LinkFrame, LinkRecord, LinkVariables};
pub use machine::{
    Command, CommandError, Credit, Cx, Emission, Item, LogLevel, Machine, Outputs, PortId, Signal, StateInForce,
};
pub use matches::{Matches, PacketFilters};
pub use pdu::{Damage, Direction, Ecn, FiveTuple, Origin, Payload, Pdu, PduId, UNDAMAGED};
pub use pdu::{background_id, background_number};
pub use pool::BufferPool;
pub use rate::{Carry, LinkRate, Rate};
pub use rate_step::RateStep;
pub use time::{Span, Time};
