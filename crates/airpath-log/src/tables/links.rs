// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `link.arrow`: the frames and the state of link entities that have a protocol of their own, in order.

use airpath_core::{End, LinkEvent, LinkFrame, LinkRecord, Time};
use arrow_array::StringArray;
use arrow_array::types::{UInt8Type, UInt16Type, UInt64Type};

use super::kinds::{Bearers, Dictionary, Maybe, Number, RunName, Users, Word};
use super::{Names, table};
use crate::places::Places;

table! {
    /// The columns of `link.arrow`, and rows that wait to be written.
    LinkColumns of LinkCells, read as LinkRow of LinkBatch {
        /// Time, in nanoseconds since the run began.
        time_ns: Number<UInt64Type> => u64,
        /// The hop's name.
        hop: RunName<Hops> => &'a str,
        /// End whose link entity it is.
        end: Word<Ends> => &'a str,
        /// Event: a frame sent, repeated, received or damaged; a connection begun, reset or given up.
        event: Word<Events> => &'a str,
        /// Frame; empty for events of the connection.
        frame: Word<Frames> => &'a str,
        /// The frame's role, by its C/R bit: "command" or "response".
        role: Word<Roles> => &'a str,
        /// The poll or final bit.
        p_f: Maybe<UInt8Type> => Option<u8>,
        /// N(S) of the frame.
        n_s: Maybe<UInt16Type> => Option<u16>,
        /// N(R) of the frame.
        n_r: Maybe<UInt16Type> => Option<u16>,
        /// V(S) of the entity after the event.
        v_s: Maybe<UInt16Type> => Option<u16>,
        /// V(A) of the entity after the event.
        v_a: Maybe<UInt16Type> => Option<u16>,
        /// V(R) of the entity after the event.
        v_r: Maybe<UInt16Type> => Option<u16>,
        /// Frames sent and not acknowledged.
        outstanding: Maybe<UInt16Type> => Option<u16>,
        /// Times that the present command or poll has been sent.
        attempts: Maybe<UInt16Type> => Option<u16>,
        /// Time at which the acknowledgement timer expires, in nanoseconds since the run began.
        timer_ns: Maybe<UInt64Type> => Option<u64>,
        /// The first packet of which the frame carries a part; 0 for none.
        pdu: Number<UInt64Type> => u64,
        /// Reed-Solomon blocks of the frame.
        blocks: Maybe<UInt8Type> => Option<u8>,
        /// Parity bytes in each Reed-Solomon block of the frame.
        parity: Maybe<UInt8Type> => Option<u8>,
        /// The user whose path it is; empty for a path alone.
        user: RunName<Users> => &'a str,
        /// The bearer of the hop whose link entity it is; empty where the hop has none.
        bearer: RunName<Bearers> => &'a str,
    }
}

impl LinkColumns {
    /// No rows yet, of a run with these places.
    pub fn new(places: &Places) -> LinkColumns {
        LinkColumns::empty(&Names::of(places))
    }

    /// Adds a row.
    #[inline]
    pub(crate) fn push(&mut self, record: &LinkRecord, places: &Places) {
        self.append(LinkCells::new(record, places));
    }
}

impl<'a> LinkCells<'a> {
    /// A record as a row.
    pub fn new(record: &LinkRecord, places: &Places) -> LinkCells<'a> {
        let variables = record.variables;
        LinkCells {
            time_ns: record.at.nanos(),
            // An entity is that of a hop, and never of the whole path.
            hop: places.hop_word(record.hop).wrapping_sub(1),
            // The client sends the uplink, and stands first.
            end: record.sends as u8,
            event: record.event as u8,
            frame: record.frame as u8,
            role: record.command.map_or(0, |command| if command { 1 } else { 2 }),
            p_f: record.poll_final.map(u8::from),
            n_s: record.n_s,
            n_r: record.n_r,
            v_s: variables.v_s,
            v_a: variables.v_a,
            v_r: variables.v_r,
            outstanding: variables.outstanding,
            attempts: variables.attempts,
            timer_ns: variables.timer.and_then(Time::finite).map(Time::nanos),
            pdu: record.pdu,
            blocks: record.blocks,
            parity: record.parity,
            user: places.user(record.hop),
            bearer: places.bearer_word(record.hop),
        }
    }
}

struct Hops;

impl Dictionary for Hops {
    fn words(names: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(names.hops)
    }
}

struct Ends;

impl Dictionary for Ends {
    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(End::ALL.map(End::name))
    }
}

struct Events;

impl Dictionary for Events {
    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(LinkEvent::ALL.iter().map(|event| event.name()))
    }
}

struct Frames;

impl Dictionary for Frames {
    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(LinkFrame::ALL.iter().map(|frame| frame.name()))
    }
}

struct Roles;

impl Dictionary for Roles {
    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(["", "command", "response"])
    }
}
