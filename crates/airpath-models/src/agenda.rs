// SPDX-FileCopyrightText: The Airpath authors
// SPDX-License-Identifier: Apache-2.0

//! The order in which a machine runs what is due, and in pieces of any length.

use airpath_core::{Cx, Span, Time};

/// Time for which frames without packets may be left to be caught up with.
pub(crate) const CATCH_UP: Span = Span::from_secs(1);

/// Maximum lag of a driver behind a background load that emits nothing: undone work has to be done at once when
/// a packet comes.
pub(crate) const KEEP_UP: Span = Span::from_millis(1);

/// Kind of what is due next, in the order of precedence at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Next {
    /// Service by hops and media.
    Service,
    /// A change of state.
    State,
    /// A packet that one hop hands to the next.
    Transfer,
    /// A packet of a background load.
    Load,
}

/// The work of a machine, one thing after the other.
pub(crate) trait Agenda {
    /// Kind of the next thing that is due.
    type Due: Copy;

    /// The next thing that is due, and when; at `Time::NEVER` if nothing is.
    fn due(&self) -> (Time, Self::Due);

    /// Does what is due at `at`.
    fn run(&mut self, at: Time, due: Self::Due, cx: &mut Cx<'_>);

    /// Runs everything due at or before `to`, in order.
    #[inline]
    fn run_until(&mut self, to: Time, cx: &mut Cx<'_>) {
        loop {
            let (at, due) = self.due();
            if at > to || at == Time::NEVER {
                return;
            }
            self.run(at, due, cx);
        }
    }

    /// The same up to the end of the instant at which `events` are used up; through which instant.
    fn run_some(&mut self, to: Time, events: &mut u32, cx: &mut Cx<'_>) -> Time {
        let mut reached = None;
        loop {
            let (at, due) = self.due();
            if at > to || at == Time::NEVER {
                return to;
            }
            if let Some(reached) = reached
                && *events == 0
                && at > reached
            {
                return reached;
            }
            self.run(at, due, cx);
            *events = events.saturating_sub(1);
            reached = Some(at);
        }
    }
}
