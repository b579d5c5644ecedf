// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! `events.arrow`: everything that happened in the link, in order.

use airpath_core::{Cause, Direction, Event, EventKind, Origin, Stage};
use arrow_array::StringArray;
use arrow_array::types::{UInt32Type, UInt64Type};

use super::kinds::{Bearers, Dictionary, Later, Maybe, Number, Numbers, RunName, Users, Word};
use super::{Names, table};
use crate::places::Places;

/// The name under which events of the whole path are logged.
pub const WHOLE_PATH: &str = "path";

table! {
    /// The columns of `events.arrow`, and rows that wait to be written.
    EventColumns of EventCells, read as EventRow of EventBatch {
        /// Time of the event, in nanoseconds since the run began.
        time_ns: Number<UInt64Type> => u64,
        /// The hop's name; "path" for the whole path.
        hop: RunName<Hops> => &'a str,
        /// The direction.
        direction: Word<Directions> => &'a str,
        /// Part of the link in which it happened.
        stage: Word<Stages> => &'a str,
        /// Kind of the event.
        kind: Word<Kinds> => &'a str,
        /// Cause of a drop; empty for other events.
        cause: Word<Causes> => &'a str,
        /// The PDU; 0 for none.
        pdu: Number<UInt64Type> => u64,
        /// The PDU's flow.
        flow: Number<UInt32Type> => u32,
        /// Bits concerned: the PDU's, the frame's, or for damage the number flipped.
        bits: Number<UInt64Type> => u64,
        /// Packets in the queue after the event.
        queue_packets: Number<UInt32Type> => u32,
        /// Bytes in the queue after the event.
        queue_bytes: Number<UInt64Type> => u64,
        /// The state in force.
        state: RunName<States> => &'a str,
        /// Time at which the packet really left, in nanoseconds since the run began, for a delivery of a live
        /// run.
        emitted_ns: Maybe<UInt64Type> => Option<u64>,
        /// Positions of the bits that the link has flipped, for the delivery of a damaged packet; bit 0 is
        /// the most significant bit of the first byte.
        flipped_bits: Numbers => Option<&'a [u32]>,
        /// The bytes that are left, for the delivery of a truncated packet.
        kept_bytes: Later<UInt32Type> => Option<u32>,
        /// Origin of the traffic: endpoints ("user"), background loads ("background"), link entities
        /// ("control").
        origin: Word<Origins> => &'a str,
        /// The user whose path it is; empty for a path alone.
        user: RunName<Users> => &'a str,
        /// The bearer of the hop; empty where the hop has none, and for the whole path.
        bearer: RunName<Bearers> => &'a str,
    }
}

/// Departure of a packet in a live run.
#[derive(Clone, Copy, Debug)]
pub struct Left<'a> {
    /// Time at which it really left, in nanoseconds since the run began.
    pub at_ns: u64,
    /// Positions of the bits that the link has flipped.
    pub flips: &'a [u32],
    /// The bytes that are left of it, if it was truncated.
    pub kept_bytes: Option<u32>,
}

impl EventColumns {
    /// No rows yet, of a run with these places.
    pub fn new(places: &Places) -> EventColumns {
        EventColumns::empty(&Names::of(places))
    }

    /// Adds a row; a delivery may bring along the packet's departure.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event, left: Option<Left<'_>>, places: &Places) {
        self.append(EventCells::new(event, left, places));
    }
}

impl<'a> EventCells<'a> {
    /// An event as a row; a delivery may bring along the packet's departure.
    #[inline]
    pub fn new(event: &Event, left: Option<Left<'a>>, places: &Places) -> EventCells<'a> {
        EventCells {
            time_ns: event.at.nanos(),
            hop: places.hop_word(event.hop),
            direction: event.direction as u8,
            stage: event.stage as u8,
            kind: event.kind as u8,
            cause: event.cause as u8,
            pdu: event.pdu,
            flow: event.flow,
            bits: event.bits,
            queue_packets: event.queue_packets,
            queue_bytes: event.queue_bytes,
            state: places.state_word(event.hop, event.state),
            emitted_ns: left.map(|left| left.at_ns),
            flipped_bits: left.map_or(&[], |left| left.flips),
            kept_bytes: left.and_then(|left| left.kept_bytes),
            origin: event.origin as u8,
            user: places.user(event.hop),
            bearer: places.bearer_word(event.hop),
        }
    }
}

impl EventBatch {
    /// The names of all hops, and the word for the whole path.
    pub(crate) fn hop_names(&self) -> Vec<&str> {
        self.hop.as_ref().map(|hops| hops.words()).unwrap_or_default()
    }

    /// The names of the users; empty for a path alone.
    pub(crate) fn user_names(&self) -> Vec<&str> {
        let words = self.user.as_ref().map(|users| users.words()).unwrap_or_default();
        words.into_iter().filter(|name| !name.is_empty()).collect()
    }

    /// The names of the bearers; empty where no hop has any.
    pub(crate) fn bearer_names(&self) -> Vec<&str> {
        let words = self.bearer.as_ref().map(|bearers| bearers.words()).unwrap_or_default();
        words.into_iter().filter(|name| !name.is_empty()).collect()
    }

    /// The length of the longest name of a bearer.
    pub(crate) fn bearer_width(&self) -> usize {
        self.bearer.as_ref().map_or(0, |bearers| bearers.width())
    }

    /// The length of the longest user name.
    pub(crate) fn user_width(&self) -> usize {
        self.user.as_ref().map_or(0, |users| users.width())
    }

    /// The length of the longest hop name.
    pub(crate) fn hop_width(&self) -> usize {
        self.hop.as_ref().map_or(0, |hops| hops.width())
    }
}

/// The hops of the run, behind the word for the whole path.
struct Hops;

impl Dictionary for Hops {
    fn words(names: &Names<'_>) -> StringArray {
        StringArray::from_iter_values([WHOLE_PATH].into_iter().chain(names.hops.iter().map(String::as_str)))
    }
}

/// The states of the run.
struct States;

impl Dictionary for States {
    fn words(names: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(names.states)
    }
}

struct Directions;

impl Dictionary for Directions {
    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(Direction::ALL.map(Direction::name))
    }
}

struct Stages;

impl Dictionary for Stages {
    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(Stage::ALL.iter().map(|stage| stage.name()))
    }
}

struct Kinds;

impl Dictionary for Kinds {
    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(EventKind::ALL.iter().map(|kind| kind.name()))
    }
}

/// The causes of drops, also for the table of inputs.
pub(super) struct Causes;

impl Dictionary for Causes {
    const UNKNOWN: &'static str = "";

    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(Cause::ALL.iter().map(|cause| cause.name()))
    }
}

struct Origins;

impl Dictionary for Origins {
    // Earlier versions knew no background load.
    const BEFORE: Option<&'static str> = Some(Origin::User.name());

    fn words(_: &Names<'_>) -> StringArray {
        StringArray::from_iter_values(Origin::ALL.map(Origin::name))
    }
}

#[cfg(test)]
mod tests {
    use airpath_core::{Pdu, Time};

    use super::*;

    #[test]
    fn a_row_reads_back_as_it_was_foretold() {
        let places = Places::of_path(vec!["radio".into()], vec!["initial".into()]);
        let mut columns = EventColumns::new(&places);
        let pdu = Pdu { id: 7, len: 100, flow: 3, ..Pdu::default() };
        let flips = [1, 5, 799];
        for number in 0..6_u16 {
            let kind = EventKind::ALL[usize::from(number) % EventKind::COUNT];
            let cause = Cause::ALL[usize::from(number) % Cause::COUNT];
            let mut event =
                Event::of_path(Time::from_nanos(number.into()), Direction::Downlink, kind, cause, &pdu, number % 2);
            event.hop = [Event::WHOLE_PATH, 0, 1][usize::from(number) % 3];
            let left = Left { at_ns: 9, flips: &flips[..usize::from(number) % 4], kept_bytes: Some(60) };
            let left = (number > 1).then_some(left);
            columns.push(&event, left, &places);
            let batch = EventBatch::new(&columns.take(), std::path::Path::new("events.arrow")).unwrap();
            let foretold = columns.preview(EventCells::new(&event, left, &places));
            assert_eq!(batch.row(0).unwrap(), foretold);
            assert_eq!(batch.row(0).unwrap().difference(&foretold, &[]), None);
            assert_eq!((batch.len(), batch.row(1)), (1, None));
        }
    }

    #[test]
    fn the_first_column_that_differs_is_named() {
        let places = Places::of_path(Vec::new(), Vec::new());
        let columns = EventColumns::new(&places);
        let event = Event::of_path(Time::ZERO, Direction::Uplink, EventKind::Offered, Cause::None, &Pdu::default(), 0);
        let row = columns.preview(EventCells::new(&event, None, &places));
        let other = EventRow { emitted_ns: Some(3), kept_bytes: Some(40), ..row };
        let (column, said) = row.difference(&other, &["emitted_ns"]).unwrap();
        assert_eq!((column, said), ("kept_bytes", ["none".to_string(), "40".to_string()]));
    }

    #[test]
    fn the_columns_tell_of_themselves() {
        let about = EventColumns::about();
        let of = |name: &str| about.iter().find(|column| column.name == name).unwrap();
        assert_eq!((of("hop").type_name.as_str(), of("hop").nullable), ("word", true));
        assert_eq!(of("flipped_bits").type_name, "list of uint32");
        assert!(of("flipped_bits").meaning.ends_with("bit 0 is the most significant bit of the first byte."));
    }
}
