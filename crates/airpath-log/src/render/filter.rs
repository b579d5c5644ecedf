// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The choice of events to show.

use airpath_core::nearest::nearest;
use airpath_core::{Direction, EventKind, Origin};
use airpath_packet::PacketFilter;

use crate::tables::events::EventRow;
use crate::tables::inputs::InputRow;

/// A word that names nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no {what} `{word}`{hint}; there are {known}")]
pub struct FilterError {
    what: &'static str,
    word: String,
    hint: String,
    known: String,
}

fn parse<T: Copy>(
    what: &'static str,
    word: &str,
    all: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> &'static str,
) -> Result<T, FilterError> {
    let all: Vec<T> = all.into_iter().collect();
    all.iter().copied().find(|value| name(*value) == word).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|value| name(*value)).collect();
        let hint = nearest(word, names.iter().copied()).map(|near| format!(", did you mean `{near}`?"));
        FilterError { what, word: word.into(), hint: hint.unwrap_or_default(), known: names.join(", ") }
    })
}

/// The kind of event called `word`.
///
/// # Errors
/// When there is none; the message names the nearest.
pub fn parse_kind(word: &str) -> Result<EventKind, FilterError> {
    parse("kind of event", word, EventKind::ALL.iter().copied(), EventKind::name)
}

/// The direction called `word`.
///
/// # Errors
/// When there is none; the message names the nearest.
pub fn parse_direction(word: &str) -> Result<Direction, FilterError> {
    parse("direction", word, Direction::ALL, Direction::name)
}

/// The origin of traffic called `word`.
///
/// # Errors
/// When there is none; the message names the nearest.
pub fn parse_origin(word: &str) -> Result<Origin, FilterError> {
    parse("origin", word, Origin::ALL, Origin::name)
}

/// Sees to it that `name` is one of `known`, the names in a log of `what`: hops, bearers or users.
pub(crate) fn check_name(what: &'static str, name: &str, known: &[&str]) -> Result<(), FilterError> {
    if known.contains(&name) {
        return Ok(());
    }
    let hint = nearest(name, known.iter().copied()).map(|near| format!(", did you mean `{near}`?"));
    let known = if known.is_empty() { "none".into() } else { known.join(", ") };
    Err(FilterError { what, word: name.into(), hint: hint.unwrap_or_default(), known })
}

/// Conditions for an event to be shown; `None` lets everything pass.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Only of this user.
    pub user: Option<String>,
    /// Only at this hop ("path" for the whole path).
    pub hop: Option<String>,
    /// Only of bearers with this name.
    pub bearer: Option<String>,
    /// Only in this direction.
    pub direction: Option<Direction>,
    /// Only of this kind.
    pub kind: Option<EventKind>,
    /// Only about traffic of this origin.
    pub origin: Option<Origin>,
    /// Only about this PDU.
    pub pdu: Option<u64>,
    /// Only from this time on.
    pub from_ns: Option<u64>,
    /// Only up to this time.
    pub to_ns: Option<u64>,
    /// Only about packets whose recorded beginning matches: that in the captures, or the headers in the input log.
    pub packets: Option<PacketFilter>,
}

impl Filter {
    /// True if `event` is shown.
    pub fn passes(&self, event: &EventRow<'_>) -> bool {
        self.place_and_kind(event)
            && self.user(event.user)
            && self.pdu.is_none_or(|pdu| pdu == event.pdu)
            && self.direction.is_none_or(|direction| direction.name() == event.direction)
            && self.origin.is_none_or(|origin| origin.name() == event.origin)
            && self.time(event.time_ns)
    }

    pub(crate) fn place_and_kind(&self, event: &EventRow<'_>) -> bool {
        self.hop.as_deref().is_none_or(|hop| hop == event.hop)
            && self.bearer.as_deref().is_none_or(|bearer| bearer == event.bearer)
            && self.kind.is_none_or(|kind| kind.name() == event.kind)
    }

    pub(crate) fn user(&self, user: &str) -> bool {
        self.user.as_deref().is_none_or(|wanted| wanted == user)
    }

    /// True if the packet of `input`, which begins with `bytes`, matches; one of which nothing is known matches no filter.
    pub(crate) fn packet(&self, input: &InputRow<'_>, bytes: Option<&[u8]>) -> bool {
        let matches =
            |packets: &PacketFilter| bytes.is_some_and(|bytes| packets.matches(bytes, input.length.unwrap_or(0)));
        self.packets.as_ref().is_none_or(matches)
    }

    pub(crate) fn time(&self, time_ns: u64) -> bool {
        self.from_ns.is_none_or(|from| time_ns >= from) && self.to_ns.is_none_or(|to| time_ns <= to)
    }

    /// True if only packets with certain events are wanted.
    pub(crate) fn asks_for_events(&self) -> bool {
        self.hop.is_some() || self.bearer.is_some() || self.kind.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_words_are_met_with_the_nearest() {
        assert_eq!(parse_kind("dropped").unwrap(), EventKind::Dropped);
        let error = parse_kind("droped").unwrap_err().to_string();
        assert!(error.contains("did you mean `dropped`?") && error.contains("frame_started"), "{error}");
        assert!(parse_origin("users").unwrap_err().to_string().contains("did you mean `user`?"));
        assert!(parse_direction("up").unwrap_err().to_string().contains("uplink, downlink"));
    }
}
